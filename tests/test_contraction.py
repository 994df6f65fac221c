"""Contraction kernels against NumPy: convolutions and matmuls of every kind of shape."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satura.backend.cache_lines import aligned_empty
from satura.backend.contraction.emit import contraction_source
from satura.backend.contraction.packing import pack_panels
from satura.backend.contraction.plan import contraction_plan
from satura.backend.contraction.spec import (
    ContractionCall,
    ContractionSpec,
    RowAxis,
    parameters,
)  # fmt: skip
from satura.backend.contraction.tile import Products, Tile, choose_tile, panel_columns
from satura.backend.jit.machine_code import kernel_address, kernel_function
from satura.backend.plan.compiled import compile_schedule
from satura.backend.target import host_target
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.ops.reductions import _conv
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch_per_node

# Property tests use one tile, since each kind of kernel takes a second to compile.
_TILES = {
    DType.F32: Tile((6, 5), 4), DType.F64: Tile((6, 5), 4, products=Products.F64),
}  # fmt: skip
_TILE = _TILES[DType.F32]
_FLOATS = deep_but([DType.F32], [DType.F32, DType.F64])
_NEAR = {DType.F32: 1e-5, DType.F64: 1e-14}
_GUARD = 4096  # bytes on both sides of what a kernel may write


@dataclass(frozen=True)
class Store:
    """Epilogue: max(accumulator + bias[column], least) stored with a stride per coordinate."""

    first: int
    coordinates: int
    dtype: DType = DType.F32

    def setup_lines(self) -> Iterable[str]:
        names = ["e_out", "e_bias", *(f"e_stride{i}" for i in range(self.coordinates)), "e_least"]
        for word, name in enumerate(names, start=self.first):
            yield f"{name} = load_int64(args, {word})"
        yield f"e_minimum = scalar_{self.dtype.value}(e_least)"

    def row_lines(
        self, batches: tuple[str, ...], rows: tuple[str, ...], first_column: str
    ) -> Iterable[str]:
        terms = [f"{name} * e_stride{i}" for i, name in enumerate((*batches, *rows))]
        size = self.dtype.itemsize
        yield f"e_line = e_out + {size} * ({first_column}) + {' + '.join(terms)}"
        yield f"e_biases = e_bias + {size} * ({first_column})"

    def fetch_lines(self, count: str) -> Iterable[str]:
        yield "prefetch_to_write(e_line)"

    def column_lines(self, first_column: str, index: str, accumulator: str) -> Iterable[str]:
        dtype = self.dtype.value
        yield f"e_value = {accumulator} + read_{dtype}(e_biases, {index})"
        yield f"write_{dtype}(e_line, {index}, max(e_value, e_minimum))"


def computed(
    spec: ContractionSpec, call: ContractionCall, out: Array, bias: Array, least: float,
    threads: int, planned_for: int | None = None,
) -> None:  # fmt: skip
    """Runs the kernel; `out` has the batch axes, the row axes and the columns."""
    plan = contraction_plan(spec, call, planned_for or threads)
    strides = out.strides[: spec.batches - spec.grouped + len(spec.windowed)]
    epilogue = Store(len(parameters(spec)), len(strides), spec.word)
    source = contraction_source("test", spec, epilogue)
    kernel = kernel_function(kernel_address(source))
    scratch = np.full(plan.scratch_size * threads + 2 * _GUARD, 0x7F, np.uint8)
    start = -scratch.ctypes.data % 64 + 64
    words = [value for value in plan.arguments if isinstance(value, int)]
    words[parameters(spec).index("scratch")] = scratch.ctypes.data + start
    args = np.array(
        [
            *words,
            out.ctypes.data,
            bias.ctypes.data,
            *strides,
            int.from_bytes(np.asarray(least, out.dtype).tobytes(), "little", signed=True),
        ],
        np.int64,
    )
    for thread in reversed(range(threads)):
        kernel(ctypes.c_int64(args.ctypes.data).value, thread, threads)
    assert (scratch[:start] == 0x7F).all()
    assert (scratch[start + plan.scratch_size * threads :] == 0x7F).all()


def draw(shape: tuple[int, ...], seed: int, dtype: DType = DType.F32) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.numpy)


def conv_call(x: Array, panels: Array, window: Window, groups: int, out: Array) -> ContractionCall:
    n, *space, channels = x.shape
    outer = out.shape[1:-1]
    return ContractionCall(
        left=x.ctypes.data,
        right=panels.ctypes.data,
        scratch=0,
        batches=(n, groups),
        left_strides=(x.strides[0], channels // groups * x.strides[-1]),
        right_strides=(0, panels.strides[0]),
        rows=tuple(
            RowAxis(outer[i], x.strides[1 + i], window.strides[i], window.lo[i], space[i],
                    window.sizes[i], window.dilations[i])
            for i in range(window.rank)
        ),
        columns=out.shape[-1] // groups,
        depth=channels // groups,
        fill=float(window.fill.value),
        left_depth_stride=x.strides[-1],
    )  # fmt: skip


def check_conv(x: Array, w: Array, window: Window, groups: int, tile: Tile, threads: int) -> Array:
    exact = _conv(x.astype(np.float64), w.astype(np.float64), in_f64(window), Groups(groups))
    memory = np.full(exact.size + _GUARD // 2, np.nan, x.dtype)
    out = memory[_GUARD // 4 :][: exact.size].reshape(exact.shape)
    bias = draw((out.shape[-1],), 7, DType.of(x.dtype))
    spec = ContractionSpec(
        2, (True,) * window.rank, tile, True, x.strides[-1] != x.itemsize,
        dtype=DType.of(x.dtype), result=DType.of(x.dtype),
    )  # fmt: skip
    panels = pack_panels(w, groups, panel_columns(tile))
    computed(spec, conv_call(x, panels, window, groups, out), out, bias, -0.5, threads)
    assert np.isnan(memory[: _GUARD // 4]).all()
    assert np.isnan(memory[_GUARD // 4 + exact.size :]).all()
    expected = np.maximum(exact + bias.astype(np.float64), -0.5)
    near = _NEAR[DType.of(x.dtype)]
    atol = near * (1 + abs(expected).max(initial=0))
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=near, atol=atol)
    return out


def in_f64(window: Window) -> Window:
    fill = Scalar.of(float(window.fill.value), DType.F64)
    return Window(window.sizes, window.strides, window.dilations, window.lo, window.hi, fill)


@st.composite
def windows(
    draw_: st.DrawFn, rank: int, least: int, most: int = 9
) -> tuple[Window, tuple[int, ...]]:
    """A window and an input that it fits, with up to `most` more positions than it needs."""
    axes = []
    for _ in range(rank):
        size, stride, dilation = (draw_(st.integers(1, n)) for n in (4, 3, 2))
        lo, hi = draw_(st.integers(0, 3)), draw_(st.integers(0, 3))
        reach = dilation * (size - 1) + 1
        extent = max(least, reach - lo - hi + draw_(st.integers(0, most)))
        axes.append((size, stride, dilation, lo, hi, extent))
    sizes, strides, dilations, lo_, hi_, extents = zip(*axes, strict=True)
    fill = Scalar.of(draw_(st.sampled_from([0.0, -1.5, 3.0])), DType.F32)
    return Window(sizes, strides, dilations, lo_, hi_, fill), extents


@pytest.mark.parametrize("dtype", _FLOATS)
@given(
    st.integers(1, 3).flatmap(lambda rank: windows(rank, 1)),
    st.integers(0, 2), st.integers(1, 5), st.integers(1, 70), st.sampled_from([1, 1, 2, 3]),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_convolutions(
    dtype: DType, shapes: tuple[Window, tuple[int, ...]], n: int, channels: int, columns: int,
    groups: int, threads: int, channels_first: bool,
) -> None:  # fmt: skip
    window, extents = shapes
    x = draw((n, *extents, channels * groups), 1, dtype)
    if channels_first:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 1)), 1, -1)
    w = draw((*window.sizes, channels, columns * groups), 2, dtype)
    check_conv(x, w, window, groups, _TILES[dtype], threads)


@pytest.mark.parametrize(
    "tile", deep_but([choose_tile(None, 33)], [_TILE, choose_tile(None, 33), Tile((1,), 1)])
)
@given(
    windows(2, 0, 4), st.integers(0, 3), st.integers(1, 3), st.sampled_from([1, 9, 33]),
    st.integers(1, 2), st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_windows_that_exceed_their_input(
    tile: Tile, shapes: tuple[Window, tuple[int, ...]], n: int, channels: int, columns: int,
    groups: int, threads: int, has_rim: bool,
) -> None:  # fmt: skip
    """Inputs of a few positions: most taps see the border, some tiles see nothing else.

    A rim of NaN around the input would show in any sum that reads beyond it.
    """
    window, extents = shapes
    x = draw((n, *extents, channels * groups), 1)
    if has_rim:
        x = np.pad(x, 1, constant_values=np.nan)[1:-1, 1:-1, 1:-1, 1:-1]
    check_conv(
        x, draw((*window.sizes, channels, columns * groups), 2), window, groups, tile, threads
    )


@pytest.mark.parametrize(
    ("space", "channels", "columns", "kernel", "stride", "border"),
    [
        ((56, 56), 64, 64, 3, 1, 1),
        ((28, 28), 16, 130, 1, 2, 0),
        ((7, 7), 512, 64, 3, 1, 1),  # several steps over the taps
        ((5, 3), 12007, 20, 1, 1, 0),  # several steps over the depth, the last one shorter
        ((4, 4), 10501, 20, 3, 1, 1),  # both
        ((40, 41), 3, 64, 7, 2, 3),  # joined taps, a stem
        ((30, 30), 2, 8, 11, 4, 2),  # more taps than a word has bits
    ],
)
@pytest.mark.parametrize("threads", deep_but([2], [1, 2]))
def test_real_layer_shapes(
    space: tuple[int, int], channels: int, columns: int, kernel: int, stride: int, border: int,
    threads: int,
) -> None:  # fmt: skip
    zero = Scalar.of(0.0, DType.F32)
    window = Window((kernel,) * 2, (stride,) * 2, (1, 1), (border,) * 2, (border,) * 2, zero)
    x = draw((1, *space, channels), 3)
    w = draw((kernel, kernel, channels, columns), 4)
    tile = choose_tile(None, columns)
    check_conv(x, w, window, 1, tile, threads)


def test_blocks_copy_the_positions_that_they_see() -> None:
    """Channels lie apart; the blocks' first rows lie anywhere in the image."""
    fill = Scalar.of(1.5, DType.F32)
    window = Window((3, 2), (2, 1), (1, 2), (2, 1), (0, 2), fill)
    x = np.moveaxis(draw((2, 3, 61, 50), 3), 1, -1)
    check_conv(x, draw((3, 2, 3, 9), 4), window, 1, choose_tile(None, 9), 2)


