"""The checker: draws instances of a rule from its own pattern and compares both sides."""
