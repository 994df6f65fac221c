"""Powers by numbers that the rule book knows: no pow is left, and special values keep theirs."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.tiers import deep_but

NUMBERS = (2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 0.75)
DTYPES = (DType.F64, DType.F32, DType.F16, DType.BF16)


def power_program(dtype: DType, number: float, x: Array) -> Program:
    build = Builder()
    node = build.input("x", dtype, x.shape)
    exponent = build.broadcast(build.constant(np.array([number]), dtype), x.shape)
    return build.program({"y": build.binary("pow", node, exponent)})


def values(dtype: DType) -> Array:
    """Special values, and some of every magnitude."""
    info = np.finfo("f8" if dtype is DType.F64 else "f4")
    numbers = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, float(info.max), float(info.tiny)]
    random = np.random.default_rng(0)
    spread = random.normal(0, 1, 500) * 2.0 ** random.uniform(-40, 40, 500)
    with np.errstate(all="ignore"):
        return np.concatenate([numbers, spread, np.abs(spread)]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", deep_but([DType.F32], DTYPES))
@pytest.mark.parametrize("number", deep_but(NUMBERS[::2], NUMBERS))
def test_known_powers(dtype: DType, number: float) -> None:
    x = values(dtype)
    program = power_program(dtype, number, x)
    better = satura.optimize(program)
    assert "pow" not in str(better)
    with np.errstate(all="ignore"):
        expected = interpret(program, {"x": x})["y"].astype(np.float64)
        got = interpret(better, {"x": x})["y"].astype(np.float64)
    small = float(np.finfo(np.float32).tiny if dtype is not DType.F16 else 6e-5)
    ordinary = np.isfinite(expected) & (np.abs(expected) >= small)
    eps = {DType.F16: 2.0**-10, DType.BF16: 2.0**-7, DType.F32: 2.0**-23}.get(dtype, 2.0**-52)
    np.testing.assert_allclose(got[ordinary], expected[ordinary], rtol=3 * eps)
    special = np.isnan(expected) | np.isinf(expected) | (expected == 0)
    np.testing.assert_array_equal(got[special], expected[special])
    np.testing.assert_array_equal(np.signbit(got[special]), np.signbit(expected[special]))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16])
def test_the_first_power_is_the_number(dtype: DType) -> None:
    x = np.random.default_rng(0).normal(0, 1, 20_000).astype(dtype.numpy)
    found = interpret(power_program(dtype, 1.0, x), {"x": x})["y"]
    assert found.tobytes() == x.tobytes()
