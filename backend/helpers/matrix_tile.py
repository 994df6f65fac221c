"""The microkernels of CPUs whose instructions multiply matrices (Intel's AMX).

    acc[m, n] += Σ over taps t and words k of  (rows[t, m] + hops[t])[k] · panel[t, k, n]

A register holds 16 rows of 16 words at most: one of row words, one of a panel's, or a square of
sums; an instruction multiplies two and adds to the third. Two groups of rows by two vectors of
columns are summed at a time, always: where a register is free LLVM may take it for another, whose
size it does not know. The words of a tap are cut into chunks of one size, so that no register is
ever part full. Rows that are evenly spaced are read where they lie, others are copied chunk by
chunk.

A word holds four octets, whose sums wrap as those of i32; or two bf16. An f32 is the sum of three
bf16, and so each chunk has three parts, one behind the other; of their nine products those that are
large enough to matter are added, the least first. See `parts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from llvmlite import ir

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.helpers.kinds import Helper, int64
from satura.backend.helpers.part_words import SplitChunk, line_of_zeros
from satura.backend.helpers.vector import INT1, INT32, INT64, VOID, Code, native
from satura.backend.matrices import EDGE, GROUPS, LINE, VECTORS, Multiplication

INSTRUCTIONS = "llvm.x86."  # what the names of functions begin with that are one instruction each
_INT8, _INT16 = ir.IntType(8), ir.IntType(16)
_WORD, _ADDRESS = 4, 8
_SUMS, _ROWS, _PANEL = 0, 4, 6  # the first register of each: there are four, two and two
_PALETTE, _WIDTHS, _HEIGHTS = 0, 16, 48  # bytes of a configuration


@lru_cache(maxsize=1)
def helpers() -> Mapping[str, Helper]:
    """What kernels call before and after microkernels of matrices."""
    return {
        "configure_matrices": native(_configure, (int64, int64)),
        "release_matrices": native(_release, ()),
        "row_of_octets": native(_copy_octets, (int64,) * 6),
    }


def _configure(code: Code, rows: ir.Value, chunk: ir.Value) -> None:
    """Sets up the registers of this thread: groups of `rows` rows, `chunk` words at a time."""
    builder = code.builder
    place = builder.alloca(_INT8, size=INT32(CACHE_LINE))
    place.align = CACHE_LINE
    at = builder.ptrtoint(place, INT64)
    for word in range(CACHE_LINE // _ADDRESS):
        code.store(at, word, code.integer(0))

    def put(offset: int, value: ir.Value, kind: ir.Type) -> None:
        to = code.pointer(code.add(at, code.integer(offset)), kind)
        builder.store(builder.trunc(value, kind), to)

    line, words = code.integer(LINE), code.multiply(chunk, _WORD)
    put(_PALETTE, code.integer(1), _INT8)
    sizes = [(rows, line)] * 4 + [(rows, words)] * 2 + [(chunk, line)] * 2
    for register, (height, width) in enumerate(sizes):
        put(_WIDTHS + 2 * register, width, _INT16)
        put(_HEIGHTS + register, height, _INT8)
    code.call(f"{INSTRUCTIONS}ldtilecfg", VOID, [code.pointer(at, _INT8)])


def _release(code: Code) -> None:
    """Empties the registers, so that the system need not save them."""
    code.call(f"{INSTRUCTIONS}tilerelease", VOID, [])


def matrix_tile(
    code: Code, table: ir.Value, pitch: ir.Value, hops: ir.Value, taps: ir.Value, depth: ir.Value,
    offset: ir.Value, panel: ir.Value, ahead: ir.Value, tile: ir.Value, resume: ir.Value,
    chunk: ir.Value, apart: ir.Value, last: ir.Value, *, rows: int, done: Multiplication,
    splits: bool = False,
) -> None:  # fmt: skip
    """`rows` rows, an even number, by two vectors.

    `configure_matrices` has set up the registers for this `chunk`, of which the depth is a multiple
    in each part. Parts of a row, and so its chunks, are `apart` bytes from one another. Where
    `resume` is 0, sums start from 0, or from the address `last` on if words hold octets. More of
    these are fetched from `ahead` on, if that is not 0. One that `splits` makes the parts of all of
    the panel's chunks but the first, of the f32 from `ahead` on, of which each tap has `last`.
    """
    builder = code.builder
    size = rows // GROUPS
    line, edge = code.integer(VECTORS * LINE), code.integer(LINE)
    places = [(g, n) for g in range(GROUPS) for n in range(VECTORS)]
    copies = builder.alloca(_INT8, size=INT32(done.parts * rows * LINE))
    copies.align = CACHE_LINE
    copied = builder.ptrtoint(copies, INT64)
    words = code.multiply(chunk, done.parts)
    chunks = builder.udiv(depth, words)
    row_step = code.multiply(apart, done.parts)
    panel_step, panel_part = (builder.mul(each, line) for each in (words, chunk))
    none = code.integer(0)
    fetches = done.parts == 1
    fetched = code.choose(builder.icmp_signed("!=", ahead, none), chunk, none)
    zeros = line_of_zeros(code) if splits else none
    soon_step = builder.mul(last, line) if splits else code.multiply(fetched, CACHE_LINE)

    def moved(kind: str, register: int, address: ir.Value, stride: ir.Value) -> None:
        operands = [_INT8(register), code.pointer(address, _INT8), stride]
        code.call(f"{INSTRUCTIONS}tile{kind}d64", VOID, operands)

    def sums(kind: str, start: ir.Value, group_step: int, stride: ir.Value) -> None:
        for g, n in places:
            at = code.add(start, code.integer(g * group_step + n * LINE))
            moved(kind, _SUMS + VECTORS * g + n, at, stride)

    group_bytes = size * VECTORS * LINE

    def resumed() -> list[ir.Value]:
        sums("load", tile, group_bytes, line)
        return []

    def begun() -> list[ir.Value]:
        if fetches:
            sums("load", last, 0, none)
            return []
        for g, n in places:
            code.call(f"{INSTRUCTIONS}tilezero", VOID, [_INT8(_SUMS + VECTORS * g + n)])
        return []

    code.either(builder.icmp_signed("!=", resume, none), resumed, begun)

    def multiplied(
        at: list[tuple[ir.Value, ir.Value]], part: ir.Value, weights: ir.Value,
        between: Callable[[float], None] = lambda share: None,
    ) -> None:  # fmt: skip
        """Adds the products of a chunk, whose row groups are `at` an address with a stride, and
        whose parts are so many bytes apart there. `between` is what is done meanwhile: it is told
        which share of the products there is."""
        count = len(done.pairs) * len(places)
        number = 0
        of_rows = of_panel = -1  # what the registers hold
        for first, second in done.pairs:
            if second != of_panel:
                start = code.add(weights, code.multiply(panel_part, second))
                for n in range(VECTORS):
                    moved("load", _PANEL + n, code.add(start, code.integer(n * LINE)), line)
            for g, (address, stride) in enumerate(at):
                if first != of_rows:
                    moved("load", _ROWS + g, code.add(address, code.multiply(part, first)), stride)
                for n in range(VECTORS):
                    registers = _SUMS + VECTORS * g + n, _ROWS + g, _PANEL + n
                    operands = [_INT8(each) for each in registers]
                    code.call(f"{INSTRUCTIONS}{done.instruction}", VOID, operands)
                    number += 1
                    between(number / count)
            of_rows, of_panel = first, second

    def fetch(k: ir.Value, soon: ir.Value) -> None:
        if not fetches:
            return
        start = code.add(soon, builder.mul(k, soon_step))
        code.loop(fetched, [start], lambda _, state: [_fetched(code, *state)])

    def next_chunk(t: ir.Value, k: ir.Value, source: ir.Value, weights: ir.Value) -> SplitChunk:
        """What is split while chunk k of tap t is multiplied."""
        seen = builder.mul(code.add(k, code.integer(1)), code.multiply(chunk, 2))
        left = builder.sub(last, seen)
        is_in_tap = builder.icmp_signed(">", left, none)
        is_in_panel = builder.icmp_signed("<", code.add(t, code.integer(1)), taps)
        of_next = code.choose(is_in_panel, last, none)
        left = code.choose(is_in_tap, left, of_next)
        lines = code.choose(is_in_tap, seen, last)
        start = code.add(source, builder.mul(lines, line))
        return SplitChunk(start, left, code.add(weights, panel_step), chunk)

    def multiplied_and_split(
        at: list[tuple[ir.Value, ir.Value]], weights: ir.Value, coming: SplitChunk
    ) -> None:
        """The same, while the chunk that comes is split."""
        words = 0

        def between(share: float) -> None:
            nonlocal words
            while words < share * EDGE:
                word = code.integer(words)
                is_one = builder.icmp_signed("<", word, chunk)
                coming.split(code, code.choose(is_one, word, none), zeros)
                words += 1

        multiplied(at, apart, weights, between)

    def tap(t: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        addresses, weights, soon = state
        hop = code.add(code.load(hops, t, INT64), offset)
        first = [code.load(addresses, g * size, INT64) for g in range(GROUPS)]
        strides, even = [edge] * GROUPS, INT1(1)
        if size > 1:
            strides = [
                builder.sub(code.load(addresses, g * size + 1, INT64), first[g])
                for g in range(GROUPS)
            ]
            for g, stride in enumerate(strides):
                here = code.add(addresses, code.integer(g * size * _ADDRESS))
                even = builder.and_(even, _all_apart(code, here, size - 1, stride))
        following = [builder.add(weights, builder.mul(chunks, panel_step))]
        following += [builder.add(soon, soon_step if splits else builder.mul(chunks, soon_step))]

        def in_place(k: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            own, here = builder.mul(k, row_step), code.add(weights, builder.mul(k, panel_step))
            starts = [code.add(address, code.add(hop, own)) for address in first]
            rows_at = list(zip(starts, strides, strict=True))

            def plain() -> list[ir.Value]:
                multiplied(rows_at, apart, here)
                return []

            if not splits:
                plain()
                fetch(k, soon)
                return []
            coming = next_chunk(t, k, soon, here)

            def with_split() -> list[ir.Value]:
                multiplied_and_split(rows_at, here, coming)
                return []

            code.either(builder.icmp_signed(">", coming.left, none), with_split, plain)
            return []

        def as_copies(k: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            own, here = builder.mul(k, row_step), code.add(weights, builder.mul(k, panel_step))
            place = code.add(hop, own)
            for m in range(rows):
                address = code.add(code.load(addresses, m, INT64), place)
                for part in range(done.parts):
                    to = code.add(address, code.multiply(apart, part))
                    code.store(copied, part * rows + m, first_words(code, to, chunk))
            if splits:
                coming = next_chunk(t, k, soon, here)
                is_there = builder.icmp_signed(">", coming.left, none)
                coming.split_all(code, code.choose(is_there, chunk, none), zeros)
            else:
                fetch(k, soon)
            starts = [code.add(copied, code.integer(g * size * LINE)) for g in range(GROUPS)]
            of_part = code.integer(rows * LINE)
            multiplied([(start, edge) for start in starts], of_part, here)
            return []

        code.either(
            even, lambda: code.loop(chunks, [], in_place), lambda: code.loop(chunks, [], as_copies)
        )
        return [code.add(addresses, pitch), *following]

    code.loop(taps, [table, panel, ahead], tap)
    sums("store", tile, group_bytes, line)


def _fetched(code: Code, soon: ir.Value) -> ir.Value:
    code.prefetch(soon)
    return code.add(soon, code.integer(CACHE_LINE))


def _copy_octets(
    code: Code, source: ir.Value, target: ir.Value, words: ir.Value, chunk: ir.Value,
    apart: ir.Value, zero: ir.Value,
) -> None:  # fmt: skip
    """Copies a position's octets chunk by chunk to planes that are so many bytes `apart`: i8, whose
    `zero` is -128, as u8."""
    builder = code.builder
    sign = builder.and_(builder.trunc(zero, INT32), INT32(0x80))
    flip = code.spread(builder.mul(sign, INT32(0x01010101)), EDGE)

    def step(_: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        at, to = state
        code.store(to, 0, builder.xor(first_words(code, at, chunk), flip))
        return [code.add(at, code.multiply(chunk, _WORD)), code.add(to, apart)]

    code.loop(builder.udiv(words, chunk), [source, target], step)


def _all_apart(code: Code, table: ir.Value, count: int, stride: ir.Value) -> ir.Value:
    """Whether each of `count` addresses is this far from the one behind it."""
    kind = ir.VectorType(INT64, count)
    this, following = (
        code.load(code.add(table, code.integer(offset)), 0, kind) for offset in (0, _ADDRESS)
    )
    apart = code.builder.icmp_signed(
        "!=", code.builder.sub(following, this), code.spread(stride, count)
    )
    mask = code.builder.bitcast(apart, ir.IntType(count))
    return code.builder.icmp_signed("==", mask, ir.IntType(count)(0))


def first_words(code: Code, address: ir.Value, count: ir.Value) -> ir.Value:
    """The first `count` words at an address, if any, and zeros; no others are touched."""
    kind = ir.VectorType(INT32, EDGE)
    lanes = ir.Constant(kind, list(range(EDGE)))
    many = code.spread(code.builder.trunc(count, INT32), EDGE)
    wanted = code.builder.icmp_signed("<", lanes, many)
    operands = [code.pointer(address, kind), INT32(1), wanted, ir.Constant(kind, [0] * EDGE)]
    return code.call(f"llvm.masked.load.v{EDGE}i32.p0", kind, operands)
