"""Nests that turn an inner axis: they read something along one loop and store along another.

Square tiles of both loops stay in the cache, so that every cache line is read and written once.
What only moves is transposed block by block in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.backend.emit.body import Arguments, BodyText, Code
from satura.backend.emit.loops import kernel_text, share, start_odometer, step_odometer
from satura.backend.emit.text import indented
from satura.backend.lower.body import Access, Nest
from satura.backend.lower.canonical import Canonical
from satura.backend.target import host_target

TILE = 64  # elements of both loops that one unit of work computes
SHORTEST = 8  # a loop of fewer iterations is not cut into tiles


def turned_loop(form: Canonical) -> int | None:
    """The loop along which something is read, if not along the inner one; None where there is none.

    Both loops are long, and the result is stored along the inner one.
    """
    nest = form.nest
    inner = len(nest.extents) - 1
    if nest.reductions or nest.target.strides[inner] != nest.dtype.itemsize:
        return None
    for value in nest.values:
        if value.op != "load" or value.access is None:
            continue
        strides, size = value.access.strides, value.dtype.itemsize
        for loop in range(form.outer):
            turns = strides[loop] == size and strides[inner] not in (0, size)
            if turns and min(nest.extents[loop], nest.extents[inner]) >= SHORTEST:
                return loop
    return None


def turning_code(name: str, form: Canonical, turned: int, work: int) -> Code:
    """The kernel of a nest that reads something along loop `turned`."""
    arguments = Arguments()
    names = ["column" if loop == turned else f"i{loop}" for loop in range(form.outer)]
    write = _block_lines if _only_moves(form.nest) else _loop_lines
    setup, unit = write(form.nest, names, turned, arguments)
    outer = [loop for loop in range(form.outer) if loop != turned]
    extents = [arguments.new(form.nest.extents[loop]) for loop in outer]
    tile = arguments.new(TILE)
    rows, columns = (arguments.new(form.nest.extents[loop]) for loop in (-1, turned))
    counts = [f"(({extent} + {tile} - 1) // {tile})" for extent in (rows, columns)]
    loops = [*(names[loop] for loop in outer), "row_tile", "column_tile"]
    lengths = [*extents, *counts]
    each = [
        f"row = row_tile * {tile}",
        f"height = min({tile}, {rows} - row)",
        f"column = column_tile * {tile}",
        f"width = min({tile}, {columns} - column)",
        *unit,
        *step_odometer(loops, lengths),
    ]
    lines = [
        "at = args", *arguments.lines(), f"total = {' * '.join(lengths)}", *share("total"),
        *setup, *start_odometer(loops, lengths, "lo"), "for unit in range(hi - lo):",
        *indented(1, each),
    ]  # fmt: skip
    return Code(name, kernel_text(lines), tuple(arguments.numbers), work)


def _only_moves(nest: Nest) -> bool:
    """Whether the nest stores one element that it reads, as it is."""
    (value, *others) = nest.values
    plain = value.access is not None and not value.operands and not value.access.extras
    return plain and not others and value.op == "load" and value.dtype is nest.dtype


def _loop_lines(
    nest: Nest, names: Sequence[str], turned: int, arguments: Arguments
) -> tuple[list[str], list[str]]:
    """Lines before all loops, and lines that compute a tile column by column."""
    body = BodyText(nest, names, (), "i", arguments, "row")
    block = body.store(body.block([nest.result]))
    inner = ["for i in range(height):", *indented(1, block.inner)]
    return body.setup, [
        "for column in range(column, column + width):", *indented(1, [*block.row, *inner])
    ]  # fmt: skip


def _block_lines(
    nest: Nest, names: Sequence[str], turned: int, arguments: Arguments
) -> tuple[list[str], list[str]]:
    """Lines before all loops, and lines that move a tile."""
    size = nest.dtype.itemsize
    edge = host_target().block_edge(size)
    (value,) = nest.values
    assert value.access is not None
    pitch = arguments.new(value.access.strides[-1])
    target_pitch = arguments.new(nest.target.strides[turned])

    def corner(access: Access) -> str:
        moved = zip([*names, "row"], access.strides, strict=True)
        sums = (f"{name}*{arguments.new(stride)}" for name, stride in moved)
        return " + ".join([arguments.new(access.start), *sums])

    return [], [
        f"here = {corner(value.access)}",
        f"there = {corner(nest.target)}",
        f"high = height // {edge} * {edge}",
        f"wide = width // {edge} * {edge}",
        f"for j in range(0, wide, {edge}):",
        f"    for i in range(0, high, {edge}):",
        f"        transpose_block_{8 * size}(here + i*{pitch} + j*{size}, {pitch}, "
        f"there + i*{size} + j*{target_pitch}, {target_pitch})",
        "for j in range(width):",
        "    for i in range(high if j < wide else 0, height):",
        f"        element = read_u{8 * size}_at(here, i*{pitch} + j*{size})",
        f"        write_u{8 * size}_at(there, i*{size} + j*{target_pitch}, element)",
    ]
