"""Templates: fragments that look equal, as those of equal layers do, are combined and priced once.

What `combine` makes of an e-node and its parts depends on the op and its attributes, on the types
of the classes, on which of them are constants, and on where one class occurs twice; their numbers
do not matter. So a template stands for all fragments that agree in these, in every e-graph of a
saturation, and one of them is an instance: the template and its classes. The fragment itself is
built where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.combine import MAX_NODES, combine
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.forms import ANCHORED, INLINED, Fused
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.greedy import members
from satura.rewrite.extract.octets import is_dequantised, octets
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType

_OWN = -1
_Key: TypeAlias = tuple[int, ...]


class Prices(NamedTuple):
    """What a fragment costs.

    It costs `seconds` as a dispatch of its own, constants apart, and `inlined` in a larger one, of
    which `work` is computing. Of fragments of one class that share their `kind`, and their anchor
    where the kind is None, one is the best to grow from.
    """

    seconds: float
    inlined: float
    work: float
    kind: str | None


@dataclass(frozen=True, eq=False)
class Template:
    """What equal fragments have in common.

    `reads` and `computed` are the places of its leaves, and of what it computes, among the classes
    of an instance; `anchor` is the part that has its anchor, None where there is none, and `inner`
    the axis along which that stores neighbours where it is made here, else None. A larger one can
    only be made where it `grows`. `first` is the fragment of `classes` that it was made for. None
    is dispatched of those that are struck out.
    """

    number: int
    first: Fragment
    classes: EClasses
    model: CostModel
    form: Fused
    anchor: int | None
    inner: int | None
    reads: tuple[int, ...]
    computed: tuple[int, ...]
    grows: bool
    closed: bool
    is_struck: bool = False

    @cached_property
    def prices(self) -> Prices:
        """The prices, computed on demand: most templates are only parts of others."""
        first, model = self.first, self.model
        seconds, inlined, work = first.prices(self.classes, model)
        memory, work = inlined - work - first.size * model.constant, work / model.threads
        if seconds < max(work, memory / model.streams):
            # The model has `seconds` of its own, of which the rates say nothing.
            inlined, work = min(inlined, seconds), min(work, seconds)
        return Prices(
            inf if self.is_struck else seconds, inlined if self.grows else inf, work, self._kind
        )

    @cached_property
    def longer_in_rows(self) -> float:
        """Seconds that a loop takes longer inside a row, or beside an anchor, than on its own."""
        return self.first.longer_in_rows(self.model) / self.model.threads if self.grows else 0.0

    @property
    def _kind(self) -> str | None:
        """What a fragment competes with others in: rows fuse only with those of the same elements,
        and contractions read only some loops, those of octets, which stand beside cheaper ones."""
        first, form = self.first, self.form
        if form in ANCHORED:
            return None
        if form is Fused.ROW:
            return f"{form.value} {first.axes} of {first.full}"
        seen = self.classes, first.cls, first
        is_read = form is Fused.LOOP and (octets(*seen) or is_dequantised(*seen))
        return "octets" if is_read else form.value


@dataclass(slots=True, eq=False)
class Instance:
    """One fragment: a template, and where it stands.

    `node` is the e-node at `position` of class `cls`. It reads `leaves` and, for `given` seconds,
    what is there without a dispatch. Instances that share `anchor` share that of the fragments.
    `inner` is the set of the classes that are computed here, `outer` that of those that are read;
    all sets are bit sets.
    """

    template: Template
    cls: int
    position: int
    node: ENode
    parts: tuple[Instance | None, ...]
    inner: int
    outer: int
    leaves: int
    given: float
    anchor: object = None
    fragment: Fragment | None = None
    _classes: tuple[int, ...] | None = None

    @property
    def form(self) -> Fused:
        """How it is computed."""
        return self.template.form

    @property
    def seconds(self) -> float:
        """Its cost as a dispatch, including reads of inputs and constants."""
        return self.template.prices.seconds + self.given

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes that stand in the template, its own first."""
        if self._classes is None:
            self._classes = _standing(self.cls, self.node, self.parts)
        return self._classes

    @property
    def reads(self) -> list[int]:
        """The classes that it reads."""
        return [self.classes[place] for place in self.template.reads]

    @property
    def computed(self) -> list[int]:
        """The classes that are computed here: its own and those of its parts."""
        return [self.classes[place] for place in self.template.computed]


