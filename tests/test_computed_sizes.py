"""Sizes computed of others: what they decide is as in the call, and has a program of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import satura
from satura.backend.plan import plans
from tests.onnx_models import F32, I64, Inputs, make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.open_rows import ROWS, _drawn, of_rows
from tests.tiers import deep_but


def test_windows_of_a_size_and_axes_computed_of_sizes() -> None:
    nodes = [node("Squeeze", "n", "q"), node("HannWindow", "q", "y")]
    compiled = satura.compile(of_rows(*nodes), threads=1)
    for rows in (4, 9, 1, 16):
        x, z = random_input(rows, 2), random_input(1)
        (expected, _) = run(of_rows(*nodes), {"x": x, "z": z})
        assert_close(compiled(x, z)[0], expected, 1e-6)
    summed = of_rows(
        node("Sub", "m m", "none"), node("Squeeze", "none", "axis"), node("CumSum", "x axis")
    )
    x, z = random_input(4, 3), random_input(1)
    assert_close(satura.compile(summed, threads=1)(x, z)[0], x.cumsum(0), 1e-6)


ROUNDED = {
    "sevenths of a size, seven times": (
        [node("Cast", "n", "f", to=F32), node("Div", "f seven", "q"), node("Mul", "q seven", "p"),
         node("Cast", "p", "k", to=I64)], (62, 16, 31),
    ),
    "a size in eight bits": (
        [node("Cast", "n", "b", to=TensorProto.UINT8), node("Cast", "b", "k", to=I64)], (300, 16),
    ),
    "a size in half precision": (
        [node("Cast", "n", "h", to=TensorProto.FLOAT16), node("Cast", "h", "k", to=I64)],
        (2049, 16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_sizes_that_types_round_decide_what_they_are_rounded_to(name: str) -> None:
    nodes, sizes = ROUNDED[name]
    constants: dict[str, object] = {"seven": np.array([7], np.float32), "zero": [0]}
    model = of_rows(*nodes, node("Slice", "x zero k zero"), **constants)
    compiled = satura.compile(model, threads=1)
    for rows in sizes:
        given = {"x": random_input(rows, 1), "z": random_input(1)}
        expected = run(model, given)[0]
        assert compiled.run(given)["y"].shape == expected.shape


@pytest.mark.deep
def test_constants_of_ever_other_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table from the root of a size on: each root has packed weights of its own."""
    monkeypatch.setattr(plans, "MOST_MORE", 0)
    nodes = [
        node("Cast", "n", "f", to=F32), node("Sqrt", "f", "q"), node("Cast", "q", "start", to=I64),
        node("Add", "start length", "end"), node("Slice", "table start end zero", "t"),
        node("MatMul", "x t"),
    ]  # fmt: skip
    constants: dict[str, object] = {"length": [64], "zero": [0], "table": random_input(100, 16)}
    model = make_model(
        [node("Shape", "x", "n", start=0, end=1), *nodes], {"x": ("n", 64)}, constants, 18
    )
    compiled = satura.compile(model, threads=1)
    taken = []
    for root in (*range(1, 17), 2, 3):
        x = random_input(root**2, 64)
        assert_close(compiled.run({"x": x})["y"], run(model, {"x": x})[0], 1e-4)
        taken.append(compiled._whole.plans.store.size)
    assert max(taken) <= 5 * taken[0] and len(compiled.cache) > 1


def test_a_part_of_weights_that_sizes_choose_is_one_class() -> None:
    """Relative positions: twice as many rows of a table as there are rows of x, around its
    middle."""
    nodes = [
        node("Sub", "half n", "start"), node("Add", "half n", "end"),
        node("Slice", "table start end zero", "t"), node("Transpose", "t", "u", perm=[1, 0]),
        node("MatMul", "x u"),
    ]  # fmt: skip
    constants: dict[str, object] = {"half": [100], "zero": [0], "table": random_input(200, 16)}
    model = make_model(
        [node("Shape", "x", "n", start=0, end=1), *nodes], {"x": ("n", 16)}, constants, 18
    )
    compiled = satura.compile(model, threads=1)
    for rows in (36, 33, 64, 100, 47):
        x = random_input(rows, 16)
        (expected,) = run(model, {"x": x})
        assert_close(compiled.run({"x": x})["y"], expected, 1e-4)
    assert len(compiled.cache) <= 2


