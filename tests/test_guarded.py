"""Rules that misbehave: each is named and dropped, in time, and the program compiles without it."""

from __future__ import annotations

import gc
import os
import re
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.ops import UserAttribute, local_ops, op, refuse_unless
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import Saturation, saturate
from satura.rewrite.errors import RuleDroppedWarning, RuleError, RuleWarning
from satura.rewrite.isolation import guarded, process
from satura.rewrite.isolation.guarded import saturate_guarded
from satura.rewrite.language.dsl import Law, RuleSet, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.rule import Rule
from satura.rewrite.language.terms import unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Perm, UnaryFn
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules import DEFAULT
from tests import bad_rules
from tests.bad_rules import MISUSES, NAMES, SWOLLEN, misuse, reshape_again, reshape_twice, swell
from tests.tiers import deep_but

OURS = RuleSet(
    *(DEFAULT[name] for name in (
        "compose_transposes", "drop_identity_transpose", "transpose_past_binary"
    ))
)  # fmt: skip
PATIENT = Limits()  # for what ends by itself


def is_ours(candidate: Rule) -> bool:
    return candidate.name in OURS


def program() -> Program:
    """Four sums of transposes; their transposes cancel by our own rules."""
    build = Builder()
    x = build.input("x", DType.F32, (4, 4))
    y = build.unary("neg", x)
    for _ in range(4):
        y = build.binary("add", build.transpose(y, (1, 0)), build.transpose(x, (1, 0)))
        y = build.transpose(y, (1, 0))
    y = build.binary("add", y, build.constant(np.ones((4, 4), np.float32)))
    return build.program({"y": build.reshape(y, (16,))})


PROGRAM = program()


@pytest.fixture(scope="module")
def ours() -> Saturation:
    """What our own rules find."""
    return saturate(PROGRAM, OURS)


