"""`--with FILE.py`: a named rule set and the rules of files."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from satura.pipeline.rule_file import load_rules
from satura.pipeline.rule_sets import rule_set
from satura.rewrite.errors import RuleError
from satura.rewrite.isolation.process import Doing, KilledError, call
from satura.rewrite.language.dsl import RuleSet

LOADING_SECONDS = 20.0


def with_files(rules: str, files: Sequence[Path]) -> RuleSet:
    """The rules of the set `rules` and of `files`.

    Raises RuleError for a file that cannot be loaded. Each is loaded in a process that can be
    stopped before it is loaded here: a file may hang, or end the process that runs it.
    """
    chosen = rule_set(rules)
    for file in dict.fromkeys(file.resolve() for file in files):
        try:
            call(_trial(file), LOADING_SECONDS)
        except KilledError as killed:
            raise RuleError(f"{file}: running this file of rules {killed.what}") from None
        with _stdout_to_stderr():  # stdout is for the command's result
            chosen += load_rules(file)
    return chosen


def named_with(rules: str, files: Sequence[Path]) -> str:
    """What tells those rules from others in tables: `default, mine.py`."""
    return ", ".join((rules, *(file.name for file in files)))


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """A block in which stdout and its descriptor lead to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _trial(file: Path) -> Callable[[Doing], None]:
    """A function that loads the file. It raises RuleError where a thread or a process remains."""

    def load(doing: Doing) -> None:
        load_rules(file)
        if any(not each.daemon for each in threading.enumerate()[1:]):
            raise RuleError(f"{file}: this file of rules starts a thread that does not end")
        if _has_children():
            raise RuleError(f"{file}: this file of rules starts a process that does not end")
        if sys.stdout.closed or sys.stderr.closed:
            raise RuleError(f"{file}: this file of rules closes stdout or stderr")

    return load


def _has_children() -> bool:
    """Whether this process, the child that tries a file, has children of its own."""
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False
