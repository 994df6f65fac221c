"""ONNX in: forms of ops over the opsets, lowering by the letter, files, functions, host."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

import satura
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.onnx.load import load
from satura.rewrite.program.host_call import HostFallbackWarning
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from tests.onnx_models import agrees_with_onnxruntime, floats, make_model, node, random_input
from tests.onnxruntime_reference import assert_close
from tests.tiers import deep_but

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(LIGHT.glob("*.onnx"))

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
    "layer norm of an opset before it": (
        13, node("LayerNormalization", "x s"), (2, 5), {"s": floats([1, 2, 3, 4, 5])},
    ),
    "thresholds of an opset before them": (9, node("ThresholdedRelu", alpha=0.5), (2, 5), {}),
    "clip by attribute": (10, node("Clip", min=-0.5, max=0.5), (2, 5), {}),
    "clip by input": (13, node("Clip", "x - hi"), (2, 5), {"hi": np.float32(0.2)}),
    "pad by attribute": (10, node("Pad", pads=[0, 1, 2, 0], value=2.5), (2, 3), {}),
    "pad by input": (13, node("Pad", "x p v"), (2, 3), {"p": [1, 0, -1, 2], "v": np.float32(7)}),
    "pad cuts all": (13, node("Pad", "x p"), (2, 4), {"p": [3, -6, -5, 8]}),
    "pad cuts all behind": (13, node("Pad", "x p"), (2, 4), {"p": [-3, 8, 2, -6]}),
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
    "hardmax flattens": (11, node("Hardmax", axis=1), (2, 3, 4), {}),
    "hardmax along an axis": (13, node("Hardmax", axis=1), (2, 3, 4), {}),
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
    "transposed conv of many phases": (
        11, node("ConvTranspose", "x w b", strides=[5, 4], pads=[1, 2, 0, 1]), (1, 2, 3, 2),
        {"w": random_input(2, 3, 6, 3, seed=1), "b": random_input(3, seed=2)},
    ),
    "transposed conv that is cut": (
        11, node("ConvTranspose", "x w", strides=[3, 2], dilations=[2, 3], pads=[4, 2, 1, 3]),
        (1, 2, 4, 5), {"w": random_input(2, 1, 3, 2, seed=1)},
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
    "long cumulative sum": (14, node("CumSum", "x a"), (3, 300), {"a": 1}),
    "long cumulative sum from the end": (
        14, node("CumSum", "x a", exclusive=1, reverse=1), (37, 2), {"a": 0},
    ),
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


@pytest.mark.parametrize("path", deep_but(MODELS[::3], MODELS), ids=lambda path: path.stem)
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
    assert_close(result, np.asarray(np.matmul(x, w)), 1e-5)


def test_an_initializer_that_is_also_an_input_is_a_constant() -> None:
    model = make_model([node("Add", "x w")], {"x": (3,), "w": (3,)}, {"w": random_input(3)})
    program = load(model)
    assert [program.nodes[index].input_name for index in program.inputs] == ["x"]
    arguments = {"x": random_input(3), "w": random_input(3)}
    reason = r"'w'.* has a default .* as in inputs=\['w'\]"
    with pytest.raises(CallError, match=reason):
        interpret(program, arguments)
    with pytest.raises(CallError, match=reason):
        satura.compile(model, threads=1).run(arguments)


def test_an_input_of_another_name_is_told_from_an_initializer() -> None:
    model = make_model([node("Add", "x v")], {"x": (3,), "v": (3,)})
    compiled, x = satura.compile(model, threads=1), random_input(3)
    with pytest.raises(CallError, match=r"no input 'z'; .*\['x', 'v'\]; did you mean 'v'\?$"):
        compiled(x=x, z=x)
    with pytest.raises(CallError, match=r"inputs are \['x', 'v'\]; .* are missing$"):
        compiled(z=x)


def test_a_light_model_by_name_is_told_where_it_is() -> None:
    hint = r"cannot read 'light_squeezenet': .*satura\.light\.light\('light_squeezenet'\)$"
    with pytest.raises(ModelError, match=hint):
        satura.compile("light_squeezenet")
    with pytest.raises(ModelError, match=r"cannot read 'squeezenet': No such file or directory$"):
        satura.compile("squeezenet")


@pytest.mark.parametrize("length", [3, 3000])
def test_a_value_takes_the_place_of_an_initializer(length: int) -> None:
    """Longer ones are not in the model that is parsed."""
    w = random_input(length)
    model = make_model([node("Add", "x w")], {"x": (1,), "w": (length,)}, {"w": w})
    program = load(model.SerializeToString(), {"w": 2 * w})
    assert [program.nodes[index].input_name for index in program.inputs] == ["x"]
    result = interpret(program, {"x": np.ones(1, np.float32)})["y"]
    np.testing.assert_array_equal(result, 2 * w + 1)
    with pytest.raises(CallError, match=r"input 'w' must be f32\[\d+\], not"):
        load(model, {"w": w[:2]})


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
    determinant = helper.make_node("Det", ["x"], ["y"], name="volume")
    model = make_model([determinant], {"x": ("n", 3, 3)})
    with pytest.warns(HostFallbackWarning, match=r"node 'volume' \(Det\)"):
        program = load(model)
    x = random_input(5, 3, 3)
    assert np.allclose(interpret(program, {"x": x})["y"], np.linalg.det(x))


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
