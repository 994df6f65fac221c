"""The proof of a rule: every direction, at every rank, on every path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import z3

from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.expressions import AttributeVariable
from satura.rewrite.language.terms import Application, Tensor, subterms
from satura.rewrite.prove.allowed_code import objection
from satura.rewrite.prove.claims import DIFFERS, RefutedError, verify
from satura.rewrite.prove.matches import Match
from satura.rewrite.prove.paths import Budget, OutOfStepsError, Path, Undecided
from satura.rewrite.prove.proof import Proof
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.constant import Constant

PATIENCE = 2_000_000  # z3's own steps for one question, some seconds


def search(rule: Rule, ranks: Sequence[int], steps: int) -> Proof:
    """See `prove`."""
    proof = _search(rule, ranks, steps)
    reason = objection(rule) if proof.ranks and proof.status != "refuted" else ""
    return replace(proof, status="open", ranks=(), reason=reason) if reason else proof


def _search(rule: Rule, ranks: Sequence[int], steps: int) -> Proof:
    budget = Budget(steps)
    proved: list[int] = []
    witnessed: set[str] = set()  # directions that fire at some rank
    conditional: set[str] = set()  # directions that do not hold without their conditions

    def so_far() -> tuple[int, ...]:
        """The ranks that are proved; none where a direction fires at none of them."""
        fired = all(direction.label in witnessed for direction in rule.directions)
        return tuple(proved) if fired else ()

    for rank in ranks:
        try:
            for direction in rule.directions:
                choices = list(rank_choices(direction, rank))
                fires = [_prove_somehow(direction, s, budget, conditional) for s in choices]
                if any(fires):
                    witnessed.add(direction.label)
                elif choices and direction.label in witnessed:
                    raise Undecided(f"the prover found no sizes at which {direction.label} fires")
        except Undecided as reason:
            return Proof(rule.name, "open", so_far(), f"at rank {rank}: {reason}")
        except OutOfStepsError:
            late = f"undecided at rank {rank} within {steps} steps"
            return Proof(rule.name, "open", so_far(), late, is_late=True)
        except RefutedError as failure:
            if failure.found is not None:
                text = f"at rank {rank}, {failure.found.text}"
                return Proof(rule.name, "refuted", so_far(), text, failure.found)
            if rank == 0 and failure.reason == DIFFERS:
                text = "it rests on what its functions compute, not on where elements come from"
            else:
                unsure = f"the prover cannot rule out that {failure.reason}"
                text = f"not proved at rank {rank}: {unsure}"
            return Proof(rule.name, "open", so_far(), text, suspects=failure.suspects)
        proved.append(rank)
    for direction in rule.directions:
        if direction.label not in witnessed:
            text = f"the prover found no sizes at which {direction.label} fires"
            return Proof(rule.name, "open", (), text)
    return Proof(rule.name, "proved", tuple(proved), f"for all sizes {_text(proved)}")


def _text(ranks: Sequence[int]) -> str:
    """The ranks in words: those of a proof follow one another, mostly."""
    first, last = ranks[0], ranks[-1]
    if first == last:
        return f"at rank {last}"
    if list(ranks) == [*range(first, last + 1)]:
        return f"at ranks {first} to {last}"
    return f"at ranks {', '.join(map(str, ranks))}"


def _prove_somehow(
    direction: Direction, ranks: Mapping[str, int], budget: Budget, conditional: set[str]
) -> bool:
    """Prove it without its conditions, which takes fewer paths, or else with them."""
    if direction.conditions and direction.label not in conditional:
        share = Budget(budget.left / 3)
        rest = budget.left - share.left
        try:
            return _prove_direction(replace(direction, conditions=()), ranks, share)
        except (RefutedError, Undecided, OutOfStepsError):
            conditional.add(direction.label)
        finally:
            budget.left = rest + share.left
    return _prove_direction(direction, ranks, budget)


def _prove_direction(direction: Direction, ranks: Mapping[str, int], budget: Budget) -> bool:
    """Prove it for these ranks. Returns whether it can fire there."""
    solver = z3.Solver()
    solver.set("rlimit", PATIENCE)
    path = Path(solver, budget)
    for _ in path.runs(lambda path: verify(Match(path, direction, ranks))):
        pass
    return path.witnessed


def rank_choices(direction: Direction, rank: int) -> Iterator[dict[str, int]]:
    """Ranks for the tensors and reshape targets of the left side, the largest being `rank`."""
    names = list(dict.fromkeys(_names_with_ranks(direction.left)))
    for chosen in product(range(rank + 1), repeat=len(names)):
        if max(chosen, default=0) == rank:
            yield dict(zip(names, chosen, strict=True))


def _names_with_ranks(left: Application) -> Iterator[str]:
    for term in subterms(left):
        if isinstance(term, Tensor):
            yield term.name
        elif isinstance(term, Application):
            for expression, sort in zip(term.attributes, term.op.attributes, strict=True):
                has_rank = sort is Constant or (sort is Shape and term.op.name == "reshape")
                if has_rank and isinstance(expression, AttributeVariable):
                    yield expression.name
