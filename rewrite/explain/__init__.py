"""Explanations: why a rule fires or does not, and which rules a node comes from."""
