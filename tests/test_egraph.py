"""The e-graph: loading, saturating, limits, types, provenance and reading back."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from satura.rewrite.egraph.classes import EClasses, find_class
from satura.rewrite.egraph.interner import Interner, Value
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import Saturation, in_same_class, saturate
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import (
    Law,
    Rule,
    RuleSet,
    Tensor,
    attribute_function,
    equates,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import binary, reshape, scalar, transpose, unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import BinaryFn, HostCall, Perm, Shape, UnaryFn
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType, TensorType
from tests.tiers import deep_but

CALLS: list[tuple[Perm, Perm]] = []


@attribute_function
def composed(p: Perm, q: Perm) -> Perm:
    """p, then q."""
    CALLS.append((p, q))
    return p[q]


@rule
def compose(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, p then q)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, composed(p, q)))


@rule
def drop_identity(x: Tensor, p: Perm) -> Law:
    """transpose(x, identity) = x"""
    return rewrites(transpose(x, p), x, p.is_identity)


@rule
def past_unary(f: UnaryFn, x: Tensor, p: Perm) -> Law:
    """f(transpose(x, p)) = transpose(f(x), p)"""
    return equates(unary(f, transpose(x, p)), transpose(unary(f, x), p))


@rule
def past_binary(f: BinaryFn, x: Tensor, y: Tensor, p: Perm) -> Law:
    """f(transpose(x, p), transpose(y, p)) = transpose(f(x, y), p)"""
    return equates(binary(f, transpose(x, p), transpose(y, p)), transpose(binary(f, x, y), p))


MOVEMENT = RuleSet(compose, drop_identity, past_unary, past_binary)


def residual(blocks: int) -> Program:
    """relu between a transpose and its inverse, added to the input, again and again."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 64, 56, 56))
    for _ in range(blocks):
        inner = build.unary("relu", build.transpose(x, (0, 2, 3, 1)))
        x = build.binary("add", build.transpose(inner, (0, 3, 1, 2)), x)
    return build.program({"y": x})


def without_transposes(blocks: int, f: str = "relu") -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (1, 64, 56, 56))
    for _ in range(blocks):
        x = build.binary("add", build.unary(f, x), x)
    return build.program({"y": x})


def chain(length: int) -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (4, 4))
    for index in range(length):
        x = build.unary("relu" if index % 2 else "abs", x)
    return build.program({"y": x})


def reaches(saturation: Saturation, start: Program, goal: Program) -> bool:
    return in_same_class(saturation, start.output_nodes[0], goal)


def program_of(classes: EClasses) -> str:
    """All classes as text."""
    lines = []
    for number, nodes in enumerate(classes.nodes):
        shown = " | ".join(
            f"{node.op}{node.operands} {' '.join(map(str, node.attributes))}" for node in nodes
        )
        lines.append(f"{number}: {classes.types[number]} {classes.known[number]} {shown}")
    return "\n".join([*lines, str(classes.inputs), str(classes.outputs)])


def mixed() -> Program:
    """Constants, symbols, host calls and items in one program."""
    build = Builder()
    seq = symbol("seq")
    x = build.input("x", DType.F32, (seq, 4))
    unused = build.input("unused", DType.I64, ())
    weight = build.constant(np.arange(4, dtype=np.float32).reshape(1, 4))
    spread = build.broadcast(build.unary("neg", weight), (seq, 4))
    total = build.binary("add", x, spread)
    types = (TensorType(DType.F32, (seq, 4)), TensorType(DType.I64, (seq,)))
    call = HostCall("Sorted", "test", 1, b"", types)
    host = build.host((total, unused), call)
    index = build.item(host, 1)
    fixed = build.item(build.host((weight,), HostCall("Own", "test", 1, b"", types[:1])), 0)
    return build.program({"y": build.item(host, 0), "index": index, "total": total, "own": fixed})


@pytest.mark.parametrize("program", [mixed(), residual(3), chain(5)])
def test_without_rules_every_node_is_a_class_of_its_own(program: Program) -> None:
    saturation = saturate(program, RuleSet())
    classes = saturation.classes
    assert saturation.report.stopped == "saturated"
    assert sorted(c for c in saturation.program_classes if c is not None) == list(
        range(len(program.nodes))
    )
    for index, node in enumerate(program.nodes):
        number = saturation.program_classes[index]
        assert number is not None
        (found,) = classes.nodes[number]
        operands = tuple(saturation.program_classes[operand] for operand in node.operands)
        assert (found.op, found.operands) == (node.op.name, operands)
        assert found.attributes == node.attributes
        assert classes.types[number] == node.type
        assert classes.known[number] == program.known[index]
    assert classes.inputs == tuple(saturation.program_classes[i] for i in program.inputs)
    assert classes.outputs == tuple(
        (name, saturation.program_classes[index]) for name, index in program.outputs
    )


