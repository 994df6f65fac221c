"""Runs of octets to scratch, from each of which a number is taken.

    octets_copied(source, target, runs, hop, count, zero)

copies `runs` runs of `count` octets, which begin `hop` bytes after each other, one behind the
other. Two vectors cover a run where they are no longer than it and it is no longer than both; the
second one ends with the run, and repeats octets of the first. No others are read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from llvmlite import ir

from satura.backend.helpers.kinds import Helper, int64
from satura.backend.helpers.vector import Code, native

_INT8 = ir.IntType(8)
_SIZES = 1, 2, 4, 8, 16, 32  # octets of a vector


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, Helper]:
    """The one helper by its name."""
    return {"octets_copied": native(_copied, (int64,) * 6)}


def _copied(
    code: Code, source: ir.Value, target: ir.Value, runs: ir.Value, hop: ir.Value, count: ir.Value,
    zero: ir.Value,
) -> None:  # fmt: skip
    builder = code.builder
    some = builder.icmp_signed(">", count, code.integer(0))
    runs = builder.select(some, runs, code.integer(0))

    def of(sizes: tuple[int, ...]) -> list[ir.Value]:
        size, *larger = sizes

        def run(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            here, there = state
            _copy_run(code, here, there, count, zero, size, is_long=not larger)
            return [code.add(here, hop), code.add(there, count)]

        def all_runs() -> list[ir.Value]:
            code.loop(runs, [source, target], run)
            return []

        if not larger:
            return all_runs()
        covered = builder.icmp_signed("<=", count, code.integer(2 * size))
        return code.either(covered, all_runs, lambda: of(tuple(larger)))

    of(_SIZES)


def _copy_run(
    code: Code, source: ir.Value, target: ir.Value, count: ir.Value, zero: ir.Value, size: int,
    is_long: bool,
) -> None:  # fmt: skip
    """Copies a run that one vector fits into; one that two cover, unless it `is_long`."""
    builder, kind = code.builder, ir.VectorType(_INT8, size)
    taken = code.spread(builder.trunc(zero, _INT8), size)
    last = builder.sub(count, code.integer(size))

    def move(at: ir.Value) -> None:
        octets = code.load(code.add(source, at), 0, kind)
        code.store(code.add(target, at), 0, builder.sub(octets, taken))

    def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        move(code.multiply(i, size))
        return []

    whole = builder.udiv(last, code.integer(size)) if is_long else code.integer(0)
    code.loop(builder.add(whole, code.integer(1)), [], step)
    move(last)