def test_a_slice_of_channels_is_read_in_place() -> None:
    zero = Scalar.of(0.0, DType.F32)
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), zero)
    x = draw((2, 9, 8, 40), 5)[..., 10:30]
    check_conv(x, draw((3, 3, 20, 33), 6), window, 1, _TILE, 2)


def matmul_call(x: Array, y: Array) -> ContractionCall:
    return ContractionCall(
        left=x.ctypes.data,
        right=y.ctypes.data,
        scratch=0,
        batches=x.shape[:-2],
        left_strides=x.strides[:-2],
        right_strides=y.strides[:-2],
        rows=(RowAxis(x.shape[-2], x.strides[-2]),),
        columns=y.shape[-1],
        depth=x.shape[-1],
        left_depth_stride=x.strides[-1],
        right_depth_stride=y.strides[-2],
        right_column_stride=y.strides[-1],
    )


@pytest.mark.parametrize("dtype", _FLOATS)
@given(
    st.lists(st.integers(1, 3), max_size=2), st.integers(0, 40), st.integers(0, 80),
    st.integers(0, 70), st.booleans(), st.booleans(), st.integers(1, 3),
)  # fmt: skip
@example([2], 130, 64, 128, False, True, 2)
@example([], 700, 3000, 70, True, False, 3)
def test_matmuls_of_two_computed_operands(
    dtype: DType, batches: list[int], m: int, k: int, n: int, x_turned: bool, y_turned: bool,
    threads: int,
) -> None:  # fmt: skip
    x, y = draw((*batches, m, k), 1, dtype), draw((*batches, k, n), 2, dtype)
    x, y = (
        np.ascontiguousarray(each.swapaxes(-1, -2)).swapaxes(-1, -2) if is_turned else each
        for each, is_turned in ((x, x_turned), (y, y_turned))
    )
    spec = ContractionSpec(
        len(batches), (False,), _TILES[dtype], left_packed=x.strides[-1] != x.itemsize,
        right_packed=True, dtype=dtype, result=dtype,
    )  # fmt: skip
    out = np.full((*batches, m, n), np.nan, dtype.numpy)
    bias = draw((n,), 3, dtype)
    computed(spec, matmul_call(x, y), out, bias, -1e30, threads)
    expected = np.matmul(x.astype(np.float64), y.astype(np.float64)) + bias
    near = _NEAR[dtype]
    np.testing.assert_allclose(out, expected, rtol=near, atol=near * (1 + k**0.5))


