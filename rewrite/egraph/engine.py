"""The e-graph engine: the only file that talks to egglog's low-level bindings.

Everything goes in as text or as tables of numbers and comes out as rows of numbers. A class is
named by a number that is only good until the next `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


@dataclass(frozen=True)
class Step:
    """What one run of a ruleset did: matches and seconds by rule, and whether rows changed."""

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

    def run(self, ruleset: str, saturate: bool = False) -> Step:
        """Run a ruleset once, or until it changes nothing."""
        started = perf_counter()
        schedule = f"(saturate (run {ruleset}))" if saturate else f"(run {ruleset})"
        output = self._output(f"(run-schedule {schedule})")
        assert isinstance(output, bindings.RunScheduleOutput)
        report = output.report
        seconds = _shares(perf_counter() - started, report.search_and_apply_time_per_rule)
        return Step(report.num_matches_per_rule, seconds, report.updated)

    def insert(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Add rows to relations of numbers."""
        few = {table: entries for table, entries in rows.items() if len(entries) <= _FEW}
        facts = [
            f"(set ({table} {' '.join(map(str, row))}) ())" for table in few for row in few[table]
        ]
        self.define("\n".join(facts))
        if len(few) < len(rows):
            with TemporaryDirectory(prefix="satura-egraph-") as folder:
                for table, entries in rows.items():
                    if table not in few:
                        path = Path(folder, table)
                        path.write_text(
                            "".join("\t".join(map(str, row)) + "\t\n" for row in entries)
                        )
                        self.define(f'(input {table} "{path}")')

    def sizes(self) -> dict[str, int]:
        """Number of rows per table."""
        output = self._output("(print-size)")
        assert isinstance(output, bindings.PrintAllFunctionsSize)
        return dict(output.sizes)

    def numbers(self, table: str) -> list[Row]:
        """Rows of a relation of numbers, sorted. Reads this one table only."""
        output = self._output(f"(print-function {table})")
        assert isinstance(output, bindings.PrintFunctionOutput)
        terms = output.termdag  # a copy each time that one asks for it
        integer = _Integers(terms).__getitem__
        rows = []
        for application, _ in output.terms:
            term = terms.get(application)
            assert isinstance(term, bindings.TermApp)
            rows.append(tuple(map(integer, term.args)))
        return sorted(rows)

    def tables(self, names: Iterable[str]) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """Rows of the named tables, results last: those in use, and those that are hidden."""
        functions = self._engine.freeze().functions
        shown: dict[str, list[Row]] = {}
        hidden: dict[str, list[Row]] = {}
        for name in names:
            function = functions[name]
            sorts = [*function.input_sorts, function.output_sort]
            for result, is_hidden in ((shown, False), (hidden, True)):
                rows = [(*r.inputs, r.output) for r in function.rows if r.subsumed is is_hidden]
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

    def _output(self, command: str) -> object:
        """What a command that has one output gives."""
        (output,) = self._engine.run_program(*self._engine.parse_program(command))
        return output

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
