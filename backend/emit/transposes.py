"""Nests that turn an inner axis: they read something along one loop and store along another.

Square tiles of both loops stay in the cache, so that every cache line is read and written once.
What is read along the other loop is transposed block by block in registers: straight into the
result where it only moves, else into a tile of scratch, from which the work on it is vector code.
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.backend.emit.body import Arguments, BodyText, Code
from satura.backend.emit.loops import kernel_text, share, start_odometer, step_odometer
from satura.backend.emit.text import indented
from satura.backend.lower.body import Access, Nest, Pointer, Value
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
    for loop in range(form.outer):
        if any(_turns(form, index, loop) for index in range(len(nest.values))):
            return loop
    return None


def _turns(form: Canonical, index: int, loop: int) -> bool:
    """Whether a value is read along `loop` and not along the inner one, and both are long."""
    nest = form.nest
    value = nest.values[index]
    if value.op != "load" or value.access is None or value.operands or value.access.extras:
        return False
    strides, size = value.access.strides, value.dtype.itemsize
    turns = strides[loop] == size and strides[-1] not in (0, size)
    return turns and min(nest.extents[loop], nest.extents[-1]) >= SHORTEST


def turning_code(name: str, form: Canonical, turned: int, work: int) -> Code:
    """The kernel of a nest that reads something along loop `turned`."""
    arguments = Arguments()
    names = ["column" if loop == turned else f"i{loop}" for loop in range(form.outer)]
    size, scratch = form.nest.dtype.itemsize, 0
    setup: list[str] = []
    if _only_moves(form.nest):
        (value,) = form.nest.values
        there = _corner(form.nest.target, names, arguments)
        pitch = arguments.new(form.nest.target.strides[turned])
        unit = _move_lines(value, names, arguments, there, f"write_u{8 * size}_at", pitch)
    else:
        tiled = [index for index in range(len(form.nest.values)) if _turns(form, index, turned)]
        sizes = [form.nest.values[index].dtype.itemsize * TILE * TILE for index in tiled]
        scratch = sum(sizes)
        setup, unit = _loop_lines(form.nest, names, tiled, sizes, arguments)
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
    return Code(name, kernel_text(lines), tuple(arguments.numbers), work, scratch)


def _only_moves(nest: Nest) -> bool:
    """Whether the nest stores one element that it reads, as it is."""
    (value, *others) = nest.values
    plain = value.access is not None and not value.operands and not value.access.extras
    return plain and not others and value.op == "load" and value.dtype is nest.dtype


def _loop_lines(
    nest: Nest, names: Sequence[str], tiled: Sequence[int], sizes: Sequence[int],
    arguments: Arguments,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Lines before all loops, and lines that compute a tile column by column."""
    base = arguments.new(Pointer(("scratch", 0)))
    setup = [f"tile0 = {base} + thread * {arguments.new(sum(sizes))}"]
    unit: list[str] = []
    given: dict[int, str] = {}
    for number, index in enumerate(tiled):
        value = nest.values[index]
        size, kind = value.dtype.itemsize, value.dtype.value
        if number:
            setup.append(f"tile{number} = tile{number - 1} + {sizes[number - 1]}")
        pitch = str(TILE * size)
        unit += _move_lines(value, names, arguments, f"tile{number}", f"put_u{8 * size}_at", pitch)
        given[index] = f"get_{kind}(tile{number} + (column - first) * {pitch}, i)"
    body = BodyText(nest, names, (), "i", arguments, "row")
    block = body.store(body.block([nest.result], given))
    inner = ["for i in range(height):", *indented(1, block.inner)]
    unit += [
        "first = column", "for column in range(first, first + width):",
        *indented(1, [*block.row, *inner]),
    ]  # fmt: skip
    return [*setup, *body.setup], unit


def _corner(access: Access, names: Sequence[str], arguments: Arguments) -> str:
    """The address at which a tile starts."""
    moved = zip([*names, "row"], access.strides, strict=True)
    sums = (f"{name}*{arguments.new(stride)}" for name, stride in moved)
    return " + ".join([arguments.new(access.start), *sums])


def _move_lines(
    value: Value, names: Sequence[str], arguments: Arguments, there: str, write: str,
    target_pitch: str,
) -> list[str]:  # fmt: skip
    """Lines that move a tile of what `value` reads to `there`, where its columns are rows."""
    assert value.access is not None
    size = value.dtype.itemsize
    edge = host_target().block_edge(size)
    pitch = arguments.new(value.access.strides[-1])
    return [
        f"here = {_corner(value.access, names, arguments)}",
        f"there = {there}",
        f"high = height // {edge} * {edge}",
        f"wide = width // {edge} * {edge}",
        f"for j in range(0, wide, {edge}):",
        f"    for i in range(0, high, {edge}):",
        f"        transpose_block_{8 * size}(here + i*{pitch} + j*{size}, {pitch}, "
        f"there + i*{size} + j*{target_pitch}, {target_pitch})",
        "for j in range(width):",
        "    for i in range(high if j < wide else 0, height):",
        f"        element = read_u{8 * size}_at(here, i*{pitch} + j*{size})",
        f"        {write}(there, i*{size} + j*{target_pitch}, element)",
    ]
