"""Programs: how they are built, and what they mean."""
