"""ONNX in: elements and shapes at which definitions differ, against onnxruntime."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

import satura
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import (
    F32,
    Typed,
    agrees_with_onnxruntime,
    floats,
    make_model,
    node,
    random_input,
)
from tests.onnxruntime_reference import assert_close, run

F64 = TensorProto.DOUBLE
FAR = floats([-0.0, 0.0, 1e-9, -1e-9, 5, -5, -16.5, -20, -30, -85, 19, 21, 90, 1e30, np.inf])

BACKWARD = {
    "from before the axis": (-9, -(2**40), -1),
    "from before the axis to the end": (-9, 2**40, -1),
    "from beyond the axis": (9, -(2**40), -2),
    "an empty part": (1, 3, -1),
}

POOLS: dict[str, dict[str, int | str | list[int]]] = {
    "plain": {"kernel_shape": [2, 2]},
    "with a border": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
    "column by column": {"kernel_shape": [2, 3], "storage_order": 1},
    "rounded up": {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1},
    "dilated": {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 0, 0, 1]},
    "same": {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]},
}


@pytest.mark.parametrize("op_type", ["Softplus", "Mish"])
@pytest.mark.parametrize("kind", ["interpreted", "compiled"])
def test_small_results_keep_their_digits(op_type: str, kind: str) -> None:
    model = make_model([node(op_type)], {"x": FAR.shape}, opset=22)
    run = satura.compile(model, threads=1).run if kind == "compiled" else None
    result = (run({"x": FAR}) if run else interpret(load(model), {"x": FAR}))["y"]
    wide = FAR.astype(np.float64)
    soft = np.logaddexp(0, wide)
    expected = soft if op_type == "Softplus" else wide * np.tanh(soft)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2e-5, atol=1e-38)


def test_a_vectorised_tanh_keeps_the_sign_of_zero() -> None:
    zeros = np.full(64, -0.0, np.float32)
    compiled = satura.compile(make_model([node("Tanh")], {"x": (64,)}), threads=1)
    assert np.signbit(compiled.run({"x": zeros})["y"]).all()


@pytest.mark.parametrize("part", BACKWARD)
def test_backward_slices_are_clamped_as_onnx_says(part: str) -> None:
    start, end, step = BACKWARD[part]
    model = make_model(
        [node("Slice", "x s e a t")], {"x": (4, 3)},
        {"s": [start], "e": [end], "a": [0], "t": [step]},
    )  # fmt: skip
    agrees_with_onnxruntime(model, {"x": random_input(4, 3)})


@pytest.mark.parametrize("pool", POOLS)
def test_indices_of_the_largest_elements(pool: str) -> None:
    proto = node("MaxPool", "x", "y i", **POOLS[pool])
    x = np.round(random_input(2, 3, 5, 6))
    x[0, 0] = -np.inf
    program = agrees_with_onnxruntime(
        make_model([proto], {"x": x.shape}, outputs=("y", "i"), opset=12), {"x": x}
    )
    assert not any(op.op.name == "host" for op in program.nodes)


def test_compiled_indices_of_the_largest_elements() -> None:
    proto = node("MaxPool", "x", "y i", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    model = make_model([proto], {"x": ("n", 3, 5, 6)}, outputs=("y", "i"))
    x = np.round(random_input(2, 3, 5, 6))
    expected, result = interpret(load(model), {"x": x}), satura.compile(model).run({"x": x})
    assert np.array_equal(result["y"], expected["y"])
    assert np.array_equal(result["i"], expected["i"])


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_sizes_under_a_policy_of_aspect_ratios(policy: str, mode: str) -> None:
    proto = node("Resize", "x - - s", axes=[2, 3], mode=mode, keep_aspect_ratio_policy=policy)
    model = make_model([proto], {"x": (1, 2, 5, 3)}, {"s": [7, 9]}, opset=19)
    agrees_with_onnxruntime(model, {"x": random_input(1, 2, 5, 3)})


def test_a_single_position_of_half_pixels_is_the_first() -> None:
    proto = node("Resize", "x - s", mode="linear",
                 coordinate_transformation_mode="pytorch_half_pixel")  # fmt: skip
    model = make_model([proto], {"x": (1, 1, 3, 1)}, {"s": floats([1, 1, 0.6, 1.5])}, opset=19)
    agrees_with_onnxruntime(model, {"x": random_input(1, 1, 3, 1)})


def test_a_scalar_of_the_host_is_read_by_kernels() -> None:
    model = make_model([node("Det", "x", "d"), node("Mul", "d x")], {"x": (3, 3)})
    x = random_input(3, 3)
    with pytest.warns(UserWarning):
        result = satura.compile(model, threads=1).run({"x": x})["y"]
    assert_close(result, np.linalg.det(x) * x)


def test_group_normalization_of_opset_18_scales_groups() -> None:
    model = make_model(
        [node("GroupNormalization", "x s b", num_groups=2)], {"x": (2, 4, 3)},
        {"s": floats([1, 2]), "b": floats([0, 1])}, opset=18,
    )  # fmt: skip
    agrees_with_onnxruntime(model, {"x": random_input(2, 4, 3)})


NORMS: dict[str, tuple[str, list[str], dict[str, int]]] = {
    "LayerNormalization": ("x s", ["y", "mean", "inverse"], {}),
    "GroupNormalization": ("x s s", ["y"], {"num_groups": 2}),
    "RMSNormalization": ("x s", ["y"], {}),
}


@pytest.mark.parametrize("op", NORMS)
@pytest.mark.parametrize("stash", [DType.F32, DType.F64, DType.F16], ids=str)
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.F16, DType.BF16], ids=str)
def test_statistics_are_of_the_stash_type(op: str, dtype: DType, stash: DType) -> None:
    inputs, outputs, attributes = NORMS[op]
    code = ELEMENT_CODES[dtype]
    proto = node(op, inputs, " ".join(outputs), stash_type=ELEMENT_CODES[stash], **attributes)
    types = {"x": Typed([2, 4, 4], code), "s": Typed([4], code)}
    x = random_input(2, 4, 4).astype(dtype.numpy)
    arguments = {"x": x, "s": np.ones(4, dtype.numpy)}
    found = satura.interpret(make_model([proto], types, None, 23, outputs), arguments)
    wanted = [dtype.numpy] + [stash.numpy] * (len(outputs) - 1)
    assert [found[name].dtype for name in outputs] == wanted
    if "mean" in found:
        mean = x.astype(np.float64).mean(-1, keepdims=True)
        assert_close(found["mean"].astype(np.float64), mean, 0.02)


def test_statistics_of_doubles_are_those_of_onnxruntime() -> None:
    model = make_model(
        [node("LayerNormalization", "x s", "y m d")],
        {"x": Typed([2, 4], F64), "s": Typed([4], F64)}, outputs=["y", "m", "d"],
    )  # fmt: skip
    x = random_input(2, 4).astype(np.float64)
    agrees_with_onnxruntime(model, {"x": x, "s": np.arange(4.0)})


@pytest.mark.parametrize("shape", [(5,), (5, 2), (2, 5)], ids=str)
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_blocks_have_scales_of_their_own(op: str, shape: tuple[int, ...]) -> None:
    axis = shape.index(5)
    scales = [2 if dim == 5 else dim for dim in shape]
    code = F32 if op == "QuantizeLinear" else TensorProto.INT8
    proto = node(op, "x s", axis=axis, block_size=3)
    model = make_model([proto], {"x": Typed(shape, code), "s": scales}, None, 21)
    x = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(np.float32)
    s = np.arange(1, np.prod(scales) + 1).reshape(scales).astype(np.float32)
    agrees_with_onnxruntime(model, {"x": x if code == F32 else x.astype(np.int8), "s": s})


@pytest.mark.parametrize("coordinates", ["align_corners", "half_pixel"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_integers_are_rounded_with_antialias(mode: str, coordinates: str) -> None:
    proto = node(
        "Resize", "x - - n", mode=mode, antialias=1, coordinate_transformation_mode=coordinates
    )
    inputs = {"x": Typed([1, 6], TensorProto.UINT8)}
    model = make_model([proto], inputs, {"n": np.array([1, 3])}, 18)
    x = np.array([[10, 201, 33, 255, 0, 77]], np.uint8)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert np.array_equal(satura.interpret(model, {"x": x})["y"], expected)
    if (mode, coordinates) != ("linear", "half_pixel"):  # where 84.5 becomes 85 in onnxruntime
        agrees_with_onnxruntime(model, {"x": x})


@pytest.mark.parametrize(
    ("coordinates", "rounding"),
    [("half_pixel", "round_prefer_floor"), ("align_corners", "floor"), ("asymmetric", "floor")],
)
def test_the_nearest_element_is_that_of_the_reference(coordinates: str, rounding: str) -> None:
    """A scale of 1.3 is none that a float is: onnxruntime has others where places are on a border,
    as docs/ops.md says."""
    proto = node(
        "Resize", "x - s", mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    model = make_model([proto], {"x": (49,)}, {"s": floats([1.3])}, 18)
    x = np.arange(49, dtype=np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(satura.interpret(model, {"x": x})["y"], expected)
    if coordinates != "asymmetric":
        assert not np.array_equal(run(model, {"x": x})[0], expected)


@pytest.mark.parametrize("rounding", ["ceil", "floor", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("scale", [0.5, 0.75, 2.5])
def test_places_about_the_middle_are_exact(rounding: str, scale: float) -> None:
    """Where the scale is a float, so are they: none is beside the element that it is on."""
    proto = node(
        "Resize", "x - s", mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode="half_pixel_symmetric",
    )  # fmt: skip
    model = make_model([proto], {"x": (7,)}, {"s": floats([scale])}, 19)
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(satura.interpret(model, {"x": x})["y"], run(model, {"x": x})[0])


@pytest.mark.parametrize("extent", [4, "n"])
@pytest.mark.parametrize("part", [(0.1, 0.8), (0.3, 0.9)])
def test_the_nearest_element_of_a_part_is_that_of_the_reference(
    part: tuple[float, float], extent: int | str
) -> None:
    """Of a part that floats begin and end, places are on a border as f32 has them."""
    proto = node(
        "Resize", "x roi - s", mode="nearest", coordinate_transformation_mode="tf_crop_and_resize"
    )
    model = make_model([proto], {"x": (extent,)}, {"roi": floats([*part]), "s": [8]}, 18)
    for size in (4,) if extent == 4 else (2, 4, 5):
        x = np.arange(size, dtype=np.float32)
        (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_array_equal(satura.interpret(model, {"x": x})["y"], expected)
        np.testing.assert_array_equal(run(model, {"x": x})[0], expected)


@pytest.mark.parametrize("exclusive", [0, 1])
def test_a_sum_of_one_element_is_this(exclusive: int) -> None:
    model = make_model([node("CumSum", "x a", exclusive=exclusive)], {"x": (2, 1)}, {"a": 1}, 14)
    x = floats([-0.0, 2]).reshape(2, 1)
    (expected,) = run(model, {"x": x})
    for found in (satura.interpret(model, {"x": x})["y"], *run(to_model(load(model)), {"x": x})):
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32], ids=lambda x: x.__name__)
def test_integers_of_cubic_filters_keep_within_their_type(dtype: type[np.generic]) -> None:
    """As the reference has them; onnxruntime takes int8 for uint8."""
    most = np.iinfo(dtype).max if dtype != np.int32 else 1000  # type: ignore[type-var]
    proto = node("Resize", "x - - n", mode="cubic", antialias=1)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = make_model([proto], {"x": Typed([1, 8], code)}, {"n": np.array([1, 5])}, 18)
    x = np.array([[0, most, most, 0, most, most, most, 0]], dtype)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert np.array_equal(satura.interpret(model, {"x": x})["y"], expected)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("alpha", [1.0, 0.0, 0.5])
def test_gemm_does_not_read_what_it_takes_no_times(alpha: float, bad: float) -> None:
    """C times a beta of 0; A·B times an alpha of 0 is a product as any other."""
    types = {"a": [2, 1], "b": [1, 2], "c": [2, 2]}
    model, whole = (
        make_model([node("Gemm", "a b c", alpha=alpha, beta=beta)], types) for beta in (0.0, 1.0)
    )
    arguments = {"a": floats([1, 2]).reshape(2, 1), "b": floats([3, 4]).reshape(1, 2)}
    c = np.full((2, 2), bad, np.float32)
    agrees_with_onnxruntime(model, {**arguments, "c": c})
    wrong = {**arguments, "b": floats([bad, 1]).reshape(1, 2), "c": np.ones((2, 2), np.float32)}
    (expected,) = ReferenceEvaluator(whole).run(None, wrong)
    np.testing.assert_array_equal(satura.interpret(whole, wrong)["y"], expected)


def test_scatter_is_scatter_elements() -> None:
    model = make_model(
        [node("Scatter", "x i u", axis=1)], {"x": (3, 3)},
        {"i": [[1, -1], [0, 2]], "u": floats([1, 2, 3, 4]).reshape(2, 2)}, opset=9,
    )  # fmt: skip
    agrees_with_onnxruntime(model, {"x": random_input(3, 3)})


# Per row: the opset and the node.
OLD: dict[str, tuple[int, NodeProto]] = {
    "reshape by attribute": (1, node("Reshape", shape=[3, -1])),
    "sum with an axis": (6, node("Add", "x b", axis=0, broadcast=1)),
    "sum without an axis": (6, node("Sub", "x b")),
    "product along an axis": (6, node("Mul", "x row", axis=0, broadcast=1)),
    "dropout": (6, node("Dropout", is_test=1)),
    "concat": (3, node("Concat", "x b", axis=0)),
}


@pytest.mark.parametrize("form", OLD)
def test_old_opsets_are_converted(form: str) -> None:
    opset, proto = OLD[form]
    x, b, row = random_input(2, 6), random_input(2, 6, seed=1), random_input(2, seed=2)
    model = make_model([proto], {"x": (2, 6)}, {"b": b, "row": row}, opset)
    expected = {
        "Reshape": x.reshape(3, 4), "Add": x + b, "Sub": x - b, "Mul": x * row[:, None],
        "Dropout": x, "Concat": np.concatenate([x, b]),
    }[proto.op_type]  # fmt: skip
    assert np.array_equal(interpret(load(model), {"x": x})["y"], expected)


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("iz,!k->q", r"has '!k', but its labels are letters"),
        ("ij,jk->iq", "has 'q' in its result alone"),
        ("i1,1k->ik", "has 'i1', but"),
        ("i.,jk->ik", "has 'i.', but"),
        ("ij,jk->i....k", "has 'i....k', but"),
        ("ij,jk->ik->i", "has 'ik->i', but"),
    ],
)
def test_equations_that_say_nothing_are_named(equation: str, reason: str) -> None:
    model = make_model([node("Einsum", "x x", equation=equation)], {"x": [3, 3]})
    with pytest.raises(ModelError, match=rf"\(Einsum\) .*{re.escape(equation)}.*{reason}"):
        satura.load(model)


NUMBERS: dict[str, tuple[NodeProto, dict[str, object], str]] = {
    "too long a part": (
        node(
            "Resize", "x roi s", axes=[2, 3], mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        {"roi": np.zeros(8, np.float32), "s": np.full(2, 2, np.float32)},
        "its roi has 8 numbers, but needs a start and an end for each of 2 axes: 4",
    ),
    "more places than there can be": (
        node("TopK", "x k", "y i"), {"k": [2**62]}, f"it takes {2**62} elements of axis 3: no axis",
    ),
    "one stride of two": (
        node("Col2Im", "columns image block", strides=[1]), {"image": [3, 3], "block": [2, 2]},
        r"its strides \[1\] needs 2 numbers for \[3, 3\]",
    ),
    "a block of one axis": (
        node("Col2Im", "columns image block"), {"image": [3, 3], "block": [2]},
        r"its block_shape \[2\] needs 2 numbers for \[3, 3\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_too_many_or_too_few_are_named(name: str) -> None:
    proto, constants, reason = NUMBERS[name]
    inputs = {"x": (1, 2, 6, "w"), "columns": (1, 8, 4)}
    given = {each: shape for each, shape in inputs.items() if each in proto.input}
    with pytest.raises(ModelError, match=rf"\({proto.op_type}\) .*: {reason}[^;]*$"):
        satura.load(make_model([proto], given, constants, 18))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", range(3))
def test_ranges_without_end_are_named(position: int, bad: float) -> None:
    numbers = {name: np.float32(1) for name in ("start", "limit", "delta")}
    wrong = [*numbers][position]
    numbers[wrong] = np.float32(bad)
    reason = rf"\(Range\) .*input {position} \('{wrong}'\) is {bad}"
    proto = node("Range", " ".join(numbers))
    with pytest.raises(ModelError, match=reason):
        satura.load(make_model([proto], {}, numbers))
    given = make_model([proto], {name: [] for name in numbers})
    with pytest.raises(CallError, match=reason):
        satura.compile(given, threads=1).run(numbers)


@pytest.mark.parametrize("op", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min"])
@pytest.mark.parametrize("swapped", [False, True])
def test_nan_decides_a_shape_as_it_compares(op: str, swapped: bool) -> None:
    """It is neither less nor more than a number, and the largest and the least of both."""
    names = "one nan" if swapped else "nan one"
    isnan = [node("IsNaN", "chosen", "holds")] if op in ("Max", "Min") else []
    first = node(op, names, "chosen" if isnan else "holds")
    model = make_model(
        [first, *isnan, node("Where", "holds three two", "k"), node("Tile", "x k", "y")],
        {"x": (2, 4)},
        {"nan": np.float32(np.nan), "one": np.float32(1), "three": [3, 1], "two": [2, 1]},
    )
    agrees_with_onnxruntime(model, {"x": random_input(2, 4)})
