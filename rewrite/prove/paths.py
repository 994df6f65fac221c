"""Paths: a function of unknown values is run once for every way its decisions can go.

While it runs, the function asks `choose` (which of several structures) and `decide` (whether a
comparison holds). The first run takes the first answer everywhere; then the last decision that has
another possible answer is changed and the function runs again, until there is none. An answer that
contradicts the facts of the path, by z3, is never given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeVar

import z3

from satura.rewrite.prove.equalities import Equalities
from satura.rewrite.types.dims import Dim

T = TypeVar("T")
Fact: TypeAlias = z3.BoolRef


NAMED = ("dtype ", "function ")  # keys of choices of a dtype or of a function's name


class Dead(BaseException):
    """The left side is not well typed on this path, or the rule does not fire: nothing to prove."""


class Undecided(BaseException):
    """The proof cannot go on; the message says why."""


class OutOfStepsError(BaseException):
    """The budget of the proof is spent."""


@dataclass
class Budget:
    """The steps that are left for a proof, which are as many on every machine.

    A step is a path, a run of one of the rule's functions, or a thousand of z3's own steps.
    """

    left: float

    def spend(self, steps: float) -> None:
        """Use up `steps`. Raises OutOfStepsError where fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError


@dataclass
class _Decision:
    options: list[object]
    facts: list[Fact | None]
    remembered: int  # results that were known before it
    chosen: int = 0


