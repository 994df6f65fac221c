"""Plots of trials: cost and bound over time and e-nodes, and time against cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from satura.experiments.sweep import Trial
from satura.rewrite.errors import CallError, file_errors
from satura.rewrite.program.arguments import as_path


def check_plot(path: str | Path) -> None:
    """Raise CallError without matplotlib, and for an ending that it does not know."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise CallError("plots need matplotlib: pip install 'satura[plot]'") from None
    ending = as_path(path).suffix.removeprefix(".").lower()
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if ending and ending not in known:
        raise CallError(
            f"{path} cannot be written: a plot does not end in '.{ending}'; endings are"
            f" {', '.join(known)}"
        )


def plot_trials(path: str | Path, found: Sequence[Trial]) -> None:
    """Write an image of the kind that the path's ending names.

    Costs are shares of the least that any trial of the model found. Raises CallError without
    trials or without matplotlib, or for an ending that it does not know, FileError where nothing
    can be written.
    """
    found = list(found)
    if not found:
        raise CallError(f"there is nothing to plot to {path}: no trials were given")
    check_plot(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (over_nodes, over_time, front) = pyplot.subplots(1, 3, figsize=(15, 4.5))
    least: dict[str, float] = {}
    for each in found:
        least[each.model] = min(least.get(each.model, each.cost), each.cost) or 1.0
    for name in dict.fromkeys(each.extractor for each in found):
        own = [each for each in found if each.extractor == name]
        costs = [each.cost / least[each.model] for each in own]
        bounds = [each.bound / least[each.model] for each in own]
        for axes, places in (
            (over_nodes, [each.enodes for each in own]),
            (over_time, list(map(seconds, own))),
        ):
            drawn = axes.scatter(places, costs, s=14, alpha=0.6, label=name)
            axes.scatter(places, bounds, s=14, marker="_", color=drawn.get_facecolor())
        front.scatter([sum(map(seconds, own))], [sum(costs) / len(own)], label=name)
    over_nodes.set(
        xlabel="e-nodes", ylabel="cost and bound (-) / least cost of the model", xscale="log"
    )
    over_time.set(xlabel="processor seconds", xscale="log")
    front.set(xlabel="processor seconds of all models", ylabel="mean cost / least cost")
    for axes in (over_nodes, over_time, front):
        axes.legend()
    figure.tight_layout()
    try:
        with file_errors("write", path):
            figure.savefig(as_path(path))
    except ValueError as error:
        raise CallError(f"{path} cannot be written: {error}") from None
    finally:
        pyplot.close(figure)


def seconds(trial: Trial) -> float:
    """All processor time of a trial."""
    return trial.saturation_seconds + trial.candidates_seconds + trial.extractor_seconds
