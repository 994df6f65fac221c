"""Experiments: extractors compared on models, from Python and on the command line."""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import satura
from satura.backend.cores import usable_threads
from satura.commands.cli import app
from satura.commands.compiling import parse_limits
from satura.experiments import Trial, answers, plot_trials, read_trials, trials, write_trials
from satura.experiments.plot import few_ticks, least_costs, series, shape_of_models, share
from satura.experiments.sweep import with_best_bounds
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import CallError, FileError, SaturaError
from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import appraiser
from satura.rewrite.extract.features import Features
from satura.rewrite.extract.greedy import tree_greedy
from satura.rewrite.extract.gym import read_gym
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT, NONE
from tests.tried_models import Fixed
from tests.tried_models import model as model


def test_every_extractor_on_every_rule_set(model: Path) -> None:
    found = list(trials({"small": model}, ("none", "default"), ("tree", "dag", "search", "exact")))
    assert [(each.rules, each.extractor) for each in found] == [
        (rules, extractor)
        for rules in ("none", "default")
        for extractor in ("tree", "dag", "search", "exact")
    ]
    for each in found:
        assert each.bound <= each.cost * (1 + 1e-9)
        assert each.dispatches > 0 and each.candidates > each.dispatches
    by = {(each.rules, each.extractor): each for each in found}
    for rules in ("none", "default"):
        tree, dag, search, best = (by[rules, n] for n in ("tree", "dag", "search", "exact"))
        assert best.cost <= search.cost * (1 + 1e-9) <= min(tree.cost, dag.cost) * (1 + 2e-9)
        assert best.gap < 1e-6
    assert by["default", "exact"].cost < by["none", "exact"].cost
    assert by["default", "exact"].enodes > by["none", "exact"].enodes


def test_extractors_and_rules_of_a_users_own(model: Path) -> None:
    asked = []

    def own(graph: ChoiceGraph) -> Result:
        asked.append(graph)
        return tree_greedy(graph)

    (trial,) = trials({"small": model}, {"mine": NONE}, {"own": own})
    assert len(asked) == 1
    assert (trial.rules, trial.extractor) == ("mine", "own")


def test_the_best_bound_of_a_graph_is_that_of_all_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "relax", lambda graph: Result({}, inf, 1.0))
    graph = read_gym((Path(__file__).parent / "egraph.json").read_text()).graph

    def proved(graph: ChoiceGraph) -> Result:
        found = tree_greedy(graph)
        return Result(found.choice, found.cost, 9.0)

    def weaker(graph: ChoiceGraph) -> Result:
        return tree_greedy(graph)

    for order in ((weaker, proved), (proved, weaker)):
        extractors = {each.__name__: each for each in order}
        first, second = trials({"g": graph}, extractors=extractors)
        assert first.bound == second.bound == 9.0
        assert first.gap == second.gap == first.cost / first.bound - 1
    later = with_best_bounds([replace(first, bound=1.0, gap=9.0), replace(second, model="h")])
    assert [each.bound for each in later] == [1.0, second.bound]
    refuted = with_best_bounds([first, replace(second, cost=8.0, bound=8.0 + 1e-12)])
    assert [each.bound for each in refuted] == [8.0, 8.0]


@pytest.mark.parametrize(
    ("cost", "bound", "expected"),
    [(3.0, 2.0, 0.5), (2.0 + 1e-12, 2.0, 0.0), (2.0, 0.0, inf), (0.0, 0.0, 0.0)],
)
def test_a_gap_is_the_same_of_a_result_and_of_a_trial(
    cost: float, bound: float, expected: float
) -> None:
    result, numbers = (
        Result({}, cost, bound),
        (9, 5, cost, bound, expected, cost, 1, 0, *(0.1,) * 3),
    )
    assert result.gap == expected
    assert not Trial("m", "", "none", "reference", "default", "dag", *numbers).contradiction


def test_typical_sizes_are_part_of_the_name_of_a_cost(tmp_path: Path) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("batch"), 100))
    path, csv = tmp_path / "open.onnx", tmp_path / "t.csv"
    satura.save(build.program({"y": build.reduce("sum", x, (1,))}), path)
    for sizes in ([], ["--dim", "batch=4000"]):
        done = CliRunner().invoke(app, ["experiment", str(path), "--csv", str(csv), *sizes])
        assert done.exit_code == 0 and "no --dim gives count as 64" in done.stdout
    many, few = read_trials(csv)
    assert (many.cost_model, few.cost_model) == ("reference, batch=4000", "reference")
    assert many.cost > 10 * few.cost


