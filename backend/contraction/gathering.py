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

from satura.backend.contraction.spec import ContractionSpec
from satura.backend.contraction.tile import Products
from satura.backend.emit.text import INDENT, indent

_WORD = 8


def gathers(spec: ContractionSpec) -> bool:
    """Whether taps are followed in place, tile by tile, so that tiles are of several kinds."""
    return any(spec.windowed) and (spec.banded or not spec.left_packed)


def shares_tables(spec: ContractionSpec) -> bool:
    """Whether the groups of a block have one table: they are a distance apart everywhere."""
    return spec.grouped and not spec.left_packed and not spec.tile.part


def preparation_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per call: what all rows share."""
    yield "tables = scratch + table_offset"
    yield "all_hops = scratch + hops_offset"
    if not gathers(spec):
        yield "store_int64(all_hops, 0, 0)"
    if any(spec.windowed):
        yield f"fill_value = {_fill_value(spec)}"
    if not gathers(spec):
        return
    yield "kinds = scratch + kinds_offset"
    yield "fill_page = scratch + fill_offset"
    words = _seen_words(spec)
    if shares_tables(spec):
        words += f" * batch_extent{spec.batches - 1}"
    yield f"for i in range({words}):"
    yield f"{INDENT}put_{spec.word.value}(fill_page, i, fill_value)"
    yield "line = 0"
    axes = _window_parameters(spec)
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


def _seen_words(spec: ContractionSpec) -> str:
    """How many words of a position the rows see, those of all groups in a vector."""
    return "depth" if spec.shared <= 1 else f"depth * {spec.shared}"


def _fill_value(spec: ContractionSpec) -> str:
    if spec.is_integer and spec.left_packed:
        return f"cast_{_packed_dtype(spec)}(fill)"
    return f"scalar_{spec.word.value}(fill)"


def _packed_dtype(spec: ContractionSpec) -> str:
    """What integers are copied as."""
    return "i16" if spec.products is Products.PAIRS else "u8"


def panel_bytes(spec: ContractionSpec) -> str:
    """The size of one panel."""
    if spec.tile.part:
        return f"panel_lines * {spec.line}"
    return f"(taps * depth + {spec.heads}) * {spec.line}"


def row_lines(spec: ContractionSpec) -> Iterator[str]:
    """Once per block: the tables of its tiles."""
    batches = spec.batches - shares_tables(spec)
    strides = (f" + batch{axis} * left_batch{axis}" for axis in range(batches))
    yield f"left_here = left{''.join(strides)}"
    yield from coordinates(spec, "first_row")
    if spec.banded:
        yield from _band_lines(spec)
    elif spec.left_packed:
        yield from _row_packing_lines(spec)
        yield "origin = scratch + rows_offset"
    yield "for tile in range(tiles):"
    body = [
        tile_size(spec),
        f"slots = {slots(spec)}",
        "table = tables + tile * table_pitch",
    ]
    if spec.left_packed and not spec.banded:
        following = f"origin += depth * {spec.word.itemsize}"
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
    last = _window_parameters(spec)[-1]
    yield "kind = load_int64(kinds, tile)"
    yield f"hops += (kind * taps + first_tap) * {_WORD}"
    yield "if kind == 0:"
    yield f"{INDENT}pitch = {slots(spec)} * {_WORD}"
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
    yield "heads = scratch + panel_offset"
    yield f"weights = heads + {spec.heads * spec.line}"
    yield f"source = {here} + panel * {width} * right_column_stride"
    yield f"valid = min({width}, columns - panel * {width})"
    yield "if piece != packed:"
    lanes = width // spec.tile.vectors
    if spec.is_integer:
        yield f"{INDENT}packed = piece"
        yield from indent(1, _integer_panel_lines(spec))
        return
    copy = ["packed = piece", "done = 0"]
    if spec.dtype is spec.word:
        copy += _transposing_lines(spec, lanes)
    read, put = f"read_{spec.dtype.value}", f"put_{spec.word.value}"
    copy += [
        f"for k in range(done if valid == {width} else 0, taps * depth):",
        f"{INDENT}line = weights + k * {spec.line}",
        f"{INDENT}origin = source + k * right_depth_stride",
        f"{INDENT}if right_column_stride == {spec.dtype.itemsize} and valid == {width}:",
        f"{INDENT * 2}for n in range({width}):",
        f"{INDENT * 3}{put}(line, n, {read}(origin, n))",
        f"{INDENT}else:",
        f"{INDENT * 2}for n in range(valid // {lanes} * {lanes} if k < done else 0, valid):",
        f"{INDENT * 3}{put}(line, n, {read}(origin + n * right_column_stride, 0))",
        f"{INDENT}for n in range(valid, {width}):",
        f"{INDENT * 2}{put}(line, n, scalar_{spec.word.value}(0))",
    ]
    yield from indent(1, copy)


def _transposing_lines(spec: ContractionSpec, lanes: int) -> list[str]:
    """`done` rows of the panel's whole vectors, where the depth is contiguous."""
    word = spec.word.itemsize
    return [
        f"if right_depth_stride == {word}:",
        f"{INDENT}done = taps * depth // {lanes} * {lanes}",
        f"{INDENT}for n in range(0, valid - {lanes - 1}, {lanes}):",
        f"{INDENT * 2}for k in range(0, done, {lanes}):",
        f"{INDENT * 3}origin = source + n * right_column_stride + k * {word}",
        f"{INDENT * 3}line = weights + k * {spec.line} + n * {word}",
        f"{INDENT * 3}transpose_block_{8 * word}(origin, right_column_stride, line, {spec.line})",
    ]


