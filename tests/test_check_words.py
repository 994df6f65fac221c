"""What a check says beside its verdict: ranks of a proof, hints, and why a rule is vacuous."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from satura.commands import check as command
from satura.commands.terminal import print_json_parts, print_rows
from satura.language import (
    DType,
    Law,
    Perm,
    Rule,
    Scalar,
    Shape,
    Slices,
    Tensor,
    attention,
    attribute_function,
    binary,
    broadcast,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.check import testing
from satura.rewrite.check.both_sides import Failure
from satura.rewrite.check.report import RuleReport
from satura.rewrite.check.testing import FIRINGS, PROOF_STEPS, add_proof, check
from satura.rewrite.errors import on_command_line
from satura.rewrite.isolation.process import KilledError
from satura.rewrite.language.terms import extent
from satura.rewrite.types.tensor_type import TensorType
from tests.tiers import deep_but


@rule
def add_in_another_order(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) + z = x + (y + z) for vectors, up to rounding"""
    left = binary("add", binary("add", x, y), z)
    return rewrites(left, binary("add", x, binary("add", y, z)), x.type.rank == 1)


@rule(reassociates=True)
def twice_is_once(x: Tensor) -> Law:
    """-(-x) = -x, which is wrong"""
    return rewrites(unary("neg", unary("neg", x)), unary("neg", x))


@rule
def forget_neg(x: Tensor) -> Law:
    """-x = x, which is wrong"""
    return rewrites(unary("neg", x), x)


@rule
def minus_itself(x: Tensor, y: Tensor) -> Law:
    """(x - x) + y = y, which is wrong for infinities"""
    return rewrites(binary("add", binary("sub", x, x), y), y)


@rule
def compare_doubled(x: Tensor, y: Tensor) -> Law:
    """x + x < y + y = x < y, which is wrong for large numbers"""
    left = binary("lt", binary("add", x, x), binary("add", y, y))
    return rewrites(left, binary("lt", x, y), x.type.dtype.is_float)


def test_a_law_that_holds_up_to_rounding_gets_a_hint() -> None:
    report = check(add_in_another_order, attempts=600, shrink=False)
    assert report.verdict == "refuted"
    assert "up to rounding on all" in report.hint and "@rule(reassociates=True)" in report.hint
    assert str(report).endswith(report.hint)


@pytest.mark.parametrize(
    "wrong", [twice_is_once, forget_neg, minus_itself, compare_doubled], ids=lambda law: law.name
)
def test_a_wrong_law_gets_no_hint(wrong: Rule) -> None:
    report = check(wrong, attempts=600, shrink=False)
    assert report.verdict == "refuted" and report.hint == ""


@rule
def double_turn(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p.inverse) = x"""
    return rewrites(transpose(transpose(x, p), p.inverse), x)


@pytest.mark.deep
def test_a_proof_names_its_ranks() -> None:
    report = check(double_turn, attempts=600, proof_steps=PROOF_STEPS)
    assert report.proved == (0, 1, 2, 3, 4)
    assert report.as_json()["proved"] == (0, 1, 2, 3, 4)
    assert report.said == "proved up to rank 4"
    assert "is proved up to rank 4" in str(report)


def test_a_proof_that_took_too_many_steps_names_how_to_give_more() -> None:
    tested = RuleReport("double_turn", "", "tested")
    with on_command_line():
        late = add_proof(double_turn, tested, steps=20)
    assert late.verdict == "tested" and late.proof.endswith("within 20 steps; --deep takes 60000")
    assert add_proof(double_turn, tested, steps=20).proof.endswith("; deep=True takes 60000")


@attribute_function
def has_rows(type_: TensorType) -> bool:
    refuse_unless(type_.rank == 2, "it must be a matrix")
    return isinstance(type_.shape[0], int) and type_.shape[0] >= 30_000


@rule
def seldom(x: Tensor) -> Law:
    """-(-x) = x, for 300 rows or more"""
    return rewrites(unary("neg", unary("neg", x)), x, has_rows(x.type))


CALLS = [0]


@attribute_function
def every_third(p: Perm) -> bool:
    """True at every third call."""
    CALLS[0] += 1
    return CALLS[0] % 3 == 0


@rule
def undo_now_and_then(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p⁻¹) = x, at some calls"""
    return rewrites(transpose(transpose(x, p), p.inverse), x, every_third(p))


