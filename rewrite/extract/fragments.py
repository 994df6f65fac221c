"""Fragments: the fused dispatches that could compute an e-class.

A *fragment* is a tree of e-nodes that run in one dispatch; its leaves are e-classes that are read
from memory. `combine` grows fragments bottom-up by one e-node; which forms grow into which is the
whole of what fuses:

    VIEW         layout ops over one leaf: an index map, no work of its own
    LOOP         elementwise ops, pads, concats, gathers and index ramps over leaves and views
    ROW          reductions over the same axes, with LOOP work before, between and after
    CONTRACTION  conv or matmul over views, then an epilogue: elementwise ops, and layout ops that
    WINDOW       leave the store a plain strided one; the same with a pool
    PLACEMENT    a concat whose parts are written into its buffer by their producers
    HOST         a host call or one of its results
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.types.attributes import Attribute, Axes, Axis, Groups, ReduceFn, Window
from satura.rewrite.types.dims import Dim, representative
from satura.rewrite.types.index_map import (
    Index,
    coefficient,
    is_affine,
    offset,
    pull,
    push,
    row_major,
    variables,
)  # fmt: skip

Shape = tuple[Dim, ...]

MAX_NODES = 48  # a larger fragment compiles slowly and gains nothing


class Fused(Enum):
    """Form of a fragment; see the module's docstring."""

    VIEW = "view"
    LOOP = "loop"
    ROW = "row"
    CONTRACTION = "contraction"
    WINDOW = "window"
    PLACEMENT = "placement"
    HOST = "host"


ANCHORED = (Fused.CONTRACTION, Fused.WINDOW)
INLINED = (Fused.VIEW, Fused.LOOP, Fused.ROW, Fused.CONTRACTION, Fused.WINDOW)


@dataclass(frozen=True, eq=False)
class Anchor:
    """Stands for one contraction, window or first reduction: fragments that share it are one."""

    cls: int


@dataclass(frozen=True, eq=False)
class Fragment:
    """E-node `node` of class `cls`, computed together with its parts; None is a leaf.

    A class is either read or computed in a fragment, never both. `reads` are bytes read per leaf,
    `work` the elementwise flops per class that is computed here, `anchor_seconds` the time of the
    anchor. `axes` and `full` describe a ROW's reductions; `reduced` says on which side of them the
    result is. `stored` is the index of the result in the anchor's variables once a layout op was
    passed (identity before). A `closed` fragment takes no further work.
    """

    cls: int
    node: ENode
    parts: tuple[Fragment | None, ...]
    form: Fused
    reads: dict[int, float]
    work: Mapping[int, float]
    anchor_seconds: float = 0.0
    anchor: Anchor | None = None
    axes: tuple[int, ...] = ()
    full: tuple[Dim, ...] = ()
    reduced: bool = False
    stored: Index | None = None
    closed: bool = False

    def seconds(self, classes: EClasses, model: CostModel) -> float:
        """Cost of running this fragment as a dispatch that stores its class."""
        if self.form is Fused.PLACEMENT:
            return model.constant + self.anchor_seconds
        moved = sum(self.reads.values()) + classes.bytes[self.cls]
        # Of two equal dispatches the one that stores an earlier tensor can serve more readers; and
        # one that computes is better than one that copies.
        tie = model.constant * (self.size + 10 * (self.form is Fused.VIEW))
        return model.dispatch(moved, self.loop_flops, self.anchor_seconds) + tie

    @property
    def computed(self) -> Set[int]:
        """The classes that are computed here: its own and those of its parts."""
        return self.work.keys()

    @property
    def size(self) -> int:
        """How many classes are computed here."""
        return len(self.work)

    @property
    def loop_flops(self) -> float:
        """The elementwise work: what several parts share is computed once."""
        return sum(self.work.values())

    def but(self, **changes: object) -> Fragment:
        """This fragment with some fields changed, not its parts: `dataclasses.replace` at a tenth
        of its time, which was a quarter of extraction."""
        changed = object.__new__(Fragment)
        changed.__dict__.update(self.__dict__, **changes)
        return changed


def combine(
    classes: EClasses,
    cls: int,
    node: ENode,
    parts: tuple[Fragment | None, ...],
    model: CostModel,
) -> Fragment | None:
    """The fragment that computes `node` from `parts`, or None where these do not fuse."""
    kind = REGISTRY[node.op].kind
    if any(part is not None and (part.closed or cls in part.work) for part in parts):
        return None
    work = _work(cls, parts)
    if len(work) > MAX_NODES:
        return None
    reads = _reads(classes, node, parts)
    base = Fragment(cls, node, parts, Fused.LOOP, reads, work)
    if not base.computed.isdisjoint(reads):
        return None  # a program has one node for both, and a node that is read has no anchor in it
    if kind is Kind.LAYOUT:
        return _layout(classes, base, model)
    if kind is Kind.ELEMENTWISE:
        return _elementwise(classes, base)
    if kind is Kind.REDUCTION:
        return _reduction(classes, base)
    if kind in (Kind.CONTRACTION, Kind.WINDOW):
        return _anchor(classes, base, model)
    if kind is Kind.INDEXING:
        loops = parts[1] is None or parts[1].form in (Fused.VIEW, Fused.LOOP)
        touched = classes.bytes[cls]
        reads = {leaf: min(amount, touched) for leaf, amount in reads.items()}
        gathered = base.but(reads=reads, work={**work, cls: _flops(classes, base)})
        return gathered if parts[0] is None and loops else None
    if kind is Kind.HOST:
        return base.but(form=Fused.HOST) if not any(parts) else None
    return base if node.op in ("iota", "extent") else None


