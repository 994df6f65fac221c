"""Weights of a softmax are subnormal, but where products alone read them: there they are 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType

SCORES, VALUES = (2, 5, 40), (2, 40, 9)
Use = Callable[[Builder, int, int], int]


def computed(use: Use, precision: str, shown: bool = False) -> dict[str, NDArray[np.float64]]:
    """What `use` makes of weights of 8e-40, all but one of 1 per row, and of values whose products
    with them are 0.08; "y" of the program and of the interpreter."""
    x, v = np.full(SCORES, -90, np.float32), np.full(VALUES, 1e38, np.float32)
    x[..., 0], v[:, 0] = 0, 0
    build = Builder()
    scores, values = build.input("x", DType.F32, SCORES), build.input("v", DType.F32, VALUES)
    most = build.broadcast(build.reduce("max", scores, (2,)), SCORES)
    grown = build.unary("exp", build.binary("sub", scores, most))
    total = build.broadcast(build.reduce("sum", grown, (2,)), SCORES)
    weights = build.binary("div", grown, total)
    outputs = {"y": use(build, weights, values)} | ({"w": weights} if shown else {})
    program = build.program(outputs)
    found = satura.compile(program, threads=1, precision=precision).run({"x": x, "v": v})
    results = {"found": found, "expected": interpret(program, {"x": x, "v": v})}
    return {name: np.asarray(each["y"], np.float64) for name, each in results.items()}


def turned(build: Builder, w: int, v: int) -> int:
    """The weights as a right operand."""
    both = (build.transpose(each, (0, 2, 1)) for each in (v, w))
    return build.matmul(*both)


def twice(build: Builder, w: int, v: int) -> int:
    """Two products of the same weights."""
    return build.binary("mul", build.matmul(w, v), build.matmul(w, build.unary("sqrt", v)))


MULTIPLIED: dict[str, Use] = {
    "as they are": lambda build, w, v: build.matmul(w, v), "turned": turned, "twice": twice,
}  # fmt: skip


@pytest.mark.parametrize("use", MULTIPLIED.values(), ids=list(MULTIPLIED))
def test_weights_that_are_only_multiplied_are_not_subnormal(use: Use) -> None:
    """There are CPUs that multiply one as slowly as fifty others; exact programs keep them."""
    kept = computed(use, "exact")
    np.testing.assert_allclose(kept["found"], kept["expected"], rtol=1e-5)
    assert kept["expected"].all() and not computed(use, "fp32")["found"].any()


def of_logarithms(build: Builder, w: int, v: int) -> int:
    """What is divided by the sum of the row's logarithms in place of its own."""
    grown, _ = build.nodes[w].operands
    total = build.reduce("sum", build.unary("log", grown), (2,))
    return build.matmul(build.binary("div", grown, build.broadcast(total, SCORES)), v)


def and_weights(build: Builder, w: int, v: int) -> int:
    """Products, which are 0, whose epilogue reads the weights as well."""
    column = build.slice(v, (0, 0, 0), (2, 40, 1))
    return build.binary(
        "add", build.matmul(w, build.broadcast(build.binary("sub", column, column), (2, 40, 40))), w
    )


def given_back(build: Builder, w: int, v: int) -> int:
    return build.matmul(w, v)


READ: dict[str, Use] = {
    "by a logarithm": lambda build, w, v: build.unary("log", w),
    "by their row": of_logarithms,
    "by a root": lambda build, w, v: build.matmul(build.unary("sqrt", w), v),
    "by an epilogue": and_weights, "by the caller": given_back,
}  # fmt: skip


@pytest.mark.parametrize("use", READ.values(), ids=list(READ))
def test_weights_that_others_read_are_subnormal(use: Use) -> None:
    kept = computed(use, "fp32", shown=use is given_back)
    assert kept["expected"].any()
    np.testing.assert_allclose(kept["found"], kept["expected"], rtol=1e-4)
