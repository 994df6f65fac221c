"""Constants that a kernel would read with strides are copied into the order of its loops."""

from __future__ import annotations

import numpy as np
import pytest

from satura.backend.plan.compiled import CompiledSchedule, compile_schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch

RANDOM = np.random.default_rng(0)


def softmax_with_bias(perm: tuple[int, ...], start: int, dtype: DType) -> Program:
    """softmax over rows of x plus a part of a constant, transposed."""
    shape = (2, 3, 5, 49)
    build = Builder()
    x = build.input("x", dtype, shape)
    stored = tuple(shape[1:][perm.index(axis)] for axis in range(3))
    whole = (stored[0] + start, *stored[1:])
    table = build.constant(RANDOM.normal(size=whole).astype(dtype.numpy), dtype)
    part = build.slice(table, (start, 0, 0), stored, (1, 1, 1))
    bias = build.broadcast(build.reshape(build.transpose(part, perm), (1, *shape[1:])), shape)
    y = build.binary("add", x, bias)
    y = build.binary("sub", y, build.broadcast(build.reduce("max", y, (3,)), shape))
    grown = build.unary("exp", y)
    total = build.broadcast(build.reduce("sum", grown, (3,)), shape)
    return build.program({"y": build.binary("div", grown, total)})


def checked(program: Program, dtype: DType, threads: int) -> CompiledSchedule:
    compiled = compile_schedule(one_dispatch(program), threads)
    x = RANDOM.normal(size=(2, 3, 5, 49)).astype(dtype.numpy)
    x[1, 0, 2, 7], x[0, 2, 4, 0] = np.nan, -np.inf
    got = compiled.run({"x": x})["y"].astype(np.float64)
    expected = interpret(program, {"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(got, expected, rtol=3e-3 if dtype is DType.F16 else 1e-5, atol=1e-6)
    return compiled


@pytest.mark.parametrize("dtype", deep_but([DType.F32], [DType.F32, DType.F64, DType.F16]))
@pytest.mark.parametrize("perm", [(2, 0, 1), (2, 1, 0), (1, 2, 0), (0, 2, 1), (0, 1, 2)])
def test_softmax_with_a_turned_bias(perm: tuple[int, ...], dtype: DType) -> None:
    is_turned = perm[-1] != 2
    for start, threads in ((0, 1), (2, 3)):
        compiled = checked(softmax_with_bias(perm, start, dtype), dtype, threads)
        if is_turned:  # the copy is all that is kept
            assert compiled.plans.store.size <= (3 * 5 * 49 + 8) * dtype.itemsize


def test_a_loop_over_a_turned_constant() -> None:
    for shape in ((40, 70), (3, 9), (1, 8)):
        build = Builder()
        x = build.input("x", DType.F32, shape)
        turned = build.constant(RANDOM.normal(size=shape[::-1]).astype(np.float32), DType.F32)
        y = build.binary("sub", x, build.transpose(turned, (1, 0)))
        program = build.program({"y": y})
        given = {"x": RANDOM.normal(size=shape).astype(np.float32)}
        compiled = compile_schedule(one_dispatch(program), 2)
        np.testing.assert_array_equal(compiled.run(given)["y"], interpret(program, given)["y"])
        assert compiled.plans.store.size == 4 * shape[0] * shape[1]


def test_a_constant_that_is_read_again_and_again_is_not_made_larger() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 5, 49))
    table = build.constant(RANDOM.normal(size=(49, 4)).astype(np.float32), DType.F32)
    column = build.reshape(build.slice(table, (0, 1), (49, 1), (1, 1)), (1, 1, 1, 49))
    y = build.binary("mul", x, build.broadcast(column, (2, 3, 5, 49)))
    program = build.program({"y": build.reduce("sum", y, (3,))})
    compiled = checked(program, DType.F32, 1)
    assert compiled.plans.store.size <= 4 * 49 * 4
