"""Sizes as symbols: what lowering decides about them, and expressions for what it computes."""
