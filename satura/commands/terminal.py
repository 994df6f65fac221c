"""What commands print: tables and JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from math import floor, isfinite, log10

from rich.console import Console
from rich.table import Table
from rich.text import Text

from satura.commands.failures import stdout
from satura.rewrite.system.threads import started

_UNFOLDED = 10_000  # columns
PHASES = {
    "load": "loading",
    "recall": "looking for an earlier result",
    "saturate": "applying rules",
    "extract": "choosing dispatches",
    "kernels": "compiling kernels",
}


def print_json(value: object) -> None:
    """Print `value` as JSON, keys in their own order."""
    print_line(json.dumps(value, indent=2, allow_nan=False))


def print_json_parts(head: Mapping[str, object], name: str, parts: Iterable[object]) -> None:
    """Print `head` and, as `name`, a list of `parts` as one JSON object, each part when it comes.

    The text is that of `print_json`.
    """
    opened = json.dumps({**head, name: []}, indent=2)
    _write(opened.removesuffix("]\n}"))
    between = ""
    for part in parts:
        text = json.dumps(part, indent=2, allow_nan=False).replace("\n", "\n    ")
        _write(f"{between}\n    {text}")
        between = ","
    _write("\n  ]\n}\n" if between else "]\n}\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    table = Table(title=Text(title), title_justify="left")
    for column, name in enumerate(header):
        numeric = column > 0 and all(row[column][:1] in "-0123456789" for row in rows)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = _Console(highlight=False)
    if not console.is_terminal:  # what goes to a file or a program is not folded
        console.width = _UNFOLDED
    with stdout():
        console.print(table)


def print_rows(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as a line when it comes, and all of them as a table.

    What is interrupted has told what it knows.
    """
    known = []
    for row in rows:
        known.append(row)
        shown = (f"{name} {value}" for name, value in zip(header[1:], row[1:], strict=True))
        print_line(f"{row[0]}: {', '.join(shown)}")
    print_table(title, header, known)


def print_line(text: str) -> None:
    """Print lines as they are, at once."""
    _write(f"{text}\n")


def _write(text: str) -> None:
    with stdout() as stream:
        stream.write(text)
        stream.flush()


class _Console(Console):
    """A console that leaves it to `stdout` what is to be done where nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which is being handled."""
        raise


def number(value: float) -> str:
    """A count or a measure with thousands separators."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def measured(value: float) -> str:
    """A measure with three digits that count, or with all of its whole part."""
    if not value or not isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - floor(log10(abs(value))))}f}"


def counted(count: int, what: str, many: str = "") -> str:
    """How many there are of what is counted, as in `1 thread` and `2 threads`."""
    return f"{count} {what if count == 1 else many or f'{what}s'}"


@contextmanager
def progress(what: str, is_long: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A line on stderr that names the phase in progress.

    Where stderr is not a terminal, what `is_long` prints a line for each phase; all else is silent,
    as where the system refuses the thread that moves the line.
    """
    console = Console(stderr=True, highlight=False, markup=False)
    told = {""} if is_long and not console.is_terminal else None
    is_live = console.is_terminal and started(lambda: None, "satura-line", daemon=True) is not None
    with console.status(what) if is_live else nullcontext() as status:

        def show(phase: str, fraction: float) -> None:
            share = f" ({fraction:.0%})" if fraction else ""
            if told is not None and phase not in told:
                told.add(phase)
                sys.stderr.write(f"{what}: {PHASES.get(phase, phase)}\n")
                sys.stderr.flush()
            if status is not None:
                status.update(f"{what}: {PHASES.get(phase, phase)}{share}")

        yield show
