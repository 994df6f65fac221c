"""Windows over vectorised columns: depthwise convolutions and pools, several results at a time.

Results that are neighbours along one loop, the step, see much of the same. What they share is
loaded, computed and even combined once, in registers, and every result is finished and stored at
once. What a tap reads outside the operand comes from a page of zeros, or of the window's fill, so
border positions need no code of their own. The outer taps of a large window stay loops, between
whose iterations the totals are kept in scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from satura.backend.cache_lines import whole_lines
from satura.backend.emit.body import Arguments, BodyText, Level
from satura.backend.emit.code import Code
from satura.backend.emit.loops import share, start_odometer, step_odometer
from satura.backend.emit.reductions import identity_text, reads_loops, step_text
from satura.backend.emit.text import indent, kernel_text
from satura.backend.lower.body import MAX_TAPS, Pointer, needed_values
from satura.backend.lower.canonical import Canonical
from satura.backend.sizes.size import defer, is_fixed
from satura.rewrite.types.dims import is_one, is_same

PAGE_BYTES = 32768  # most that the columns may need
RESULTS = 4  # neighbours that are computed at a time
UNITS = 4  # per thread, at least
UNROLLED = 16  # taps that are written out; more are loops
LONGEST_LINE = 32  # taps along the last axis, which are always written out

Place = tuple[int, ...]  # along the step, then along the unrolled taps
_Key = tuple[object, ...]  # of a value at all places where it is the same


def is_small_window(form: Canonical) -> bool:
    """Whether `window_code` serves this nest."""
    nest = form.nest
    if not form.column or len(nest.reductions) != 1 or nest.clips:
        return False
    extents = nest.extents[form.outer : form.outer + form.middle]
    taps = prod(extents)
    if not extents or not all(map(is_fixed, extents)) or extents[-1] > LONGEST_LINE:
        return False
    itemsize = max(value.dtype.compute.itemsize for value in nest.values)
    if taps > MAX_TAPS or nest.extents[-1] * itemsize > PAGE_BYTES:
        return False
    if nest.reductions[0].position is not None:
        return False
    middles = range(form.outer, form.outer + form.middle)
    return not reads_loops(nest, nest.result, middles)


def window_code(name: str, form: Canonical, threads: int, work: int) -> Code:
    """The kernel of a small window, for about `threads` threads."""
    return _Windows(_with_step(form), threads).code(name, work)


def _with_step(form: Canonical) -> Canonical:
    """The same with the step as first middle loop; it may have one iteration."""
    nest, outer = form.nest, form.outer
    best: tuple[int, int] | None = None
    for loop in range(outer):
        seen = _distinct_reads(form, loop)
        if not is_one(nest.extents[loop]) and (best is None or seen <= best[0]):
            best = seen, loop
    step = None if best is None else best[1]
    order = [loop for loop in range(outer) if loop != step]
    moved = [*order, step, *range(outer, len(nest.extents))]

    def restride(strides: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if loop is None else strides[loop] for loop in moved)

    extents = tuple(1 if loop is None else nest.extents[loop] for loop in moved)
    return Canonical(nest.with_loops(extents, restride, ()), len(order), form.middle + 1, True)


def _distinct_reads(form: Canonical, loop: int) -> int:
    """How many addresses `RESULTS` neighbours along `loop` read, whether it is as long or not.

    (That a batch is short is no reason for other kernels.)
    """
    nest = form.nest
    taps = range(form.outer, form.outer + form.middle)
    extents = [nest.extents[tap] for tap in taps]
    seen = 0
    for value in nest.values:
        if value.op == "load" and value.access is not None:
            strides = value.access.strides
            moves = _moves([strides[loop], *(strides[tap] for tap in taps)], extents)
            pairs = zip(extents, moves.moved, strict=True)
            counts = [RESULTS, *(extent if moved else 1 for extent, moved in pairs)]
            if moves.meeting is not None:
                tap, i, j = moves.meeting
                count = counts.pop(tap + 1)
                counts[0] = RESULTS * count - (RESULTS - i) * (count - abs(j))
            seen += prod(counts)
    return seen


@dataclass(frozen=True)
class _Moves:
    """How an address moves: with which taps, and how many steps are as far as how many taps.

    `meeting` is the number of that tap, the steps, and the taps.
    """

    moved: tuple[bool, ...]
    meeting: tuple[int, int, int] | None

    def at(self, place: Place) -> Place:
        """One place of all those that have the same address."""
        step, *taps = (
            at if moved else 0 for at, moved in zip(place, (True, *self.moved), strict=True)
        )
        if self.meeting is not None:
            tap, i, j = self.meeting
            taps[tap] += step // i * j
            step %= i
        return step, *taps


def _moves(strides: Sequence[int], extents: Sequence[int]) -> _Moves:
    """How an address moves whose strides are those of the step, and of taps with these extents.

    Strides that depend on sizes are compared, not read: so only few sizes have their own kernels.
    """
    step, *taps = strides
    moved = tuple(not is_same(tap, 0) for tap in taps)
    if is_same(step, 0):
        return _Moves(moved, (0, 1, 0))
    for at, (tap, extent) in enumerate(zip(taps, extents, strict=True)):
        for i, j in product(range(1, RESULTS), range(1, extent if moved[at] else 1)):
            for signed in (j, -j):
                if is_same(step * i, tap * signed):
                    return _Moves(moved, (at, i, signed))
    return _Moves(moved, None)


def neighbours(results: int) -> int:
    """How many results, of those along a loop, are computed at a time."""
    few = results if is_fixed(results) else 1
    return RESULTS if results >= RESULTS else few


@defer
def parts(most: int, units: int, threads: int) -> int:
    """Into how many parts the steps are cut."""
    return max(1, min(most, -(-UNITS * threads // units)))


class _Windows:
    """Writes one kernel; `form` has the step as its first middle loop."""

    def __init__(self, form: Canonical, threads: int) -> None:
        self.form = form
        self.nest = nest = form.nest
        (self.reduction,) = nest.reductions
        self.arguments = Arguments()
        self.outer = [f"i{axis}" for axis in range(form.outer)]
        self.extents = [self.arguments.new(extent) for extent in nest.extents[: form.outer]]
        self.width = self.arguments.new(nest.extents[-1])
        middles = nest.extents[form.outer : form.outer + form.middle]
        self.steps, self.taps = middles[0], middles[1:]
        self.results = neighbours(self.steps)
        units = prod(nest.extents[: form.outer])
        self.parts = parts(self.steps // self.results, units, threads)
        looped = (at for at in range(len(self.taps)) if prod(self.taps[at:]) <= UNROLLED)
        self.looped = next(looped, len(self.taps) - 1)
        self.loops = [f"j{axis}" for axis in range(self.looped)]
        self.pages: dict[int | None, str] = {}
        self.rows: list[str] = []
        self.gathered: dict[_Key, str] = {}
        self.body = BodyText(
            nest, self.outer, ["step", *(f"j{axis}" for axis in range(len(self.taps)))], "i",
            self.arguments, reduced_level=Level.INNER, page=self._page,
        )  # fmt: skip
        operand = nest.values[self.reduction.operand]
        self.fused = (
            self.reduction.function == "sum" and operand.op == "mul"
            and self.reduction.dtype.is_float
        )  # fmt: skip
        self.targets = operand.operands if self.fused else (self.reduction.operand,)
        self.cones = [self._cone(index) for index in range(len(nest.values))]
        self.known: dict[_Key, str] = {}
        self.row: list[str] = []
        self.before: list[str] = []
        self.inner: list[str] = []
        self.blocks = 0

    def code(self, name: str, work: int) -> Code:
        """The kernel's text and arguments."""
        unit = self._unit()
        parts, steps = self.arguments.new(self.parts), self.arguments.new(self.steps)
        n = self.results  # the last ones of a part overlap those before
        row = [
            f"begin = part * {steps} // {parts}", f"end = (part + 1) * {steps} // {parts}",
            *self.row, f"for block in range((end - begin + {n - 1}) // {n}):",
            *indent(1, [f"step = min(begin + block * {n}, end - {n})", *unit]),
        ]  # fmt: skip
        loops, lengths = [*self.outer, "part"], [*self.extents, parts]
        pages = self._page_lines()
        pitch = whole_lines(self.nest.extents[-1] * 8)
        base: list[str] = []
        if self.rows:
            region, step = self.arguments.new(Pointer(("scratch", 0))), self.arguments.new(pitch)
            base.append(f"scratch = {region} + thread * {len(self.rows)} * {step}")
            base += [f"{row} = scratch + {at} * {step}" for at, row in enumerate(self.rows)]
        lines = [
            "at = args", *self.arguments.lines(), *base, f"count = {' * '.join(lengths)}",
            *share("count"), *self.body.setup, *pages, *start_odometer(loops, lengths, "lo"),
            "for unit in range(hi - lo):",
            *indent(1, [*row, *step_odometer(loops, lengths)]),
        ]  # fmt: skip
        scratch = len(self.rows) * pitch
        return Code(name, kernel_text(lines), tuple(self.arguments.numbers), work, scratch)

    def _row(self, name: str) -> str:
        """The address of as many elements of scratch as there are columns."""
        self.rows.append(name)
        return name

    # Values that several results share

    def _cone(self, index: int) -> list[_Moves]:
        """How all that value `index` reads moves with the step and the unrolled taps."""
        first = self.form.outer
        taps = self.taps[self.looped :]
        cone: list[_Moves] = []
        for source in needed_values(self.nest.values, [index]):
            value = self.nest.values[source]
            if value.access is not None:
                step, *strides = value.access.strides[first:-1]
                cone.append(_moves([step, *strides[self.looped :]], taps))
            elif value.op == "reduced":  # another one for each result
                cone.append(_Moves((False,) * len(taps), None))
        return cone

    def _key(self, index: int, place: Place) -> _Key:
        return index, *(moves.at(place) for moves in self.cones[index])

    def _computed(
        self, targets: Sequence[int], place: Place, given: dict[int, str] | None = None,
        stored: bool = False,
    ) -> list[str]:  # fmt: skip
        """Names of `targets` at `place`, with new lines for what is not known there yet."""
        values = self.nest.values
        names = dict(given or {})
        for index in needed_values(values, targets):
            name = self.known.get(self._key(index, place))
            if name is not None:
                names.setdefault(index, name)
        step, *taps = place
        loops = (f"(step + {step})" if step else "step", *self.loops, *map(str, taps))
        block = self.body.block(targets, names, loops, f"x{self.blocks}")
        if stored:
            self.body.store(block)
        self.blocks += 1
        self.row += block.row
        self.before += block.middle
        self.inner += block.inner
        for index, name in block.names.items():
            if self.body.levels[index] > Level.ROW and index not in (given or {}):
                self.known.setdefault(self._key(index, place), name)
        return [block.names[target] for target in targets]

    def _combined(self, key: _Key, first: str, second: str) -> str:
        """The name of both combined, for ever under `key`."""
        if key not in self.known:
            name = f"both{len(self.known)}"
            self.inner.append(f"{name} = {step_text(self.reduction.function, first, second)}")
            self.known[key] = name
        return self.known[key]

    # The passes over the columns

    def _unit(self) -> list[str]:
        """Lines that compute the results of one step."""
        kind = self.reduction.dtype.value
        identity = identity_text(self.reduction)
        lines: list[str] = []
        if self.looped:
            kept = [self._row(f"kept{k}") for k in range(self.results)]
            puts = [f"put_{kind}({row}, i, first)" for row in kept]
            lines += [f"first = {identity}", *self._columns(puts)]
            self.inner += [f"total{k} = get_{kind}(kept{k}, i)" for k in range(self.results)]
            self._add_taps()
            self.inner += [f"put_{kind}(kept{k}, i, total{k})" for k in range(self.results)]
            around = [*self.before, *self._columns(self.inner)]
            for name, extent in reversed(list(zip(self.loops, self.taps, strict=False))):
                count = self.arguments.new(extent)
                around = [f"for {name} in range({count}):", *indent(1, around)]
            lines += around
            self.before, self.inner, self.known = [], [], {}
            self.inner += [f"total{k} = get_{kind}(kept{k}, i)" for k in range(self.results)]
        else:
            self.inner += [f"total{k} = {identity}" for k in range(self.results)]
            self._add_taps()
        reduced = [i for i, value in enumerate(self.nest.values) if value.op == "reduced"]
        for k in range(self.results):
            place = (k, *(0 for _ in self.taps[self.looped :]))
            given = {**dict.fromkeys(reduced, f"total{k}"), **self._gathered(place)}
            self._computed([self.nest.result], place, given, stored=True)
        return [*lines, *self.before, *self._columns(self.inner)]

    def _gathered(self, place: Place) -> dict[int, str]:
        """What the results read at a distance, in rows of scratch, from which it is vector code."""
        given: dict[int, str] = {}
        for index in needed_values(self.nest.values, [self.nest.result]):
            value = self.nest.values[index]
            if value.op != "load" or value.access is None or value.operands or value.access.extras:
                continue
            if value.access.strides[-1] in (0, value.dtype.itemsize):
                continue
            key = self._key(index, place)
            if key not in self.gathered:
                row, kind = self._row(f"row{len(self.rows)}"), value.dtype.value
                others, self.inner = self.inner, []
                self.known.pop(key, None)
                (name,) = self._computed([index], place)
                self.before += self._columns([*self.inner, f"put_{kind}({row}, i, {name})"])
                self.inner = others
                self.gathered[key] = f"get_{kind}({row}, i)"
                del self.known[key]  # its name is another loop's
            given[index] = self.gathered[key]
        return given

    def _columns(self, inner: Sequence[str]) -> list[str]:
        return [f"for i in range({self.width}):", *indent(1, inner)]

    def _add_taps(self) -> None:
        """Lines that combine the unrolled taps into the totals."""
        *outer, last = (range(extent) for extent in self.taps[self.looped :])
        results = range(self.results)
        if self.fused:
            for taps in product(*outer, last):
                for k in results:
                    a, b = self._computed(self.targets, (k, *taps))
                    self.inner.append(f"total{k} = mul_add({a}, {b}, total{k})")
            return
        for k, tap in product(results, last):
            total = ""
            key: _Key = ()
            for taps in product(*outer):
                place = (k, *taps, tap)
                (name,) = self._computed(self.targets, place)
                key = (*key, self._key(self.targets[0], place))
                total = self._combined(key, total, name) if total else name
            step = step_text(self.reduction.function, f"total{k}", total)
            self.inner.append(f"total{k} = {step}")

    # Pages

    def _page(self, fill: int | None) -> str:
        if fill not in self.pages:
            self.pages[fill] = self._row(f"page{len(self.pages)}")
        return self.pages[fill]

    def _page_lines(self) -> list[str]:
        """Lines that write the pages."""
        lines: list[str] = []
        for fill, page in self.pages.items():
            put = f"put_i64({page}, i, 0)"
            if fill is not None:
                kind = self.nest.values[fill].dtype.value
                put = f"put_{kind}({page}, i, {self.body.names[fill]})"
            lines += self._columns([put])
        return lines
