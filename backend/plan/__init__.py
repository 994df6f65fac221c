"""From a schedule to kernels, buffers and calls."""
