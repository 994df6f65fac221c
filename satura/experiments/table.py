"""Trials, or rows of another table, as a CSV file, written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from csv import DictReader, DictWriter
from csv import Error as CsvError
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from satura.experiments.sweep import Trial
from satura.rewrite.errors import CallError
from satura.rewrite.system.files import output_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)

_KINDS: Mapping[str, Callable[[str], object]] = {
    "str": str, "int": int, "float": float, "bool": "True".__eq__,
}  # fmt: skip


def write_trials(path: str | Path, found: Sequence[Trial]) -> None:
    """Write trials as CSV, with all their fields."""
    write_rows(path, Trial, found)


def read_trials(path: str | Path) -> list[Trial]:
    """The trials of a CSV that `write_trials` wrote. Raises CallError for another file."""
    return read_rows(path, Trial)


def write_rows(path: str | Path, kind: type[Row], rows: Sequence[Row]) -> None:
    """Write records of one kind, whose fields are texts, numbers and bools, as CSV."""
    text = StringIO(newline="")
    writer = DictWriter(text, [field.name for field in fields(kind)])
    writer.writeheader()
    writer.writerows(map(asdict, rows))
    with output_file(Path(path)) as file:
        file.write(text.getvalue().encode())


def read_rows(path: str | Path, kind: type[Row]) -> list[Row]:
    """The records of a CSV that `write_rows` wrote. Raises CallError for another file."""
    found, columns = [], fields(kind)
    with Path(path).open(newline="") as file:
        try:
            for line in DictReader(file):
                values = {each.name: _KINDS[str(each.type)](line[each.name]) for each in columns}
                found.append(kind(**values))
        except (KeyError, TypeError, ValueError, CsvError):
            raise CallError(
                f"{path} is not a file of {kind.__name__.lower()}s: write to another one"
            ) from None
    return found
