"""The text and the arguments of a kernel for attention: see `rewrite/ops/attention.py`.

    for each unit (batch, block of queries) of this thread's share
        panels of the batch's keys and values               (once per batch)
        for each panel of keys
            for each tile of queries
                scores = queries · panel + bias             (the microkernel of all contractions)
        for each query
            its scores become weights: exp of the distance from the largest, over their sum
        for each panel of values
            for each piece of the keys
                for each tile of queries
                    sums += weights · panel
            the epilogue

The scores of a block stay in the cache. Those of a row are in order, and behind them −∞ up to a
whole panel, which has no weight. A unit's results do not depend on which thread computes it, nor on
how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from satura.backend.cache_lines import CACHE_LINE, whole_lines
from satura.backend.contraction.emit import Epilogue
from satura.backend.contraction.gathering import copied_panel_lines, is_a_panel, slots
from satura.backend.contraction.scratch import Layout
from satura.backend.contraction.tile import (
    Tile,
    lanes_of,
    microkernel_lines,
    panel_columns,
    tile_name,
)
from satura.backend.emit.text import INDENT, indent, kernel_text
from satura.backend.jit.machine_code import KernelSource
from satura.backend.lower.body import Argument
from satura.backend.sizes.size import defer, largest
from satura.rewrite.types.tensor_type import DType

_F32, _WORD = 4, 8
_MINUS_INFINITY = 0xFF800000
_SCORE_BYTES = 512 * 1024  # of a block: they are read and written thrice, beside the panels
_MOST_ROWS = 192  # of a block, for which panels of values come from the last cache again
_DEEPEST = 512  # keys of a piece, whose values are summed one after the other

_OPERANDS = ("query", "key", "bias", "value")

PARAMETERS = (
    *_OPERANDS, "scratch", "scratch_pitch", "batches", "blocks", "rows", "depth", "keys",
    "columns", "query_row", "query_depth", "key_depth", "key_column", "bias_row", "bias_column",
    "value_depth", "value_column", "steps", "step_keys", "key_panels_offset",
    "value_panels_offset", "queries_offset", "scores_offset", "scores_pitch", "tables_offset",
    "tables_pitch", "hops_offset", "sums_offset", "sums_pitch",
)  # fmt: skip
"""Names of the first words of the argument table; those of the batches and of the epilogue
follow."""


@dataclass(frozen=True)
class Operand:
    """Where an operand starts, and how far its elements are apart along the batches and its last
    two axes, in bytes."""

    start: Argument
    batches: tuple[int, ...]
    row: int
    column: int


@dataclass(frozen=True)
class AttentionCall:
    """One call: the extents of batches, and how many queries, keys, columns of a value and, as
    `depth`, elements of a key there are."""

    operands: tuple[Operand, Operand, Operand, Operand]
    scratch: Argument
    batches: tuple[int, ...]
    rows: int
    keys: int
    columns: int
    depth: int


def parameters(batches: int) -> tuple[str, ...]:
    """The names of the kernel's words for so many batch axes."""
    names = ("extent", *_OPERANDS)
    return (*PARAMETERS, *(f"{name}_batch{axis}" for axis in range(batches) for name in names))