def test_a_plot_tells_rules_and_models_apart(tmp_path: Path) -> None:
    numbers = (9, 5, 2.0, 1.0, 1.0, 2.0, 1, 0, 0.1, 0.1, 0.1)
    first = Trial("m", "", "none", "reference", "default", "dag", *numbers)
    others = replace(first, rules="exact"), replace(first, model="n")
    assert [*series([first, *others])] == ["dag, none", "dag, exact"]
    assert [*series([first, others[1]])] == ["dag"]
    graph = replace(first, model="g", rules="-", cost_model="-", limits="-")
    assert [*series([first, graph])] == ["dag"]
    shapes = shape_of_models([first, *others])
    assert [*shapes] == ["m", "n"] and shapes["m"] != shapes["n"]
    many = [replace(first, model=str(number)) for number in range(99)]
    assert len(set(shape_of_models(many).values())) == 1


def test_costs_are_shares_of_the_least_by_the_same_cost_model(tmp_path: Path) -> None:
    """Also beside a model that costs nothing, of which no cost but 0 is a share."""
    pytest.importorskip("matplotlib")
    numbers = (9, 5, 2.0, 1.0, 1.0, 2.0, 1, 0, 0.1, 0.1, 0.1)
    first = Trial("m", "", "none", "reference", "default", "dag", *numbers)
    dear = replace(first, cost_model="slow", cost=200.0, bound=100.0)
    free = replace(first, model="f", cost=0.0, bound=0.0, gap=0.0)
    found = [first, dear, replace(free, extractor="tree", cost=7.0, gap=inf), free]
    least = {("m", "reference"): 2.0, ("m", "slow"): 200.0, ("f", "reference"): 0.0}
    assert least_costs(found) == least_costs(found[::-1]) == least
    assert (share(3.0, 2.0), share(0.0, 0.0)) == (1.5, 1.0) and isnan(share(7.0, 0.0))
    plot_trials(tmp_path / "t.png", found)
    assert (tmp_path / "t.png").stat().st_size


def test_labels_of_ticks_do_not_overlap() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for values in ([0.43, 0.91], [17, 640], [0.02, 30.0], [5.0, 5.0], [0.0, 9e6]):
        figure, axes = pyplot.subplots(figsize=(4, 4))
        axes.scatter(values, values)
        axes.set(xscale="log")
        few_ticks(axes.xaxis, values)
        figure.canvas.draw()
        labels = [*axes.get_xticklabels(), *axes.get_xticklabels(minor=True)]
        shown = [label.get_window_extent() for label in labels if label.get_text()]
        boxes = sorted((float(box.x0), float(box.x1)) for box in shown)
        pyplot.close(figure)
        assert len(boxes) > 1 and all(one[1] < other[0] for one, other in pairwise(boxes))


def test_costs_are_for_threads_and_typical_sizes(tmp_path: Path) -> None:
    """Those of one thread and of two differ; the command says which they are for."""
    build = Builder()
    x = build.input("x", DType.F32, (symbol("batch"), 4096))
    program, path = build.program({"y": build.unary("exp", x)}), tmp_path / "open.onnx"
    satura.save(program, path)

    def cost(name: str, threads: int | None, dims: dict[str, int] | None = None) -> float:
        (trial,) = trials({"m": program}, costs=(name,), threads=threads, dims=dims)
        return trial.cost

    assert (cost("default", 1) > cost("default", None)) == (usable_threads() > 1)
    assert cost("reference", 1) == cost("reference", 2)
    assert cost("reference", 1, {"batch": 640}) > 5 * cost("reference", 1)
    with pytest.raises(CallError, match="there is no size 'b'"):
        cost("reference", 1, {"b": 1})
    arguments = ["experiment", str(path), "--cost", "default", "--cost", "reference"]
    shown = CliRunner().invoke(app, [*arguments, "-t", "1"]).stdout.split()
    assert "default is for 1 thread; reference is for 1 thread" in " ".join(shown)
    found = json.loads(CliRunner().invoke(app, [*arguments, "-t", "1", "--json"]).stdout)
    assert [each["cost_model"] for each in found] == ["default, threads=1", "reference"]
    assert found[0]["cost"] == cost("default", 1)


def test_unknown_names_are_errors(model: Path) -> None:
    with pytest.raises(CallError, match="no extractor 'ilp'; choose from"):
        list(trials({"small": model}, extractors=("ilp",)))
    with pytest.raises(CallError, match="no rule set 'all'"):
        list(trials({"small": model}, rules=("all",)))


