"""The text and the arguments of a kernel for Winograd's F(2×2, 3×3): see `rewrite/ops/winograd.py`.

    for each unit (block of tiles, panel of columns) of this thread's share
        the transformed tiles of the block                  (once per block)
        for each piece of the depth
            the panel's taps transformed                    (once, where they are the same)
            for each of the 16 sums
                for each run of tiles
                    sums += tiles · panel                   (the microkernel of all contractions)
        for each tile
            its 4 results; where one is not finite or huge, these results tap by tap
            the epilogue of those that exist

Weights are taps in memory: fewer bytes than what they are transformed to, which stays in the second
cache. Tiles may overflow it, because smaller blocks would transform weights more often. A unit's
results do not depend on which thread computes it, nor on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from satura.backend.cache_lines import CACHE_LINE, aligned_empty
from satura.backend.contraction.emit import Epilogue
from satura.backend.contraction.scratch import Layout
from satura.backend.contraction.shares import row_blocks
from satura.backend.contraction.tile import (
    Tile,
    lanes_of,
    microkernel_lines,
    panel_columns,
    step_cycles,
    tile_name,
)  # fmt: skip
from satura.backend.emit.text import INDENT, indent, kernel_text
from satura.backend.helpers.winograd_tiles import deepest, weights_pitch
from satura.backend.jit.machine_code import KernelSource
from satura.backend.lower.body import Argument
from satura.backend.sizes.size import defer
from satura.rewrite.ops.winograd import RESULTS, TAPS, TILE
from satura.rewrite.types.tensor_type import Array

_F32, _WORD, _PAGE = 4, 8, 4096
_SUMS = TILE**2
_BLOCK_BYTES = 2 * 1024 * 1024  # of transformed tiles and of their products: stay in the last cache
_TILES_PER_WEIGHTS = 7  # that take as long as it takes to read and transform weights once
_OF_WEIGHTS, _OF_PIXELS = 60, 30  # cycles to read and transform vectors of taps and of tiles
_MOST_TILES = 96  # where larger blocks save no transform of weights
LARGEST_WEIGHT = float(np.finfo(np.float32).max) / TAPS**2
"""A kernel with larger elements may have none that is finite once it is transformed."""

PARAMETERS = (
    "left", "right", "scratch", "scratch_pitch", "blocks", "panels", "tiles", "columns",
    "depth", "down", "across", "height", "width", "stride0", "stride1", "stride2", "lo1", "lo2",
    "input1", "input2", "fill", "steps", "points_offset", "rows_offset", "hops_offset",
    "fill_offset", "block_offset", "block_pitch", "weights_offset", "sums_offset", "sums_pitch",
    "results_offset",
)  # fmt: skip
"""Names of the first words of the argument table; the epilogue's follow."""


