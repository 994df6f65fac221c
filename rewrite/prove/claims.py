"""What has to hold on one path: the right side is well typed, of the left's type, and equal."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from satura.rewrite.prove.counterexample import real_counterexample, suspects
from satura.rewrite.prove.folds import connect
from satura.rewrite.prove.matches import FailedError, Match, Required
from satura.rewrite.prove.paths import Fact, Path, Undecided
from satura.rewrite.prove.proof import Found
from satura.rewrite.prove.stand_in import unknown
from satura.rewrite.prove.tensors import Elements
from satura.rewrite.prove.z3_terms import equal, within
from satura.rewrite.types.dims import Dim, SymbolicDim

DIFFERS = "an element differs"


class RefutedError(BaseException):
    """A claim does not follow: `reason` says what fails, `models` are sizes for which it fails.

    The most telling models come first.
    """

    def __init__(self, reason: str, models: list[z3.ModelRef]) -> None:
        super().__init__(reason)
        self.reason, self.models = reason, models
        self.found: Found | None = None  # where both sides really differ
        self.suspects: tuple[Found, ...] = ()  # where they agree on the arrays that were tried


def verify(match: Match) -> None:
    """Prove one direction on one path, where the rule fires. Raises RefutedError."""
    try:
        _verify(match)
    except RefutedError as failure:
        for model in failure.models:
            failure.found = real_counterexample(match.direction, match.values, model)
            if failure.found is not None:
                break
        else:
            tried = suspects(match.direction, match.values, failure.models)
            failure.suspects = tuple(
                Found(match.direction, bindings, failure.reason) for bindings in tried
            )
        raise


def _verify(match: Match) -> None:
    left = match.bind_left()
    match.require_conditions()
    required = Required(match.path)
    try:
        right = match.build_right(required)
    except FailedError as failure:
        _fail(match.path, match.assumed.facts, str(failure))
        return
    solver = match.path.solver
    with match.path.scope(*match.assumed.facts):
        for lemma in match.assumed.hints:
            lemma()
        solver.add(*(equal(zero, 0) for zero in match.path.equalities.zeros()))
        _claim_all(match.path, [*required.goals, *_same_types(left, right)])
        index = tuple(unknown(f"i{axis}") for axis in range(left.rank))
        solver.add(*(within(i, dim) for i, dim in zip(index, left.shape, strict=True)))
        match.path.witness()
        for lemma in match.assumed.hints:  # more follows where there is an element at all
            lemma()
        match.path.side = "left"
        here = left.at(index)
        match.path.side = "right"
        there = right.at(index)
        if not here.eq(there):
            match.path.side = "left"
            here = left.at(index)  # once more: what the right side says of positions is known now
            connect(match.path)
            _claim(match.path, here == there, DIFFERS)


def _same_types(left: Elements, right: Elements) -> Iterator[tuple[Fact | Dim, str]]:
    if left.rank != right.rank:
        yield 1, f"the left side has rank {left.rank}, the right {right.rank}"
        return
    for mine, theirs in zip(left.shape, right.shape, strict=True):
        yield mine - theirs, f"the shapes differ: {mine} and {theirs}"
    if not left.dtype.eq(right.dtype):
        yield left.dtype == right.dtype, "the dtypes differ"


def _claim_all(path: Path, goals: list[tuple[Fact | Dim, str]]) -> None:
    """Prove every goal, where a dim stands for the goal that it is 0. Raises RefutedError."""
    equalities = path.equalities
    facts: list[tuple[Fact, str]] = []
    for goal, reason in goals:
        if isinstance(goal, int | SymbolicDim):
            if equalities.reduce(goal) != 0:
                facts.append((equal(goal, 0), reason))
        else:
            facts.append((goal, reason))
    if facts and not path.follows(z3.And(*(fact for fact, _ in facts))):
        for fact, reason in facts:
            _claim(path, fact, reason)


def _claim(path: Path, goal: Fact, reason: str) -> None:
    model = path.counterexample(goal)
    if model is None:
        return
    raise RefutedError(reason, _telling_models(path, goal, model))


def _telling_models(path: Path, goal: Fact, model: z3.ModelRef) -> list[z3.ModelRef]:
    """Counterexamples to `goal`: first of small static sizes, mostly above 1; last `model`."""
    known = {str(declared) for declared in model}
    names = {name[:-1] for name in known if name.endswith("'")}
    names |= {name[7:] for name in known if name.startswith("static ")}
    wishes = [z3.And(*(z3.Bool(f"static {name}") for name in names))]
    wishes += [z3.Int(name) <= 4 for name in sorted(names)]
    wishes += [z3.Int(name) >= 2 for name in sorted(names)]
    granted: list[Fact] = []
    models = [model]
    for wish in wishes:
        try:
            better = path.counterexample(z3.Implies(z3.And(*granted, wish), goal))
        except Undecided:
            continue
        if better is not None:
            granted.append(wish)
            models.append(better)
    return models[::-1]


def _fail(path: Path, facts: list[Fact], reason: str) -> None:
    """Raise RefutedError for a right side that fails, unless the path is impossible."""
    with path.scope(*facts):
        _claim(path, z3.BoolVal(False), reason)
