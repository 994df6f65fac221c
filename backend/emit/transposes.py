"""Moves that turn an inner axis: read along one loop, stored along another.

Square tiles of both loops stay in the cache while blocks of them are transposed in registers, so
that every cache line is read and written once.
"""

from __future__ import annotations

from satura.backend.emit.body import Arguments, Code
from satura.backend.emit.loops import kernel_text, share, start_odometer, step_odometer
from satura.backend.emit.text import indented
from satura.backend.lower.body import Access
from satura.backend.lower.canonical import Canonical
from satura.backend.target import host_target

TILE = 64  # elements of both loops that one unit of work moves
SHORTEST = 8  # a loop of fewer iterations has no block


def turned_loop(form: Canonical) -> int | None:
    """The loop along which a move reads, if not the inner one, along which it stores.

    None where the nest computes anything, or where nothing is turned.
    """
    nest = form.nest
    if nest.reductions or len(nest.values) != 1 or nest.values[0].op != "load":
        return None
    (value,) = nest.values
    assert value.access is not None
    size = value.dtype.itemsize
    if value.dtype is not nest.dtype or value.operands or value.access.extras:
        return None
    if nest.target.strides[-1] != size or value.access.strides[-1] == size:
        return None
    found = [
        loop
        for loop in range(form.outer)
        if value.access.strides[loop] == size and nest.extents[loop] >= SHORTEST
    ]
    return found[0] if found and nest.extents[-1] >= SHORTEST else None


def transposed_code(name: str, form: Canonical, turned: int, work: int) -> Code:
    """The kernel of a move that reads along loop `turned`."""
    nest = form.nest
    size = nest.dtype.itemsize
    edge = host_target().block_edge(size)
    arguments = Arguments()
    new = arguments.new
    outer = [loop for loop in range(form.outer) if loop != turned]
    names = [f"i{loop}" for loop in outer]
    extents = [new(nest.extents[loop]) for loop in outer]
    rows, columns = new(nest.extents[-1]), new(nest.extents[turned])
    (value,) = nest.values
    assert value.access is not None
    source, target = value.access, nest.target
    pitch, target_pitch = new(source.strides[-1]), new(target.strides[turned])
    tile = new(TILE)
    counts = [f"(({extent} + {tile} - 1) // {tile})" for extent in (rows, columns)]

    def corner(access: Access, row_pitch: str, column_pitch: str) -> str:
        moved = [f"{i}*{new(access.strides[loop])}" for i, loop in zip(names, outer, strict=True)]
        parts = [new(access.start), *moved, f"row*{row_pitch}", f"column*{column_pitch}"]
        return " + ".join(parts)

    unit = [
        f"row = row_tile * {tile}",
        f"column = column_tile * {tile}",
        f"here = {corner(source, pitch, str(size))}",
        f"there = {corner(target, str(size), target_pitch)}",
        f"height = min({tile}, {rows} - row)",
        f"width = min({tile}, {columns} - column)",
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
    loops, lengths = [*names, "row_tile", "column_tile"], [*extents, *counts]
    lines = [
        f"total = {' * '.join(lengths)}", *share("total"), *start_odometer(loops, lengths, "lo"),
        "for unit in range(hi - lo):", *indented(1, [*unit, *step_odometer(loops, lengths)]),
    ]  # fmt: skip
    text = kernel_text(["at = args", *arguments.lines(), *lines])
    return Code(name, text, tuple(arguments.numbers), work)
