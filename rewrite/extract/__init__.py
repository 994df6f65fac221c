"""Extraction: from an e-graph to the cheapest schedule that a method finds."""
