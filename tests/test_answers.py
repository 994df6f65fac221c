"""What extractors of users answer, and the processes in which they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import nan
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.backend import cores
from satura.experiments import answers, parallel, read_trials, trials
from satura.rewrite.errors import CallError, SaturaError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.exact import exact as exact_choice
from satura.rewrite.extract.features import Features
from satura.rewrite.extract.greedy import cheapest_trees, dag_greedy
from satura.rewrite.extract.landmarks import landmarks
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.tensor_type import DType

CIRCLE = ChoiceGraph(
    3, (0, 0, 1, 1, 2), ((1,), (), (0,), (), (0, 1)), (1.0, 5.0, 1.0, 5.0, 1.0), (2,)
)


@pytest.mark.parametrize(
    ("choice", "bound", "message"),
    [
        ({0: 0, 1: 2, 2: 4}, 0.0, "in a circle: class 2 is never computed"),
        ({2: 4, 1: 3}, 0.0, "did not choose a candidate for each class needed: none for class 0\n"),
        ({2: 4, 1: 3, 0: -4}, 0.0, "each class needed: -4 is not one of class 0"),
        ({2: 4, 1: 3, 0: 5}, 0.0, "each class needed: 5 is not one of class 0"),
        ({2: 4, 1: 3, 0: "a"}, 0.0, "each class needed: 'a' is not one of class 0"),
        ({2: 4, 1: 3, 0: 1.0}, 0.0, "each class needed: 1.0 is not one of class 0"),
        (None, 0.0, "the choice None, not candidates by class"),
        ([4, 3], 0.0, r"the choice \[4, 3\], not candidates by class"),
        ({2: 4, 1: 3, 0: 1}, "11", "the bound '11', which is not a number"),
        ({2: 4, 1: 3, 0: 1}, nan, "the bound nan, which is not a number"),
        ({2: 4, 1: 3, 0: 1}, 10**400, "which is not a number"),
        ({2: 4, 1: 3, 0: 1}, 11.001, "no choice costs less than 11.001, but one costs 7"),
        ({2: 4, 1: 3, 0: 1}, 7.001, "no choice costs less than 7.001, but one costs 7"),
    ],
)
def test_what_an_extractor_says_is_judged(choice: object, bound: object, message: str) -> None:
    def wrong(graph: ChoiceGraph) -> Result:
        return Result(choice, 0.0, bound)  # type: ignore[arg-type]

    with pytest.raises(CallError, match=f"extractor 'wrong'.* {message}"):
        list(trials({"g": CIRCLE}, extractors={"wrong": wrong, "tree": "tree"}))


def test_of_a_large_graph_no_linear_program_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bound is that of the landmarks, and of the extractors."""
    monkeypatch.setattr(answers, "LARGE", len(CIRCLE.homes))
    (exact,) = trials({"g": CIRCLE}, extractors=("tree",))
    monkeypatch.setattr(answers, "LARGE", len(CIRCLE.homes) - 1)
    monkeypatch.setattr(answers, "relax", None)
    (trial,) = trials({"g": CIRCLE}, extractors=("tree",))
    assert trial.bound == landmarks(CIRCLE).bound <= exact.bound
    (trial,) = trials({"g": CIRCLE}, extractors={"sure": exact_choice})
    assert trial.bound == trial.cost


def test_classes_that_nothing_needs_cost_nothing() -> None:
    """Bottom-up extractors choose for every class, and read none of them again."""

    def everywhere(graph: ChoiceGraph) -> Result:
        return Result(cheapest_trees(graph), 0.0)

    graph = replace(CIRCLE, goals=(1,))
    found = list(trials({"g": graph}, extractors={"mine": everywhere, "tree": "tree"}))
    build = Builder()
    x = build.input("x", DType.F32, (64, 64))
    program = build.program({"y": build.unary("exp", build.reduce("sum", x, (1,)))})
    found += trials({"p": program}, extractors={"mine": everywhere, "tree": "tree"})
    for mine, tree in zip(found[::2], found[1::2], strict=True):
        assert mine.outcome == tree.outcome
        assert (mine.gap, mine.predicted) == (tree.gap, tree.predicted)


def test_candidates_of_another_librarys_integers_are_taken() -> None:
    def right(graph: ChoiceGraph) -> Result:
        return Result({np.int64(c): np.int64(k) for c, k in ((2, 4), (0, 0), (1, 3))}, 0.0, 7)  # type: ignore[misc]

    (trial,) = trials({"g": CIRCLE}, extractors={"right": right})
    assert trial.cost == trial.bound == 7.0 and trial.gap == 0.0


