"""Models whose ops run on the host, with the attributes that references tend to get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from onnx import ModelProto, helper

from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import Typed, make_model, node, random_input

Value = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]


@dataclass(frozen=True)
class HostModel:
    """One node, its arguments, and what it is called in the list of tests."""

    name: str
    model: ModelProto
    arguments: dict[str, Array]


def one_node(
    op_type: str,
    arguments: Mapping[str, Array],
    outputs: str = "y",
    constants: str = "",
    opset: int = 20,
    **attributes: Value,
) -> HostModel:
    """A model of one node; arguments named in `constants` are constants."""
    fixed = {name: value for name, value in arguments.items() if name in constants.split()}
    free = {name: value for name, value in arguments.items() if name not in fixed}
    types = {
        name: Typed(value.shape, helper.np_dtype_to_tensor_dtype(value.dtype))
        for name, value in free.items()
    }
    one = node(op_type, " ".join(arguments), outputs, **attributes)
    model = make_model([one], types, fixed, opset, outputs.split())
    shown = [f"{key}={value}" for key, value in attributes.items()]
    return HostModel(" ".join([op_type, *arguments, *shown]), model, free)


def recurrent() -> Iterator[HostModel]:
    """LSTM, GRU and RNN: lengths, clip, activations, directions, peepholes."""
    steps, batch, width, hidden = 4, 3, 2, 5
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}
    for op_type, direction in product(gates, ("forward", "reverse", "bidirectional")):
        count, sides = gates[op_type], 2 if direction == "bidirectional" else 1
        operands = {
            "x": random_input(steps, batch, width),
            "w": random_input(sides, count * hidden, width, seed=1),
            "r": random_input(sides, count * hidden, hidden, seed=2),
        }
        yield _recurrent(op_type, operands, direction, hidden)
        operands["b"] = random_input(sides, 2 * count * hidden, seed=3)
        operands["lengths"] = np.array([4, 1, 2], np.int32)
        yield _recurrent(op_type, operands, direction, hidden)
        operands["h"] = random_input(sides, batch, hidden, seed=4)
        if op_type == "LSTM":
            operands["c"] = random_input(sides, batch, hidden, seed=5)
            operands["p"] = random_input(sides, 3 * hidden, seed=6)
        yield _recurrent(op_type, operands, direction, hidden)
        yield _recurrent(op_type, operands, direction, hidden, clip=0.4)
        functions = {
            "LSTM": ["HardSigmoid", "Softsign", "ScaledTanh"],
            "GRU": ["HardSigmoid", "LeakyRelu"],
            "RNN": ["Affine"],
        }[op_type]
        numbers = {"HardSigmoid": 0.3, "ScaledTanh": 0.7, "LeakyRelu": 0.1, "Affine": 0.6}
        alpha = [numbers[name] for name in functions if name in numbers]
        beta = [0.4 for name in functions if name in numbers and name != "LeakyRelu"]
        yield _recurrent(
            op_type, operands, direction, hidden, activations=functions * sides,
            activation_alpha=alpha * sides, activation_beta=beta * sides,
        )  # fmt: skip
        if op_type == "GRU":
            yield _recurrent(op_type, operands, direction, hidden, linear_before_reset=1)
        if op_type == "LSTM":
            yield _recurrent(op_type, operands, direction, hidden, input_forget=1)


def _recurrent(
    op_type: str,
    operands: Mapping[str, Array],
    direction: str,
    hidden: int,
    **attributes: Value,
) -> HostModel:
    outputs = "y yh yc" if op_type == "LSTM" else "y yh"
    settings: dict[str, Value] = {"hidden_size": hidden, "direction": direction, **attributes}
    return one_node(op_type, operands, outputs, "", 20, **settings)


def scattered() -> Iterator[HostModel]:
    """ScatterElements and ScatterND with every reduction, negative and repeated indices."""
    for reduction, dtype in product(("none", "add", "mul", "max", "min"), (np.float32, np.int64)):
        x = (random_input(4, 5) * 10).astype(dtype)
        repeated = [[0, -1, 0], [3, 3, -4]] if reduction != "none" else [[0, 1, 2], [3, -1, 1]]
        updates = (random_input(2, 3, seed=1) * 10).astype(dtype)
        for axis in (0, 1, -1):
            indices = np.array(repeated, np.int64)
            if axis == 0 and reduction == "none":
                indices = np.array([[0, 1, 2], [1, -1, 3]], np.int64)
            yield one_node(
                "ScatterElements", {"x": x, "i": indices, "u": updates}, axis=axis,
                reduction=reduction,
            )  # fmt: skip
        tuples = np.array([[1], [-1]] if reduction == "none" else [[1], [-3]], np.int64)
        rows = (random_input(2, 5, seed=2) * 10).astype(dtype)
        yield one_node("ScatterND", {"x": x, "i": tuples, "u": rows}, reduction=reduction)
        tuples = np.array([[[1, 0]], [[-1, -2]]], np.int64)
        points = (random_input(2, 1, seed=2) * 10).astype(dtype)
        yield one_node("ScatterND", {"x": x, "i": tuples, "u": points}, reduction=reduction)


def ordered() -> Iterator[HostModel]:
    """TopK with ties, either end, and any axis."""
    x = np.round(2 * random_input(3, 4, 5))
    for axis, largest, is_sorted in product((0, 1, -1), (0, 1), (1,)):
        yield one_node(
            "TopK", {"x": x, "k": np.array([3], np.int64)}, "y i", constants="k", axis=axis,
            largest=largest, sorted=is_sorted,
        )  # fmt: skip
    integers = (x * 3).astype(np.int64)
    yield one_node("TopK", {"x": integers, "k": np.array([2], np.int64)}, "y i", constants="k")
    lengths = np.array([4, 1, 3], np.int64)
    for batch, time in ((0, 1), (1, 0)):
        yield one_node(
            "ReverseSequence", {"x": random_input(3, 4, 2) if batch == 0 else random_input(4, 3, 2),
                                "lengths": lengths}, batch_axis=batch, time_axis=time,
        )  # fmt: skip


def sampled() -> Iterator[HostModel]:
    """GridSample, RoiAlign, MaxUnpool, Col2Im and Det."""
    image = random_input(2, 3, 5, 4)
    grid = random_input(2, 3, 6, 2, seed=1)
    modes = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    for mode, padding, corners in product(*modes):
        yield one_node(
            "GridSample", {"x": image, "grid": grid}, mode=mode, padding_mode=padding,
            align_corners=corners,
        )  # fmt: skip
    rois = np.array([[0, 0, 3, 4], [-1, 0.5, 2.2, 3.1], [1, 1, 1.2, 1.1]], np.float32)
    of_image = np.array([0, 1, 1], np.int64)
    for mode, coordinates, ratio in product(
        ("avg", "max"), ("half_pixel", "output_half_pixel"), (0, 2)
    ):
        yield one_node(
            "RoiAlign", {"x": image, "rois": rois, "i": of_image}, mode=mode,
            coordinate_transformation_mode=coordinates, output_height=2, output_width=3,
            sampling_ratio=ratio, spatial_scale=0.9, opset=16,
        )  # fmt: skip
    places = np.array([[[[0, 3], [9, 11]]], [[[17, 18], [21, 24]]]], np.int64).reshape(1, 2, 2, 2)
    yield one_node(
        "MaxUnpool",
        {"x": random_input(1, 2, 2, 2), "i": places},
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    yield one_node("Det", {"x": random_input(2, 3, 4, 4)})
    blocks = random_input(1, 2 * 4, 6)
    yield one_node(
        "Col2Im", {"x": blocks, "size": np.array([3, 4]), "block": np.array([2, 2])},
        constants="size block",
    )  # fmt: skip


def spectra() -> Iterator[HostModel]:
    """DFT and STFT: other lengths, axes, complex signals and windows."""
    real, parts = random_input(2, 8, 3, 1), random_input(2, 8, 3, 2)
    for axis, one_sided, inverse in ((1, 0, 0), (2, 1, 0), (1, 0, 1)):
        for x in (real, parts) if not one_sided else (real,):
            yield one_node(
                "DFT", {"x": x}, axis=axis, onesided=one_sided, inverse=inverse, opset=17
            )
    for length in (5, 11):
        arguments = {"x": real, "n": np.array(length), "axis": np.array(-3)}
        yield one_node("DFT", arguments, constants="n axis")
    signal, window = random_input(2, 30, 1), np.hanning(8).astype(np.float32)
    for one_sided in (0, 1):
        framed = {"x": signal, "step": np.array(3), "window": window, "n": np.array(8)}
        yield one_node("STFT", framed, constants="step window n", onesided=one_sided)


def host_models() -> list[HostModel]:
    """All of them."""
    families = (recurrent, scattered, ordered, sampled, spectra)
    return [model for family in families for model in family()]
