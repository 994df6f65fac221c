"""The rules that a file declares while it is run, wherever it keeps them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FrameType

from satura.rewrite.errors import RuleError
from satura.rewrite.language.rule import Family, Rule

_IMPORT = "importlib._bootstrap"


@dataclass(frozen=True)
class Declared:
    """Rules by name, in order, that `code` declares; not those of modules that it imports."""

    code: CodeType
    rules: dict[str, Rule | Family] = field(default_factory=dict)

    def add(self, rule: Rule | Family) -> None:
        """Raises RuleError for a second rule of one name: either could be meant."""
        other = self.rules.setdefault(rule.name, rule)
        if other is rule:
            return
        if other.place == rule.place:
            raise RuleError(
                f"rule '{rule.name}' ({rule.place}) is declared there more than once, by a loop or"
                " a function that is called again: give each rule a name of its own, by"
                " `function.__name__ = …` before `rule(function)`"
            )
        raise RuleError(
            f"rule '{rule.name}' ({rule.place}): another rule is called so, at {other.place};"
            " rename one of them"
        )

    def runs(self) -> bool:
        """Whether `code` is what is being run, and not a module that it imports."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") != _IMPORT:
            if frame.f_code is self.code:
                return True
            frame = frame.f_back
        return False


_current: ContextVar[Declared | None] = ContextVar("declared", default=None)


@contextmanager
def declared_by(code: CodeType) -> Iterator[Declared]:
    """What `code` declares, which is to be run inside."""
    declared = Declared(code)
    before = _current.set(declared)
    try:
        yield declared
    finally:
        _current.reset(before)


def note(rule: Rule | Family) -> None:
    """`rule` has been declared. Raises RuleError for a name that its file gave to another."""
    declared = _current.get()
    if declared is not None and declared.runs():
        declared.add(rule)
