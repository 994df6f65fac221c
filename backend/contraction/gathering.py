"""How a contraction kernel finds its operands: tables of row addresses, packed rows and panels.

What tap t sees of row m stands at `rows[t, m] + hops[t]`. There are three kinds of tile:

    0  border: a tap of some row leaves the input. One line of row addresses per tap, where such a
       tap points to a page of fill values; all hops are 0.
    1  interior: one line of row addresses for all taps, and the taps' distances as hops.
    2  joined: interior, and the taps along the last axis lie side by side in memory: they count
       as one tap of greater depth.

Slots of a line beyond the tile's rows repeat its last row.
"""

from __future__ import annotations

from collections.abc import Iterator

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.contraction.positions import (
    advance,
    coordinates,
    copied_bytes,
    fill_value_text,
    origin_lines,
    seen_words,
    tap_lines,
    windowed_axes,
)
from satura.backend.contraction.row_packing import band_lines, row_packing_lines
from satura.backend.contraction.spec import ContractionSpec
from satura.backend.contraction.tile import Products, Tile
from satura.backend.emit.text import INDENT, indent
from satura.backend.matrices import PARTS
from satura.rewrite.types.tensor_type import DType

_WORD = 8


def gathers(spec: ContractionSpec) -> bool:
    """Whether taps are followed in place, tile by tile, so that tiles are of several kinds."""
    return any(spec.windowed) and (spec.banded or not spec.left_packed)


def preparation_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per call: what all rows share."""
    yield "tables = scratch + table_offset"
    yield "all_hops = scratch + hops_offset"
    if spec.products is Products.PARTS:
        yield "flags = scratch + flags_offset"
        yield "before = scratch + before_offset"
        yield "tags = scratch + tags_offset"  # of kept panels: which ones they are
        yield "for slot in range(kept):"
        yield f"{INDENT}store_int64(tags, slot, 0)"
    if not gathers(spec):
        yield "store_int64(all_hops, 0, 0)"
    if any(spec.windowed):
        yield f"fill_value = {fill_value_text(spec)}"
    if not gathers(spec):
        return
    yield "kinds = scratch + kinds_offset"
    if not spec.banded:
        yield "fill_page = scratch + fill_offset"
        words = seen_words(spec)
        if spec.shares_tables:
            words += f" * batch_extent{spec.batches - 1}"
        yield f"for i in range({words}):"
        yield f"{INDENT}put_{spec.word.value}(fill_page, i, fill_value)"
    yield "line = 0"
    axes = windowed_axes(spec)
    for level, axis in enumerate(axes):
        yield f"{INDENT * level}for tap{axis} in range(taps{axis}):"
    distance = " + ".join(f"tap{axis} * dilation{axis} * stride{axis}" for axis in axes)
    body = [
        f"distance = {distance}",
        "store_int64(all_hops, line, 0)",
        "store_int64(all_hops, taps + line, distance)",
        f"if tap{axes[-1]} == 0:",
        f"{INDENT}store_int64(all_hops, 2 * taps + line // taps{axes[-1]}, distance)",
        "line += 1",
    ]
    yield from indent(len(axes), body)


def panel_bytes(spec: ContractionSpec) -> str:
    """The size of one panel."""
    if spec.tile.part:
        return f"panel_lines * {spec.line}"
    if spec.products is Products.PARTS:
        return f"taps * elements * {spec.line}"
    return f"(taps * depth + {spec.heads}) * {spec.line}"


def row_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per block: the tables of its tiles."""
    batches = spec.batches - spec.shares_tables
    strides = (f" + batch{axis} * left_batch{axis}" for axis in range(batches))
    yield f"left_here = left{''.join(strides)}"
    yield from coordinates(spec, "first_row")
    if spec.products is Products.PARTS:
        yield "for i in range(positions + 1):"
        yield f"{INDENT}store_int64(flags, i, 0)"
    if spec.banded:
        yield from band_lines(spec)
    elif spec.left_packed:
        yield from row_packing_lines(spec)
        yield "origin = scratch + rows_offset"
    yield "for tile in range(tiles):"
    body = [
        tile_size(spec),
        f"slots = {slots(spec.tile)}",
        "table = tables + tile * table_pitch",
    ]
    if spec.left_packed and not spec.banded:
        following = f"origin += {copied_bytes(spec)}"
        body += ["for slot in range(slots):"]
        body += indent(1, ["store_int64(table, slot, origin)"])
        body += indent(1, ["if slot + 1 < size:", f"{INDENT}{following}"])
        body += [following]
    else:
        body += _origins(spec)
    yield from indent(1, body)


