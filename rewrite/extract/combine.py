"""How fragments grow, bottom-up, by one e-node: which forms grow into which is the whole of what
fuses; `forms.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.amounts import (
    Work,
    attention_work,
    contraction_work,
    crossed_work,
    cut_work,
    elementwise_work,
    gathered_run,
    gathered_work,
    lonely_work,
    octet_work,
    pair_work,
    pieces_of_axes,
    planar_work,
    pool_work,
    reduction_work,
    row_work,
    sliced_work,
    winograd_work,
)  # fmt: skip
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.features import Amount, rate
from satura.rewrite.extract.forms import ANCHORED, Fused, inlinable
from satura.rewrite.extract.fragments import Anchor, Fragment
from satura.rewrite.extract.movements import arrival, is_turned, moved_work, runs_read
from satura.rewrite.extract.octets import dequantises, packed_reads, sums_octets, sums_pairs
from satura.rewrite.extract.readable import is_crossed, is_gathered, is_planar, is_readable
from satura.rewrite.extract.shares import NOTHING, in_loops_apart, in_one_loop, sliced, times
from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.types.attributes import Axes, Axis
from satura.rewrite.types.dims import static

# Members of enums by names of their own: to read one takes Python 3.11 a call.
_ELEMENTWISE, _LAYOUT = Kind.ELEMENTWISE, Kind.LAYOUT
_VIEW, _PLAIN, _ROW = Fused.VIEW, Fused.LOOP, Fused.ROW
_SEEN = (Fused.VIEW, Fused.LOOP)
_SPECIAL = (Fused.ROW, *ANCHORED)

_WORK = {"winograd": winograd_work, "attention": attention_work}

MAX_NODES = 96  # a larger fragment compiles slowly and gains little
MAX_MOVES = 48  # one behind another: more may make indices that are longer than any


def combine(
    classes: EClasses,
    cls: int,
    node: ENode,
    parts: tuple[Fragment | None, ...],
    model: CostModel,
) -> Fragment | None:
    """The fragment that computes `node` from `parts`, or None where these do not fuse."""
    kind, dtype = REGISTRY[node.op].kind, classes.types[cls].dtype
    for position, part in enumerate(parts):
        if part is None:
            continue
        if part.closed or part.form not in inlinable(node.op, dtype, position) or cls in part.work:
            return None
    if kind is _ELEMENTWISE and not _agree(parts):
        return None
    work = _work(cls, parts, is_apart=node.op == "concat")
    if len(work) > MAX_NODES:
        return None
    reads = _reads(classes, node, parts)
    if not work.keys().isdisjoint(reads):
        return None  # a program has one node for both, and a node that is read has no anchor in it
    if kind is _ELEMENTWISE:
        work[cls] = elementwise_work(classes, node, cls)
        if node.op == "cast" and _is_sum_of_integers(classes, parts[0]):
            work[cls] = rate("cheap", dtype), work[cls][1]
        return _elementwise(_loop(cls, node, parts, reads, work))
    base = _loop(cls, node, parts, reads, work)
    if kind is _LAYOUT:
        return _layout(classes, base, model.lanes)
    if kind is Kind.REDUCTION:
        return _reduction(classes, base)
    if kind in (Kind.CONTRACTION, Kind.WINDOW):
        return _anchor(classes, base, model)
    if kind is Kind.INDEXING:
        if not is_gathered(classes, node.operands[0], parts[0]):
            return None
        table = parts[0]
        if table is not None and table.node.op == "iota":
            return base  # nothing is read: an index is only checked
        reads = _seen_through(classes, cls, reads)
        is_apart = table is not None and is_turned(table.work.values())
        gathered = (
            ("scattered", classes.bytes[cls]) if is_apart else gathered_work(classes, node, cls)
        )
        if parts[1] is not None and gathered_run(classes, node) > 1:  # computed one by one
            for each, amount in parts[1].work.items():
                work[each] = times(amount, model.lanes)
        return base.but(reads=reads, work={**work, cls: gathered})
    if kind is Kind.ALONE:
        anchor = Anchor(cls, *lonely_work(classes, node, model.lanes))
        return base.but(form=Fused.ALONE, anchor=anchor, closed=True)
    if kind is Kind.HOST:
        return base.but(form=Fused.HOST)
    return base if node.op in ("iota", "extent") else None


def _is_sum_of_integers(classes: EClasses, part: Fragment | None) -> bool:
    """Whether a part is a contraction of integers, of 32 bits in the registers that it leaves."""
    if part is None or REGISTRY[part.node.op].kind is not Kind.CONTRACTION:
        return False
    return classes.types[part.cls].dtype.is_integer


def _loop(
    cls: int, node: ENode, parts: tuple[Fragment | None, ...], reads: dict[int, float],
    work: dict[int, Amount],
) -> Fragment:  # fmt: skip
    """A loop that is all else by default, made as `but` makes one."""
    made = object.__new__(Fragment)
    made.__dict__.update(cls=cls, node=node, parts=parts, form=_PLAIN, reads=reads, work=work)
    return made


def _work(
    cls: int, parts: tuple[Fragment | None, ...], is_apart: bool = False
) -> dict[int, Amount]:
    """What the parts compute, and nothing yet for `cls`: each element of a class once, or for each
    part where loops over the parts are apart."""
    work: dict[int, Amount] = {}
    for part in parts:
        if part is None:
            continue
        if work.keys().isdisjoint(part.work):
            work.update(part.work)
            continue
        for computed, amount in part.work.items():
            held = work.get(computed)
            if held is None:
                work[computed] = amount
            elif is_apart:
                work[computed] = in_loops_apart(held, amount)
            elif held is not amount:
                work[computed] = in_one_loop(held, amount)
    work[cls] = NOTHING
    return work


def _of_short_rows(classes: EClasses, base: Fragment, lanes: int) -> float:
    """How much longer it takes to compute what is repeated along a short last axis: it is computed
    for one element at a time, where vectors would compute as many as they have lanes."""
    if base.node.op != "broadcast":
        return 1.0
    before, after = (classes.sized[each].shape for each in (base.node.operands[0], base.cls))
    if not after or before[-1] == after[-1]:
        return 1.0
    return max(1.0, lanes / max(1, static(after[-1])))


def _reads(classes: EClasses, node: ENode, parts: tuple[Fragment | None, ...]) -> dict[int, float]:
    """What the parts read, and the operands that are leaves; shared with the part if only one."""
    if len(parts) == 1 and parts[0] is not None:
        return parts[0].reads
    reads: dict[int, float] = {}
    for operand, part in zip(node.operands, parts, strict=True):
        if part is None:
            reads[operand] = max(reads.get(operand, 0.0), classes.bytes[operand])
        elif reads.keys().isdisjoint(part.reads):
            reads.update(part.reads)
        else:
            for leaf, amount in part.reads.items():
                reads[leaf] = max(reads.get(leaf, 0.0), amount)
    return reads


def _seen_through(classes: EClasses, cls: int, reads: Mapping[int, float]) -> dict[int, float]:
    """Bytes read per leaf where each element of a class sees one of the leaf at most."""
    elements, types = classes.elements[cls], classes.types
    return {
        leaf: min(amount, elements * types[leaf].dtype.itemsize) for leaf, amount in reads.items()
    }


def _layout(classes: EClasses, base: Fragment, lanes: int) -> Fragment | None:
    part = base.parts[0]
    stored = classes.bytes[base.cls]
    if base.node.op in ("pad", "concat"):
        return base.but(work={**base.work, base.cls: cut_work(classes, base.node, base.cls)})
    if part is None or part.form in _SEEN:
        scale = 1.0
        reads = base.reads
        if base.node.op in ("broadcast", "slice"):
            scale = stored / max(1.0, classes.bytes[base.node.operands[0]])
            scale *= _of_short_rows(classes, base, lanes)
            reads = _seen_through(classes, base.cls, reads)
        form = Fused.VIEW if part is None or part.form is _VIEW else Fused.LOOP
        if form is _VIEW and len(base.work) > MAX_MOVES:
            return None
        work = base.work
        if base.node.op == "slice":
            (slices,) = base.node.attributes
            work = {cls: sliced(each, slices, scale) for cls, each in work.items()}
            work[base.cls] = sliced_work(classes, base.node, base.cls)
        elif scale != 1:
            work = {cls: times(each, scale) for cls, each in work.items()}
        if base.node.op not in ("transpose", "reshape"):
            return base.but(form=form, reads=reads, work=work)
        return _moved(classes, base.but(form=form, work=work), part)
    if part.form is _ROW:
        return _row_layout(classes, base, part)
    return _stored_elsewhere(classes, base, part)


def _moved(classes: EClasses, base: Fragment, part: Fragment | None) -> Fragment:
    """A loop that reads in another order: movements that follow one another cost what the one does
    that they are, as far as a reshape between them does not cut what has moved."""
    before, last, work = part, base, dict(base.work)
    if part is not None and base.form is Fused.VIEW and is_turned(work.values()):
        runs = runs_read(classes, base)
        if runs is not None:  # as where a nearest resize is between two transposes
            return base.but(work={**dict.fromkeys(work, NOTHING), base.cls: ("run", runs)})
    while before is not None and before.stored is not None:
        work[before.cls] = NOTHING
        last, before = before, before.parts[0]
    if last is base and base.node.op == "reshape":
        return base
    result, source, origin = (
        tuple(map(static, classes.sized[cls].shape))
        for cls in (base.cls, base.node.operands[0], last.node.operands[0])
    )
    known = part.stored if part else None
    stored = arrival(base.node.op, base.node.attributes, known, result, source, origin)
    if stored is None:
        return base
    pieces = _pieces(classes, before, origin)
    work[base.cls] = moved_work(stored, origin, result, classes.bytes[base.cls], pieces)
    if is_turned([work[base.cls]]):  # what was gathered in runs is read one by one
        for each, (name, amount) in work.items():
            if name == "gathered":
                work[each] = "scattered", amount
    return base.but(work=work, stored=stored)


def _pieces(classes: EClasses, part: Fragment | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of how many pieces a pad or concat makes each axis of a tensor of some shape, also where axes
    of extent 1 have come or gone since."""
    while part is not None and part.node.op == "reshape":
        part = part.parts[0]
    whole = (1,) * len(shape)
    if part is None or part.node.op not in ("pad", "concat"):
        return whole
    extents, pieces = classes.sized[part.cls].shape, pieces_of_axes(classes, part.node)
    axes = zip(map(static, extents), map(len, pieces), strict=True)
    wide = [(extent, count) for extent, count in axes if extent != 1]
    if [extent for extent, _ in wide] != [extent for extent in shape if extent != 1]:
        return whole
    counts = iter(count for _, count in wide)
    return tuple(1 if extent == 1 else next(counts) for extent in shape)


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
    stored = arrival(
        base.node.op, base.node.attributes, part.stored, shape, source, result, part.anchor.inner
    )
    if stored is None:
        return None
    return base.but(form=part.form, anchor=part.anchor, stored=stored)