@dataclass
class Path:
    """One run: what has been decided so far, and the facts that follow."""

    solver: z3.Solver
    budget: Budget
    folds: dict[str, Any] = field(default_factory=dict)  # of the two sides, see `folds`
    zeros: list[Dim] = field(default_factory=list)  # dims that are 0 for all sizes
    actual_zeros: list[Dim] = field(default_factory=list)  # and dims that are 0 here
    nonzero: list[str] = field(default_factory=list)  # symbols that are not 0 for all sizes
    natural: set[str] = field(default_factory=set)  # symbols that are never negative
    positions: Any = None  # what is known of reshaped indices, see `reshape`
    _equalities: tuple[tuple[int, int], Equalities] | None = None
    witnessed: bool = False  # whether some path is possible, with an element to look at
    side: str = ""
    readings: Any = None  # while a function runs, see `function_answers`
    refused: Undecided | None = None  # what that function asked for in vain
    depth: int = 0
    _trace: list[_Decision] = field(default_factory=list)
    _position: int = 0
    _changed: int = -1  # decisions up to this one, and their facts, are in the solver already
    _decided: dict[str, object] = field(default_factory=dict)
    _memory: list[Any] = field(default_factory=list)
    _recalled: int = 0

    def runs(self, function: Callable[[Path], T]) -> Iterator[T]:
        """The results of `function` on every path that does not die."""
        while True:
            self.budget.spend(1)
            self._position, self._decided, self.folds, self.depth = 0, {}, {}, 0
            self._recalled = 0
            self.zeros, self.nonzero, self.actual_zeros = [], [], []
            self.positions = self._equalities = None
            with suppress(Dead):
                yield function(self)
            while self._trace and self._trace[-1].chosen + 1 == len(self._trace[-1].options):
                self._trace.pop()
                self.solver.pop()
            if not self._trace:
                return
            self.solver.pop()
            self._trace[-1].chosen += 1
            self._changed = len(self._trace) - 1
            del self._memory[self._trace[-1].remembered :]

    def choose(self, key: str, options: list[T], facts: list[Fact | None] | None = None) -> T:
        """One of `options`, each of which stands for a fact. A key has one answer on a path."""
        if self.readings is not None and key.startswith(NAMED):
            return self.readings.read(key, options, facts)  # type: ignore[no-any-return]
        if key in self._decided:
            return self._decided[key]  # type: ignore[return-value]
        if self._position == len(self._trace):
            chosen, said = self._possible_options(options, facts or [None] * len(options))
            self._trace.append(_Decision(chosen, said, self._recalled))
            self._changed = self._position
        decision = self._trace[self._position]
        if self._position >= self._changed:
            self.solver.push()
            fact = decision.facts[decision.chosen]
            if fact is not None:
                self.solver.add(fact)
        self._position += 1
        answer = decision.options[decision.chosen]
        self._decided[key] = answer
        return answer  # type: ignore[return-value]

    def decide(self, key: str, when_true: Fact, when_false: Fact) -> bool:
        """Whether something holds; each answer has the fact that follows from it."""
        return self.choose(key, [True, False], [when_true, when_false])

    def remember(self, compute: Callable[[], T]) -> T:
        """The result of `compute`, which earlier decisions determine.

        A run repeats the one before until its first decision that is another one; up to there the
        result is known already.
        """
        if self._recalled == len(self._memory):
            self._memory.append(compute())
        self._recalled += 1
        return self._memory[self._recalled - 1]  # type: ignore[no-any-return]

    def assume(self, *facts: Fact) -> None:
        """Tell the solver facts that hold from here on."""
        if self._position > self._changed:
            self.solver.add(*facts)

    @contextmanager
    def scope(self, *facts: Fact) -> Iterator[None]:
        """A block in which `facts` hold in addition."""
        self.solver.push()
        try:
            self.solver.add(*facts)
            yield
        finally:
            self.solver.pop()

    def refuse(self, reason: str) -> NoReturn:
        """End a function that asks what is not known; what it answers after that does not count."""
        self.refused = Undecided(reason)
        raise self.refused

    def witness(self) -> None:
        """Note whether the facts can hold; if they never do, nothing has been proved."""
        self.witnessed = self.witnessed or self._check_facts() == z3.sat

    @property
    def equalities(self) -> Equalities:
        """The equalities found so far, as rewrite rules."""
        known = (len(self.zeros), len(self.nonzero) + len(self.natural))
        if self._equalities is None or self._equalities[0] != known:
            self._equalities = (known, Equalities(self.zeros, self.nonzero, self.natural))
        return self._equalities[1]

    def follows(self, goal: Fact) -> bool:
        """Whether z3 shows that the facts imply `goal`."""
        try:
            return self.counterexample(goal) is None
        except Undecided:
            return False

    def counterexample(self, goal: Fact) -> z3.ModelRef | None:
        """Values for which the facts hold and `goal` does not, or None where there are none.

        Raises Undecided where z3 does not know.
        """
        if z3.is_true(goal):
            return None
        with self.scope(z3.Not(goal)):
            answer = self._check_facts()
            model = self.solver.model() if answer == z3.sat else None
        if answer == z3.unknown:
            raise Undecided(f"z3 gives up: {self.solver.reason_unknown()}")
        return model

    def _possible_options(
        self, options: list[T], facts: list[Fact | None]
    ) -> tuple[list[object], list[Fact | None]]:
        pairs = [
            (option, fact)
            for option, fact in zip(options, facts, strict=True)
            if fact is None or self._is_possible(fact)
        ]
        if not pairs:
            raise Dead
        return [option for option, _ in pairs], [fact for _, fact in pairs]

    def _is_possible(self, fact: Fact) -> bool:
        with self.scope(fact):
            return bool(self._check_facts() != z3.unsat)

    def _check_facts(self) -> z3.CheckSatResult:
        """Whether the facts can hold, as far as z3 knows."""
        before = _z3_steps(self.solver)
        try:
            answer = self.solver.check()
        except z3.Z3Exception as error:
            if "canceled" not in str(error):
                raise
            answer = z3.unknown  # its limit was reached where z3 does not say so but raises
        self.budget.spend((_z3_steps(self.solver) - before) / 1000)
        return answer


def _z3_steps(solver: z3.Solver) -> int:
    """Steps that all solvers of this process have taken so far."""
    return int(solver.statistics().get_key_value("rlimit count"))
