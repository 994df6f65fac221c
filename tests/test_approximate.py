"""Which tensors are `Approximate`: the e-graph and `why` agree, and exact numbers are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.explain.class_graph import Graph
from satura.rewrite.explain.matcher import trace
from satura.rewrite.language.dsl import Approximate, Law, RuleSet, rewrites, rule
from satura.rewrite.language.terms import unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType


@rule
def marked(x: Approximate) -> Law:
    """abs(x) = relu(x), wrong in general: it shows what is approximate"""
    return rewrites(unary("abs", x), unary("relu", x))


def number(build: Builder, *values: float, dtype: type = np.float32) -> int:
    return build.constant(np.array(values, dtype))


def product(build: Builder, x: int, *factors: float) -> int:
    return build.binary("mul", x, number(build, *factors))


Made = Callable[[Builder, int], int]
ROUNDED: dict[str, Made] = {
    "exp": lambda build, x: build.unary("exp", x),
    "sums": lambda build, x: build.reduce("sum", build.unary("exp", x), (0,)),
    "moved": lambda build, x: build.transpose(build.unary("sqrt", x), (0,)),
    "padded": lambda build, x: build.pad(build.unary("sqrt", x), (1,), (0,), 0.0),
    "beside others": lambda build, x: build.concat([x, build.unary("sqrt", x)], 0),
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
    "mean": lambda build, x: product(build, x, 1 / 49, 1 / 49, 1 / 49),
    "quotient": lambda build, x: build.binary("div", x, number(build, 0.1, 0.7, 1e-3)),
    "product of matrices": lambda build, x: build.matmul(
        build.reshape(x, (1, 3)), build.reshape(x, (3, 1))
    ),
}
EXACT: dict[str, Made] = {
    "input": lambda build, x: x,
    "constant": lambda build, x: number(build, 0.1, 0.7, 1e-3),
    "few digits": lambda build, x: product(build, x, 41.0, 1.5, 255.0),
    "one of few digits": lambda build, x: product(build, x, 0.1, 1.5, 0.7),
    "subnormal": lambda build, x: product(build, x, 1e-40, 0.1, 0.1),
    "not a number": lambda build, x: product(build, x, np.nan, 0.1, 0.1),
    "rounded": lambda build, x: build.unary("floor", build.unary("exp", x)),
    "cast": lambda build, x: build.cast(build.unary("exp", x), DType.I32),
    "remainder": lambda build, x: build.binary("mod", build.unary("exp", x), x),
    "place": lambda build, x: build.cast(
        build.arg_reduce("max", build.unary("exp", x), 0), DType.F32
    ),
    "and a little": lambda build, x: build.binary("add", x, number(build, 1e-6, 1e-6, 1e-6)),
    "at least": lambda build, x: build.binary("max", x, number(build, 1e-6, 1e-6, 1e-6)),
    "root of a constant": lambda build, x: build.unary("sqrt", number(build, 0.1, 0.7, 1e-3)),
    "integers": lambda build, x: build.matmul(
        build.cast(build.reshape(x, (1, 3)), DType.I32),
        build.cast(build.reshape(x, (3, 1)), DType.I32),
    ),
}


@pytest.mark.parametrize(
    ("made", "is_approximate"),
    [
        *[pytest.param(made, True, id=f"rounded: {name}") for name, made in ROUNDED.items()],
        *[pytest.param(made, False, id=f"exact: {name}") for name, made in EXACT.items()],
    ],
)
def test_what_is_rounded_is_told_from_what_may_be_exact(made: Made, is_approximate: bool) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (3,))
    program = build.program({"y": build.unary("abs", made(build, x))})
    report = saturate(program, RuleSet(marked), Limits(rounds=1)).report
    (counted,) = (entry.matches for entry in report.rules)
    (direction,) = marked.directions
    assert counted == len(trace(direction, Graph.of_program(program)).matches)
    assert bool(counted) == is_approximate
