"""Which positions of the left operand the rows of a contraction see, as lines of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from satura.backend.contraction.spec import ContractionSpec
from satura.backend.contraction.tile import Products
from satura.backend.emit.text import INDENT, indent
from satura.backend.matrices import LINE


def seen_words(spec: ContractionSpec) -> str:
    """How many words of a position the rows see, those of all groups in a vector."""
    return "depth" if spec.shared <= 1 else f"depth * {spec.shared}"


def copied_bytes(spec: ContractionSpec) -> str:
    """From a position's copy to the next one's: in planes, a line of each."""
    if spec.planar:
        return str(LINE)
    return f"{seen_words(spec)} * {spec.word.itemsize}"


def fill_value_text(spec: ContractionSpec) -> str:
    if spec.is_integer and spec.left_packed and not spec.octets_banded:
        return f"cast_{packed_dtype(spec)}(fill)"
    return f"scalar_{spec.word.value}(fill)"


def packed_dtype(spec: ContractionSpec) -> str:
    """What integers are copied as."""
    return "i16" if spec.products is Products.PAIRS else "u8"


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


def windowed_axes(spec: ContractionSpec) -> list[int]:
    return [axis for axis, windowed in enumerate(spec.windowed) if windowed]


def origin_lines(spec: ContractionSpec) -> Iterator[str]:
    """`origin`: the address of what the first tap of the row at row0, row1, … sees."""
    terms = ["left_here"]
    for axis, windowed in enumerate(spec.windowed):
        if windowed:
            yield f"position{axis} = row{axis} * step{axis} - lo{axis}"
        terms.append(f"{'position' if windowed else 'row'}{axis} * stride{axis}")
    yield f"origin = {' + '.join(terms)}"


def tap_lines(spec: ContractionSpec, outside: str, body: list[str]) -> Iterator[str]:
    """`body` for each tap's `address`, which is `outside` where the tap leaves the input."""
    address, known = "origin", ""
    axes = windowed_axes(spec)
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
