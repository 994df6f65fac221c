"""Which products of f32 are those of parts, three bf16 each, where CPUs have matrices of these."""

from __future__ import annotations

# For a split to pay: of weights it takes as long as 24 rows of f32, and parts half as long as f32.
_ROWS, _COLUMNS, _PRODUCTS = 57, 32, 48
_DEPTHS = range(16, 2560)  # parts of deeper pixels do not fit L2: each few split the weights


def pays_in_parts(rows: int, columns: int, depth: int, taps: int) -> bool:
    """Whether rows and weights are split, and multiplied in parts, sooner than as they are.

    Of the rows it asks last: where these are of any number, that is a fact of sizes.
    """
    is_deep = depth >= _DEPTHS.stop and taps > 1  # deep rows are split slab by slab
    if columns < _COLUMNS or depth < _DEPTHS.start or is_deep or taps * depth < _PRODUCTS:
        return False
    return rows >= _ROWS
