"""Local search: from a choice to a cheaper one, by three moves.

Greedy choices are made per class, so two classes that hold the same data (a tensor and its
reshape, say) may both be computed although one could serve the readers of both, and work may be
repeated in several candidates that none of them alone would pay to share.

- *choose again*: give a class the candidate that is cheapest beside all else that is chosen;
- *force in*: pay for a class that is not needed, let all choose again that could read it; also for
  one that then does without what is computed now, so that it takes the other's place;
- *force out*: let everything that reads a class choose again among what does not read it; also
  together with one that the class reads.

A move is kept when the whole gets cheaper; what failed in one layer is not tried in all that are
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from math import inf

from satura.rewrite.extract.choice_graph import ChoiceGraph, Result
from satura.rewrite.extract.greedy import cheapest_dags, chosen, tree_greedy
from satura.rewrite.extract.picks import Picks
from satura.rewrite.extract.places import looks, nearby, price_lists

MAX_PASSES = 6  # on the small benchmark models one to three are made
UPWARDS = 1  # more was never seen to find more, and in large graphs not even this
LARGE = 3000  # candidates: searching from another start takes more than a quarter of a second
NEAR = 32  # classes that may be freed with a pick: to look at more costs more than it saves
WORTH = 1e-5  # relative; a search that gained less is not repeated


def local_search(
    graph: ChoiceGraph, start: Result | None = None, picks: Mapping[int, int] = {}
) -> Result:
    """Search from all greedy choices; given a `start`, from that, and unless the graph is large
    from the greedy choices by DAGs.

    In large graphs, given `picks` without a cycle replace the greedy picks of unchosen classes.
    Raises ProgramError where a goal cannot be computed.
    """
    is_large = len(graph.homes) > LARGE
    others = picks if picks and is_large else cheapest_dags(graph)
    starts = [start] if start else [tree_greedy(graph)]
    if not start or not is_large:
        starts += [chosen(graph, others), chosen(graph, cheapest_dags(graph, is_last=True))]
    found = [(improve(graph, each, others), each) for each in starts]
    best, before = min(found, key=lambda pair: pair[0].cost)
    while best.cost < before.cost * (1 - WORTH):
        best, before = improve(graph, best, others), best
    return best


def improve(
    graph: ChoiceGraph,
    start: Result,
    others: Mapping[int, int],
    is_short: bool = False,
    near: Iterable[int] | None = None,
) -> Result:
    """Search from a choice.

    `others` are picks without a cycle for the classes that are not chosen. Moves are tried near
    some classes, everywhere if these are None; and once more near what changed. A short search
    tries them once. One that is short, or in a large graph, forces in only what has readers that
    are computed.
    """
    upwards = 0 if is_short or len(graph.homes) > LARGE else UPWARDS
    # What is chosen reads nothing else, so the picks for the other classes close no cycle.
    search = _Search(graph, {**others, **start.choice}, upwards)
    place = None if near is None else nearby(graph, near)
    for _ in range(1 if is_short else MAX_PASSES):
        total, before = search.total, search.state()
        search.pass_over(place)
        if search.total >= total * (1 - WORTH):
            break
        after = search.state()
        place = nearby(graph, [cls for cls in after if before.get(cls) != after[cls]])
    choice = graph.needed(search.picks)
    return Result(choice, graph.cost(choice.values()))


class _Search(Picks):
    """Picks, and the moves that change them. `upwards` is how far a move goes beyond what reads."""

    def __init__(self, graph: ChoiceGraph, picks: Mapping[int, int], upwards: int) -> None:
        super().__init__(graph, picks)
        self.upwards = upwards

    @cached_property
    def prices(self) -> tuple[int, ...]:
        """What the candidates of each class cost, as a number."""
        return price_lists(self.graph)

    def pass_over(self, place: Set[int] | None) -> None:
        """Try all moves on the classes in some place, or on all."""
        self.try_on(self.within(place, self.selected()), self.choose_again)
        for cls in self.within(place, self.neighbours()):
            self.cheapen(cls)
        self.try_on(self.within(place, self.neighbours()), self.force_in)
        self.try_on(self.within(place, self.selected()), self.force_out)

    def within(self, place: Set[int] | None, classes: list[int]) -> list[int]:
        """The given classes that lie in a place."""
        return classes if place is None else [cls for cls in classes if cls in place]

    def neighbours(self) -> list[int]:
        """The classes that are not computed but could be read by a candidate of one that is."""
        readable = self.graph.readable
        found: dict[int, None] = {}
        for cls, uses in enumerate(self.uses):
            if uses:
                found.update(dict.fromkeys(readable[cls]))
        return [cls for cls in found if not self.uses[cls] and cls in self.picks]

    def choose_again(self, cls: int) -> list[int]:
        """Pick the cheapest candidate of a class, if it is computed; the class if it changed."""
        candidates, limit = self.graph.candidates[cls], self.total - self.tolerance
        return [cls] if self.uses[cls] and self.pick_cheapest(cls, candidates, limit) else []

    def choose_without(self, cls: int, other: int) -> bool:
        """Pick the cheapest candidate that does not read `other`; False where there is none."""
        leaves = self.graph.leaves
        others = [k for k in self.graph.candidates[cls] if other not in leaves[k]]
        return self.pick_cheapest(cls, others, inf)

    def choose_with(self, cls: int, other: int) -> bool:
        """Pick the cheapest candidate that reads `other`, if its share of the cost is smaller.

        Of what others read too, a class that no longer reads it has its part to gain.
        """
        readers = self.graph.reading(cls, other)
        shares = {leaf: self.own[leaf] * (1 - 1 / self.uses[leaf]) for leaf in self.below[cls]}
        return self.pick_cheapest(cls, readers, self.total - self.tolerance, shares)

    def pick_cheapest(
        self, cls: int, candidates: Sequence[int], limit: float, shares: Mapping[int, float] = {}
    ) -> bool:
        """Pick the other of some candidates with the least total, if one is below the limit.

        The limit is higher by the shares of what a candidate does not read.
        """
        if not candidates:
            return False
        costs, current, uses = self.graph.costs, self.picks[cls], self.uses
        most = limit + sum(shares.values())
        old, others = self.below[cls], self.total - self.own[cls]
        alone = {leaf for leaf in old if uses[leaf] == 1}
        freed = self.freed(old, (), NEAR) if alone else 0.0
        best, least = current, inf
        for candidate in candidates:
            price, leaves = others + costs[candidate], self.graph.leaves[candidate]
            if price - freed >= least or price - freed >= most:
                break
            allowed = limit
            for leaf, share in shares.items():
                if leaf not in leaves:
                    allowed += share
            if least < allowed:
                allowed = least
            if candidate == current or price - freed >= allowed:
                continue
            # What is new beside the current pick is little, also where all else hangs on that.
            frees = not alone.issubset(leaves)
            new: set[int] = set()
            price += self.price_of(leaves, allowed - price + (freed if frees else 0.0), new)
            if frees and price < inf:
                read = new.union(leaves, *[self.below[leaf] for leaf in new])
                price -= self.freed(old, read)
            if price < allowed and not self.reaches(leaves, cls):
                best, least = candidate, price
        if best != current:
            self.pick(cls, best)
        return best != current

    def try_on(self, classes: Sequence[int], move: Callable[[int], list[int]]) -> None:
        """Try a move on some classes, but of those that look the same, as in equal layers, on none
        after one that failed, unless something has changed around it."""
        found = looks(self.graph, self.prices, classes, self.own, self.uses)
        failed: set[int] = set()
        changed: set[int] = set()
        for cls in classes:
            look = found[cls]
            if look in failed and cls not in changed:
                continue
            if kept := move(cls):
                changed |= nearby(self.graph, kept)
            elif cls not in changed:
                failed.add(look)

    def force_in(self, cls: int) -> list[int]:
        """Try the move *force in* on a class that is not computed; the classes that it changed.

        Also with candidates that do without something that is computed now: its readers may all
        go over to this class, or leave it.
        """
        kept: list[int] = []
        for leaf in (None, *self.graph.leaves[self.picks[cls]]):
            if self.uses[cls]:
                break
            pick = self.picks[cls]
            if leaf is not None and not (self.uses[leaf] and self.cheapen(cls, without=leaf)):
                continue
            before = self.total
            self.take((cls,))
            changed: list[tuple[int, int]] = []
            self.offer(cls, changed, self.upwards)
            self.drop((cls,))
            if self.upwards and not self.is_less(self.total, before):
                if leaf is not None and self.uses[leaf]:
                    self.leave(leaf, changed, self.upwards)
                self.settle(changed)
            if self.keep_or_undo(before, changed):
                kept += [cls, *dict(changed)]
            else:
                self.set_pick(cls, pick)
        return kept

    def settle(self, changed: list[tuple[int, int]]) -> None:
        """Let what changed choose again, beside all else that changed; that is noted, too."""
        for cls in dict(changed):
            old = self.picks[cls]
            if self.choose_again(cls):
                changed.append((cls, old))

    def offer(self, cls: int, changed: list[tuple[int, int]], levels: int) -> None:
        """Let all that could read a class choose it; what changes is noted with its old pick.

        A class that is not computed may get cheaper by it, and is then offered in turn.
        """
        for reader in self.graph.users[cls]:
            if not (levels or self.uses[reader]):
                continue
            old = self.picks.get(reader)
            if old is None:
                continue
            reads = cls in self.below[reader]
            if self.uses[reader]:
                if not reads and self.choose_with(reader, cls):
                    changed.append((reader, old))
            elif reads or self.cheapen(reader, reads=cls):
                if not reads:
                    changed.append((reader, old))
                self.offer(reader, changed, levels - 1)

    def cheapen(self, cls: int, reads: int | None = None, without: int | None = None) -> bool:
        """Give a class that is not computed its cheapest candidate beside all that is; whether that
        is another than before.

        With `reads`, only candidates that read this class count. With `without`, only those below
        which that class is not: the cheapest of them is taken, though it may be dearer than before.
        """
        graph, before = self.graph, self.picks[cls]
        if without is None:
            least = self.own[cls] + self.price_of(self.below[cls], inf) - self.tolerance
            ends: tuple[int, ...] = (cls,)
        else:
            least, ends = inf, (cls, without)
        for candidate in graph.candidates[cls]:
            leaves, price = graph.leaves[candidate], graph.costs[candidate]
            if price >= least:
                break
            if reads is None or reads in leaves:
                price += self.price_of(leaves, least - price)
                if price < least and not self.reaches(leaves, *ends):
                    self.set_pick(cls, candidate)
                    least = price
        return self.picks[cls] != before

    def force_out(self, cls: int) -> list[int]:
        """Try the move *force out* on a class that is computed; the classes that it changed.

        Also together with what it reads: others may read that only until this class is out.
        """
        for leaf in (None, *self.below[cls]) if self.upwards else (None,):
            if not self.uses[cls]:
                break
            before = self.total
            changed: list[tuple[int, int]] = []
            left = self.leave(cls, changed, self.upwards)
            if left and leaf is not None and self.uses[leaf]:
                self.leave(leaf, changed)
            if self.keep_or_undo(before, changed):
                return [cls, *dict(changed)]
        return []

    def leave(self, cls: int, changed: list[tuple[int, int]], levels: int = 0) -> bool:
        """Let all that read a class do without it, if they can; what changes is noted with its old
        pick. What is not computed comes first, where that is looked at: others may need it then.
        What cannot do without it is left in turn by what reads that, so many `levels` up."""
        if cls in self.graph.goals:
            return False
        readers = [user for user in self.graph.users[cls] if cls in self.below[user]]
        for reader in readers if self.upwards else ():
            old = self.picks[reader]
            if not self.uses[reader] and self.cheapen(reader, without=cls):
                changed.append((reader, old))
        for reader in readers:
            if self.uses[reader]:
                old = self.picks[reader]
                if self.choose_without(reader, cls):
                    changed.append((reader, old))
                elif not levels or not self.leave(reader, changed, levels - 1):
                    return False
        return True
