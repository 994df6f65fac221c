"""Moves that turn an inner axis: every element, bit for bit, and by blocks where there are any."""

from __future__ import annotations

import numpy as np
import pytest

from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch

SHAPES = [
    ((64, 64), (1, 0)),
    ((17, 130), (1, 0)),
    ((3, 33, 5, 70), (0, 2, 3, 1)),
    ((2, 9, 8, 21), (3, 1, 0, 2)),
    *(((5, narrow, 70), (0, 2, 1)) for narrow in (5, 8, 13)),
    *(((70, narrow), (1, 0)) for narrow in (6, 11, 15)),
]


def bits(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Any bit patterns, signalling NaNs among them."""
    random = np.random.default_rng(len(shape))
    if dtype is DType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    count = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(random.bytes(count), dtype.numpy).reshape(shape)


@pytest.mark.parametrize("threads", deep_but([3], [1, 3]))
@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.I8], COMPUTED))
def test_transposes(dtype: DType, threads: int) -> None:
    for shape, perm in SHAPES:
        build = Builder()
        x = build.input("x", dtype, shape)
        program = build.program({"y": build.transpose(x, perm)})
        compiled = compile_schedule(one_dispatch(program), threads)
        assert any("transpose_block" in kernel.source for kernel in compiled.executables())
        given = bits(dtype, shape)
        got = compiled.run({"x": given})["y"]
        expected = np.ascontiguousarray(np.transpose(given, perm))
        np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.U8], COMPUTED))
def test_few_channels_turned_either_way(dtype: DType) -> None:
    """As those of images: what lies or shall lie side by side is moved in one pass over pixels."""
    for channels in (2, 3, 4):
        for shape, perm in (
            ((5, 3, 7, channels), (0, 3, 1, 2)), ((2, channels, 5, 13), (0, 2, 3, 1)),
        ):  # fmt: skip
            build = Builder()
            x = build.input("x", dtype, shape)
            program = build.program({"y": build.transpose(x, perm)})
            compiled = compile_schedule(one_dispatch(program), 2)
            (kernel,) = compiled.executables()
            assert f"{channels - 1}*a" in kernel.source and "short_loops" in kernel.source
            given = bits(dtype, shape)
            got = compiled.run({"x": given})["y"]
            expected = np.ascontiguousarray(np.transpose(given, perm))
            np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


def test_work_on_few_channels_that_are_turned() -> None:
    """As images are prepared: scaled by a number for each channel, from octets."""
    build = Builder()
    x = build.input("x", DType.U8, (2, 9, 11, 3))
    scale = build.input("scale", DType.F32, (1, 1, 1, 3))
    wide = build.broadcast(scale, (2, 9, 11, 3))
    scaled = build.binary("mul", build.cast(x, DType.F32), wide)
    program = build.program({"y": build.transpose(scaled, (0, 3, 1, 2))})
    given = {
        "x": bits(DType.U8, (2, 9, 11, 3)),
        "scale": np.array([0.5, np.nan, -0.0], np.float32).reshape(1, 1, 1, 3),
    }
    for threads in (1, 3):
        compiled = compile_schedule(one_dispatch(program), threads)
        assert "i*3 + 2" in compiled.executables()[0].source  # LLVM knows where they stand
        expected = interpret(program, given)["y"]
        np.testing.assert_array_equal(compiled.run(given)["y"], expected)


def test_channels_that_become_planes_in_reverse() -> None:
    build = Builder()
    x = build.input("x", DType.U8, (2, 9, 11, 3))
    turned = build.slice(x, (0, 0, 0, 2), (2, 9, 11, 3), (1, 1, 1, -1))
    program = build.program({"y": build.transpose(turned, (0, 3, 1, 2))})
    compiled = compile_schedule(one_dispatch(program), 2)
    assert "short_loops" in compiled.executables()[0].source
    given = {"x": bits(DType.U8, (2, 9, 11, 3))}
    np.testing.assert_array_equal(compiled.run(given)["y"], interpret(program, given)["y"])


def test_what_else_is_turned_goes_by_blocks() -> None:
    """Few channels that become planes leave another operand to be transposed by blocks."""
    build = Builder()
    x, z = build.input("x", DType.F32, (40, 50, 4)), build.input("z", DType.F32, (50, 40))
    planes = build.transpose(x, (2, 0, 1))
    wide = build.broadcast(build.reshape(build.transpose(z, (1, 0)), (1, 40, 50)), (4, 40, 50))
    program = build.program({"y": build.binary("mul", planes, wide)})
    compiled = compile_schedule(one_dispatch(program), 2)
    assert "transpose_block" in compiled.executables()[0].source
    given = {name: np.nan_to_num(bits(DType.F32, shape)) for name, shape in
             (("x", (40, 50, 4)), ("z", (50, 40)))}  # fmt: skip
    with np.errstate(all="ignore"):
        expected = interpret(program, given)["y"]
    np.testing.assert_array_equal(compiled.run(given)["y"], expected)


def test_a_transposed_part_of_a_tensor() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (40, 50, 3))
    part = build.slice(x, (3, 5, 1), (30, 40, 1), (1, 1, 1))
    program = build.program({"y": build.transpose(build.reshape(part, (30, 40)), (1, 0))})
    given = {"x": bits(DType.F32, (40, 50, 3))}
    got = compile_schedule(one_dispatch(program), 2).run(given)["y"]
    np.testing.assert_array_equal(got.view("u4"), interpret(program, given)["y"].view("u4"))


@pytest.mark.parametrize("threads", deep_but([3], [1, 3]))
@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.I64])
def test_work_on_turned_tensors(dtype: DType, threads: int) -> None:
    for shape in ((70, 130), (8, 65), (200, 9)):
        build = Builder()
        x = build.input("x", dtype, (3, *shape))
        upright = (3, shape[1], shape[0])
        z = build.input("z", dtype, upright)
        row = build.input("row", dtype, (1, 1, shape[0]))
        turned = build.binary("sub", build.transpose(x, (0, 2, 1)), z)
        result = build.binary("max", turned, build.broadcast(row, upright))
        program = build.program({"y": result})
        compiled = compile_schedule(one_dispatch(program), threads)
        assert any("row_tile" in kernel.source for kernel in compiled.executables())
        given = {
            name: np.nan_to_num(bits(dtype, kind)).astype(dtype.numpy)
            for name, kind in (("x", (3, *shape)), ("z", upright), ("row", (1, 1, shape[0])))
        }
        got = compiled.run(given)["y"]  # first: what it leaves out is not there by chance
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, interpret(program, given)["y"])


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_turned_with_gaps(step: int) -> None:
    for rows, columns in ((70, 67), (9, 130)):
        build = Builder()
        x = build.input("x", DType.F32, (rows, step * columns))
        part = build.slice(x, (0, step - 1), (rows, columns), (1, step))
        z = build.input("z", DType.F32, (columns, rows))
        program = build.program({"y": build.binary("sub", build.transpose(part, (1, 0)), z)})
        given = {
            "x": bits(DType.F32, (rows, step * columns)), "z": bits(DType.F32, (columns, rows)),
        }  # fmt: skip
        compiled = compile_schedule(one_dispatch(program), 2)
        assert ("tile0" in compiled.executables()[0].source) == (step < 7)
        got = compiled.run(given)["y"]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, interpret(program, given)["y"])


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16])
def test_gathered_rows_stored_as_columns(dtype: DType) -> None:
    for rows, columns in ((70, 130), (9, 65)):
        random = np.random.default_rng(rows)
        build = Builder()
        x = build.input("x", dtype, (3, rows, columns))
        given = {"x": np.nan_to_num(bits(dtype, (3, rows, columns)))}
        total = x
        for _ in range(2):
            at = build.constant(random.integers(0, rows, rows))
            weight = build.constant(random.standard_normal((1, rows, 1)), dtype)
            wide = build.broadcast(weight, (3, rows, columns))
            total = build.binary("mul", build.gather(total, at, 1), wide)
        program = build.program({"y": build.transpose(total, (0, 2, 1))})
        compiled = compile_schedule(one_dispatch(program), 2)
        (kernel,) = compiled.executables()
        assert "transpose_block" in kernel.source and "store_int64" not in kernel.source
        with np.errstate(all="ignore"):
            expected = interpret(program, given)["y"]
        np.testing.assert_array_equal(compiled.run(given)["y"], expected)


def test_halves_turned_each_for_itself() -> None:
    """As rotary embeddings of keys: what is joined along an axis is stored across it."""
    tokens, heads, width = 70, 3, 24
    build = Builder()
    x = build.input("x", DType.F32, (tokens, heads, 2 * width))
    weight = build.input("w", DType.F32, (tokens, 1, 2 * width))
    parts = [
        build.slice(x, (0, 0, start), (tokens, heads, width), (1, 1, 1)) for start in (width, 0)
    ]
    turned = build.concat([build.unary("neg", parts[0]), parts[1]], 2)
    wide = build.broadcast(weight, (tokens, heads, 2 * width))
    result = build.binary("add", build.binary("mul", turned, wide), x)
    program = build.program({"y": build.transpose(result, (1, 2, 0))})
    given = {
        "x": np.nan_to_num(bits(DType.F32, (tokens, heads, 2 * width))),
        "w": np.random.default_rng(0).normal(0, 1, (tokens, 1, 2 * width)).astype(np.float32),
    }
    with np.errstate(all="ignore"):
        expected = interpret(program, given)["y"]
    for threads in (1, 3):
        compiled = compile_schedule(one_dispatch(program), threads)
        assert compiled.executables()[0].source.count("transpose_block") == 2
        np.testing.assert_array_equal(compiled.run(given)["y"], expected)


def test_what_turns_nothing_is_no_transpose() -> None:
    for turned in (False, True):
        build = Builder()
        x = build.input("x", DType.F32, (32, 48))
        moved = build.transpose(x, (1, 0)) if turned else x
        program = build.program({"y": build.unary("neg", moved)})
        compiled = compile_schedule(one_dispatch(program), 1)
        sources = [kernel.source for kernel in compiled.executables()]
        assert any("transpose_block" in source for source in sources) == turned
        given = {"x": bits(DType.F32, (32, 48))}
        expected = interpret(program, given)["y"]
        np.testing.assert_array_equal(compiled.run(given)["y"], expected)
