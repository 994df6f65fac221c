"""The checker: its verdicts and reports, and what its instances cover."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from satura.rewrite.check.coverage import KINDS
from satura.rewrite.check.testing import FIRINGS
from satura.rewrite.language.dsl import (
    Law,
    Rule,
    Tensor,
    attribute_function,
    equates,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    gather,
    pad,
    reduce,
    reshape,
    scalar,
    select,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    Shape,
    Slices,
    UnaryFn,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType
from satura.rules import DEFAULT
from satura.testing import RuleReport, UnsoundError, assert_sound, check
from tests.mistaken_laws import (
    BROKEN,
    QUICK,
    RAISING,
    WRONG,
    careless,
    garble,
    meddle,
    name_of,
    report_of,
    shift_axes,
    swell,
    widen,
)
from tests.museum import minus_itself, units, zero_of
from tests.tiers import deep_but


@attribute_function
def never(f: BinaryFn) -> bool:
    """False."""
    return f.name == "no such function"


@rule
def idle(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, y) = f(y, x), never"""
    return rewrites(binary(f, x, y), binary(f, y, x), never(f))


@rule
def with_idle_condition(f: UnaryFn, x: Tensor, p: Perm) -> Law:
    """f(transpose(x, p)) = transpose(f(x), p), under a condition that always holds"""
    return equates(unary(f, transpose(x, p)), transpose(unary(f, x), p), p[p.inverse].is_identity)


@functools.cache
def check_drop_unit() -> RuleReport:
    """The report of few draws on a rule that holds."""
    return check(DEFAULT["drop_unit"], attempts=1500)


@pytest.mark.parametrize("wrong", deep_but([*QUICK, *BROKEN[:1]], [*WRONG, *BROKEN]), ids=name_of)
def test_a_wrong_rule_is_refuted(wrong: Rule) -> None:
    report = report_of(wrong)
    assert report.verdict == "refuted" and not report.is_sound
    assert report.dtypes and report.ranks  # the counterexample's, at least
    assert report.place == f"{wrong.file}:{wrong.line}"
    assert report.counterexample is not None
    assert report.reason in str(report) and report.rule in str(report)


@rule
def at_an_axis(x: Tensor, i: Tensor, axis: Axis) -> Law:
    """x[i] = x where the extent is 1, with the axis in the place of its index"""
    is_unit = x.type.shape[axis] == 1  # type: ignore[call-overload]
    return rewrites(gather(x, i, axis), x, is_unit)


@rule
def negative_pad(x: Tensor, v: Tensor, p: Padding) -> Law:
    """pad(x, p) = pad(x, -p): a padding has no negative"""
    return rewrites(pad(x, v, p), pad(x, v, -p))  # type: ignore[operator]


@pytest.mark.parametrize("raising", RAISING, ids=name_of)
def test_a_rule_that_raises_fails_and_refutes_nothing(raising: Rule) -> None:
    report = report_of(raising)
    assert report.verdict == "failed" and not report.is_sound and report.counterexample is None
    assert report.reason.startswith(f"rule '{raising.name}' ({raising.place}): ")
    assert f"{raising.name} ({raising.place}) could not be checked" in str(report)


@pytest.mark.parametrize("mistaken", [at_an_axis, negative_pad], ids=name_of)
def test_an_expression_without_meaning_fails_and_refutes_nothing(mistaken: Rule) -> None:
    report = check(mistaken)
    assert report.verdict == "failed" and not report.is_sound and report.counterexample is None
    assert "TypeError: " in report.reason and "no such operator or field" in report.reason


REASONS = {
    careless: "IndexError",
    meddle: "changes its arguments, which were x = f32[1, 1], p = [1, 0]",
    garble: "cannot stand in an attribute",
    swell: "would be a",
    shift_axes: "reaches outside",
}


@pytest.mark.parametrize("wrong", deep_but([careless, meddle], REASONS), ids=name_of)
def test_reasons_say_what_is_wrong(wrong: Rule) -> None:
    assert REASONS[wrong] in report_of(wrong).reason


