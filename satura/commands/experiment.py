"""`satura experiment`: extractors compared on models."""

from __future__ import annotations

from collections.abc import Sequence
from csv import DictWriter
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path

from satura.commands.models import file_or_light
from satura.commands.terminal import print_json, print_table, progress
from satura.experiments import Trial, trials
from satura.rewrite.system.files import output_file

HEADER = ("model", "rules", "extractor", "dispatches", "copies", "us", "bound", "gap", "seconds")


def experiment(
    names: Sequence[str],
    rules: Sequence[str],
    extractors: Sequence[str],
    csv: Path | None,
    json: bool,
) -> None:
    """Run all trials; print them, and write them to `csv`."""
    models = {Path(name).stem: file_or_light(name) for name in names}
    found = []
    with progress("extracting") as phase:
        for trial in trials(models, rules, extractors):
            found.append(trial)
            phase(f"{trial.model}, {trial.rules}, {trial.extractor} done", 0.0)
    if csv is not None:
        write(csv, found)
    if json:
        print_json([asdict(trial) for trial in found])
    else:
        print_table("predicted cost of what extractors choose", HEADER, list(map(row, found)))


def row(trial: Trial) -> list[str]:
    """A trial as it is printed, costs in microseconds."""
    return [
        trial.model, trial.rules, trial.extractor, str(trial.dispatches), str(trial.copies),
        f"{trial.cost * 1e6:.2f}", f"{trial.bound * 1e6:.2f}", f"{trial.gap:.2%}",
        f"{trial.extractor_seconds:.2f}",
    ]  # fmt: skip


def write(path: Path, found: Sequence[Trial]) -> None:
    """Write trials as CSV, with all their fields."""
    text = StringIO(newline="")
    writer = DictWriter(text, [field.name for field in fields(Trial)])
    writer.writeheader()
    writer.writerows(map(asdict, found))
    with output_file(path) as file:
        file.write(text.getvalue().encode())
