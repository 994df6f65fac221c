"""Reductions with elementwise work around them: softmax, LayerNorm, pools, plain contractions.

Per iteration of the outer loops (split over threads) there is a pass over the reduced loops for
every level of reductions that need each other's results, and a last pass that stores. In row form
a reduction accumulates in variables, in column form in scratch arrays over the inner loop, of
which one thread takes a block of at most `COLUMNS` iterations at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.backend.cache_lines import CACHE_LINE, whole_lines
from satura.backend.emit.accumulators import Accumulator
from satura.backend.emit.body import Arguments, Block, BodyText, Level
from satura.backend.emit.code import Code
from satura.backend.emit.column_sums import column_sum_lines, is_long_sum
from satura.backend.emit.kept_values import KeptValues
from satura.backend.emit.loops import share, start_odometer, step_odometer
from satura.backend.emit.reductions import cost, has_key, identity_text, reads_loops
from satura.backend.emit.row_groups import GROUP, SHORT_ROW, group_lines, vector_lines
from satura.backend.emit.searched_blocks import search_lines
from satura.backend.emit.text import indent, kernel_text
from satura.backend.lower.body import DEAR, Argument, Pointer, Reduction, needed_values
from satura.backend.lower.canonical import Canonical
from satura.backend.sizes.size import defer
from satura.backend.target import host_target
from satura.rewrite.types.tensor_type import DType

COLUMNS = 512  # accumulators of one block stay in the first-level cache
CHEAP = 4.0  # flops up to which a value is computed again for every row of a column
SIDE_BY_SIDE = 4  # vectors that LLVM takes at a time; what a row has beyond is of narrower ones


def row_code(name: str, form: Canonical, threads: int, work: int) -> Code:
    """A kernel for a nest with reductions, for about `threads` threads."""
    return _Rows(form, threads).code(name, work)


@defer
def _columns_of_a_block(rows: int, columns: int, threads: int) -> int:
    wanted = max(1, -(-2 * threads // rows))
    fair = -(-columns // wanted)
    return max(CACHE_LINE, min(COLUMNS, whole_lines(fair)))


class _Rows:
    """Writes one kernel."""

    def __init__(self, form: Canonical, threads: int) -> None:
        self.form = form
        self.nest = form.nest
        self.arguments = Arguments()
        self.column = form.column
        self.outer = [f"i{axis}" for axis in range(form.outer)]
        self.extents = [self.arguments.new(n) for n in self.nest.extents[: form.outer]]
        self.middle = [f"j{axis}" for axis in range(form.middle)]
        self.steps = self.nest.extents[form.outer : form.outer + form.middle]
        self.middles = [self.arguments.new(extent) for extent in self.steps]
        self.length = self.nest.extents[-1]
        self.block = self._block_size(threads)
        self.inner = self.arguments.new(self.length)
        if self.column:
            self.outer.append("piece")
            self.extents.append(self.arguments.new(-(-self.length // self.block)))
        self.body = BodyText(
            self.nest, self.outer[: form.outer], self.middle, "i", self.arguments,
            "start" if self.column else None, Level.INNER if self.column else Level.ROW,
            is_told_last=True,
        )  # fmt: skip
        self.lanes = host_target().lanes
        plain = not (self.column or self.middle or self.nest.clips)
        plain = plain and all(each.position is None for each in self.nest.reductions)
        self.spread = not self.column and bool(self.middle) and self.length < COLUMNS
        self.grouped = plain and bool(self.outer) and self.length < SHORT_ROW * self.lanes
        self.scratch = 0
        self.scratch_lines: list[str] = []
        self.given: dict[int, str] = {}
        pitch = self.block if self.column else self.length
        self.kept = KeptValues(form, self.body, pitch, self.grouped, self.middles, self._array)
        self.results: dict[str, str] = {}
        self.clips = {clip.loop - form.outer: clip for clip in self.nest.clips}

    def code(self, name: str, work: int) -> Code:
        block_name = self.arguments.new(self.block) if self.column else ""
        accumulators = [self._accumulator(n, r) for n, r in enumerate(self.nest.reductions)]
        passes = self._passes()
        self.kept.plan(passes, self.arguments)
        clips = self._clip_lines()
        phases = [self._pass(n, members, accumulators) for n, members in enumerate(passes)]
        phases.append(self._last_pass())
        row = [*clips, *(line for phase in phases for line in phase)]
        if self.column:
            row = [
                f"start = piece * {block_name}",
                f"width = min({block_name}, {self.inner} - start)", *row,
            ]  # fmt: skip
        is_kept = bool(self.scratch_lines)  # of an empty row nothing is kept, and yet addressed
        per_thread = self.arguments.new(self.scratch) if is_kept else ""
        base = self.arguments.new(Pointer(("scratch", 0))) if is_kept else ""
        lines = [
            "at = args",
            *self.arguments.lines(),
            *([f"scratch = {base} + thread * {per_thread}"] if is_kept else []),
            *self.scratch_lines,
            f"total = {' * '.join(self.extents) or 1}", *share("total"), *self.body.setup,
            *start_odometer(self.outer, self.extents, "lo"),
        ]  # fmt: skip
        if self.grouped:
            lines += group_lines(self.outer, self.extents, phases)
        else:
            step = step_odometer(self.outer, self.extents)
            lines += ["for row in range(hi - lo):", *indent(1, [*row, *step])]
        lines += self.body.last
        few = self.grouped or self.length < SIDE_BY_SIDE * self.lanes
        short = not self.column and few
        numbers: tuple[Argument, ...] = tuple(self.arguments.numbers)
        return Code(name, kernel_text(lines, short), numbers, work, self.scratch)

    # Scratch

    def _block_size(self, threads: int) -> int:
        """Columns per block: few enough for the cache, and enough blocks for the threads."""
        if not self.column:
            return 1
        rows = 1
        for extent in self.nest.extents[: self.form.outer]:
            rows *= extent
        return _columns_of_a_block(rows, self.length, threads)

    def _array(self, dtype: DType, count: int) -> str:
        """The address of a new scratch array of this thread."""
        name = f"s{len(self.scratch_lines)}"
        offset = self.arguments.new(self.scratch)
        self.scratch_lines.append(f"{name} = scratch + {offset}")
        size = max(dtype.itemsize, dtype.compute.itemsize) * count
        self.scratch += whole_lines(size)
        return name

    def _accumulator(self, number: int, reduction: Reduction) -> Accumulator:
        value, position = f"c{number}", f"p{number}"
        if self.column:
            value = self._array(reduction.dtype, self.block)
        if reduction.position is None:
            return Accumulator(reduction, value, None, self.column)
        if self.column:
            position = self._array(DType.I64, self.block)
        return Accumulator(reduction, value, position, self.column)

    # Passes

    def _passes(self) -> list[list[int]]:
        """Numbers of the reductions, in groups that can run over the reduced loops together."""
        stage: list[int] = []
        values = self.nest.values
        for reduction in self.nest.reductions:
            before = [
                stage[values[index].literal]
                for index in needed_values(values, [reduction.operand])
                if values[index].op == "reduced"
            ]
            stage.append(max(before, default=-1) + 1)
        groups = [
            [n for n, at in enumerate(stage) if at == level] for level in range(max(stage) + 1)
        ]
        return groups

    def _pass(
        self, number: int, members: Sequence[int], accumulators: Sequence[Accumulator]
    ) -> list[str]:
        """Lines that compute some reductions; from then on their results can be used."""
        reductions = [self.nest.reductions[n] for n in members]
        if self._is_column_sum(number, reductions):
            sums = [self._column_sum(member, accumulators[member]) for member in members]
            return [line for lines in sums for line in lines]
        before = self._start_pass()
        targets = [reduction.operand for reduction in reductions]
        targets += [r.position for r in reductions if r.position is not None]
        fills = [r.fill for r in reductions if r.fill is not None]
        prepared = self.body.block(fills)
        block = self._block(targets)
        kept = self.kept.places(number, block)
        before += [*prepared.row, *block.row]
        lines: list[str] = []
        inner, again = list(block.inner), list(block.inner)
        searched = [accumulators[n] for n in members] if self._is_searched(reductions) else []
        for member, reduction in zip(members, reductions, strict=True):
            accumulator = accumulators[member]
            start = self._start(reduction, prepared.names)
            lines += accumulator.initial_lines(start)
            if searched:
                continue
            inner += accumulator.step_lines(block.names)
            new = f"choose(is_new, {block.names[reduction.operand]}, {identity_text(reduction)})"
            again += accumulator.step_lines({**block.names, reduction.operand: new})
        for index, place in kept.items():
            put = f"{place.put}, {block.names[index]})"
            inner.append(put)
            again.append(put)
        if self.grouped and self.length >= self.lanes and self._is_dear(targets):
            lines += vector_lines(self.inner, self.lanes, inner, again)
        elif searched:
            puts = inner[len(block.inner) :]
            lines += search_lines(self.inner, block.inner, puts, block.names, searched)
        else:
            lines += self._loops(block, inner)
        for member in members:
            lines += self._finish(member, accumulators[member])
        self.given |= {index: place.get for index, place in kept.items()}
        return [*before, *lines, *self._column_lines()]

    def _is_column_sum(self, number: int, reductions: Sequence[Reduction]) -> bool:
        """Whether all that a pass does is to sum up values in arrays over the columns."""
        keeps = self.kept.has_some(number)
        plain = (self.column and self.middle) or self.spread
        plain = plain and not self.clips and not keeps
        many = len(reductions) > 1 and not self.spread
        return bool(plain) and not many and {each.function for each in reductions} == {"sum"}

    def _column_sum(self, member: int, accumulator: Accumulator) -> list[str]:
        """Lines of one sum; those of a short row are added up at the end, not for every row."""
        reduction = accumulator.reduction
        array = self._array(reduction.dtype, self.length) if self.spread else accumulator.value
        kind, start = reduction.dtype.value, self._start(reduction, {})
        puts = [f"put_{kind}({array}, i, first)"]
        lines = [f"first = {start}", "for i in range(width):", *indent(1, puts)]
        of_block = ""
        if reduction.dtype.is_float and is_long_sum(self.steps):
            of_block = self._array(reduction.dtype, self.block if self.column else self.length)
        lines += column_sum_lines(
            self.body, reduction, array, self.middle, self.middles, self.given, of_block
        )
        if self.spread:
            step = accumulator.step_lines({reduction.operand: f"get_{kind}({array}, i)"})
            last = [f"{accumulator.value} = {start}", "for i in range(width):", *indent(1, step)]
            lines = [f"width = {self.inner}", *lines, *last]
        lines += self._finish(member, accumulator)
        return [*lines, *self._column_lines()]

    def _start(self, reduction: Reduction, names: Mapping[int, str]) -> str:
        """The value that a reduction starts from."""
        text = identity_text(reduction)
        if reduction.fill is None:
            return text
        full = " and ".join(f"h{loop} - l{loop} == {self._count(loop)}" for loop in self.clips)
        return f"choose({full}, {text}, {names[reduction.fill]})"

    def _finish(self, number: int, accumulator: Accumulator) -> list[str]:
        """From now on the result of a reduction can be used; the lines that keep it."""
        reduction = accumulator.reduction
        name = accumulator.position or accumulator.value
        if not self.column and accumulator.position is None and has_key(reduction):
            name = f"key_value({name})"
        lines: list[str] = []
        if self.grouped:
            array, kind = self._array(reduction.dtype, GROUP), reduction.dtype.value
            lines.append(f"put_{kind}({array}, member, {name})")
            name = f"r{number}"
            self.results[name] = f"get_{kind}({array}, member)"
        for index, value in enumerate(self.nest.values):
            if value.op == "reduced" and value.literal == number:
                self.given[index] = name
                if self.column:
                    self.given[index] = f"get_{value.dtype.value}({name}, i)"
        return lines

    def _start_pass(self) -> list[str]:
        """Lines that bring the results so far, where each pass has its own loop over rows."""
        if not self.grouped:
            return []
        self.body.forget_rows()
        return [f"{name} = {text}" for name, text in self.results.items()]

    def _is_dear(self, targets: Sequence[int]) -> bool:
        """Whether what an element costs is worth a loop of its own for the last ones."""
        needed = needed_values(self.nest.values, targets, self.given)
        moving = (index for index in needed if self.body.levels[index] is Level.INNER)
        return self.nest.flops(moving) >= DEAR

    def _is_searched(self, reductions: Sequence[Reduction]) -> bool:
        """Whether a pass finds nothing but places, along rows."""
        if self.column or self.middle or self.clips:
            return False
        return all(each.position is not None for each in reductions)

    def _last_pass(self) -> list[str]:
        before = self._start_pass()
        block = self.body.store(self._block([self.nest.result]))
        level = self.body.levels[self.nest.result]
        middles = range(self.form.outer, self.form.outer + self.form.middle)
        reads_middle = reads_loops(self.nest, self.nest.result, middles)
        if reads_middle or (not self.column and level is Level.INNER):
            return [*before, *block.row, *self._loops(block, block.inner)]
        if block.inner:
            inner = [f"for i in range({self._width()}):", *indent(1, block.inner)]
            return [*before, *block.row, *inner]
        return [*before, *block.row]

    # Loops

    def _width(self) -> str:
        return "width" if self.column else self.inner

    def _count(self, loop: int) -> str:
        """The extent of reduced loop number `loop`."""
        return self.middles[loop]

    def _clip_lines(self) -> list[str]:
        """Lines that set the first and last tap, l and h, of the clipped loops."""
        lines: list[str] = []
        block = self.body.block([clip.origin for clip in self.clips.values()])
        lines += block.row
        for loop, clip in self.clips.items():
            origin = block.names[clip.origin]
            step, extent = self.arguments.new(clip.dilation), self.arguments.new(clip.extent)
            lines += [
                f"l{loop} = first_tap({origin}, {step})",
                f"h{loop} = max(l{loop}, min({self._count(loop)}, "
                f"first_tap({origin} - {extent}, {step})))",
            ]
        return lines

    def _loops(self, block: Block, inner: Sequence[str]) -> list[str]:
        """The middle loops and the inner one around their lines."""
        lines = [
            *block.middle,
            f"for i in range({self._width()}):",
            *indent(1, inner or ["pass"]),
        ]
        for number in reversed(range(len(self.middle))):
            name = self.middle[number]
            bounds = self.middles[number]
            if number in self.clips:
                bounds = f"l{number}, h{number}"
            lines = [f"for {name} in range({bounds}):", *indent(1, lines)]
        return lines

    def _block(self, targets: Sequence[int]) -> Block:
        return self.body.block(targets, self.given)

    def _column_lines(self) -> list[str]:
        """Column form: what is dear and follows from finished reductions alone, once per column."""
        if not self.column or not self.kept.moves(self.nest.result):
            return []
        found: list[int] = []
        for index in range(len(self.nest.values)):
            value = self.nest.values[index]
            if self.body.levels[index] < Level.INNER or value.op in ("reduced", "load"):
                continue
            if index in self.given or self.kept.moves(index) or cost(self.nest, index) < CHEAP:
                continue
            before = needed_values(self.nest.values, [index], self.given)
            if all(self.nest.values[source].op != "reduced" for source in before):
                found.append(index)
        block = self._block(found)
        lines = list(block.inner)
        for index in found:
            value = self.nest.values[index]
            array = self._array(value.dtype, self.block)
            lines.append(f"put_{value.dtype.value}({array}, i, {block.names[index]})")
            self.given[index] = f"get_{value.dtype.value}({array}, i)"
        return [*block.row, "for i in range(width):", *indent(1, lines)] if found else []
