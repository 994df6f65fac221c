"""Movement cases from public compilers' issue threads: `start >> goal`, and twins that must stay.

A goal is in the start's e-class after saturation with the default rules, and not without rules;
what is extracted costs no more than the goal, and its schedule is better than one without rules.
Where no anchor separates what should meet, index maps give that schedule without rules: these
cases are named in SOLVED_BY_INDEX_MAPS. A twin looks like a case and is not one: its wrong form
must not be in the class. Where a program names a tensor `0`, it means its first one, x.
"""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.egraph.classes import EClasses, find_class
from satura.rewrite.egraph.saturate import Saturation, saturate
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array
from satura.rules import DEFAULT, NONE
from tests.layout_cases import LAYOUT_CASES
from tests.movement_words import Build, Case, Cases
from tests.part_cases import PART_CASES

CASES: dict[str, Case] = {**LAYOUT_CASES, **PART_CASES}


def program_of(build: Build) -> Program:
    builder = Cases()
    result = build(builder)
    results = result if isinstance(result, tuple) else (result,)
    return builder.program({f"y{number}": node for number, node in enumerate(results)})


def is_reached(case: Case, classes: EClasses) -> bool:
    """Whether each output of the goal is in the class of the start's output of that name."""
    goal = program_of(case.goal)
    found = find_class(classes, goal)
    return all(found[node] == dict(classes.outputs)[name] for name, node in goal.outputs)


def work(schedule: Schedule) -> tuple[int, ...]:
    """What the schedule does: its dispatches, the bytes they store and move, their flops."""
    counts = statistics(schedule)
    return tuple(counts[name] for name in COUNTS)


def run(program: Program) -> dict[str, Array]:
    arguments = {}
    for index in program.inputs:
        node = program.nodes[index]
        shape = tuple(map(static, node.type.shape))
        random = np.random.default_rng(list(node.input_name.encode()))
        arguments[node.input_name] = random.normal(size=shape).astype(node.type.dtype.numpy)
    return interpret(program, arguments)


def saturated(name: str) -> Saturation:
    """What the whole book makes of a case's start."""
    saturation = saturate(program_of(CASES[name].start), DEFAULT)
    assert saturation.report.stopped == "saturated", saturation.report
    return saturation


COUNTS = ("dispatch-count", "fill-count", "copy-count", "moved-bytes", "flops")
SOLVED_BY_INDEX_MAPS = {
    "M4 pad, pad",
    "M6 transpose, relu, back",
    "M6 diamond",
    "M6 one branch is transposed, the other is not",
    "M7 reshape, relu, back",
    "M8 relu, collapse, expand, round",
    "M9 split, relu, concat",
    "M9 three parts",
    "M10 second part",
    "M11 slice, expand",
    "M12 concat, expand",
    "M13 three parts, expand another axis",
    "M14 cast, collapse, sum",
    "M15 transpose, slice",
    "M16 transpose, add a broadcast",
    "M17 collapse, relu, expand",
    "M18 units come and go",
}
GOALS = [name for name, case in CASES.items() if not case.stays]
TWINS = [name for name, case in CASES.items() if case.stays]


@pytest.mark.parametrize("name", GOALS)
def test_goal_is_reached_by_rules_and_extraction_as_cheap(name: str) -> None:
    """And its schedule is better than without rules, where index maps do not give the same."""
    case = CASES[name]
    plain = saturate(program_of(case.start), NONE).classes
    classes = saturated(name).classes
    assert is_reached(case, classes) and not is_reached(case, plain)
    without, with_rules = extract(plain), extract(classes)
    goal = extract(saturate(program_of(case.goal), NONE).classes)
    assert with_rules.seconds <= goal.seconds * (1 + 1e-9)
    if name in SOLVED_BY_INDEX_MAPS:
        assert work(with_rules) == work(without)
        assert with_rules.seconds == pytest.approx(without.seconds, rel=0.02)
    else:
        assert work(with_rules) != work(without)
        assert all(a <= b for a, b in zip(work(with_rules), work(without), strict=True))
        assert with_rules.seconds < 0.99 * without.seconds


@pytest.mark.parametrize("name", GOALS)
def test_goal_has_the_start_s_meaning(name: str) -> None:
    case = CASES[name]
    expected, got = run(program_of(case.start)), run(program_of(case.goal))
    for output in expected:
        wide = got[output].astype(np.float64), expected[output].astype(np.float64)
        np.testing.assert_allclose(*wide, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TWINS)
def test_wrong_form_stays_out(name: str) -> None:
    assert not is_reached(CASES[name], saturated(name).classes)


@pytest.mark.parametrize("name", TWINS)
def test_wrong_form_is_wrong(name: str) -> None:
    case = CASES[name]
    expected, got = run(program_of(case.start)), run(program_of(case.goal))
    assert any(not np.allclose(got[output], expected[output]) for output in expected)
