"""Windows of every kind, as kernels, against the interpreter: random sizes, borders, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from satura.backend.emit.convolved_planes import ConvolvedWriter
from satura.backend.lower.planes import planes
from satura.backend.plan.compiled import compile_schedule
from satura.backend.target import host_target
from satura.rewrite.extract.readable import MOST_TAPS
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.random_programs import compare
from tests.tiers import deep_but, seeds
from tests.trivial_scheduler import one_dispatch, one_dispatch_per_node

DTYPES = [DType.F32, DType.F64, DType.F16, DType.I8, DType.I32]
FUNCTIONS = ("max", "min", "sum", "prod")
SPECIALS = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def draw(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Small whole numbers, whose sums are exact, and for floats some special values."""
    values = random.integers(-3, 4, shape).astype(dtype.numpy)
    if dtype.is_float and random.random() < 0.5:
        places = random.random(shape) < 0.05
        values[places] = random.choice(SPECIALS, places.sum()).astype(dtype.numpy)
    return values


def geometry(random: np.random.Generator, rank: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Sizes, strides, dilations and borders of a window, and extents that it fits."""
    sizes = tuple(int(n) for n in random.integers(1, 5, rank))
    strides = tuple(int(n) for n in random.integers(1, 4, rank))
    dilations = tuple(int(n) for n in random.integers(1, 3, rank))
    lo, hi = (tuple(int(n) for n in random.integers(0, 4, rank)) for _ in range(2))
    extents = [
        max(1, (size - 1) * dilation + 1 - low - high) + int(random.integers(0, 21))
        for size, dilation, low, high in zip(sizes, dilations, lo, hi, strict=True)
    ]
    return [sizes, strides, dilations, lo, hi], extents


def check(program: Program, arguments: dict[str, Array], whole: bool, exact: bool) -> None:
    """The program's kernels equal the interpreter, on one thread and on two."""
    schedule = one_dispatch(program) if whole else one_dispatch_per_node(program)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)
    for threads in (1, 2):
        out = compile_schedule(schedule, threads).run(arguments)
        for name, values in expected.items():
            assert compare(values, out[name], exact) is None, (str(program), name)


@pytest.mark.parametrize("seed", deep_but(seeds(3, 300), seeds(6, 300)))
@pytest.mark.parametrize("last", [True, False])
def test_pools(last: bool, seed: int) -> None:
    """Along the last two axes, as of channels-first tensors, or with the columns behind them."""
    random = np.random.default_rng([seed, last])
    dtype = DTYPES[seed % len(DTYPES)]
    f = FUNCTIONS[int(random.integers(len(FUNCTIONS)))]
    parts, extents = geometry(random, 2)
    columns = int(random.choice([1, 3, 8, 16, 37]))
    before, after = ((2, 3), ()) if last else ((2,), (columns,))
    plain = ((1,), (1,), (1,), (0,), (0,))
    sizes, strides, dilations, lo, hi = (
        (*one * len(before), *part, *one * len(after))
        for part, one in zip(parts, plain, strict=True)
    )
    shape = (*before, *extents, *after)
    fill = reduction_identity(f, dtype) if random.random() < 0.7 else 2
    build = Builder()
    x = build.input("x", dtype, shape)
    seen = build.unary("neg", x) if random.random() < 0.5 else x
    result = build.pool(f, seen, build.window(dtype, sizes, strides, dilations, lo, hi, fill))
    if random.random() < 0.5:
        result = build.binary("max", result, build.unary("neg", result))
    program = build.program({"y": result})
    check(program, {"x": draw(random, dtype, shape)}, True, f != "prod" or not dtype.is_float)