def tile_lines(spec: ContractionSpec) -> Iterator[str]:
    """Per tile and step: `table`, `pitch`, `hops`, `tile_taps` and `tile_depth`."""
    yield "table = tables + tile * table_pitch"
    yield "pitch = 0"
    yield "hops = all_hops"
    yield "tile_taps = step_taps"
    yield "tile_depth = step_depth"
    if not gathers(spec):
        return
    last = windowed_axes(spec)[-1]
    yield "kind = load_int64(kinds, tile)"
    yield f"hops += (kind * taps + first_tap) * {_WORD}"
    yield "if kind == 0:"
    yield f"{INDENT}pitch = {slots(spec.tile)} * {_WORD}"
    yield f"{INDENT}table += first_tap * pitch"
    yield "elif kind == 2:"
    yield f"{INDENT}tile_taps = taps // taps{last}"
    yield f"{INDENT}tile_depth = depth * taps{last}"


def panel_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per unit: `weights`, the address of the panel's weights."""
    width = spec.width
    strides = (f" + batch{axis} * right_batch{axis}" for axis in range(spec.batches))
    here = f"right{''.join(strides)}"
    if not spec.right_packed:
        yield f"heads = {here} + panel * {panel_bytes(spec)}"
        lines = "table_lines" if spec.tile.part else str(spec.heads)
        yield f"weights = heads + {lines} * {spec.line}"
        return
    if spec.products is Products.PARTS:
        yield f"source = {here} + panel * {panel_bytes(spec)}"
        yield "place_kept = panel % kept"
        yield "weights = scratch + panel_offset + place_kept * panel_pitch"
        return
    yield "heads = scratch + panel_offset"
    yield f"weights = heads + {spec.heads * spec.line}"
    yield f"source = {here} + panel * {width} * right_column_stride"
    yield f"valid = min({width}, columns - panel * {width})"
    lanes = width // spec.tile.vectors
    if spec.is_integer:
        yield "if piece != packed:"
        yield f"{INDENT}packed = piece"
        yield from indent(1, _integer_panel_lines(spec))
        return
    copied = ["packed = piece"]
    tail = spec.tile.tail * lanes
    copied += copied_panel_lines(width, lanes, spec.dtype, spec.word, "taps * depth", tail)
    if spec.dtype is not spec.word:
        yield "if piece != packed:"
        yield from indent(1, copied)
        return
    yield f"if {is_a_panel(width, spec.word)}:"
    yield f"{INDENT}weights = source"
    yield "elif piece != packed:"
    yield from indent(1, copied)


def slab_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per slab: which part of the depth it has. All slabs but the last have whole chunks."""
    yield "first_word = slab * slab_words"
    yield "slab_depth = min(slab_words, depth - first_word)"
    yield f"chunks = slab_depth // (chunk * {PARTS})"
    yield f"slab_element = first_word // {PARTS} * 2"
    yield f"slab_elements = min(elements - slab_element, slab_depth // {PARTS} * 2)"


def split_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per step: the parts of its weights, if they are not those that are kept there."""
    yield f"first_element = first_depth // {PARTS} * 2"
    yield f"step_elements = min(slab_elements - first_element, step_depth // {PARTS} * 2)"
    first = "first_tap * elements + slab_element + first_element"
    yield f"step_source = source + ({first}) * {spec.line}"
    yield "is_new = tiles > 0 and load_int64(tags, place_kept) != step_source"
    yield "if is_new:"  # the first tile splits the other chunks
    yield f"{INDENT}store_int64(tags, place_kept, step_source)"
    yield f"{INDENT}chunk_of_parts(step_source, weights, step_elements, chunk)"
    yield "step_weights = weights"


def is_a_panel(width: int, word: DType) -> str:
    """Whether what starts at `source` is a panel as it is: whole lines, one after another, whose
    vectors lie in one cache line each."""
    size = word.itemsize
    return (
        f"valid == {width} and right_column_stride == {size}"
        f" and right_depth_stride == {width * size} and source & {CACHE_LINE - 1} == 0"
    )


def copied_panel_lines(
    width: int, lanes: int, dtype: DType, word: DType, depth: str, tail: int = 0
) -> Iterator[str]:
    """Copies `depth` lines from `source` to the panel `weights`, of which `valid` columns are
    there; steps are `right_depth_stride` and `right_column_stride`. Where no more than `tail` are
    there, no more are read."""
    size = width * word.itemsize
    yield f"seen = {width}" + (f" if valid > {tail} else {tail}" if tail else "")
    yield "done = 0"  # lines of which as many columns are there as `copied` says
    yield "copied = 0"
    if dtype is word:
        yield from _transposing_lines(lanes, size, word.itemsize, depth)
        yield from _part_lines(width, lanes, word, depth)
    read, put = f"read_{dtype.value}", f"put_{word.value}"
    yield f"for k in range(done if copied >= seen else 0, {depth}):"
    line = [
        f"line = weights + k * {size}",
        "origin = source + k * right_depth_stride",
        "first = copied if k < done else 0",
        f"if right_column_stride == {dtype.itemsize} and valid == {width}:",
        f"{INDENT}for n in range({width}):",
        f"{INDENT * 2}{put}(line, n, {read}(origin, n))",
        "else:",
        f"{INDENT}for n in range(first, valid):",
        f"{INDENT * 2}{put}(line, n, {read}(origin + n * right_column_stride, 0))",
        "for n in range(max(first, valid), seen):",
        f"{INDENT}{put}(line, n, scalar_{word.value}(0))",
    ]
    yield from indent(1, line)


