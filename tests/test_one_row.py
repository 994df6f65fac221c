"""A matmul of one row whose right operand varies is a sum, and so is one of one column: nothing is
packed for one use."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.extract.schedule import Form
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT

SUMS = DEFAULT.without("stream_attention", "stream_biased_attention")


def attention(queries: int, dtype: DType = DType.F32) -> Program:
    """Queries against 400 keys and values, per head."""
    build = Builder()
    q = build.input("q", dtype, (2, queries, 16))
    k, v = (build.input(name, dtype, (2, 400, 16)) for name in "kv")
    scores = build.matmul(q, build.transpose(k, (0, 2, 1)))
    largest = build.broadcast(build.reduce("max", scores, (2,)), (2, queries, 400))
    grown = build.unary("exp", build.binary("sub", scores, largest))
    total = build.broadcast(build.reduce("sum", grown, (2,)), (2, queries, 400))
    return build.program({"y": build.matmul(build.binary("div", grown, total), v)})


def contractions(program: Program) -> int:
    """How many there are by the fixed cost model, which is the same on every machine."""
    dispatches = best_schedule(saturate(program, SUMS)).dispatches
    return sum(each.form is Form.CONTRACTION for each in dispatches)


def test_attention_of_one_query_packs_nothing() -> None:
    assert contractions(attention(1)) == 0
    assert contractions(attention(2)) > 0


@pytest.mark.parametrize("queries", [1, 2])
def test_attention_is_right(queries: int) -> None:
    program, random = attention(queries), np.random.default_rng(0)
    shapes = {"q": (2, queries, 16), "k": (2, 400, 16), "v": (2, 400, 16)}
    given = {name: random.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    for threads in (1, 2):
        got = satura.compile(program, threads=threads).run(given)["y"]
        assert np.allclose(got, interpret(program, given)["y"], rtol=1e-5, atol=1e-6)


def test_products_of_f16_are_summed_in_f32() -> None:
    """300 · 300 is no f16; the sum of such products is."""
    build = Builder()
    x, y = build.input("x", DType.F16, (1, 2)), build.input("y", DType.F16, (2, 1))
    program = build.program({"y": build.matmul(x, y)})
    given = {"x": np.array([[300, 300]]), "y": np.array([[300], [-300]])}
    halves = {name: array.astype(np.float16) for name, array in given.items()}
    assert satura.compile(program, threads=1).run(halves)["y"] == 0


def test_weights_stay_packed() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 32))
    w = build.constant(np.random.default_rng(0).normal(0, 1, (32, 48)).astype(np.float32))
    assert contractions(build.program({"y": build.matmul(x, w)})) == 1


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("is_known", [False, True])
def test_one_column_is_a_sum_of_each_row(is_known: bool, dtype: DType) -> None:
    random = np.random.default_rng(0)
    weight = random.normal(0, 1, (3, 65, 1)).astype(dtype.numpy)
    build = Builder()
    x = build.input("x", dtype, (3, 33, 65))
    w = build.constant(weight) if is_known else build.input("w", dtype, (3, 65, 1))
    program = build.program({"y": build.unary("relu", build.matmul(x, w))})
    assert contractions(program) == 0
    given = {"x": random.normal(0, 1, (3, 33, 65)).astype(dtype.numpy)}
    if not is_known:
        given["w"] = weight
    for threads in (1, 2):
        got = satura.compile(program, threads=threads).run(given)["y"]
        assert np.allclose(got, interpret(program, given)["y"], rtol=1e-4, atol=1e-5)


def test_two_columns_are_a_contraction() -> None:
    build = Builder()
    x, w = build.input("x", DType.F32, (33, 65)), build.input("w", DType.F32, (65, 2))
    assert contractions(build.program({"y": build.matmul(x, w)})) == 1


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.I32])
def test_one_term_is_a_product(dtype: DType) -> None:
    build = Builder()
    x, y = build.input("x", dtype, (3, 33, 1)), build.input("y", dtype, (3, 1, 17))
    program = build.program({"y": build.unary("neg", build.matmul(x, y))})
    assert contractions(program) == 0
    random = np.random.default_rng(0)
    given = {
        name: random.integers(-9, 9, shape).astype(dtype.numpy)
        for name, shape in (("x", (3, 33, 1)), ("y", (3, 1, 17)))
    }
    got = satura.compile(program, threads=1).run(given)["y"]
    assert np.array_equal(got, interpret(program, given)["y"])


def test_two_terms_are_a_contraction() -> None:
    build = Builder()
    x, y = build.input("x", DType.F32, (33, 2)), build.input("y", DType.F32, (2, 17))
    assert contractions(build.program({"y": build.matmul(x, y)})) == 1


def test_a_sum_along_an_axis_of_one_is_none() -> None:
    """And one along other axes is."""
    for axes, form in (((1,), Form.LOOP), ((0, 1), Form.ROW)):
        build = Builder()
        x = build.input("x", DType.F32, (40, 1, 30))
        program = build.program({"y": build.unary("neg", build.reduce("sum", x, axes))})
        (dispatch,) = best_schedule(saturate(program, DEFAULT)).dispatches
        assert dispatch.form is form


def test_the_laws_are_in_the_book() -> None:
    assert {"matmul_of_one_row", "matmul_of_one_column", "matmul_of_one_term"} <= {
        rule.name for rule in DEFAULT
    }