def coordinates(spec: ContractionSpec, row: str) -> Iterator[str]:
    """row0, row1, … of row number `row`."""
    yield f"rest = {row}"
    for axis in reversed(range(1, len(spec.windowed))):
        yield f"row{axis} = rest % row_extent{axis}"
        yield f"rest //= row_extent{axis}"
    yield "row0 = rest"


def advance(spec: ContractionSpec) -> Iterator[str]:
    """From the coordinates of a row to those of the next."""
    yield f"row{len(spec.windowed) - 1} += 1"
    for level, axis in enumerate(reversed(range(1, len(spec.windowed)))):
        lines = [
            f"if row{axis} == row_extent{axis}:",
            f"{INDENT}row{axis} = 0",
            f"{INDENT}row{axis - 1} += 1",
        ]
        yield from indent(level, lines)


def tile_size(spec: ContractionSpec) -> str:
    """Sets `size`: how many rows tile number `tile` has."""
    if spec.tile.part:
        tallest = spec.tile.rows[0]
        return f"size = min({tallest}, row_count - tile * {tallest})"
    return "size = least + (1 if tile < larger else 0)"


def slots(spec: ContractionSpec) -> str:
    """How many rows the microkernel of a tile of `size` rows has."""
    if spec.tile.part:
        return f"(size + {spec.tile.part - 1}) // {spec.tile.part} * {spec.tile.part}"
    expression = str(spec.tile.rows[-1])
    for rows in reversed(spec.tile.rows[:-1]):
        expression = f"({rows} if size > {rows - 1} else {expression})"
    return expression


def _window_parameters(spec: ContractionSpec) -> list[int]:
    return [axis for axis, windowed in enumerate(spec.windowed) if windowed]


def _origin(spec: ContractionSpec) -> Iterator[str]:
    """`origin`: the address of what the first tap of the row at row0, row1, … sees."""
    terms = ["left_here"]
    for axis, windowed in enumerate(spec.windowed):
        if windowed:
            yield f"position{axis} = row{axis} * step{axis} - lo{axis}"
        terms.append(f"{'position' if windowed else 'row'}{axis} * stride{axis}")
    yield f"origin = {' + '.join(terms)}"


def _origins(spec: ContractionSpec) -> Iterator[str]:
    """The first line of a tile's table, its kind, and the other lines of a border tile."""
    axes, every = _window_parameters(spec), range(len(spec.windowed))
    if axes and not spec.banded:
        yield "interior = True"
        for axis in every:
            yield f"saved{axis} = row{axis}"
    yield "for slot in range(slots):"
    body = [*_origin(spec), "store_int64(table, slot, origin)"]
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
        body = [*_origin(spec), "line = slot"]
        body += _taps(spec, "fill_page", ["store_int64(table, line, address)", "line += slots"])
        body += ["if slot + 1 < size:", *indent(1, advance(spec))]
        yield from indent(1, [*border, *indent(1, body)])
    yield from advance(spec)


def _taps(spec: ContractionSpec, outside: str, body: list[str]) -> Iterator[str]:
    """`body` for each tap's `address`, which is `outside` where the tap leaves the input."""
    address, known = "origin", ""
    axes = _window_parameters(spec)
    for level, axis in enumerate(axes):
        lines = [
            f"for tap{axis} in range(taps{axis}):",
            f"{INDENT}at{axis} = position{axis} + tap{axis} * dilation{axis}",
            f"{INDENT}inside{axis} = {known}at{axis} >= 0 and at{axis} < input{axis}",
        ]
        yield from indent(level, lines)
        known = f"inside{axis} and "
        address += f" + tap{axis} * dilation{axis} * stride{axis}"
    yield from indent(len(axes), [f"address = {outside}", f"if inside{axes[-1]}:"])
    yield from indent(len(axes), [f"{INDENT}address = {address}", *body])


def _row_packing_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the block's rows as words, all taps of a row side by side."""
    if spec.is_integer:
        yield from _integer_row_packing_lines(spec)
        return
    yield "copy = scratch + rows_offset"
    yield "for row in range(row_count):"
    yield from indent(1, _origin(spec))
    yield from indent(1, _depth_copy_lines(spec, "origin", "depth"))
    yield f"{INDENT}copy += depth * {spec.word.itemsize}"
    yield from indent(1, advance(spec))