@pytest.mark.deep
def test_a_sound_rule_is_tested_and_where_possible_proved() -> None:
    entry = DEFAULT["drop_identity_transpose"]
    assert check(entry, attempts=200).verdict == "tested"
    proved = check(entry, attempts=200, proof_steps=40_000)
    assert (proved.verdict, proved.proof) == ("proved", "for all sizes at ranks 0 to 4")
    rounded = check(DEFAULT["multiply_by_reciprocals"], attempts=600, proof_steps=40_000)
    assert rounded.verdict == "tested" and rounded.proof


def test_a_condition_that_always_holds_is_noted() -> None:
    report = check(with_idle_condition, attempts=100)
    assert report.verdict == "tested"
    count = sum(each.instances for each in report.directions)
    assert f"condition p[p.inverse].is_identity held for all {count} instances" in report.hint
    assert report.hint in str(report)


@rule
def select_inside(c: Tensor, f: UnaryFn, x: Tensor, y: Tensor) -> Law:
    """select(c, f(x), f(y)) = f(select(c, x, y)): backward x and y are always of one type"""
    chosen = unary(f, select(c, x, y))
    return equates(select(c, unary(f, x), unary(f, y)), chosen, x.type == y.type)


def test_a_condition_that_one_direction_needs_is_not_noted() -> None:
    report = check(select_inside, attempts=60, shrink=False)
    assert (report.verdict, report.hint) == ("tested", "")


def test_a_rule_that_never_fires_is_vacuous() -> None:
    report = check(idle, attempts=60)
    assert report.verdict == "vacuous"
    assert (
        "fired on only 0 of" in report.reason and "never(f) was False for all of" in report.reason
    )


def test_conditions_and_refusals_are_counted() -> None:
    (direction,) = check_drop_unit().directions
    ((_, counts),) = direction.conditions.items()
    assert counts[True] + counts[False] == direction.instances
    assert counts[True] >= direction.firings >= FIRINGS
    (widening,) = report_of(widen).directions
    ((text, count),) = widening.refusals.items()
    assert text.startswith("wider, line ") and text.endswith(": there is no axis")
    assert 0 < count == widening.instances - widening.firings
    assert report_of(minus_itself).directions[0].refusals == {}


def test_refusals_of_one_line_are_counted_together() -> None:
    @attribute_function
    def cautious(p: Perm) -> Perm:
        """p, where it is short."""
        refuse_unless(len(p.order) < 4, f"{p} is too long")
        refuse_unless(len(p.order) < 100, "this never happens")
        return p

    @rule
    def copy(x: Tensor, p: Perm, q: Perm) -> Law:
        """transpose(transpose(x, p), q) = transpose(x, p then q)"""
        return rewrites(transpose(transpose(x, p), q), transpose(x, cautious(p)[q]))

    (direction,) = check(copy).directions
    ((text, count),) = direction.refusals.items()
    assert re.fullmatch(r"cautious, line \d+: \[[0-9, ]+\] is too long", text)
    assert 2 < count < direction.instances - direction.firings


MOVEMENT = ["compose_transposes", "transpose_past_binary", "compose_slices", "drop_zero_pad"]


@pytest.mark.parametrize("name", deep_but([], MOVEMENT))
def test_instances_cover_what_is_claimed(name: str) -> None:
    report = report_of(DEFAULT[name])
    assert set(report.dtypes) == {dtype.value for dtype in COMPUTED}
    assert {2, 3, 4} <= set(report.ranks)
    assert all(report.dims[kind] >= 3 for kind in KINDS), report.dims


@attribute_function
def true_as(type_: TensorType) -> Scalar:
    """True."""
    return Scalar.of(type_.rank >= 0, DType.BOOL)


@rule
def equals_itself(x: Tensor) -> Law:
    """(x == x) = True, but for NaN"""
    true = reshape(scalar(true_as(x.type)), units(x.type))
    return rewrites(binary("eq", x, x), broadcast(true, Shape(x.type.shape)))


