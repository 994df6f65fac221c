"""The text of a contraction kernel: blocks of rows, panels of columns, tiles, an epilogue.

    for each unit (batch, block of rows, group, panel of columns) of this thread's share
        addresses of the block's rows                       (once per block; see emit/gathering)
        for each step over the panel's taps and depth       (what stays in L2)
            for each tile of rows
                accumulators += rows · panel                (the microkernel)
                after the last step: the epilogue

A unit's results do not depend on which thread computes it, nor on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.contraction.gathering import (
    gathers,
    panel_bytes,
    panel_lines,
    preparation_lines,
    row_lines,
    slab_lines,
    slots,
    split_lines,
    tile_lines,
    tile_size,
)  # fmt: skip
from satura.backend.contraction.positions import advance, coordinates
from satura.backend.contraction.spec import ContractionSpec, parameters
from satura.backend.contraction.tile import Products, lanes_of, microkernel_lines
from satura.backend.emit.text import INDENT, indent, kernel_text
from satura.backend.jit.machine_code import KernelSource
from satura.backend.matrices import GROUPS
from satura.rewrite.types.tensor_type import DType

_WORD = 8
_SHALLOW = 512  # rows of greater depth are streams that the CPU fetches ahead itself


class Epilogue(Protocol):
    """What happens to finished accumulators; its arguments start at word `len(parameters(spec))`.

    It may introduce names of a single letter and a number, or with the prefix `e_`: no other name
    here looks so. The column at hand is `first_column + index`.
    """

    def setup_lines(self) -> Iterable[str]:
        """Once per call of the kernel."""

    def row_lines(
        self, batches: tuple[str, ...], rows: tuple[str, ...], first_column: str
    ) -> Iterable[str]:
        """Once per row and panel, given the names of the coordinates (groups left out)."""

    def fetch_lines(self, count: str) -> Iterable[str]:
        """After `row_lines`: asks for what `column_lines` touches in `count` columns."""

    def column_lines(self, first_column: str, index: str, accumulator: str) -> Iterable[str]:
        """For each column; `accumulator` is an expression of the sums' dtype, to be used once."""


def contraction_source(name: str, spec: ContractionSpec, epilogue: Epilogue) -> KernelSource:
    """The kernel of all contractions of this spec and epilogue."""
    return KernelSource(name, kernel_text(_kernel(spec, epilogue)))


