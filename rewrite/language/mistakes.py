"""Mistakes in rules: the error that `rule` completes, and words for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MistakeError(Exception):
    """What is wrong in a rule; `rule` adds the rule's name, file and line."""


def suggestion(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no choice is close."""
    close = difflib.get_close_matches(name, list(choices), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def with_article(sort: type) -> str:
    """`a Perm`, `an Axis`."""
    return f"{'an' if sort.__name__[0] in 'AEIOaeio' else 'a'} {sort.__name__}"