@pytest.mark.deep
def test_a_process_that_ends_is_an_error(model: Path) -> None:
    def leave(graph: ChoiceGraph) -> Result:
        os._exit(1)

    limits = {"short": Limits(rounds=0), "none": Limits(rounds=0)}
    with pytest.raises(SaturaError, match="take fewer jobs"):
        list(trials({"small": model}, ("none",), {"mine": leave}, limits=limits, jobs=2))


def test_what_is_not_a_choice_is_refused_and_costs_are_those_of_the_graph(model: Path) -> None:
    def free(graph: ChoiceGraph) -> Result:
        return replace(tree_greedy(graph), cost=0.0)

    def empty(graph: ChoiceGraph) -> Result:
        return Result({}, 0.0)

    graph = read_gym((Path(__file__).parent / "egraph.json").read_text()).graph
    (trial,) = trials({"g": graph}, extractors={"free": free})
    assert trial.cost == pytest.approx(tree_greedy(graph).cost)
    with pytest.raises(CallError, match="extractor 'empty' did not choose"):
        list(trials({"g": graph}, extractors={"empty": empty}))

    class Negative(CostModel):
        def seconds(self, features: Features) -> float:
            return -1.0

    with pytest.raises(CallError, match=r"cost model Negative says -1\.0 s"):
        list(trials({"small": model}, ("none",), costs={"mine": Negative()}))
    with pytest.raises(CallError, match=r"choose from \['reference'"):
        list(trials({"g": graph}, costs=("foo",)))


def test_the_command(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "trials.csv"
    arguments = ["experiment", str(model), "--extractor", "search", "--extractor", "exact"]
    shown = CliRunner().invoke(app, [*arguments, "--csv", str(out)])
    assert shown.exit_code == 0 and "small" in shown.stdout and "0.00%" in shown.stdout
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["extractor"] for row in rows] == ["search", "exact"]
    printed = CliRunner().invoke(app, [*arguments, "--json"])
    first, second = (Trial(**each) for each in json.loads(printed.stdout))
    assert float(rows[0]["cost"]) == first.cost >= second.cost
    assert read_trials(out) != [first, second]  # times are others
    other = tmp_path / "other.csv"
    other.write_bytes(model.read_bytes())
    refused = CliRunner().invoke(app, [*arguments, "--csv", str(other)])
    assert isinstance(refused.exception, CallError) and other.read_bytes() == model.read_bytes()
    once_more = CliRunner().invoke(app, [*arguments, "--csv", str(out), "--json"])
    assert [Trial(**each) for each in json.loads(once_more.stdout)] == read_trials(out)


def test_cost_models_are_made_as_their_authors_like(model: Path) -> None:
    (trial,) = trials({"small": model}, ("none",), costs={"fixed": Fixed(1)})
    assert trial.cost == pytest.approx(trial.dispatches)
    sized = Fixed(2).with_sizes({"n": 3}).with_rates({"launch": 4.0})
    assert (sized.said, sized.sizes["n"], sized.rates["launch"]) == (2, 3, 4.0)
    satura.compile(model, threads=1, rules="none", cost=Fixed(1), dims={})


@pytest.mark.parametrize("said", [nan, inf, -1.0, 1e308, None, "1"])
def test_what_is_no_time_is_refused_with_model_and_dispatch(model: Path, said: object) -> None:
    with pytest.raises(CallError, match=r"cost model Fixed says .+ for a dispatch, view of trans"):
        list(trials({"small": model}, ("none",), costs={"fixed": Fixed(said)}))


def test_what_is_not_a_cost_model_is_refused(model: Path) -> None:
    wrong = (Fixed, "Fixed is a class: give an object of it"), (7, "not 7")
    for given, message in wrong:
        costs: dict[str, object] = {"mine": given}
        with pytest.raises(CallError, match=message):
            list(trials({"small": model}, costs=costs))  # type: ignore[arg-type]
        with pytest.raises(CallError, match=message):
            satura.compile(model, threads=1, cost=given)  # type: ignore[arg-type]
        with pytest.raises(CallError, match=message):
            appraiser(given)  # type: ignore[arg-type]


