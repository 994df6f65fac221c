"""Trials as a CSV file, written and read."""

from __future__ import annotations

from collections.abc import Sequence
from csv import DictReader, DictWriter
from csv import Error as CsvError
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path

from satura.experiments.sweep import Trial
from satura.rewrite.errors import CallError
from satura.rewrite.system.files import output_file


def write_trials(path: str | Path, found: Sequence[Trial]) -> None:
    """Write trials as CSV, with all their fields."""
    text = StringIO(newline="")
    writer = DictWriter(text, [field.name for field in fields(Trial)])
    writer.writeheader()
    writer.writerows(map(asdict, found))
    with output_file(Path(path)) as file:
        file.write(text.getvalue().encode())


def read_trials(path: str | Path) -> list[Trial]:
    """The trials of a CSV that `write_trials` wrote. Raises CallError for another file."""
    kinds = {"str": str, "int": int, "float": float}
    found, columns = [], fields(Trial)
    with Path(path).open(newline="") as file:
        try:
            for line in DictReader(file):
                values = {each.name: kinds[str(each.type)](line[each.name]) for each in columns}
                found.append(Trial(**values))
        except (KeyError, TypeError, ValueError, CsvError):
            raise CallError(f"{path} is not a file of trials: write to another one") from None
    return found
