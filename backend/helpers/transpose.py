"""A square block of elements, transposed in registers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache, partial

from llvmlite import ir

from satura.backend.helpers.kinds import Helper, int64
from satura.backend.helpers.vector import INT32, Code, native
from satura.backend.target import host_target


@lru_cache(maxsize=1)
def transpose_helpers() -> Mapping[str, Helper]:
    """`transpose_block_B(edge, source, source_pitch, target, target_pitch)` for elements of B bits:
    target[j, i] = source[i, j] for i, j below `edge`, which is one of the target's; addresses and
    pitches between rows in bytes."""
    return {
        f"transpose_block_{bits}": native(partial(_transpose, bits), (int64,) * 5)
        for bits in (8, 16, 32, 64)
    }


def _transpose(bits: int, code: Code, edge: ir.Value, *places: ir.Value) -> None:
    """Instructions for each edge, of which one is run."""
    *others, smallest = host_target().block_edges(bits // 8)
    with ExitStack() as stack:
        for each in others:
            is_it = code.builder.icmp_signed("==", edge, code.integer(each))
            then, otherwise = stack.enter_context(code.builder.if_else(is_it))
            with then:
                _transpose_square(bits, each, code, *places)
            stack.enter_context(otherwise)
        _transpose_square(bits, smallest, code, *places)


def _transpose_square(
    bits: int, edge: int, code: Code, source: ir.Value, source_pitch: ir.Value, target: ir.Value,
    target_pitch: ir.Value,
) -> None:  # fmt: skip
    kind = ir.VectorType(ir.IntType(bits), edge)
    rows = []
    for _ in range(edge):
        row = code.builder.load(code.pointer(source, kind))
        row.align = bits // 8
        rows.append(row)
        source = code.add(source, source_pitch)
    distance = 1
    while distance < edge:  # swap the off-diagonal quarters of every 2·distance square
        for i in range(edge):
            if not i & distance:
                rows[i], rows[i + distance] = _swap_lanes(
                    code, rows[i], rows[i + distance], distance
                )
        distance *= 2
    for row in rows:
        code.builder.store(row, code.pointer(target, kind)).align = bits // 8
        target = code.add(target, target_pitch)


def _swap_lanes(
    code: Code, upper: ir.Value, lower: ir.Value, distance: int
) -> tuple[ir.Value, ir.Value]:
    """Both rows after the groups of `distance` lanes at odd places above and at even places below
    have changed places."""
    edge = upper.type.count
    lanes = range(edge)
    evens = [i if not i & distance else edge + i - distance for i in lanes]
    odds = [i + distance if not i & distance else edge + i for i in lanes]
    return _shuffle(code, upper, lower, evens), _shuffle(code, upper, lower, odds)


def _shuffle(code: Code, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    kind = ir.VectorType(INT32, len(lanes))
    return code.builder.shuffle_vector(a, b, ir.Constant(kind, lanes))
