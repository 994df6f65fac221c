"""Rule sets by name, and which rules are satura's own.

The book is imported when a rule of it is needed: a remembered result needs its names only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from satura.rewrite.language.dsl import Rule, RuleSet

Rules: TypeAlias = "RuleSet | str"
"""A rule set, or the name of one: "none", "exact", "default"."""

NAMES = ("none", "exact", "default")


def rule_set(rules: Rules) -> RuleSet:
    """The rule set of a name; a rule set is itself. Raises CallError for an unknown name."""
    if not isinstance(rules, str):
        return rules
    from satura.rules import DEFAULT, EXACT, NONE

    return {"none": NONE, "exact": EXACT, "default": DEFAULT}[checked(rules)]


def exact(rules: Rules) -> Rules:
    """Those of the rules that hold bit for bit."""
    if isinstance(rules, str):
        return "exact" if checked(rules) == "default" else rules
    return rules.exact


def checked(name: str) -> str:
    """The name of a rule set. Raises CallError where there is no such set."""
    if name not in NAMES:
        raise CallError(f"there is no rule set {name!r}; choose from {list(NAMES)}")
    return name


def is_of_the_book(rule: Rule) -> bool:
    """Whether a rule is one of the book as it stands there."""
    from satura.rules import DEFAULT

    return rule.name in DEFAULT and DEFAULT[rule.name] is rule


def is_ours(rule: Rule) -> bool:
    """Whether a rule is of satura's own book; others run in a process that can be stopped."""
    return _is_our_file(rule.file)


@cache
def _is_our_file(file: Path) -> bool:
    from satura import rules

    return file.resolve().parent == Path(rules.__file__).resolve().parent
