"""Boxes that overlap a better one left out: NonMaxSuppression by rows of NumPy.

The package's own compares pairs of boxes in Python, and is some hundred times slower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.types.tensor_type import Array

_AT_ONCE = 64


def kept_boxes(
    boxes: Array, scores: Array, most: int, overlap: float, score: float | None, is_by_center: bool
) -> NDArray[np.int64]:
    """Rows of batch, class and number of the boxes [batches, n, 4] that are kept.

    Of each class [batches, classes, n] these are at most `most` with more than `score`, from the
    best on. One is left out where the area it shares with a kept one is above `overlap` of both.
    """
    kept: list[tuple[int, int, int]] = []
    with np.errstate(all="ignore"):
        for batch, of_classes in enumerate(scores if most > 0 else ()):
            sides = _sides(np.asarray(boxes[batch], np.float32), is_by_center)
            for number, values in enumerate(of_classes):
                order = np.argsort(-values, kind="stable")
                if score is not None:
                    order = order[values[order] > score]
                best = _kept_of(sides[:, order], most, overlap)
                kept += [(batch, number, int(each)) for each in order[best]]
    return np.array(kept, np.int64).reshape(-1, 3)


def _sides(boxes: NDArray[np.float32], is_by_center: bool) -> NDArray[np.float32]:
    """Both lower and both higher sides of boxes, and their areas: [5, n]."""
    first, second = boxes[:, :2].T, boxes[:, 2:].T
    if is_by_center:
        low, high = first - second / 2, first + second / 2
    else:
        low, high = np.minimum(first, second), np.maximum(first, second)
    return np.concatenate([low, high, np.prod(high - low, axis=0, keepdims=True)])


def _kept_of(boxes: NDArray[np.float32], most: int, overlap: float) -> list[int]:
    """The places of the kept ones among boxes [5, n] that are in order, found in `_AT_ONCE` of them
    at a time: they are compared with those that were kept before, and with each other."""
    kept: list[int] = []
    for start in range(0, boxes.shape[1], _AT_ONCE):
        these = boxes[:, start : start + _AT_ONCE]
        is_left = ~np.asarray(_overlap(boxes[:, kept], these, overlap).any(axis=0))
        pairs = _overlap(these, these, overlap)
        for place in range(these.shape[1]):
            if is_left[place]:
                kept.append(start + place)
                if len(kept) == most:
                    return kept
                is_left &= ~pairs[place]
    return kept


def _overlap(
    first: NDArray[np.float32], second: NDArray[np.float32], least: float
) -> NDArray[np.bool_]:
    """Which of the boxes [5, m] and [5, n] share more than `least` of their area: [m, n]."""
    one, other = first[:, :, None], second[:, None]
    shared = np.minimum(one[2:4], other[2:4]) - np.maximum(one[:2], other[:2])
    common = shared[0] * shared[1]
    union = one[4] + other[4] - common
    is_there = (shared > 0).all(axis=0) & (one[4] > 0) & (other[4] > 0)
    is_there &= (common > 0) & (union > 0)
    return np.asarray(is_there & (common / union > least))