def _transposing_lines(lanes: int, size: int, word: int, depth: str) -> list[str]:
    """The whole vectors of `done` lines, where the depth is contiguous."""
    return [
        f"if right_depth_stride == {word}:",
        f"{INDENT}done = {depth} // {lanes} * {lanes}",
        f"{INDENT}copied = valid // {lanes} * {lanes}",
        f"{INDENT}for n in range(0, copied, {lanes}):",
        f"{INDENT * 2}for k in range(0, done, {lanes}):",
        f"{INDENT * 3}origin = source + n * right_column_stride + k * {word}",
        f"{INDENT * 3}line = weights + k * {size} + n * {word}",
        f"{INDENT * 3}transpose_block_{8 * word}"
        f"({lanes}, origin, right_column_stride, line, {size})",
    ]


def _part_lines(width: int, lanes: int, word: DType, depth: str) -> list[str]:
    """The vectors of all lines, where columns are contiguous and do not fill the panel."""
    size = word.itemsize
    places = f"source, right_depth_stride, {depth}, weights, {width * size}"
    return [
        f"elif right_column_stride == {size} and valid < {width}:",
        f"{INDENT}put_{word.value}(weights, 0, scalar_{word.value}(0))",
        f"{INDENT}rows_{word.value}_1({places}, valid, weights, 0)",
        f"{INDENT}done = {depth}",
        f"{INDENT}copied = (valid + {lanes - 1}) // {lanes} * {lanes}",
    ]


def tile_size(spec: ContractionSpec) -> str:
    """Sets `size`: how many rows tile number `tile` has."""
    if spec.tile.is_filled:
        tallest = spec.tile.rows[0]
        return f"size = min({tallest}, row_count - tile * {tallest})"
    return "size = least + (1 if tile < larger else 0)"


def slots(tile: Tile) -> str:
    """How many rows the microkernel of a tile of `size` rows has."""
    if tile.part:
        return f"(size + {tile.part - 1}) // {tile.part} * {tile.part}"
    expression = str(tile.rows[-1])
    for rows in reversed(tile.rows[:-1]):
        expression = f"({rows} if size > {rows - 1} else {expression})"
    return expression


def _origins(spec: ContractionSpec) -> Iterator[str]:
    """The first line of a tile's table, its kind, and the other lines of a border tile."""
    axes, every = windowed_axes(spec), range(len(spec.windowed))
    if axes and not spec.banded:
        yield "interior = True"
        for axis in every:
            yield f"saved{axis} = row{axis}"
    yield "for slot in range(slots):"
    body = [*origin_lines(spec), "store_int64(table, slot, origin)"]
    for axis in axes if not spec.banded else ():
        reach = f"position{axis} + (taps{axis} - 1) * dilation{axis}"
        body += [f"interior = interior and position{axis} >= 0 and {reach} < input{axis}"]
    body += ["if slot + 1 < size:", *indent(1, advance(spec))]
    yield from indent(1, body)
    if spec.banded:
        yield "store_int64(kinds, tile, 1 + joins)"
    elif axes:
        yield "if interior:"
        yield f"{INDENT}store_int64(kinds, tile, 1 + joins)"
        yield "else:"
        yield f"{INDENT}store_int64(kinds, tile, 0)"
        border = [f"row{axis} = saved{axis}" for axis in every]
        border += ["for slot in range(slots):"]
        body = [*origin_lines(spec), "line = slot"]
        body += tap_lines(spec, "fill_page", ["store_int64(table, line, address)", "line += slots"])
        body += ["if slot + 1 < size:", *indent(1, advance(spec))]
        yield from indent(1, [*border, *indent(1, body)])
    yield from advance(spec)


def _integer_panel_lines(spec: ContractionSpec) -> Iterator[str]:
    """A panel of pairs of i16, less their zero point, after a line of zeros."""
    width, dtype = spec.width, (spec.right or spec.dtype).value
    yield f"for n in range({width}):"
    yield f"{INDENT}put_i32(heads, n, np.int32(0))"
    yield "zero_right = cast_i16(right_zero)"
    yield "for k in range(taps * depth * 2):"
    yield f"{INDENT}line = weights + k // 2 * {spec.line} + k % 2 * 2"
    yield f"{INDENT}origin = source + k * right_depth_stride"
    yield f"{INDENT}kept = valid if k < right_depth else 0"
    value = f"cast_i16(cast_i16(read_{dtype}(origin + n * right_column_stride, 0)) - zero_right)"
    yield f"{INDENT}for n in range(kept):"
    yield f"{INDENT * 2}put_i16(line, 2 * n, {value})"
    yield f"{INDENT}for n in range(kept, {width}):"
    yield f"{INDENT * 2}put_i16(line, 2 * n, np.int16(0))"
