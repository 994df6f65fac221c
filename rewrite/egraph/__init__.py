"""The e-graph: programs and rules as egglog's tables, and saturation."""
