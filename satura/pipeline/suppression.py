"""NonMaxSuppression between two programs: a kernel of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from satura.backend.plan.compiled import CompiledSchedule
from satura.backend.run.kept_boxes import boxes_keeper
from satura.rewrite.program.suppression import limits_of
from satura.rewrite.types.tensor_type import Array

_INPUTS = 5


class Suppression:
    """A NonMaxSuppression, whose kernel is ready."""

    bodies: tuple[CompiledSchedule, ...] = ()

    def __init__(self, node: NodeProto, threads: int) -> None:
        self._inputs = [*node.input, *[""] * _INPUTS][:_INPUTS]
        self.reads = tuple(name for name in self._inputs if name)
        self._is_by_center = any(each.i for each in node.attribute)  # it has one attribute
        self._keep = boxes_keeper(threads)

    def run(self, values: Mapping[str, Array]) -> Sequence[Array]:
        """The result, for what the node reads, by name."""
        boxes, scores, *limits = (values.get(name) for name in self._inputs)
        assert boxes is not None and scores is not None
        return [self._keep(boxes, scores, *limits_of(*limits), self._is_by_center)]