def _standing(cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> tuple[int, ...]:
    """A class, and those that stand in some parts or are read beside them, each once."""
    if len(parts) == 1:
        part = parts[0]
        return (cls, *part.classes) if part else (cls, *node.operands)
    return tuple(dict.fromkeys(_mentioned(cls, node, parts)))


def _mentioned(cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> list[int]:
    mentioned = [cls]
    for operand, part in zip(node.operands, parts, strict=True):
        if part is None:
            mentioned.append(operand)
        else:
            mentioned += part.classes
    return mentioned


class Templates:
    """The templates under one cost model; None stands for what does not fuse."""

    def __init__(self, model: CostModel) -> None:
        self.model = model
        self.found: dict[_Key, Template | None] = {}
        self.most: dict[Fused, int] = {}  # classes of a dispatch, where larger ones are struck out
        self._kinds: dict[tuple[TensorType, bool], int] = {}
        self._ops: dict[tuple[int, str, int, tuple[Attribute, ...]], int] = {}

    def kind(self, type_: TensorType, is_known: bool) -> int:
        """A number for classes of this type; constants have other ones."""
        return self._kinds.setdefault((type_, is_known), len(self._kinds))

    def op(self, kind: int, node: ENode) -> int:
        """A number for e-nodes with this op and these attributes, of classes of one kind."""
        key = kind, node.op, len(node.operands), node.attributes
        return self._ops.setdefault(key, len(self._ops))

    def strike(self, template: Template) -> None:
        """Dispatch no fragment of this template; larger ones still grow from it."""
        self._strike_all(lambda each: each is template)

    def strike_larger(self, template: Template) -> None:
        """Dispatch no fragment of its form with more than three quarters of its size."""
        most = max(1, len(template.computed) * 3 // 4)
        self.most[template.form] = min(most, self.most.get(template.form, most))
        self._strike_all(lambda each: self.is_too_large(each.form, len(each.computed)))

    def is_too_large(self, form: Fused, size: int) -> bool:
        """Whether a fragment is one of those that `strike_larger` leaves out."""
        return size > self.most.get(form, MAX_NODES)

    def _strike_all(self, is_struck: Callable[[Template], bool]) -> None:
        found = self.found.items()
        struck = {
            key: replace(each, is_struck=True) for key, each in found if each and is_struck(each)
        }
        self.found |= struck


class Instances:
    """The fragments of one e-graph; `given` are the prices of what needs no dispatch."""

    def __init__(
        self, classes: EClasses, templates: Templates, given: Sequence[float | None]
    ) -> None:
        self.classes = classes
        self.templates = templates
        self.given = given
        pairs = zip(classes.types, classes.known, strict=True)
        kinds = [templates.kind(*pair) for pair in pairs]
        self._read = [-1 - kind for kind in kinds]  # stands for a class that is read
        self._ops = [
            tuple([templates.op(kind, node) for node in nodes])
            for kind, nodes in zip(kinds, classes.nodes, strict=True)
        ]
        self._bits = [1 << cls for cls in range(len(kinds))]
        self._free = sum([self._bits[cls] for cls, price in enumerate(given) if price is not None])
        self._prices: dict[int, float] = {}  # of sets of given classes
        self._combined: dict[tuple[object, ...], Instance | None] = {}
        self._changed: dict[tuple[Instance, int, Instance | None], Instance | None] = {}

    def combined(
        self, cls: int, position: int, parts: tuple[Instance | None, ...]
    ) -> Instance | None:
        """The e-node at a position of a class over some parts, None where these do not fuse.

        Equal fragments are one object.
        """
        key = cls, position, parts
        if key not in self._combined:
            self._combined[key] = self._made(cls, position, parts)
        return self._combined[key]

    def with_part(self, whole: Instance, cls: int, part: Instance | None) -> Instance | None:
        """`whole` with `part` where it reads or computes `cls`; where that is None it reads `cls`.

        Parts that it shares stay shared: they have one anchor. None where this does not fuse.
        """
        key = whole, cls, part  # most of what is changed is part of several fragments
        if key not in self._changed:
            self._changed[key] = self._with_part(whole, cls, part)
        return self._changed[key]

    def _with_part(self, whole: Instance, cls: int, part: Instance | None) -> Instance | None:
        parts: list[Instance | None] = []
        for operand, below in zip(whole.node.operands, whole.parts, strict=True):
            if operand == cls:
                parts.append(part)
            elif below is None or not (below.inner | below.outer) >> cls & 1:
                parts.append(below)
            else:
                changed = self.with_part(below, cls, part)
                if changed is None:
                    return None
                parts.append(changed)
        return self.combined(whole.cls, whole.position, tuple(parts))

    def _made(self, cls: int, position: int, parts: tuple[Instance | None, ...]) -> Instance | None:
        node, own = self.classes.nodes[cls][position], self._bits[cls]
        if len(parts) == 1 and parts[0] is not None:  # most: nothing can occur twice
            only = parts[0]
            if (only.inner | only.outer) & own:
                return None
            inner, outer = own | only.inner, only.outer
            size = 1 + len(only.template.computed)
            key = [self._ops[cls][position], only.template.number]
            leaves, given = only.leaves, only.given
        else:
            inner, outer, both, size, key = own, 0, 0, 1, [self._ops[cls][position]]
            for operand, part in zip(node.operands, parts, strict=True):
                if part is None:
                    bit = self._bits[operand]
                    both |= outer & bit
                    outer |= bit
                    key.append(self._read[operand])
                    continue
                both |= (inner | outer) & (part.inner | part.outer)
                inner |= part.inner
                outer |= part.outer
                size += len(part.template.computed)
                key.append(part.template.number)
            # As `combine` would: most of what is refused computes what it reads, or too much.
            if inner & outer or both & own:
                return None
            if both:
                key += self._pattern(cls, node, parts)
            leaves, given = self._outside(outer)
        if size > MAX_NODES and inner.bit_count() > MAX_NODES:
            return None
        found, made = self.templates.found, tuple(key)
        known = found.get(made)
        fragment, standing = None, None
        if known is None:
            fragment = None if made in found else self._built(cls, node, parts)
            if fragment is None:
                found[made] = None
                return None
            standing = _standing(cls, node, parts)
            known = found[made] = self._template(fragment, standing, parts)
        anchor: object = None
        if known.anchor is not None:
            part = parts[known.anchor] if known.anchor != _OWN else None
            anchor = part.anchor if part else object()  # itself would be a cycle
        return Instance(
            known, cls, position, node, parts, inner, outer, leaves, given, anchor,
            fragment, standing,
        )  # fmt: skip

    def _pattern(self, cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> list[int]:
        """Where classes, and anchors, occur twice."""
        mentioned = _mentioned(cls, node, parts)
        place = {each: number for number, each in enumerate(dict.fromkeys(mentioned))}
        anchors = [part.anchor for part in parts if part and part.anchor is not None]
        shared = map(anchors.index, anchors) if len(anchors) > 1 else ()
        return [*map(place.__getitem__, mentioned), *shared]

    def _outside(self, outer: int) -> tuple[int, float]:
        """The classes of a set that are dispatched, and the price of its other ones."""
        free = outer & self._free
        if not free:
            return outer, 0.0
        given = self._prices.get(free)
        if given is None:
            given = self._prices[free] = sum([self.given[each] or 0.0 for each in members(free)])
        return outer ^ free, given

    def fragment(self, instance: Instance) -> Fragment:
        """The fragment itself, the same at every call: the first of its template, elsewhere."""
        if instance.fragment is None:
            template, place = instance.template, instance.classes.__getitem__
            first, anchor = template.first, None
            parts = tuple([part and self.fragment(part) for part in instance.parts])
            if template.anchor == _OWN:
                assert first.anchor is not None
                anchor = replace(first.anchor, cls=instance.cls)
            elif template.anchor is not None:
                shared = parts[template.anchor]
                anchor = shared.anchor if shared else None
            instance.fragment = first.but(
                cls=instance.cls, node=instance.node, parts=parts, anchor=anchor,
                reads=dict(zip(map(place, template.reads), first.reads.values(), strict=True)),
                work=dict(zip(map(place, template.computed), first.work.values(), strict=True)),
            )  # fmt: skip
        return instance.fragment

    def _built(self, cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> Fragment | None:
        real = tuple(None if part is None else self.fragment(part) for part in parts)
        return combine(self.classes, cls, node, real, self.templates.model)

    def _template(
        self, fragment: Fragment, inside: Sequence[int], parts: tuple[Instance | None, ...]
    ) -> Template:
        anchor, inner = None, None
        if fragment.anchor is not None:
            of_parts = [part and part.fragment and part.fragment.anchor for part in parts]
            shared = [at for at, each in enumerate(of_parts) if each is fragment.anchor]
            anchor = shared[0] if shared else _OWN
            inner = None if shared else fragment.anchor.inner
        place = dict(zip(inside, range(len(inside)), strict=True)).__getitem__
        return Template(
            len(self.templates.found), fragment, self.classes, self.templates.model, fragment.form,
            anchor, inner, tuple(map(place, fragment.reads)), tuple(map(place, fragment.work)),
            fragment.form in INLINED, fragment.closed,
            self.templates.is_too_large(fragment.form, fragment.size),
        )  # fmt: skip
