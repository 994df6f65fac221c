"""Trials, or rows of another table, as a CSV file, written and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import DictWriter, reader
from csv import Error as CsvError
from dataclasses import Field, asdict, fields
from io import StringIO
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Protocol, TypeVar

from satura.experiments.sweep import OPEN, Trial
from satura.rewrite.errors import CallError, brief, file_errors
from satura.rewrite.program.arguments import as_path
from satura.rewrite.system.files import locked, open_regular, output_file


class _Record(Protocol):
    """A dataclass of texts, numbers from 0 on, and bools, that says what it is about."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def key(self) -> tuple[str, ...]: ...

    @property
    def content(self) -> str: ...

    @property
    def outcome(self) -> tuple[float, ...]:
        """The results that repeating it with the same content must give again."""

    @property
    def contradiction(self) -> str:
        """Which of its numbers contradict each other; empty where none do."""


Row = TypeVar("Row", bound=_Record)

_KINDS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "str": (str, "a text"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": ({"True": True, "False": False}.__getitem__, "True or False"),
}
_SHARE = 0.1  # of the time, for writing
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


@contextmanager
def updated(
    path: str | Path | None, kind: type[Row], change: Callable[[Sequence[Row]], Sequence[Row]]
) -> Iterator[Callable[[], None]]:
    """A function that does `update_rows`, unless that would take more than a `_SHARE` of the time.

    So many rows, of which the file is written anew after each, take no time that grows with their
    square. What was left out is made up for at the end of the context, whatever ends it. Without a
    path the function does nothing.
    """
    due, is_behind = 0.0, False

    def update() -> None:
        nonlocal due, is_behind
        begun = monotonic()
        is_behind = path is not None
        if path is not None and begun >= due:
            update_rows(path, kind, change)
            ended, is_behind = monotonic(), False
            due = ended + (ended - begun) / _SHARE

    try:
        yield update
    finally:
        if path is not None and is_behind:
            update_rows(path, kind, change)


def others(rows: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """The rows without a counterpart among those found: not asked for, or not done yet."""
    keys = {each.key for each in found}
    return [each for each in rows if each.key not in keys]


def read_rows(path: str | Path, kind: type[Row]) -> list[Row]:
    """The records of a CSV that `write_rows` wrote, none of an empty file.

    Blank lines, and the mark that Excel puts before the header, say nothing.

    Raises CallError for a file with another header, with the number of a line that is damaged, has
    impossible numbers or contradicts an earlier one, and FileError where there is no file.
    """
    with file_errors("open", path), open_regular(as_path(path)) as file:
        text = file.read().decode("utf-8-sig", errors=_ANY_TEXT)
    if not text:
        return []
    lines = _lines(path, text)
    if next(lines)[1] != [each.name for each in fields(kind)]:
        raise CallError(
            f"{path} is not a file of {kind.__name__.lower()}s, which begins with their header:"
            " name another one"
        )
    found: dict[tuple[object, ...], tuple[int, Row]] = {}
    rows = []
    for number, values in lines:
        try:
            row = _row(kind, values)
            first, same = found.setdefault((row.key, row.content), (number, row))
            if same.outcome != row.outcome:
                raise _WrongError(f"it says something else of what line {first} is about")
        except _WrongError as error:
            raise _wrong_line(path, number, str(error)) from None
        rows.append(row)
    return rows


class _WrongError(ValueError):
    """Says what is wrong with a line."""


def _wrong_line(path: str | Path, number: int, wrong: str) -> CallError:
    return CallError(f"{path}, line {number}: {wrong}; remove the line")


def _lines(path: str | Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The values of each line that is not blank, but for the first, with the line's number."""
    values = reader(StringIO(text, newline=""), strict=True)
    number = 1
    try:
        for line in values:
            if number == 1 or any(map(str.strip, line)):
                yield number, line
            number = values.line_num + 1
    except CsvError as error:
        if number == 1:
            yield 1, []  # as for another header
        raise _wrong_line(path, number, f"it cannot be read as CSV ({error})") from None


def _row(kind: type[Row], values: Sequence[str]) -> Row:
    """The record that some values are. Raises _WrongError."""
    columns = fields(kind)
    if len(values) != len(columns):
        raise _WrongError(f"it has {len(values)} values, not {len(columns)}")
    row = kind(*map(_value, columns, values))
    if row.contradiction:
        raise _WrongError(row.contradiction)
    return row


def _value(column: Field[object], text: str) -> object:
    """The value that stands in a column. Raises _WrongError."""
    make, what = _KINDS[str(column.type)]
    try:
        value = make(text)
    except (KeyError, ValueError):
        raise _WrongError(f"{column.name} is {brief(text)}, not {what}") from None
    if isinstance(value, float) and not (isfinite(value) or _may_be(value, column)):
        raise _WrongError(f"{column.name} is {value}, which is not a finite number")
    if isinstance(value, int | float) and value < 0:
        raise _WrongError(f"{column.name} is {value}, which is below 0")
    return value


def _may_be(value: float, column: Field[object]) -> bool:
    """Whether the column is `OPEN`, and the value above all numbers."""
    return value == inf and column.metadata == OPEN
