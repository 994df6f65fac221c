"""What the operating system does to us: files that are not regular, and interrupts."""
