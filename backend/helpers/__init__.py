"""What the text of kernels may call."""
