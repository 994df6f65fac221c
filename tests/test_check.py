"""The checker: its verdicts, what it covers, counterexamples that are small and can be pasted."""

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
    cast,
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
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType
from satura.rewrite.types.typical import representative
from satura.rules import DEFAULT
from satura.testing import RuleReport, UnsoundError, assert_sound, check
from tests.museum import minus_itself, units, zero_of
from tests.tiers import deep_but


@rule
def swap(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p): the wrong way round"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


@attribute_function
def seems_whole(type_: TensorType, slices: Slices) -> bool:
    """Whether every axis is whole at typical sizes, and read in order."""
    axes = zip(type_.shape, slices.starts, slices.sizes, slices.steps, strict=True)
    return all(
        start == 0 and step == 1 and representative(dim) == representative(size)
        for dim, start, size, step in axes
    )


@rule
def drop_slice_that_seems_whole(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s seems whole"""
    return rewrites(slice_(x, s), x, seems_whole(x.type, s))


@attribute_function
def wider(padding: Padding) -> Padding:
    """One element more."""
    refuse_unless(bool(padding.lo), "there is no axis")
    return Padding((padding.lo[0] + 1, *padding.lo[1:]), padding.hi)


@rule
def widen(x: Tensor, v: Scalar, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b and one more)"""
    return rewrites(pad(x, v, b), pad(x, v, wider(b)))


@attribute_function
def slices_of(p: Perm) -> Slices:
    """Slices that reach outside."""
    return Slices(p.order, (1,) * len(p.order), (1,) * len(p.order))


@rule
def shift_axes(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = slice(x, p): no such thing"""
    return rewrites(transpose(x, p), slice_(x, slices_of(p)))


@rule(reassociates=True)
def drop_a_term(x: Tensor, y: Tensor) -> Law:
    """(x + y) + y = x + y"""
    return rewrites(binary("add", binary("add", x, y), y), binary("add", x, y))


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


@attribute_function
def out_of_range(p: Perm) -> Perm:
    """Raise IndexError."""
    return Perm((p.order[9],))


@rule
def careless(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, …)"""
    return rewrites(transpose(x, p), transpose(x, out_of_range(p)))


@attribute_function
def sorted_in_place(p: Perm) -> Perm:
    """Changes its argument."""
    object.__setattr__(p, "order", tuple(sorted(p.order)))
    return p


@rule
def meddle(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x, after p was changed"""
    return rewrites(transpose(x, p), transpose(x, sorted_in_place(p)))


CALLS: list[Perm] = []


@attribute_function
def alternating(p: Perm) -> Perm:
    """Answers p, and every fourth time its inverse."""
    CALLS.append(p)
    return p.inverse if len(CALLS) % 4 == 0 else p


@rule
def moody(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, p), mostly"""
    return rewrites(transpose(x, p), transpose(x, alternating(p)))


@attribute_function
def no_perm(p: Perm) -> Perm:
    """A Perm of what is not an axis."""
    return Perm((["a"], 0.5))  # type: ignore[arg-type]


@rule
def garble(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, nonsense)"""
    return rewrites(transpose(x, p), transpose(x, no_perm(p)))


@attribute_function
def enormous(shape: Shape) -> Shape:
    """More elements than any machine holds."""
    refuse_unless(bool(shape.dims), "there is no axis")
    return Shape((10**15, *shape.dims[1:]))


@attribute_function
def first_of(shape: Shape) -> Slices:
    """The first elements."""
    rank = len(shape.dims)
    return Slices((0,) * rank, shape.dims, (1,) * rank)


@rule
def swell(x: Tensor, s: Shape) -> Law:
    """broadcast(x, s) = a part of something enormous"""
    whole = broadcast(x, enormous(s))
    return rewrites(broadcast(x, s), slice_(whole, first_of(s)))


@functools.cache
def report_of(entry: Rule) -> RuleReport:
    """The report with all defaults."""
    return check(entry)


@functools.cache
def check_drop_unit() -> RuleReport:
    """The report of few draws on a rule that holds."""
    return check(DEFAULT["drop_unit"], attempts=1500)


WRONG = [swap, minus_itself, drop_slice_that_seems_whole, widen, shift_axes, drop_a_term]
BROKEN = [meddle, moody, swell]
RAISING = [careless, garble]


def name_of(entry: object) -> str:
    return str(getattr(entry, "name", entry))


SLOW = (swap, shift_axes, drop_slice_that_seems_whole)  # to shrink
QUICK = [wrong for wrong in WRONG if wrong not in SLOW]


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


SMALLEST = {
    "swap": {"x": "f32[1, 1, 2]", "p": "", "q": ""},
    "minus_itself": {"x": "f32[]"},
    "drop_slice_that_seems_whole": {"x": "", "s": ""},
    "widen": {"x": "f32[1]", "v": "f32(0.0)", "b": "[0:0]"},
    "drop_a_term": {"x": "f32[]", "y": "f32[]"},
}


@pytest.mark.parametrize("wrong", deep_but(QUICK, WRONG), ids=name_of)
def test_counterexamples_are_small(wrong: Rule) -> None:
    found = report_of(wrong).counterexample
    assert found is not None
    for name, smallest in SMALLEST.get(wrong.name, {}).items():
        assert sorted(found.bindings[name]) == sorted(smallest or found.bindings[name])
    larger = check(wrong, shrink=False).counterexample
    assert larger is not None and length(found.program) <= length(larger.program) + len("-")


@rule
def to_bool(x: Tensor) -> Law:
    """bool(x) = not (x == 0): not where nothing computes with x"""
    return rewrites(cast(x, DType.BOOL), unary("not", binary("eq", x, 0)))


@pytest.mark.deep
def test_what_only_rare_types_refute_is_small_too() -> None:
    found = report_of(to_bool).counterexample
    assert found is not None and found.bindings["x"].endswith("[]")


@pytest.mark.deep
def test_integers_that_are_seldom_drawn_are_few() -> None:
    found = report_of(compare_as_floats).counterexample
    assert found is not None and found.bindings["x"].endswith("[]")


@rule
def compare_as_floats(x: Tensor, y: Tensor) -> Law:
    """f32(x) < f32(y) = x < y: not for two large neighbours"""
    left = binary("lt", cast(x, DType.F32), cast(y, DType.F32))
    same = x.type.dtype == y.type.dtype
    return rewrites(left, binary("lt", x, y), x.type.dtype.is_integer & same)


def length(program: str) -> int:
    """Letters of a program and its arguments, whatever its element types are called."""
    made = program.partition("results = ")[0]  # how it is shown depends on what is wrong
    return len(re.sub(r"[a-zA-Z]+\d+\b|\.0\b", "", made))


def test_values_are_simple() -> None:
    found = report_of(minus_itself).counterexample
    assert found is not None and (found.left, found.right) == ("nan", "0.0")
    added = report_of(drop_a_term).counterexample
    assert added is not None and (added.left, added.right) == ("2.0", "1.0")


@pytest.mark.deep
def test_symbolic_counterexamples_name_their_sizes() -> None:
    found = report_of(drop_slice_that_seems_whole).counterexample
    assert found is not None and set(found.sizes) <= {"n", "m"} and found.sizes


@rule
def negated(x: Tensor, y: Tensor, d: DType) -> Law:
    """-d(x) * y = d(x) * y of bf16: both the type of y and that of x are not NumPy's"""
    cast_x = cast(x, d)
    of_bf16 = (d == DType.BF16) & (x.type.dtype == DType.U4)
    return rewrites(binary("mul", unary("neg", cast_x), y), binary("mul", cast_x, y), of_bf16)


PASTED = deep_but([drop_a_term, negated], [*WRONG, swell, negated])


@pytest.mark.parametrize("wrong", PASTED, ids=name_of)
def test_a_pasted_counterexample_shows_both_sides(wrong: Rule, tmp_path: Path) -> None:
    found = report_of(wrong).counterexample
    assert found is not None
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = run.stdout.splitlines()
    assert left.split(maxsplit=1) == ["left", found.left]
    assert right.split(maxsplit=1) == ["right", found.right or found.reason]
    assert left.split()[1:] != right.split()[1:]


@attribute_function
def one_past_the_end(x: TensorType) -> Scalar:
    refuse_unless(x.rank == 1 and isinstance(x.shape[0], int) and x.shape[0] > 0)
    return Scalar.of(static(x.shape[0]), DType.I64)


@attribute_function
def has_one(s: Slices) -> bool:
    return s.sizes == (1,)


@rule
def first_is_past_the_end(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = gather(x, n), of one element: there is none at n"""
    left = slice_(x, s)
    at = scalar(one_past_the_end(x.type))
    return rewrites(left, reshape(gather(x, at, Axis(0)), Shape(left.type.shape)), has_one(s))


def test_what_cannot_be_computed_is_pasted_whole(tmp_path: Path) -> None:
    """The left side is printed, and why there is no right one."""
    found = check(first_is_past_the_end).counterexample
    assert found is not None and found.left and not found.right
    assert "the right side cannot be computed: gather: an index lies outside" in found.reason
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = done.stdout.splitlines()
    assert left.split(maxsplit=1) == ["left", found.left]
    assert right.startswith("right cannot be computed:") and "an index lies outside" in right


@attribute_function
def is_nothing(x: TensorType) -> bool:
    return x.rank == 2 and x.shape[0] == 0 and x.shape[1] not in (0, 1)


@rule
def nothing_is_one_wide(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = max(slice(x, s), 1) where there are no rows"""
    left = slice_(x, s)
    return rewrites(left, reduce("max", left, Axes((1,))), is_nothing(left.type))


@pytest.mark.deep
def test_sides_that_print_alike_have_shapes(tmp_path: Path) -> None:
    found = check(nothing_is_one_wide).counterexample
    assert found is not None and found.left != found.right
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = done.stdout.splitlines()
    assert left == f"left  {found.left}" and right == f"right {found.right}"


def test_a_refuted_rule_names_the_first_differing_element() -> None:
    assert report_of(minus_itself).reason == "at [] the left side is nan, the right side 0.0"
    assert report_of(widen).reason == "the left side is f32[1], the right side f32[2]"


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
    assert "fired on only 0 of" in report.reason and "never(f) was False for all" in report.reason


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
