"""ONNX in: shapes that exporters compute with tensors, and names of open axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

import satura
from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.models_of_extent import of_extent, rounded
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
from tests.onnxruntime_reference import assert_close, run


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


ROWS: list[tuple[int, ...]] = [(size, 5) for size in (1, 4, 5, 6, 7, 16, 33)]
SHAPES: dict[str, tuple[Callable[[], ModelProto], list[tuple[int, ...]]]] = {
    "attention heads": (attention_heads, [(1, 1, 12), (2, 5, 12)]),
    "expanded mask": (expanded_mask, [(1, 1), (3, 4)]),
    "positions": (positions, [(1, 1), (2, 7), (1, 32)]),
    "halves": (halves, [(1, 1, 8), (2, 3, 8)]),
    "upsampled": (upsampled, [(1, 2, 3, 1), (2, 2, 1, 4)]),
    "half, rounded up": (lambda: rounded(node("Mul", "f half", "m"), node("Ceil", "m", "r")), ROWS),
    "a third, rounded down": (
        lambda: rounded(node("Div", "f three", "m"), node("Floor", "m", "r")),
        ROWS,
    ),
    "a fraction and more": (
        lambda: rounded(
            node("Mul", "f half", "m"), node("Add", "m half", "p"), node("Floor", "p", "r")
        ),
        ROWS,
    ),
    "at most six": (lambda: of_extent([node("Min", "n six", "k")]), ROWS),
    "a range of six and more": (
        lambda: of_extent([node("Max", "n six", "k")], "Range : none k0 step : y"),
        ROWS,
    ),
    "a range that may be empty": (
        lambda: of_extent([node("Sub", "n six", "k")], "Range : none k0 step : y"),
        ROWS,
    ),
    "a number that a comparison adds": (
        lambda: of_extent(
            [
                node("Less", "n six", "l"),
                node("Cast", "l", "c", to=I64),
                node("Add", "c one", "a"),
                node("Concat", "a one", "k", axis=0),
            ],
            "Tile : x k : y",
        ),
        ROWS,
    ),
    "a length that a comparison chooses": (
        lambda: of_extent([node("Less", "n six", "l"), node("Where", "l one n", "k")]),
        ROWS,
    ),
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


@pytest.mark.parametrize("name", ["0", "5", "2*3"])
def test_an_axis_may_be_called_a_number(name: str) -> None:
    compiled = satura.compile(make_model([node("Exp", "x")], {"x": (name, 2)}), threads=1)
    assert compiled.inputs["x"].symbols == {name}
    assert [np.shape(compiled(random_input(rows, 2))) for rows in (3, 7)] == [(3, 2), (7, 2)]


def test_a_shape_that_depends_on_data_names_node_and_input() -> None:
    model = make_model(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="re")],
        {"x": (4,), "s": Typed((2,))},
    )
    message = (
        r"node 're' \(Reshape\): input 1 \('s'\).* compile such a model for the values of each"
    )
    with pytest.raises(UnsupportedError, match=message) as caught:
        load(model)
    assert "in parts" not in str(caught.value)


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


def test_extents_of_slices_are_not_negative_for_arithmetic(tmp_path: Path) -> None:
    """Half of the positions of a table that is cut around its middle, as by relative positions."""
    nodes = [
        node("Shape", "x", "n", start=1, end=2), node("Sub", "middle n", "first"),
        node("Add", "middle n", "more"), node("Sub", "more one", "last"),
        node("Slice", "table first last axis", "part"), node("MatMul", "x part", "z"),
        node("Shape", "z", "k", start=2, end=3), node("Div", "k two", "half"),
        node("Add", "half one", "end"), node("Slice", "z zero end two"),
    ]  # fmt: skip
    table = np.random.default_rng(0).standard_normal((1, 4, 1999)).astype(np.float32)
    numbers = {"middle": [1000], "one": [1], "two": [2], "zero": [0], "axis": [2]}
    constants = {"table": table, **{name: np.array(value) for name, value in numbers.items()}}
    model = make_model(nodes, {"x": ["b", "n", 4]}, constants)
    satura.save(satura.optimize(model), tmp_path / "optimized.onnx")
    satura.save(satura.load(model), tmp_path / "loaded.onnx")
    compiled = satura.compile(model, threads=1)
    saved = onnx.load(tmp_path / "optimized.onnx")
    for n in (1, 2, 5, 40):
        given = {"x": random_input(2, n, 4)}
        (wanted,) = run(model, given)
        assert_close(compiled.run(given)["y"], wanted, 1e-5)
        assert_close(run(saved, given)[0], wanted, 1e-5)
        for name in ("optimized", "loaded"):
            assert_close(run(onnx.load(tmp_path / f"{name}.onnx"), given)[0], wanted, 1e-5)


FIXED: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "a kernel_shape": (
        "(float[1,2,7,b] x, float[4,2,b,2] w) => (float[1,4,d,e] y)"
        " { y = Conv<kernel_shape=[5,2]>(x, w) }",
        {"x": (1, 2, 7, 5), "w": (4, 2, 5, 2)},
    ),
    "the number of channels": (
        "(float[1,a,4,a] x, float[10,a,2,a] w) => (float[1,b,d,e] y)"
        " { y = ConvTranspose<group=2>(x, w) }",
        {"x": (1, 10, 4, 10), "w": (10, 10, 2, 10)},
    ),
    "channels per group": (
        "(float[1,10,4,9] x, float[4,a,2,a] w) => (float[1,4,d,e] y) { y = Conv<group=2>(x, w) }",
        {"x": (1, 10, 4, 9), "w": (4, 5, 2, 5)},
    ),
    "an extent of another input": (
        "(float[a,2] x, float[17,2] w) => (float[3,17,2] y) { i = Constant<value_int=2>()"
        " s = SplitToSequence<axis=0>(x, i) t = ConcatFromSequence<axis=0>(s)"
        " q = SequenceConstruct(t, x, w) y = ConcatFromSequence<axis=0, new_axis=1>(q) }",
        {"x": (17, 2), "w": (17, 2)},
    ),
}


@pytest.mark.parametrize("what", FIXED)
def test_a_size_that_the_model_fixes_needs_no_name(what: str) -> None:
    text, shapes = FIXED[what]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    given = {name: random_input(*shape) for name, shape in shapes.items()}
    assert_close(interpret(load(model), given)["y"], run(model, given)[0], 1e-5)
