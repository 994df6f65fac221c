"""The text of a contraction kernel: blocks of rows, panels of columns, tiles, an epilogue.

    for each unit (batch, block of rows, panel of columns) of this thread's share
        addresses of the block's rows, for each tap         (once per block)
        for each step over the panel's taps and depth       (what stays in L2)
            for each tile of rows
                accumulators += rows · panel                (the microkernel)
                after the last step: the epilogue

A unit's results do not depend on which thread computes it, nor on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from satura.backend.contraction import ContractionSpec, panel_columns, parameters
from satura.backend.jit import KernelSource
from satura.backend.microkernels.contraction import tile_name

_F32, _WORD = 4, 8
_INDENT = "    "


class Epilogue(Protocol):
    """What happens to finished accumulators; its arguments start at word `len(parameters(spec))`.

    Names that it introduces must start with `e_`. The column at hand is `first_column + index`.
    """

    def setup_lines(self) -> Iterable[str]:
        """Once per call of the kernel."""

    def row_lines(
        self, batches: tuple[str, ...], rows: tuple[str, ...], first_column: str
    ) -> Iterable[str]:
        """Once per row and panel, given the names of the coordinates (groups left out)."""

    def column_lines(self, first_column: str, index: str, accumulator: str) -> Iterable[str]:
        """For each column; `accumulator` is an f32 expression to be used once."""


def contraction_source(name: str, spec: ContractionSpec, epilogue: Epilogue) -> KernelSource:
    """The kernel of all contractions of this spec and epilogue."""
    lines = ["def kernel(args, thread, threads):"]
    lines += _indented(1, _kernel(spec, epilogue))
    return KernelSource(name, "\n".join(lines) + "\n")


def _kernel(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    tallest = spec.tile.rows[0]
    yield "prefer_wide_vectors()"
    for word, name in enumerate(parameters(spec)):
        yield f"{name} = load_int64(args, {word})"
    yield "scratch += thread * scratch_pitch"
    yield "tables = scratch + table_offset"
    if _joins(spec):
        yield "joined_tiles = scratch + joined_offset"
    if any(spec.windowed):
        yield "fill_value = f32_of_bits(fill)"
    if any(spec.windowed) and not spec.left_packed:
        yield from _fill_page(spec)
    yield from epilogue.setup_lines()
    yield "units = batches * blocks * panels"
    yield "built = -1"
    if spec.right_packed:
        yield "packed = -1"
    yield "for unit in range(units * thread // threads, units * (thread + 1) // threads):"
    yield from _indented(1, _unit(spec, epilogue, tallest))


def _unit(spec: ContractionSpec, epilogue: Epilogue, tallest: int) -> Iterator[str]:
    width = panel_columns(spec.tile)
    yield "panel = unit % panels"
    yield "place = unit // panels"
    yield "block = place % blocks"
    yield "batch = place // blocks"
    yield "first_row = rows * block // blocks"
    yield "row_count = rows * (block + 1) // blocks - first_row"
    yield f"tiles = (row_count + {tallest - 1}) // {tallest}"
    yield "least = row_count // max(tiles, 1)"
    yield "larger = row_count - least * tiles"
    for axis in reversed(range(spec.batches)):
        yield f"b{axis} = batch % batch{axis}" if axis else "b0 = batch"
        if axis:
            yield f"batch //= batch{axis}"
    yield "if place != built:"
    yield from _indented(1, _rows(spec))
    yield from _panel(spec, width)
    group = f"b{spec.batches - 1} * columns + " if spec.grouped else ""
    yield f"first_column = {group}panel * {width}"
    yield f"column_count = min({width}, columns - panel * {width})"
    yield "for step in range(steps):"
    yield from _indented(1, _step(spec, epilogue, width))


def _fill_page(spec: ContractionSpec) -> Iterator[str]:
    """What a tap outside the input sees: as many fill values as a tap can read."""
    yield "fill_page = scratch + fill_offset"
    last = len(spec.windowed) - 1
    count = f"depth * (taps{last} if joins else 1)" if _joins(spec) else "depth"
    yield f"for i in range({count}):"
    yield f"{_INDENT}store_f32(fill_page, i, fill_value)"


def _rows(spec: ContractionSpec) -> Iterator[str]:
    """Tables of row addresses of this block: [taps, slots] per tile, slots as in its microkernel.

    Slots beyond the tile's rows repeat its last row.
    """
    yield "built = place"
    strides = (f" + b{axis} * left_batch{axis}" for axis in range(spec.batches))
    yield f"left_here = left{''.join(strides)}"
    yield from _coordinates(spec, "first_row")
    if spec.left_packed:
        yield from _packed_rows(spec)
        yield "packed_row = scratch + rows_offset"
    yield "for tile in range(tiles):"
    body = [
        "size = least + (1 if tile < larger else 0)",
        f"slots = {_slots(spec)}",
        "table = tables + tile * table_pitch",
    ]
    if _joins(spec):
        body += list(_join_test(spec))
    body += ["for slot in range(slots):"]
    if spec.left_packed:
        body += _indented(1, ["store_int64(table, slot, packed_row)", "if slot + 1 < size:"])
        body += _indented(2, [f"packed_row += depth * {_F32}"])
        body += [f"packed_row += depth * {_F32}"]
    else:
        body += _indented(1, _slot_lines(spec))
        body += list(_advance(spec))
    yield from _indented(1, body)


def _slot_lines(spec: ContractionSpec) -> Iterator[str]:
    """Addresses of one row's taps, and on to the next row."""
    yield from _origin(spec)
    store = "store_int64(table, line, address)"
    yield "line = slot"
    if any(spec.windowed):
        yield from _taps(spec, "fill_page", [store, "line += slots"], joined=_joins(spec))
    else:
        yield "store_int64(table, slot, origin)"
    yield "if slot + 1 < size:"
    yield from _indented(1, _advance(spec))