def _band_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the positions that the block's rows see, as words, the border among them: no tap
    leaves them. `left_here` is where they would start if they were all. Only the first axis is cut.
    """
    axes = range(len(spec.windowed))
    *outer, last = axes
    yield f"inner = {' * '.join(['1', *(f'row_extent{axis}' for axis in axes[1:])])}"
    yield "low = first_row // inner"
    yield "high = (first_row + row_count - 1) // inner + 1"
    if spec.windowed[0]:
        yield "low, high = low * step0, (high - 1) * step0 + (taps0 - 1) * dilation0 + 1"
    seen = [
        f"{'input' if windowed else 'row_extent'}{axis}"
        for axis, windowed in enumerate(spec.windowed)
    ]
    ranges = ["low, high", *(f"0, {extent}" for extent in seen[1:])]
    first, end = ranges[last].split(", ")
    yield f"length = {_seen_words(spec)}"
    yield f"first, end = {first}, {end}"
    if spec.windowed[last]:
        yield f"first = min(max(first, border{last}), end)"
        yield f"end = max(first, min(end, border{last} + held{last}))"
    yield "copies, words = end - first, length"
    size = spec.dtype.itemsize
    yield f"if left_depth_stride == {size} and source{last} == length * {size}:"
    yield f"{INDENT}copies, words = 1, length * copies"
    yield "copy = scratch + rows_offset"
    for axis in outer:
        yield f"{INDENT * axis}for at{axis} in range({ranges[axis]}):"
    borders = [f"border{axis}" if spec.windowed[axis] else "0" for axis in axes]
    terms = ["left_here", *(f"(at{axis} - {borders[axis]}) * source{axis}" for axis in outer)]
    terms.append(f"(first - {borders[last]}) * source{last}")
    word = spec.word.itemsize
    body = [
        *_fill_lines(spec, f"first - {first}"),
        f"origin = {' + '.join(terms)}",
        "for position in range(copies):",
        *indent(1, _depth_copy_lines(spec, "origin", "words")),
        f"{INDENT}copy += words * {word}",
        f"{INDENT}origin += source{last}",
        *_fill_lines(spec, f"{end} - end"),
    ]
    inside = [
        f"at{axis} >= border{axis} and at{axis} < border{axis} + held{axis}"
        for axis in outer if spec.windowed[axis]
    ]  # fmt: skip
    if inside:
        outside = _fill_lines(spec, f"{end} - {first}")
        body = [f"if {' and '.join(inside)}:", *indent(1, body), "else:", *indent(1, outside)]
    yield from indent(len(outer), body)
    yield "left_here = scratch + rows_offset - low * stride0"


def _fill_lines(spec: ContractionSpec, positions: str) -> list[str]:
    """Lines that write so many positions of the border."""
    return [
        f"for k in range(({positions}) * length):",
        f"{INDENT}put_{spec.word.value}(copy, k, fill_value)",
        f"copy += ({positions}) * length * {spec.word.itemsize}",
    ]


def _depth_copy_lines(spec: ContractionSpec, source: str, count: str) -> list[str]:
    """A loop that vectorises where the depth is contiguous, and one for other strides."""
    read, put = f"read_{spec.dtype.value}", f"put_{spec.word.value}"
    return [
        f"if left_depth_stride == {spec.dtype.itemsize}:",
        f"{INDENT}for k in range({count}):",
        f"{INDENT * 2}{put}(copy, k, {read}({source}, k))",
        "else:",
        f"{INDENT}for k in range({count}):",
        f"{INDENT * 2}{put}(copy, k, {read}({source} + k * left_depth_stride, 0))",
    ]


def _integer_row_packing_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the block's rows, less their zero point; the last word's rest is any."""
    kind, size = _packed_dtype(spec), spec.word.itemsize // spec.products.per_word
    yield "rows_here = scratch + rows_offset"
    yield f"zero = cast_{kind}(left_zero)"
    yield "for row in range(row_count):"
    body = ["copy = rows_here + row * depth * 4", *_origin(spec)]
    value = f"read_{spec.dtype.value}({{}})"
    taken = f"cast_{kind}(cast_{kind}({value}) - zero)"
    put = f"put_{kind}(copy, k, {taken})"
    copied = [
        "if left_depth_stride == 1:",
        f"{INDENT}for k in range(tap_depth):",
        f"{INDENT * 2}{put.format('address, k')}",
        "else:",
        f"{INDENT}for k in range(tap_depth):",
        f"{INDENT * 2}{put.format('address + k * left_depth_stride, 0')}",
    ]
    if any(spec.windowed):
        outside = ["for k in range(tap_depth):", f"{INDENT}put_{kind}(copy, k, fill_value)"]
        copied = ["if address != 0:", *indent(1, copied), "else:", *indent(1, outside)]
        copied += [f"copy += tap_depth * {size}"]
        body += _taps(spec, "0", copied)
    else:
        body += ["address = origin", *copied]
    yield from indent(1, [*body, *advance(spec)])


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
