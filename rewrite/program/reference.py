"""The onnx package's reference implementation, with what it gets wrong put right.

Few models need it: it is imported when one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_loop as loop

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


class Loop(loop.Loop):
    """Turns of a body; the package takes none without a condition, and joins results end to end."""

    body: ReferenceEvaluator
    _run_body: Callable[..., Sequence[Array]]

    def _run(
        self, most: Array | None, condition: Array | None, *state: object,
        context: Mapping[str, object] | None = None, body: object = None,  # as that of the class
        attributes: object = None, bindings: object = None,
    ) -> tuple[object, ...]:  # fmt: skip
        goes_on = condition is None or bool(condition.item())
        kept: list[list[Array]] = [[] for _ in range(self.K)]
        turns = 0
        while goes_on and (most is None or turns < most.item()):
            given = (np.asarray(turns, np.int64), np.asarray(goes_on), *state)
            inputs = {**(context or {}), **dict(zip(self.body.input_names, given, strict=True))}
            results = self._run_body(inputs, attributes=attributes, bindings=bindings)
            goes_on, state = bool(results[0].item()), tuple(results[1 : 1 + self.N])
            for each, result in zip(kept, results[1 + self.N :], strict=True):
                each.append(result)
            turns += 1
        types = self.body.output_types[1 + self.N :]
        collected = [
            np.stack(each) if each else _none_of(type_)
            for each, type_ in zip(kept, types, strict=True)
        ]
        return (*state, *collected)


def _none_of(type_: TypeProto) -> Array:
    """No tensor of a type, of which extents that are not known are 0."""
    tensor = type_.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type or TensorProto.FLOAT)
    return np.zeros((0, *(dim.dim_value for dim in tensor.shape.dim)), dtype)


def evaluator(model: ModelProto) -> ReferenceEvaluator:
    """What runs `model` in Python."""
    return ReferenceEvaluator(model, new_ops=[Unique, NonMaxSuppression, OneHot, Loop])
