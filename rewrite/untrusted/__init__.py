"""Rules that are not ours: run in a process of their own, watched, dropped where they fail."""
