"""Boxes that overlap a better one left out: NonMaxSuppression by rows of NumPy.

The package's own compares pairs of boxes in Python, and is some hundred times slower. What is
compiled has a kernel, `backend/run/kept_boxes.py`, which gives the same bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.types.tensor_type import Array

SIDES = 5  # of a box, with its area
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
            sides = sides_of(boxes[batch], is_by_center)
            for number, values in enumerate(of_classes):
                order = np.argsort(-values, kind="stable")
                if score is not None:
                    order = order[values[order] > score]
                best = _kept_of(sides[:, order], most, overlap)
                kept += [(batch, number, int(each)) for each in order[best]]
    return np.array(kept, np.int64).reshape(-1, 3)


def limits_of(
    most: Array | None, overlap: Array | None, score: Array | None
) -> tuple[int, float, float | None]:
    """The limits that a node gives: those left out are as in onnxruntime."""
    count, least, above = (
        None if x is None or not x.size else x.flat[0].item() for x in (most, overlap, score)
    )
    return count or 0, least or 0.0, above


def sides_of(boxes: Array, is_by_center: bool) -> NDArray[np.float32]:
    """Both lower and both higher sides of boxes [..., n, 4], and their areas: [..., 5, n]."""
    sides = np.empty((*boxes.shape[:-2], SIDES, boxes.shape[-2]), np.float32)
    given = np.swapaxes(np.asarray(boxes, np.float32), -1, -2)
    first, second = given[..., :2, :], given[..., 2:, :]
    low, high = sides[..., :2, :], sides[..., 2:4, :]
    with np.errstate(all="ignore"):
        if is_by_center:
            half = second / 2
            np.subtract(first, half, out=low)
            np.add(first, half, out=high)
        else:
            np.minimum(first, second, out=low)
            np.maximum(first, second, out=high)
        extents = high - low
        np.multiply(extents[..., 0, :], extents[..., 1, :], out=sides[..., 4, :])
    return sides


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
