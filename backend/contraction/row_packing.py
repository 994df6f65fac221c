"""Copies of a contraction's rows as words: row by row, or all positions that a block sees."""

from __future__ import annotations

from collections.abc import Iterator

from satura.backend.contraction.integer_rows import integer_row_lines
from satura.backend.contraction.positions import (
    advance,
    copied_bytes,
    origin_lines,
    seen_words,
)
from satura.backend.contraction.spec import ContractionSpec
from satura.backend.contraction.tile import Products
from satura.backend.emit.text import INDENT, indent
from satura.backend.matrices import EDGE, LINE


def row_packing_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the block's rows as words, all taps of a row side by side."""
    if spec.is_integer:
        yield from integer_row_lines(spec)
        return
    yield "copy = scratch + rows_offset"
    yield "for row in range(row_count):"
    yield from indent(1, origin_lines(spec))
    yield from indent(1, _depth_copy_lines(spec, "origin", "depth"))
    yield f"{INDENT}copy += {copied_bytes(spec)}"
    yield from indent(1, advance(spec))


def band_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the positions that the block's rows see, as words, the border among them: no tap
    leaves them. `left_here` is where they would start if they were all. Only the first axis is cut.
    """
    axes = range(len(spec.windowed))
    *outer, last = axes
    yield f"inner = {' * '.join(['1', *(f'row_extent{axis}' for axis in axes[1:])])}"
    yield "low = first_row // inner"
    yield "high = (first_row + row_count - 1) // inner + 1"
    if spec.windowed[0]:
        yield "low *= step0"
        yield "high = (high - 1) * step0 + (taps0 - 1) * dilation0 + 1"
    seen = [
        f"{'input' if windowed else 'row_extent'}{axis}"
        for axis, windowed in enumerate(spec.windowed)
    ]
    ranges = ["low, high", *(f"0, {extent}" for extent in seen[1:])]
    first, end = ranges[last].split(", ")
    yield f"length = {seen_words(spec)}"
    yield f"first = {first}"
    yield f"end = {end}"
    if spec.windowed[last]:
        yield f"first = min(max(first, border{last}), end)"
        yield f"end = max(first, min(end, border{last} + held{last}))"
    yield "copies = end - first"
    step, size = copied_bytes(spec), spec.dtype.itemsize
    if not spec.planar:
        yield "words = length"
        step = f"words * {spec.word.itemsize}"
        yield f"if left_depth_stride == {size} and source{last} == length * {size}:"
        yield f"{INDENT}words = length * copies"
        yield f"{INDENT}copies = 1"
    yield "copy = scratch + rows_offset"
    for axis in outer:
        yield f"{INDENT * axis}for at{axis} in range({ranges[axis]}):"
    borders = [f"border{axis}" if spec.windowed[axis] else "0" for axis in axes]
    terms = ["left_here", *(f"(at{axis} - {borders[axis]}) * source{axis}" for axis in outer)]
    terms.append(f"(first - {borders[last]}) * source{last}")
    body = [
        *_fill_lines(spec, f"first - {first}"),
        f"origin = {' + '.join(terms)}",
        "for position in range(copies):",
        *indent(1, _depth_copy_lines(spec, "origin", "words")),
        f"{INDENT}copy += {step}",
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
    if spec.planar:
        return [
            "for plane in range(depth // chunk):",
            f"{INDENT}for k in range(({positions}) * {EDGE}):",
            f"{INDENT * 2}put_{spec.word.value}(copy + plane * apart, k, fill_value)",
            f"copy += ({positions}) * {LINE}",
        ]
    return [
        f"for k in range(({positions}) * length):",
        f"{INDENT}put_{spec.word.value}(copy, k, fill_value)",
        f"copy += ({positions}) * length * {spec.word.itemsize}",
    ]


def _depth_copy_lines(spec: ContractionSpec, source: str, count: str) -> list[str]:
    """A loop that vectorises where the depth is contiguous, and one for other strides."""
    if spec.products is Products.PARTS:
        flagged = "apart, scratch + rows_offset, flags"
        first = f"{source} + slab_element * {spec.dtype.itemsize}"
        return [f"row_of_parts({first}, copy, slab_elements, chunk, chunks, {flagged})"]
    if spec.octets_banded:
        return [f"row_of_octets({source}, copy, depth, chunk, apart, left_zero)"]
    read, put = f"read_{spec.dtype.value}", f"put_{spec.word.value}"
    return [
        f"if left_depth_stride == {spec.dtype.itemsize}:",
        f"{INDENT}for k in range({count}):",
        f"{INDENT * 2}{put}(copy, k, {read}({source}, k))",
        "else:",
        f"{INDENT}for k in range({count}):",
        f"{INDENT * 2}{put}(copy, k, {read}({source} + k * left_depth_stride, 0))",
    ]
