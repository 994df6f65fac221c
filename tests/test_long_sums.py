"""Sums of many elements for few results: threads share them in parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satura
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT

LAWS = {"matmul_in_parts", "reduce_in_parts"}
FUNCTIONS = ("sum", "max", "min", "prod")


def reduction(
    shape: tuple[int, ...], axes: tuple[int, ...], function: str, dtype: DType = DType.F32
) -> Program:
    build = Builder()
    x = build.input("x", dtype, shape)
    return build.program({"y": build.reduce(function, x, axes)})


def product(rows: int, depth: int, columns: int, dtype: DType = DType.F32) -> Program:
    build = Builder()
    x, y = build.input("x", dtype, (rows, depth)), build.input("y", dtype, (depth, columns))
    return build.program({"y": build.matmul(x, y)})


def dispatches(program: Program, threads: int, without: frozenset[str] = frozenset()) -> int:
    """How many there are by the fixed cost model, which is the same on every machine."""
    cost = CostModel(threads=threads)
    saturation = saturate(program, DEFAULT.without(*without), cost=cost)
    return len(best_schedule(saturation, cost).dispatches)


@pytest.mark.parametrize(
    "program",
    [
        product(8, 100_000, 32),
        product(1, 200_000, 1),
        reduction((4_000_000,), (0,), "sum"),
        reduction((1000, 1000), (0, 1), "max"),
        reduction((500, 1, 1000), (0, 2), "sum"),
    ],
)
def test_threads_share_long_sums(program: Program) -> None:
    assert dispatches(program, 2) > dispatches(program, 1) == 1
    assert dispatches(program, 2, frozenset(LAWS)) == 1


@pytest.mark.parametrize(
    "program",
    [product(64, 512, 64), reduction((64, 4096), (1,), "sum"), reduction((99,), (0,), "sum")],
)
def test_sums_for_all_threads_stay_whole(program: Program) -> None:
    """And those whose parts would be rounded once more."""
    assert dispatches(program, 2) == 1


@settings(max_examples=settings().max_examples // 10)  # each is a compilation
@given(
    st.sampled_from([1, 3, 8]), st.sampled_from([2048, 4000, 10_007]), st.sampled_from([1, 5, 16]),
    st.sampled_from([DType.F32, DType.F64]), st.integers(0, 99),
)  # fmt: skip
def test_long_products_are_right(
    rows: int, depth: int, columns: int, dtype: DType, seed: int
) -> None:
    program, random = product(rows, depth, columns, dtype), np.random.default_rng(seed)
    arguments = {
        "x": random.normal(size=(rows, depth)).astype(dtype.numpy),
        "y": random.normal(size=(depth, columns)).astype(dtype.numpy),
    }
    compare(program, arguments, 1e-4)


@settings(max_examples=settings().max_examples // 10)
@given(
    st.sampled_from([((1, 60_000), (1,)), ((600, 3, 70), (0, 2)), ((5, 4099), (0, 1))]),
    st.sampled_from(FUNCTIONS), st.sampled_from([None, np.nan, np.inf, -np.inf, -0.0]),
    st.integers(0, 99),
)  # fmt: skip
def test_long_reductions_are_right(
    case: tuple[tuple[int, ...], tuple[int, ...]], function: str, special: float | None, seed: int
) -> None:
    shape, axes = case
    x = np.random.default_rng(seed).normal(1, 0.001, shape).astype(np.float32)
    if special is not None:
        x.reshape(-1)[seed * 100] = special
    compare(reduction(shape, axes, function), {"x": x}, 1e-3)


def compare(program: Program, arguments: dict[str, Array], tolerance: float) -> None:
    """Two threads against the interpreter."""
    found = satura.compile(program, threads=2).run(arguments)["y"]
    expected = interpret(program, arguments)["y"]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    found, expected = (np.asarray(each, np.float64) for each in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_the_laws_are_in_the_book() -> None:
    assert {rule.name for rule in DEFAULT} >= LAWS
