"""Trials that are done are given back, and made again where a model or code has changed."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from satura.commands.cli import app
from satura.experiments import Trial, read_trials, trials, write_trials
from satura.experiments.content import content_of, model_digest
from satura.experiments.own_code import digest_of_code
from satura.pipeline.models import Model, load
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.extract.choice_graph import ChoiceGraph, Extractor, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.features import Features
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


def test_extractors_that_are_asked_for_later_are_the_only_ones_to_run(model: Path) -> None:
    """What is done is given back, also before and behind them, with the bound of all."""
    ran = []

    def second(graph: ChoiceGraph) -> Result:
        ran.append(graph)
        return tree_greedy(graph)

    graph = read_gym((Path(__file__).parent / "egraph.json").read_text()).graph
    for given in ({"g": graph}, {"m": model}):
        done = list(trials(given, ["none"], ("tree", "dag")))
        marked = [replace(each, copies=99, bound=0.0, gap=inf) for each in done]
        all_three: dict[str, Extractor | str] = {"tree": "tree", "second": second, "dag": "dag"}
        found = list(trials(given, ["none"], all_three, done=marked))
        assert [each.extractor for each in found] == [*all_three]
        assert [each.copies == 99 for each in found] == [True, False, True]
        assert found[0].bound == found[1].bound == done[0].bound > 0
    assert len(ran) == 2


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


def array_with(last: float, **others: Any) -> Any:
    return np.array([*range(2000), last, 1.0], **others)


class Slotted:
    __slots__ = ("hidden",)

    def __init__(self, hidden: object) -> None:
        self.hidden = hidden

    def __repr__(self) -> str:
        return "Slotted"


class Listed(list[int]):
    """A list with an attribute, of which pickle is not told."""

    def __init__(self, items: list[int], hidden: int) -> None:
        super().__init__(items)
        self.hidden = hidden

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return list, ([*self],)


def cached(value: int) -> Callable[[], int]:
    return lru_cache(lambda: value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: array_with(1.0),
        lambda: array_with(1.0 + 1e-12),
        lambda: array_with(1.0, dtype=np.float32),
        lambda: array_with(1.0).reshape(2, -1),
        lambda: array_with(1.0).astype(object),
        lambda: array_with(2.0).astype(object),
        lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
        lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
        lambda: np.float32(0.1),
        lambda: np.float64(0.1),
        lambda: deque([array_with(1.0)]),
        lambda: deque([array_with(2.0)]),
        lambda: {Slotted(1)},
        lambda: {Slotted(2)},
        lambda: Listed([1], 1),
        lambda: Listed([2], 1),
        lambda: Listed([1], 2),
        lambda: defaultdict(lambda: 1),
        lambda: defaultdict(lambda: 2),
        lambda: {1: 2}.get,
        lambda: {1: 3}.get,
        lambda: (1, 2).__getitem__,
        lambda: cached(1),
        lambda: cached(2),
        lambda: [1, True],
        lambda: [1, 1],
        lambda: MappingProxyType({1: 2}),
        lambda: logging.getLogger("satura.tests"),
        lambda: re.compile("a"),
        lambda: re.compile("a", re.I),
    ],
)  # fmt: skip
def test_values_have_digests_of_all_that_they_hold(make: Callable[[], object]) -> None:
    """Also what their `repr` does not show: no two of them are alike, and each is like itself."""
    found = digest_of_code(make())
    assert found == digest_of_code(make())
    assert MET.setdefault(found, make) is make


MET: dict[str, Callable[[], object]] = {}


def test_what_cannot_be_told_from_others_is_like_none() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for hidden in (threading.Lock(), (each for each in range(1)), nested):
        assert digest_of_code([hidden]) != digest_of_code([hidden])


@pytest.mark.parametrize("place", [(1500,), (0,)])
def test_trials_of_an_array_that_was_changed_are_made_again(
    model: Path, place: tuple[int, ...]
) -> None:
    def tried(table: Any, done: list[Trial]) -> Trial:
        return next(trials({"m": model}, ["none"], costs={"mine": Looked(table)}, done=done))

    table = np.ones(2000)
    mark = replace(tried(table, []), copies=99)
    assert tried(np.ones(2000), [mark]) == mark
    table[place] += 1e-9
    assert tried(table, [mark]).copies != 99


class Looked(CostModel):
    """Says of every dispatch what a table adds up to."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def seconds(self, features: Features) -> float:
        return float(self.table.sum())