def test_transposes_of_a_residual_chain_cancel_after_few_calls() -> None:
    program = residual(300)
    CALLS.clear()
    saturation = saturate(program, MOVEMENT)
    assert saturation.report.stopped == "saturated"
    assert reaches(saturation, program, without_transposes(300))
    assert not reaches(saturation, program, without_transposes(299))
    assert not reaches(saturation, program, without_transposes(300, "abs"))
    assert len(CALLS) == len(set(CALLS)) <= 16


def test_without_rules_the_goal_is_missed() -> None:
    program = residual(3)
    assert not reaches(saturate(program, RuleSet()), program, without_transposes(3))
    assert reaches(saturate(program, RuleSet()), program, program)


@pytest.mark.parametrize("length", deep_but([1500], [1500, 5000]))  # beyond the depth of calls
def test_a_long_chain_goes_through(length: int) -> None:
    program = chain(length)
    saturation = saturate(program, MOVEMENT)
    assert len(saturation.classes.nodes) == length + 1
    assert reaches(saturation, program, program)


def test_looking_up_adds_nothing() -> None:
    program = residual(2)
    classes = saturate(program, MOVEMENT).classes
    before = program_of(classes)
    assert find_class(classes, without_transposes(7))[-1] is None
    assert program_of(classes) == before


def test_the_report_counts_matches_nodes_calls_and_refusals() -> None:
    report = saturate(residual(2), MOVEMENT).report
    by_name = {entry.name: entry for entry in report.rules}
    identity = by_name["drop_identity"]
    assert identity.matches > 0  # where composing asks, so that no identity is ever made
    assert identity.refusals == identity.demand_calls == 2
    assert identity.place == drop_identity.place
    assert by_name["past_unary:backward"].demand_calls == 0
    added = sum(entry.new_nodes for entry in report.rules)
    assert added > 0 and len(report.rounds) >= 3
    assert report.rounds[0].nodes == 9 and report.nodes <= 9 + added
    assert "saturated after" in str(report)


@rule
def spread(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """f(x, y) = -f(y, x): wrong, and without end"""
    return rewrites(binary(f, x, y), unary("neg", binary(f, unary("neg", y), x)))


@pytest.mark.parametrize(
    ("limits", "stopped"),
    [
        (Limits(rounds=3), "rounds"),
        (Limits(rounds=10_000, nodes=60), "nodes"),
    ],
)
def test_limits_stop_without_an_error(limits: Limits, stopped: str) -> None:
    program = residual(2)
    saturation = saturate(program, RuleSet(spread), limits)
    assert saturation.report.stopped == stopped
    assert reaches(saturation, program, program)


@dataclass(frozen=True)
class Priced:
    """What an extraction gives, by its cost alone."""

    seconds: float


def test_the_cheapest_program_that_was_extracted_is_kept() -> None:
    found: list[Priced] = []
    given: list[EClasses] = []

    def extract(classes: EClasses) -> Priced:
        given.append(classes)
        found.append(Priced((3.0, 1.0, 2.0)[len(found) % 3]))
        return found[-1]

    saturation = saturate(residual(60), RuleSet(spread), Limits(), extract=extract)
    assert saturation.report.stopped == "no gain" and len(found) == 3
    assert saturation.best is found[1] and saturation.best_classes is given[1]
    sizes = [classes.node_count for classes in given]
    assert sizes[1] >= 1000 and sizes[2] >= 1.9 * sizes[1]


@rule
def one_sign_more(x: Tensor) -> Law:
    """|x| = |x + x - x|: right for integers, and without an end"""
    return rewrites(unary("abs", x), unary("abs", binary("sub", binary("add", x, x), x)))


def test_slow_growth_that_gains_nothing_ends() -> None:
    """A few e-nodes in each round are no reason to go on for a thousand of them."""
    build = Builder()
    program = build.program({"y": build.unary("abs", build.input("x", DType.I32, (2,)))})
    saturation = saturate(program, RuleSet(one_sign_more), extract=lambda _: Priced(1.0))
    assert saturation.report.stopped == "no gain"
    assert 50 < len(saturation.report.rounds) < 200


def test_origins_name_rule_round_and_matched_class() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    program = build.program({"y": build.unary("relu", build.transpose(x, (1, 0)))})
    saturation = saturate(program, RuleSet(past_unary), Limits(rounds=2))
    found = {
        f"{node.op}{node.operands}": (origin.rule, origin.round, origin.cause)
        for number, nodes in enumerate(saturation.classes.nodes)
        for node, origin in zip(nodes, saturation.origins[number], strict=True)
    }
    home = saturation.program_classes[program.output_nodes[0]]
    source, turned, relu = (
        saturation.program_classes[0],
        saturation.program_classes[1],
        saturation.classes.nodes[home or 0][0].operands[0],
    )
    assert found == {
        "input()": (None, 0, None),
        f"transpose({source},)": (None, 0, None),
        f"unary({turned},)": (None, 0, None),
        f"unary({source},)": ("past_unary:forward", 1, home),
        f"transpose({relu},)": ("past_unary:forward", 1, home),
    }


@rule
def wrong_type(x: Tensor, s: Shape) -> Law:
    """reshape(x) = x, which holds for one shape only"""
    return rewrites(reshape(x, s), x)


@rule
def wrong_inner_type(f: UnaryFn, x: Tensor) -> Law:
    """f(x) = f(x) + a scalar, which has no type"""
    return rewrites(unary(f, x), binary("add", unary(f, x), scalar(Scalar.of(0, DType.F32))))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (wrong_type, r"makes f32\[2, 3\] equal to f32\[3, 2\]|makes f32\[3, 2\] equal"),
        (wrong_inner_type, "binary.* has no type"),
    ],
)
def test_an_ill_typed_law_is_named(bad: Rule, message: str) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    y = build.unary("neg", build.reshape(build.transpose(x, (1, 0)), (2, 3)))
    with pytest.raises(RuleError, match=f"rule '{bad.name}' .* is unsound: .*({message})") as error:
        saturate(build.program({"y": y}), RuleSet(past_unary, compose) + bad + drop_identity)
    assert bad.place in str(error.value)