@dataclass(frozen=True)
class WinogradCall:
    """One call. `right` are taps as of `packed_taps`; strides, of images, rows and pixels, are in
    bytes. `space` is that of the result, `input` that of the operand."""

    left: Argument
    right: Argument
    scratch: Argument
    images: int
    space: tuple[int, int]
    input: tuple[int, int]
    lo: tuple[int, int]
    strides: tuple[int, int, int]
    columns: int
    depth: int
    fill: float = 0.0

    @property
    def tiles(self) -> int:
        return self.images * prod(-(-extent // RESULTS) for extent in self.space)


def packed_taps(w: Array, width: int) -> Array:
    """w [3, 3, depth, columns] as [panels, 3, 3, depth, width], filled up with zeros."""
    *others, columns = w.shape
    result = aligned_empty((-(-columns // width), *others, width), w.dtype)
    for panel, target in enumerate(result):
        some = w[..., panel * width : (panel + 1) * width]
        target[..., : some.shape[-1]] = some
        target[..., some.shape[-1] :] = 0
    return result


def winograd_plan(tile: Tile, call: WinogradCall, threads: int) -> tuple[tuple[Argument, ...], int]:
    """Values for `PARAMETERS`, and the scratch bytes that each thread needs."""
    tallest, width = tile.rows[0], panel_columns(tile)
    panels = -(-call.columns // width)
    steps = -(-call.depth // deepest(tile.vectors))
    blocks = row_blocks(
        call.tiles, 1, panels, threads, _tiles_that_fit(call.depth, panels, steps, width, tallest),
        tallest, 1, _SUMS * call.depth, tile.vectors, width // tile.vectors,
        _tiles_around(panels, steps),
    )  # fmt: skip
    most = -(-call.tiles // blocks)
    down, across = (-(-extent // RESULTS) for extent in call.space)
    layout = Layout()
    take = layout.take
    block_pitch = _spread(most * call.depth * _F32)
    sums_pitch = _spread((most + tallest) * width * _F32)
    values: dict[str, Argument] = {
        "left": call.left, "right": call.right, "scratch": call.scratch,
        "blocks": blocks, "panels": panels, "tiles": call.tiles, "columns": call.columns,
        "depth": call.depth, "down": down, "across": across,
        "height": call.space[0], "width": call.space[1],
        "stride0": call.strides[0], "stride1": call.strides[1], "stride2": call.strides[2],
        "lo1": call.lo[0], "lo2": call.lo[1], "input1": call.input[0], "input2": call.input[1],
        "fill": int(np.float32(call.fill).view(np.uint32)),
        "steps": steps,
        "points_offset": take(_SUMS * _WORD), "rows_offset": take((most + tallest) * _WORD),
        "hops_offset": take(_WORD), "fill_offset": take(call.depth * _F32),
        "block_offset": take(_SUMS * block_pitch), "block_pitch": block_pitch,
        "weights_offset": take((_SUMS - 4) * weights_pitch(tile.vectors)),
        "sums_offset": take(_SUMS * sums_pitch), "sums_pitch": sums_pitch,
        "results_offset": take(RESULTS**2 * width * _F32 + _WORD),
    }  # fmt: skip
    values["scratch_pitch"] = layout.size
    return tuple(values[name] for name in PARAMETERS), layout.size


def unit_cycles(depth: int, tile: Tile, tiles: int) -> float:
    """About how many cycles of a core a unit of so many `tiles` takes, which begins a block."""
    runs = -(-tiles // tile.rows[0])
    products = _SUMS * depth * runs * step_cycles(tile, -(-tiles // runs))
    pixels = _OF_PIXELS * tiles * depth / lanes_of(tile.products)
    return products + pixels + _OF_WEIGHTS * depth * tile.vectors


def _spread(size: int) -> int:
    """A pitch of at least `size`, at which 16 neighbours share no set of the first cache."""
    return -(-size // _PAGE) * _PAGE + _PAGE // _SUMS


@defer
def _tiles_that_fit(depth: int, panels: int, steps: int, width: int, tallest: int) -> int:
    """How many tiles a block may have: what fits the last cache, or fewer where weights are not
    transformed anew for each."""
    fits = max(_BLOCK_BYTES // (_SUMS * _F32 * (depth + width)), 4 * tallest)
    return fits if panels * steps > 1 else min(_MOST_TILES, fits)


@defer
def _tiles_around(panels: int, steps: int) -> int:
    """How many tiles take as long as the weights of a block and panel. It is never 0."""
    return _TILES_PER_WEIGHTS if panels * steps > 1 else 1


def winograd_source(name: str, tile: Tile, epilogue: Epilogue) -> KernelSource:
    """The kernel of all calls with this tile and epilogue."""
    return KernelSource(name, kernel_text(_kernel(tile, epilogue)))


def _kernel(tile: Tile, epilogue: Epilogue) -> Iterator[str]:
    for word, name in enumerate(PARAMETERS):
        yield f"{name} = load_int64(args, {word})"
    yield "scratch += thread * scratch_pitch"
    yield "points = scratch + points_offset"
    yield "lines = scratch + rows_offset"
    yield "hops = scratch + hops_offset"
    yield "store_int64(hops, 0, 0)"
    yield "results = scratch + results_offset"
    yield "fill_value = f32_of_bits(fill)"
    yield "fill_page = scratch + fill_offset"
    yield "for i in range(depth):"
    yield f"{INDENT}store_f32(fill_page, i, fill_value)"
    yield from epilogue.setup_lines()
    yield "units = blocks * panels"
    yield "weights = scratch + weights_offset"
    yield "built = -1"
    yield "transformed = -1"
    yield "end = units * (thread + 1) // threads"
    yield "for unit in range(units * thread // threads, end):"
    yield from indent(1, _unit(tile, epilogue))


def _unit(tile: Tile, epilogue: Epilogue) -> Iterator[str]:
    columns = panel_columns(tile)
    yield "panel = unit % panels"
    yield "block = unit // panels"
    yield "first_tile = tiles * block // blocks"
    yield "tile_count = tiles * (block + 1) // blocks - first_tile"
    yield "if block != built:"
    yield from indent(1, ["built = block", *_transforming_lines(tile)])
    yield f"first_column = panel * {columns}"
    yield f"column_count = min({columns}, columns - first_column)"
    yield from _product_lines(tile)
    yield from _first_tile()
    yield "sums = scratch + sums_offset"
    yield "for tile in range(tile_count):"
    body = [
        f"winograd_results_{tile.vectors}(sums, sums_pitch, results)",
        f"sums += {columns * _F32}",
        f"if load_int64(results, {RESULTS**2 * columns * _F32 // _WORD}) != 0:",
        *indent(1, _corners(columns, _exact_lines(columns))),
        *_corners(columns, _epilogue_lines(epilogue)),
        *_next_tile(),
    ]
    yield from indent(1, body)


def _first_tile() -> Iterator[str]:
    """`row0`, `tile1` and `tile2`: the image and the place in it of the block's first tile."""
    yield "tile2 = first_tile % across"
    yield "tile1 = first_tile // across % down"
    yield "row0 = first_tile // across // down"


def _next_tile() -> Iterator[str]:
    yield "tile2 += 1"
    yield "if tile2 == across:"
    yield f"{INDENT}tile2 = 0"
    yield f"{INDENT}tile1 += 1"
    yield f"{INDENT}if tile1 == down:"
    yield f"{INDENT * 2}tile1 = 0"
    yield f"{INDENT * 2}row0 += 1"


def _transforming_lines(tile: Tile) -> Iterator[str]:
    """The block's transformed tiles, and the table of their addresses; what the microkernel reads
    beyond its end repeats the last one."""
    yield from _first_tile()
    yield "target = scratch + block_offset"
    yield "for tile in range(tile_count):"
    body = [
        f"first1 = tile1 * {RESULTS} - lo1",
        f"first2 = tile2 * {RESULTS} - lo2",
        "origin = left + row0 * stride0 + first1 * stride1 + first2 * stride2",
        f"rows_inside = first1 >= 0 and first1 + {TILE} <= input1",
        f"if rows_inside and first2 >= 0 and first2 + {TILE} <= input2:",
    ]
    steps = [(i, j) for i in range(TILE) for j in range(TILE)]
    body += [
        f"{INDENT}store_int64(points, {TILE * i + j}, origin + {i} * stride1 + {j} * stride2)"
        for i, j in steps
    ]
    border = [
        "place = fill_page",
        "inside = first1 + i >= 0 and first1 + i < input1",
        "if inside and first2 + j >= 0 and first2 + j < input2:",
        f"{INDENT}place = origin + i * stride1 + j * stride2",
        f"store_int64(points, {TILE} * i + j, place)",
    ]
    body += ["else:", f"{INDENT}for i in range({TILE}):", f"{INDENT * 2}for j in range({TILE}):"]
    body += indent(3, border)
    body += [
        "winograd_tile(points, target, block_pitch, depth)",
        "store_int64(lines, tile, target)",
    ]
    body += [f"target += depth * {_F32}", *_next_tile()]
    yield from indent(1, body)
    yield f"for tile in range(tile_count, tile_count + {tile.rows[0]}):"
    yield f"{INDENT}store_int64(lines, tile, target - depth * {_F32})"


def _product_lines(tile: Tile) -> Iterator[str]:
    """The 16 products of the block's tiles with the panel, in runs of nearly equal length.

    Only the last run is shorter than a microkernel: what one adds beyond its run would stay in the
    sums of the next.
    """
    tallest, columns = tile.rows[0], panel_columns(tile)
    line = columns * _F32
    yield f"runs = (tile_count + {tallest - 1}) // {tallest}"
    yield f"least = max(tile_count // runs, {tile.rows[-1]})"
    yield "larger = tile_count - least * runs"
    yield f"pitch = depth * {line}"  # of taps
    yield f"taps = right + panel * {TAPS**2} * pitch"
    yield "for step in range(steps):"
    yield f"{INDENT}first_depth = depth * step // steps"
    yield f"{INDENT}step_depth = depth * (step + 1) // steps - first_depth"
    yield f"{INDENT}if steps > 1 or panel != transformed:"
    yield f"{INDENT * 2}winograd_weights_{tile.vectors}(taps, pitch, weights, step_depth)"
    yield f"{INDENT * 2}transformed = panel"
    yield f"{INDENT}next_taps = taps + step_depth * {line}"
    yield f"{INDENT}if step + 1 == steps:"
    yield f"{INDENT * 2}next_taps = right + (panel + 1) % panels * {TAPS**2} * pitch"
    yield f"{INDENT}fetched = 0"
    yield f"{INDENT}made = weights"
    yield f"{INDENT}for part in range({_SUMS}):"
    body = [
        "table = lines",
        "row = part // 4",
        "column = part % 4",
        "panel_part = made",
        "if row % 3 == 0 and column % 3 == 0:",
        f"{INDENT}panel_part = taps + (row // 3 * 6 + column // 3 * 2) * pitch",
        "else:",
        f"{INDENT}made += {weights_pitch(tile.vectors)}",
        "offset = part * block_pitch + first_depth * 4",
        "sums = scratch + sums_offset + part * sums_pitch",
        "left_over = tile_count",
        "for run in range(runs):",
    ]
    lines = -(-line // CACHE_LINE)
    arguments = "table, 0, hops, 1, step_depth, offset, panel_part, ahead, sums, first_depth"
    step = [
        "size = min(least + (1 if run < larger else 0), left_over)",
        "left_over -= size",
        "ahead = panel_part",
        f"if fetched < {TAPS**2 * lines}:",  # each run fetches its part of what comes next
        f"{INDENT}ahead = next_taps + fetched // {lines} * pitch",
        f"{INDENT}ahead += fetched % {lines} * step_depth * {CACHE_LINE}",
        "fetched += 1",
    ]
    names = [tile_name(rows, tile.vectors) for rows in tile.rows]
    step += microkernel_lines(tile, names, arguments)
    step += [f"table += size * {_WORD}", f"sums += size * {columns * _F32}"]
    yield from indent(2, [*body, *indent(1, step)])
    yield f"{INDENT}taps += step_depth * {line}"


def _corners(columns: int, body: Iterator[str]) -> Iterator[str]:
    """`body` for those results of a tile that exist, at row1 and row2; theirs are
    `accumulators`."""
    yield f"for corner in range({RESULTS**2}):"
    yield f"{INDENT}row1 = tile1 * {RESULTS} + corner // {RESULTS}"
    yield f"{INDENT}row2 = tile2 * {RESULTS} + corner % {RESULTS}"
    yield f"{INDENT}accumulators = results + corner * {columns * _F32}"
    yield f"{INDENT}if row1 < height and row2 < width:"
    yield from indent(2, body)


def _exact_lines(columns: int) -> Iterator[str]:
    """A result as the sum over taps and depth, in the order of the microkernel of convolutions."""
    yield "for index in range(column_count):"
    yield f"{INDENT}factor = right + panel * depth * {TAPS**2 * columns * _F32} + index * {_F32}"
    yield f"{INDENT}total = f32(0)"
    yield f"{INDENT}for tap1 in range({TAPS}):"
    yield f"{INDENT * 2}for tap2 in range({TAPS}):"
    body = [
        "at1 = row1 + tap1 - lo1",
        "at2 = row2 + tap2 - lo2",
        "place = fill_page",
        "inside = at1 >= 0 and at1 < input1",
        "if inside and at2 >= 0 and at2 < input2:",
        f"{INDENT}place = left + row0 * stride0 + at1 * stride1 + at2 * stride2",
        "for k in range(depth):",
        f"{INDENT}total = mul_add(load_f32(place, k), load_f32(factor, 0), total)",
        f"{INDENT}factor += {columns * _F32}",
    ]
    yield from indent(3, body)
    yield f"{INDENT}store_f32(accumulators, index, total)"


def _epilogue_lines(epilogue: Epilogue) -> Iterator[str]:
    yield from epilogue.row_lines((), ("row0", "row1", "row2"), "first_column")
    yield "for index in range(column_count):"
    accumulator = "get_f32(accumulators, index)"
    yield from indent(1, epilogue.column_lines("first_column", "index", accumulator))
