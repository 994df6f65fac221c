"""`python -m benchmarks search`: the CPU time of `satura.compile` before kernels, in units of time.

A unit is a fixed loop of pure Python, a second on an idle core of a Zen 5. It runs before and after
every model, so that what is printed compares between machines, and on a busy one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from time import process_time
from typing import TypeVar

from benchmarks.models import build
from satura.commands.terminal import print_rows
from satura.pipeline.models import load
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import best_choice, rules_for
from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.exact import exact
from satura.rewrite.extract.extract import Appraised, appraiser
from satura.rewrite.extract.landmarks import landmarks
from satura.rewrite.extract.settle import schedule

# Steps. A Zen 5 takes 0.93 to 1.05 s, by the same measure a Zen 3 2.4 s and a Zen 2 2.7 s.
UNIT = 17_000_000
CLOSE = 0.01  # a gap that asks for no better bound
_T = TypeVar("_T")


def unit() -> float:
    """CPU seconds of the fixed loop."""
    started = process_time()
    total, seen = 0, {}
    for step in range(UNIT):
        seen[step & 1023] = total
        total = (total * 31 + step) & 0xFFFFFF
    return process_time() - started


def search(names: list[str]) -> None:
    """Print what the search for each model takes, what it finds, and below which cost there is no
    choice of the same candidates."""
    header = [
        "model", "load s", "saturate s", "extract s", "unit s", "all in units", "e-nodes",
        "dispatches", "cost ms", "bound ms", "gap at most",
    ]  # fmt: skip
    rows = ([name, *_row(name)] for name in names)
    print_rows(f"CPU time of the search; a unit is {UNIT:,} steps of Python", header, rows)


def _row(name: str) -> list[str]:
    """What is printed of a model."""
    model, rules = build(name), rule_set("default")
    inner, within = appraiser(), [0.0]

    def extract(classes: EClasses) -> Appraised:
        found, seconds = time_call(lambda: inner(classes))
        within[0] += seconds
        return found

    before = unit()
    program, loading = time_call(lambda: load(model))
    everything = rules_for(program, rules)
    found, saturating = time_call(lambda: saturate(program, everything, extract=extract))
    (candidates, result), choosing = time_call(lambda: best_choice(found))
    one = min(before, unit())
    made = schedule(candidates, result)
    bounded = _with_bound(candidates.graph, result)
    phases = loading, saturating - within[0], choosing + within[0]
    return [
        *(f"{seconds:.2f}" for seconds in (*phases, one)), f"{sum(phases) / one:.2f}",
        str(found.report.nodes), str(len(made.dispatches)),
        f"{bounded.cost * 1e3:.4g}", f"{bounded.bound * 1e3:.4g}", f"{bounded.gap:.1%}",
    ]  # fmt: skip


def _with_bound(graph: ChoiceGraph, result: Result) -> Result:
    """A choice with the bound of the landmarks, or where that leaves much, and scipy is there, of
    the integer program."""
    bounded = replace(result, bound=landmarks(graph).bound)
    if bounded.gap <= CLOSE or not find_spec("scipy"):
        return bounded
    return replace(result, bound=max(bounded.bound, exact(graph).bound))


def time_call(run: Callable[[], _T]) -> tuple[_T, float]:
    """What a function returns, and its CPU seconds."""
    started = process_time()
    return run(), process_time() - started
