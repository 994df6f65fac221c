"""Nests that turn an inner axis: they read something along one loop and store along another.

Square tiles of both loops stay in the cache, so that every cache line is read and written once.
What is read along the other loop is transposed block by block in registers: straight into the
result where it only moves. Where nothing is read along the loop of the store, a tile of results is
computed as vector code along the other loop and transposed at the end; else what is read along the
other loop goes to a tile of scratch first, from which the work on it is vector code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.emit.body import Arguments, BodyText
from satura.backend.emit.loops import Piece, share, start_odometer, step_odometer
from satura.backend.emit.text import indent
from satura.backend.lower.body import Access, Nest, Pointer
from satura.backend.lower.canonical import Canonical
from satura.backend.target import host_target

TILE = 64  # elements of both loops that one unit of work computes
FAR = 8  # so much farther apart, rows of results are written at length, a few at a time
ALIAS = 2048  # bytes: rows of results so far apart, or a multiple, share few lines of a cache, too
SHORTEST = 4  # a loop of fewer iterations is not cut into tiles
NEAR = 4  # elements: what is read so far on is in the same cache line, more often than not


def _along_store(form: Canonical) -> Canonical:
    """The same with the loop as inner one along which the result is stored, where there is one."""
    nest, last = form.nest, len(form.nest.extents) - 1
    stored = [loop for loop in range(last + 1) if nest.target.strides[loop] == nest.dtype.itemsize]
    if form.middle or not stored or last in stored:
        return form
    order = [last if at == stored[0] else at for at in range(last)] + [stored[0]]
    extents = [nest.extents[at] for at in order]
    moved = nest.with_loops(extents, lambda strides: tuple(strides[at] for at in order), ())
    return replace(form, nest=moved)


def _turned_loop(form: Canonical) -> int | None:
    """The loop along which something is read, if not along the inner one; None where there is none.

    Both loops are long, and the result is stored along the inner one. First come loops along which
    elements lie side by side.
    """
    nest = form.nest
    inner = len(nest.extents) - 1
    if nest.reductions or form.middle or nest.target.strides[inner] != nest.dtype.itemsize:
        return None
    turning = [
        (index, loop)
        for loop in range(form.outer)
        for index in range(len(nest.values))
        if _turns(form, index, loop)
    ]
    dense = [loop for index, loop in turning if _step(nest, index, loop) == 1]
    crossed = (loop for loop in range(form.outer) if _is_crossed(form, loop))
    found = [*dense, *crossed, *(loop for _, loop in turning)]
    return found[0] if found else None


def _is_crossed(form: Canonical, loop: int) -> bool:
    """Whether all that is read is read along `loop`, or stays where it is along it, and something
    is read at a distance along the inner one."""
    nest = form.nest
    at_a_distance = False
    for value in nest.values:
        if value.access is None:
            continue
        strides, size = value.access.strides, value.dtype.itemsize
        if strides[loop] and (value.op != "load" or value.operands or strides[loop] != size):
            return False
        if nest.is_led(value.access, loop):
            return False
        is_indirect = nest.is_led(value.access, len(nest.extents) - 1)
        if strides[loop] and (is_indirect or strides[-1] not in (0, size)):
            at_a_distance = True
    return at_a_distance and _are_long(nest, loop)


def _turns(form: Canonical, index: int, loop: int) -> bool:
    """Whether a value is read along `loop`, or not far from it, and not along the inner one, and
    both are long."""
    nest = form.nest
    value = nest.values[index]
    if value.op != "load" or value.access is None or value.operands or value.access.extras:
        return False
    turns = value.access.strides[-1] not in (0, value.dtype.itemsize) and _step(nest, index, loop)
    return bool(turns) and _are_long(nest, loop)


def _are_long(nest: Nest, loop: int) -> bool:
    """Whether `loop` and the inner one are worth tiles."""
    return nest.extents[loop] >= SHORTEST and nest.extents[-1] >= SHORTEST


def _step(nest: Nest, index: int, loop: int) -> int:
    """How many elements on a value is read in the next iteration of `loop`; 0 where that is far.

    Strides that depend on sizes are compared, not divided.
    """
    value = nest.values[index]
    assert value.access is not None
    stride, size = value.access.strides[loop], value.dtype.itemsize
    return next((step for step in range(1, NEAR + 1) if stride == step * size), 0)


def turning_piece(form: Canonical) -> Piece | None:
    """What runs a nest that turns an axis; None for any other."""
    form = _along_store(form)
    turned = _turned_loop(form)
    if turned is None:
        return None
    arguments = Arguments()
    names = ["column" if loop == turned else f"i{loop}" for loop in range(form.outer)]
    size, scratch = form.nest.dtype.itemsize, 0
    setup: list[str] = []
    if _only_moves(form.nest) and _step(form.nest, 0, turned) == 1:
        (value,) = form.nest.values
        there = _corner(form.nest.target, names, arguments)
        pitch = arguments.new(form.nest.target.strides[turned])
        assert value.access is not None
        here = _corner(value.access, names, arguments)
        from_pitch = arguments.new(value.access.strides[-1])
        unit = _move_lines(size, ("read", here, from_pitch), ("write", there, pitch))
    elif _is_crossed(form, turned):
        scratch = size * TILE * TILE
        setup, unit = _crossed_lines(form.nest, names, turned, arguments)
    else:
        tiled = [index for index in range(len(form.nest.values)) if _turns(form, index, turned)]
        sizes = [form.nest.values[index].dtype.itemsize * TILE * TILE for index in tiled]
        scratch = sum(sizes)
        setup, unit = _loop_lines(form.nest, names, turned, tiled, sizes, arguments)
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
        *arguments.lines(), f"total = {' * '.join(lengths)}", *share("total"),
        *setup, *start_odometer(loops, lengths, "lo"), "for unit in range(hi - lo):",
        *indent(1, each),
    ]  # fmt: skip
    return Piece(lines, arguments.numbers, scratch)


def _only_moves(nest: Nest) -> bool:
    """Whether the nest stores one element that it reads, as it is."""
    (value, *others) = nest.values
    plain = value.access is not None and not value.operands and not value.access.extras
    return plain and not others and value.op == "load" and value.dtype is nest.dtype


def _loop_lines(
    nest: Nest, names: Sequence[str], turned: int, tiled: Sequence[int], sizes: Sequence[int],
    arguments: Arguments,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Lines before all loops, and lines that compute a tile column by column."""
    base = arguments.new(Pointer(("scratch", 0)))
    setup = [f"tile0 = {base} + thread * per_thread"]
    unit: list[str] = []
    given: dict[int, str] = {}
    for number, index in enumerate(tiled):
        value = nest.values[index]
        size, kind = value.dtype.itemsize, value.dtype.value
        if number:
            setup.append(f"tile{number} = tile{number - 1} + {sizes[number - 1]}")
        pitch = str(TILE * size)
        assert value.access is not None
        here = _corner(value.access, names, arguments)
        from_pitch = arguments.new(value.access.strides[-1])
        step = _step(nest, index, turned)
        unit += _move_lines(size, ("read", here, from_pitch), ("put", f"tile{number}", pitch), step)
        given[index] = f"get_{kind}(tile{number} + (column - first) * {pitch}, i)"
    body = BodyText(nest, names, (), "i", arguments, "row")
    block = body.store(body.block([nest.result], given))
    inner = ["for i in range(height):", *indent(1, block.inner)]
    unit += [
        "first = column", "for column in range(first, first + width):",
        *indent(1, [*block.row, *inner]),
    ]  # fmt: skip
    return [*setup, *body.setup], unit


