"""An extractor of one's own, compared with satura's on a light model.

It chooses as the greedy one does, but on costs that are blurred at random, and keeps the best of
some tries. Run with `python examples/user_extractor.py`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from satura.experiments import EXTRACTORS, ChoiceGraph, Result, dag_greedy, trials
from satura.light import light


def blurred_greedy(graph: ChoiceGraph) -> Result:
    """The best of ten greedy choices on blurred costs."""
    random, found = Random(0), []
    for _ in range(10):
        costs = tuple(cost * random.uniform(0.8, 1.25) for cost in graph.costs)
        choice = dag_greedy(replace(graph, costs=costs)).choice
        found.append(Result(choice, graph.cost(choice.values())))
    return min(found, key=lambda result: result.cost)


def main() -> None:
    """Print a line per extractor."""
    extractors = {name: EXTRACTORS[name] for name in ("tree", "dag", "search")}
    extractors["mine"] = blurred_greedy
    for trial in trials({"shufflenet": light("light_shufflenet")}, extractors=extractors):
        print(f"{trial.extractor:8} {trial.cost * 1e3:.4f} ms, at most {trial.gap:.2%} too dear")


if __name__ == "__main__":
    main()
