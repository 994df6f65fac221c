"""Greedy extraction of dispatches, bottom-up over the e-graph.

Every class keeps its best fragment per form (and anchor), and the one it would be *materialised*
by. The price of a fragment is its own seconds plus those of everything it reads: of all dispatches
in the union of its leaves' closures (DAG-greedy: sharing is exact), or of the leaves' trees
(tree-greedy: shared work is paid once per use). Classes are visited in order of depth until nothing
improves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product as cartesian
from math import inf

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.candidates import ANCHORED, INLINED, Fragment, Fused, combine, placement
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.ops import REGISTRY, Kind

Kept = tuple[Fused, int | None]

MAX_SWEEPS = 12
IMPROVEMENT = 1e-9  # relative; smaller gains are noise of floating point


class Choice:
    """The state of a greedy extraction: what each class would be computed by."""

    def __init__(self, classes: EClasses, model: CostModel, shared: bool) -> None:
        self.classes = classes
        self.model = model
        self.shared = shared
        count = len(classes.nodes)
        self.chosen: list[Fragment | None] = [None] * count
        self.folded: list[ENode | None] = [None] * count
        self.seconds = [inf] * count  # of the class's own dispatch
        self.total = [inf] * count  # with everything below it
        self.closure = [0] * count  # bit set of the classes dispatched below and here
        self.options: list[dict[Kept, tuple[float, Fragment]]] = [{} for _ in range(count)]
        self._fragments: dict[tuple[object, ...], tuple[object, Fragment | None]] = {}

    def is_given(self, cls: int) -> bool:
        """True for inputs and constants: nothing is dispatched for them."""
        return self.total[cls] < inf and not self.closure[cls]

    def price_of(self, leaves: Collection[int]) -> tuple[float, int]:
        """Seconds of everything below `leaves`, and the classes dispatched there."""
        bits, total = 0, 0.0
        if len(leaves) == 1:
            (leaf,) = leaves
            return min(self.total[leaf], 1e300), self.closure[leaf]
        for leaf in sorted(leaves, key=self.total.__getitem__, reverse=True):
            if not self.shared or not bits:
                total = min(total + self.total[leaf], 1e300)
                bits |= self.closure[leaf]
                continue
            new = self.closure[leaf] & ~bits
            if not self.closure[leaf]:
                total += self.total[leaf]
            total += sum(self.seconds[cls] for cls in members(new))
            bits |= new
        return total, bits

    def fragment(
        self, cls: int, position: int, node: ENode, parts: tuple[Fragment | None, ...]
    ) -> Fragment | None:
        """`combine`, remembered: equal fragments are one object."""
        key = (cls, position, *map(id, parts))
        if key not in self._fragments:
            fragment = combine(self.classes, cls, node, parts, self.model)
            self._fragments[key] = (parts, fragment)  # the parts stay alive: their ids are the key
        return self._fragments[key][1]

    def reaches(self, start: Iterable[int], goal: int) -> bool:
        """Whether the dispatches chosen below `start` include that of `goal`."""
        seen = set(start)
        stack = list(seen)
        while stack:
            cls = stack.pop()
            if cls == goal:
                return True
            fragment = self.chosen[cls]
            for leaf in fragment.reads if fragment else ():
                if leaf not in seen:
                    seen.add(leaf)
                    stack.append(leaf)
        return False


def kept_as(fragment: Fragment) -> Kept:
    """Which options a fragment competes with: those of its form and, where it has an epilogue, of
    its anchor, since operands of one op fuse only when they share it."""
    shared = fragment.anchor if fragment.form in ANCHORED else None
    return fragment.form, shared.cls if shared else None


def members(bits: int) -> Iterator[int]:
    """Positions of the set bits."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def choose(classes: EClasses, model: CostModel, shared: bool = True) -> Choice:
    """Choose a dispatch for every class that can be computed.

    `shared` selects DAG-greedy; otherwise tree-greedy. Raises ProgramError where an output cannot
    be computed.
    """
    choice = Choice(classes, model, shared)
    parents = _parents(classes)
    _fold_constants(choice, parents)
    for cls in classes.inputs:
        choice.seconds[cls] = choice.total[cls] = 0.0
    order = _by_depth(classes)
    dirty = set(order)
    for _ in range(MAX_SWEEPS):
        if not dirty:
            break
        for cls in order:
            if cls in dirty:
                dirty.discard(cls)
                if _improve(choice, cls):
                    dirty.update(parents[cls])
    for name, cls in classes.outputs:
        if choice.total[cls] == inf:
            raise ProgramError(f"output '{name}' cannot be computed from any e-node of its class")
    return choice


