"""Copies of a contraction's rows of integers, less their zero point, with all that their taps see.

Taps along the last axis are one run of neighbours where the pixels that they see are.
"""

from __future__ import annotations

from collections.abc import Iterator

from satura.backend.contraction.positions import (
    advance,
    origin_lines,
    packed_dtype,
    tap_lines,
    windowed_axes,
)
from satura.backend.contraction.spec import ContractionSpec
from satura.backend.emit.text import INDENT, indent


def integer_row_lines(spec: ContractionSpec) -> Iterator[str]:
    """Copies of the block's rows; the last word's rest is any."""
    yield "rows_here = scratch + rows_offset"
    yield f"zero = cast_{packed_dtype(spec)}(left_zero)"
    axes = windowed_axes(spec)
    copied = _copy_lines(spec)
    if axes:
        copied = ["if address != 0:", *indent(1, copied), "else:"]
        copied += indent(1, _run_lines(spec, "tap_depth", None))
        copied += [f"copy += tap_depth * {_copied_size(spec)}"]
        copied = list(tap_lines(spec, "0", copied))
    else:
        copied = ["address = origin", *copied]
    if axes and axes[-1] == len(spec.windowed) - 1:
        last = axes[-1]
        yield f"side_by_side = left_depth_stride == 1 and stride{last} == tap_depth"
        yield f"side_by_side = side_by_side and dilation{last} == 1"
        by_run = ["if side_by_side:", *indent(1, _taps_in_runs(spec))]
        if packed_dtype(spec) == "u8":
            by_run = [*_taps_inside(spec), f"el{by_run[0]}", *by_run[1:]]
        copied = [*by_run, "else:", *indent(1, copied)]
    yield "for row in range(row_count):"
    body = ["copy = rows_here + row * depth * 4", *origin_lines(spec), *copied]
    yield from indent(1, [*body, *advance(spec)])


def _copy_lines(spec: ContractionSpec) -> list[str]:
    """The copy of what a tap sees."""
    return [
        "if left_depth_stride == 1:",
        *indent(1, _run_lines(spec, "tap_depth", "address")),
        "else:",
        f"{INDENT}for k in range(tap_depth):",
        f"{INDENT * 2}{_put(spec, 'address + k * left_depth_stride, 0')}",
    ]


def _taps_inside(spec: ContractionSpec) -> Iterator[str]:
    """Copies of what a row sees, of which the taps along the last axis lie side by side, where none
    leaves the input: that is asked once per row."""
    *outer, last = windowed_axes(spec)
    inside = [
        f"position{axis} >= 0 and position{axis} + (taps{axis} - 1) * dilation{axis} < input{axis}"
        for axis in (*outer, last)
    ]
    yield f"if side_by_side and {' and '.join(inside)}:"
    address, runs, hop = "origin", "1", "0"
    if outer:
        *outer, inner = outer
        runs, hop = f"taps{inner}", f"dilation{inner} * stride{inner}"
    for level, axis in enumerate(outer, 1):
        yield f"{INDENT * level}for tap{axis} in range(taps{axis}):"
        address += f" + tap{axis} * dilation{axis} * stride{axis}"
    count = f"taps{last} * tap_depth"
    body = [
        f"octets_copied({address}, copy, {runs}, {hop}, {count}, left_zero)",
        f"copy += {runs} * {count}",
    ]
    yield from indent(len(outer) + 1, body)


def _taps_in_runs(spec: ContractionSpec) -> Iterator[str]:
    """The same, of the taps before the input, in it and behind it."""
    *outer, last = windowed_axes(spec)
    size = _copied_size(spec)
    address, is_inside = f"origin + before * stride{last}", ""
    yield f"within = min(max(-position{last}, 0), taps{last})"
    yield f"beyond = max(min(input{last} - position{last}, taps{last}), within)"
    for level, axis in enumerate(outer):
        lines = [f"for tap{axis} in range(taps{axis}):"]
        lines += [f"{INDENT}at{axis} = position{axis} + tap{axis} * dilation{axis}"]
        yield from indent(level, lines)
        is_inside += f"at{axis} >= 0 and at{axis} < input{axis} and "
        address += f" + tap{axis} * dilation{axis} * stride{axis}"
    body = [
        "before = within",
        "end = beyond",
    ]
    if outer:
        body += [
            f"if not ({is_inside.removesuffix(' and ')}):",
            f"{INDENT}before = taps{last}",
            f"{INDENT}end = taps{last}",
        ]
    runs = {
        "before": None, "(end - before)": address, f"(taps{last} - end)": None,
    }  # fmt: skip
    for taps, source in runs.items():
        body += _run_lines(spec, f"{taps} * tap_depth", source)
        body += [f"copy += {taps} * tap_depth * {size}"]
    yield from indent(len(outer), body)


def _run_lines(spec: ContractionSpec, count: str, source: str | None) -> list[str]:
    """The copy of so many neighbours; where there is no source, of the border."""
    if source is not None and packed_dtype(spec) == "u8":
        return [f"octets_copied({source}, copy, 1, 0, {count}, left_zero)"]
    put = f"put_{packed_dtype(spec)}(copy, k, fill_value)"
    return [
        f"for k in range({count}):",
        f"{INDENT}{_put(spec, f'{source}, k') if source is not None else put}",
    ]


def _put(spec: ContractionSpec, place: str) -> str:
    """The copy of one integer, less the zero point."""
    kind = packed_dtype(spec)
    value = f"cast_{kind}(read_{spec.dtype.value}({place}))"
    return f"put_{kind}(copy, k, cast_{kind}({value} - zero))"


def _copied_size(spec: ContractionSpec) -> int:
    """Bytes of an integer's copy."""
    return spec.word.itemsize // spec.products.per_word
