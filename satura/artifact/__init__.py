"""Saved programs: one file with machine code, packed weights to be mapped, and the schedule."""
