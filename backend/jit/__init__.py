"""From the text of kernels to machine code."""
