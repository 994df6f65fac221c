"""The e-graph engine: the only file that talks to egglog's low-level bindings.

Everything goes in as text or as tables of numbers and comes out as rows of numbers. A class is
named by a number that is only good until the next `run`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from satura.rewrite.egraph.bindings import bindings
from satura.rewrite.egraph.fork import fresh_bindings

Row = tuple[int, ...]

# Reading a file takes egglog as long as this many facts.
_FEW = 4
_OWN_FILES = Path("/proc/self/fd")  # the open files of this process, by number


@dataclass(frozen=True)
class Step:
    """What one run of rulesets did: matches and seconds by rule, and whether rows changed."""

    matches: dict[str, int]
    seconds: dict[str, float]
    changed: bool


class EGraph:
    """An egglog e-graph. It may not move between threads, nor into a forked process."""

    def __init__(self) -> None:
        if (fresh := fresh_bindings()) is not None:
            globals()["bindings"] = fresh
        self._engine = bindings.EGraph()
        self._classes = _Numbering()
        self._numbers: dict[int, bindings.Value] = {}

    def define(self, text: str) -> None:
        """Run egglog commands: sorts, tables, rules, actions."""
        self._engine.run_program(*self._engine.parse_program(text))

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """A block whose changes are taken back at its end, unless it raises."""
        self.define("(push)")
        yield
        self.define("(pop)")
        self._classes.clear()

    def close(self) -> None:
        """Free the engine, in the thread that made it; nothing may use it after that."""
        del self._engine

    def run(self, *rulesets: str, timed: bool = False) -> Step:
        """Run rulesets one after another, each once.

        Only where it is `timed`, which takes time, there are seconds.
        """
        return self._scheduled(" ".join(f"(run {each})" for each in rulesets), timed)

    def saturate(self, *rulesets: str) -> Step:
        """Run rulesets until none of them changes anything: each once whenever those before it
        have nothing more to do."""
        schedule = ""
        for each in rulesets:
            schedule = f"(saturate {schedule} (run {each}))"
        return self._scheduled(schedule, timed=False)

    def _scheduled(self, schedule: str, timed: bool) -> Step:
        started = perf_counter()
        (output,) = self._outputs(f"(run-schedule {schedule})")
        assert isinstance(output, bindings.RunScheduleOutput)
        report, seconds = output.report, {}
        if timed:
            taken = perf_counter() - started
            seconds = _shares(taken, report.search_and_apply_time_per_rule)
        return Step(report.num_matches_per_rule, seconds, report.updated)

    def insert(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Add rows to relations of numbers."""
        many = {table: entries for table, entries in rows.items() if len(entries) > _FEW}
        commands = [
            f"(set ({table} {' '.join(map(str, row))}) ())"
            for table, entries in rows.items()
            if table not in many
            for row in entries
        ]
        if commands or many:
            with _files(many) as reading:
                self.define("\n".join([*commands, *reading]))

    def sizes(self) -> dict[str, int]:
        """Number of rows per table."""
        (output,) = self._outputs("(print-size)")
        assert isinstance(output, bindings.PrintAllFunctionsSize)
        return dict(output.sizes)

    def numbers(self, table: str) -> list[Row]:
        """Rows of a relation of numbers, sorted. Reads this one table only."""
        (output,) = self._outputs(f"(print-function {table})")
        return _rows_of(output)

    def drain(self, tables: Mapping[str, str]) -> dict[str, list[Row]]:
        """Rows of relations of numbers, sorted; then the rulesets run that empty them."""
        printed = [f"(print-function {table})" for table in tables]
        runs = [f"(run {ruleset})" for ruleset in tables.values()]
        *outputs, _ = self._outputs(f"{' '.join(printed)} (run-schedule {' '.join(runs)})")
        return dict(zip(tables, map(_rows_of, outputs), strict=True))

    def tables(self, names: Iterable[str]) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """Rows of the named tables, results last: those in use, and those that are hidden."""
        functions = self._engine.freeze().functions
        shown: dict[str, list[Row]] = {}
        hidden: dict[str, list[Row]] = {}
        for name in names:
            function = functions[name]
            sorts = [*function.input_sorts, function.output_sort]
            found: tuple[list[tuple[bindings.Value, ...]], ...] = ([], [])
            for row in function.rows:
                found[row.subsumed].append((*row.inputs, row.output))
            for result, rows in zip((shown, hidden), found, strict=True):
                columns = [
                    map(self._converter(sort), column)
                    for sort, column in zip(sorts, zip(*rows, strict=True), strict=bool(rows))
                ]
                result[name] = list(zip(*columns, strict=True))
        return shown, hidden

    def lookup(self, table: str, *numbers: int) -> int | None:
        """The class that a table has for these numbers, if any."""
        value = self._engine.lookup_function(table, [*map(self._number, numbers)])
        return None if value is None else self._classes[value]

    def _number(self, number: int) -> bindings.Value:
        if number not in self._numbers:
            literal = bindings.Lit(bindings.PanicSpan(), bindings.Int(number))
            _, self._numbers[number] = self._engine.eval_expr(literal)
        return self._numbers[number]

    def _outputs(self, commands: str) -> list[object]:
        """What commands give."""
        return list(self._engine.run_program(*self._engine.parse_program(commands)))

    def _converter(self, sort: str) -> Callable[[bindings.Value], int]:
        if sort == "i64":
            return self._engine.value_to_i64
        if sort == "Unit":
            return _zero
        return self._classes.__getitem__


