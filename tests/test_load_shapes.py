"""ONNX in: shapes that exporters compute with tensors, and names of open axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.onnx_models import (
    F32,
    I64,
    Shape,
    Typed,
    agrees_with_onnxruntime,
    make_model,
    node,
    random_input,
)
from tests.onnxruntime_reference import assert_close


def attention_heads() -> ModelProto:
    """x [batch, seq, 12] to heads and back, as exporters write it."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "batch", axis=0),
        node("Gather", "s one", "seq", axis=0),
        node("Unsqueeze", "batch axis", "batch1"),
        node("Unsqueeze", "seq axis", "seq1"),
        node("Concat", "batch1 seq1 heads width", "split", axis=0),
        node("Reshape", "x split", "wide"),
        node("Transpose", "wide", "moved", perm=[0, 2, 1, 3]),
        node("Shape", "moved", "s2"),
        node("Slice", "s2 lo hi", "head"),
        node("Mul", "heads width", "all"),
        node("Concat", "batch1 seq1 all", "joined", axis=0),
        node("Transpose", "moved", "back", perm=[0, 2, 1, 3]),
        node("Reshape", "back joined", "y"),
    ]
    constants = {"zero": 0, "one": 1, "axis": [0], "heads": [3], "width": [4], "lo": [0], "hi": [2]}
    return make_model(nodes, {"x": ("batch", "seq", 12)}, constants)


def expanded_mask() -> ModelProto:
    """Expand to a shape in which exporters replace -1 by 1 with Equal and Where."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s axes", "some"),
        node("Concat", "minus some", "target", axis=0),
        node("Shape", "target", "count"),
        node("ConstantOfShape", "count", "ones", value=numpy_helper.from_array(np.array([1]))),
        node("Mul", "ones minus1", "negative"),
        node("Equal", "target negative", "open"),
        node("Where", "open ones target", "shape"),
        node("Expand", "mask shape", "y"),
    ]
    constants = {
        "axes": [0, 1], "minus": [-1], "minus1": np.int64(-1), "mask": random_input(1, 1, 1),
    }  # fmt: skip
    return make_model(nodes, {"x": ("batch", "seq")}, constants)


def positions() -> ModelProto:
    """Range to the sequence length, and a table of positions cut to it."""
    nodes = [
        node("Shape", "x", "seq1", start=1, end=2),
        node("Squeeze", "seq1", "seq"),
        node("Range", "zero seq one", "ramp"),
        node("Slice", "table lo seq1 axis", "cut"),
        node("Gather", "weights cut", "rows"),
        node("Cast", "ramp", "floats", to=F32),
        node("Add", "rows floats", "y"),
    ]
    constants = {
        "zero": np.int64(0), "one": np.int64(1), "table": np.arange(32)[None], "lo": [0],
        "axis": [1], "weights": random_input(32),
    }  # fmt: skip
    return make_model(nodes, {"x": ("batch", "seq")}, constants)


def halves() -> ModelProto:
    """Slices at half of an extent, negated and joined, and padding that depends on a size."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s last", "width", axis=0),
        node("Div", "width two", "half"),
        node("Unsqueeze", "half axis", "half1"),
        node("Slice", "x zero half1 minus", "left"),
        node("Slice", "x half1 far minus", "right"),
        node("Neg", "right", "turned"),
        node("Concat", "turned left", "joined", axis=-1),
        node("Gather", "s one", "seq", axis=0),
        node("Concat", "zero zero zero seq zero zero", "pads", axis=0),
        node("Pad", "joined pads", "y"),
    ]
    constants = {
        "last": np.int64(-1), "two": np.int64(2), "axis": [0], "zero": [0], "minus": [-1],
        "far": [2**63 - 1], "one": [1],
    }  # fmt: skip
    return make_model(nodes, {"x": ("batch", "seq", 8)}, constants)


def upsampled() -> ModelProto:
    """Resize to twice an open extent, through float arithmetic."""
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s two four", "spatial"),
        node("Cast", "spatial", "floats", to=F32),
        node("Mul", "floats factor", "scaled"),
        node("Floor", "scaled", "whole"),
        node("Cast", "whole", "sizes", to=I64),
        node("Slice", "s zero two", "kept"),
        node("Concat", "kept sizes", "target", axis=0),
        node(
            "Resize", "x - - target", "y",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        ),
    ]  # fmt: skip
    constants = {"two": [2], "four": [4], "zero": [0], "factor": np.float32(2)}
    return make_model(nodes, {"x": ("n", 2, "h", "w")}, constants)


SHAPES: dict[str, tuple[Callable[[], ModelProto], list[tuple[int, ...]]]] = {
    "attention heads": (attention_heads, [(1, 1, 12), (2, 5, 12)]),
    "expanded mask": (expanded_mask, [(1, 1), (3, 4)]),
    "positions": (positions, [(1, 1), (2, 7), (1, 32)]),
    "halves": (halves, [(1, 1, 8), (2, 3, 8)]),
    "upsampled": (upsampled, [(1, 2, 3, 1), (2, 2, 1, 4)]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_computed_shapes_are_followed(name: str) -> None:
    build, shapes = SHAPES[name]
    model = build()
    for shape in shapes:
        program = agrees_with_onnxruntime(model, {"x": random_input(*shape)})
        assert program.symbols and not any(node.op.name == "host" for node in program.nodes)


def test_unnamed_axes_get_names_of_their_own() -> None:
    program = load(make_model([node("Add", "x x")], {"x": (None, 3, None)}))
    assert str(program.nodes[program.inputs[0]].type) == "f32[x_0, 3, x_2]"


def test_arithmetic_on_named_axes_is_understood() -> None:
    nodes = [node("Concat", "x z", "joined", axis=0), node("Add", "joined mask", "y")]
    inputs: dict[str, Shape] = {"x": ("past",), "z": ("seq",), "mask": ("past + seq",)}
    program = load(make_model(nodes, inputs))
    x, z = random_input(2), random_input(3)
    result = interpret(program, {"x": x, "z": z, "mask": np.zeros(5, np.float32)})["y"]
    assert program.symbols == {"past", "seq"} and result.tolist() == [*x, *z]


def test_a_shape_that_depends_on_data_names_node_and_input() -> None:
    model = make_model(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="re")],
        {"x": (4,), "s": Typed((2,))},
    )
    with pytest.raises(UnsupportedError, match=r"node 're' \(Reshape\): input 1 \('s'\)"):
        load(model)


def declared(model: ModelProto, *shape: int) -> ModelProto:
    """The model with the type of its output."""
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", F32, shape))
    return model


@pytest.mark.filterwarnings("ignore::satura.rewrite.program.host_call.HostFallbackWarning")
def test_a_shape_that_arguments_decide_is_the_declared_one() -> None:
    model = make_model([node("ReduceSum", "x a")], {"x": (2, 3), "a": Typed((1,))}, opset=13)
    with pytest.raises(UnsupportedError, match="declare the shape"):
        load(model)
    with pytest.raises(UnsupportedError, match="declare the shape"):
        load(declared(model, -1, 1))
    program = load(declared(model, 2, 1))
    x = random_input(2, 3)
    result = interpret(program, {"x": x, "a": np.array([-1])})["y"]
    assert_close(result, x.sum(1, keepdims=True))
    with pytest.raises(CallError, match=r"float32\[1, 3\], not f32\[2, 1\]"):
        interpret(program, {"x": x, "a": np.array([0])})
