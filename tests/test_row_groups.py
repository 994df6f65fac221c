"""Short rows, a few at a time: their values, their special ones, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from satura.backend.plan.compiled import compile_schedule
from satura.backend.target import host_target
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch

ROWS = (3, 5)  # 15 are no whole groups, and of no thread's share
PAYLOAD = np.array(0x7FC00003, np.uint32).view(np.float32)  # a NaN that says something
LANES = host_target().lanes
LENGTHS = [1, LANES - 1, LANES, LANES + 1, 49, 200, 300]


def masked_softmax(dtype: DType, length: int) -> Program:
    """softmax(x + mask) over the last axis, with a mask per outer row."""
    shape = (*ROWS, length)
    build = Builder()
    x, mask = build.input("x", dtype, shape), build.input("mask", dtype, (ROWS[0], 1, length))
    scores = build.binary("add", x, build.broadcast(mask, shape))
    largest = build.broadcast(build.reduce("max", scores, (2,)), shape)
    grown = build.unary("exp", build.binary("sub", scores, largest))
    total = build.broadcast(build.reduce("sum", grown, (2,)), shape)
    return build.program({"y": build.binary("div", grown, total)})


def drawn(dtype: DType, length: int) -> dict[str, Array]:
    random = np.random.default_rng(length)
    x = random.normal(0, 4, (*ROWS, length))
    mask = np.where(random.random((ROWS[0], 1, length)) < 0.2, -np.inf, 0)
    mask[..., 0] = 0
    x[0, 1, -1], x[1, 2, 0], x[2, 3], x[2, 4, 0] = np.inf, -np.inf, -np.inf, 1e30
    given = {"x": x.astype(dtype.numpy), "mask": mask.astype(dtype.numpy)}
    given["x"][0, 0, length // 2] = PAYLOAD
    return given


@pytest.mark.parametrize("dtype", deep_but([DType.F32], [DType.F32, DType.F64]))
@pytest.mark.parametrize("length", LENGTHS)
def test_softmax_of_short_rows(dtype: DType, length: int) -> None:
    program, given = masked_softmax(dtype, length), drawn(dtype, length)
    alone, together = (
        compile_schedule(one_dispatch(program), threads).run(given)["y"] for threads in (1, 3)
    )
    np.testing.assert_array_equal(alone.view(np.uint8), together.view(np.uint8))
    with np.errstate(all="ignore"):
        expected = interpret(program, given)["y"]
    assert np.allclose(alone, expected, rtol=2e-6, atol=1e-44, equal_nan=True)


def test_values_of_rows_that_several_passes_need() -> None:
    """A scale per row, a value kept from pass to pass, and results of one pass for two others."""
    shape, kept = (7, 33), (7, 1)
    build = Builder()
    x, scale = build.input("x", DType.F32, shape), build.input("scale", DType.F32, kept)
    grown = build.binary("mul", build.unary("exp", x), build.broadcast(scale, shape))
    mean = build.broadcast(build.reduce("sum", grown, (1,)), shape)
    centred = build.binary("sub", grown, mean)
    spread = build.reduce("sum", build.binary("mul", centred, centred), (1,))
    least = build.reduce("min", grown, (1,))
    result = build.binary("div", centred, build.broadcast(build.unary("sqrt", spread), shape))
    result = build.binary("add", result, build.broadcast(least, shape))
    program = build.program({"y": result})
    random = np.random.default_rng(0)
    given = {
        "x": random.normal(0, 1, shape).astype(np.float32),
        "scale": random.normal(0, 1, kept).astype(np.float32),
    }
    compiled = compile_schedule(one_dispatch(program), 2)
    assert "for member in range(members)" in compiled.executables()[0].source
    got = compiled.run(given)["y"]
    assert np.allclose(got, interpret(program, given)["y"], rtol=1e-5)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16])
def test_sums_over_several_axes_of_which_the_last_is_short(dtype: DType) -> None:
    """As GroupNorm has them: channels of a group lie side by side, pixels do not."""
    pixels, groups, width = 37, 3, 5
    shape = (pixels, groups, width)
    build = Builder()
    x = build.input("x", dtype, shape)
    mean = build.reduce("sum", x, (0, 2))
    centred = build.binary("sub", x, build.broadcast(mean, shape))
    spread = build.reduce("sum", build.binary("mul", centred, centred), (0, 2))
    program = build.program({"y": build.binary("div", centred, build.broadcast(spread, shape))})
    given = {"x": np.random.default_rng(0).normal(0, 1, shape).astype(dtype.numpy)}
    compiled = compile_schedule(one_dispatch(program), 2)
    assert "+ 7)" in compiled.executables()[0].source  # eight pixels at a time
    got, expected = compiled.run(given)["y"], interpret(program, given)["y"]
    assert np.allclose(got, expected, rtol=1e-5 if dtype is DType.F32 else 1e-2, atol=1e-5)


@pytest.mark.parametrize("length", [7, 49, 300])
@pytest.mark.parametrize(
    ("dtype", "result", "is_shared"),
    [(DType.F32, DType.F32, True), (DType.F64, DType.F64, True), (DType.F32, DType.F16, False)],
)
def test_what_the_last_pass_needs_stands_where_the_result_will(
    dtype: DType, result: DType, is_shared: bool, length: int
) -> None:
    """Only where an element has the same room in the result."""
    build = Builder()
    x = build.input("x", dtype, (5, length))
    grown = build.unary("exp", x)
    total = build.broadcast(build.reduce("sum", grown, (1,)), (5, length))
    program = build.program({"y": build.cast(build.binary("div", grown, total), result)})
    given = {"x": np.random.default_rng(0).normal(0, 2, (5, length)).astype(dtype.numpy)}
    compiled = compile_schedule(one_dispatch(program), 1)
    assert ("stored_" in compiled.executables()[0].source) is is_shared
    expected = interpret(program, given)["y"]
    tolerance = 1e-3 if result is DType.F16 else 1e-6
    assert np.allclose(compiled.run(given)["y"], expected, rtol=tolerance)


def test_what_two_later_passes_need_stands_in_scratch() -> None:
    """The second pass still needs the exponentials when the third one has not begun to store."""
    shape = (5, 40)
    build = Builder()
    x = build.input("x", DType.F32, shape)
    grown = build.unary("exp", x)
    mean = build.broadcast(build.reduce("sum", grown, (1,)), shape)
    least = build.broadcast(build.reduce("min", build.binary("sub", grown, mean), (1,)), shape)
    program = build.program({"y": build.binary("mul", grown, least)})
    given = {"x": np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)}
    compiled = compile_schedule(one_dispatch(program), 1)
    assert "stored_" not in compiled.executables()[0].source
    assert np.allclose(compiled.run(given)["y"], interpret(program, given)["y"], rtol=1e-5)
