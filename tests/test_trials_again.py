"""Trials that are done are given back, and made again where a model or code has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

from satura.commands.cli import app
from satura.experiments import Trial, read_trials, trials, write_trials
from satura.experiments.content import content_of, model_digest
from satura.pipeline.models import Model, load
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.greedy import tree_greedy
from satura.rewrite.extract.gym import read_gym
from tests.tried_models import Fixed, graph_file
from tests.tried_models import model as model


@pytest.mark.deep
def test_limits_cost_models_and_graphs_beside_each_other_and_resumed(model: Path) -> None:
    """Two e-graphs in two processes; what is done is given back, and not done again."""
    graph = read_gym((Path(__file__).parent / "egraph.json").read_text()).graph
    limits = {"short": Limits(rounds=1), "none": Limits(rounds=0)}

    def sweep(jobs: int, done: list[Trial]) -> list[Trial]:
        slow = {"slow": CostModel().with_rates({"launch": 1.0})}
        return list(
            trials({"m": model, "g": graph}, ("exact",), ("dag",), slow, limits, jobs, done)
        )

    first, second, third = found = sweep(2, [])
    assert (first.key, third.key) == (("m", "exact", "slow", "short", "dag"), ("g", *"---", "dag"))
    assert first.enodes > second.enodes and first.cost > first.dispatches >= 1
    assert third.cost == 9.25 and third.gap < 1e-6
    marked = [replace(trial, copies=99) for trial in found[1:]]
    again = sweep(1, marked)
    assert again[1:] == marked and again[0].cost == first.cost and again[0].copies != 99


def test_a_model_that_has_changed_is_tried_again(tmp_path: Path) -> None:
    """Also one of the same name in another folder; its rows are replaced."""
    csv, numbers = tmp_path / "t.csv", []
    paths = [tmp_path / folder / "g.json" for folder in "ab"]
    for path, cost in zip(paths, (3, 5), strict=True):
        path.parent.mkdir()
        graph_file(path.parent, path.name, cost)
    for path in (paths[0], paths[1], paths[0]):
        done = CliRunner().invoke(app, ["experiment", str(path), "--csv", str(csv), "--json"])
        assert done.exit_code == 0
        (row,) = read_trials(csv)
        numbers.append(row.cost)
    assert numbers == [3, 5, 3]
    write_trials(csv, [replace(row, copies=99)])
    CliRunner().invoke(app, ["experiment", str(paths[0]), "--csv", str(csv)])
    assert read_trials(csv)[0].copies == 99


def test_content_is_that_of_the_model_and_of_what_it_is_tried_with(model: Path) -> None:
    def content(model: Model, cost: CostModel, limits: Limits) -> str:
        return content_of(model_digest(model), "none", cost, limits)

    plain = content(model, CostModel(), Limits())
    for same in (str(model), model.read_bytes(), onnx.load(model)):
        assert plain == content(same, CostModel(), Limits()) != ""
    others = {
        content(load(model), CostModel(), Limits()),
        content(model, CostModel(threads=2), Limits()),
        content(model, Fixed(1), Limits()),
        content(model, Fixed(2), Limits()),
        content(model, CostModel(), Limits(rounds=1)),
    }
    assert len({plain, *others}) == 6
    assert content("nope.onnx", CostModel(), Limits()) == ""


OWN = """
from satura.experiments import CostModel, Result, dag_greedy
HELPED = 1.0
def helper(seconds): return seconds * HELPED
class Mine(CostModel):
    def seconds(self, features): return helper(1e-6)
def mine(graph): return dag_greedy(graph)
"""


def test_trials_of_code_that_was_edited_are_made_again(model: Path) -> None:
    def tried(text: str, done: list[Trial]) -> Trial:
        own: dict[str, Any] = {"__name__": "__main__"}
        exec(text, own)
        costs, extractors = {"mine": own["Mine"]()}, {"mine": own["mine"]}
        return next(trials({"m": model}, ["none"], extractors, costs, done=done))

    first = tried(OWN, [])
    mark = replace(first, copies=99)
    assert tried(OWN, [mark]) == mark
    for old, new in (("1e-6", "5e-6"), ("HELPED = 1", "HELPED = 5"), ("* HELPED", "* 5.0")):
        assert tried(OWN.replace(old, new), [mark]).cost > 3 * first.cost
    other = tried(OWN.replace("return dag_", "graph = graph; return dag_"), [mark])
    assert other.copies != 99 and other.graph == first.graph


def helper_of_two() -> list[int]:
    return [1, 2]


def test_a_digest_of_code_is_the_same_in_each_process() -> None:
    code = (
        OWN
        + """
from satura.experiments.own_code import digest_of_code
names = {"one", "two", "three"}
def used(graph): return [each for each in names if each in {"four", "five", "six"}]
print(digest_of_code([Mine, mine, used]))
"""
    )
    own: dict[str, Any] = {"__name__": "__main__"}
    exec(code, own)
    here = own["digest_of_code"]([own[name] for name in ("Mine", "mine", "used")])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    assert told.stdout.strip() == here
    circle: list[object] = [1, 2]
    circle.append(circle)
    some = [circle, [1, 2], [1, [2]], [[1, 2]], {1: 2}, helper_of_two, tree_greedy]
    assert len({own["digest_of_code"](each) for each in some}) == len(some)
