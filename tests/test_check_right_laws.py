"""Right laws that a checker could take for wrong: for the reference's errors, or sizes."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.check.both_sides import MOST_COMPUTED, disagreement, has_meaning
from satura.rewrite.ops.elementwise import BINARY
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [2.0, -2.0, 4.0])
def test_an_even_power_of_what_is_negated_is_the_same(exponent: float, dtype: type) -> None:
    x: Array = np.random.default_rng(0).standard_normal(4096).astype(dtype)
    power = BINARY["pow"].reference
    exponents: Array = np.full(x.shape, exponent, dtype)
    np.testing.assert_array_equal(power(np.negative(x), exponents), power(x, exponents))
    np.testing.assert_array_equal(power(x[7:8], exponents[:1]), power(x, exponents)[7:8])


def test_a_fill_is_among_the_numbers_that_a_convolution_rounds() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 2, 0, 1))
    w = build.input("w", DType.F32, (3, 3, 1, 1))
    window = build.window(DType.F32, (3, 3), None, None, (0, 2), (2, 1), -134.2269)
    sides = {"left": build.conv(x, w, window), "right": build.add("winograd", (x, w), window)}
    weights = [-1.0, -0.99999964, -1.0000004, -0.49999994, 0.5, 0.5, 0.5, 1.0, 1.0]
    arguments = {
        "x": np.zeros((1, 2, 0, 1), np.float32),
        "w": np.array(weights, np.float32).reshape(3, 3, 1, 1),
    }
    assert not disagreement(build.program(sides), arguments, exact=False)


def test_instances_too_large_to_compute_often_are_left_out() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1 << 12, symbol("n")))
    program = build.program({"left": build.unary("neg", x)})
    most = MOST_COMPUTED >> 12
    assert has_meaning(program, {"n": most}) and not has_meaning(program, {"n": most + 1})
