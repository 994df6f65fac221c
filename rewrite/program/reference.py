"""The onnx package's reference implementation, with what it gets wrong put right.

Few models need it: it is imported when one does.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from satura.rewrite.program.suppression import kept_boxes, limits_of
from satura.rewrite.types.tensor_type import Array


class Unique(OpRun):
    """Distinct elements or slices, which the package confuses where they are not sorted."""

    op_domain = ""

    def _run(self, x: Array, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
        y, first, inverse, counts = np.unique(x, True, True, True, axis)
        inverse = inverse.reshape(-1)
        if not sorted:
            order = np.argsort(first)
            y, first, counts = np.take(y, order, axis), first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return (y, first, inverse, counts)[: len(self.onnx_node.output)]


class NonMaxSuppression(OpRun):
    """Boxes that overlap a better one left out; the package compares pairs of them in Python."""

    op_domain = ""

    def _run(
        self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
        score: Array | None = None, center_point_box: int | None = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        limits = limits_of(most, overlap, score)
        return (kept_boxes(boxes, scores, *limits, bool(center_point_box)),)


class OneHot(OpRun):
    """One value where an index names the class, of which a vector of one element says how many."""

    op_domain = ""

    def _run(
        self, indices: Array, depth: Array, values: Array, axis: int | None = None
    ) -> tuple[Array, ...]:
        count, off, on = int(depth.item()), *values
        at = (-1 if axis is None else axis) % (indices.ndim + 1)
        classes = np.arange(count).reshape(-1, *[1] * (indices.ndim - at))
        named = indices.astype(np.int64)
        counted = np.where(named < 0, named + count, named)
        return (np.where(np.expand_dims(counted, at) == classes, on, off),)


def evaluator(model: ModelProto) -> ReferenceEvaluator:
    """What runs `model` in Python."""
    return ReferenceEvaluator(model, new_ops=[Unique, NonMaxSuppression, OneHot])
