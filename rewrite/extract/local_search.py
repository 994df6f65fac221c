"""Local search: from a choice to a cheaper one, by three moves.

Greedy choices are made per class, so two classes that hold the same data (a tensor and its
reshape, say) may both be computed although one could serve the readers of both, and work may be
repeated in several candidates that none of them alone would pay to share.

- *choose again*: give a class the candidate that is cheapest beside all else that is chosen;
- *force in*: pay for a class that is not needed, let all choose again that could read it; also for
  one that then does without what is computed now, so that it takes the other's place;
- *force out*: let everything that reads a class choose again among what does not read it.

A move is kept when the whole gets cheaper. The price of a candidate is what is newly computed for
it, counted by references as in technology mapping (exact area: Mishchenko, Chatterjee, Brayton,
IEEE TCAD 26, 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.greedy import cheapest_dags, dag_greedy, tree_greedy

MAX_PASSES = 6
UPWARDS = 1  # more was never seen to find more
LARGE = 3000  # candidates: searching from another start takes more than a quarter of a second
LEAST = 1e-9  # relative; smaller gains are noise of floating point


def local_search(graph: ChoiceGraph, start: Result | None = None) -> Result:
    """Search from both greedy choices, or from `start`, and in all but large graphs a greedy one.

    Raises ProgramError where a goal cannot be computed.
    """
    starts = [start] if start else [tree_greedy(graph)]
    if not start or len(graph.homes) <= LARGE:
        starts.append(dag_greedy(graph))
    best = min((improve(graph, each) for each in starts), key=lambda result: result.cost)
    while (found := improve(graph, best)).cost < best.cost * (1 - LEAST):
        best = found
    return best


def improve(graph: ChoiceGraph, start: Result, upwards: int = UPWARDS) -> Result:
    """Search from a choice, with up to `upwards` classes between one forced in and its readers."""
    # What is chosen reads nothing else, so the picks for the other classes close no cycle.
    search = _Search(graph, {**cheapest_dags(graph), **start.choice}, upwards)
    for _ in range(MAX_PASSES):
        before = search.total
        for cls in search.selected():
            if search.uses[cls]:
                search.choose_again(cls)
        for cls in search.neighbours():
            search.cheapen(cls)
        for cls in search.neighbours():
            search.force_in(cls)
        for cls in search.selected():
            if cls not in graph.goals:
                search.force_out(cls)
        if not search.is_less(search.total, before):
            break
    choice = graph.needed(search.picks)
    return Result(choice, graph.cost(choice.values()))


class _Search:
    """A choice under change. All picks together, of classes not needed too, have no cycle."""

    def __init__(self, graph: ChoiceGraph, picks: Mapping[int, int], upwards: int) -> None:
        self.graph = graph
        self.picks = dict(picks)
        self.upwards = upwards
        self.uses = [0] * graph.size  # by goals and picks of needed classes
        self.total = 0.0
        for goal in graph.goals:
            self.take(goal)
        self.least = LEAST * self.total

    def is_less(self, cost: float, than: float) -> bool:
        return cost < than - self.least

    def selected(self) -> list[int]:
        """The classes that are computed."""
        return [cls for cls, uses in enumerate(self.uses) if uses]

    def neighbours(self) -> list[int]:
        """The classes that are not computed but could be read by a candidate of one that is."""
        graph = self.graph
        found: dict[int, None] = {}
        for cls, uses in enumerate(self.uses):
            for candidate in graph.candidates[cls] if uses else ():
                found.update((leaf, None) for leaf in graph.leaves[candidate])
        return [cls for cls in found if not self.uses[cls] and cls in self.picks]

    def take(self, cls: int) -> None:
        """One more use of a class, and of what is then computed newly."""
        stack = [cls]
        while stack:
            cls = stack.pop()
            self.uses[cls] += 1
            if self.uses[cls] == 1:
                candidate = self.picks[cls]
                self.total += self.graph.costs[candidate]
                stack.extend(self.graph.leaves[candidate])

    def drop(self, cls: int) -> None:
        """One use less of a class, and of what is then no longer computed."""
        stack = [cls]
        while stack:
            cls = stack.pop()
            self.uses[cls] -= 1
            if not self.uses[cls]:
                candidate = self.picks[cls]
                self.total -= self.graph.costs[candidate]
                stack.extend(self.graph.leaves[candidate])

    def pick(self, cls: int, candidate: int) -> None:
        """Compute a class by another candidate."""
        used, graph = self.uses[cls], self.graph
        before, self.picks[cls] = self.picks[cls], candidate
        if used:
            self.total += graph.costs[candidate] - graph.costs[before]
            for leaf in graph.leaves[candidate]:
                self.take(leaf)
            for leaf in graph.leaves[before]:
                self.drop(leaf)

    def choose_again(self, cls: int) -> bool:
        """Pick the cheapest candidate of a class that is computed; whether that is another."""
        limit = self.total - self.least
        return self.pick_cheapest(cls, lambda candidate: limit)

    def choose_without(self, cls: int, other: int) -> bool:
        """Pick the cheapest candidate that does not read `other`; False where there is none."""
        leaves = self.graph.leaves
        return self.pick_cheapest(cls, lambda k: 0.0 if other in leaves[k] else inf)

    def choose_with(self, cls: int, other: int) -> bool:
        """Pick the cheapest candidate that reads `other`, if its share of the cost is smaller.

        Of what others read too, a class that no longer reads it has its part to gain.
        """
        graph, current = self.graph, self.picks[cls]
        limit = self.total - self.least
        shares = {
            leaf: graph.costs[self.picks[leaf]] * (1 - 1 / self.uses[leaf])
            for leaf in graph.leaves[current]
        }

        def allowance(candidate: int) -> float:
            leaves = graph.leaves[candidate]
            if other not in leaves:
                return 0.0
            return limit + sum(share for leaf, share in shares.items() if leaf not in leaves)

        return self.pick_cheapest(cls, allowance)

    def pick_cheapest(self, cls: int, allowance: Callable[[int], float]) -> bool:
        """Pick the other candidate with the least total below its allowance, if there is one."""
        graph, current = self.graph, self.picks[cls]
        for leaf in graph.leaves[current]:
            self.drop(leaf)
        base = self.total - graph.costs[current]
        best, least = current, inf
        for candidate in graph.candidates[cls]:
            price = base + graph.costs[candidate]
            if price >= least:
                break
            limit = min(least, allowance(candidate))
            if candidate == current or price >= limit:
                continue
            price += self.price_of(graph.leaves[candidate], limit - price)
            if price < limit and not self.reaches(graph.leaves[candidate], cls):
                best, least = candidate, price
        for leaf in graph.leaves[current]:
            self.take(leaf)
        if best != current:
            self.pick(cls, best)
        return best != current

    def price_of(self, leaves: Iterable[int], limit: float) -> float:
        """What it costs to compute classes beside all else; infinite from `limit` on."""
        total = 0.0
        seen: set[int] = set()
        stack = [leaf for leaf in leaves if not self.uses[leaf]]
        while stack:
            cls = stack.pop()
            if cls in seen:
                continue
            seen.add(cls)
            candidate = self.picks.get(cls)
            if candidate is None:
                return inf
            total += self.graph.costs[candidate]
            if total >= limit:
                return inf
            stack.extend(leaf for leaf in self.graph.leaves[candidate] if not self.uses[leaf])
        return total

    def reaches(self, start: Iterable[int], goal: int) -> bool:
        """Whether the picks below `start` include that of `goal`."""
        seen = set(start)
        stack = list(seen)
        while stack:
            cls = stack.pop()
            if cls == goal:
                return True
            for leaf in self.graph.leaves[self.picks[cls]]:
                if leaf not in seen:
                    seen.add(leaf)
                    stack.append(leaf)
        return False

    def force_in(self, cls: int) -> None:
        """Try the move *force in* on a class that is not computed.

        Also with candidates that do without something that is computed now: its readers may all
        go over to this class.
        """
        for leaf in (None, *self.graph.leaves[self.picks[cls]]):
            if self.uses[cls]:
                return
            pick = self.picks[cls]
            if leaf is not None and not (self.uses[leaf] and self.cheapen_without(cls, leaf)):
                continue
            before = self.total
            self.take(cls)
            changed: list[tuple[int, int]] = []
            self.offer(cls, changed, self.upwards)
            self.drop(cls)
            if not self.keep_or_undo(before, changed):
                self.picks[cls] = pick

    def offer(self, cls: int, changed: list[tuple[int, int]], levels: int) -> None:
        """Let all that could read a class choose it; what changes is noted with its old pick.

        A class that is not computed may get cheaper by it, and is then offered in turn.
        """
        for reader in self.could_read(cls):
            old = self.picks.get(reader)
            if old is None:
                continue
            reads = cls in self.graph.leaves[old]
            if self.uses[reader]:
                if not reads and self.choose_with(reader, cls):
                    changed.append((reader, old))
            elif levels and (reads or self.cheapen(reader, cls)):
                if not reads:
                    changed.append((reader, old))
                self.offer(reader, changed, levels - 1)

    def cheapen(self, cls: int, other: int | None = None) -> bool:
        """Give a class that is not computed its cheapest candidate beside all that is.

        Only one that reads `other`, if that is given. Whether it is another than before.
        """
        graph, before = self.graph, self.picks[cls]
        least = graph.costs[before] + self.price_of(graph.leaves[before], inf) - self.least
        for candidate in graph.candidates[cls]:
            leaves, price = graph.leaves[candidate], graph.costs[candidate]
            if price >= least:
                break
            if other is None or other in leaves:
                price += self.price_of(leaves, least - price)
                if price < least and not self.reaches(leaves, cls):
                    self.picks[cls], least = candidate, price
        return self.picks[cls] != before

    def cheapen_without(self, cls: int, other: int) -> bool:
        """Give a class that is not computed its cheapest candidate below which `other` is not.

        False where there is none.
        """
        graph, before = self.graph, self.picks[cls]
        least, ends = inf, (cls, other)
        for candidate in graph.candidates[cls]:
            leaves, price = graph.leaves[candidate], graph.costs[candidate]
            if price >= least:
                break
            price += self.price_of(leaves, least - price)
            if price < least and not any(self.reaches(leaves, end) for end in ends):
                self.picks[cls], least = candidate, price
        return self.picks[cls] != before

    def force_out(self, cls: int) -> None:
        """Try the move *force out* on a class that is computed."""
        if not self.uses[cls]:
            return
        graph, before = self.graph, self.total
        changed: list[tuple[int, int]] = []
        for reader in self.could_read(cls):
            old = self.picks.get(reader)
            if old is not None and self.uses[reader] and cls in graph.leaves[old]:
                if not self.choose_without(reader, cls):
                    break
                changed.append((reader, old))
        self.keep_or_undo(before, changed)

    def could_read(self, cls: int) -> list[int]:
        """The classes with a candidate that reads `cls`."""
        return list(dict.fromkeys(self.graph.homes[k] for k in self.graph.readers[cls]))

    def keep_or_undo(self, before: float, changed: list[tuple[int, int]]) -> bool:
        """Undo changed picks where the total is not less than before; whether it is."""
        if self.is_less(self.total, before):
            return True
        for cls, candidate in reversed(changed):
            self.pick(cls, candidate)
        self.total = before
        return False
