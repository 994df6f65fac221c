"""Running a compiled program on worker threads."""
