"""`--with FILE.py`: a named rule set and the rules of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from satura.pipeline import rule_set
from satura.rewrite.dsl import RuleSet
from satura.rewrite.errors import RuleError
from satura.rewrite.untrusted.killable import Doing, KilledError, call
from satura.rulefile import load_rules

LOADING_SECONDS = 20.0


def with_files(rules: str, files: Sequence[Path]) -> RuleSet:
    """The rules of the set `rules` and of `files`.

    Raises RuleError for a file that cannot be loaded. Each is loaded in a process that can be
    stopped before it is loaded here: a file may hang, or end the process that runs it.
    """
    chosen = rule_set(rules)
    for file in files:
        try:
            call(_loading(file), LOADING_SECONDS)
        except KilledError as killed:
            raise RuleError(f"{file}: running this file of rules {killed.what}") from None
        chosen += load_rules(file)
    return chosen


def _loading(file: Path) -> Callable[[Doing], None]:
    def load(doing: Doing) -> None:
        load_rules(file)

    return load