def rewrite(
    rules: RuleSet, limits: Limits = PATIENT, start: Program = PROGRAM, patience: float = 60
) -> tuple[Saturation, list[str]]:
    """The saturation with our rules and these, and the warnings on rules that were dropped."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        saturation = saturate_guarded(start, OURS + rules, limits, is_ours, patience=patience)
    return saturation, [
        str(entry.message) for entry in caught if entry.category is RuleDroppedWarning
    ]


BAD = [bad_rules.drop_reshape, misuse("divides"), misuse("crashes")]
HANGS = ("blocks", "loops")
FAILING: dict[Rule, str] = {
    **{misuse(name): reason for name, (_, reason) in MISUSES.items()
       if name not in (*HANGS, "prints")},
    **{swell(name): reason for name, (_, reason) in SWOLLEN.items()},
    bad_rules.narrow: "window .* has a size, stride or dilation below 1",
    bad_rules.change_weights: "it changed its arguments",
    bad_rules.read_short_scalar: "a f32 has 4 bytes, not 1",
    bad_rules.add_large: "a constant of 72,000,000 bytes",
    bad_rules.drop_reshape: "it is unsound: it makes .* equal to",
}  # fmt: skip
QUICK = ("talks", "recurses", "ends_the_process", "changes_its_argument", "astronomical")


@pytest.mark.parametrize(
    "bad",
    deep_but([bad for bad in FAILING if bad.name.removeprefix("rule_") in QUICK], FAILING),
    ids=lambda bad: bad.name,
)
def test_a_rule_that_fails_is_named_with_the_reason(bad: Rule) -> None:
    with pytest.raises(RuleError) as caught:
        saturate_guarded(PROGRAM, OURS + bad, PATIENT, is_ours, strict=True)
    place = re.escape(f"rule '{bad.name}' ({bad.place}) failed: ")
    assert re.match(f"{place}.*{FAILING[bad]}", str(caught.value))
    assert str(caught.value).count(bad.place) == 1
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("bad", deep_but(BAD[:1], BAD))
def test_a_rule_that_fails_is_dropped(bad: Rule, ours: Saturation) -> None:
    saturation, warned = rewrite(RuleSet(bad))
    assert saturation.classes == ours.classes
    (dropped,) = saturation.report.dropped
    assert (dropped.name, dropped.place) == (bad.name, bad.place)
    (message,) = warned
    assert message.startswith(str(dropped))
    assert f"satura check {bad.file}" in message


@pytest.mark.parametrize("name", deep_but(HANGS[:1], HANGS))
def test_a_rule_that_hangs_is_stopped_in_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started = time.monotonic()
    saturation, _ = rewrite(RuleSet(misuse(name)), patience=1)
    assert time.monotonic() - started < 60
    (dropped,) = saturation.report.dropped
    assert dropped.name == f"rule_{name}"
    where = r"computed, .*bad_rules\.py:\d+, for p = \[.*\]"
    said = rf"it took too long in {where} \(the limit is 1 s of CPU time\)"
    assert re.fullmatch(said, dropped.reason)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", deep_but([reshape_again], [reshape_again, reshape_twice]))
def test_a_rule_that_drives_the_e_graph_to_a_limit_is_dropped(bad: Rule, ours: Saturation) -> None:
    saturation, _ = rewrite(RuleSet(bad), Limits(nodes=1500))
    assert saturation.classes == ours.classes
    (dropped,) = saturation.report.dropped
    assert dropped.name == bad.name
    assert re.match(r"it floods the e-graph: [\d,]+ matches make [\d,]+ e-nodes", dropped.reason)


@pytest.mark.deep
def test_a_rule_that_grows_slowly_without_end_is_named() -> None:
    build = Builder()
    start = build.program({"y": build.unary("neg", build.input("x", DType.F32, (3,)))})
    with pytest.warns(RuleWarning, match="rules add_nothing still grew the e-graph"):
        saturation = saturate_guarded(start, OURS + bad_rules.add_nothing, PATIENT, is_ours)
    assert saturation.report.stopped == "rounds"
    assert saturation.report.growing == ("add_nothing",)
    assert "still growing by add_nothing" in str(saturation.report)


@pytest.mark.deep
def test_a_pattern_with_too_many_matches_is_killed() -> None:
    """In the second round it matches 8 to the power of 8 times."""
    build = Builder()
    y = build.input("x", DType.F32, (3,))
    for _ in NAMES:
        y = build.unary("neg", y)
    rules = RuleSet(bad_rules.reverse, *map(bad_rules.spread, range(len(NAMES))))
    limits = Limits(nodes=10**12)
    saturation, _ = rewrite(rules, limits, build.program({"y": y}), patience=2)
    (dropped,) = saturation.report.dropped
    assert (dropped.name, dropped.reason[:16]) == ("reverse", "it took too long")


def sum_of(count: int) -> Program:
    build = Builder()
    y = build.input("x0", DType.F32, (3,))
    for number in range(1, count):
        y = build.binary("add", y, build.input(f"x{number}", DType.F32, (3,)))
    return build.program({"y": y})


def test_of_rules_that_explode_together_the_one_that_makes_most_is_dropped() -> None:
    saturation, _ = rewrite(
        RuleSet(bad_rules.commute, bad_rules.associate), Limits(nodes=4000), sum_of(12)
    )
    (dropped,) = saturation.report.dropped
    assert dropped.name == "associate"
    assert saturation.report.stopped == "saturated"


def test_the_count_of_matches_stops_before_a_rule_that_would_explode() -> None:
    """Each round makes several times as many e-nodes as there are."""
    rules = RuleSet(bad_rules.commute, bad_rules.associate_alike)
    report = saturate(sum_of(12), rules, Limits(nodes=2000)).report
    assert (report.stopped, report.stopped_before) == ("nodes", "associate_alike")
    assert report.nodes < 2000
    assert "nodes (before associate_alike)" in str(report)


@pytest.mark.deep
def test_each_bad_rule_is_dropped_and_good_ones_stay(ours: Saturation) -> None:
    bad = RuleSet(
        misuse("divides"), reshape_twice, misuse("prints"), misuse("exits"), bad_rules.drop_reshape
    )
    saturation, warned = rewrite(bad, Limits(nodes=1500))
    names = {entry.name for entry in saturation.report.dropped}
    assert names == {"rule_divides", "reshape_twice", "rule_exits", "drop_reshape"}
    assert len(warned) == len(names)
    (kept,) = (entry for entry in saturation.report.rules if entry.name == "rule_prints")
    assert kept.matches and kept.demand_calls


def test_a_limit_that_our_own_rules_meet_is_no_fault_of_others(ours: Saturation) -> None:
    limits = Limits(nodes=ours.report.nodes - 1)
    saturation, warned = rewrite(RuleSet(misuse("prints"), reshape_twice), limits)
    assert saturation.report.stopped == "nodes"
    assert saturation.report.growing == ("reshape_twice",)
    assert not saturation.report.dropped
    assert not [message for message in warned if "dropped" in message]


def test_a_rule_stays_where_the_book_uses_up_the_nodes() -> None:
    """It has made e-nodes, and the saturation ends at the limit with it and without it."""
    build = Builder()
    x = build.input("x", DType.F32, (4, 4))
    y = build.transpose(build.unary("neg", x), (1, 0))
    for _ in range(8):  # which the transpose passes one by one
        y = build.binary("add", y, build.transpose(x, (1, 0)))
    start = build.program({"y": y})
    limits = Limits(nodes=saturate(start, OURS).report.nodes - 1)
    saturation, _ = rewrite(RuleSet(bad_rules.negate_twice), limits, start)
    assert saturation.report.stopped == "nodes" and not saturation.report.dropped
    (kept,) = (entry for entry in saturation.report.rules if entry.name == "negate_twice")
    assert kept.matches


def test_no_rounds_are_no_fault() -> None:
    saturation, warned = rewrite(RuleSet(misuse("prints")), Limits(rounds=0))
    assert saturation.report.stopped == "rounds"
    assert not warned


def test_a_harmless_rule_gives_what_it_gives_unguarded(ours: Saturation) -> None:
    rules = RuleSet(misuse("prints"), bad_rules.drop_transpose)
    guarded, _ = rewrite(rules)
    plain = saturate(PROGRAM, OURS + rules)
    assert guarded.classes == plain.classes
    assert guarded.classes != ours.classes
    assert guarded.report.stopped == "saturated"


def test_constants_of_the_program_are_not_copied() -> None:
    build = Builder()
    weights = build.constant(np.arange(16, dtype=np.float32).reshape(4, 4))
    y = build.binary("add", build.transpose(build.input("x", DType.F32, (4, 4)), (1, 0)), weights)
    start = build.program({"y": y})
    saturation, _ = rewrite(RuleSet(misuse("prints")), start=start)
    (node,) = (node for home in saturation.classes.nodes for node in home if node.op == "constant")
    assert node.attributes[0] is start.nodes[weights].constant


@dataclass(frozen=True)
class Turns(UserAttribute):
    """How often."""

    count: int


@attribute_function
def one_less(turns: Turns) -> Turns:
    """one turn less"""
    refuse_unless(turns.count > 0)
    return Turns(turns.count - 1)


def test_ops_and_attributes_of_users_take_part() -> None:
    with local_ops():

        @op(reference=lambda x, turns: np.roll(x, turns.count))
        def rolled(x: TensorType, turns: Turns) -> TensorType:
            """The elements moved along the last axis."""
            return x

        @rule
        def turn_less(x: Tensor, turns: Turns) -> Law:
            """rolled(x, turns) = rolled(rolled(x, turns - 1), 1)"""
            return rewrites(rolled(x, turns), rolled(rolled(x, one_less(turns)), Turns(1)))

        build = Builder()
        x = build.input("x", DType.F32, (4,))
        start = build.program({"y": build.add(rolled, (x,), Turns(3))})
        guarded_one, _ = rewrite(RuleSet(turn_less), Limits(rounds=6), start)
        assert guarded_one.report.dropped == []
        assert guarded_one.classes == saturate(start, OURS + turn_less, Limits(rounds=6)).classes


@pytest.mark.deep
def test_a_rule_that_makes_an_op_whose_type_rule_hangs_is_dropped() -> None:
    with local_ops():

        @op(reference=lambda x: x)
        def slow(x: TensorType) -> TensorType:
            """x, of which nobody hears again where it has two axes"""
            while x.rank == 2:
                pass
            return x

        @rule
        def slow_down(f: UnaryFn, x: Tensor) -> Law:
            """f(x) = f(slow(x))"""
            return rewrites(unary(f, x), unary(f, slow(x)))

        saturation, _ = rewrite(RuleSet(slow_down, misuse("prints")), patience=2)
        (dropped,) = saturation.report.dropped
        assert (dropped.name, dropped.reason) == (
            "slow_down",
            "it took too long (the limit is 2 s of CPU time)",
        )


def test_what_a_rule_writes_to_is_its_own_process() -> None:
    before = Perm.__getitem__, Perm.inverse
    rewrite(RuleSet(misuse("changes_the_world")))
    assert (Perm.__getitem__, Perm.inverse) == before


def test_a_program_compiles_without_the_rule() -> None:
    with pytest.warns(RuleDroppedWarning, match="rule 'rule_divides'"):
        compiled = satura.compile(PROGRAM, rules=DEFAULT + misuse("divides"))
    assert [entry.name for entry in compiled.report.dropped] == ["rule_divides"]
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(compiled(x), (3 * x + 1).ravel())


def test_without_processes_rules_that_fail_are_dropped_too(
    monkeypatch: pytest.MonkeyPatch, ours: Saturation
) -> None:
    monkeypatch.setattr(guarded, "FORKS", False)
    monkeypatch.setattr(process, "FORKS", False)
    saturation, _ = rewrite(RuleSet(misuse("exits"), misuse("divides")))
    names = {entry.name for entry in saturation.report.dropped}
    assert names == {"rule_exits", "rule_divides"}
    assert saturation.classes == ours.classes


def test_our_own_rules_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    satura.optimize(PROGRAM)