def _work(cls: int, parts: tuple[Fragment | None, ...]) -> dict[int, float]:
    """Flops of the parts, each class once, and none yet for `cls`."""
    work: dict[int, float] = {}
    for part in parts:
        if part is not None:
            if not work:
                work.update(part.work)
                continue
            for computed, flops in part.work.items():
                work[computed] = max(work.get(computed, 0.0), flops)
    work[cls] = 0.0
    return work


def _reads(classes: EClasses, node: ENode, parts: tuple[Fragment | None, ...]) -> dict[int, float]:
    """What the parts read, and the operands that are leaves; shared with the part if only one."""
    if len(parts) == 1 and parts[0] is not None:
        return parts[0].reads
    reads: dict[int, float] = {}
    for operand, part in zip(node.operands, parts, strict=True):
        if part is None:
            reads[operand] = max(reads.get(operand, 0.0), classes.bytes[operand])
            continue
        for leaf, amount in part.reads.items():
            reads[leaf] = max(reads.get(leaf, 0.0), amount)
    return reads


def placement(classes: EClasses, cls: int, node: ENode, model: CostModel) -> Fragment:
    """The concat `node` as a buffer that its operands' producers write into."""
    copied = 0.0
    first, second = node.operands
    outputs = {output for _, output in classes.outputs}
    for operand in node.operands:
        has_home = classes.known[operand] or operand in classes.inputs or operand in outputs
        if has_home or first == second:
            copied += model.dispatch(2 * classes.bytes[operand], 0.0, 0.0)
    reads = dict.fromkeys(node.operands, 0.0)
    return Fragment(
        cls, node, (None, None), Fused.PLACEMENT, reads, {cls: 0.0}, copied, closed=True
    )


def _flops(classes: EClasses, fragment: Fragment) -> float:
    op = REGISTRY[fragment.node.op]
    operands = tuple(classes.types[operand] for operand in fragment.node.operands)
    return op.flops(operands, fragment.node.attributes, classes.types[fragment.cls])


def _layout(classes: EClasses, base: Fragment, model: CostModel) -> Fragment | None:
    part = base.parts[0]
    stored = classes.bytes[base.cls]
    if base.node.op in ("pad", "concat"):
        if any(part and part.form not in (Fused.VIEW, Fused.LOOP) for part in base.parts):
            return None
        # Guarded reads cost a comparison and, at worst, the vectorisation of the loop.
        return base.but(work={**base.work, base.cls: 2 * stored / 4})
    if part is None or part.form in (Fused.VIEW, Fused.LOOP):
        scale = 1.0
        reads = base.reads
        if base.node.op in ("broadcast", "slice"):
            scale = stored / max(1.0, classes.bytes[base.node.operands[0]])
            reads = {leaf: min(amount, stored) for leaf, amount in reads.items()}
        form = Fused.VIEW if part is None or part.form is Fused.VIEW else Fused.LOOP
        work = {cls: flops * scale for cls, flops in base.work.items()}
        return base.but(form=form, reads=reads, work=work)
    if part.form is Fused.ROW:
        return _row_layout(classes, base, part)
    return _stored_elsewhere(classes, base, part)


def _row_layout(classes: EClasses, base: Fragment, part: Fragment) -> Fragment | None:
    """A ROW goes on through the broadcast back to its full shape, and ends in a reshape."""
    result = classes.types[base.cls]
    row = base.but(form=Fused.ROW, axes=part.axes, full=part.full, anchor=part.anchor)
    if base.node.op == "broadcast" and part.reduced and result.shape == part.full:
        return row
    if base.node.op == "reshape":
        return row.but(reduced=part.reduced, closed=True)
    return None


def _stored_elsewhere(classes: EClasses, base: Fragment, part: Fragment) -> Fragment | None:
    """An anchored fragment whose result is stored in another layout, if the store stays affine."""
    if base.node.op not in ("transpose", "reshape") or part.anchor is None:
        return None
    source = classes.types[base.node.operands[0]].shape
    shape = classes.types[base.cls].shape
    result = classes.types[part.anchor.cls].shape
    stored = _moved(base.node.op, base.node.attributes, part.stored, shape, source, result)
    if stored is None:
        return None
    return base.but(
        form=part.form, anchor=part.anchor, anchor_seconds=part.anchor_seconds, stored=stored
    )


