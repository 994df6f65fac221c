"""Rule sets by name, and which rules are satura's own.

The book is imported when a rule of it is needed: a remembered result needs its names only.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from satura.rewrite.errors import CallError, brief
from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from satura.rewrite.language.dsl import Rule, RuleSet

Rules: TypeAlias = "RuleSet | str"
"""A rule set, or the name of one: "none", "exact", "default"."""

NAMES = ("none", "exact", "default")


def rule_set(rules: Rules) -> RuleSet:
    """The rule set of a name; a rule set is itself. Raises CallError for anything else."""
    check(rules)
    if not isinstance(rules, str):
        return rules
    import_whole("satura.rules")
    from satura.rules import DEFAULT, EXACT, NONE

    return {"none": NONE, "exact": EXACT, "default": DEFAULT}[rules]


def exact(rules: Rules) -> Rules:
    """Those of the rules that hold bit for bit. Raises CallError for what `rule_set` refuses."""
    check(rules)
    if isinstance(rules, str):
        return "exact" if rules == "default" else rules
    return rules.exact


def check(rules: Rules) -> None:
    """Raise CallError for what is neither a rule set nor the name of one."""
    if isinstance(rules, str):
        is_known = rules in NAMES
    else:
        from satura.rewrite.language.dsl import RuleSet

        is_known = isinstance(rules, RuleSet)
    if not is_known:
        raise CallError(
            f"there is no rule set {brief(rules)}; choose from {list(NAMES)}, or make a RuleSet"
        )


def is_of_the_book(rule: Rule) -> bool:
    """Whether a rule is one of the book as it stands there."""
    book = rule_set("default")
    return rule.name in book and book[rule.name] is rule


def rules_identity(rules: Rules) -> str | None:
    """What tells rules from others of the same code; None where they are not satura's own.

    Raises CallError for what is neither a rule set nor the name of one.
    """
    check(rules)
    if isinstance(rules, str):
        return f"set {rules}"
    names = " ".join(rule.name for rule in rules)
    return f"rules {names}" if all(map(is_of_the_book, rules)) else None


def names_in_the_book(rules: Rules) -> list[str]:
    """The names of those of the rules that are of the book."""
    return [rule.name for rule in rule_set(rules) if is_of_the_book(rule)]


def of_the_book(names: Iterable[str]) -> RuleSet:
    """The rules of these names, as far as the book has them."""
    import_whole("satura.rules")
    from satura.rewrite.language.dsl import RuleSet

    book = rule_set("default")
    return RuleSet(*(book[name] for name in names if name in book))


def is_ours(rule: Rule) -> bool:
    """Whether a rule is of satura's own book; others run in a process that can be stopped."""
    return _is_our_file(rule.file)


@cache
def _is_our_file(file: Path) -> bool:
    return file.resolve().parent == (Path(__file__).resolve().parent.parent / "rules").resolve()