def test_a_function_that_is_not_one_is_named() -> None:
    report = check(undo_now_and_then, attempts=400, shrink=False)
    said = r"for the same arguments every_third\(p\) is now (True, now False|False, now True)"
    assert report.verdict == "refuted" and re.fullmatch(said, report.reason)


@attribute_function
def of_one_axis(x: TensorType) -> Slices:
    return Slices((0,), x.shape, (1,) * x.rank)


@attribute_function
def of_rank(x: TensorType, wanted: int) -> bool:
    return x.rank == wanted


@rule
def malformed_right(x: Tensor) -> Law:
    """-x = -x[slices], which are not one per axis"""
    right = unary("neg", slice_(x, of_one_axis(x.type)))
    return rewrites(unary("neg", x), right, of_rank(x.type, 2))


@rule
def malformed_left(q: Tensor, k: Tensor, b: Tensor, v: Tensor) -> Law:
    """the same on the left side, where no tensor has one axis"""
    return rewrites(attention(q, slice_(k, of_one_axis(k.type)), b, v), attention(q, k, b, v))


@pytest.mark.parametrize("law", [malformed_right, malformed_left], ids=lambda each: each.name)
def test_a_function_that_makes_a_malformed_attribute_is_named(law: Rule) -> None:
    report = check(law, attempts=200)
    line = of_one_axis.__wrapped__.__code__.co_firstlineno + 2  # type: ignore[attr-defined]
    assert f"raised in of_one_axis, {__file__}:{line}" in report.reason
    assert re.search(r"Slices with 1 starts, \d sizes, \d steps: .* one of each", report.reason)
    assert report.verdict == ("failed" if law is malformed_right else "vacuous")


def test_a_vacuous_verdict_says_what_used_up_the_draws() -> None:
    report = check(seldom, attempts=400)
    assert report.verdict == "vacuous"
    (direction,) = report.directions
    count = direction.conditions["has_rows(x.type)"][False]
    assert count == direction.instances
    said = f"{FIRINGS} are needed: the condition has_rows(x.type) was False for all of them"
    assert f"0 of {count} instances; {said}; a check with --deep" in report.reason


@pytest.mark.deep
def test_the_command_says_the_ranks_of_proofs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(PROVED)
    assert command.check_rules([tmp_path / "mine.py"], False, [], 0, False, None, False)
    assert "proved up to rank 4: 1 of 1" in capsys.readouterr().out


PROVED = """
from satura.language import Law, Perm, Tensor, rewrites, rule, transpose

@rule
def undo(x: Tensor, p: Perm) -> Law:
    \"\"\"transpose(transpose(x, p), p.inverse) = x\"\"\"
    return rewrites(transpose(transpose(x, p), p.inverse), x)
"""
RULE = """
from satura.language import Law, Tensor, rewrites, rule, unary
from tests.tiers import deep_but

@rule
def forget_neg(x: Tensor) -> Law:
    \"\"\"-x = x, which is wrong\"\"\"
    return rewrites(unary("neg", x), x)
"""


@pytest.mark.deep
def test_a_refutation_survives_a_search_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(failure: Failure, exact: bool) -> Failure:
        while True:
            time.sleep(1)

    monkeypatch.setattr(testing, "smallest", endless)
    (tmp_path / "mine.py").write_text(RULE)
    assert not command.check_rules([tmp_path / "mine.py"], False, [], 0, False, 5.0, True)
    (report,) = json.loads(capsys.readouterr().out)["rules"]
    assert report["verdict"] == "refuted" and report["counterexample"]["left"]


