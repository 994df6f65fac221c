"""Plots of trials: cost and bound over time and e-nodes, and time against cost."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING

from satura.experiments.sweep import Trial
from satura.rewrite.errors import CallError, file_errors
from satura.rewrite.program.arguments import as_path
from satura.rewrite.system.files import output_file

if TYPE_CHECKING:
    from matplotlib.axis import Axis

SHAPES = "os^Dv<>pPX*h"  # of points


def check_plot(path: str | Path) -> None:
    """Raise CallError without matplotlib, and for an ending that it does not know."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise CallError("plots need matplotlib: pip install 'satura[plot]'") from None
    ending = ending_of(path)
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if ending and ending not in known:
        raise CallError(
            f"{path} cannot be written: a plot does not end in '.{ending}'; endings are"
            f" {', '.join(known)}"
        )


def plot_trials(path: str | Path, found: Sequence[Trial]) -> None:
    """Write an image of the kind that the path's ending names, a PNG where it has none.

    Costs are shares of the least that any trial of the model by the same cost model found; where
    that is 0, other costs are not drawn. Colours tell extractors apart, with rules, cost models and
    limits where there are several; shapes tell models apart. Raises
    CallError without trials or without matplotlib, or for an ending that it does not know,
    FileError where nothing can be written.
    """
    found = list(found)
    if not found:
        raise CallError(f"there is nothing to plot to {path}: no trials were given")
    check_plot(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    figure, panels = pyplot.subplots(1, 3, figsize=(17, 4.5), layout="constrained")
    over_nodes, over_time, front = panels
    least = least_costs(found)
    named = series(found)
    shapes = shape_of_models(found)
    for number, own in enumerate(named.values()):
        color = f"C{number}"
        for model in dict.fromkeys(each.model for each in own):
            of = [each for each in own if each.model == model]
            costs = [share(each.cost, least[_compared(each)]) for each in of]
            bounds = [share(each.bound, least[_compared(each)]) for each in of]
            for axes, places in (
                (over_nodes, [each.enodes for each in of]),
                (over_time, list(map(seconds, of))),
            ):
                axes.scatter(places, costs, s=18, alpha=0.6, color=color, marker=shapes[model])
                axes.scatter(places, bounds, s=18, marker="_", color=color)
        mean = sum(share(each.cost, least[_compared(each)]) for each in own) / len(own)
        front.scatter([sum(map(seconds, own))], [mean], color=color)
    over_nodes.set(xlabel="e-nodes", ylabel="cost / least cost of the model", xscale="log")
    over_time.set(xlabel="processor seconds", xscale="log")
    front.set(xlabel="processor seconds of all models", ylabel="mean cost / least cost")
    for axes, values in (
        (over_nodes, [each.enodes for each in found]),
        (over_time, list(map(seconds, found))),
    ):
        few_ticks(axes.xaxis, values)
    told = [(name, SHAPES[0], f"C{number}") for number, name in enumerate(named)]
    told.append(("bound", "_", "gray"))
    if len(set(shapes.values())) > 1:
        told += [(model, shape, "gray") for model, shape in shapes.items()]
    figure.legend(
        handles=[Line2D([], [], ls="", label=n, marker=m, color=c) for n, m, c in told],
        loc="outside right upper",
    )
    try:
        with file_errors("write", path), output_file(as_path(path)) as file:
            figure.savefig(file, format=ending_of(path) or "png")
    except ValueError as error:
        raise CallError(f"{path} cannot be written: {error}") from None
    finally:
        pyplot.close(figure)


def least_costs(found: Sequence[Trial]) -> dict[tuple[str, str], float]:
    """The least cost that was found for each model by each cost model."""
    least: dict[tuple[str, str], float] = {}
    for each in found:
        least[_compared(each)] = min(least.get(_compared(each), inf), each.cost)
    return least


def _compared(trial: Trial) -> tuple[str, str]:
    """What trials have in common whose costs are compared."""
    return trial.model, trial.cost_model


def share(cost: float, least: float) -> float:
    """A cost as a share of the least one; beside a least of 0 that of 0 is 1, others have none."""
    if least:
        return cost / least
    return nan if cost else 1.0


def ending_of(path: str | Path) -> str:
    """What a path's name ends in, in small letters, without the dot."""
    return as_path(path).suffix.removeprefix(".").lower()


def series(found: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The trials of each extractor, apart by rules, cost model and limits where these differ.

    Choice graphs have none of these.
    """
    of_models = [each for each in found if not each.is_of_graph]
    told = ["extractor"]
    for name in ("rules", "cost_model", "limits"):
        if len({getattr(each, name) for each in of_models}) > 1:
            told.append(name)
    named: dict[str, list[Trial]] = {}
    for each in found:
        parts = told[:1] if each.is_of_graph else told
        named.setdefault(", ".join(getattr(each, part) for part in parts), []).append(each)
    return named


def shape_of_models(found: Sequence[Trial]) -> dict[str, str]:
    """A shape for each model; one for all where there are too many to be told apart."""
    models = [*dict.fromkeys(each.model for each in found)]
    if len(models) > len(SHAPES):
        return dict.fromkeys(models, SHAPES[0])
    return dict(zip(models, SHAPES, strict=False))


def few_ticks(axis: Axis, values: Sequence[float]) -> None:
    """Give a logarithmic axis so few labels that they do not overlap."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    share = max(values) / min(values) if min(values) > 0 else inf
    steps = (1.0, 2.0, 5.0) if share < 100 else (1.0,)
    axis.set_major_locator(MaxNLocator(4) if share < 10 else LogLocator(subs=steps, numticks=6))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def seconds(trial: Trial) -> float:
    """All processor time of a trial."""
    return trial.saturation_seconds + trial.candidates_seconds + trial.extractor_seconds
