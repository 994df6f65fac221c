"""Trials, or rows of another table, as a CSV file, written and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from csv import DictWriter, reader
from csv import Error as CsvError
from dataclasses import asdict, fields
from io import StringIO
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from satura.experiments.sweep import OPEN, Trial
from satura.rewrite.errors import CallError, brief, file_errors
from satura.rewrite.program.arguments import as_path
from satura.rewrite.system.files import locked, open_regular, output_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)


class _HasKey(Protocol):
    """A record that says what it is about."""

    @property
    def key(self) -> tuple[str, ...]: ...


Keyed = TypeVar("Keyed", bound=_HasKey)

_KINDS: Mapping[str, Callable[[str], object]] = {
    "str": str, "int": int, "float": float, "bool": {"True": True, "False": False}.__getitem__,
}  # fmt: skip
_ANY_TEXT = "surrogateescape"  # names of files may be of any bytes


def write_trials(path: str | Path, found: Sequence[Trial]) -> None:
    """Write trials as CSV, with all their fields."""
    write_rows(path, Trial, found)


def read_trials(path: str | Path) -> list[Trial]:
    """The trials of a CSV that `write_trials` wrote. Raises CallError for another file."""
    return read_rows(path, Trial)


def write_rows(path: str | Path, kind: type[Row], rows: Sequence[Row]) -> None:
    """Write records of one kind, whose fields are texts, numbers and bools, as CSV."""
    rows = list(rows)
    for row in rows:
        if not isinstance(row, kind):
            raise CallError(f"{kind.__name__.lower()}s are to be written, not {brief(row)}")
    text = StringIO(newline="")
    writer = DictWriter(text, [field.name for field in fields(kind)])
    writer.writeheader()
    writer.writerows(map(asdict, rows))
    with file_errors("write", path), output_file(as_path(path)) as file:
        file.write(text.getvalue().encode(errors=_ANY_TEXT))


def update_rows(
    path: str | Path, kind: type[Row], change: Callable[[Sequence[Row]], Sequence[Row]]
) -> None:
    """Replace the records of a CSV, none where there is no file, by what `change` makes of them.

    Other processes that do so, too, wait: none of their records is lost.
    """
    file = as_path(path)
    with locked(Path(os.path.realpath(file)).parent):
        write_rows(path, kind, change(read_rows(path, kind) if file.is_file() else []))


def others(rows: Sequence[Keyed], found: Sequence[Keyed]) -> list[Keyed]:
    """Those of some rows that nothing found is about: not asked for, or not done yet."""
    keys = {each.key for each in found}
    return [each for each in rows if each.key not in keys]


def read_rows(path: str | Path, kind: type[Row]) -> list[Row]:
    """The records of a CSV that `write_rows` wrote, none of an empty file.

    Raises CallError for a file with another header or other rows, however few, for a number that is
    not finite, and FileError where there is none.
    """
    columns = fields(kind)
    kinds = [_KINDS[str(each.type)] for each in columns]
    with file_errors("open", path), open_regular(as_path(path)) as file:
        content = file.read()
    if not content:
        return []
    rows = reader(StringIO(content.decode(errors=_ANY_TEXT), newline=""), strict=True)
    found = []
    try:
        if next(rows) == [each.name for each in columns]:
            for row in rows:
                values = [make(value) for make, value in zip(kinds, row, strict=True)]
                for column, value in zip(columns, values, strict=True):
                    if not _is_possible(value, column.metadata):
                        raise CallError(
                            f"{path}, line {rows.line_num}: {column.name} is {value}, which is not"
                            " a finite number: remove the line"
                        )
                found.append(kind(*values))
            return found
    except (KeyError, ValueError, CsvError):
        pass  # as for another header
    raise CallError(f"{path} is not a file of {kind.__name__.lower()}s: write to another one")


def _is_possible(value: object, about: Mapping[str, object]) -> bool:
    """Whether a value can stand in a column: no number but one that is `OPEN` is infinite."""
    return not isinstance(value, float) or isfinite(value) or (value == inf and about == OPEN)