@pytest.mark.deep
def test_a_test_survives_a_proof_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(rule: Rule, steps: int) -> None:
        raise KilledError(command.PROVING, "took too long")  # as the parent does, but soon

    monkeypatch.setattr(testing, "prove", endless)
    (tmp_path / "mine.py").write_text(PROVED)
    assert command.check_rules([tmp_path / "mine.py"], False, [], 0, False, None, True)
    (report,) = json.loads(capsys.readouterr().out)["rules"]
    assert report["verdict"] == "tested" and report["directions"][0]["firings"] == 150
    assert report["proof"] == "a proof took too long"


def test_rules_are_printed_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    def parts() -> Iterator[dict[str, object]]:
        yield {"rule": "first", "ranks": [1, 2]}
        seen.append(capsys.readouterr().out)
        yield {"rule": "second"}

    print_json_parts({"seed": 0}, "rules", parts())
    whole = seen[0] + capsys.readouterr().out
    assert "first" in seen[0]
    rules = [{"rule": "first", "ranks": [1, 2]}, {"rule": "second"}]
    assert whole == json.dumps({"seed": 0, "rules": rules}, indent=2) + "\n"


def test_rows_are_printed_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    def rows() -> Iterator[list[str]]:
        yield ["first", "1.5"]
        seen.append(capsys.readouterr().out)
        yield ["second", "2.5"]

    print_rows("all", ["model", "seconds"], rows())
    assert seen == ["first: seconds 1.5\n"]
    line, *table = capsys.readouterr().out.splitlines()
    assert line == "second: seconds 2.5" and "first" in "".join(table)


def test_draws_do_not_depend_on_the_name() -> None:
    renamed = Rule(**{**vars(seldom), "name": "rarely"})
    assert check(renamed, attempts=400).directions == check(seldom, attempts=400).directions


@attribute_function
def inverse_below_rank_5(p: Perm) -> Perm:
    return p.inverse if len(p.order) < 5 else p


@rule
def undo_below_rank_5(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p.inverse) = x, which is wrong from rank 5 on"""
    again = transpose(transpose(x, p), inverse_below_rank_5(p))
    return rewrites(transpose(transpose(x, p), p.inverse), again)


@attribute_function
def minus_but_far(c: Scalar) -> Scalar:
    is_far = 1e100 < abs(float(c.array)) < 1e300
    return Scalar.of(c.array if is_far else np.negative(c.array), c.dtype)


@rule
def add_the_negative(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x - c = x + -c, which is wrong for large c"""
    difference = binary("sub", x, broadcast(reshape(c, ones), s))
    total = binary("add", x, broadcast(reshape(scalar(minus_but_far(c)), ones), s))
    return rewrites(difference, total, x.type.dtype == DType.F64)


@pytest.mark.parametrize(
    "wrong",
    deep_but([undo_below_rank_5], [undo_below_rank_5, add_the_negative]),
    ids=lambda r: r.name,
)
@pytest.mark.parametrize("seed", deep_but([0], range(3)))
def test_high_ranks_and_extreme_numbers_are_tried(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, attempts=2000, shrink=False).verdict == "refuted"


@rule
def three_is_three() -> Law:
    """|extent(3)| = extent(3): no instance of it differs from another"""
    return rewrites(unary("abs", extent(Shape((3,)))), extent(Shape((3,))))


@rule
def multiply_by_part(x: Tensor) -> Law:
    """x * 1.5 = 1.5 * x of integers: none has 1.5"""
    return rewrites(binary("mul", x, 1.5), binary("mul", 1.5, x), x.type.dtype.is_integer)


def test_a_float_beside_integers_is_named() -> None:
    report = check(multiply_by_part, attempts=300)
    assert report.verdict == "vacuous"
    assert "1.5 is an element of floats only" in report.reason


def test_a_law_on_a_known_extent_alone_is_vacuous() -> None:
    assert check(three_is_three, attempts=60).verdict == "vacuous"
