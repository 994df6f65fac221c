"""The backend: from a schedule to compiled kernels."""
