"""Saved models take of open axes what the originals take at every size, and tell as much of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, parser

import satura
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array
from tests.onnxruntime_reference import session
from tests.tiers import deep_but

SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 64)
HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (int64[1] size, float[k] y)'
NUMBERS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "back": -1, "before": -2,
    "fourth": -4, "fifth": -5, "far": 2**31 - 1, "least": -(2**31),
}  # fmt: skip
SLICES = {
    "x[4::-1]": "y = Slice (x, four, least, zero, back)",
    "x[2:-2:-1]": "y = Slice (x, two, before, zero, back)",
    "x[-1:-5:-1]": "y = Slice (x, back, fifth, zero, back)",
    "x[-1:0:-1]": "y = Slice (x, back, zero, zero, back)",
    "x[:-1][-2:]": "u = Slice (x, zero, back) y = Slice (u, before, far)",
    "x[4:-2][-1:]": "u = Slice (x, four, before) y = Slice (u, back, far)",
    "x[1:2n]": "m = Mul (n, two) y = Slice (x, one, m)",
    "x[1:min(n, 5)]": "m = Min (n, five) y = Slice (x, one, m)",
    "x[-4:min(n, 5)]": "m = Min (n, five) y = Slice (x, fourth, m)",
    "x[max(n, 2):5]": "m = Max (n, two) y = Slice (x, m, five)",
    "x[n-4:-2]": "m = Sub (n, four) y = Slice (x, m, before)",
    "x[n//2:-1]": "m = Div (n, two) y = Slice (x, m, back)",
    "x[n-2:]": "m = Sub (n, two) y = Slice (x, m, far)",
    "x[-(n-1):1]": "o = Sub (one, n) y = Slice (x, o, one)",
    "w[-1:n-1]": "m = Sub (n, one) y = Slice (w, back, m)",
    "w[:n-1]": "m = Sub (n, one) y = Slice (w, zero, m)",
    "w[-n:]": "m = Neg (n) y = Slice (w, m, far)",
    "w[:n][-2:]": "u = Slice (w, zero, n) y = Slice (u, before, far)",
}
KEPT = ("x[4::-1]", "x[1:min(n, 5)]", "w[:n-1]", "x[:-1][-2:]")


def sliced(steps: str) -> ModelProto:
    constants = ", ".join(f"int64[1] {name} = {{{each}}}" for name, each in NUMBERS.items())
    return parser.parse_model(
        f"{HEAD} <{constants}, float[5] w = {{1, 2, 3, 4, 5}}>"
        f" {{ n = Shape (x) {steps} size = Shape (y) }}"
    )


@pytest.mark.parametrize("case", deep_but(KEPT, SLICES))
def test_slices_are_those_of_the_original_at_every_size(case: str) -> None:
    model = sliced(SLICES[case])
    original, saved = session(model), session(to_model(satura.optimize(model)))
    for size in SIZES:
        arguments = {"x": np.arange(1, size + 1, dtype=np.float32)}
        wanted, got = original.run(None, arguments), saved.run(None, arguments)
        told = satura.interpret(model, arguments)
        for name, expected, found in zip(("size", "y"), wanted, got, strict=True):
            np.testing.assert_array_equal(found, expected, f"{name} at {size}")
            np.testing.assert_array_equal(told[name], expected, f"{name} at {size}, interpreted")


def test_the_size_alone_is_right_too() -> None:
    """Where a slice is no output, its size has no other witness."""
    for case in KEPT:
        model = sliced(SLICES[case])
        del model.graph.output[1]
        original, saved = session(model), session(to_model(satura.optimize(model)))
        for size in SIZES:
            x = np.ones(size, np.float32)
            assert original.run(None, {"x": x})[0] == saved.run(None, {"x": x})[0], (case, size)


RANGES = {
    "down": "c = Neg (n) d = Squeeze (c) y = Range (start, d, step)",
    "of thirds": "f = Cast <to = 1> (n) d = Squeeze (f) y = Range (first, d, third)",
}


@pytest.mark.parametrize("case", RANGES)
def test_ranges_whose_length_has_no_formula_stay(case: str) -> None:
    kind = "float" if case == "of thirds" else "int64"
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => ({kind}[k] y)'
        " <int64 start = {0}, int64 step = {2}, float first = {0}, float third = {0.3}>"
        f" {{ n = Shape (x) {RANGES[case]} }}"
    )
    _are_alike(model, [np.ones(size, np.float32) for size in (0, 1, 4)])


def test_a_choice_of_elements_that_are_there_stays() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (int64[1] size, float[k] z)'
        " <bool[5] c = {1, 0, 1, 0, 1}>"
        " { y = Compress <axis = 0> (x, c) size = Shape (y) z = Neg (y) }"
    )
    _are_alike(model, [np.arange(1, size + 1, dtype=np.float32) for size in SIZES])


def test_an_axis_that_may_be_one_stays() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 1, 3] x) => (int64[k] size, float z)'
        " { y = Squeeze (x) w = Tanh (y) size = Shape (w) z = ReduceSum <keepdims = 0> (w) }"
    )
    _are_alike(model, [np.ones((size, 1, 3), np.float32) for size in (0, 1, 2, 5)])


def _are_alike(model: ModelProto, values: Sequence[Array]) -> None:
    original, saved = session(model), session(to_model(satura.optimize(model)))
    for x in values:
        for wanted, found in zip(
            original.run(None, {"x": x}), saved.run(None, {"x": x}), strict=True
        ):
            np.testing.assert_allclose(found, wanted, 1e-6, err_msg=str(x.shape))


def test_a_reshape_that_copies_an_extent_at_some_sizes_stays() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4, n, m] x) => (float[a, b] z)'
        " <int64[1] rest = {-1}> { last = Shape <start = 2> (x)"
        " s = Concat <axis = 0> (rest, last) y = Reshape (x, s) z = Neg (y) }"
    )
    _are_alike(model, [np.ones((4, n, m), np.float32) for n, m in ((3, 0), (0, 3), (2, 2))])


def test_a_reshape_that_copies_but_zeros_does_not_stay() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4, m, n] x) => (float[a, b, c] z)'
        " <int64[1] rest = {-1}, int64[1] two = {2}> { second = Shape <start = 1, end = 2> (x)"
        " s = Concat <axis = 0> (rest, second, two) y = Reshape (x, s) z = Neg (y) }"
    )
    assert isinstance(satura.optimize(model), Program)
