"""Models whose result has an extent that is computed from that of x."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto

from tests.onnx_models import F32, I64, make_model, node

_NUMBERS: dict[str, object] = {
    "zero": [0], "one": [1], "six": [6], "five": [5], "two": [2], "four": [4],
    "half": np.float32(0.5), "third": np.float32(0.3), "three": np.float32(3),
    "yes": np.bool_(True), "none": np.int64(0), "step": np.int64(1),
}  # fmt: skip


def of_extent(
    nodes: list[NodeProto], end: str = "Slice : x zero k : y", outputs: tuple[str, ...] = ("y",),
    **attributes: object,
) -> ModelProto:  # fmt: skip
    """k by `nodes` from n, the extent of x [n, 5], or from it as a float f; and y from that."""
    count = [node("Shape", "x", "n", end=1), node("Cast", "n", "f", to=F32)]
    op_type, inputs, results = end.split(" : ")
    last = node(op_type, inputs, results, **attributes)
    number = [node("Squeeze", "k zero", "k0")] if "k0" in inputs else []
    made = [*count, *nodes, *number, last]
    read = {name for each in made for name in each.input}
    read |= {name for graph in attributes.values() if isinstance(graph, GraphProto)
             for each in graph.node for name in each.input}  # fmt: skip
    constants = {name: value for name, value in _NUMBERS.items() if name in read}
    return make_model(made, {"x": ("n", 5)}, constants, outputs=outputs)


def rounded(*nodes: NodeProto) -> ModelProto:
    """x up to the whole number r."""
    return of_extent([*nodes, node("Cast", "r", "k", to=I64)])
