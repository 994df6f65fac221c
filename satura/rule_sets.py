"""Rule sets by name, and which rules are satura's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeAlias

from satura import rules as rules_package
from satura.rewrite.errors import CallError
from satura.rewrite.language.dsl import Rule, RuleSet
from satura.rules import DEFAULT, EXACT, NONE

Rules: TypeAlias = RuleSet | str
"""A rule set, or the name of one: "none", "exact", "default"."""

OUR_RULES = Path(rules_package.__file__).resolve().parent
RULE_SETS: dict[str, RuleSet] = {"none": NONE, "exact": EXACT, "default": DEFAULT}


def rule_set(rules: Rules) -> RuleSet:
    """The rule set of a name; a rule set is itself. Raises CallError for an unknown name."""
    if isinstance(rules, RuleSet):
        return rules
    if rules not in RULE_SETS:
        raise CallError(f"there is no rule set {rules!r}; choose from {list(RULE_SETS)}")
    return RULE_SETS[rules]


def is_of_the_book(rule: Rule) -> bool:
    """Whether a rule is one of the book as it stands there."""
    return rule.name in DEFAULT and DEFAULT[rule.name] is rule


def is_ours(rule: Rule) -> bool:
    """Whether a rule is of satura's own book; others run in a process that can be stopped."""
    return _is_our_file(rule.file)


@cache
def _is_our_file(file: Path) -> bool:
    return file.resolve().parent == OUR_RULES
