"""A square block of f32, one vector wide and high, transposed in registers."""

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba.core import types

from satura.backend.helpers.vector import INT32, Code, native
from satura.backend.target import host_target


@cache
def transpose_helper() -> object:
    """`transpose_block(source, source_pitch, target, target_pitch)`: target[j, i] = source[i, j]
    for i, j below the number of lanes; addresses and pitches between rows in bytes."""
    lanes = host_target().lanes

    def write(code: Code, *arguments: ir.Value) -> None:
        _transpose(Code(code.builder, lanes), *arguments)

    return native(write, (types.int64,) * 4)


def _transpose(
    code: Code, source: ir.Value, source_pitch: ir.Value, target: ir.Value, target_pitch: ir.Value
) -> None:
    rows = []
    for _ in range(code.lanes):
        rows.append(code.load(source, 0, code.vector))
        source = code.add(source, source_pitch)
    distance = 1
    while distance < code.lanes:  # swap the off-diagonal quarters of every 2·distance square
        for i in range(code.lanes):
            if not i & distance:
                rows[i], rows[i + distance] = _swap_lanes(
                    code, rows[i], rows[i + distance], distance
                )
        distance *= 2
    for row in rows:
        code.store(target, 0, row)
        target = code.add(target, target_pitch)


def _swap_lanes(
    code: Code, upper: ir.Value, lower: ir.Value, distance: int
) -> tuple[ir.Value, ir.Value]:
    """Both rows after the groups of `distance` lanes at odd places above and at even places below
    have changed places."""
    lanes = range(code.lanes)
    evens = [i if not i & distance else code.lanes + i - distance for i in lanes]
    odds = [i + distance if not i & distance else code.lanes + i for i in lanes]
    return _shuffle(code, upper, lower, evens), _shuffle(code, upper, lower, odds)


def _shuffle(code: Code, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    kind = ir.VectorType(INT32, code.lanes)
    return code.builder.shuffle_vector(a, b, ir.Constant(kind, lanes))