def _crossed_lines(
    nest: Nest, names: Sequence[str], turned: int, arguments: Arguments
) -> tuple[list[str], list[str]]:
    """Lines before all loops, and lines that compute a tile row by row and store its columns."""
    size, kind = nest.dtype.itemsize, nest.dtype.value
    base, pitch = arguments.new(Pointer(("scratch", 0))), TILE * size
    setup = [f"tile = {base} + thread * per_thread"]
    there = _corner(nest.target, names, arguments)
    stored = arguments.new(nest.target.strides[turned])
    last = len(nest.extents) - 1
    order = [*(loop for loop in range(last) if loop != turned), last, turned]
    extents = [nest.extents[loop] for loop in order]
    crossed = nest.with_loops(extents, lambda strides: tuple(strides[loop] for loop in order), ())
    outer = [*(name for name in names if name != "column"), "line"]
    body = BodyText(crossed, outer, (), "i", arguments, "column")
    block = body.block([crossed.result])
    put = f"put_{kind}(tile + (line - row) * {pitch}, i, {block.names[crossed.result]})"
    unit = [
        "for line in range(row, row + height):",
        *indent(1, [*block.row, "for i in range(width):", *indent(1, [*block.inner, put])]),
        *_move_lines(size, ("get", "tile", str(pitch)), ("write", there, stored)),
    ]
    return [*setup, *body.setup], unit


def _corner(access: Access, names: Sequence[str], arguments: Arguments) -> str:
    """The address at which a tile starts."""
    moved = zip([*names, "row"], access.strides, strict=True)
    sums = (f"{name}*{arguments.new(stride)}" for name, stride in moved)
    return " + ".join([arguments.new(access.start), *sums])


def _move_lines(
    size: int, source: tuple[str, str, str], target: tuple[str, str, str], step: int = 1
) -> list[str]:
    """Lines that move a tile of elements of `size` bytes, whose rows become columns.

    Source and target are how elements are accessed, the address, and the pitch between rows. In the
    source elements of a row are `step` apart. The last blocks overlap those before them, where the
    tile is not a multiple of blocks.
    """
    edges = host_target().block_edges(size)
    line = max(edges[0], CACHE_LINE // size)
    smallest = edges[-1]
    edge = " else ".join([*(f"{each} if short >= {each}" for each in edges[:-1]), str(smallest)])
    read, here, pitch = source
    write, there, target_pitch = target
    if step > 1:
        return [
            f"here = {here}",
            f"there = {there}",
            "for i in range(height):",
            "    for j in range(width):",
            f"        element = {read}_u{8 * size}_at(here, i*{pitch} + j*{step * size})",
            f"        {write}_u{8 * size}_at(there, i*{size} + j*{target_pitch}, element)",
        ]
    return [
        f"here = {here}",
        f"there = {there}",
        f"near = {target_pitch} < {FAR} * {pitch} and {target_pitch} % {ALIAS} != 0",
        f"deep = {line} if near else {TILE}",
        "short = min(height, width)",
        f"edge = {edge}",
        f"high = height if short >= {smallest} else 0",
        "for strip in range(0, high, deep):",
        "    for j in range(0, width, edge):",
        "        left = min(j, width - edge)",
        "        for i in range(strip, min(strip + deep, high), edge):",
        "            top = min(i, height - edge)",
        f"            transpose_block_{8 * size}(edge, here + top*{pitch} + left*{size}, {pitch}, "
        f"there + top*{size} + left*{target_pitch}, {target_pitch})",
        "for j in range(width):",
        "    for i in range(high, height):",
        f"        element = {read}_u{8 * size}_at(here, i*{pitch} + j*{size})",
        f"        {write}_u{8 * size}_at(there, i*{size} + j*{target_pitch}, element)",
    ]
