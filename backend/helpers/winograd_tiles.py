"""The three transforms of Winograd's F(2×2, 3×3), over vectors of channels.

    winograd_tile(points, target, pitch, depth)
        the 16 positions of a tile, whose addresses stand at `points`, each with `depth` channels,
        as 16 sums of them at `target`, `target + pitch`, …

    winograd_weights_V(taps, pitch, target, depth)
        3×3 taps at `taps`, `taps + pitch`, …, each [depth, V vectors], as the 12 parts of their
        transform that are not taps themselves, at `target`, `target + weights_pitch(V)`, …; the
        depth is at most `deepest(V)`

    winograd_results_V(sums, pitch, results)
        16 products at `sums`, `sums + pitch`, …, each V vectors, as the 4 results of a tile at
        `results`, [4, V vectors]; after these an int64, 1 where a number among them is huge or not
        finite

All transform columns first and then rows, as `rewrite/ops/winograd.py` has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import isqrt

import numpy as np
from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.vector import F32, INT64, Code, outlined_helper
from satura.backend.target import host_target
from satura.rewrite.ops.winograd import HUGE

_NAME = re.compile(r"winograd_(results|weights)_(\d+)")
_EDGE, _RESULTS, _TAPS, _F32 = 4, 2, 3, 4
_PART_BYTES = 16 * 1024  # of transformed weights: 12 parts of them stay in L2
_APART = 256  # bytes, so that neighbours share no set of the first cache
_CORNERS = (0, 3, 12, 15)  # parts that are taps


def deepest(vectors: int) -> int:
    """How much depth of so many vectors is transformed at a time."""
    return _PART_BYTES // (vectors * host_target().vector_bytes)


def weights_pitch(vectors: int) -> int:
    """The bytes from one part of transformed weights to the next."""
    return deepest(vectors) * vectors * host_target().vector_bytes + _APART


@cache
def winograd_helper(name: str) -> Helper | None:
    """The helper of that name, or None if it is not one of these."""
    if name == "winograd_tile":
        return outlined_helper(name, _tile, arguments=4)
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    of_weights, vectors = match[1] == "weights", int(match[2])

    def write(code: Code, *values: ir.Value) -> None:
        (_weights if of_weights else _results)(code, vectors, *values)

    return outlined_helper(name, write, arguments=4 if of_weights else 3)


def _tile(code: Code, points: ir.Value, target: ir.Value, pitch: ir.Value, depth: ir.Value) -> None:
    """Whole vectors, of which the last may cover channels again; narrower ones if there are fewer
    channels than a vector has."""
    builder = code.builder
    places = [code.load(points, point, INT64) for point in range(_EDGE**2)]
    targets = [target]
    while len(targets) < _EDGE**2:
        targets.append(code.add(targets[-1], pitch))

    def transform(narrow: Code, channel: ir.Value) -> None:
        at = narrow.multiply(channel, _F32)
        seen = [narrow.load(narrow.add(place, at), 0, narrow.vector) for place in places]
        for place, value in zip(targets, _in_both_axes(narrow, _of_tile, seen), strict=True):
            narrow.store(narrow.add(place, at), 0, value)

    def vectors(narrow: Code) -> None:
        """A loop over all channels, where this is the width of vectors to use."""
        lanes = narrow.integer(narrow.lanes)
        last = builder.sub(depth, lanes)
        fits = builder.icmp_signed(">=", last, narrow.integer(0))
        if narrow.lanes < code.lanes:
            fits = builder.and_(fits, builder.icmp_signed("<", last, lanes))
        count = builder.sdiv(narrow.add(depth, narrow.integer(narrow.lanes - 1)), lanes)

        def step(i: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
            channel = builder.mul(i, lanes)
            is_whole = builder.icmp_signed("<", channel, last)
            transform(narrow, narrow.choose(is_whole, channel, last))
            return state

        narrow.loop(narrow.choose(fits, count, narrow.integer(0)), [], step)

    lanes = code.lanes
    while lanes:
        vectors(replace(code, lanes=lanes))
        lanes //= 2


def _weights(
    code: Code, vectors: int, taps: ir.Value, pitch: ir.Value, target: ir.Value, depth: ir.Value
) -> None:
    size = code.integer(host_target().vector_bytes)
    sources = [taps]
    while len(sources) < _TAPS**2:
        sources.append(code.add(sources[-1], pitch))
    between = weights_pitch(vectors) // host_target().vector_bytes

    def step(_: ir.Value, places: list[ir.Value]) -> list[ir.Value]:
        *sources, place = places
        values = _in_both_axes(
            code, _of_taps, [code.load(source, 0, code.vector) for source in sources]
        )
        made = [value for part, value in enumerate(values) if part not in _CORNERS]
        for part, value in enumerate(made):
            code.store(place, part * between, value)
        return [code.add(each, size) for each in places]

    code.loop(code.multiply(depth, vectors), [*sources, target], step)


def _results(code: Code, vectors: int, sums: ir.Value, pitch: ir.Value, results: ir.Value) -> None:
    sources = [sums]
    while len(sources) < _EDGE**2:
        sources.append(code.add(sources[-1], pitch))
    odd = code.zero()  # turns into NaN where a result is infinite, NaN or huge
    largest = ir.Constant(F32, float(np.finfo(np.float32).max) / HUGE)
    scale = ir.Constant(code.vector, [largest] * code.lanes)
    for vector in range(vectors):
        products = [code.load(source, vector, code.vector) for source in sources]
        for place, value in enumerate(_in_both_axes(code, _of_results, products)):
            code.store(results, place * vectors + vector, value)
            odd = code.fma(code.builder.fmul(value, scale), code.zero(), odd)
    lanes = code.builder.fcmp_unordered("uno", odd, odd)
    bits = code.builder.bitcast(lanes, ir.IntType(code.lanes))
    found = code.builder.icmp_unsigned("!=", bits, bits.type(0))
    words = _RESULTS**2 * vectors * code.lanes * _F32 // 8
    code.store(results, words, code.builder.zext(found, INT64))


def _of_tile(code: Code, a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value) -> list[ir.Value]:
    add, sub = code.builder.fadd, code.builder.fsub
    return [sub(a, c), add(b, c), sub(c, b), sub(b, d)]


def _of_taps(code: Code, first: ir.Value, middle: ir.Value, last: ir.Value) -> list[ir.Value]:
    add, sub, multiply = code.builder.fadd, code.builder.fsub, code.builder.fmul
    half = ir.Constant(code.vector, [0.5] * code.lanes)
    outer = add(first, last)
    return [first, multiply(add(outer, middle), half), multiply(sub(outer, middle), half), last]


def _of_results(code: Code, a: ir.Value, b: ir.Value, c: ir.Value, d: ir.Value) -> list[ir.Value]:
    add, sub = code.builder.fadd, code.builder.fsub
    return [add(add(a, b), c), sub(sub(b, c), d)]


def _in_both_axes(
    code: Code, transform: Callable[..., list[ir.Value]], values: Sequence[ir.Value]
) -> list[ir.Value]:
    """`transform` of the columns of a square matrix, then of the rows of what they give."""
    edge = isqrt(len(values))
    columns = [transform(code, *values[column::edge]) for column in range(edge)]
    rows = zip(*columns, strict=True)
    return [value for row in rows for value in transform(code, *row)]