@pytest.mark.parametrize(
    "tile",
    deep_but([_TILE, Tile((3,), 1)], [_TILE, Tile((3,), 1), Tile((12, 11), 2), Tile((1,), 4)]),
)
def test_results_do_not_depend_on_threads_tiles_or_blocks(tile: Tile) -> None:
    x, w = draw((100, 3000), 1), draw((3000, 200), 2)
    results = []
    for threads, planned_for in [(1, 1), (1, 2), (2, 2), (3, 2), (4, 7)]:
        panels = pack_panels(w, 1, panel_columns(tile))
        out = np.zeros((100, 200), np.float32)
        call = matmul_call(x, panels)
        call = ContractionCall(
            call.left, call.right, 0, (), (), (), call.rows, columns=200, depth=3000
        )
        spec = ContractionSpec(0, (False,), tile)
        computed(spec, call, out, np.zeros(200, np.float32), -1e30, threads, planned_for)
        results.append(out)
    reference = np.zeros((100, 200), np.float32)
    for first in range(0, 3000, 500):  # six steps, of no more than 512
        chain = np.zeros_like(reference)
        for k in range(first, first + 500):  # f64 holds the product exactly: one rounding, as FMAs
            chain = (chain + np.outer(x[:, k].astype(np.float64), w[k])).astype(np.float32)
        reference = reference + chain
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], reference, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_special_values_pass_as_in_numpy(dtype: DType) -> None:
    x, w = np.ones((8, 4), dtype.numpy), np.ones((4, 70), dtype.numpy)
    x[1, 2], x[2, 0], x[3, 1], w[3, 5] = np.nan, np.inf, -np.inf, np.inf
    out = np.zeros((8, 70), dtype.numpy)
    spec = ContractionSpec(0, (False,), _TILES[dtype], dtype=dtype, result=dtype)
    panels = pack_panels(w, 1, spec.width)
    rows = (RowAxis(8, x.strides[0]),)
    call = ContractionCall(
        x.ctypes.data, panels.ctypes.data, 0, (), (), (), rows, columns=70, depth=4
    )
    computed(spec, call, out, np.zeros(70, dtype.numpy), -np.inf, 1)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, np.matmul(x, w))


