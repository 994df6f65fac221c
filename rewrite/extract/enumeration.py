"""Enumeration of fragments: bottom-up over the e-graph, what could compute each class.

There are too many to have all. Every class keeps its best fragments per form (and anchor) for
others to grow from, and every fragment that was grown can be dispatched. The price by which they
compete is their own time and that of everything that they read: of all dispatches in the union of
their leaves' closures, each once. Classes are visited in order of depth until nothing improves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product as cartesian
from math import inf
from typing import TypeAlias

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.folding import Folding
from satura.rewrite.extract.fragments import ANCHORED, INLINED, Fragment, placement
from satura.rewrite.extract.greedy import MOST, members
from satura.rewrite.extract.octets import widens
from satura.rewrite.extract.templates import Instance, Instances, Templates
from satura.rewrite.ops import REGISTRY, Kind

MAX_SWEEPS = 12
IMPROVEMENT = 1e-9  # relative; smaller gains are noise of floating point

Found: TypeAlias = Instance | Fragment


class Enumeration:
    """The fragments found, by class.

    `options[c]` are those that others grow from, with their prices; `dispatches[c]` those that can
    be dispatched: per set of classes that they read, inputs and constants apart, the cheapest and
    its cost. `width` says how many options of one form, and anchor, a class keeps that read
    different classes.
    """

    def __init__(
        self, classes: EClasses, folding: Folding, templates: Templates, width: int = 1
    ) -> None:
        self.classes = classes
        self.model = templates.model
        self.given = folding.given
        self.width = width
        count = len(classes.nodes)
        self.options: list[dict[tuple[object, ...], tuple[float, Instance]]] = [
            {} for _ in range(count)
        ]
        self.dispatches: list[dict[frozenset[int], tuple[float, Found]]] = [
            {} for _ in range(count)
        ]
        self._own = [inf] * count  # seconds of the cheapest dispatch of a class
        self._total = [inf if price is None else price for price in folding.given]
        self._closure = [0] * count  # bit set of the classes dispatched below and here
        self.instances = Instances(classes, templates)
        self._combined: dict[tuple[object, ...], Instance | None] = {}
        self._sweep()

    def fragment(self, found: Found) -> Fragment:
        """What was found as a fragment."""
        return self.instances.fragment(found) if isinstance(found, Instance) else found

    def is_computable(self, cls: int) -> bool:
        """Whether a class is given or can be dispatched."""
        return self._total[cls] < inf

    def priced(self, found: Instance) -> tuple[frozenset[int], float]:
        """What a dispatch reads but for what is given, and its cost with that of constants."""
        return self._priced(found.reads, found.template.seconds)

    def _priced(self, reads: Iterable[int], cost: float) -> tuple[frozenset[int], float]:
        """The same for a dispatch that is known to cost so much without constants."""
        leaves = []
        for leaf in reads:
            price = self.given[leaf]
            if price is None:
                leaves.append(leaf)
            else:
                cost += price
        return frozenset(leaves), cost

    def _admit(self, found: Found, reads: Collection[int], own: float) -> float | None:
        """Add a dispatch, unless its class is given; the price of everything below it.

        None where it reads what nothing computes, or what is computed from its own class.
        """
        cls = found.cls
        below, bits = self._below(reads)
        if bits >> cls & 1 or below == inf:
            return None
        if self.given[cls] is not None:
            return below
        leaves, cost = self._priced(reads, own)
        held = self.dispatches[cls].get(leaves)
        if held is None or cost < held[0]:
            self.dispatches[cls][leaves] = cost, found
        # No cycle can close here: a class never costs less than what it reads, and costs only
        # fall, so reading what depends on this class cannot be cheaper than what it has.
        if below + own < self._total[cls] * (1 - IMPROVEMENT):
            self._own[cls], self._total[cls] = own, below + own
            self._closure[cls] = bits | 1 << cls
        return below

    def _sweep(self) -> None:
        parents = _parents(self.classes)
        order = _by_depth(self.classes)
        dirty = set(order)
        for _ in range(MAX_SWEEPS):
            if not dirty:
                return
            for cls in order:
                if cls in dirty:
                    dirty.discard(cls)
                    if self._visit(cls):
                        dirty.update(parents[cls])

    def _visit(self, cls: int) -> bool:
        """Try all e-nodes of a class over its operands' options; whether anything got better."""
        total, better = self._total[cls], False
        for position, node in enumerate(self.classes.nodes[cls]):
            for parts in self._ways(cls, node):
                found = self._combine(cls, position, parts)
                if found is not None:
                    better |= self._offer(found)
            if node.op == "concat" and all(map(self.is_computable, node.operands)):
                placed = placement(self.classes, cls, node)
                self._admit(placed, placed.reads, placed.seconds(self.classes, self.model))
        return better or self._total[cls] < total

    def _ways(self, cls: int, node: ENode) -> Iterator[tuple[Instance | None, ...]]:
        """Every way to read the operands of `node`: as a leaf, or inlined in one of the forms."""
        kind = REGISTRY[node.op].kind
        if kind is Kind.SOURCE and node.op in ("input", "constant"):
            return
        seen = kind is Kind.LAYOUT and node.op not in ("pad", "concat")
        if self.classes.known[cls] and not seen and not widens(self.classes, cls, node):
            return  # computed at compile time
        ways: list[list[Instance | None]] = []
        for operand in node.operands:
            options: list[Instance | None] = [None] if self.is_computable(operand) else []
            if kind is not Kind.HOST:
                options.extend(option for _, option in self.options[operand].values())
            ways.append(options)
        yield from cartesian(*ways)

    def _combine(
        self, cls: int, position: int, parts: tuple[Instance | None, ...]
    ) -> Instance | None:
        """What parts make, remembered: equal fragments are one object."""
        key = cls, position, parts
        if key not in self._combined:
            self._combined[key] = self.instances.combined(cls, position, parts)
        return self._combined[key]

    def _offer(self, found: Instance) -> bool:
        """Admit a fragment, and keep it to grow from where it is the best of its kind."""
        template = found.template
        below, form = self._admit(found, found.reads, template.seconds), template.form
        if below is None or form not in INLINED:
            return False
        # What it costs in a larger one: its reads and its work, one after the other.
        price = below + template.inlined
        # Operands of one op fuse only when they share their anchor.
        return self._keep((form, found.anchor if form in ANCHORED else None), found, price)

    def _keep(self, kept: tuple[object, object], found: Instance, price: float) -> bool:
        """Keep a fragment among the `width` best of its kind; whether that is a change."""
        options = self.options[found.cls]
        key: tuple[object, ...] = kept
        if self.width > 1:
            key = (*kept, frozenset(leaf for leaf in found.reads if self.given[leaf] is None))
        held = options.get(key)
        if held is None and self.width > 1:
            rivals = [each for each in options if each[:2] == kept]
            if len(rivals) >= self.width:
                dearest = max(rivals, key=lambda each: options[each][0])
                if price >= options[dearest][0] * (1 - IMPROVEMENT):
                    return False
                del options[dearest]
        if held is not None and price >= held[0] * (1 - IMPROVEMENT):
            return False
        options[key] = (price, found)
        return held is None or held[1] is not found

    def _below(self, leaves: Collection[int]) -> tuple[float, int]:
        """Seconds of everything below `leaves`, and the classes dispatched there."""
        if len(leaves) == 1:
            (leaf,) = leaves
            return self._total[leaf], self._closure[leaf]
        bits, total, own = 0, 0.0, self._own
        for leaf in sorted(leaves, key=self._total.__getitem__, reverse=True):
            closure = self._closure[leaf]
            if bits and closure:
                if more := closure & ~bits:
                    total += sum([own[cls] for cls in members(more)])
            else:
                total = min(total + self._total[leaf], MOST) if total else self._total[leaf]
            bits |= closure
        return total, bits


def _parents(classes: EClasses) -> list[list[int]]:
    parents: list[dict[int, None]] = [{} for _ in classes.nodes]
    for cls, nodes in enumerate(classes.nodes):
        for node in nodes:
            for operand in node.operands:
                parents[operand][cls] = None
    return [list(found) for found in parents]


def _by_depth(classes: EClasses) -> list[int]:
    """Classes so that each comes after the operands of its shallowest e-node."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in classes.nodes]
    missing: dict[tuple[int, int], int] = {}
    ready: list[int] = []
    placed = [False] * len(classes.nodes)
    for cls, nodes in enumerate(classes.nodes):
        for position, node in enumerate(nodes):
            operands = dict.fromkeys(node.operands)
            missing[cls, position] = len(operands)
            for operand in operands:
                waiting[operand].append((cls, position))
            if not operands and not placed[cls]:
                placed[cls] = True
                ready.append(cls)
    for cls in ready:
        for key in waiting[cls]:
            missing[key] -= 1
            if not missing[key] and not placed[key[0]]:
                placed[key[0]] = True
                ready.append(key[0])
    return ready
