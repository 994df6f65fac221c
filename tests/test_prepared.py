"""Engines that are kept: what a saturation gives does not depend on those before it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from satura.rewrite.egraph import prepared
from satura.rewrite.egraph.engine import EGraph
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.errors import RuleError
from satura.rewrite.extract.extract import extract
from satura.rewrite.isolation.process import FORKS
from satura.rewrite.language.dsl import Law, RuleSet, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import transpose, unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Perm, UnaryFn
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT, NONE
from tests.tiers import deep_but


def activation(name: str, turns: int) -> Program:
    """A function of constants and of a matrix that is turned some times."""
    build = Builder()
    x = build.input("x", DType.F32, (4, 6))
    for _ in range(turns):
        x = build.unary(name, build.transpose(x, (1, 0)))
    half = build.broadcast(build.constant([[0.5]], DType.F32), build.type(x).shape)
    padded = build.pad(build.binary("mul", x, half), (0, 1), (1, 0))
    return build.program({"y": padded, "z": build.reduce("sum", padded, (1,))})


PROGRAMS = [activation(name, turns) for name in ("relu", "exp") for turns in (1, 2)]


def everything(program: Program, rules: RuleSet) -> tuple[object, ...]:
    """All that a saturation gives but the seconds that it took."""
    result = saturate(program, rules, extract=extract)
    report = result.report
    counts = [
        (entry.name, entry.matches, entry.new_nodes, entry.demand_calls, entry.refusals)
        for entry in report.rules
    ]
    rounds = [entry.nodes for entry in report.rounds]
    return result.classes, result.origins, result.program_classes, counts, rounds, result.best


def in_new_engine(program: Program, rules: RuleSet) -> tuple[object, ...]:
    """`everything` in an engine of its own: threads keep none."""
    found: list[tuple[object, ...]] = []
    thread = threading.Thread(target=lambda: found.append(everything(program, rules)))
    thread.start()
    thread.join()
    return found[0]


def engines() -> int:
    gc.collect()
    return sum(isinstance(thing, EGraph) for thing in gc.get_objects())


SOME = RuleSet(*[*DEFAULT][::8])


@pytest.mark.parametrize(
    "rules", deep_but([SOME], [DEFAULT, SOME, NONE]), ids=lambda rules: f"{len(rules)} rules"
)
def test_nothing_depends_on_what_was_saturated_before(rules: RuleSet) -> None:
    expected = [in_new_engine(program, rules) for program in PROGRAMS]
    for index in (0, 1, 2, 3, 2, 1, 0, 0):
        assert everything(PROGRAMS[index], rules) == expected[index]


def test_the_same_rules_are_declared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[EGraph] = []

    def counted() -> EGraph:
        made.append(EGraph())
        return made[-1]

    monkeypatch.setattr("satura.rewrite.egraph.prepared.EGraph", counted)
    rules = RuleSet(failing)
    for program in PROGRAMS:
        saturate(program, rules)
    assert len(made) == 1


@pytest.mark.deep
def test_few_engines_are_kept() -> None:
    before = engines()
    rules = [*DEFAULT][:7]
    for some in range(len(rules)):
        saturate(PROGRAMS[0], RuleSet(*rules[:some]))
    assert engines() <= before + 4


@attribute_function
def on_two_axes(p: Perm) -> Perm:
    """p, which has two axes."""
    if len(p.order) > 2:
        raise ValueError("too many axes")
    return p


@attribute_function
def saturating(p: Perm) -> Perm:
    """p, after a saturation with the rule that asks."""
    if len(p.order) > 2:
        saturate(PROGRAMS[1], RuleSet(nested))
    return p


@rule
def failing(f: UnaryFn, x: Tensor, p: Perm) -> Law:
    """f(transpose(x, p)) = transpose(f(x), p)"""
    return rewrites(unary(f, transpose(x, p)), transpose(unary(f, x), on_two_axes(p)))


@rule
def nested(f: UnaryFn, x: Tensor, p: Perm) -> Law:
    """f(transpose(x, p)) = transpose(f(x), p)"""
    return rewrites(unary(f, transpose(x, p)), transpose(unary(f, x), saturating(p)))


def three_axes() -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 4))
    return build.program({"y": build.unary("relu", build.transpose(x, (2, 0, 1)))})


def test_a_saturation_that_fails_leaves_nothing_behind() -> None:
    rules = RuleSet(failing)
    expected = in_new_engine(PROGRAMS[1], rules)
    for _ in range(2):
        with pytest.raises(RuleError, match="too many axes"):
            saturate(three_axes(), rules)
        assert everything(PROGRAMS[1], rules) == expected


def test_an_engine_of_a_saturation_that_fails_is_freed_by_its_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error holds on to all that was there, and may be dropped anywhere."""
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    errors: list[RuleError] = []

    def fail() -> None:
        try:
            saturate(three_axes(), RuleSet(failing))
        except RuleError as error:
            errors.append(error)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert "too many axes" in str(errors.pop())
    gc.collect()
    assert unraisable == []


def test_a_saturation_inside_another_has_an_engine_of_its_own() -> None:
    rules = RuleSet(nested)
    expected = in_new_engine(three_axes(), rules)
    assert everything(three_axes(), rules) == everything(three_axes(), rules) == expected


@pytest.mark.deep
def test_an_engine_that_is_dropped_has_closed_its_files() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4,))
    for _ in range(500):
        x = build.unary("relu", x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_new_engine(build.program({"y": x}), NONE)
        gc.collect()
    assert not caught


_FORK = """
import os, sys
from satura.rewrite.egraph.saturate import saturate
from satura.rules import NONE
from tests.test_prepared import PROGRAMS
here = saturate(PROGRAMS[0], NONE).classes
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert saturate(PROGRAMS[0], NONE).classes == here
sys.exit(7)
"""


@pytest.mark.deep
@pytest.mark.skipif(not FORKS, reason="there is no fork here")
def test_a_forked_process_ends_by_itself() -> None:
    command = [sys.executable, "-c", _FORK]
    found = subprocess.run(command, cwd=Path(__file__).parent.parent, timeout=300, check=False)
    assert found.returncode == 7


def test_an_engine_that_has_grown_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, count in ((1_000_000, 1), (10, 0)):
        monkeypatch.setattr(prepared, "_kept", {})
        monkeypatch.setattr(prepared, "_MOST_ROWS", most)
        saturate(PROGRAMS[0], NONE)
        assert len(prepared._kept) == count


_COLLECTED = """
import gc
from satura.rewrite.egraph.saturate import saturate
from satura.rules import NONE
from tests.test_prepared import PROGRAMS
seen, collections = [], []
def extract(classes):
    seen.append([[each] for each in range(20_000)])
    return type("Extracted", (), {"seconds": 1.0})()
gc.collect()
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
saturate(PROGRAMS[0], NONE, extract=extract)
during, collections[:] = [*collections], []
old = {id(each) for each in gc.get_objects(generation=2)}
print(during, all(id(each) in old for lists in seen for each in lists))
"""


def test_saturation_looks_for_no_cycles() -> None:
    """What it makes counts as old at its end, so that nothing looks through it then."""
    command, here = [sys.executable, "-c", _COLLECTED], Path(__file__).parent.parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert done.stdout == "[] True\n", done.stderr
