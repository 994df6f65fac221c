"""Which dispatches of a program share a kernel."""

MERGING = ("none", "exact", "generic", "cost")
"""Each dispatch has a kernel of its own; kernels of equal text are one; dispatches run each other's
kernels wherever they can; they do so where a program takes less time with compilation shared out.
"""
