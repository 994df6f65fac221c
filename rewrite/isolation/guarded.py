"""Saturation with rules that are not ours: whatever they do, the program still compiles.

Such rules run in a child process with limits on time and memory, one at a time and watched. One
that does not keep to the rules is dropped, and all is done again without it: one that takes too
long or too much memory, raises, ends the process, computes what cannot stand in an attribute,
changes its arguments, makes badly typed nodes, or drives the e-graph to its limits. This is no
sandbox: a rule may still read and write files, and one that is wrong but well typed goes unnoticed
(that is what `satura check` is for).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from satura.rewrite.egraph.report import DroppedRule
from satura.rewrite.egraph.saturate import Limits, Saturation, saturate
from satura.rewrite.errors import RuleDroppedWarning, RuleError, RuleWarning
from satura.rewrite.isolation.process import FORKS, Doing, KilledError, call
from satura.rewrite.isolation.watch import LimitError, Watch
from satura.rewrite.language.rule import Rule, RuleSet
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Constant

# A run stops by itself at its limit of seconds, if its rules let it.
_GRACE_SECONDS = 2.0
_READING_SECONDS = 10.0
_LONGEST_REASON = 1000


@dataclass(frozen=True)
class _Failure:
    """Why a run gave nothing: the rule at work, the suspect, and what happened."""

    working: str
    suspect: str
    what: str
    by_limit: bool = False


def saturate_guarded(
    program: Program,
    rules: RuleSet,
    limits: Limits,
    is_ours: Callable[[Rule], bool],
    strict: bool = False,
) -> Saturation:
    """What `saturate` gives for those of `rules` that behave.

    Each rule that is dropped is named by a RuleDroppedWarning and in the report, and costs at most
    `limits.seconds` and five more. `strict` raises RuleError instead. Where every rule is ours,
    this is `saturate`. Where processes cannot be forked, nothing stops a rule that never returns or
    ends the process, nor undoes what it changes.
    """
    dropped: list[DroppedRule] = []
    accused: list[tuple[Rule, _Failure]] = []  # of having driven the e-graph to a limit
    judges = True
    while True:
        left = rules.without(*(rule.name for rule, _ in accused))
        foreign = [rule for rule in left if not is_ours(rule)]
        outcome = _attempt(program, left, limits, foreign, judges)
        if isinstance(outcome, _Failure):
            guilty = [(rule, outcome) for rule in _guilty(outcome, foreign)]
            if outcome.by_limit:
                accused += guilty
                continue
        elif accused and outcome.report.stopped in ("nodes", "seconds"):
            # It meets a limit without them, too: they are innocent.
            accused, judges = [], False
            continue
        else:
            guilty, accused = accused, []
        for rule, failure in guilty:
            dropped.append(_dropped(rule, failure, strict))
        rules = rules.without(*(rule.name for rule, _ in guilty))
        if isinstance(outcome, Saturation):
            outcome.report.dropped += dropped
            _warn_of_growth(outcome, limits)
            return outcome


def _dropped(rule: Rule, failure: _Failure, strict: bool) -> DroppedRule:
    """The entry for the report. Warns of it, or raises RuleError where one is `strict`."""
    reason = _without_name(failure.what, rule)
    advice = f"Test it alone: satura check {rule.file}"
    if strict:
        raise RuleError(f"rule '{rule.name}' ({rule.place}) failed: {reason}. {advice}")
    entry = DroppedRule(rule.name, rule.place, reason)
    message = f"{entry}. The program is compiled without it. {advice}"
    warnings.warn(message, RuleDroppedWarning, stacklevel=3)
    return entry


def _warn_of_growth(saturation: Saturation, limits: Limits) -> None:
    """Warn of rules that may never end; whoever allows few rounds knows that they cut short."""
    if saturation.report.growing and limits.rounds >= Limits().rounds:
        warnings.warn(
            f"rules {', '.join(saturation.report.growing)} still grew the e-graph when it met its"
            f" limit of {saturation.report.stopped}: do they ever end? What was found by then is"
            " used",
            RuleWarning,
            stacklevel=3,
        )


def _attempt(
    program: Program, rules: RuleSet, limits: Limits, foreign: list[Rule], judges: bool
) -> Saturation | _Failure:
    """Saturate, in a child where rules are foreign; what went wrong where it gave nothing."""
    if not foreign:
        return saturate(program, rules, limits)

    constants = list(_constants(program))
    largest = max((constant.array.nbytes for constant in constants), default=0)

    def work(doing: Doing) -> Saturation | _Failure:
        watch = Watch(foreign, doing, judges=judges, constant_bytes=largest)
        try:
            saturation = saturate(program, rules, limits, watch)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not FORKS:
                raise
            by_limit = isinstance(error, LimitError)
            return _Failure(watch.working, watch.suspect, _text(error), by_limit)
        doing(f"\n{watch.suspect}", _READING_SECONDS)
        return saturation

    try:
        outcome = call(work, limits.seconds + _GRACE_SECONDS, half_of_memory(), constants)
        if isinstance(outcome, Saturation | _Failure):
            return outcome
        return _Failure("", "", "it changed satura itself: the run gave no saturation")
    except KilledError as killed:
        working, _, suspect = killed.doing.partition("\n")
        limit = f" (its limit is {limits.seconds:g} s)" if killed.reason == "seconds" else ""
        return _Failure(working, suspect, f"it {killed.what}{limit}")


def _guilty(failure: _Failure, foreign: list[Rule]) -> list[Rule]:
    """The rule that is to blame; all of them where that cannot be told."""
    for name in (failure.working, failure.suspect):
        if found := [rule for rule in foreign if rule.name == name]:
            return found
    return foreign


def _without_name(text: str, rule: Rule) -> str:
    """`text` without the name and place of the rule, where it begins with them."""
    for direction in rule.directions:
        text = text.removeprefix(f"rule '{direction.label}' ({direction.place})").lstrip(": ")
    return f"it {text}" if text.startswith("is unsound") else text


def _text(error: BaseException) -> str:
    """One line on an exception, of some length at most, whatever its own methods do."""
    try:
        message = " ".join(str(error).split())[:_LONGEST_REASON]
    except Exception:
        message = "without a message"
    if isinstance(error, RuleError):
        return message
    return f"it raised {type(error).__name__}: {message}"


def _constants(program: Program) -> Iterable[Constant]:
    """The values that the child has already, and need not send back."""
    for node in program.nodes:
        for attribute in node.attributes:
            if isinstance(attribute, Constant):
                yield attribute


def half_of_memory() -> int | None:
    """What a child may take, in bytes: half of the machine's memory."""
    if not FORKS:
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