def _improve(choice: Choice, cls: int) -> bool:
    """Try all e-nodes of `cls` over its operands' options; True when something got better."""
    classes = choice.classes
    better = False
    for position, node in enumerate(classes.nodes[cls]):
        for parts in _parts(choice, cls, node):
            fragment = choice.fragment(cls, position, node, parts)
            if fragment is not None:
                better |= _offer(choice, cls, fragment)
        if node.op == "concat" and all(choice.total[x] < inf for x in node.operands):
            better |= _offer(choice, cls, placement(classes, cls, node, choice.model))
    return better


def _parts(choice: Choice, cls: int, node: ENode) -> Iterator[tuple[Fragment | None, ...]]:
    """Every way to read the operands of `node`: as a leaf, or inlined in one of the forms."""
    kind = REGISTRY[node.op].kind
    if kind is Kind.SOURCE and node.op in ("input", "constant"):
        return
    if choice.classes.known[cls] and (kind is not Kind.LAYOUT or node.op in ("pad", "concat")):
        return  # computed at compile time
    ways: list[list[Fragment | None]] = []
    for operand in node.operands:
        options: list[Fragment | None] = []
        if choice.total[operand] < inf:
            options.append(None)
        if kind is not Kind.HOST:
            options.extend(fragment for _, fragment in choice.options[operand].values())
        ways.append(options)
    yield from cartesian(*ways)


def _offer(choice: Choice, cls: int, fragment: Fragment) -> bool:
    """Keep `fragment` where it is the best of its form, and as the class's dispatch if it wins."""
    below, bits = choice.price_of(fragment.reads)
    if bits >> cls & 1 or below == inf:
        return False
    better = False
    model = choice.model
    if fragment.form in INLINED:
        read = sum(fragment.reads.values()) / model.bandwidth
        price = below + read + fragment.loop_flops / model.elementwise_peak
        price += fragment.anchor_seconds + fragment.size * model.constant
        kept = kept_as(fragment)
        held = choice.options[cls].get(kept)
        if held is None or price < held[0] * (1 - IMPROVEMENT):
            choice.options[cls][kept] = (price, fragment)
            better = held is None or held[1] is not fragment
    if choice.is_given(cls):
        return better
    own = fragment.seconds(choice.classes, model)
    total = below + own
    # No cycle can close here: a class never costs less than what it reads, and costs only fall, so
    # reading something that depends on this class cannot be cheaper than what it has.
    if total < choice.total[cls] * (1 - IMPROVEMENT):
        choice.chosen[cls] = fragment
        choice.seconds[cls], choice.total[cls] = own, total
        choice.closure[cls] = bits | 1 << cls
        better = True
    return better


def _fold_constants(choice: Choice, parents: list[list[int]]) -> None:
    """Price the classes that are computed at compile time, and choose how."""
    classes, model = choice.classes, choice.model
    queue = [cls for cls in range(len(classes.nodes)) if classes.known[cls]]
    while queue:
        waiting: dict[int, None] = {}
        for cls in queue:
            for node in classes.nodes[cls]:
                known = all(classes.known[operand] for operand in node.operands)
                if node.op in ("host", "item") or not known:
                    continue
                if node.op != "constant" and not node.operands:
                    continue
                price = sum(choice.total[operand] for operand in node.operands)
                stored = classes.bytes[cls] * model.constant_byte
                price += model.constant + stored if node.operands else stored
                if price < choice.total[cls] * (1 - IMPROVEMENT):
                    choice.total[cls] = price
                    choice.folded[cls] = node
                    waiting.update((p, None) for p in parents[cls] if classes.known[p])
        queue = list(waiting)
    for cls in range(len(classes.nodes)):
        if choice.folded[cls] is not None:
            choice.seconds[cls] = 0.0


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