def attention_plan(
    tile: Tile, call: AttentionCall, threads: int
) -> tuple[tuple[Argument, ...], int]:
    """Values for `parameters`, and the scratch bytes that each thread needs."""
    tallest, width = tile.rows[0], panel_columns(tile)
    line = width * _F32
    batches = prod(call.batches)
    blocks = _blocks(call.rows, call.keys, batches, tallest, threads)
    most = -(-call.rows // blocks)
    tiles = -(-most // tallest)
    key_panels, value_panels = -(-call.keys // width), -(-call.columns // width)
    steps = largest(1, -(-call.keys // _DEEPEST))
    scores_pitch = whole_lines(key_panels * line) + CACHE_LINE  # so that rows share no set
    layout = Layout()
    take = layout.take
    query, key, bias, value = call.operands
    values: dict[str, Argument] = {
        **{name: each.start for name, each in zip(_OPERANDS, call.operands, strict=True)},
        "scratch": call.scratch, "batches": batches, "blocks": blocks, "rows": call.rows,
        "depth": call.depth, "keys": call.keys, "columns": call.columns,
        "query_row": query.row, "query_depth": query.column,
        "key_depth": key.row, "key_column": key.column,
        "bias_row": bias.row, "bias_column": bias.column,
        "value_depth": value.row, "value_column": value.column,
        "steps": steps, "step_keys": -(-call.keys // steps),
        "key_panels_offset": take(key_panels * call.depth * line),
        "value_panels_offset": take(value_panels * call.keys * line),
        "queries_offset": take(most * call.depth * _F32),
        "scores_offset": take(most * scores_pitch), "scores_pitch": scores_pitch,
        "tables_offset": take(2 * tiles * tallest * _WORD), "tables_pitch": tiles * tallest * _WORD,
        "hops_offset": take(_WORD),
        "sums_offset": take(tiles * tallest * line), "sums_pitch": tallest * line,
    }  # fmt: skip
    values["scratch_pitch"] = layout.size
    for axis, extent in enumerate(call.batches):
        values[f"extent_batch{axis}"] = extent
        for name, operand in zip(_OPERANDS, call.operands, strict=True):
            values[f"{name}_batch{axis}"] = operand.batches[axis]
    return tuple(values[name] for name in parameters(len(call.batches))), layout.size


@defer
def _blocks(rows: int, keys: int, batches: int, tallest: int, threads: int) -> int:
    """Into how many blocks the queries of a batch are cut: so few that the scores of one fit the
    cache, and for several threads so many that the one with the largest share has little more than
    the others."""
    fits = min(_SCORE_BYTES // (_F32 * max(1, keys)), _MOST_ROWS)
    blocks = max(1, -(-rows // max(fits // tallest * tallest, tallest)))

    def largest_share(count: int) -> int:
        return -(-batches * count // threads) * -(-rows // count)

    most = max(blocks, min(blocks + threads, rows // tallest))
    return min(range(blocks, most + 1), key=largest_share) if threads > 1 else blocks


def attention_source(name: str, tile: Tile, batches: int, epilogue: Epilogue) -> KernelSource:
    """The kernel of all calls with this tile, number of batch axes and epilogue."""
    return KernelSource(name, kernel_text(_kernel(tile, batches, epilogue)))


def _kernel(tile: Tile, batches: int, epilogue: Epilogue) -> Iterator[str]:
    width = panel_columns(tile)
    for word, name in enumerate(parameters(batches)):
        yield f"{name} = load_int64(args, {word})"
    yield "scratch += thread * scratch_pitch"
    for name in ("key_panels", "value_panels", "queries", "scores", "tables", "hops"):
        yield f"{name} = scratch + {name}_offset"
    yield "store_int64(hops, 0, 0)"
    yield f"no_weight = scalar_f32({_MINUS_INFINITY})"
    yield f"wide = (keys + {width - 1}) // {width} * {width}"
    yield from epilogue.setup_lines()
    yield "units = batches * blocks"
    yield "packed = -1"
    yield "key_weights = key_panels"
    yield "value_weights = value_panels"
    yield "end = units * (thread + 1) // threads"
    yield "for unit in range(units * thread // threads, end):"
    yield from indent(1, _unit(tile, batches, epilogue))


def _unit(tile: Tile, batches: int, epilogue: Epilogue) -> Iterator[str]:
    tallest = tile.rows[0]
    yield "block = unit % blocks"
    yield "batch = unit // blocks"
    yield "rest = batch"
    for axis in reversed(range(batches)):
        yield f"batch{axis} = rest % extent_batch{axis}"
        yield f"rest //= extent_batch{axis}"
    for name in _OPERANDS:
        steps = (f" + batch{axis} * {name}_batch{axis}" for axis in range(batches))
        yield f"{name}_here = {name}{''.join(steps)}"
    yield "if batch != packed:"
    packing = [*_packing_lines(tile, "key", "depth", "keys")]
    packing += _packing_lines(tile, "value", "keys", "columns")
    yield from indent(1, ["packed = batch", *packing])
    yield "first_row = rows * block // blocks"
    yield "row_count = rows * (block + 1) // blocks - first_row"
    yield f"tiles = (row_count + {tallest - 1}) // {tallest}"
    yield "least = row_count // max(tiles, 1)"
    yield "larger = row_count - least * tiles"
    yield from _table_lines(tile)
    yield from _score_lines(tile)
    yield "for row in range(row_count):"
    yield from indent(1, _weight_lines())
    yield from _sum_lines(tile, batches, epilogue)


def _packing_lines(tile: Tile, name: str, depth: str, columns: str) -> Iterator[str]:
    """An operand as panels, one after another; one that is a panel stays where it is."""
    width = panel_columns(tile)
    yield f"right_depth_stride = {name}_depth"
    yield f"right_column_stride = {name}_column"
    yield f"valid = {columns}"
    yield f"source = {name}_here"
    yield f"{name}_weights = source"
    yield f"if not ({is_a_panel(width, DType.F32)}):"
    yield f"{INDENT}{name}_weights = {name}_panels"
    yield f"{INDENT}for panel in range(({columns} + {width - 1}) // {width}):"
    body = [
        f"weights = {name}_panels + panel * {depth} * {width * _F32}",
        f"source = {name}_here + panel * {width} * {name}_column",
        f"valid = min({width}, {columns} - panel * {width})",
        *copied_panel_lines(width, lanes_of(tile.products), DType.F32, DType.F32, depth),
    ]
    yield from indent(2, body)


def _table_lines(tile: Tile) -> Iterator[str]:
    """Addresses of the block's queries, copied where their elements lie apart, and of the rows of
    scores; those beyond the end of a tile are its last row's."""
    yield "queries_start = query_here + first_row * query_row"
    yield "queries_pitch = query_row"
    yield f"if query_depth != {_F32}:"
    copy = [
        "for row in range(row_count):",
        f"{INDENT}origin = queries_start + row * query_row",
        f"{INDENT}target = queries + row * depth * {_F32}",
        f"{INDENT}for k in range(depth):",
        f"{INDENT * 2}put_f32(target, k, read_f32(origin + k * query_depth, 0))",
        "queries_start = queries",
        f"queries_pitch = depth * {_F32}",
    ]
    yield from indent(1, copy)
    yield "for tile in range(tiles):"
    body = [
        *_tile_lines(),
        f"slots = {slots(tile)}",
        "for slot in range(slots):",
        f"{INDENT}row = first + min(slot, size - 1)",
        f"{INDENT}at = tile * {tile.rows[0]} + slot",
        f"{INDENT}store_int64(tables, at, queries_start + row * queries_pitch)",
        f"{INDENT}store_int64(tables + tables_pitch, at, scores + row * scores_pitch)",
    ]
    yield from indent(1, body)


def _tile_lines() -> Iterator[str]:
    """How many rows of the block a tile has, and the first of them."""
    yield "size = least + (1 if tile < larger else 0)"
    yield "first = tile * least + min(tile, larger)"


def _microkernels(tile: Tile, arguments: str) -> Iterator[str]:
    names = [tile_name(rows, tile.vectors) for rows in tile.rows]
    return microkernel_lines(tile, names, arguments)


def _score_lines(tile: Tile) -> Iterator[str]:
    width, tallest = panel_columns(tile), tile.rows[0]
    line = width * _F32
    yield "sums = scratch + sums_offset"
    yield f"for panel in range(wide // {width}):"
    yield f"{INDENT}weights = key_weights + panel * depth * {line}"
    yield f"{INDENT}valid = min({width}, keys - panel * {width})"
    yield f"{INDENT}for tile in range(tiles):"
    table = f"tables + tile * {tallest * _WORD}"
    whole = ["put_f32(target, n, get_f32(source, n) + read_f32(biases, n))"]
    any_step = ["put_f32(target, n, get_f32(source, n) + read_f32(biases + n * bias_column, 0))"]
    row = [
        f"target = scores + (first + slot) * scores_pitch + panel * {line}",
        f"source = sums + slot * {line}",
        "biases = bias_here + (first_row + first + slot) * bias_row",
        f"biases += panel * {width} * bias_column",
        f"if bias_column == {_F32} and valid == {width}:",
        f"{INDENT}for n in range({width}):",
        *indent(2, whole),
        "elif bias_column == 0:",
        f"{INDENT}bias_of_all = read_f32(biases, 0)",
        f"{INDENT}for n in range({width}):",
        f"{INDENT * 2}put_f32(target, n, get_f32(source, n) + bias_of_all)",
        "else:",
        f"{INDENT}for n in range(valid):",
        *indent(2, any_step),
        f"for n in range(valid, {width}):",
        f"{INDENT}put_f32(target, n, no_weight)",
    ]
    body = [
        *_tile_lines(),
        f"ahead = weights + (depth * {line} if tile == 0 else 0)",  # the next panel
        *_microkernels(tile, f"{table}, 0, hops, 1, depth, 0, weights, ahead, sums, 0"),
        "for slot in range(size):",
        *indent(1, row),
    ]
    yield from indent(2, body)


def _weight_lines() -> Iterator[str]:
    """A row of scores as weights."""
    yield "here = scores + row * scores_pitch"
    yield "key0 = max_key(no_weight)"
    yield "for n in range(wide & -8):"
    yield f"{INDENT}key0 = max(key0, max_key(get_f32(here, n)))"
    yield "largest = key_value(key0)"
    yield "total = f32(0)"
    yield "for n in range(wide & -8):"
    yield f"{INDENT}grown = exp_or_0(get_f32(here, n) - largest)"
    yield f"{INDENT}total = add_any_order(total, grown)"
    yield f"{INDENT}put_f32(here, n, grown)"
    yield "share = divide(f32(1), total)"
    yield "for n in range(wide & -8):"
    yield f"{INDENT}put_f32(here, n, get_f32(here, n) * share)"


def _sum_lines(tile: Tile, batches: int, epilogue: Epilogue) -> Iterator[str]:
    width, tallest = panel_columns(tile), tile.rows[0]
    line = width * _F32
    yield f"for panel in range((columns + {width - 1}) // {width}):"
    yield f"{INDENT}first_column = panel * {width}"
    yield f"{INDENT}column_count = min({width}, columns - first_column)"
    yield f"{INDENT}for step in range(steps):"
    yield f"{INDENT * 2}first_key = step * step_keys"
    yield f"{INDENT * 2}step_depth = min(step_keys, keys - first_key)"
    yield f"{INDENT * 2}weights = value_weights + (panel * keys + first_key) * {line}"
    yield f"{INDENT * 2}for tile in range(tiles):"
    table = f"tables + tables_pitch + tile * {tallest * _WORD}"
    arguments = f"{table}, 0, hops, 1, step_depth, first_key * {_F32}, weights, weights, sums, step"
    names = tuple(f"batch{axis}" for axis in range(batches))
    columns = list(
        indent(1, epilogue.column_lines("first_column", "index", "get_f32(sums, index)"))
    )
    row = [
        *epilogue.row_lines(names, ("row",), "first_column"),
        f"if column_count == {width}:",
        f"{INDENT}for index in range({width}):",
        *indent(1, columns),
        "else:",
        f"{INDENT}for index in range(column_count):",
        *indent(1, columns),
        f"sums += {line}",
        "row += 1",
    ]
    body = [
        *_tile_lines(),
        "sums = scratch + sums_offset + tile * sums_pitch",
        *_microkernels(tile, arguments),
        "if step == steps - 1:",
        f"{INDENT}row = first_row + first",
        f"{INDENT}for slot in range(size):",
        *indent(2, row),
    ]
    yield from indent(3, body)