def _shares(seconds: float, per_rule: dict[str, timedelta]) -> dict[str, float]:
    """The seconds of a run by rule, in proportion to egglog's own times, whose unit is wrong."""
    total = sum(per_rule.values(), timedelta())
    if not total:
        return {}
    return {name: seconds * (own / total) for name, own in per_rule.items() if own}


@contextmanager
def _files(rows: Mapping[str, Sequence[Row]]) -> Iterator[list[str]]:
    """Commands that read rows from files, which are there until the block ends."""
    with ExitStack() as files:
        commands = []
        for table, entries in rows.items():
            line = "%d\t" * len(entries[0]) + "\n"
            content = "".join([line % row for row in entries])
            commands.append(f'(input {table} "{files.enter_context(_file(content))}")')
        yield commands


@contextmanager
def _file(content: str) -> Iterator[str]:
    """The path of a file with this content; in memory, where the system has such files."""
    if hasattr(os, "memfd_create") and _OWN_FILES.exists():
        with os.fdopen(os.memfd_create("satura-rows"), "w") as file:
            file.write(content)
            file.flush()
            yield str(_OWN_FILES / str(file.fileno()))
    else:
        with TemporaryDirectory(prefix="satura-egraph-") as folder:
            path = Path(folder, "rows")
            path.write_text(content)
            yield str(path)


def _rows_of(output: object) -> list[Row]:
    """The rows of a relation of numbers that was printed, sorted."""
    assert isinstance(output, bindings.PrintFunctionOutput)
    terms = output.termdag  # a copy each time that one asks for it
    integer = _Integers(terms).__getitem__
    rows = []
    for application, _ in output.terms:
        term = terms.get(application)
        assert isinstance(term, bindings.TermApp)
        rows.append(tuple(map(integer, term.args)))
    return sorted(rows)


class _Numbering(dict[bindings.Value, int]):
    """Numbers values in the order in which they are first asked for."""

    def __missing__(self, value: bindings.Value) -> int:
        self[value] = number = len(self)
        return number


def _zero(value: bindings.Value) -> int:
    return 0


class _Integers(dict[int, int]):
    """The integers among egglog's terms, by the number of their term; most occur many times."""

    def __init__(self, terms: bindings.TermDag) -> None:
        super().__init__()
        self._terms = terms

    def __missing__(self, number: int) -> int:
        term = self._terms.get(number)
        assert isinstance(term, bindings.TermLit) and isinstance(term.value, bindings.Int)
        self[number] = value = term.value.value
        return value
