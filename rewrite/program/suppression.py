"""Boxes that overlap a better one left out: NonMaxSuppression by rows of NumPy.

The package's own compares pairs of boxes in Python, and is some hundred times slower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.types.tensor_type import Array


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
                rest = sides[:, order]
                for _ in range(most):
                    if not len(order):
                        break
                    kept.append((batch, number, int(order[0])))
                    is_left = ~_overlap_first(rest, overlap)
                    is_left[0] = False
                    order, rest = order[is_left], rest[:, is_left]
    return np.array(kept, np.int64).reshape(-1, 3)


def _sides(boxes: NDArray[np.float32], is_by_center: bool) -> NDArray[np.float32]:
    """Both lower and both higher sides of boxes, and their areas: [5, n]."""
    first, second = boxes[:, :2].T, boxes[:, 2:].T
    if is_by_center:
        low, high = first - second / 2, first + second / 2
    else:
        low, high = np.minimum(first, second), np.maximum(first, second)
    return np.concatenate([low, high, np.prod(high - low, axis=0, keepdims=True)])


def _overlap_first(boxes: NDArray[np.float32], least: float) -> NDArray[np.bool_]:
    """Which of the boxes share more than `least` of their area with the first one."""
    first, areas = boxes[:, :1], boxes[4]
    shared = np.minimum(boxes[2:4], first[2:4]) - np.maximum(boxes[:2], first[:2])
    common = shared[0] * shared[1]
    union = areas + first[4] - common
    is_there = (shared > 0).all(axis=0) & (areas > 0) & (first[4] > 0) & (common > 0) & (union > 0)
    return np.asarray(is_there & (common / union > least))
