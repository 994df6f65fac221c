"""A run of octets to scratch, from each of which a number is taken.

    octets_copied(source, target, count, zero)

The last vector of a run ends with the run, and so may repeat octets of the one before: no others
are read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from llvmlite import ir

from satura.backend.helpers.kinds import Helper, int64
from satura.backend.helpers.vector import Code, native

_INT8 = ir.IntType(8)
_WIDE, _NARROW = 16, 4  # octets of a vector


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, Helper]:
    """The one helper by its name."""
    return {"octets_copied": native(_copied, (int64,) * 4)}


def _copied(
    code: Code, source: ir.Value, target: ir.Value, count: ir.Value, zero: ir.Value
) -> None:
    def of(size: int) -> list[ir.Value]:
        _in_vectors(code, source, target, count, zero, size)
        return []

    def is_enough(size: int) -> ir.Value:
        return code.builder.icmp_signed(">=", count, code.integer(size))

    def short() -> list[ir.Value]:
        return code.either(is_enough(_NARROW), lambda: of(_NARROW), lambda: of(1))

    code.either(is_enough(_WIDE), lambda: of(_WIDE), short)


def _in_vectors(
    code: Code, source: ir.Value, target: ir.Value, count: ir.Value, zero: ir.Value, size: int
) -> None:
    """Copies a run of no octets or at least `size`."""
    builder, kind = code.builder, ir.VectorType(_INT8, size)
    taken = code.spread(builder.trunc(zero, _INT8), size)
    last = builder.sub(count, code.integer(size))

    def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        at = code.multiply(i, size)
        at = builder.select(builder.icmp_signed("<", at, last), at, last)
        octets = code.load(code.add(source, at), 0, kind)
        code.store(code.add(target, at), 0, builder.sub(octets, taken))
        return []

    steps = builder.add(count, code.integer(size - 1))
    code.loop(builder.udiv(steps, code.integer(size)), [], step)
