"""The property test of rules: does a law hold, and does it ever fire?

`check(rule)` draws instances of each left side (`instances.py`), computes the right side with
exactly the rule's own attribute functions, and compares both sides under the NumPy reference: bit
for bit for exact laws, else within a bound. Then many instances go into one e-graph, that rule
alone runs, and every e-node must equal the value of its class. `assert_sound(rule)` raises for a
rule that is refuted, or vacuous: it fires too rarely, or a condition of it is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from typing import cast

import numpy as np

from satura.rewrite.check.answer_steps import with_answers
from satura.rewrite.check.both_sides import Failure, examine, right_side_failure
from satura.rewrite.check.common_steps import with_common_steps
from satura.rewrite.check.compare import node_values
from satura.rewrite.check.counterexample import counterexample
from satura.rewrite.check.coverage import Coverage
from satura.rewrite.check.disagreement import disagreement
from satura.rewrite.check.every_choice import of_every_choice
from satura.rewrite.check.every_scalar import of_every_scalar
from satura.rewrite.check.every_value import of_every_value, with_numbers_at_ends
from satura.rewrite.check.exchanged_extents import with_exchanged_extents
from satura.rewrite.check.extremes import (
    SQUARE_DRAWS,
    of_choices,
    of_equal_extents,
    of_high_rank,
    of_long_sums,
    of_long_windows,
    of_narrow_dtypes,
    of_reversed_shapes,
    of_small_extents,
    with_extreme_numbers,
    with_giant_extents,
    with_opposite_zeros,
    with_other_zeros,
)
from satura.rewrite.check.from_operands import failure_of_left
from satura.rewrite.check.in_egraph import examine_saturated
from satura.rewrite.check.index_constants import with_index_constants
from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.check.large_extents import of_large_extents, of_many_elements
from satura.rewrite.check.lifted import of_more_axes
from satura.rewrite.check.named_paddings import of_named_paddings
from satura.rewrite.check.named_values import float_numbers
from satura.rewrite.check.neighbours import neighbours
from satura.rewrite.check.open_borders import of_open_borders
from satura.rewrite.check.open_extents import with_open_extents
from satura.rewrite.check.plain_constants import of_plain_constants
from satura.rewrite.check.refute import first_failure
from satura.rewrite.check.report import DirectionReport, RuleReport, Verdict
from satura.rewrite.check.shrink import smallest
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.check.unstable import unstable_call
from satura.rewrite.errors import CallError, ExpressionError, RuleError, advice, brief
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.ops.draw import Draw
from satura.rewrite.prove import STEPS, Found, prove
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import COMPUTED, TensorType

FIRINGS = 50  # fewer, and the rule is vacuous
WANTED = 150  # distinct firings to look for per direction
ATTEMPTS = 6000  # draws per direction, at most
IN_EGRAPH = 40  # firings per direction in one e-graph
DEEP = 10  # times as much of all this in a deep check
VALUES = 10  # arrays to show the difference that a proof found with
PROOF_STEPS = 4000  # for a proof of each rule, unless deep; most take a tenth of that


class UnsoundError(RuleError, AssertionError):
    """A rule that is refuted or vacuous; the message shows why."""


def assert_sound(rule: Rule, seed: int = 0, deep: bool = False) -> None:
    """Raise UnsoundError (an AssertionError) unless `rule` passes its property test.

    Where z3 is installed, a proof is tried, too, and may refute what no instance did.
    """
    report = check(rule, seed, deep=deep, proof_steps=STEPS if deep else PROOF_STEPS)
    if not report.is_sound:
        raise UnsoundError(str(report))


def check(
    rule: Rule,
    seed: int = 0,
    attempts: int = ATTEMPTS,
    *,
    deep: bool = False,
    proof_steps: int = 0,
    shrink: bool = True,
) -> RuleReport:
    """Test `rule`; the same arguments give the same report in every process.

    Its name makes no difference. `attempts` bounds the draws per direction, `deep` draws ten times
    as many instances. A rule that passes is proved, too, where that is decided within
    `proof_steps`. Without `shrink`, a counterexample is the first that was found. Raises CallError
    for what is not a rule.
    """
    if not isinstance(rule, Rule):
        raise CallError(f"a rule is tested, as @rule declares one, and not {brief(rule)}")
    scale = DEEP if deep else 1
    random = Random(seed)
    tried: list[Firings] = []
    coverage = Coverage()
    try:
        failure = _first_failure(rule, random, attempts * scale, scale, tried, coverage)
    except ExpressionError as error:  # whatever the law says, this is not it
        return RuleReport(rule.name, rule.place, "failed", reason=str(error))
    if failure is None:
        failure = _failure_at_extremes(rule, seed, attempts, scale, tried)
    report = RuleReport(
        rule.name,
        rule.place,
        "tested",
        tuple(firings.report() for firings in tried),
        coverage.dtypes,
        coverage.ranks,
        coverage.dims,
    )
    if failure is not None:
        refuted = _refutation_report(rule, report, failure, shrink)
        return replace(refuted, hint=_hint(rule, seed, attempts, tried)) if rule.exact else refuted
    told = zip(report.directions, tried, strict=True)
    reasons = [reason for each, of in told for reason in _gaps(each, of.direction)]
    if reasons:
        return replace(report, verdict="vacuous", reason="\n".join(reasons))
    report = replace(report, hint="\n".join(_needless(report.directions)))
    return add_proof(rule, report, proof_steps, shrink) if proof_steps else report


def _first_failure(
    rule: Rule,
    random: Random,
    attempts: int,
    scale: int,
    tried: list[Firings],
    coverage: Coverage,
) -> Failure | None:
    """The first failure in order of size, if there is one; fills `tried` and `coverage`."""
    draw = Draw(random)
    for direction in rule.directions:
        firings = Firings(direction)
        tried.append(firings)
        firings.draw(random, WANTED * scale, attempts)
        for instance in sorted(firings.found.values(), key=lambda instance: instance.weight):
            failure = examine(instance, rule.exact, draw)
            if failure is not None:
                return failure
            coverage.add(node.type for node in instance.left_side.nodes)
        if firings.error is not None:
            raise firings.error
        if firings.broken is not None:
            return examine(firings.broken, rule.exact, draw) or _instability(firings.broken)
    found = [list(firings.found.values()) for firings in tried]
    for start in range(0, IN_EGRAPH * scale, IN_EGRAPH):
        batch = [instance for each in found for instance in each[start : start + IN_EGRAPH]]
        failure = examine_saturated(rule, batch, draw) if batch or not start else None
        if failure is not None:
            return failure
    unstable = [firings.unstable_firing() for firings in tried]
    return next((_instability(instance) for instance in unstable if instance is not None), None)


def _failure_at_extremes(
    rule: Rule, seed: int, attempts: int, scale: int, tried: Sequence[Firings]
) -> Failure | None:
    """The first failure at high ranks, equal extents, rare dtypes, or numbers huge or tiny."""
    squares = min(SQUARE_DRAWS, attempts) * scale
    by_choice = [
        [*of_every_choice(firings.direction, [*firings.found.values()], seed, scale)]
        for firings in tried
    ]
    batches = (
        _extremes(firings, choices, rule.exact, seed, squares, scale)
        for firings, choices in zip(tried, by_choice, strict=True)
    )
    failure = first_failure(chain.from_iterable(batches), rule.exact, seed)
    for firings, choices in zip(tried, by_choice, strict=True):
        chosen = (firings.direction, [*firings.found.values()], seed + 1, scale)
        failure = (
            failure
            or first_failure(of_small_extents(*chosen, empty=False), rule.exact, seed, "edge")
            or first_failure(of_large_extents(*chosen, longest=True), rule.exact, seed, "alike")
            or first_failure(of_many_elements(*chosen[:2], scale), rule.exact, seed, "alike")
            or (rule.exact and first_failure(of_choices(chosen[1], scale), True, seed, "few"))
            or (
                rule.exact
                and first_failure(of_plain_constants(chosen[0], seed, scale), True, seed, "few")
            )
            or (rule.exact and first_failure(of_long_sums(*chosen), True, seed, "unlike"))
            or first_failure(
                of_every_value(chosen[0], [*chosen[1], *choices], rule.exact, seed, scale),
                rule.exact,
                seed,
                "every",
            )
            or first_failure(of_every_scalar(*chosen[:2]), rule.exact, seed)
            or (rule.exact and first_failure(with_answers(*chosen[1:]), True, seed, "steps"))
            or first_failure(
                with_numbers_at_ends(*chosen[:2], rule.exact, seed, scale),
                rule.exact,
                seed,
                "all ends" if rule.exact else "ends",
            )
        )
    return failure


def _extremes(
    firings: Firings,
    choices: Sequence[Instance],
    exact: bool,
    seed: int,
    squares: int,
    scale: int,
) -> Iterator[Instance]:
    """Instances of one direction that its draws leave out, and neighbours of what fired."""
    direction, found = firings.direction, [*firings.found.values()]
    yield from of_high_rank(direction, seed, scale)
    yield from of_more_axes(direction, found, seed, scale)
    yield from of_plain_constants(direction, seed, scale)
    yield from of_equal_extents(direction, seed, squares)
    yield from of_large_extents(direction, found, seed, scale)
    yield from of_small_extents(direction, found, seed, scale)
    yield from of_named_paddings(direction, found, scale)
    yield from of_long_windows(direction, found, seed, scale)
    yield from of_reversed_shapes(direction, seed, scale)
    yield from of_narrow_dtypes(direction, seed, scale)
    yield from choices
    beside = [*neighbours(direction, found, seed, scale)]
    yield from beside
    yield from with_open_extents(direction, found, scale)
    yield from of_open_borders(direction, [*beside, *found], seed, scale)
    yield from with_other_zeros(found, scale)
    yield from with_extreme_numbers([*found, *beside], exact, scale)
    yield from with_giant_extents(direction, found, scale)
    yield from with_opposite_zeros(found, scale)
    yield from with_exchanged_extents(direction, found, seed, scale)
    yield from with_common_steps(found, seed, scale)
    yield from with_index_constants(found, seed, scale)


def _hint(rule: Rule, seed: int, attempts: int, tried: Sequence[Firings]) -> str:
    """Advice to declare rounding, where an exact law fails by it, and holds up to it."""
    instances = [instance for firings in tried for instance in firings.found.values()]
    ordinary = Draw(Random(0), specials=0.0)
    failures = (examine(instance, exact=True, draw=ordinary) for instance in instances)
    if not any(failure is not None and _is_rounding(failure) for failure in failures):
        return ""
    if first_failure(instances, exact=False) is not None:
        return ""
    if _failure_at_extremes(replace(rule, exact=False), seed, attempts, 1, tried) is not None:
        return ""
    return (
        f"Both sides agree up to rounding on all {len(instances)} instances; if no more is meant:"
        " @rule(reassociates=True)"
    )


def _is_rounding(failure: Failure) -> bool:
    """Whether finite floats differ, and by roundings only."""
    if not failure.is_difference or disagreement(failure.program, failure.arguments, exact=False):
        return False
    values = node_values(failure.program.nodes, failure.arguments)
    left, right = (values[index] for index in failure.program.output_nodes)
    return bool(np.any((left != right) & np.isfinite(left) & np.isfinite(right)))


def _instability(instance: Instance) -> Failure | None:
    reason = "an attribute function answers now this, now that for the same arguments"
    return right_side_failure(instance, unstable_call(instance) or reason)


def _gaps(direction: DirectionReport, tested: Direction) -> Sequence[str]:
    """Reasons why the instances of a direction say too little."""
    if direction.firings >= FIRINGS:
        return ()
    obstacle = _obstacle(direction)
    if not obstacle:
        raised = failure_of_left(tested, Random(0))
        obstacle = "its left side is seldom well typed, or has few instances"
        obstacle += f" ({raised})" * bool(raised)
    return (
        f"{direction.label} fired on only {direction.firings} of {direction.instances}"
        f" instances; {FIRINGS} are needed: {obstacle}; a check with --deep draws"
        " ten times as many",
        *(
            f"{direction.label}: the condition {text} was {answer} for all {count} instances"
            " that were drawn: where it is not, nothing was tried"
            for text in direction.constant_conditions
            for answer, count in direction.conditions[text].items()
            if count and f"the condition {text} was {answer} " not in obstacle
        ),
        *(
            f"{direction.label}: {number} is an element of floats only"
            for number in float_numbers(tested)
        ),
    )


def _needless(directions: Sequence[DirectionReport]) -> Iterator[str]:
    """Notes on conditions that held for all instances of every direction: they may say nothing."""
    for text in dict.fromkeys(text for each in directions for text in each.conditions):
        counts = [each.conditions[text] for each in directions if text in each.conditions]
        if not any(each[False] for each in counts):
            held = sum(each[True] for each in counts)
            yield (
                f"the condition {text} held for all {held} instances that were drawn: if it always"
                " does, leave it out"
            )


def _obstacle(direction: DirectionReport) -> str:
    """The condition or refusal that stopped most instances of a direction; empty for none."""
    failed = {
        f"the condition {text} was False": n[False] for text, n in direction.conditions.items()
    }
    failed |= {f"it refused ({text})": count for text, count in direction.refusals.items()}
    worst = max(failed, key=failed.__getitem__, default="")
    if worst and failed[worst]:
        count = "all" if failed[worst] == direction.instances else failed[worst]
        return f"{worst} for {count} of them"
    return ""


def _refutation_report(
    rule: Rule, report: RuleReport, failure: Failure, shrink: bool
) -> RuleReport:
    if shrink:
        failure = smallest(failure, rule.exact)
    if failure.is_raised:
        return replace(report, verdict="failed", reason=failure.reason)
    shown = counterexample(failure, rule)
    types = [node.type for node in failure.program.nodes]
    dtypes = {*report.dtypes, *(type_.dtype.value for type_ in types)}
    covered = replace(
        report,
        hint="",
        dtypes=tuple(dtype.value for dtype in COMPUTED if dtype.value in dtypes),
        ranks=tuple(sorted({*report.ranks, *(type_.rank for type_ in types)})),
    )
    return replace(covered, verdict="refuted", reason=shown.reason, counterexample=shown)


def add_proof(rule: Rule, report: RuleReport, steps: int, shrink: bool = False) -> RuleReport:
    """The `report` of a rule that passed its test, with what a proof of so many steps adds.

    Where the prover suspects that the sides differ, they are compared on random arrays.
    """
    proof = prove(rule, steps=steps)
    if proof.status == "refuted":
        why = proof.reason
        report = replace(report, verdict="refuted", proof=why, reason=why, hint="")
    doubted = () if proof.found is None else (proof.found,)
    for match in (*doubted, *proof.suspects):
        failure = _failure_at(match, rule.exact)
        if failure is not None:
            return _refutation_report(rule, report, failure, shrink)
    if proof.status == "refuted":
        return report
    verdict: Verdict = "proved" if proof.is_proved else "tested"
    more = f"; {advice('deep=True', '--deep')} takes {STEPS}"
    told = proof.reason + more * (proof.is_late and steps < STEPS)
    return replace(report, verdict=verdict, proof=told, proved=proof.ranks)


def _failure_at(match: Found, exact: bool) -> Failure | None:
    """The failure at a match that the prover found; None where random values do not show it."""
    values = cast(Mapping[str, TensorType | Attribute], match.bindings)
    instance = Instance(match.direction, tuple(values.items()), 0)
    for seed in range(VALUES if is_well_typed(instance) else 0):
        failure = examine(instance, exact, Draw(Random(seed), specials=seed % 2 / 2))
        if failure is not None:
            return failure
    return None