NARROW = """
import numpy as np
from satura.backend.target import host_target
from tests.test_contraction import check_conv
from satura.backend.contraction.tile import choose_tile
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), Scalar.of(0.0, DType.F32))
draw = np.random.default_rng(0).normal
for columns in (5, 40):
    x = draw(size=(1, 9, 10, 12)).astype(np.float32)
    w = draw(size=(3, 3, 12, columns)).astype(np.float32)
    check_conv(x, w, window, 1, choose_tile(None, columns), 2)
print(host_target().lanes)
"""


@pytest.mark.parametrize("vector_bytes", deep_but([], [16, 32]))
def test_narrower_vectors_give_right_results(
    vector_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_VECTOR_BYTES", str(vector_bytes))
    run = subprocess.run(
        [sys.executable, "-c", NARROW], check=True, capture_output=True, text=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert run.stdout.split()[-1] == str(vector_bytes // 4)


def test_tiles_follow_the_shape() -> None:
    assert choose_tile(1, 1000).rows == (1,)
    assert choose_tile(None, 1000).vectors > choose_tile(None, host_target().lanes).vectors == 1
    assert max(choose_tile(49, 512).rows) > 4


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_tiles_compute_few_rows_beyond_the_last(vector_bytes: int) -> None:
    """No more tiles than the tallest would take, and less than a row too much in each."""
    target = host_target()._replace(vector_bytes=vector_bytes)
    for columns, rows in product((8, 24, 33, 64, 160), range(1, 400)):
        tile, tallest = (choose_tile(each, columns, target) for each in (rows, None))
        tiles = -(-rows // tallest.rows[0])
        assert -(-rows // tile.rows[0]) == tiles
        assert tile.rows[0] * tiles < rows + tiles


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_tiles_compute_few_columns_beyond_the_last(vector_bytes: int) -> None:
    target = host_target()._replace(vector_bytes=vector_bytes)
    for columns in range(1, 400):
        filled = -(-columns // target.lanes)
        width = choose_tile(None, columns, target).vectors
        computed = -(-filled // width) * width
        most = 1.15 if target.registers == 32 else 1.35  # what a tile of one vector costs more
        assert computed <= most * filled
        assert 8 <= choose_tile(None, columns, target).rows[0] * width <= 24
        any_columns = choose_tile(None, columns + 1000, target, any_columns=True)
        assert any_columns == choose_tile(None, 64, target, any_columns=True)


def test_few_registers_have_a_tile_for_24_columns() -> None:
    """Whose microkernel keeps its 12 sums, a row's element and the columns in 16 registers."""
    target = host_target()._replace(vector_bytes=32, triple="x86_64-unknown-linux-gnu")
    assert choose_tile(None, 24, target) == Tile((4, 3), 3)
    assert choose_tile(None, 49, target) == Tile((6, 5), 2)
    assert max(choose_tile(None, 24, target, products=Products.PAIRS).rows) < 4  # and products


@pytest.mark.parametrize("vectors", deep_but([2, 4], [1, 2, 3, 4, 8]))
@pytest.mark.parametrize("start", [0, 1, 16])
def test_right_operands_that_are_panels_already(vectors: int, start: int) -> None:
    """One that fills whole vectors is read where it is, unless its lines start in between."""
    width, random = vectors * host_target().lanes, np.random.default_rng(0)
    build = Builder()
    shapes = {"x": (2, 5, 69), "w": (150 * width,)}
    x, w = (build.input(name, DType.F32, shape) for name, shape in shapes.items())
    part = build.slice(w, (start,), (2 * 69 * width,))
    program = build.program({"y": build.matmul(x, build.reshape(part, (2, 69, width)))})
    arguments = {name: aligned_empty(shape, np.dtype(np.float32)) for name, shape in shapes.items()}
    for each in arguments.values():
        each[...] = random.normal(size=each.shape)
    found = compile_schedule(best_schedule(saturate(program, DEFAULT)), 2).run(arguments)["y"]
    found, expected = (
        np.asarray(each, np.float64) for each in (found, interpret(program, arguments)["y"])
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("extra", deep_but([1], range(1, 4)))
@pytest.mark.parametrize("is_constant", [True, False])
def test_a_last_panel_of_few_vectors(dtype: DType, extra: int, is_constant: bool) -> None:
    """It has microkernels of its own, where all panels would take longer otherwise."""
    lanes = host_target().vector_bytes // dtype.itemsize
    products = Products.F32 if dtype is DType.F32 else Products.F64
    columns = (12 + extra) * lanes - 1
    tile = choose_tile(29, columns, products=products, has_tail=True)
    assert tile.tail == (12 + extra) % tile.vectors
    if extra == 1:
        assert tile.tail == 1
    random = np.random.default_rng(0)
    arguments = {
        "x": random.normal(size=(29, 70)).astype(dtype.numpy),
        "w": random.normal(size=(70, columns)).astype(dtype.numpy),
    }
    build = Builder()
    x = build.input("x", dtype, (29, 70))
    if is_constant:
        w = build.constant(arguments.pop("w"), dtype)
    else:
        w = build.input("w", dtype, (70, columns))
    program = build.program({"y": build.matmul(x, w)})
    found = compile_schedule(one_dispatch_per_node(program), 1).run(arguments)["y"]
    found, expected = (
        np.asarray(each, np.float64) for each in (found, interpret(program, arguments)["y"])
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