@rule
def add_zero(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x + 0 = x, but for -0.0"""
    return rewrites(binary("add", x, broadcast(reshape(c, ones), s)), x, c == zero_of(x.type))


@pytest.mark.parametrize(
    ("wrong", "value"),
    [(equals_itself, "nan"), pytest.param(add_zero, "-0.0", marks=pytest.mark.deep)],
)
def test_special_floats_are_tried(wrong: Rule, value: str) -> None:
    found = report_of(wrong).counterexample
    assert found is not None and f"np.array({value}, " in found.program


@rule(reassociates=True)
def scale_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) * z = x * z + y * z"""
    scaled = binary("add", binary("mul", x, z), binary("mul", y, z))
    return rewrites(binary("mul", binary("add", x, y), z), scaled)


@pytest.mark.deep
def test_laws_up_to_rounding_hold_within_a_bound() -> None:
    assert check(scale_sum).verdict == "tested"
    exact = Rule(**{**vars(scale_sum), "exact": True})
    assert check(exact, shrink=False).verdict == "refuted"


def test_a_report_is_plain_data() -> None:
    report = report_of(minus_itself)
    values = json.loads(json.dumps(report.as_json()))
    assert values["verdict"] == "refuted" and values["counterexample"]["left"] == "nan"
    assert values["directions"][0]["firings"] >= FIRINGS
    conditions = check_drop_unit().as_json()["directions"]
    assert isinstance(conditions, list)
    assert all(set(c) == {"true", "false"} for c in conditions[0]["conditions"].values())


REPORTS = """
import json
from satura.rules import DEFAULT
from satura.testing import check
from tests.test_check import minus_itself
rules = [DEFAULT["drop_unit"], minus_itself]
print(json.dumps([check(rule, seed=5, attempts=30).as_json() for rule in rules]))
"""


@pytest.mark.deep
def test_reports_repeat_themselves_in_every_process() -> None:
    root = str(Path(__file__).parent.parent)
    printed = {
        subprocess.run(
            [sys.executable, "-c", REPORTS],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "12345")
    }
    assert len(printed) == 1


def test_another_seed_draws_others() -> None:
    entry = DEFAULT["drop_unit"]
    reports = [check(entry, seed, attempts=60) for seed in (1, 2)]
    assert reports[0].directions != reports[1].directions


@pytest.mark.deep
def test_a_deep_check_draws_ten_times_as_much() -> None:
    entry = DEFAULT["cancel_negations"]
    plain, deep = (check(entry, attempts=30, deep=deep) for deep in (False, True))
    assert deep.verdict == "tested"
    assert deep.directions[0].firings > 5 * plain.directions[0].firings


@attribute_function
def takes_as_much(type_: TensorType, b: Padding, s: Slices) -> bool:
    """Whether `s` begins behind the border and has as many elements as x, by whatever steps."""
    return s.starts == b.lo and s.sizes == type_.shape


@rule
def crop_of_pad(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = x, but for steps that instances seldom have"""
    return rewrites(slice_(pad(x, v, b), s), x, takes_as_much(x.type, b, s))


@pytest.mark.deep
def test_assert_sound_refutes_by_a_proof_what_instances_seldom_show() -> None:
    with pytest.raises(UnsoundError, match="crop_of_pad"):
        assert_sound(crop_of_pad)


PYTEST_FILE = """
from satura.testing import assert_sound
from tests.test_check import minus_itself
from satura.rules import DEFAULT

def test_wrong():
    assert_sound(minus_itself)

def test_right():
    assert_sound(DEFAULT["compose_transposes"])
"""


@pytest.mark.deep
def test_assert_sound_works_in_a_users_pytest_file(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(PYTEST_FILE)
    root = str(Path(__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "1 failed, 1 passed" in run.stdout
    assert "the left side is nan, the right side 0.0" in run.stdout
    assert "results = interpret(program, arguments)" in run.stdout


def test_reports_of_unfinished_checks_say_so() -> None:
    report = RuleReport("slow", "here:1", "failed", reason="took too long")
    assert str(report) == "slow (here:1) could not be checked\ntook too long"
    assert not report.is_sound


@rule
def guarded(x: Tensor, a: Axes) -> Law:
    """max(x along axes, itself) is itself, where the last axis of x, if there is one, is short"""
    m = reduce("max", x, a)
    return rewrites(binary("max", m, m), m, x.type.rank >= 1, x.type.shape[-1] != 7)


@pytest.mark.deep
def test_a_condition_is_not_asked_where_one_before_it_is_false() -> None:
    report = check(guarded)
    assert report.is_sound and report.verdict != "vacuous", report
