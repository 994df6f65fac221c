"""ONNX in: elements and shapes at which definitions differ, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto

import satura
from satura.rewrite.onnx.load import load
from satura.rewrite.program.interpreter import interpret
from tests.onnx_models import agrees_with_onnxruntime, floats, make_model, node, random_input
from tests.onnxruntime_reference import assert_close

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
