"""Matmuls and convolutions, from their spec to the text of their kernel."""
