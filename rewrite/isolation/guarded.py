"""Saturation with rules of users: whatever they do, the program still compiles.

Such rules run in a child process, one at a time and watched. A rule that fails is dropped, and the
saturation starts again without it. A rule fails when it hangs, raises, ends the process, takes too
much memory, computes what cannot stand in an attribute, changes its arguments, makes badly typed
nodes, or floods the e-graph. Only what it does itself counts: a saturation that meets a limit
because it is large drops nothing. This is not a sandbox: a rule may still read and write files, and
one that is wrong but well typed goes unnoticed (`satura check` finds it).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.report import DroppedRule
from satura.rewrite.egraph.saturate import Extract, Saturation, saturate
from satura.rewrite.errors import RuleDroppedWarning, RuleError, RuleWarning, warn_caller
from satura.rewrite.isolation.process import FORKS, Doing, KilledError, call
from satura.rewrite.isolation.watch import BOOK, Watch
from satura.rewrite.language.rule import Rule, RuleSet
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant

PATIENCE = 30.0  # for what takes parts of a second: a rule matches, computes, or fires

_SOME_NODES = 1000  # which each rule may make, however small the e-graph is to be
_LARGEST_CONSTANT = 1 << 26  # bytes, where the program itself has no larger ones
_LONGEST_REASON = 1000


@dataclass(frozen=True)
class _Failure:
    """Why a run failed: the rule to blame, empty where that is unknown, and what it did."""

    rule: str
    what: str


def saturate_guarded(
    program: Program,
    rules: RuleSet,
    limits: Limits,
    is_ours: Callable[[Rule], bool],
    strict: bool = False,
    patience: float = PATIENCE,
    extract: Extract | None = None,
) -> Saturation:
    """What `saturate` gives for those of `rules` that behave.

    Each rule that is dropped is named by a RuleDroppedWarning and in the report. `strict` raises
    RuleError instead. A single step of a rule that takes `patience` seconds hangs. Where every rule
    is ours, this is `saturate`. Where processes cannot be forked, nothing stops a rule that never
    returns or ends the process, nor undoes what it changes.
    """
    dropped: list[DroppedRule] = []
    while foreign := [rule for rule in rules if not is_ours(rule)]:
        outcome = _attempt(program, rules, limits, foreign, patience, extract)
        if isinstance(outcome, Saturation):
            break
        guilty = [rule for rule in foreign if rule.name == outcome.rule] or foreign
        for rule in guilty:
            dropped.append(_drop(rule, outcome.what, strict))
        rules = rules.without(*(rule.name for rule in guilty))
    else:
        outcome = saturate(program, rules, limits, extract=extract)
    outcome.report.dropped += dropped
    _warn_of_growth(outcome)
    return outcome


def _attempt(
    program: Program,
    rules: RuleSet,
    limits: Limits,
    foreign: list[Rule],
    patience: float,
    extract: Extract | None,
) -> Saturation | _Failure:
    """Saturate in a child process. Returns what went wrong where that fails."""
    attributes = [attribute for node in program.nodes for attribute in node.attributes]
    constants = [attribute for attribute in attributes if isinstance(attribute, Constant)]
    largest = max([_LARGEST_CONSTANT, *(4 * constant.nbytes for constant in constants)])

    def work(doing: Doing) -> Saturation | _Failure:
        watch = Watch(foreign, doing, patience, largest)
        try:
            saturation = saturate(program, rules, limits, watch, extract)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not FORKS:
                raise
            return _Failure(watch.rule_to_blame, _error_text(error))
        if saturation.report.is_cut_short:
            saturation.report.growing = watch.growing
        matches, made = watch.matches[watch.suspect], watch.made[watch.suspect]
        most = max(_SOME_NODES, limits.nodes // 2)
        if saturation.report.stopped != "nodes" or made <= most:
            return saturation
        what = f"{matches:,} matches make {made:,} e-nodes; the limit of one rule is {most:,}"
        return _Failure(watch.suspect, f"it floods the e-graph: {what}")

    try:
        return call(work, BOOK * patience, shared=constants)
    except KilledError as killed:
        return _Failure(killed.doing, f"it {killed.what}")


def _drop(rule: Rule, what: str, strict: bool) -> DroppedRule:
    """Warn that a rule is dropped, or raise RuleError if `strict`. Returns the report's entry."""
    reason = re.sub(rf"^rule '{re.escape(rule.name)}\W.*?:\d+\): ", "", what)
    advice = f"Test it alone: satura check {rule.file}"
    if strict:
        raise RuleError(f"rule '{rule.name}' ({rule.place}) failed: {reason}. {advice}")
    entry = DroppedRule(rule.name, rule.place, reason)
    message = f"{entry}. The program is compiled without it. {advice}"
    warn_caller(message, RuleDroppedWarning)
    return entry


def _warn_of_growth(saturation: Saturation) -> None:
    """Warn of rules that may never end."""
    if saturation.report.growing:
        warn_caller(
            f"rules {', '.join(saturation.report.growing)} still grew the e-graph when it met its"
            f" limit of {saturation.report.stopped}: do they ever end? What was found by then is"
            " used",
            RuleWarning,
        )


def _error_text(error: BaseException) -> str:
    """An exception in one line of limited length, whatever its own methods do."""
    try:
        message = " ".join(str(error).split())[:_LONGEST_REASON]
    except Exception:
        message = "without a message"
    if isinstance(error, RuleError):
        return message
    return f"it raised {type(error).__name__}: {message}"
