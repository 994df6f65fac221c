"""Known right operands of contractions, packed into the panels that their kernels read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.backend.cache_lines import aligned_empty
from satura.backend.contraction.tile import Products
from satura.rewrite.types.tensor_type import Array


def pack_panels(weights: Array, groups: int, width: int) -> Array:
    """Weights [*taps, depth, columns of all groups] as [groups, panels, taps · depth, width].

    The last panel of each group is filled up with zeros.
    """
    columns = weights.shape[-1] // groups
    flat = weights.reshape(-1, groups, columns)
    panels = -(-columns // width)
    result = aligned_empty((groups, panels, flat.shape[0], width), weights.dtype)
    for panel in range(panels):  # no copy beside the result: it may be as large as all memory
        part = flat[:, :, panel * width : (panel + 1) * width].transpose(1, 0, 2)
        result[:, panel, :, : part.shape[-1]] = part
        result[:, panel, :, part.shape[-1] :] = 0
    return result


def pack_products(
    weights: NDArray[np.int64], groups: int, width: int, products: Products, shift: int,
    least: int = 0,
) -> NDArray[np.int32]:  # fmt: skip
    """Integers [depth, columns of all groups] as [groups, panels, 1 + words, width], with zeros
    behind them where there are to be more words.

    A word has neighbours along the depth. The first line is -shift · Σ over the depth: what rows
    that are `shift` too large add too much.
    """
    per = products.per_word
    kind = np.int16 if products is Products.PAIRS else np.int8
    depth, columns = len(weights), weights.shape[-1] // groups
    panels, words = -(-columns // width), max(least, -(-depth // per))
    padded = np.zeros((words * per, groups, panels * width), kind)
    padded[:depth, :, :columns] = weights.reshape(depth, groups, columns)
    split = padded.reshape(words, per, groups, panels, width).transpose(2, 3, 0, 4, 1)
    lines = np.ascontiguousarray(split).view(np.int32)[..., 0]
    sums = np.zeros((groups, panels * width), np.int64)
    sums[:, :columns] = -shift * weights.sum(axis=0, dtype=np.int64).reshape(groups, columns)
    head = sums.astype(np.int32).reshape(groups, panels, 1, width)  # wraps, as the products do
    return np.ascontiguousarray(np.concatenate([head, lines], axis=2))