@rule
def once_below_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(relu(relu(x)), p) = transpose(relu(x), p)"""
    relu = unary("relu", x)
    return rewrites(transpose(unary("relu", relu), p), transpose(relu, p))


def test_what_one_transpose_makes_equal_is_equal() -> None:
    build = Builder()
    once = build.unary("relu", build.input("x", DType.F32, (2, 3)))
    twice = build.unary("relu", once)
    program = build.program({"y": build.transpose(twice, (1, 0))})
    saturation = saturate(program, RuleSet(once_below_transpose))
    assert saturation.program_classes[twice] == saturation.program_classes[once]


def test_what_a_law_drops_is_not_made() -> None:
    def identities(rules: RuleSet) -> int:
        found = saturate(residual(1), rules)
        hidden = [node for nodes in found.hidden for node, _ in nodes]
        nodes = [*hidden, *(node for nodes in found.classes.nodes for node in nodes)]
        return sum(node.attributes == (Perm((0, 1, 2, 3)),) for node in nodes)

    assert identities(MOVEMENT) == 0 < identities(RuleSet(compose, past_unary, past_binary))


@attribute_function
def is_cycle(p: Perm, fails: bool) -> bool:
    if fails and p.order == (1, 2, 0):
        raise ValueError("a cycle")
    return p.order == (1, 2, 0)


@rule
def wrong_drop(x: Tensor, p: Perm) -> Law:
    """transpose(x, (1, 2, 0)) = x"""
    return rewrites(transpose(x, p), x, is_cycle(p, False))


@rule
def failing_drop(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x, by a condition that fails for (1, 2, 0)"""
    return rewrites(transpose(x, p), x, is_cycle(p, True))


@pytest.mark.parametrize("bad", [wrong_drop, failing_drop])
def test_the_law_that_drops_is_blamed_and_not_the_one_that_makes(bad: Rule) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 4))
    y = build.transpose(build.transpose(x, (2, 0, 1)), (2, 0, 1))
    with pytest.raises(RuleError, match=f"rule '{bad.name}'"):
        saturate(build.program({"y": y}), RuleSet(compose, bad))


def test_interned_values_are_told_apart_by_class_and_content() -> None:
    interner = Interner()
    values: list[Value] = [
        Scalar.of(0.0, DType.F32), Scalar.of(-0.0, DType.F32), Scalar.of(0, DType.I32),
        Shape((1, 2)), Perm((1, 2)), Shape((True, 2)), Constant(np.zeros(1, np.int32)),
        Constant(np.zeros(1, np.float32)), Constant(np.zeros((1, 1), np.float32)), DType.F32,
    ]  # fmt: skip
    assert [interner.number(value) for value in values] == list(range(len(values)))
    assert interner.number(Constant(np.zeros(1, np.int32))) == 6
    assert interner.number(Shape((int(np.int64(1)), 2))) == 3


_PRINT = """
from tests.test_egraph import MOVEMENT, mixed, program_of, residual
from satura.rewrite.egraph.saturate import saturate
for program in (mixed(), residual(4)):
    print(program_of(saturate(program, MOVEMENT).classes))
"""


def test_classes_do_not_depend_on_hash_seeds() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    there = subprocess.run(
        [sys.executable, "-c", _PRINT],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    programs = (program_of(saturate(p, MOVEMENT).classes) for p in (mixed(), residual(4)))
    here = "".join(f"{program}\n" for program in programs)
    assert here.count("\n") > 30 and here == there