@pytest.mark.parametrize("seed", deep_but(seeds(3, 200), seeds(5, 200)))
@pytest.mark.parametrize("octets", [None, DType.U8, DType.I8])
def test_depthwise_convolutions(octets: DType | None, seed: int) -> None:
    """In one to three dimensions, with a multiplier of channels, and an epilogue; of floats that
    come from octets, of which one becomes the fill or none does."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)] if octets is None else DType.F32
    rank = int(random.integers(1, 4))
    parts, extents = geometry(random, rank)
    channels, multiplier = int(random.choice([3, 16, 24, 37])), int(random.integers(1, 3))
    fill = int(random.integers(0, 2))
    shape = (2, *(min(extent, 12) for extent in extents), channels)
    parts[0] = tuple(min(size, 3) for size in parts[0]) if rank == 3 else parts[0]
    weight = draw(random, dtype, (*parts[0], 1, channels * multiplier))
    build = Builder()
    x = seen = build.input("x", octets or dtype, shape)
    if octets is not None:
        zero, scale = (
            build.broadcast(build.constant(np.full((1,) * len(shape), value), kind), shape)
            for value, kind in ((random.choice([0, 3, 119, 300]), DType.I16), (0.25, DType.F32))
        )
        moved = build.binary("sub", build.cast(x, DType.I16), zero)
        seen = build.binary("mul", build.cast(moved, DType.F32), scale)
    sizes, strides, dilations, lo, hi = parts
    window = build.window(dtype, sizes, strides, dilations, lo, hi, fill)
    result = build.conv(seen, build.constant(weight), window, channels)
    if random.random() < 0.5:
        result = build.unary("relu", result)
    program = build.program({"y": result})
    values = draw(random, dtype, shape) if octets is None else random.integers(-128, 256, shape)
    check(program, {"x": values.astype((octets or dtype).numpy)}, True, exact=True)


@pytest.mark.parametrize("seed", deep_but(seeds(3, 200), seeds(5, 200)))
def test_depthwise_convolutions_of_channels_first_tensors(seed: int) -> None:
    """Along the contiguous axis, whose rows are cut by slices, with an epilogue that may read rows
    at a distance."""
    random = np.random.default_rng([seed, 1])
    dtype = [DType.F32, DType.F64, DType.F16, DType.F32, DType.BF16][seed % 5]
    rank = int(random.integers(1, 4))
    parts, extents = geometry(random, rank)
    if rank == 3:
        extents = [min(extent, 9) for extent in extents]
        parts[0] = (1, *parts[0][1:])
        parts[1:] = [(1, *parts[1][1:]), (1, *parts[2][1:])] + [(0, *p[1:]) for p in parts[3:]]
    extents[-1] += int(random.choice([0, 40, 80]))
    channels, batch = int(random.choice([2, 3, 5])), int(random.integers(1, 3))
    build = Builder()
    shape = (batch, channels, *extents)
    x = build.input("x", dtype, shape)
    weight = draw(random, dtype, (*parts[0], 1, channels))
    w = build.input("w", dtype, weight.shape)
    sizes, strides, dilations, lo, hi = parts
    fill = int(random.integers(0, 2))
    window = build.window(dtype, sizes, strides, dilations, lo, hi, fill)
    order = (0, *range(2, rank + 2), 1)
    back = (0, rank + 1, *range(1, rank + 1))
    result = build.conv(build.transpose(x, order), w, window, channels)
    if random.random() < 0.5:
        result = build.unary("relu", result)
    result = build.transpose(result, back)
    arguments = {"x": draw(random, dtype, shape), "w": weight}
    if random.random() < 0.5:
        wide = [
            (extent + low + high - (size - 1) * dilation - 1) // stride + 1
            for extent, size, stride, dilation, low, high in zip(extents, *parts, strict=True)
        ]
        one = (1, 1, *wide[:-1], int(random.choice([1, wide[-1]])))
        row = build.input("row", dtype, one)
        arguments["row"] = draw(random, dtype, one)
        result = build.binary("add", result, build.broadcast(row, (batch, channels, *wide)))
    check(build.program({"y": result}), arguments, True, exact=True)


def test_depthwise_windows_with_more_rows_than_registers() -> None:
    """Weights of a column of taps are not held; special values among the pixels."""
    random = np.random.default_rng(2)
    high = min(host_target().registers - 8, MOST_TAPS)
    shape, weight = (1, 2, high + 2, 21), random.integers(-3, 4, (high, 3, 1, 2))
    build = Builder()
    x = build.transpose(build.input("x", DType.F32, shape), (0, 2, 3, 1))
    window = build.window(DType.F32, (high, 3), None, None, (1, 1), (2, 1), 0)
    result = build.conv(x, build.constant(weight.astype(np.float32)), window, 2)
    program = build.program({"y": build.transpose(result, (0, 3, 1, 2))})
    kernels = compile_schedule(one_dispatch(program), 1).executables()
    assert any(f"_f32_{high}_1_1_at" in kernel.source for kernel in kernels)
    given = random.integers(-3, 4, shape).astype(np.float32)
    given[0, :, 2, 3], given[0, 1, high, 15:17] = np.inf, (np.nan, -np.inf)
    check(program, {"x": given}, True, exact=True)


@pytest.mark.parametrize(("edge", "size", "stride"), [(56, 7, 1), (112, 3, 2)])
def test_units_compute_no_rows_beyond_the_last(edge: int, size: int, stride: int) -> None:
    build = Builder()
    x = build.transpose(build.input("x", DType.F32, (1, 2, edge, edge)), (0, 2, 3, 1))
    border = (size // 2,) * 2
    window = build.window(DType.F32, (size,) * 2, (stride,) * 2, None, border, border, 0)
    weights = build.constant(np.ones((size, size, 1, 2), np.float32))
    result = build.transpose(build.conv(x, weights, window, 2), (0, 3, 1, 2))
    schedule = one_dispatch(build.program({"y": result}))
    (dispatch,) = schedule.dispatches
    found = planes(schedule, dispatch)
    assert found is not None
    writer = ConvolvedWriter(found)
    rows, results = writer.rows, edge // stride
    units = [min(writer.block, results - top) for top in range(0, results, writer.block)]
    assert sum(-(-unit // rows) * rows for unit in units) == results


@pytest.mark.parametrize("seed", deep_but(seeds(2, 60), seeds(3, 60)))
def test_convolutions_of_single_pixels_of_channels_first_tensors(seed: int) -> None:
    """Pixels are the columns, also where slices and what follows keep rows of them apart."""
    random = np.random.default_rng([seed, 2])
    dtype = [DType.F32, DType.F64, DType.F16][seed % 3]
    batch, depth, filters, high, wide = (int(n) for n in random.integers(1, [3, 30, 40, 7, 90]))
    wide += 8
    build = Builder()
    shape, whole = (batch, depth, high, wide), (batch, filters, high, wide)
    x = build.input("x", dtype, (*shape[:-1], wide + 3))
    pixels = build.transpose(build.slice(x, (0,) * 4, shape), (0, 2, 3, 1))
    weight = build.constant(draw(random, dtype, (1, 1, depth, filters)))
    window = build.window(dtype, (1, 1), None, None, (0, 0), (0, 0), 0)
    result = build.transpose(build.conv(pixels, weight, window), (0, 3, 1, 2))
    row = build.input("row", dtype, (1, filters, high, 1))
    result = build.binary("max", result, build.broadcast(row, whole))
    program = build.program({"y": result})
    (kernel,) = compile_schedule(one_dispatch(program), 1).executables()
    assert ("panel_offset" in kernel.source) == (dtype is not DType.F16)
    arguments = {"x": (*shape[:-1], wide + 3), "row": (1, filters, high, 1)}
    drawn = {name: draw(random, dtype, extents) for name, extents in arguments.items()}
    check(program, drawn, True, exact=True)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("depth", deep_but([4], [2, 4, 8]))
def test_small_groups_share_a_vector(depth: int, first: bool, dtype: DType) -> None:
    """What is not finite stays in its own group; rows that are no words side by side are copied."""
    random = np.random.default_rng(depth)
    lanes = host_target().lanes
    channels, shared = 3 * max(lanes, depth), lanes >= depth
    for size, stride, dilation, fill in ((3, 1, 1, 0), (3, 2, 1, 1), (1, 1, 1, 0), (2, 1, 2, 0)):
        build = Builder()
        shape = (2, channels, 7, 9) if first else (2, 7, 9, channels)
        x = build.input("x", dtype, shape)
        x = build.transpose(x, (0, 2, 3, 1)) if first else x
        pads, steps = (size // 2, size // 2), (stride, stride)
        window = build.window(dtype, (size, size), steps, (dilation,) * 2, pads, pads, fill)
        weight = random.integers(-3, 4, (size, size, depth, channels)).astype(dtype.numpy)
        result = build.conv(x, build.constant(weight), window, channels // depth)
        program = build.program({"y": build.unary("relu", result)})
        (kernel,) = compile_schedule(one_dispatch(program), 1).executables()
        in_place = dtype is DType.F32 and not first
        assert (f"g{depth}(" in kernel.source) == (shared and (in_place or size > 1))
        arguments = {"x": draw(random, dtype, shape)}
        arguments["x"][0, 3, 4, 5] = np.inf
        check(program, arguments, True, exact=True)


@pytest.mark.parametrize("sizes", deep_but([(5, 5), (1, 31)], [(5, 5), (1, 31), (7, 7), (11, 11)]))
def test_large_depthwise_windows(sizes: tuple[int, int]) -> None:
    """Some of their taps are loops; the last results of a row overlap those before."""
    random = np.random.default_rng(sizes[0])
    build = Builder()
    x = build.input("x", DType.F32, (1, 9, 10, 20))
    border = (sizes[0] // 2, sizes[1] // 2)
    window = build.window(DType.F32, sizes, (1, 1), (1, 1), border, border, 0)
    weight = draw(random, DType.F32, (*sizes, 1, 20))
    weight = np.nan_to_num(weight, posinf=1, neginf=-1)
    result = build.conv(x, build.constant(weight), window, 20)
    program = build.program({"y": build.unary("relu", result)})
    arguments = {"x": draw(random, DType.F32, (1, 9, 10, 20))}
    check(program, arguments, True, exact=True)


@pytest.mark.parametrize("seed", [0, 1])
def test_results_that_read_along_another_axis(seed: int) -> None:
    """What follows the pool reads a tensor that is transposed, at each result or at all of them."""
    random = np.random.default_rng(seed)
    build = Builder()
    x = build.input("x", DType.F32, (1, 13, 40))
    z, row = build.input("z", DType.F32, (40, 13)), build.input("row", DType.F32, (40, 3))
    window = build.window(DType.F32, (1, 5, 1), None, None, (0, 2, 0), (0, 2, 0), 0)
    turned = build.reshape(build.transpose(z, (1, 0)), (1, 13, 40))
    first = build.slice(row, (0, 1), (40, 1))
    shared = build.broadcast(build.reshape(first, (1, 1, 40)), (1, 13, 40))
    result = build.binary("mul", build.pool("sum", x, window), turned)
    program = build.program({"y": build.binary("sub", result, shared)})
    given = {
        "x": draw(random, DType.F32, (1, 13, 40)), "z": draw(random, DType.F32, (40, 13)),
        "row": draw(random, DType.F32, (40, 3)),
    }  # fmt: skip
    check(program, given, True, exact=True)


def test_neighbouring_results_share_what_they_read() -> None:
    """Four results of a 3×3 window see six columns of three rows."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 9, 12, 32))
    window = build.window(DType.F32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0)
    weight = build.constant(np.ones((3, 3, 1, 32), np.float32))
    program = build.program({"y": build.conv(x, weight, window, 32)})
    (kernel,) = compile_schedule(one_dispatch(program), 1).executables()
    reads = [line for line in kernel.source.splitlines() if "read_f32(" in line]
    assert len(reads) == 6 * 3 + 9


