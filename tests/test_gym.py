"""E-graphs as JSON: what is read, written, and said of what is not in the form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from satura.experiments import trials
from satura.rewrite.errors import CallError, ModelError, ProgramError
from satura.rewrite.extract.choice_graph import ChoiceGraph
from satura.rewrite.extract.exact import exact
from satura.rewrite.extract.greedy import tree_greedy
from satura.rewrite.extract.gym import gym_text, read_gym
from tests.test_extractors import check, random_graph

FILE = Path(__file__).parent / "egraph.json"


def test_what_is_shared_is_paid_once() -> None:
    """x² + x³ with x² shared costs 9.25, as x² (x + 1) does; as a tree the table is cheaper."""
    gym = read_gym(FILE.read_text())
    best = exact(gym.graph)
    check(gym.graph, best)
    assert best.cost == best.bound == 9.25
    assert gym.choice(best)["p"] in ("sum", "factored") and gym.choice(best)["t"] == "x"
    assert gym.choice(tree_greedy(gym.graph))["p"] == "factored"
    assert gym.graph.costs[gym.nodes.index("next")] == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_a_choice_graph_that_is_written_and_read_costs_the_same(seed: int) -> None:
    graph = random_graph(seed)
    if all(map(graph.candidates.__getitem__, range(graph.size))):
        again = read_gym(gym_text(graph)).graph
        assert sorted(again.costs) == sorted(graph.costs)
        assert sorted(map(len, again.leaves)) == sorted(map(len, graph.leaves))
        assert len(again.goals) == len(graph.goals)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": []}, "the e-graph has no 'nodes' that is an object"),
        ({"nodes": {"a": {"op": "x"}}}, "node 'a' has no 'eclass' that is a string"),
        (
            {"nodes": {"a": {"eclass": "0", "children": ["b"]}}},
            "the child 'b', which is not a node",
        ),
        (
            {"nodes": {"a": {"eclass": "0", "cost": -1}}},
            "the cost -1, which is not a number",
        ),
        (
            {
                "nodes": {
                    "a": {"eclass": "0", "children": ["b"]},
                    "b": {"eclass": "1", "children": ["c"]},
                    "c": {"eclass": "2", "children": ["b"]},
                },
                "root_eclasses": ["0"],
            },
            "circles as '1' reads '2' reads '1'",
        ),
        (
            {"nodes": {"a": {"eclass": "0", "cost": 1e308}}},
            r"1e\+308, .* from 0 to 1e\+250",
        ),
        ({"nodes": {"a": {"eclass": "0", "cost": 10**400}}}, "which is not a number from 0"),
        ({"nodes": {}, "root_eclasses": ["7"]}, "the root '7' is not a class"),
    ],
)
def test_what_is_not_in_the_form_is_an_error(change: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_gym(json.dumps(change)).computable()


def test_json_that_is_nested_too_deep_or_is_not_text_is_an_error() -> None:
    for text in ("[" * 100_000, b"\xff\xfe\xfa"):
        with pytest.raises(ModelError, match="an e-graph is not"):
            read_gym(text)


@pytest.mark.parametrize("text", [None, 5, Path("egraph.json"), {}])
def test_what_is_not_text_is_an_error_of_the_call(text: object) -> None:
    with pytest.raises(
        CallError, match=r"JSON of an e-graph, not .*; of a file it is path\.read_t"
    ):
        read_gym(text)  # type: ignore[arg-type]


def test_a_name_that_stands_twice_is_an_error() -> None:
    nodes = '"a": {"eclass": "0"}, "b": {"eclass": "0"}, "a": {"eclass": "1"}'
    with pytest.raises(ModelError, match="an object of the e-graph has 'a' twice"):
        read_gym(f'{{"nodes": {{{nodes}}}, "root_eclasses": ["0"]}}')


def test_what_could_not_be_read_again_is_not_written() -> None:
    lost = ChoiceGraph(2, (0,), ((1,),), (1.0,), (0,))
    for graph in (lost, replace(lost, goals=(1,))):
        with pytest.raises(ProgramError, match=f"class {graph.goals[0]} cannot be computed"):
            gym_text(graph)
    with pytest.raises(CallError, match="what is written is a choice graph, not 3"):
        gym_text(3)  # type: ignore[arg-type]


def test_a_path_as_text_is_told_from_wrong_json() -> None:
    with pytest.raises(ModelError, match=r"looks like a path: give Path\('model.json'\).read_text"):
        read_gym("model.json")
    with pytest.raises(ModelError, match=r"char 0\)$"):
        read_gym("model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": (1.0,)}, "has 2 homes, 2 leaves and 1 costs: each candidate has one of all"),
        ({"costs": "ab"}, "candidate 0 of the choice graph.* costs 'a': costs are numbers"),
        ({"costs": (1.0, "2")}, "candidate 1 of the choice graph.* costs '2': costs are numbers"),
        ({"costs": (1.0, 1e308)}, r"candidate 1 of the choice graph costs 1e\+308: costs are num"),
        ({"costs": (1.0, 10**400)}, "candidate 1 of .* costs 1000"),
        ({"costs": (1.0, True)}, "candidate 1 of .* costs True"),
        ({"costs": 3}, "costs of the choice graph.* are a tuple, not 3"),
        (
            {"leaves": ((), (7,))},
            "candidate 1 of .* reads 7: classes are numbers below its size, 2",
        ),
        ({"leaves": ((), 0)}, r"leaves\[1\] of the choice graph are a tuple, not 0"),
        ({"leaves": (0 for _ in "ab")}, "leaves of the choice graph are a tuple, not <generator"),
        ({"homes": (0, 5)}, "candidate 1 of .* computes 5: classes are"),
        ({"homes": (0, True)}, "candidate 1 of .* computes True: classes are"),
        ({"homes": (0, -1)}, "candidate 1 of .* computes -1: classes are"),
        ({"goals": (2,)}, "has the goal 2: classes are numbers below its size, 2"),
        ({"size": "2"}, "has the size '2', which is no number of classes"),
        ({"size": -1}, "has the size -1, which is no number of classes"),
    ],
)
def test_what_is_no_choice_graph_is_one_error(change: dict[str, Any], message: str) -> None:
    graph = ChoiceGraph(2, (0, 1), ((), (0,)), (1.0, 2.0), (1,))
    with pytest.raises(CallError, match=message):
        replace(graph, **change)


def test_a_goal_that_nothing_computes_is_told_with_its_graph() -> None:
    graph = ChoiceGraph(2, (0, 1), ((), (1,)), (1.0, 2.0), (1,))
    with pytest.raises(ProgramError, match=r"^the choice graph 'g': class 1 cannot be computed"):
        list(trials({"h": replace(graph, goals=(0,)), "g": graph}))


def test_what_is_no_model_is_told_with_all_kinds() -> None:
    gym = read_gym(FILE.read_text())
    with pytest.raises(CallError, match=r"model 'g' is Gym.* ChoiceGraph, which .*computable\(\)$"):
        list(trials({"g": gym}))  # type: ignore[dict-item]


def test_a_long_circle_is_shortened() -> None:
    size = 1_000
    nodes = {str(n): {"eclass": str(n), "children": [str((n + 1) % size)]} for n in range(size)}
    with pytest.raises(ModelError, match="'3' reads … reads '997'") as raised:
        read_gym(json.dumps({"nodes": nodes, "root_eclasses": ["0"]})).computable()
    assert len(str(raised.value)) < 200
