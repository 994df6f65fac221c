"""Enumeration of fragments: bottom-up over the e-graph, what could compute each class.

There are too many to have all. Every class keeps its best fragments per form (and anchor) for
others to grow from, one that leaves room to grow among them; and every fragment that was grown can
be dispatched. The price by which they compete is their own time and that of everything that they
read: of all dispatches in the union of their leaves' closures, each once. A wide search reads
outputs, which are stored in any case, and what a narrow one has stored at no price. Where something
got better, what reads it is visited again, the least deep class first, until nothing improves.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain
from itertools import product as cartesian
from math import inf, prod
from typing import TypeAlias, TypeVar

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.choice_graph import NOISE
from satura.rewrite.extract.combine import MAX_MOVES, MAX_NODES
from satura.rewrite.extract.cost import copy_seconds
from satura.rewrite.extract.folding import Folding
from satura.rewrite.extract.forms import ANCHORED, Fused, inlinable
from satura.rewrite.extract.fragments import Fragment, placement
from satura.rewrite.extract.greedy import members
from satura.rewrite.extract.octets import widens
from satura.rewrite.extract.options import Options
from satura.rewrite.extract.order import by_depth, users_of
from satura.rewrite.extract.templates import Instance, Instances, Templates
from satura.rewrite.ops import REGISTRY, Kind

_MAX_VISITS = 12  # of one class, should prices in circles of classes fall for long
_WIDTH_OF_ROWS = 2  # what is cheapest alone may not be so beside what the row reads once more
_MOST_WAYS = 128  # to read the operands of an e-node, in a wide search
# Members of enums by names of their own: to read one takes Python 3.11 a call.
_SOURCE, _ELEMENTWISE, _LAYOUT, _ROW = Kind.SOURCE, Kind.ELEMENTWISE, Kind.LAYOUT, Fused.ROW
_VIEW = Fused.VIEW.value
_VIEWING = (Kind.ELEMENTWISE, Kind.REDUCTION)
_SPECIAL = (_ROW, *ANCHORED)
_MOVING = ("reshape", "transpose")

Found: TypeAlias = Instance | Fragment

_F = TypeVar("_F", Instance, Fragment)


class Enumeration:
    """The fragments found, by class.

    `options[c]` are those that others grow from, with their prices; `dispatches[c]` those that can
    be dispatched: per set of classes that they read, inputs and constants apart, the cheapest and
    its cost; and `placements[c]` the same of its concats as placements. `best[c]` is what the
    cheapest of these, with all below it, reads. All sets are bit sets. `width` says how many
    options of one form, and anchor, a class keeps that read different classes; of rows at least
    two. `stored` is the bit set of the classes that a wide search reads at no price, outputs apart.
    """

    def __init__(
        self, classes: EClasses, folding: Folding, templates: Templates, width: int = 1,
        stored: int = 0,
    ) -> None:  # fmt: skip
        self.classes = classes
        self.model = templates.model
        self.given = folding.given
        self.width = width
        count = len(classes.nodes)
        self.options = [Options() for _ in range(count)]
        self.dispatches: list[dict[int, tuple[float, Instance]]] = [{} for _ in range(count)]
        self.placements: list[dict[int, tuple[float, Fragment]]] = [{} for _ in range(count)]
        self.best: list[int | None] = [None] * count
        self._copies: list[float | None] = [None] * count
        self._own = [inf] * count  # seconds of the cheapest dispatch of a class
        self._total = [inf if price is None else price for price in folding.given]
        self._closure = [0] * count  # bit set of the classes dispatched below and here
        self._nearby: dict[int, tuple[float, int]] = {}  # of `_below`, during one visit
        self._members: dict[int, tuple[int, ...]] = {0: ()}
        self.instances = Instances(classes, templates, folding.given)
        self._users = users_of(classes)
        outputs = {cls for _, cls in classes.outputs}
        self._stored = sum([1 << cls for cls in outputs]) | stored
        self._in_transit = [
            cls not in outputs and all(classes.nodes[user][at].op in _MOVING for user, at in users)
            for cls, users in enumerate(self._users)
        ]
        self._sweep()

    def fragment(self, found: Found) -> Fragment:
        """What was found as a fragment."""
        return self.instances.fragment(found) if isinstance(found, Instance) else found

    def dispatchable(self, cls: int) -> Iterable[tuple[int, tuple[float, Found]]]:
        """What could be dispatched for a class: what it reads, its cost, and what it is."""
        return chain(self.dispatches[cls].items(), self.placements[cls].items())

    def is_computable(self, cls: int) -> bool:
        """Whether a class is given or can be dispatched."""
        return self._total[cls] < inf

    def members(self, leaves: int) -> tuple[int, ...]:
        """The classes of a bit set, remembered: few sets are read by most fragments."""
        found = self._members.get(leaves)
        if found is None:
            found = self._members[leaves] = tuple(members(leaves))
        return found

    def _admit(self, found: Found, leaves: int, seconds: float, given: float) -> float | None:
        """Add a dispatch, unless its class is given; the price of everything below it.

        Of its `seconds`, `given` are for what it reads but its leaves; they are infinite where it
        was struck out. None where one of these is computed from its own class.
        """
        cls = found.cls
        below, bits = self._below(leaves)
        below += given
        if bits >> cls & 1:
            return None
        if self.given[cls] is not None or seconds == inf:
            return below
        if self._in_transit[cls] and self._passes_on(found):
            return below
        if isinstance(found, Instance):
            _hold(self.dispatches[cls], leaves, seconds, found)
        else:
            _hold(self.placements[cls], leaves, seconds, found)
        # No cycle can close here: a class never costs less than what it reads, and costs only
        # fall, so reading what depends on this class cannot be cheaper than what it has.
        own = seconds - given
        if below + own < self._total[cls] * (1 - NOISE):
            self._own[cls], self._total[cls], self.best[cls] = own, below + own, leaves
            self._closure[cls] = bits | 1 << cls
        return below

    def _sweep(self) -> None:
        """Visit each class, and again those above what got better.

        The least deep comes first, so that a class waits for most of what it reads.
        """
        order = by_depth(self.classes)
        depth = {cls: place for place, cls in enumerate(order)}
        dirty: dict[int, set[int]] = {}  # e-nodes that are to be tried, by class
        for cls in order:
            nodes = self.classes.nodes[cls]
            if useful := {at for at, node in enumerate(nodes) if cls not in node.operands}:
                dirty[cls] = useful
        waiting = [depth[cls] for cls in dirty]  # in order, so a heap
        visits = [_MAX_VISITS] * len(order)
        while waiting:
            place = heappop(waiting)
            cls = order[place]
            positions = sorted(dirty.pop(cls))
            visits[place] -= 1
            if visits[place] < 0 or not self._visit(cls, positions):
                continue
            for user, position in self._users[cls]:
                if user in dirty:
                    dirty[user].add(position)
                elif user in depth:
                    dirty[user] = {position}
                    heappush(waiting, depth[user])

    def _passes_on(self, found: Found) -> bool:
        """Whether a class in transit only passes on what is moved here: it is better stored at the
        end of the movement, unless an anchor cannot store it there or no fragment is that long."""
        is_moved = found.node.op in _MOVING and found.form not in ANCHORED
        return is_moved and self._size(found) < MAX_MOVES

    def _size(self, found: Found) -> int:
        return found.size if isinstance(found, Fragment) else len(found.template.computed)

    def _visit(self, cls: int, positions: Iterable[int]) -> bool:
        """Try some e-nodes of a class over their operands' options; whether anything got better."""
        total, better = self._total[cls], False
        self._nearby.clear()
        for position in positions:
            node = self.classes.nodes[cls][position]
            for parts in self._ways(cls, node):
                found = self.instances.combined(cls, position, parts)
                if found is not None and self._offer(found):
                    better = True
            if node.op == "concat" and all(map(self.is_computable, node.operands)):
                self._place(cls, node)
        return better or self._total[cls] < total

    def _place(self, cls: int, node: ENode) -> None:
        """Admit a concat as a placement."""
        placed = placement(self.classes, cls, node)
        prices = {leaf: self.given[leaf] for leaf in placed.reads}
        leaves = sum([1 << leaf for leaf, price in prices.items() if price is None])
        given = sum(price for price in prices.values() if price is not None)
        self._admit(placed, leaves, placed.seconds(self.classes, self.model) + given, given)

    def _ways(self, cls: int, node: ENode) -> Iterable[tuple[Instance | None, ...]]:
        """Every way to read the operands of `node`: as a leaf, or inlined in one of the forms."""
        op, classes = node.op, self.classes
        kind = REGISTRY[op].kind
        if kind is _SOURCE and op in ("input", "constant"):
            return ()
        seen = kind is _LAYOUT and op not in ("pad", "concat")
        if classes.known[cls] and not seen and not widens(classes, cls, node):
            return ()  # computed at compile time
        ways: list[list[Instance | None]] = []
        dtype, wide = classes.types[cls].dtype, self.width > 1
        special = 0
        for position, operand in enumerate(node.operands):
            options: list[Instance | None] = [None] if self._total[operand] < inf else []
            if held := self.options[operand]:
                forms = inlinable(op, dtype, position)
                is_special = False
                for _, each in sorted(held.values(), key=_price) if wide else held.values():
                    template = each.template
                    if template.form in forms and not template.closed:
                        options.append(each)
                        is_special = is_special or template.form in _SPECIAL
                special += is_special
                is_seen = len(options) > 1 and kind in _VIEWING and self._is_seen(operand)
                if is_seen and self._have_room(node.operands):
                    del options[0]
            ways.append(options)
        while wide and prod(map(len, ways)) > _MOST_WAYS:
            max(ways, key=len).pop()  # the dearest
        found = cartesian(*ways)
        return filter(agree, found) if special > 1 and kind is _ELEMENTWISE else found

    def _have_room(self, operands: Iterable[int]) -> bool:
        """Whether the views of operands, and what reads them, are not too much for a fragment."""
        held = (self.options[operand].get(_VIEW) for operand in operands)
        return sum(self._size(view) for _, view in filter(None, held)) < MAX_NODES

    def _is_seen(self, cls: int) -> bool:
        """Whether storing a class takes a copy, and what is copied can be read in its place; of
        constants, what takes less to be stored."""
        held = self.options[cls].get(_VIEW)
        if held is None or held[1].template.prices.work:
            return False
        price, view = held
        constant = self.given[cls]
        if constant is not None and not view.leaves:
            return view.given <= constant
        return price <= self._total[cls]

    def _offer(self, found: Instance) -> bool:
        """Admit a fragment, and keep it to grow from where it is the best of its kind."""
        template, given = found.template, found.given
        seconds, inlined, work, kind = template.prices
        below = self._admit(found, found.leaves, seconds + given, given)
        if below is None or not template.grows:
            return False
        cls = found.cls
        if below + work > self._total[cls] and self._is_hopeless(found, below):
            return False
        # What it costs in a larger one: its reads and its work, one after the other.
        price = below + inlined
        # Operands of one op fuse only when they share their anchor.
        kept = kind or found.anchor
        width = self.width
        if template.form is _ROW and width < _WIDTH_OF_ROWS:
            width = _WIDTH_OF_ROWS
        if width > 1 and found.leaves & self._stored:
            price = self._below(found.leaves & ~self._stored)[0] + given + inlined
        return self.options[cls].keep(kept, found, price, width)

    def _is_hopeless(self, found: Instance, below: float) -> bool:
        """Whether a fragment takes longer in a larger one than its class takes to be computed,
        stored and read beside all that it reads: as is cheapest, or from what is there by then."""
        cls, work = found.cls, found.template.prices.work
        limit = self._saved(cls)
        if below + work <= self._total[cls] + limit:
            return False
        absent = ~self._below(found.leaves)[1]
        more = members(self._closure[cls] & absent)
        if work > limit + sum(map(self._own.__getitem__, more)):
            return True
        for leaves, (own, _) in self.dispatchable(cls):
            if work > limit + own and not leaves & absent:
                return True
        return False

    def _saved(self, cls: int) -> float:
        """The most that is saved by neither storing nor reading a class."""
        saved = self._copies[cls]
        if saved is None:
            dtype, size = self.classes.types[cls].dtype.value, self.classes.bytes[cls]
            saved = self._copies[cls] = copy_seconds(self.model, dtype, size)
        return saved

    def _below(self, leaves: int) -> tuple[float, int]:
        """Seconds of everything below `leaves`, and the classes dispatched there; found out once
        in a visit."""
        nearby = self._nearby.get(leaves)
        if nearby is None:
            nearby = self._nearby[leaves] = self._summed_below(leaves)
        return nearby

    def _summed_below(self, leaves: int) -> tuple[float, int]:
        totals, closures, own = self._total, self._closure, self._own
        found = self.members(leaves)
        if len(found) == 1:
            return totals[found[0]], closures[found[0]]
        total, bits = 0.0, 0
        for leaf in sorted(found, key=totals.__getitem__, reverse=True):
            if not bits:
                total, bits = totals[leaf], closures[leaf]
            elif more := closures[leaf] & ~bits:
                total += sum(map(own.__getitem__, members(more)))
                bits |= more
        return total, bits


def _price(option: tuple[float, Instance]) -> float:
    return option[0]


def agree(parts: tuple[Instance | None, ...]) -> bool:
    """Whether parts of an elementwise op may fuse: what is anchored in one place, or only rows."""
    special = [part for part in parts if part and part.template.form in _SPECIAL]
    return len(special) < 2 or (
        len({part.template.form for part in special}) == 1
        and (special[0].form is _ROW or len({id(part.anchor) for part in special}) == 1)
    )


def _hold(held: dict[int, tuple[float, _F]], leaves: int, seconds: float, found: _F) -> None:
    """Hold what was found, unless what reads the same costs no more."""
    if leaves not in held or seconds < held[leaves][0]:
        held[leaves] = seconds, found