@pytest.mark.parametrize(
    ("function", "dtype", "step"),
    [
        ("max", DType.F32, 2),
        ("min", DType.F64, 1),
        ("sum", DType.F32, 2),
        ("max", DType.F16, 2),
        ("sum", DType.BF16, 2),
    ],
)
@pytest.mark.parametrize("computed", [False, True])
def test_whole_vectors_of_a_row_come_to_scratch(
    computed: bool, function: str, dtype: DType, step: int
) -> None:  # fmt: skip
    """Rows that are read as they are, and computed ones, before a fill that is not the identity."""
    build = Builder()
    x = build.input("x", dtype, (2, 3, 7, 37))
    ones, border = (1, 1), (0, 0, 1, 2)
    sizes, steps = (*ones, 3, 3), (*ones, step, step)
    window = build.window(dtype, sizes, steps, None, border, border, -3)
    seen = build.unary("neg", x) if computed else x
    program = build.program({"y": build.pool(function, seen, window)})
    values = draw(np.random.default_rng(step), dtype, (2, 3, 7, 37))
    values[0, 0, 2, 5:9] = np.nan, -np.nan, np.inf, -np.inf
    values[0, 1] = np.where(np.isfinite(values[0, 1]), -0.0, 0.0)
    check(program, {"x": values}, True, True)