def _packed_rows(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the block's rows, all taps of a row side by side."""
    yield "copy = scratch + rows_offset"
    yield "for row in range(row_count):"
    yield from _indented(1, _origin(spec))
    if any(spec.windowed):
        count = " * ".join(f"taps{axis}" for axis, on in enumerate(spec.windowed) if on)
        yield f"{_INDENT}tap_depth = depth // max(1, {count})"
        copied = [
            "for k in range(tap_depth):",
            f"{_INDENT}value = fill_value",
            f"{_INDENT}if address != 0:",
            f"{_INDENT * 2}value = load_f32(address + k * left_depth_stride, 0)",
            f"{_INDENT}store_f32(copy, k, value)",
            f"copy += tap_depth * {_F32}",
        ]
        yield from _indented(1, _taps(spec, "0", copied, joined=False))
    else:
        yield f"{_INDENT}for k in range(depth):"
        yield f"{_INDENT * 2}store_f32(copy, k, load_f32(origin + k * left_depth_stride, 0))"
        yield f"{_INDENT}copy += depth * {_F32}"
    yield from _indented(1, _advance(spec))


def _origin(spec: ContractionSpec) -> Iterator[str]:
    """`origin`: the address of what the first tap of the row at r0, r1, … sees."""
    terms = ["left_here"]
    for axis, windowed in enumerate(spec.windowed):
        if windowed:
            yield f"p{axis} = r{axis} * step{axis} - lo{axis}"
        terms.append(f"{'p' if windowed else 'r'}{axis} * stride{axis}")
    yield f"origin = {' + '.join(terms)}"


def _taps(spec: ContractionSpec, outside: str, body: list[str], joined: bool) -> Iterator[str]:
    """`body` for each tap's `address`, which is `outside` where the tap leaves the input."""
    axes = [axis for axis, windowed in enumerate(spec.windowed) if windowed]
    known = "True"
    address = "origin"
    for level, axis in enumerate(axes):
        taps = "last_taps" if joined and axis == axes[-1] else f"taps{axis}"
        lines = [
            f"for t{axis} in range({taps}):",
            f"{_INDENT}at{axis} = p{axis} + t{axis} * dilation{axis}",
            f"{_INDENT}inside{axis} = {known} and 0 <= at{axis} and at{axis} < input{axis}",
        ]
        yield from _indented(level, lines)
        known = f"inside{axis}"
        address += f" + t{axis} * dilation{axis} * stride{axis}"
    final = [f"address = {address}", f"if not {known}:", f"{_INDENT}address = {outside}", *body]
    yield from _indented(len(axes), final)


def _join_test(spec: ContractionSpec) -> Iterator[str]:
    """Whether the taps along the last axis lie side by side and inside, for all of the tile.

    They are then one tap of greater depth.
    """
    last = len(spec.windowed) - 1
    yield f"begin = r{last} * step{last} - lo{last}"
    yield f"end = (r{last} + size - 1) * step{last} - lo{last} + taps{last}"
    yield f"same_line = r{last} + size <= extent{last}"
    yield f"joined = joins != 0 and same_line and begin >= 0 and end <= input{last}"
    yield "store_int64(joined_tiles, tile, 1 if joined else 0)"
    yield f"last_taps = 1 if joined else taps{last}"


def _panel(spec: ContractionSpec, width: int) -> Iterator[str]:
    """`weights`: the address of the panel's weights."""
    strides = (f" + b{axis} * right_batch{axis}" for axis in range(spec.batches))
    here = f"right{''.join(strides)}"
    if not spec.right_packed:
        yield f"weights = {here} + panel * taps * depth * {width * _F32}"
        return
    yield "weights = scratch + panel_offset"
    yield f"source = {here} + panel * {width} * right_column_stride"
    yield f"valid = min({width}, columns - panel * {width})"
    yield "if place // blocks * panels + panel != packed:"
    copy = [
        "packed = place // blocks * panels + panel",
        "for k in range(taps * depth):",
        f"{_INDENT}line = weights + k * {width * _F32}",
        f"{_INDENT}origin = source + k * right_depth_stride",
        f"{_INDENT}if right_column_stride == {_F32}:",
        f"{_INDENT * 2}for n in range(valid):",
        f"{_INDENT * 3}store_f32(line, n, load_f32(origin, n))",
        f"{_INDENT}else:",
        f"{_INDENT * 2}for n in range(valid):",
        f"{_INDENT * 3}store_f32(line, n, load_f32(origin + n * right_column_stride, 0))",
        f"{_INDENT}for n in range(valid, {width}):",
        f"{_INDENT * 2}store_f32(line, n, np.float32(0))",
    ]
    yield from _indented(1, copy)


def _step(spec: ContractionSpec, epilogue: Epilogue, width: int) -> Iterator[str]:
    yield "first_tap = step // depth_steps * tap_step"
    yield "first_depth = step % depth_steps * depth_step"
    yield f"step_weights = weights + (first_tap * depth + first_depth) * {width * _F32}"
    yield "step_taps = min(tap_step, taps - first_tap)"
    yield "step_depth = min(depth_step, depth - first_depth)"
    yield "for tile in range(tiles):"
    body = [
        "size = least + (1 if tile < larger else 0)",
        "accumulators = scratch + tile * tile_pitch",
        f"table = tables + tile * table_pitch + first_tap * {_slots(spec)} * {_WORD}",
    ]
    if _joins(spec):
        last = len(spec.windowed) - 1
        body += [
            "tile_taps = step_taps",
            "tile_depth = step_depth",
            "if load_int64(joined_tiles, tile) != 0:",
            f"{_INDENT}tile_taps = taps // taps{last}",
            f"{_INDENT}tile_depth = depth * taps{last}",
        ]
    body += list(_microkernels(spec))
    body += ["if step == steps - 1:"]
    body += _indented(1, _epilogue(spec, epilogue, width))
    yield from _indented(1, body)


def _microkernels(spec: ContractionSpec) -> Iterator[str]:
    prefix = "tile" if _joins(spec) else "step"
    for place, rows in enumerate(spec.tile.rows):
        arguments = f"table, {prefix}_taps, {prefix}_depth, first_depth * {_F32}, step_weights"
        call = f"{tile_name(rows, spec.tile.vectors)}({arguments}, accumulators, step)"
        if len(spec.tile.rows) == 1:
            yield call
        else:
            final = place == len(spec.tile.rows) - 1
            keyword = "else" if final else f"{'el' if place else ''}if size > {rows - 1}"
            yield f"{keyword}:"
            yield f"{_INDENT}{call}"


def _epilogue(spec: ContractionSpec, epilogue: Epilogue, width: int) -> Iterator[str]:
    batches = tuple(f"b{axis}" for axis in range(spec.batches - spec.grouped))
    rows = tuple(f"r{axis}" for axis in range(len(spec.windowed)))
    yield "row = first_row + tile * least + min(tile, larger)"
    yield from _coordinates(spec, "row")
    yield "for slot in range(size):"
    body = [*epilogue.row_lines(batches, rows, "first_column"), "for index in range(column_count):"]
    accumulator = "load_f32(accumulators, index)"
    body += _indented(1, epilogue.column_lines("first_column", "index", accumulator))
    body += [f"accumulators += {width * _F32}", *_advance(spec)]
    yield from _indented(1, body)


def _coordinates(spec: ContractionSpec, row: str) -> Iterator[str]:
    """r0, r1, … of row number `row`."""
    yield f"rest = {row}"
    for axis in reversed(range(1, len(spec.windowed))):
        yield f"r{axis} = rest % extent{axis}"
        yield f"rest //= extent{axis}"
    yield "r0 = rest"


def _advance(spec: ContractionSpec) -> Iterator[str]:
    """From the coordinates of a row to those of the next."""
    last = len(spec.windowed) - 1
    yield f"r{last} += 1"
    for level, axis in enumerate(reversed(range(1, len(spec.windowed)))):
        lines = [f"if r{axis} == extent{axis}:", f"{_INDENT}r{axis} = 0"]
        lines += [f"{_INDENT}r{axis - 1} += 1"]
        yield from _indented(level, lines)


def _joins(spec: ContractionSpec) -> bool:
    return spec.windowed[-1] and not spec.left_packed


def _slots(spec: ContractionSpec) -> str:
    """How many rows the microkernel of a tile of `size` rows has."""
    expression = str(spec.tile.rows[-1])
    for rows in reversed(spec.tile.rows[:-1]):
        expression = f"({rows} if size > {rows - 1} else {expression})"
    return expression


def _indented(depth: int, lines: Iterable[str]) -> list[str]:
    return [_INDENT * depth + line for line in lines]
