"""`satura experiment`: extractors compared on models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path

from onnx import ModelProto

from satura.backend.target import threads_for
from satura.commands.compiling import parse_limits
from satura.commands.models import by_stem, file_or_light
from satura.commands.outputs import check_output
from satura.commands.rule_files import named_with, with_files
from satura.commands.terminal import counted, measured, print_json, print_table, progress
from satura.commands.values import of_several
from satura.experiments import Trial, plot_trials, read_trials, trials
from satura.experiments.plot import check_plot
from satura.experiments.sweep import with_best_bounds
from satura.experiments.table import others, updated
from satura.experiments.typical import typical
from satura.pipeline.distributed import Client
from satura.pipeline.models import Model
from satura.pipeline.rates import cost_model
from satura.pipeline.sizes import parse_dims
from satura.rewrite.errors import CallError, ModelError
from satura.rewrite.extract.choice_graph import ChoiceGraph
from satura.rewrite.extract.gym import read_gym

WAIT = 10  # seconds, for an answer of a scheduler
TITLE = "cost of what extractors choose"
OF_MODELS = f"predicted {TITLE}; sizes that no --dim gives count as 64"
REFERENCE = "reference"  # the cost model that is the same on every machine
NAMES = "model", "rules", "cost model", "limits", "extractor", "dispatches", "copies"
NUMBERS = "bound", "gap", "seconds"


def experiment(
    names: Sequence[str],
    rules: Sequence[str],
    extractors: Sequence[str],
    costs: Sequence[str],
    limits: Sequence[str],
    jobs: int,
    cluster: str,
    csv: Path | None,
    plot: Path | None,
    json: bool,
    dims: Sequence[str] = (),
    threads: int | None = None,
    values: Sequence[str] = (),
    files: Sequence[Path] = (),
) -> None:
    """Run all trials but those that `csv` has; print them, write them to `csv`, and plot them.

    Where there are `dims`, the name of a cost model has its typical sizes; and where `threads` are
    given, their number, but that of "reference", which is for one. `values` are of inputs; the
    rules of `files` are beside those of each set.
    """
    for path in filter(None, (csv, plot)):
        check_output(path)
    if plot is not None:
        check_plot(plot)
    models = by_stem(names, lambda name: _with_values(names, model(name), values))
    _check_meant(models.values(), {"--dim": dims, "--value": values, "--with": files})
    laws = {named_with(name, files): with_files(name, files) for name in rules} if files else rules
    sizes = typical(models.values(), parse_dims(dims))
    count = threads_for(threads)
    asked = {} if threads is None else {"threads": count}
    priced = {}
    for name in costs:
        own = sizes if name == REFERENCE else asked | sizes
        said = "".join(f", {what}={number}" for what, number in own.items())
        priced[f"{name}{said}"] = cost_model(name, count, sizes)
    limited = {text: parse_limits(text) for text in limits} or None
    done = read_trials(csv) if csv is not None and csv.is_file() else []
    found: list[Trial] = []
    with (
        progress("extracting") as phase,
        _client(cluster) as client,
        updated(csv, Trial, lambda now: _joined(found, now)) as update,
    ):
        for trial in trials(models, laws, extractors, priced, limited, jobs, done, client):
            found.append(trial)
            update()
            phase(f"{trial.model}, {trial.rules}, {trial.extractor} done", 0.0)
    found = _joined(found, done)[: len(found)]
    if json:
        print_json([record(trial) for trial in found])
    else:
        print_table(title(costs, count, found), header(found), rows(found))
    if plot is not None:
        plot_trials(plot, found)


def _with_values(
    names: Sequence[str], given: Path | ModelProto | ChoiceGraph, values: Sequence[str]
) -> Model | ChoiceGraph:
    return given if isinstance(given, ChoiceGraph) else of_several(names, given, values)


def _check_meant(
    models: Iterable[Model | ChoiceGraph], options: Mapping[str, Sequence[object]]
) -> None:
    """Raise CallError for an option that says nothing of e-graphs where only these are given."""
    if all(isinstance(each, ChoiceGraph) for each in models):
        for option, given in options.items():
            if given:
                raise CallError(f"{option} is for ONNX models, and only e-graphs are given")


@contextmanager
def _client(address: str) -> Iterator[Client | None]:
    """The client of a Dask scheduler, for a while. Raises CallError where none answers there."""
    if not address:
        yield None
        return
    try:
        from distributed import Client as DaskClient
    except ImportError:
        raise CallError("--cluster needs Dask: pip install 'satura[distributed]'") from None
    try:
        client = DaskClient(address, timeout=WAIT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CallError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


def model(name: str) -> Path | ModelProto | ChoiceGraph:
    """A model, or the choice graph of an e-graph that stands as JSON in a file."""
    if Path(name).suffix == ".json":
        if not Path(name).is_file():
            raise CallError(f"there is no file {name}")
        try:
            return read_gym(Path(name).read_bytes()).computable()
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from None
    return file_or_light(name, "an ONNX file, an e-graph in a file of JSON (NAME.json)")


def title(costs: Sequence[str], threads: int, found: Sequence[Trial]) -> str:
    """What stands above a table: which threads and sizes the costs of models are for."""
    if all(trial.is_of_graph for trial in found):
        return TITLE
    counts = {name: 1 if name == REFERENCE else threads for name in costs}
    said = "".join(f"; {name} is for {counted(n, 'thread')}" for name, n in counts.items())
    return f"{OF_MODELS}{said}"


def record(trial: Trial) -> dict[str, object]:
    """A trial as plain values: JSON has no infinite gap."""
    return {**asdict(trial), "gap": trial.gap if isfinite(trial.gap) else None}


def header(found: Sequence[Trial]) -> tuple[str, ...]:
    """The header of a table of some trials, with the unit of costs where all have the same."""
    unit = "cost" if any(trial.is_of_graph for trial in found) else "us"
    return (*NAMES, unit, *NUMBERS)


def rows(found: Sequence[Trial]) -> list[list[str]]:
    """Trials as they are printed: costs in microseconds, those of choice graphs as they are."""
    unit = " us" if any(trial.is_of_graph for trial in found) else ""
    return [
        [
            *trial.key, str(trial.dispatches), str(trial.copies),
            *(
                f"{cost:.10g}" if trial.is_of_graph else f"{cost * 1e6:.2f}{unit}"
                for cost in (trial.cost, trial.bound)
            ),
            f"{trial.gap:.2%}", measured(trial.extractor_seconds),
        ]
        for trial in found
    ]  # fmt: skip


def _joined(found: Sequence[Trial], done: Sequence[Trial]) -> list[Trial]:
    """What was found, then what was done and not asked for, or not yet; with the best bounds."""
    return with_best_bounds([*found, *others(done, found)])