def _kernel(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    for word, name in enumerate(parameters(spec)):
        yield f"{name} = load_int64(args, {word})"
    yield "scratch += thread * scratch_pitch"
    yield from preparation_lines(spec)
    yield from epilogue.setup_lines()
    if spec.products.are_matrices:
        yield f"configure_matrices({spec.tile.rows[0] // GROUPS}, chunk)"
    yield "units = batches * blocks * panels"
    if spec.products is Products.PARTS:
        yield from _places(spec, epilogue)
    else:
        yield "end = units * (thread + 1) // threads"
        yield "built = -1"
        if spec.right_packed:
            yield "packed = -1"
        yield "for unit in range(units * thread // threads, end):"
        yield from indent(1, _unit(spec, epilogue))
    if spec.products.are_matrices:
        yield "release_matrices()"


def _places(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    """Block by block of rows, slab by slab of its depth: the units that there are of it."""
    yield "from_unit = units * thread // threads"
    yield "to_unit = units * (thread + 1) // threads"
    yield "to_place = (to_unit + panels - 1) // max(panels, 1) if from_unit < to_unit else 0"
    yield "for place in range(from_unit // max(panels, 1), to_place):"
    panel = [*panel_lines(spec), *_column_lines(spec), "for step in range(steps):"]
    panel += indent(1, _step(spec, epilogue))
    slab = [
        *slab_lines(spec),
        *row_lines(spec),
        "for panel in range(from_panel, to_panel):",
        *indent(1, panel),
    ]
    body = [*_place(spec), *_block(spec)]
    body += ["from_panel = max(from_unit - place * panels, 0)"]
    body += ["to_panel = min(to_unit - place * panels, panels)"]
    body += ["for slab in range(slabs):", *indent(1, slab)]
    yield from indent(1, body)


def _unit(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    yield "panel = unit % panels"
    yield "place = unit // panels"
    yield from _place(spec)
    yield from _block(spec)
    if not spec.left_packed:
        yield "new_rows = place != built"
    yield "if place != built:"
    yield from indent(1, ["built = place", *row_lines(spec)])
    yield from panel_lines(spec)
    yield from _column_lines(spec)
    yield "for step in range(steps):"
    yield from indent(1, _step(spec, epilogue))


def _block(spec: ContractionSpec) -> Iterator[str]:
    """The rows of a block, and its tiles."""
    tallest = spec.tile.rows[0]
    if spec.products.are_matrices:  # blocks of whole tiles
        yield f"every = (rows + {tallest - 1}) // {tallest}"
        yield f"first_row = every * block // blocks * {tallest}"
        yield f"row_count = min(rows, every * (block + 1) // blocks * {tallest}) - first_row"
    else:
        yield "first_row = rows * block // blocks"
        yield "row_count = rows * (block + 1) // blocks - first_row"
    yield f"tiles = (row_count + {tallest - 1}) // {tallest}"
    if not spec.tile.is_filled:
        yield "least = row_count // max(tiles, 1)"
        yield "larger = row_count - least * tiles"


def _column_lines(spec: ContractionSpec) -> Iterator[str]:
    """The columns of a panel."""
    width = spec.width
    group = f"batch{spec.batches - 1} * columns + " if spec.grouped else ""
    yield f"first_column = {group}panel * {width}"
    if not spec.full:
        yield f"column_count = min({width}, columns - panel * {width})"


def _place(spec: ContractionSpec) -> Iterator[str]:
    """Where the units of a `place` are: its `block` and batches; what its rows depend on."""
    batches = spec.batches
    group = ""
    if spec.shares_tables:
        batches -= 1
        group = f" * batch_extent{batches} + batch{batches}"
        yield f"batch{batches} = place % batch_extent{batches}"
        yield f"place //= batch_extent{batches}"
        yield f"shift = batch{batches} * left_batch{batches}"
    yield "block = place % blocks"
    yield "batch = place // blocks"
    if spec.right_packed and spec.products is not Products.PARTS:
        yield f"piece = (batch{group}) * panels + panel"
    for axis in reversed(range(1, batches)):
        yield f"batch{axis} = batch % batch_extent{axis}"
        yield f"batch //= batch_extent{axis}"
    if batches:
        yield "batch0 = batch"


def _step(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    yield "first_tap = step // depth_steps * tap_step"
    yield "first_depth = step % depth_steps * depth_step"
    yield "step_taps = min(tap_step, taps - first_tap)"
    if spec.products is Products.PARTS:
        yield "step_depth = min(depth_step, slab_depth - first_depth)"
        yield from split_lines(spec)
    else:
        yield "step_depth = min(depth_step, depth - first_depth)"
        yield f"step_weights = weights + (first_tap * depth + first_depth) * {spec.line}"
    if not spec.right_packed:
        yield from _next_weights(spec)
    yield "for tile in range(tiles):"
    body = [tile_size(spec)]
    if not spec.products.are_matrices:  # they are done before anything could come
        body += ["if step == steps - 1:", *indent(1, _fetches(spec, epilogue))]
    done = "step == steps - 1"
    if spec.products is Products.PARTS:
        body += ["accumulators = scratch + (panel - from_panel) * panel_sums + tile * tile_pitch"]
        body += [*tile_lines(spec), *_parts(spec)]
        done += " and slab == slabs - 1"
    else:
        body += ["accumulators = scratch + tile * tile_pitch", *tile_lines(spec), *_ahead(spec)]
        body += _microkernels(spec)
    body += [f"if {done}:", *indent(1, _epilogue(spec, epilogue))]
    yield from indent(1, body)


def _ahead(spec: ContractionSpec) -> list[str]:
    """Sets `ahead`: what the microkernel fetches."""
    # Nothing new, or the next tile's rows, if they lie one after another:
    lines = [f"ahead = {0 if spec.products.are_matrices else 'step_weights'}"]
    if not spec.left_packed:
        following = f"load_int64(table, table_pitch // {_WORD}) + {_offset(spec)}"
        condition = f"new_rows and tile + 1 < tiles and tile_depth <= {_SHALLOW}"
        lines += [f"if {condition}:", f"{INDENT}ahead = {following}"]
    if spec.tile.part:
        lines += ["if tile == 0:", f"{INDENT}ahead = next_weights"]
    elif not spec.right_packed:  # each of the first tiles fetches its part of what comes next
        lines += [f"if tile < {spec.line // CACHE_LINE}:"]
        lines += [f"{INDENT}ahead = next_weights + tile * tile_taps * tile_depth * {CACHE_LINE}"]
    return lines


def _next_weights(spec: ContractionSpec) -> Iterator[str]:
    """Where the weights of the next step begin, or of the next unit."""
    yield "next_weights = step_weights"
    yield "if step + 1 < steps:"
    yield f"{INDENT}next_weights += step_taps * step_depth * {spec.line}"
    yield "elif unit + 1 < end:"
    following = "1"  # the panels of all groups lie one after another
    if not spec.shares_tables:
        following = "(1 if panel + 1 < panels else -panel)"
    yield f"{INDENT}next_weights = weights + {following} * {panel_bytes(spec)}"


def _microkernels(spec: ContractionSpec) -> Iterator[str]:
    """The call of the microkernel whose number of rows is that of the tile."""
    arguments = (
        "table, pitch, hops, tile_taps, tile_depth, "
        f"{_offset(spec)}, step_weights, ahead, "
        "accumulators, step"
    )
    if spec.products.are_matrices:
        arguments += ", chunk, apart"
    if spec.is_integer:
        arguments += ", heads"
    if spec.tile.part:
        (name,) = spec.tile_names
        parts = f"({slots(spec.tile)}) // {spec.tile.part}"
        arguments = f"table, pitch, hops, tile_taps, {parts}, step_weights, ahead, accumulators"
        yield f"{name}({arguments}, heads)"
        return
    lines = list(microkernel_lines(spec.tile, spec.tile_names, arguments))
    if spec.tile.tail and not spec.full:
        few = microkernel_lines(spec.tile, spec.tail_names, arguments)
        wide = f"column_count > {spec.tile.tail * lanes_of(spec.products)}"
        lines = [f"if {wide}:", *indent(1, lines), "else:", *indent(1, few)]
    yield from lines


def _parts(spec: ContractionSpec) -> Iterator[str]:
    """The calls of the microkernels of parts: the first tile splits what the others multiply, and
    rows that are not split are summed once more."""
    (name,) = spec.tile_names
    arguments = (
        f"table, pitch, hops, tile_taps, tile_depth, {_offset(spec)}, step_weights, step_source,"
        " accumulators, slab + step, chunk, apart, step_elements"
    )
    yield "is_flagged = step == steps - 1 and load_int64(flags, 0) != 0"
    yield "if is_flagged and slab > 0:"
    yield f"{INDENT}for k in range({spec.tile.rows[0] * spec.width}):"
    yield f"{INDENT * 2}put_f32(before, k, get_f32(accumulators, k))"
    yield "if is_new and tile == 0:"
    yield f"{INDENT}split_{name}({arguments})"
    yield "else:"
    yield f"{INDENT}{name}({arguments})"
    hops = f"hops - first_tap * {_WORD}" if gathers(spec) else "hops"
    places = f"source + slab_element * {spec.line}, accumulators, scratch + rows_offset, flags"
    yield "if is_flagged:"
    yield f"{INDENT}exact_parts_{spec.tile.rows[0]}x{spec.tile.vectors}("
    yield f"{INDENT * 2}table, pitch, {hops}, taps, slab_elements, chunk, apart, {places},"
    yield f"{INDENT * 2}before, slab"
    yield f"{INDENT})"


def _offset(spec: ContractionSpec) -> str:
    """What is added to the addresses of rows."""
    if spec.planar:
        return "first_depth // chunk * apart"
    depth = f"first_depth * {spec.word.itemsize}"
    return f"{depth} + shift" if spec.shares_tables else depth


def _first_of_tile(spec: ContractionSpec) -> str:
    if spec.tile.is_filled:
        return f"first_row + tile * {spec.tile.rows[0]}"
    return "first_row + tile * least + min(tile, larger)"


def _count(spec: ContractionSpec) -> str:
    """How many columns of a panel there are."""
    return str(spec.width) if spec.full else "column_count"


def _fetches(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    """What the epilogue will need comes into the cache while the microkernel runs."""
    yield from coordinates(spec, _first_of_tile(spec))
    yield "for slot in range(size):"
    body = [*_row_lines(spec, epilogue), *epilogue.fetch_lines(_count(spec))]
    yield from indent(1, [*_where_valid(spec, body), *advance(spec)])


def _row_lines(spec: ContractionSpec, epilogue: Epilogue) -> Iterable[str]:
    batches = tuple(f"batch{axis}" for axis in range(spec.batches - spec.grouped))
    rows = tuple(f"row{axis}" for axis in range(len(spec.windowed)))
    return epilogue.row_lines(batches, rows, "first_column")


def _epilogue(spec: ContractionSpec, epilogue: Epilogue) -> Iterator[str]:
    yield from coordinates(spec, _first_of_tile(spec))
    yield "for slot in range(size):"
    accumulator = f"get_{spec.word.value}(accumulators, index)"
    if spec.result is DType.I64:
        accumulator = f"cast_i64({accumulator})"
    columns = list(indent(1, epilogue.column_lines("first_column", "index", accumulator)))
    whole = [f"for index in range({spec.width}):", *columns]
    body = [*_row_lines(spec, epilogue)]
    if spec.full:
        body += whole
    else:  # a loop of a known length is vectors alone
        body += [f"if column_count == {spec.width}:", *indent(1, whole)]
        body += ["else:", *indent(1, ["for index in range(column_count):", *columns])]
    body = [*_where_valid(spec, body), f"accumulators += {spec.line}", *advance(spec)]
    yield from indent(1, body)


def _where_valid(spec: ContractionSpec, body: list[str]) -> list[str]:
    """`body` for a row that has results."""
    if not spec.widened:
        return body
    return [f"if row{len(spec.windowed) - 1} < result_extent:", *indent(1, body)]
