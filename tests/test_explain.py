"""Explanations: each rewritten node says which rules made it from the program's own nodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.light import light
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.errors import CallError
from satura.rewrite.explain.origins import Explainer
from satura.rewrite.extract.extract import extract
from satura.rewrite.language.dsl import Law, RuleSet, Tensor, rewrites, rule
from satura.rewrite.language.terms import binary, unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT
from tests.command_line import runs


def turned_pad() -> Program:
    """conv(transpose(pad(x))): the pad goes past the transpose, and then into the convolution."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 4, 20, 20))
    w = build.constant(np.ones((3, 3, 4, 2), np.float32))
    padded = build.transpose(build.pad(x, (0, 0, 1, 1), (0, 0, 1, 1)), (0, 2, 3, 1))
    return build.program({"y": build.conv(padded, w, build.window(DType.F32, (3, 3)))})


def explainer_and_program(program: Program, limits: Limits) -> tuple[Explainer, Program]:
    saturation = saturate(program, DEFAULT, limits)
    return Explainer(program, saturation, DEFAULT), extract(saturation.classes).program


def test_a_chain_of_rules_is_told_in_order() -> None:
    program = turned_pad()
    explainer, rewritten = explainer_and_program(program, Limits())
    last = dict(rewritten.outputs)["y"]
    explanation = explainer.explain(rewritten, last)
    assert [step.rule for step in explanation.steps] == [
        "transpose_past_pad:backward",
        "pad_into_conv",
        "conv_by_tiles",
    ]
    first, second, third = explanation.steps
    assert (first.round, second.round) == (1, 2)
    assert third.matched[0].startswith(second.made) and third.made.startswith("winograd(")
    pad, turn, conv = len(program.nodes) - 3, len(program.nodes) - 2, len(program.nodes) - 1
    assert [text.split(" = ")[0] for text in first.matched] == [f"%{turn}", f"%{pad}"]
    assert f"= %{turn} :" in first.made and first.made.startswith("pad(transpose(")
    assert second.matched[0].startswith(f"%{conv} = conv(")
    assert second.matched[1].startswith(first.made)
    assert "[3(1:1), 3(1:1)]" in second.made and f"= %{conv} :" in second.made
    assert str(explanation).index("round 1") < str(explanation).index("round 2")


def test_what_stands_in_the_program_needs_no_rule() -> None:
    explainer, rewritten = explainer_and_program(turned_pad(), Limits())
    inputs = explainer.explain(rewritten, rewritten.inputs[0])
    assert inputs.steps == () and "stands in the program as it was loaded" in str(inputs)
    with pytest.raises(CallError, match=r"there is no node %99; the last is %"):
        explainer.explain(rewritten, 99)


@rule
def inverts(x: Tensor) -> Law:
    """-(-x) = x"""
    return rewrites(unary("neg", unary("neg", x)), x)


def test_what_stands_there_with_an_equal_operand_names_the_rule() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2,))
    twice = build.unary("neg", build.unary("neg", x))
    program = build.program({"y": build.unary("relu", twice)})
    rules = RuleSet(inverts)
    saturation = saturate(program, rules)
    explainer = Explainer(program, saturation, rules)
    other = Builder()
    shorter = other.program({"y": other.unary("relu", other.input("x", DType.F32, (2,)))})
    told = explainer.explain(shorter, 1)
    (equal,) = told.equal
    assert (equal.now, equal.rules) == ("%0", ("inverts",)) and equal.loaded.startswith("%2 = ")
    assert "as it was loaded" not in str(told) and "made equal by inverts" in str(told)
    assert explainer.explain(program, 3).equal == ()


@rule
def commutes(x: Tensor, y: Tensor) -> Law:
    """x + y = y + x"""
    return rewrites(binary("add", x, y), binary("add", y, x))


@rule
def subtracts(x: Tensor, y: Tensor) -> Law:
    """x + y = -(-x - y)"""
    return rewrites(binary("add", x, y), unary("neg", binary("sub", unary("neg", x), y)))


def test_of_two_matches_in_a_class_the_one_that_made_the_node_is_told() -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (2,)) for name in "xy")
    program = build.program({"sum": build.binary("add", x, y)})
    rules = RuleSet(commutes, subtracts)
    explainer = Explainer(program, saturate(program, rules), rules)
    for first, second, expected in ((x, y, ["subtracts"]), (y, x, ["commutes", "subtracts"])):
        node = build.binary("sub", build.unary("neg", first), second)
        rewritten = build.program({"difference": node})
        steps = explainer.explain(rewritten, len(rewritten.nodes) - 1).steps
        assert [step.rule for step in steps] == expected
        assert f"(%{first}, %{second}) add" in steps[-1].matched[0]


@pytest.mark.deep
# Near its limit of nodes, rules run one after the other.
@pytest.mark.parametrize(
    "limits", [Limits(), pytest.param(Limits(nodes=2_000), marks=pytest.mark.deep)]
)
def test_every_step_matched_what_stood_there(limits: Limits) -> None:
    program = satura.load(light("light_squeezenet"))
    explainer, rewritten = explainer_and_program(program, limits)
    steps = 0
    for index in range(len(rewritten.nodes)):
        explanation = explainer.explain(rewritten, index)
        made = {step.made for step in explanation.steps}
        for step in explanation.steps:
            steps += 1
            assert step.matched
            for text in step.matched:
                term = text.partition("  (made by ")[0]
                assert term != step.made
                assert text.startswith("%") or term in made, (step, text)
    assert steps > 100


@pytest.mark.deep
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model.onnx")
    satura.save(turned_pad(), model)
    run = runs("explain", capsys)
    code, out, _ = run(model)
    line = next(line for line in out.splitlines() if "  # " in line)
    number = line.partition(" ")[0]
    rule = line.partition("  # ")[2].partition(" ")[0]
    assert code == 0 and rule.partition(":")[0] in DEFAULT
    code, out, _ = run(model, number)
    assert code == 0 and f"{rule} matched" in out and out.startswith(f"{number} = ")
    code, out, _ = run(model, number, "--json")
    assert code == 0 and json.loads(out)[0]["steps"][0]["rule"] == rule
    code, _, err = run(model, "first")
    assert code == 2 and "first is not the number of a node" in err
