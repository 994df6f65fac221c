"""Every NaN is one to max and min, whatever made it and whichever sign it has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.tensor_type import Array, DType
from tests.test_kernels import FLOATS
from tests.tiers import deep_but

Step = Callable[[Builder, int], int]
SHAPE = (3, 40)


def divided(build: Builder, x: int) -> int:
    """x / x, NaN of 0 and of inf."""
    return build.binary("div", x, x)


def grown(build: Builder, x: int) -> int:
    """sqrt(|x| + 1), which no number makes NaN."""
    one = build.reshape(build.constant(1, build.type(x).dtype), (1, 1))
    return build.unary(
        "sqrt", build.binary("add", build.unary("abs", x), build.broadcast(one, SHAPE))
    )


MAKERS: dict[str, Step] = {
    "x": lambda build, x: x,
    "sqrt(x)": lambda build, x: build.unary("sqrt", x),
    "sqrt(|x| + 1)": grown,
    "-sqrt(x)": lambda build, x: build.unary("neg", build.unary("sqrt", x)),
    "log(x)": lambda build, x: build.unary("log", x),
    "x / x": divided,
    "x - x": lambda build, x: build.binary("sub", x, x),
    "relu(x)": lambda build, x: build.unary("relu", x),
}
TAKERS: dict[str, Callable[[Builder, str, int], int]] = {
    "of rows": lambda build, name, x: build.reduce(name, x, (1,)),
    "of columns": lambda build, name, x: build.reduce(name, x, (0,)),
    "of all": lambda build, name, x: build.reduce(name, x, (0, 1)),
    "place": lambda build, name, x: build.arg_reduce(name, x, 1),
    "of windows": lambda build, name, x: build.pool(
        name, x, build.window(build.type(x).dtype, (1, 3), fill=0)
    ),
    "of pairs": lambda build, name, x: build.binary(
        name, x, build.slice(x, (2, 0), SHAPE, (-1, 1))
    ),
    "first": lambda build, name, x: build.first_places(x, 5, name == "max"),
}


def taken(name: str, make: Step, dtype: DType) -> Program:
    """All ops that choose the largest, or smallest, each of what `make` gives it alone."""
    build = Builder()
    inputs = [(taker, build.input(taker, dtype, SHAPE)) for taker in TAKERS]
    return build.program({of: TAKERS[of](build, name, make(build, x)) for of, x in inputs})


def drawn(dtype: DType) -> dict[str, Array]:
    """Numbers of both signs, with zeros, infinities, and NaNs of both signs."""
    values = np.random.default_rng(7).normal(0, 9, SHAPE).astype(dtype.numpy)
    nan = np.array(np.nan, dtype.numpy)
    values[0] = np.abs(values[0])  # a row of which roots are numbers
    values[1, 3:9] = 0.0, -0.0, np.inf, -np.inf, nan, -nan
    values[0, 30], values[2, :2] = nan, (nan, 5)
    return dict.fromkeys(TAKERS, values)


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("dtype", deep_but([DType.F32], FLOATS))
@pytest.mark.parametrize("make", deep_but(["sqrt(|x| + 1)", "sqrt(x)"], MAKERS))
def test_nan_is_chosen(name: str, make: str, dtype: DType) -> None:
    program, arguments = taken(name, MAKERS[make], dtype), drawn(dtype)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)
    assert np.isnan(expected["of rows"].astype(np.float64)).any()
    got = satura.compile(program, threads=1).run(arguments)
    for output, wanted in expected.items():
        same = agreement(wanted, got[output], 1e-2 if dtype.itemsize == 2 else 1e-5)
        assert same.all(), (output, got[output][~same], wanted[~same])
