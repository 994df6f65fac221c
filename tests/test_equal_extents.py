"""Extents that a node needs to be equal, of which a model gives one as a size: they are one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, helper

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.load import load
from tests.onnx_models import F32, Shape, Typed, make_model, node


def test_channels_of_groups_are_as_many_as_there_are_scales() -> None:
    nodes = [node("GroupNormalization", "x s s", num_groups=3)]
    model = make_model(nodes, {"x": ("n", "c", 4)}, {"s": np.ones(6, np.float32)}, 21)
    program = load(model)
    assert str(program.nodes[program.inputs[0]].type) == "f32[n, 6, 4]"


def summed_rows() -> NodeProto:
    """A scan over x and z at once: the sum of all rows, and those of both."""
    inputs, outputs = (
        [helper.make_tensor_value_info(name, F32, [3]) for name in names.split()]
        for names in ("state a b", "total sum")
    )
    nodes = [node("Add", "a b", "sum"), node("Add", "state sum", "total")]
    inner = helper.make_graph(nodes, "body", inputs, outputs)
    return node("Scan", "first x z", "all y", body=inner, num_scan_inputs=2)


@pytest.mark.parametrize(
    ("read", "inputs", "types"),
    [
        (node("AffineGrid", "t s"), {"t": ("n", "a", "b")}, ["f32[2, 2, 3]"]),
        (
            node("GridSample", "x g"), {"x": (2, 3, "h", "w"), "g": ("m", "p", "q", "r")},
            ["f32[2, 3, h, w]", "f32[2, p, q, 2]"],
        ),
        (
            node("ScatterElements", "x i u"), {"x": ("n", 3), "i": Typed(("k", 3)), "u": ("l", 3)},
            ["f32[n, 3]", "i64[k, 3]", "f32[k, 3]"],
        ),
        (
            node("ScatterND", "x i u"), {"x": ("n", 3), "i": Typed(("k", 1)), "u": ("l", "m")},
            ["f32[n, 3]", "i64[k, 1]", "f32[k, 3]"],
        ),
        (
            node("Conv", "x w", group=2), {"x": ("b", "c", "h"), "w": (4, 3, 1)},
            ["f32[b, 6, h]", "f32[4, 3, 1]"],
        ),
        (
            node("Conv", "x w", group=2), {"x": ("b", 6, "h"), "w": (4, "c", 1)},
            ["f32[b, 6, h]", "f32[4, 3, 1]"],
        ),
        (
            node("ConvTranspose", "x w", group=2), {"x": ("b", "c", "h"), "w": (4, 3, 2)},
            ["f32[b, 4, h]", "f32[4, 3, 2]"],
        ),
        (summed_rows(), {"x": (4, 3), "z": ("m", 3)}, ["f32[4, 3]", "f32[4, 3]"]),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else "",
)  # fmt: skip
def test_extents_that_a_node_needs_to_be_equal_are(
    read: NodeProto, inputs: dict[str, Shape | Typed], types: list[str]
) -> None:
    constants = {"s": [2, 3, 4, 5], "first": np.zeros(3, np.float32)}
    program = load(make_model([read], inputs, constants, 20))
    assert [str(program.nodes[index].type) for index in program.inputs] == types


@pytest.mark.parametrize(
    ("wanted", "types"),
    [
        ({"x": (1, 1), "z": (3, 1)}, ["f32[1]", "f32[3]"]),
        ({"x": (3, 1), "z": (1, 1)}, ["f32[3]", "f32[1]"]),
        ({"x": (3, 1), "z": (3, 1)}, ["f32[3]", "f32[3]"]),
    ],
)
def test_a_size_that_may_broadcast_is_1_where_equal_ones_do_not_run(
    wanted: dict[str, Sequence[int]], types: list[str]
) -> None:
    nodes = [node("Add", "x z"), node("Reshape", "x s", "v"), node("Reshape", "z t", "w")]
    constants = {"s": wanted["x"], "t": wanted["z"]}
    inputs: dict[str, Shape | Typed] = {"x": ("n",), "z": ("m",)}
    program = load(make_model(nodes, inputs, constants, outputs=("y", "v", "w")))
    assert [str(program.nodes[index].type) for index in program.inputs] == types
    constants |= {"s": (3, 1), "t": (2, 2, 2)}
    with pytest.raises(ModelError, match=r"\(Reshape\) that computes 'w'"):
        load(make_model(nodes, inputs, constants, outputs=("y", "v", "w")))


def test_scans_of_unlike_many_elements_are_refused() -> None:
    inputs: dict[str, Shape | Typed] = {"x": (4, 3), "z": (5, 3)}
    model = make_model([summed_rows()], inputs, {"first": np.zeros(3, np.float32)})
    with pytest.raises(ModelError, match=r"\(Scan\).* one has 4 elements, and another 5"):
        load(model)