@pytest.mark.parametrize("scale", [0.7, 1.3, 1.5])  # of 1.3 no fraction says the same everywhere
def test_an_image_is_resized_to_as_many_as_f32_says(scale: float) -> None:
    """Ten by 0.7 is seven, though 0.7 in f32 is less."""
    scales = {"scales": np.array([1, scale], np.float32)}
    model = make_model([node("Resize", "x - scales", mode="linear")], {"x": ROWS}, scales, 18)
    compiled = satura.compile(model, threads=1)
    for columns in (10, 90, 7):  # where there are as many onnxruntime copies them
        x = random_input(2, columns)
        assert_close(compiled.run({"x": x})["y"], run(model, {"x": x})[0], 1e-4)
    fixed = satura.load(make_model([node("Resize", "x - scales")], {"x": (2, 10)}, scales, 18))
    assert dict(fixed.outputs) and fixed.nodes[fixed.output_nodes[0]].type.shape == (
        2, int(np.float32(10) * np.float32(scale)),
    )  # fmt: skip


COMPUTED: dict[str, tuple[ModelProto, int]] = {
    name: (of_rows(*nodes, **constants), most)
    for name, most, nodes, constants in (
        (
            "between two limits", 2,
            [node("Clip", "m low high", "k"), node("TopK", "x k", "y i", axis=1)],
            {"low": [1], "high": [6]},
        ),
        (
            "the larger of two", 3,
            [
                node("Max", "m n", "k"), node("Sub", "k m", "p"),
                node("Concat", "zero zero zero p", "pads", axis=0), node("Pad", "x pads"),
            ],
            {"zero": [0]},
        ),
        (
            "the nearest even half", 1,
            [
                node("Cast", "m", "f", to=TensorProto.FLOAT), node("Mul", "f half", "h"),
                node("Round", "h", "g"), node("Cast", "g", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"half": np.float32(0.5), "zero": [0], "one": [1]},
        ),
        (
            "what is left of sevens", 3,
            [node("Mod", "m seven", "k", fmod=1), node("Slice", "x zero k one")],
            {"seven": [7], "zero": [0], "one": [1]},
        ),
        (
            "a negative quotient", 5,  # -2 of -8 to -11, which floor would round down
            [
                node("Sub", "m twelve", "d"), node("Div", "d four", "k"),
                node("Slice", "x zero k one"),
            ],
            {"twelve": [12], "four": [4], "zero": [0], "one": [1]},
        ),
        (
            "a border that cuts", 9,
            [
                node("Sub", "n three", "d"), node("Concat", "zero d zero m", "pads", axis=0),
                node("Pad", "x pads", mode="wrap"),
            ],
            {"zero": [0], "three": [3]},
        ),
        (
            "products that floats round", 9,
            [
                node("Cast", "m", "f", to=TensorProto.FLOAT), node("Mul", "f f", "g"),
                node("Mul", "g large", "h"), node("Add", "h third", "i"),
                node("Sub", "i h", "j"), node("Cast", "j", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"large": np.array([2**20], np.float32), "third": np.array([3], np.float32),
             "zero": [0], "one": [1]},
        ),
        (
            "as many as there are", 9,  # k is a number, and at most that
            [
                node("Concat", "zero zero zero n", "pads", axis=0), node("Pad", "x pads", "wide"),
                node("Shape", "wide", "k", start=1), node("TopK", "wide k", "y i", axis=1),
            ],
            {"zero": [0]},
        ),
        (
            "32 bits that wrap", 9,
            [
                node("Cast", "m", "f", to=TensorProto.INT32), node("Mul", "f large", "g"),
                node("Div", "g large", "h"), node("Cast", "h", "k", to=I64),
                node("Slice", "x zero k one"),
            ],
            {"large": np.array([2**28], np.int32), "zero": [0], "one": [1]},
        ),
    )
}  # fmt: skip
"""Sizes that are computed of others, and how many classes there are at most."""


@pytest.mark.parametrize("name", deep_but([*COMPUTED][:6], COMPUTED))
def test_comparisons_of_sizes_are_taken_as_in_the_call(name: str) -> None:
    model, most = COMPUTED[name]
    compiled = satura.compile(model, threads=1)
    for rows, columns in ((2, 5), (7, 30), (3, 9), (40, 100), (33, 12), (12, 33), (8, 10), (8, 7)):
        given = {"x": random_input(rows, columns), "z": random_input(2)}
        for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-6)
    assert len(compiled.cache) <= most


IMAGES: Inputs = {"x": ("n", 3, "m", "k")}
SIGNALS: Inputs = {"x": ("n", "m", 1)}
FIXED: dict[str, tuple[ModelProto, Sequence[tuple[int, ...]]]] = {
    name: (make_model(nodes, inputs, constants, opset, outputs), calls)
    for name, nodes, inputs, constants, opset, outputs, calls in (
        (
            "places of the largest", [node("MaxPool", "x", "y i", kernel_shape=[3, 2],
            strides=[2, 2], pads=[1, 0, 1, 1])], IMAGES, {}, 18, ("y", "i"),
            [(1, 4, 5), (2, 7, 9), (3, 4, 5)],
        ),
        (
            "an image of given size", [node("ConvTranspose", "x w", output_shape=[10, 12],
            strides=[2, 2])], IMAGES, {"w": random_input(3, 2, 3, 3)}, 18, ("y",),
            [(1, 4, 5), (2, 5, 5), (3, 4, 5)],
        ),
        (
            "an image in a frame", [node("Resize", "x - - s", axes=[2, 3], mode="linear",
            keep_aspect_ratio_policy="not_larger")], IMAGES, {"s": [10, 12]}, 18, ("y",),
            [(1, 4, 5), (2, 5, 5), (3, 4, 5)],
        ),
        (
            "an image that is made smaller", [node("Resize", "x - s", mode="linear", antialias=1)],
            IMAGES, {"s": np.array([1, 1, 0.5, 0.75], np.float32)}, 18, ("y",),
            [(1, 4, 5), (2, 7, 9), (3, 4, 5)],
        ),
        (
            "a spectrum", [node("DFT", "x", axis=1)], SIGNALS, {}, 17, ("y",),
            [(1, 64), (2, 15), (3, 64)],
        ),
        (
            "a spectrum of numbers or of pairs", [node("DFT", "x", axis=1)],
            {"x": ("n", 8, "m")}, {}, 17, ("y",), [(3, 1), (2, 2), (1, 1)],
        ),
        (
            "spectra of frames", [node("STFT", "x step w")], SIGNALS,
            {"step": np.int64(4), "w": np.hanning(16).astype(np.float32)}, 17, ("y",),
            [(2, 64), (1, 101), (3, 16)],
        ),
    )
}  # fmt: skip
"""Sizes of images and signals decide how these are lowered, and not those of batches."""
DEAR = {
    "an image of given size", "an image in a frame", "an image that is made smaller", "a spectrum",
}  # fmt: skip


@pytest.mark.parametrize("name", deep_but([name for name in FIXED if name not in DEAR], FIXED))
def test_what_a_size_decides_is_lowered_for_it(name: str) -> None:
    model, calls = FIXED[name]
    compiled = satura.compile(model, threads=1)
    for sizes in (*calls, *calls):
        given = _drawn(model, dict(zip("nmk", sizes, strict=False)))
        for result, expected in zip(compiled.run(given).values(), run(model, given), strict=True):
            assert_close(result, expected, 1e-4)
    assert len(compiled.cache) <= (3 if name == "spectra of frames" else 2)