@lru_cache(maxsize=1 << 14)
def _moved(
    op: str,
    attributes: tuple[Attribute, ...],
    stored: Index | None,
    shape: Shape,
    source: Shape,
    result: Shape,
) -> Index | None:
    """Where an anchor's result is stored after a layout op from `source` to `shape`.

    None where the store is not affine, or the innermost axis of `result` not contiguous in it.
    """
    identity, ranges = variables(result)
    before = identity if stored is None else stored
    index = push(op, attributes, before, shape, source, ranges)
    position = offset(index, row_major(shape))
    if not is_affine(position):
        return None
    last = f"${len(result) - 1}"
    return index if result[-1] == 1 or coefficient(position, last) == 1 else None


def _elementwise(classes: EClasses, base: Fragment) -> Fragment | None:
    grown = base.but(work={**base.work, base.cls: _flops(classes, base)})
    special = [part for part in base.parts if part and part.form in (Fused.ROW, *ANCHORED)]
    if not special:
        return grown
    first = special[0]
    if any(part.form is not first.form for part in special):
        return None
    if first.form is Fused.ROW:
        sides = {(part.axes, part.full, part.reduced) for part in special}
        if len(sides) > 1:
            return None
        return grown.but(
            form=Fused.ROW, axes=first.axes, full=first.full, reduced=first.reduced,
            anchor=first.anchor,
        )  # fmt: skip
    if any(part.anchor is not first.anchor or part.stored != first.stored for part in special):
        return None
    return grown.but(
        form=first.form, anchor=first.anchor, anchor_seconds=first.anchor_seconds,
        stored=first.stored,
    )  # fmt: skip


def _reduction(classes: EClasses, base: Fragment) -> Fragment | None:
    part = base.parts[0]
    attribute = base.node.attributes[1]
    if isinstance(attribute, Axes):
        axes = attribute.indices
    else:
        assert isinstance(attribute, Axis)
        axes = (attribute.index,)
    full = classes.types[base.node.operands[0]].shape
    if part and part.form not in (Fused.VIEW, Fused.LOOP):
        same = part.form is Fused.ROW and part.axes == axes and part.full == full
        if not same or part.reduced:
            return None
    work = {**base.work, base.cls: _flops(classes, base)}
    row = base.but(form=Fused.ROW, work=work, axes=axes, full=full, reduced=True)
    return row.but(anchor=part.anchor if part and part.anchor else Anchor(base.cls))


def _anchor(classes: EClasses, base: Fragment, model: CostModel) -> Fragment | None:
    for position, part in enumerate(base.parts):
        if part is None:
            continue
        if part.form is not Fused.VIEW or not _readable(classes, base, position, part):
            return None
    window = base.node.op == "pool"
    return base.but(
        form=Fused.WINDOW if window else Fused.CONTRACTION,
        anchor_seconds=_anchor_seconds(classes, base, model), anchor=Anchor(base.cls),
    )  # fmt: skip


def _readable(classes: EClasses, base: Fragment, position: int, part: Fragment) -> bool:
    """Can the anchor read its operand through this view? Offsets must be affine, and a conv needs
    the channels of its input side by side and its weights as a tensor of their own."""
    operand = base.node.operands[position]
    shape = classes.types[operand].shape
    at, _ = view_offset(classes, operand, part)
    if not is_affine(at):
        return False
    if base.node.op != "conv":
        return True
    last = f"${len(shape) - 1}"
    return position == 0 and (shape[-1] == 1 or coefficient(at, last) == 1)


def view_offset(classes: EClasses, cls: int, view: Fragment | None) -> tuple[Dim, dict[str, Dim]]:
    """Offset, in elements of its contiguous leaf, of an element of `cls`; and the ranges."""
    index, ranges = variables(classes.types[cls].shape)
    while view is not None:
        source_class = view.node.operands[0]
        source = classes.types[source_class].shape
        shape = classes.types[view.cls].shape
        index = pull(view.node.op, view.node.attributes, index, shape, source, ranges)
        cls, view = source_class, view.parts[0]
    return offset(index, row_major(classes.types[cls].shape)), ranges


def _anchor_seconds(classes: EClasses, base: Fragment, model: CostModel) -> float:
    flops = _flops(classes, base)
    if base.node.op == "pool":
        function, window = base.node.attributes
        assert isinstance(function, ReduceFn) and isinstance(window, Window)
        # A window over the innermost axis does not vectorise when it strides.
        scalar = window.strides[-1] != 1 if window.rank else False
        return flops / model.window_peak * (8.0 if scalar else 1.0)
    if base.node.op == "conv":
        groups = base.node.attributes[1]
        assert isinstance(groups, Groups)
        inner = representative(classes.types[base.node.operands[1]].shape[-2])
        peak = model.window_peak if groups.count > 1 and inner == 1 else model.contraction_peak
        return flops / peak
    packed = 0.0
    for operand in base.node.operands[1:]:
        if not classes.known[operand]:
            packed = 2 * classes.bytes[operand] / model.bandwidth
    return flops / model.contraction_peak + packed