def _agree(parts: tuple[Fragment | None, ...]) -> bool:
    """Whether an elementwise op can compute some parts in one dispatch."""
    special = [part for part in parts if part and part.form in _SPECIAL]
    if len(special) < 2:
        return True
    first = special[0]
    if any(part.form is not first.form for part in special):
        return False
    if first.form is _ROW:
        return len({(part.axes, part.full, part.reduced) for part in special}) == 1
    return all(part.anchor is first.anchor and part.stored == first.stored for part in special)


def _elementwise(base: Fragment) -> Fragment:
    """A loop, or what goes on from a row or an anchor."""
    first = next((part for part in base.parts if part and part.form in _SPECIAL), None)
    if first is None:
        return base
    return base.but(
        form=first.form, axes=first.axes, full=first.full, reduced=first.reduced,
        anchor=first.anchor, stored=first.stored,
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
    if part and part.form is _ROW:
        same = part.axes == axes and part.full == full
        if not same or part.reduced:
            return None
    work = {**base.work, base.cls: reduction_work(classes, base.node)}
    row = base.but(form=Fused.ROW, work=work, axes=axes, full=full, reduced=True)
    if part and part.anchor:
        return row.but(anchor=part.anchor)
    return row.but(anchor=Anchor(base.cls, *row_work(classes, base.node, axes)))


def _anchor(classes: EClasses, base: Fragment, model: CostModel) -> Fragment | None:
    for position, part in enumerate(base.parts):
        if part is None:
            continue
        if part.form is Fused.LOOP and not (
            sums_octets(classes, base) or dequantises(classes, base)
        ):
            return None
        if not is_readable(classes, base, position, part):
            return None
    window = base.node.op == "pool"
    done: Callable[[EClasses, ENode, int, int], Work]
    done, inner, reads = partial(contraction_work, in_parts=model.in_parts), -1, base.reads
    if window:
        done = pool_work
    elif base.node.op in _WORK:
        done = _WORK[base.node.op]
    elif sums_octets(classes, base):
        is_paired = sums_pairs(classes, base)
        done = pair_work if is_paired else octet_work
        reads = packed_reads(classes, base, 2 if is_paired else 1)
    elif is_planar(classes, base, base.parts[0]):
        done, inner = planar_work, -2
    elif is_crossed(classes, base, base.parts[0]):
        done, inner = partial(crossed_work, threads=model.threads), -2
    packs = dict.fromkeys(base.work, NOTHING)  # reads in any order, and widens
    return base.but(
        reads=reads,
        work=base.work if window else packs,
        form=Fused.WINDOW if window else Fused.CONTRACTION,
        anchor=Anchor(base.cls, *done(classes, base.node, base.cls, model.lanes), inner),
    )
