"""Rows of a tensor to scratch, in whole vectors: as they are, or every other element apart.

    rows_f32_1(here, pitch, rows, there, line, count, fill, apart)

copies `count` elements of each row; what the last vector of a row has more is the element at
address `fill`, and lies where the next row begins. `pitch` and `line` are the distances between
rows in bytes. `rows_f32_2` takes the elements at odd places to `apart` bytes behind the others.
`rows_…_max` and `rows_…_min` write keys: the integers that order them, see `arithmetic.key_of`.
"""

from __future__ import annotations

import re
from functools import cache

from llvmlite import ir

from satura.backend.helpers.arithmetic import key_of
from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.vector import F32, F64, INT32, INT64, Code, outlined_helper

_NAME = re.compile(r"rows_f(32|64)_([12])(?:_(max|min))?")


@cache
def row_copies_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it copies no rows."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    size, step = int(match[1]) // 8, int(match[2])

    def write(code: Code, *arguments: ir.Value) -> None:
        here, pitch, rows, there, line, count, fill, apart = arguments
        builder, lanes = code.builder, code.lanes
        rest = code.broadcast(fill, code.integer(0))
        each = code.integer(step * lanes)
        full = builder.udiv(count, each)
        left = builder.sub(count, builder.mul(full, each))
        more = builder.zext(builder.icmp_unsigned("!=", left, code.integer(0)), INT64)

        def row(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            source, target = state

            def store(i: ir.Value, seen: list[ir.Value]) -> None:
                place = code.add(target, code.multiply(i, lanes * size))
                if step == 2:
                    seen = [_every_other(code, seen[0], seen[1], first) for first in range(2)]
                for value in seen:
                    code.store(place, 0, key_of(builder, value, match[3]) if match[3] else value)
                    place = code.add(place, apart)

            def whole(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                at = code.add(source, code.multiply(i, step * lanes * size))
                store(i, [code.load(at, k, code.vector) for k in range(step)])
                return []

            def part(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                at = code.add(source, code.multiply(full, step * lanes * size))
                store(full, [_first(code, at, left, k * lanes, rest) for k in range(step)])
                return []

            code.loop(full, [], whole)
            code.loop(more, [], part)
            return [code.add(source, pitch), code.add(target, line)]

        code.loop(rows, [here, there], row)

    return outlined_helper(name, write, 8, F64 if size == 8 else F32)


def _first(code: Code, at: ir.Value, count: ir.Value, start: int, rest: ir.Value) -> ir.Value:
    """A vector of the elements from `start` on of `count` ones at `at`; behind them, of `rest`."""
    builder, lanes = code.builder, code.lanes
    words = ir.VectorType(INT32, lanes)
    undefined = ir.Constant(words, ir.Undefined)
    one = builder.insert_element(undefined, builder.trunc(count, INT32), INT32(0))
    counts = builder.shuffle_vector(one, undefined, ir.Constant(words, [0] * lanes))
    places = ir.Constant(words, list(range(start, start + lanes)))
    inside = builder.icmp_signed("<", places, counts)
    width = 8 if code.scalar == F64 else 4
    place = builder.gep(code.pointer(at, code.scalar), [code.integer(start)])
    pointer = builder.bitcast(place, code.vector.as_pointer())
    name = f"llvm.masked.load.v{lanes}f{8 * width}.p0"
    return code.call(name, code.vector, [pointer, INT32(width), inside, rest])


def _every_other(code: Code, a: ir.Value, b: ir.Value, first: int) -> ir.Value:
    """The elements of both vectors at even or odd places."""
    places = [first + 2 * lane for lane in range(code.lanes)]
    return code.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, code.lanes), places))