class UnreadableError(Exception):
    """Can be written as a pickle, and not read again."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return UnreadableError, (str(self),)


class UnwritableError(Exception):
    """Cannot be written as a pickle."""

    def __reduce__(self) -> str:
        raise TypeError("no")


@pytest.mark.parametrize("error", [UnreadableError("my fault", 2), UnwritableError("my fault")])
def test_an_error_that_cannot_be_sent_is_told_with_what_was_tried(error: Exception) -> None:
    def failing(graph: ChoiceGraph) -> Result:
        raise error

    notes = ["in the extractor 'mine'", "in the trials of model 'g'"]
    with pytest.raises(SaturaError, match=f"^{type(error).__name__}: my fault\n") as sent:
        list(trials({"g": CIRCLE}, extractors={"mine": failing}, jobs=2))
    assert sent.value.__notes__ == notes
    with pytest.raises(type(error), match="my fault") as raised:
        list(trials({"g": CIRCLE}, extractors={"mine": failing}))
    assert raised.value.__notes__ == notes


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_extractor_that_exits_does_not_end_the_program(jobs: int) -> None:
    def leaving(graph: ChoiceGraph) -> Result:
        sys.exit(3)

    with pytest.raises(CallError, match=r"^the extractor 'mine' called sys.exit\(3\)\n"):
        list(trials({"g": CIRCLE}, extractors={"mine": leaving}, jobs=jobs))


def test_of_a_process_that_ends_it_is_said_what_it_was_at() -> None:
    def ending(graph: ChoiceGraph) -> Result:
        if graph.costs[0] == 2.0:
            os._exit(1)
        return dag_greedy(graph)

    graphs = {str(cost): replace(CIRCLE, costs=(cost,) * 5) for cost in (1.0, 2.0)}
    with pytest.raises(SaturaError, match=r"take fewer jobs; at work were: .*model '2\.0'"):
        list(trials(graphs, extractors={"mine": ending}, jobs=2))


def test_a_cost_model_that_raises_is_told_with_what_was_tried() -> None:
    class Failing(CostModel):
        def seconds(self, features: Features) -> float:
            if self.exits:
                sys.exit(3)
            raise ZeroDivisionError("my fault")

        def __init__(self, exits: bool) -> None:
            self.exits = exits

    build = Builder()
    program = build.program({"y": build.unary("relu", build.input("x", DType.F32, (3,)))})
    costs = {str(exits): Failing(exits) for exits in (True, False)}
    named = "model 'p', rules 'none', cost model '{}', limits 'default'"
    with pytest.raises(CallError, match=r"^the cost model Failing called sys.exit\(3\)") as exited:
        list(trials({"p": program}, ("none",), costs=costs))
    assert exited.value.__notes__ == ["in the trials of " + named.format("True")]
    with pytest.raises(ZeroDivisionError) as raised:
        list(trials({"p": program}, ("none",), costs={"False": costs["False"]}))
    told = ["in the cost model Failing", "in the trials of " + named.format("False")]
    assert raised.value.__notes__ == told


def test_there_are_no_more_processes_than_cpus_or_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pool(count: int, context: BaseContext, start: Callable[[], None]) -> ProcessPoolExecutor:
        asked.append(count)
        return ProcessPoolExecutor(count, context, start)

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(cores, "usable_threads", lambda: 2)
    with pytest.warns(UserWarning, match="100000 jobs are more than the 2 CPUs: 2 are used"):
        assert len(list(trials(dict.fromkeys("abc", CIRCLE), jobs=100_000))) == 3
    assert len(list(trials({"g": CIRCLE}, jobs=2))) == 1
    assert asked == [2, 1]


SWEEP = """
import os, signal, sys, time
from satura.experiments import ChoiceGraph, dag_greedy, read_trials, trials, write_trials

def slow(graph):
    if graph.costs[0]:
        time.sleep(3600)
    return dag_greedy(graph)

if sys.argv[1] == "leave":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
graphs = {str(cost): ChoiceGraph(1, (0,), ((),), (cost,), (0,)) for cost in (0.0, 1.0, 2.0)}
for trial in trials(graphs, extractors={"slow": slow}, jobs=2):
    write_trials(sys.argv[2], [trial])
    print("one", flush=True)
"""


STOPPED = """
import os, signal, sys
from satura.commands import experiment
from satura.commands.cli import main
from satura.experiments import sweep
from satura.rewrite.extract import extract

def stop(*given):
    os.kill(os.getpid(), signal.SIGTERM)

if sys.argv[1] == "extractor":
    extract.EXTRACTORS["search"] = stop
else:
    setattr(sweep, sys.argv[1], stop)
main(["experiment", sys.argv[2]])
"""


@pytest.mark.parametrize("place", ["extractor", "load", "choices"])
def test_a_signal_is_no_users_fault(tmp_path: Path, place: str) -> None:
    """A command that it ends exits as elsewhere, and says nothing."""
    build = Builder()
    path = tmp_path / "m.onnx"
    satura.save(build.program({"y": build.unary("relu", build.input("x", DType.F32, (3,)))}), path)
    command = [sys.executable, "-c", STOPPED, place, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("how", ["end", "leave"])
def test_a_sweep_that_is_stopped_ends_with_its_processes(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    """What is done stands in the file; the pipe is closed when no process is left."""
    out = tmp_path / "trials.csv"
    command = [sys.executable, "-c", SWEEP, how, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stdout.readline() == b"one\n"
        process.send_signal(number)
        assert process.stdout.read() == b""
    assert process.returncode != 0
    assert [trial.model for trial in read_trials(out)] == ["0.0"]
