"""E-graphs as JSON, in the form of the collection "extraction-gym".

    {"nodes": {"a": {"op": "+", "children": ["b", "b"], "eclass": "0", "cost": 2.0},
               "b": {"op": "x", "children": [], "eclass": "1"}},
     "root_eclasses": ["0"]}

A child is any node of the class that is read; a cost that is not given is 1. What a choice costs
there, every class once, is what it costs in a choice graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from satura.rewrite.errors import CallError, ModelError, ProgramError, brief
from satura.rewrite.extract.checked import DEAREST
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.greedy import cheapest_trees

T = TypeVar("T")

_SHOWN = 4  # at either end of a circle


@dataclass(frozen=True)
class Gym:
    """A choice graph, and the names of its candidates and classes."""

    graph: ChoiceGraph
    nodes: tuple[str, ...]
    classes: tuple[str, ...]

    def computable(self) -> ChoiceGraph:
        """The graph. Raises ModelError, with a circle of classes, where nothing computes a root."""
        if circle := _circle(self.graph):
            names = " reads ".join(_shortened([f"'{self.classes[cls]}'" for cls in circle]))
            raise ModelError(f"nothing computes the roots: all ways lead to circles as {names}")
        return self.graph

    def choice(self, result: Result) -> dict[str, str]:
        """The chosen node of each class that is needed."""
        return {self.classes[cls]: self.nodes[k] for cls, k in result.choice.items()}


def read_gym(text: str | bytes) -> Gym:
    """The choice graph of an e-graph's JSON.

    Raises ModelError where it is not in that form, and CallError for what is not text.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise CallError(
            f"text is the JSON of an e-graph, not {brief(text)}; of a file it is path.read_text()"
        )
    try:
        content = json.loads(text, object_pairs_hook=_once_each)
    except ValueError as error:
        is_path = isinstance(text, str) and text.endswith(".json")
        hint = f"; this looks like a path: give Path({text!r}).read_text()" if is_path else ""
        raise ModelError(f"an e-graph is not JSON: {error}{hint}") from None
    except RecursionError:
        raise ModelError("an e-graph is not JSON that is nested so deep") from None
    nodes = _field("the e-graph", content, "nodes", dict)
    homes = {name: _field(f"node '{name}'", each, "eclass", str) for name, each in nodes.items()}
    numbers = {cls: number for number, cls in enumerate(dict.fromkeys(homes.values()))}
    leaves, costs = [], []
    for name, each in nodes.items():
        children = _field(f"node '{name}'", each, "children", list, [])
        for child in children:
            if not isinstance(child, str) or child not in nodes:
                raise ModelError(f"node '{name}' has the child {child!r}, which is not a node")
        leaves.append(tuple(sorted({numbers[homes[child]] for child in children})))
        cost = each.get("cost", 1.0)
        is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
        if not is_number or not 0 <= cost <= DEAREST:
            raise ModelError(
                f"node '{name}' has the cost {cost!r}, which is not a number from 0 to {DEAREST:g}"
            )
        costs.append(float(cost))
    roots = _field("the e-graph", content, "root_eclasses", list)
    for root in roots:
        if not isinstance(root, str) or root not in numbers:
            raise ModelError(f"the root {root!r} is not a class")
    goals = tuple(dict.fromkeys(numbers[root] for root in roots))
    places = tuple(numbers[home] for home in homes.values())
    graph = ChoiceGraph(len(numbers), places, tuple(leaves), tuple(costs), goals)
    return Gym(graph, tuple(nodes), tuple(numbers))


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of the JSON. Raises ModelError for a name that it has twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"an object of the e-graph has '{twice}' twice")
    return found


def _circle(graph: ChoiceGraph) -> list[int]:
    """A cycle of classes, each of which reads the next; empty if all goals can be computed."""
    possible = cheapest_trees(graph)
    at = next((goal for goal in graph.goals if goal not in possible), None)
    places: dict[int, int] = {}
    while at is not None and at not in places:
        places[at] = len(places)
        leaves = (leaf for k in graph.candidates[at] for leaf in graph.leaves[k])
        at = next(leaf for leaf in leaves if leaf not in possible)
    return [] if at is None else [*list(places)[places[at] :], at]


def _shortened(names: list[str]) -> list[str]:
    """The names; if there are many, only the first and the last."""
    return names if len(names) <= 2 * _SHOWN else [*names[:_SHOWN], "…", *names[-_SHOWN:]]


def gym_text(graph: ChoiceGraph) -> str:
    """A choice graph as JSON; candidates are named by their class and a number.

    Candidates that read what nothing computes are left out. Raises ProgramError where that leaves
    none for a goal, and CallError for what is no choice graph.
    """
    if not isinstance(graph, ChoiceGraph):
        raise CallError(f"what is written is a choice graph, not {brief(graph)}")
    first = {cls: f"{cls}.{ks[0]}" for cls, ks in enumerate(graph.candidates) if ks}
    nodes = {
        f"{home}.{k}": {
            "op": "candidate", "children": [first[leaf] for leaf in graph.leaves[k]],
            "eclass": str(home), "cost": graph.costs[k],
        }
        for k, home in enumerate(graph.homes)
        if all(leaf in first for leaf in graph.leaves[k])
    }  # fmt: skip
    computed = {node["eclass"] for node in nodes.values()}
    for goal in graph.goals:
        if str(goal) not in computed:
            raise ProgramError(f"class {goal} cannot be computed by any of its candidates")
    content = {"nodes": nodes, "root_eclasses": [str(goal) for goal in graph.goals]}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _field(where: str, record: object, name: str, kind: type[T], default: T | None = None) -> T:
    """Field `name` of a record of the JSON."""
    value = record.get(name, default) if isinstance(record, Mapping) else None
    if not isinstance(value, kind):
        raise ModelError(f"{where} has no '{name}' that is {_JSON[kind]}")
    return value


_JSON: Mapping[type, str] = {dict: "an object", list: "a list", str: "a string"}
