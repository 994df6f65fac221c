"""Mistakes in rules: the error that `rule` completes, and words for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_SUGGESTED = 3


class MistakeError(Exception):
    """What is wrong in a rule; `rule` adds the rule's name, file and line."""


class NoValueError(MistakeError):
    """What is wrong where a rule asks an attribute for its value."""


def suggestion(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or 'x' or 'y' where both are closest; nothing where none is close."""
    close = difflib.get_close_matches(name, sorted(set(choices)), _MOST_SUGGESTED)
    alike = [_likeness(name, each) for each in close]
    closest = [each for each, like in zip(close, alike, strict=True) if like == alike[0]]
    shown = " or ".join(f"'{each}'" for each in sorted(closest))
    return f"; did you mean {shown}?" if closest else ""


def _likeness(name: str, choice: str) -> float:
    return difflib.SequenceMatcher(None, choice, name).ratio()


def with_article(sort: type) -> str:
    """`a Perm`, `an Axis`."""
    return f"{'an' if sort.__name__[0] in 'AEIOaeio' else 'a'} {sort.__name__}"
