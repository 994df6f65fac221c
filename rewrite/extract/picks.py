"""Picks: a choice that changes, and what it costs with every change.

What is newly computed for a class, and what for it alone, are counted by references, as in
technology mapping (exact area: Mishchenko, Chatterjee, Brayton, IEEE TCAD 26, 2007).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from math import inf

from satura.rewrite.extract.choice_graph import NOISE, ChoiceGraph


class Picks:
    """Which candidate each class is computed by, while that changes: its `pick`.

    Classes that are not needed have one, too, and all picks together have no cycle. `uses` counts
    the goals, and the picks of needed classes, that read a class; `total` is what all needed picks
    cost. A difference of less than the `tolerance` is none.
    """

    def __init__(self, graph: ChoiceGraph, picks: Mapping[int, int]) -> None:
        self.graph = graph
        self.picks = dict(picks)
        self.uses = [0] * graph.size
        self.total = 0.0
        self.own = [inf] * graph.size  # costs of the picks
        self.below: list[tuple[int, ...]] = [()] * graph.size  # leaves of the picks
        self.rank = [0] * graph.size  # a pick reads only classes of lower rank
        # Most classes read earlier ones, which get their rank once where they come later.
        for cls, candidate in reversed(self.picks.items()):
            self.set_pick(cls, candidate)
        for goal in graph.goals:
            self.take((goal,))
        self.tolerance = NOISE * self.total

    def state(self) -> dict[int, tuple[int, bool]]:
        """The pick of every class, and whether it is computed."""
        return {cls: (candidate, self.uses[cls] > 0) for cls, candidate in self.picks.items()}

    def selected(self) -> list[int]:
        """The classes that are computed."""
        return [cls for cls, uses in enumerate(self.uses) if uses]

    def is_less(self, cost: float, than: float) -> bool:
        return cost < than - self.tolerance

    def set_pick(self, cls: int, candidate: int) -> None:
        """Note the candidate of a class, and rank what it reads below it."""
        below, rank = self.below, self.rank
        self.picks[cls] = candidate
        self.own[cls] = self.graph.costs[candidate]
        below[cls] = self.graph.leaves[candidate]
        stack = [cls]
        while stack:
            reader = stack.pop()
            bound = rank[reader]
            for leaf in below[reader]:
                if rank[leaf] >= bound:
                    assert leaf != cls, "the picks close a circle"
                    rank[leaf] = bound - 1
                    stack.append(leaf)

    def pick(self, cls: int, candidate: int) -> None:
        """Compute a class by another candidate."""
        old, own = self.below[cls], self.own[cls]
        self.set_pick(cls, candidate)
        if self.uses[cls]:
            self.total += self.own[cls] - own
            self.take(self.below[cls])
            self.drop(old)

    def take(self, classes: Iterable[int]) -> None:
        """One more use of some classes, and of what is then computed newly."""
        uses, own, below = self.uses, self.own, self.below
        stack = list(classes)
        while stack:
            cls = stack.pop()
            uses[cls] += 1
            if uses[cls] == 1:
                self.total += own[cls]
                stack += below[cls]

    def drop(self, classes: Iterable[int]) -> None:
        """One use less of some classes, and of what is then no longer computed."""
        uses, own, below = self.uses, self.own, self.below
        stack = list(classes)
        while stack:
            cls = stack.pop()
            uses[cls] -= 1
            if not uses[cls]:
                self.total -= own[cls]
                stack += below[cls]

    def keep_or_undo(self, before: float, changed: list[tuple[int, int]]) -> bool:
        """Undo changed picks where the total is not less than before; whether it is."""
        if self.is_less(self.total, before):
            return True
        for cls, candidate in reversed(changed):
            self.pick(cls, candidate)
        self.total = before
        return False

    def price_of(self, leaves: Iterable[int], limit: float, new: set[int] | None = None) -> float:
        """What it costs to compute classes beside all else; infinite from `limit` on.

        What is then computed newly is added to `new`.
        """
        uses, own, below = self.uses, self.own, self.below
        stack = [leaf for leaf in leaves if not uses[leaf]]
        if limit <= 0:
            return inf
        if not stack:
            return 0.0
        total = sum([own[leaf] for leaf in stack])
        seen = set() if new is None else new
        seen.update(stack)
        while stack:
            if total >= limit:
                return inf
            for leaf in below[stack.pop()]:
                if not uses[leaf] and leaf not in seen:
                    total += own[leaf]
                    seen.add(leaf)
                    stack.append(leaf)
        return total if total < limit else inf

    def freed(self, classes: Iterable[int], read: Container[int], most: float = inf) -> float:
        """What is saved by one use less of some classes, where some are `read` more than now.

        Where more hangs on that than `most` uses: all that is chosen, which is no less.
        """
        uses, own, below = self.uses, self.own, self.below
        less: dict[int, int] = {}
        total = 0.0
        stack = list(classes)
        while stack:
            cls = stack.pop()
            if cls in read:
                continue
            count = less[cls] = less.get(cls, 0) + 1
            if count == uses[cls]:
                total += own[cls]
                stack += below[cls]
                if len(less) > most:
                    return self.total
        return total

    def reaches(self, start: Iterable[int], *goals: int) -> bool:
        """Whether the picks below `start` include that of a goal."""
        below, rank = self.below, self.rank
        lowest = min([rank[goal] for goal in goals])
        seen: set[int] = set()
        stack = list(start)
        while stack:
            cls = stack.pop()
            if cls in goals:
                return True
            if rank[cls] > lowest and cls not in seen:
                seen.add(cls)
                stack += below[cls]
        return False
