"""`compile`, `optimize`, `why` and `explain` see one and the same e-graph of a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import satura
from satura.commands.cli import main
from satura.pipeline.api import rewritten
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import saturate_beside
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType
from tests.user_ops import UserOps

LAW = "compose_transposes"


@pytest.fixture
def program(ops: UserOps) -> Program:
    """transpose(elu(transpose(x))): only a law about the user's op can remove the transposes."""
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 4))
    activated = build.add(ops.elu, (build.transpose(x, (2, 0, 1)),), Scalar.of(0.5, DType.F32))
    return build.program({"y": build.transpose(activated, (1, 2, 0))})


def test_the_library_explains_the_e_graph_that_is_compiled(program: Program) -> None:
    made = rewritten(program)
    rules = rule_set("default")
    assert saturate_beside(rules[LAW], program, rules, None).classes == made.saturation.classes
    answer = satura.why(LAW, program)
    assert answer.enodes == made.saturation.classes.node_count
    assert answer.fires
    assert satura.optimize(program) == made.schedule.program
    assert satura.compile(program, threads=1).program == made.schedule.program
    assert [node.op.name for node in made.schedule.program.nodes] == ["input", "elu"]


@pytest.mark.deep
def test_the_commands_explain_the_e_graph_that_is_compiled(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    satura.save(program, path)
    made = rewritten(path)

    def printed(*arguments: str) -> str:
        with pytest.raises(SystemExit, match="0"):
            main([*arguments, "--json"])
        return capsys.readouterr().out

    answer = json.loads(printed("why", LAW, str(path)))
    assert answer["enodes"] == made.saturation.classes.node_count
    found = json.loads(printed("explain", str(path)))
    nodes = made.schedule.program.nodes
    assert [entry["node"] for entry in found] == [
        f"%{index} = {node} : {node.type}" for index, node in enumerate(nodes)
    ]
    assert any(step["rule"].startswith("transpose_past_elu") for step in found[-1]["steps"])
    assert all(step["matched"] for entry in found for step in entry["steps"])


@pytest.mark.deep
def test_a_law_of_movement_can_be_asked_about(program: Program) -> None:
    assert satura.why("transpose_past_elu", program).fires
