"""`satura why`: what the command prints of a rule of the book, and of rules of a file."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from satura.commands.choice import _Told
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import best_choice, saturate
from satura.rewrite.extract.extract import choices, searched
from satura.rewrite.extract.losers import contest
from satura.rewrite.extract.settle import assembly, settle
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType
from tests.command_line import Run, runs
from tests.onnx_models import make_model, node
from tests.random_programs import random_program
from tests.test_extract import conv_block, unrewritten

FILE = '''
from satura.rewrite.types.attributes import Perm
from satura.rewrite.language.dsl import Law, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import transpose, unary


@rule
def relu_twice(x: Tensor) -> Law:
    """relu(relu(x)) = relu(x)"""
    return rewrites(unary("relu", unary("relu", x)), unary("relu", x))
'''
SLOW = (
    FILE
    + '''
import time


@attribute_function
def slowly(perm: Perm) -> bool:
    time.sleep(60)
    return True


@rule
def sleeps(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x where slowly(p), which is wrong"""
    return rewrites(transpose(x, p), x, slowly(p))
'''
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """relu of a transpose."""
    turn = node("Transpose", "x", "t")
    turn.name = "turn"
    path = tmp_path / "model.onnx"
    onnx.save(make_model([turn, node("Relu", "t")], {"x": (2, 3)}), path)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runs("why", capsys)


def test_the_command_explains_a_rule_of_the_book(model: Path, run: Run) -> None:
    code, out, _ = run("transpose_past_unary", model)
    assert code == 0 and "fires; the program has 3 nodes, 5 e-nodes in use" in out
    assert "at %2 = unary(%1) relu : f32[3, 2]  (Relu 'y')" in out
    code, out, _ = run("transpose_past_unary", model, "--json")
    answer = json.loads(out)
    assert code == 0 and answer["fires"] and answer["directions"][0]["matches"] == 1


@pytest.mark.parametrize(
    ("asked", "rules", "message"),
    [
        (
            "pad_into_conv",
            "none",
            "'pad_into_conv' is not in the rule set 'none', but in the rule b",
        ),
        (
            "transpose_past",
            "none",
            "'transpose_past' is not in the rule set 'none', but in the rule",
        ),
        (
            "transpose_past",
            "default",
            "is a family; ask for one of its rules: transpose_past_unary",
        ),
        ("pad_into_convs", "none", "no rule 'pad_into_convs'; did you mean 'pad_into_conv'?"),
        ("transpose_pas", "default", "no rule 'transpose_pas'; did you mean 'transpose_past'?"),
        ("nope", "default", "there is no rule 'nope'; `satura rules` lists those of the rule bo"),
    ],
)
def test_a_rule_that_is_not_in_the_set_is_told_from_none(
    model: Path, run: Run, asked: str, rules: str, message: str
) -> None:
    code, _, err = run(asked, model, "--rules", rules)
    assert code == 2 and message in err


def test_a_model_before_the_rule_is_named(model: Path, run: Run) -> None:
    code, _, err = run(model, "pad_into_conv")
    assert code == 2 and f"the rule comes first: satura why pad_into_conv {model}" in err


def test_a_node_that_is_not_there_is_one_error(model: Path, run: Run) -> None:
    code, _, err = run(model, "--choice", 99)
    assert code == 2 and "there is no node %99; the last is %2" in err


def test_the_command_explains_rules_of_a_file(model: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    code, out, _ = run("relu_twice", model, "--with", file)
    assert code == 0 and "operand 1 of unary: no unary relu, but" in out
    code, _, err = run("relu_twise", model, "--with", file)
    assert code == 2 and "did you mean 'relu_twice'" in err
    code, _, err = run("relu_twice", tmp_path / "missing.onnx", "--with", file)
    assert code == 2 and "there is no such file" in err
    assert run("relu_twice", model, "--with", tmp_path / "missing.py")[0] == 2


@pytest.mark.deep
def test_the_command_gives_up_on_a_rule_that_does_not_end(
    model: Path, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    code, _, err = run("sleeps", model, "--with", file, "--seconds", 1)
    assert code == 1 and f"rule 'sleeps' ({file}:21) was dropped: it took too long" in err


@pytest.mark.deep
def test_the_command_goes_on_without_another_rule_that_does_not_end(
    model: Path, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "both.py"
    file.write_text(SLOW)
    code, out, err = run("relu_twice", model, "--with", file, "--seconds", 1)
    assert code == 0 and "operand 1 of unary: no unary relu, but" in out
    assert "rule 'sleeps'" in err and "was dropped: it took too long" in err


def test_the_command_says_which_candidates_lost(model: Path, run: Run) -> None:
    """Storing the transposed tensor first takes another launch."""
    code, out, _ = run(model, "--choice", "%2", "--json")
    answer = json.loads(out)
    assert code == 0 and answer["chosen"]["form"] == "loop" and answer["lost"]
    for lost in answer["lost"]:
        assert lost["dearer"] > 0
        assert sum(lost["terms"].values()) == pytest.approx(lost["dearer"])
        assert max(lost["terms"], key=lost["terms"].get) == "launch"
    code, out, _ = run(model, "--choice", "2")
    assert code == 0 and "lost, the whole would take 2.5" in out and "by launch +2.50" in out
    code, _, err = run(model, "--choice", "%0")
    assert (
        code == 2
        and "%0 is an input or a constant, and nothing was to choose; dispatches store %" in err
    )
    assert run(model)[0] == 2


def test_a_placement_that_needs_copies_loses_by_them() -> None:
    """Its candidate was charged for the parts that another concat has."""
    build = Builder()
    parts = [conv_block(build, build.input(name, DType.F32, (2, 6, 6, 8)), 8, 12) for name in "xy"]
    concats = {f"along {axis}": build.concat(parts, axis) for axis in (0, 3)}
    made = settle(choices(unrewritten(build.program(concats))), searched)
    found, result = made.candidates, made.result
    contests = [contest(found, result, cls) for cls in result.choice]
    terms = [dict(loser.terms) for each in contests for loser in each.losers]
    assert max(each.get("copies", 0.0) for each in terms) > found.model.rates["launch"]
    for each in contests:
        for loser in each.losers:
            assert sum(dict(loser.terms).values()) == pytest.approx(loser.whole - result.cost)


@pytest.mark.deep
def test_what_lost_is_told_or_counted() -> None:
    """Also candidates with which the rest does without what they compute."""
    useless = 0
    for seed in (0, 3, 7):
        found, result = best_choice(saturate(random_program(seed)[0], rule_set("default")))
        told = _Told(found, result, made := assembly(found, result))
        for cls in result.choice:
            root, answer = made.stored[cls], contest(found, result, cls)
            others = len(found.graph.candidates[cls]) - 1
            assert len(answer.losers) + answer.useless + answer.left_out == others
            text = told.text(root, root, answer)
            assert ("nothing else could have computed it" in text) == (not others)
            assert (f"lost, {answer.useless} other candidate" in text) == (answer.useless > 0)
            assert told.as_json(root, answer)["useless"] == answer.useless
            useless += answer.useless
    assert useless