def test_arguments_of_another_kind_are_refused(model: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"models": "p.onnx"}, "models are a dict by name, not str"),
        ({"extractors": "search"}, "extractors are a list of names or a dict by name"),
        ({"extractors": {"mine": 3}}, "extractor 'mine' is 3, not a function"),
        ({"extractors": {"mine": "ilp"}}, "no extractor 'ilp'; choose from"),
        ({"rules": "none"}, "rules are a list of names"),
        ({"limits": Limits()}, "limits are a dict by name"),
        ({"dims": ["n"]}, "dims are a dict by name"),
        ({"threads": 0}, "threads must be an int of at least 1, or None for all, not 0"),
        ({"limits": {"short": 3}}, "limits 'short' are satura.Limits"),
        ({"jobs": "2"}, "jobs must be an int of at least 1, not '2'"),
    ]
    for changes, message in wrong:
        with pytest.raises(CallError, match=message):
            list(trials(**{"models": {"small": model}, **changes}))  # type: ignore[arg-type]
    with pytest.raises(FileError, match=r"cannot open '.*nope.csv'"):
        read_trials(tmp_path / "nope.csv")
    with pytest.raises(FileError, match=r"cannot write '.*x.csv'"):
        write_trials(tmp_path / "no" / "x.csv", [])
    with pytest.raises(CallError, match="trials are to be written, not 3"):
        write_trials(tmp_path / "x.csv", [3])  # type: ignore[list-item]
    with pytest.raises(CallError, match=r"nothing to plot to x\.png"):
        plot_trials("x.png", [])


def test_costs_of_a_graph_are_shown_as_they_are(model: Path) -> None:
    graph = str(Path(__file__).parent / "egraph.json")
    alone = CliRunner().invoke(app, ["experiment", graph]).stdout
    *_, seconds, _ = (each.strip() for each in alone.splitlines()[-2].split("│"))
    assert float(seconds) > 0, "however small"
    assert " 9.25 " in alone and " us " not in alone and " cost " in alone
    assert "cost of what extractors choose" in alone and "--dim" not in alone
    both = CliRunner().invoke(app, ["experiment", graph, str(model), "--rules", "none"]).stdout
    assert "--dim" in both
    assert " 9.25 " in both and re.search(r"\d\.\d\d us ", both)


@pytest.mark.parametrize("option", [("--dim", "n=4"), ("--value", "axes=0")])
def test_options_that_say_nothing_of_e_graphs_are_refused(option: tuple[str, str]) -> None:
    graph = str(Path(__file__).parent / "egraph.json")
    refused = CliRunner().invoke(app, ["experiment", graph, *option])
    assert isinstance(refused.exception, CallError)
    assert str(refused.exception) == f"{option[0]} is for ONNX models, and only e-graphs are given"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("nope.onnx",), "nope.onnx: there is no such file"),
        (("nope",), r"nope is neither an ONNX file, an e-graph in .*\.json\) nor one of"),
        (("a.onnx", "b/a.onnx"), "a.onnx and b/a.onnx have the same name: rename one"),
        (("a.onnx", "a.onnx"), "a.onnx is named twice"),
    ],
)
def test_models_that_are_not_there_or_of_one_name_are_named(
    names: tuple[str, ...], message: str
) -> None:
    refused = CliRunner().invoke(app, ["experiment", *names])
    assert isinstance(refused.exception, CallError) and re.search(message, str(refused.exception))


def mine(graph: ChoiceGraph) -> Result:
    return tree_greedy(graph)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"costs": [CostModel()]}, "costs are a list of names .* list with .*costs={'mine'"),
        ({"extractors": [mine]}, "extractors are a list of names .*extractors={'mine'"),
        ({"rules": DEFAULT}, "rules are a list of names .* RuleSet with .*rules={'mine'"),
        ({"done": "t.csv"}, r"done is trials, not 't.csv': give done=read_trials\(path\)"),
        ({"done": [1]}, "done is trials, as read_trials.* gives, not of 1"),
        ({"done": 1}, "done is trials, not 1"),
        (
            {"client": "tcp://10.0.0.1:8786"},
            r"client is an object, distributed.Client\('tcp://10.0.0.1:8786'\), not 'tcp://",
        ),
    ],
)
def test_what_trials_are_not_given_so_is_named(
    model: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(CallError, match=message):
        next(trials({"small": model}, **{"rules": ["none"], **given}))


def test_the_commands_limits_are_checked() -> None:
    assert parse_limits("nodes=20,rounds=4") == Limits(rounds=4, nodes=20)
    with pytest.raises(CallError, match="no limit 'seconds'; choose from"):
        parse_limits("seconds=3")
    with pytest.raises(CallError, match="'nodes=many' is not a name"):
        parse_limits("nodes=many")


@pytest.mark.deep
def test_trials_are_plotted(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out, graph = tmp_path / "plot.png", str(Path(__file__).parent / "egraph.json")
    shown = CliRunner().invoke(app, ["experiment", graph, "--plot", str(out)])
    assert shown.exit_code == 0 and out.read_bytes().startswith(b"\x89PNG")
