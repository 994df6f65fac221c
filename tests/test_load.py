"""ONNX in: forms of ops over the opsets, symbolic shapes, lowering by the letter, functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.interpreter import interpret
from satura.rewrite.ir import Program
from satura.rewrite.onnx.host import HostFallbackWarning
from satura.rewrite.onnx.load import load
from satura.rewrite.types import Array

Shape = Sequence[int | str | None]
F32 = TensorProto.FLOAT
I64 = TensorProto.INT64
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@dataclass(frozen=True)
class Integers:
    """The shape of an i64 input."""

    shape: Shape


def make_model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Shape | Integers],
    constants: Mapping[str, object] | None = None,
    opset: int = 17,
    outputs: Sequence[str] = ("y",),
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    """A model of `nodes`; an input is its shape, with elements of f32 unless it says `Integers`."""
    infos = []
    for name, described in inputs.items():
        code, shape = (
            (I64, described.shape) if isinstance(described, Integers) else (F32, described)
        )
        infos.append(helper.make_tensor_value_info(name, code, shape))
    arrays = {name: np.asarray(value) for name, value in (constants or {}).items()}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        infos,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(f.domain, 1) for f in functions]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    model.ir_version = 8
    return model


def floats(values: Sequence[float]) -> Array:
    return np.array(values, np.float32)


def random_input(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def assert_close(result: Array, expected: Array) -> None:
    wide, right = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(wide, right, rtol=1e-5, atol=1e-5)


def agrees_with_onnxruntime(model: ModelProto, arguments: Mapping[str, Array]) -> Program:
    """Compare every output with onnxruntime's; the declared output types are inferred first."""
    inferred = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(
        inferred.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    program = load(model)
    results = interpret(program, arguments)
    for output, expected in zip(session.get_outputs(), session.run(None, arguments), strict=True):
        result = results[output.name]
        assert result.dtype == expected.dtype and result.shape == expected.shape
        assert_close(result, expected)
    return program


def node(op_type: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> NodeProto:
    """A node whose names are separated by blanks; '-' is a left-out input."""
    names = ["" if name == "-" else name for name in inputs.split()]
    result = helper.make_node(op_type, names, outputs.split())
    result.attribute.extend(helper.make_attribute(k, value) for k, value in attributes.items())
    return result


# Per row: name, opset, node, shape of x, constants.
FORMS: dict[str, tuple[int, NodeProto, tuple[int, ...], dict[str, object]]] = {
    "squeeze by attribute": (11, node("Squeeze", axes=[0, -1]), (1, 3, 1), {}),
    "squeeze by input": (13, node("Squeeze", "x a"), (1, 3, 1), {"a": [0, 2]}),
    "squeeze all": (13, node("Squeeze"), (1, 3, 1), {}),
    "unsqueeze by attribute": (11, node("Unsqueeze", axes=[0, 3]), (2, 3), {}),
    "unsqueeze by input": (13, node("Unsqueeze", "x a"), (2, 3), {"a": [-1, 0]}),
    "slice by attribute": (9, node("Slice", axes=[1], starts=[-3], ends=[9999]), (2, 5), {}),
    "slice by input": (
        13, node("Slice", "x s e a t"), (4, 9),
        {"s": [8, 1], "e": [-100, 3], "a": [1, 0], "t": [-2, 1]},
    ),
    "clip by attribute": (10, node("Clip", min=-0.5, max=0.5), (2, 5), {}),
    "clip by input": (13, node("Clip", "x - hi"), (2, 5), {"hi": np.float32(0.2)}),
    "pad by attribute": (10, node("Pad", pads=[0, 1, 2, 0], value=2.5), (2, 3), {}),
    "pad by input": (13, node("Pad", "x p v"), (2, 3), {"p": [1, 0, -1, 2], "v": np.float32(7)}),
    "pad reflect": (13, node("Pad", "x p", mode="reflect"), (4, 3), {"p": [2, 1, 1, 2]}),
    "pad edge": (13, node("Pad", "x p", mode="edge"), (4, 3), {"p": [2, 0, 0, 3]}),
    "pad wrap": (19, node("Pad", "x p", mode="wrap"), (4, 3), {"p": [2, 1, 1, 2]}),
    "pad axes": (18, node("Pad", "x p - a"), (4, 3), {"p": [2, 1], "a": [-1]}),
    "reduce by attribute": (11, node("ReduceSum", axes=[-1], keepdims=0), (2, 3), {}),
    "reduce by input": (13, node("ReduceSum", "x a"), (2, 3), {"a": [1]}),
    "reduce nothing": (
        13, node("ReduceSum", "x a", noop_with_empty_axes=1), (2, 3), {"a": np.zeros(0, np.int64)},
    ),
    "reduce max by input": (18, node("ReduceMax", "x a", keepdims=0), (2, 3, 4), {"a": [0, 2]}),
    "split equally": (11, node("Split", "x", "y z", axis=1), (2, 6), {}),
    "split by attribute": (11, node("Split", "x", "y z", axis=1, split=[1, 5]), (2, 6), {}),
    "split by input": (13, node("Split", "x s", "y z", axis=-1), (2, 6), {"s": [2, 4]}),
    "split with a rest": (18, node("Split", "x", "y z w", num_outputs=3), (7, 2), {}),
    "softmax flattens": (11, node("Softmax", axis=1), (2, 3, 4), {}),
    "softmax along an axis": (13, node("Softmax", axis=1), (2, 3, 4), {}),
    "log softmax flattens": (7, node("LogSoftmax"), (2, 3, 4), {}),
    "dropout with a mask": (7, node("Dropout", ratio=0.3), (2, 3), {}),
    "upsample by attribute": (7, node("Upsample", scales=[1.0, 1.0, 2.0, 3.0]), (1, 2, 2, 3), {}),
    "upsample by input": (
        9, node("Upsample", "x s", mode="linear"), (1, 2, 3, 3), {"s": floats([1, 1, 2, 2])},
    ),
    "resize 10": (10, node("Resize", "x s"), (1, 1, 4, 4), {"s": floats([1, 1, 2, 1.5])}),
    "resize cubic": (
        13, node("Resize", "x - s", mode="cubic"), (1, 1, 4, 5),
        {"s": floats([1, 1, 2, 0.6])},
    ),
    "resize to sizes": (
        13,
        node("Resize", "x - - n", mode="linear", coordinate_transformation_mode="align_corners"),
        (1, 2, 4, 5), {"n": [1, 2, 7, 3]},
    ),
    "batch norm": (
        9, node("BatchNormalization", "x s b m v"), (2, 3, 4),
        {k: floats([0.5, 1, 2]) for k in "sbmv"},
    ),
    "ceil mode": (
        12, node("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), (1, 1, 5, 3), {},
    ),
    "average with padding": (
        11,
        node("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], ceil_mode=1),
        (1, 2, 6, 5), {},
    ),
    "average counts padding": (
        11, node("AveragePool", kernel_shape=[3], pads=[1, 1], count_include_pad=1), (1, 2, 6), {},
    ),
    "same upper": (
        11, node("MaxPool", kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER"), (1, 2, 6), {},
    ),
    "lrn": (13, node("LRN", size=5, alpha=0.1, beta=0.5, bias=2.0), (1, 6, 2, 2), {}),
    "transposed conv": (
        11,
        node("ConvTranspose", "x w", strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0],
             group=2),
        (1, 4, 3, 3), {"w": random_input(4, 3, 3, 2, seed=1)},
    ),
    "dilated transposed conv": (
        11, node("ConvTranspose", "x w", dilations=[2], auto_pad="SAME_LOWER", strides=[2]),
        (1, 2, 4), {"w": random_input(2, 3, 3, seed=1)},
    ),
    "grouped conv": (
        11, node("Conv", "x w b", group=2, pads=[1, 0, 1, 2], strides=[2, 1], dilations=[1, 2]),
        (2, 4, 6, 7), {"w": random_input(6, 2, 3, 2, seed=1), "b": random_input(6, seed=2)},
    ),
    "conv same": (
        11, node("Conv", "x w", auto_pad="SAME_LOWER", strides=[2]), (1, 2, 6),
        {"w": random_input(3, 2, 4, seed=1)},
    ),
    "gemm": (
        11, node("Gemm", "x w c", transA=1, transB=1, alpha=0.5, beta=2.0), (3, 2),
        {"w": random_input(4, 3, seed=1), "c": random_input(1, 4, seed=2)},
    ),
    "matmul by a matrix": (13, node("MatMul", "x w"), (2, 5, 3), {"w": random_input(3, 4)}),
    "matmul of stacks": (13, node("MatMul", "x w"), (2, 1, 5, 3), {"w": random_input(4, 3, 2)}),
    "matmul by a vector": (13, node("MatMul", "x w"), (2, 5, 3), {"w": random_input(3)}),
    "vector by a stack": (13, node("MatMul", "x w"), (3,), {"w": random_input(2, 3, 2)}),
    "einsum": (
        12, node("Einsum", "x w", equation="bhid,bhjd->bhij"), (2, 3, 4, 5),
        {"w": random_input(2, 3, 6, 5)},
    ),
    "reshape": (13, node("Reshape", "x s"), (2, 3, 4), {"s": [0, -1, 2]}),
    "reshape with zero": (14, node("Reshape", "x s", allowzero=1), (0, 3), {"s": [3, 0]}),
    "tile": (13, node("Tile", "x r"), (2, 3), {"r": [2, 3]}),
    "quantize": (
        13, node("QuantizeLinear", "x s z", axis=1), (2, 3),
        {"s": floats([0.1, 0.01, 1]), "z": np.array([0, 5, -3], np.int8)},
    ),
    "one hot": (
        11, node("OneHot", "i d v", axis=0), (1,),
        {"i": [1, -1, 7], "d": np.int64(3), "v": floats([0.5, 2])},
    ),
    "trilu": (14, node("Trilu", "x k", upper=0), (3, 4), {"k": np.int64(1)}),
    "cumulative sum": (14, node("CumSum", "x a", exclusive=1, reverse=1), (3, 4), {"a": 1}),
    "gather elements": (
        13, node("GatherElements", "x i", axis=1), (2, 4), {"i": [[0, -1], [3, 1]]},
    ),
    "gather nd": (13, node("GatherND", "x i", batch_dims=1), (2, 3, 4), {"i": [[1], [-1]]}),
    "power of mixed types": (13, node("Pow", "x e"), (2, 3), {"e": np.int64(2)}),
    "modulo": (13, node("Mod", "x e", fmod=1), (2, 3), {"e": np.float32(0.3)}),
    "layer norm": (
        17, node("LayerNormalization", "x s b"), (2, 3, 4),
        {"s": random_input(4), "b": random_input(4, seed=1)},
    ),
    "gelu": (20, node("Gelu", approximate="tanh"), (2, 3), {}),
    "mean of three": (
        13, node("Mean", "x a b"), (2, 3), {"a": random_input(3), "b": random_input(2, 1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_form_agrees_with_onnxruntime(form: str) -> None:
    opset, proto, shape, constants = FORMS[form]
    model = make_model([proto], {"x": shape}, constants, opset, outputs=proto.output)
    agrees_with_onnxruntime(model, {"x": random_input(*shape)})


# Shapes that are computed


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


def test_a_shape_that_depends_on_data_names_node_and_input() -> None:
    model = make_model(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="re")],
        {"x": (4,), "s": Integers((2,))},
    )
    with pytest.raises(UnsupportedError, match=r"node 're' \(Reshape\): input 1 \('s'\)"):
        load(model)


# Lowering by the letter


def ops_of(program: Program) -> list[str]:
    return [str(node) for node in program.nodes if node.op.name not in ("input", "constant")]


def test_conv_is_channels_last_between_transposes() -> None:
    w, b = random_input(4, 3, 3, 3), random_input(4)
    model = make_model(
        [node("Conv", "x w b", pads=[1, 1, 1, 1])], {"x": (1, 3, 5, 5)}, {"w": w, "b": b}
    )
    names = [text.split("(")[0] for text in ops_of(load(model))]
    assert sorted(names) == [
        "binary", "broadcast", "conv", "reshape", "transpose", "transpose", "transpose",
    ]  # fmt: skip


def test_max_pool_needs_no_transpose_and_is_filled_with_minus_infinity() -> None:
    model = make_model(
        [node("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])], {"x": (1, 3, 5, 5)}
    )
    assert ops_of(load(model)) == ["pool(%0) max [1, 1, 3(1:1), 3(1:1)] fill f32(-inf)"]


def test_nothing_is_folded_or_cancelled() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=[1, 0]),
        node("Transpose", "a", "b", perm=[1, 0]),
        node("Add", "c c", "d"),
        node("Add", "b d", "y"),
    ]
    program = load(make_model(nodes, {"x": (2, 3)}, {"c": random_input(2, 3)}))
    names = [text.split("(")[0] for text in ops_of(program)]
    assert names.count("transpose") == 2 and names.count("binary") == 2


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_light_models_load(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = load(path)
    program.verify()
    (name, output) = program.outputs[0]
    declared = onnx.load(path).graph.output[0]
    dims = [dim.dim_value for dim in declared.type.tensor_type.shape.dim]
    assert name == declared.name and list(program.nodes[output].type.shape) == dims


def test_path_bytes_and_proto_give_the_same_program(tmp_path: Path) -> None:
    model = make_model([node("Relu")], {"x": ("n", 3)})
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    texts = {str(load(form)) for form in (model, path, str(path), path.read_bytes())}
    assert len(texts) == 1


def test_external_data_inside_the_folder_is_read(tmp_path: Path) -> None:
    w = random_input(64, 64)
    model = make_model([node("MatMul", "x w")], {"x": (2, 64)}, {"w": w})
    onnx.save(
        model, tmp_path / "model.onnx", save_as_external_data=True, location="model.data",
        size_threshold=0,
    )  # fmt: skip
    x = random_input(2, 64, seed=3)
    result = interpret(load(tmp_path / "model.onnx"), {"x": x})["y"]
    assert_close(result, np.asarray(np.matmul(x, w)))


def test_an_initializer_that_is_also_an_input_is_a_constant() -> None:
    model = make_model([node("Add", "x w")], {"x": (3,), "w": (3,)}, {"w": random_input(3)})
    program = load(model)
    assert [program.nodes[index].input_name for index in program.inputs] == ["x"]


def test_nodes_may_stand_in_any_order() -> None:
    model = make_model([node("Relu", "t", "y"), node("Neg", "x", "t")], {"x": (3,)})
    result = interpret(load(model), {"x": floats([-1, 0, 2])})["y"]
    assert result.tolist() == [1, 0, 0]


# Functions, branches, host


def test_functions_are_inlined_with_their_attributes() -> None:
    inner = helper.make_function(
        "own", "Scaled", ["a"], ["b"],
        [node("Constant", "", "k"), node("Mul", "a k", "b")],
        [helper.make_opsetid("", 17)], ["factor"],
    )  # fmt: skip
    reference = inner.node[0].attribute.add()
    reference.name, reference.ref_attr_name = "value_float", "factor"
    reference.type = onnx.AttributeProto.FLOAT
    outer = helper.make_function(
        "own", "Twice", ["a"], ["c"],
        [helper.make_node("Scaled", ["a"], ["b"], domain="own", factor=3.0),
         helper.make_node("Scaled", ["b"], ["c"], domain="own", factor=0.5)],
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )  # fmt: skip
    model = make_model(
        [helper.make_node("Twice", ["x"], ["y"], domain="own")],
        {"x": (2,)},
        functions=[inner, outer],
    )
    assert interpret(load(model), {"x": floats([1, 2])})["y"].tolist() == [1.5, 3.0]


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_condition_selects_a_branch(condition: bool) -> None:
    def branch(op_type: str) -> onnx.GraphProto:
        output = onnx.ValueInfoProto(name="r")
        return helper.make_graph([node(op_type, "x", "r")], op_type, [], [output])

    chosen = node("If", "c", "y", then_branch=branch("Neg"), else_branch=branch("Abs"))
    model = make_model([chosen], {"x": (2,)}, {"c": np.array(condition)})
    result = interpret(load(model), {"x": floats([-1, 2])})["y"]
    assert result.tolist() == ([1, -2] if condition else [1, 2])


def test_ops_without_a_lowering_run_on_the_host_with_a_warning() -> None:
    top = helper.make_node("TopK", ["x", "k"], ["v", "y"], name="best")
    model = make_model([top], {"x": ("n", 5)}, {"k": [2]}, outputs=["v", "y"])
    with pytest.warns(HostFallbackWarning, match=r"node 'best' \(TopK\)"):
        program = load(model)
    x = random_input(3, 5)
    results = interpret(program, {"x": x})
    assert np.array_equal(results["v"], np.sort(x, 1)[:, ::-1][:, :2])
    assert np.array_equal(np.take_along_axis(x, results["y"].astype(np.int64), 1), results["v"])


def test_random_nodes_stay_apart_and_others_merge() -> None:
    nodes = [
        node("RandomNormalLike", "x", "a"),
        node("RandomNormalLike", "x", "b"),
        node("Det", "x", "c"),
        node("Det", "x", "d"),
        node("Sub", "a b", "y"),
        node("Sub", "c d", "z"),
    ]
    with pytest.warns(HostFallbackWarning):
        program = load(make_model(nodes, {"x": (3, 3)}, outputs=["y", "z"]))
    assert sum(node.op.name == "host" for node in program.nodes) == 3
    assert interpret(program, {"x": random_input(3, 3)})["y"].any()
