"""Which tensors are `Fractional`: the e-graph and `why` agree, and whole numbers are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.explain.class_graph import Graph
from satura.rewrite.explain.matcher import trace
from satura.rewrite.language.dsl import Fractional, Law, RuleSet, rewrites, rule
from satura.rewrite.language.terms import unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType


@rule
def marked(x: Fractional) -> Law:
    """abs(x) = relu(x), wrong in general: it shows where fractions are"""
    return rewrites(unary("abs", x), unary("relu", x))


def number(build: Builder, *values: float, dtype: type = np.float32) -> int:
    return build.constant(np.array(values, dtype))


Made = Callable[[Builder, int], int]
FRACTIONS: dict[str, Made] = {
    "exp": lambda build, x: build.unary("exp", x),
    "sums": lambda build, x: build.reduce("sum", build.unary("exp", x), (0,)),
    "moved": lambda build, x: build.transpose(build.unary("sqrt", x), (0,)),
    "padded": lambda build, x: build.pad(build.unary("sqrt", x), (1,), (0,), 0.0),
    "constant": lambda build, x: number(build, 0.1, 0.7, 1e-3),
    "negative constant": lambda build, x: build.unary("neg", number(build, 0.1, 0.7, 1e-3)),
    "at least": lambda build, x: build.binary(
        "max", build.unary("sqrt", x), number(build, 1e-12, 1e-12, 1e-12)
    ),
    "and a number": lambda build, x: build.binary(
        "add", number(build, 1.0, 1.0, 1.0), build.unary("exp", x)
    ),
    "cast": lambda build, x: build.cast(build.unary("exp", x), DType.F16),
    "chosen": lambda build, x: build.select(
        build.binary("lt", x, x), build.unary("exp", x), build.unary("neg", x)
    ),
}
WHOLE: dict[str, Made] = {
    "input": lambda build, x: x,
    "few digits": lambda build, x: number(build, 41.0, 1.5, 255.0),
    "one of few digits": lambda build, x: number(build, 0.1, 1.5, 0.7),
    "subnormal": lambda build, x: number(build, 1e-40, 0.1, 0.1),
    "of a reciprocal that is subnormal": lambda build, x: number(build, 3.1e38, 0.1, 0.1),
    "not a number": lambda build, x: number(build, np.nan, 0.1, 0.1),
    "doubles": lambda build, x: number(build, 0.1, 0.1, 0.1, dtype=np.float64),
    "rounded": lambda build, x: build.unary("floor", build.unary("exp", x)),
    "cast": lambda build, x: build.cast(build.unary("exp", x), DType.I32),
    "remainder": lambda build, x: build.binary("mod", build.unary("exp", x), x),
    "place": lambda build, x: build.cast(
        build.arg_reduce("max", build.unary("exp", x), 0), DType.F32
    ),
    "and a little": lambda build, x: build.binary("add", x, number(build, 1e-6, 1e-6, 1e-6)),
    "at least": lambda build, x: build.binary("max", x, number(build, 1e-6, 1e-6, 1e-6)),
    "mean": lambda build, x: build.binary("mul", x, number(build, 1 / 49, 1 / 49, 1 / 49)),
}


@pytest.mark.parametrize(
    ("made", "is_fractional"),
    [
        *[pytest.param(made, True, id=f"fractions: {name}") for name, made in FRACTIONS.items()],
        *[pytest.param(made, False, id=f"whole: {name}") for name, made in WHOLE.items()],
    ],
)
def test_fractions_are_told_from_what_may_be_whole(made: Made, is_fractional: bool) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (3,))
    program = build.program({"y": build.unary("abs", made(build, x))})
    report = saturate(program, RuleSet(marked), Limits(rounds=1)).report
    (counted,) = (entry.matches for entry in report.rules)
    (direction,) = marked.directions
    assert counted == len(trace(direction, Graph.of_program(program)).matches)
    assert bool(counted) == is_fractional
