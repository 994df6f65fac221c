"""Types of tensors, their dims, and the attributes of ops."""
