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
from math import inf
from typing import TypeAlias

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.forms import ANCHORED, INLINED, Fused
from satura.rewrite.extract.fragments import MAX_NODES, Fragment, combine
from satura.rewrite.extract.greedy import members
from satura.rewrite.extract.octets import is_dequantised, octets
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType

_OWN = -1
_Key: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What equal fragments have in common.

    `reads` and `computed` are the places of its leaves, and of what it computes, among the classes
    of an instance; `anchor` is the part that has its anchor, None where there is none, and `inner`
    the axis along which that stores neighbours where it is made here, else None. It costs
    `seconds` as a dispatch of its own, constants apart, and `inlined` in a larger one, which can
    only be made where it `grows`. Of fragments of one class that share their `kind`, and their
    anchor where the kind is None, one is the best to grow from.
    """

    number: int
    form: Fused
    anchor: int | None
    inner: int | None
    reads: tuple[int, ...]
    computed: tuple[int, ...]
    seconds: float
    inlined: float
    work: float
    grows: bool
    closed: bool
    kind: str | None


@dataclass(slots=True, eq=False)
class Instance:
    """One fragment: a template, and where it stands.

    `node` is the e-node at `position` of class `cls`. It reads `leaves` and, for `given` seconds,
    what is there without a dispatch; `seconds` are its cost with these. Instances that share
    `anchor` share the anchor of the fragments. `inner` is the set of the classes that are computed
    here, `outer` that of those that are read; all sets are bit sets.
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
    seconds: float
    anchor: object = None
    fragment: Fragment | None = None
    _classes: tuple[int, ...] | None = None

    @property
    def form(self) -> Fused:
        """How it is computed."""
        return self.template.form

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
        """Dispatch no fragment of its form that is of more than three quarters of its size."""
        most = max(1, len(template.computed) * 3 // 4)
        self.most[template.form] = min(most, self.most.get(template.form, most))
        self._strike_all(self.is_too_large)

    def is_too_large(self, template: Template) -> bool:
        """Whether it is one of those that `strike_larger` leaves out."""
        return len(template.computed) > self.most.get(template.form, MAX_NODES)

    def _strike_all(self, is_struck: Callable[[Template], bool]) -> None:
        found = self.found.items()
        struck = {
            key: replace(each, seconds=inf) for key, each in found if each and is_struck(each)
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
        self._prices: dict[int, float] = {0: 0.0}  # of sets of given classes

    def combined(
        self, cls: int, position: int, parts: tuple[Instance | None, ...]
    ) -> Instance | None:
        """The e-node at a position of a class over some parts, None where these do not fuse."""
        node = self.classes.nodes[cls][position]
        inner, outer, both, size, anchors = self._bits[cls], 0, 0, 1, []
        key = [self._ops[cls][position]]
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
            template = part.template
            size += len(template.computed)
            key.append(template.number)
            if part.anchor is not None:
                anchors.append(part.anchor)
        # As `combine` would: most of what is refused computes what it reads, or too much.
        if inner & outer or both & self._bits[cls]:
            return None
        if size > MAX_NODES and inner.bit_count() > MAX_NODES:
            return None
        if both:
            mentioned = _mentioned(cls, node, parts)
            place = {each: number for number, each in enumerate(dict.fromkeys(mentioned))}
            key += [place[each] for each in mentioned]
        if len(anchors) > 1:
            key += [anchors.index(anchor) for anchor in anchors]
        found, made = self.templates.found, tuple(key)
        fragment, standing, known = None, None, found.get(made)
        if known is None:
            if made in found:
                return None
            fragment = self._built(cls, node, parts)
            if fragment is not None:
                standing = _standing(cls, node, parts)
                known = self._template(fragment, standing, parts)
            found[made] = known
            if known is None:
                return None
        only = parts[0] if len(parts) == 1 else None
        leaves, given = (only.leaves, only.given) if only else self._outside(outer)
        instance = Instance(
            known, cls, position, node, parts, inner, outer, leaves, given, known.seconds + given
        )
        instance.fragment, instance._classes = fragment, standing
        if known.anchor is not None:
            part = parts[known.anchor] if known.anchor != _OWN else None
            instance.anchor = part.anchor if part else object()  # itself would be a cycle
        return instance

    def _outside(self, outer: int) -> tuple[int, float]:
        """Those of some classes that are dispatched, and the price of the others."""
        free = outer & self._free
        given = self._prices.get(free)
        if given is None:
            given = self._prices[free] = sum([self.given[each] or 0.0 for each in members(free)])
        return outer ^ free, given

    def fragment(self, instance: Instance) -> Fragment:
        """The fragment itself, the same at every call."""
        if instance.fragment is None:
            instance.fragment = self._built(instance.cls, instance.node, instance.parts)
            assert instance.fragment is not None
        return instance.fragment

    def _built(self, cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> Fragment | None:
        real = tuple(None if part is None else self.fragment(part) for part in parts)
        return combine(self.classes, cls, node, real, self.templates.model)

    def _template(
        self, fragment: Fragment, inside: Sequence[int], parts: tuple[Instance | None, ...]
    ) -> Template:
        model, anchor, inner = self.templates.model, None, None
        if fragment.anchor is not None:
            of_parts = [part and part.fragment and part.fragment.anchor for part in parts]
            shared = [at for at, each in enumerate(of_parts) if each is fragment.anchor]
            anchor = shared[0] if shared else _OWN
            inner = None if shared else fragment.anchor.inner
        place = {each: number for number, each in enumerate(inside)}
        form = fragment.form
        grows = form in INLINED
        seconds, inlined, work = fragment.prices(self.classes, model)
        memory, work = inlined - work - fragment.size * model.constant, work / model.threads
        if seconds < max(work, memory / model.streams):
            # The model has `seconds` of its own, of which the rates say nothing.
            inlined, work = min(inlined, seconds), min(work, seconds)
        made = Template(
            len(self.templates.found), form, anchor, inner,
            tuple([place[each] for each in fragment.reads]),
            tuple([place[each] for each in fragment.computed]),
            seconds, inlined if grows else inf, work, grows,
            fragment.closed, self._kind(fragment),
        )  # fmt: skip
        return replace(made, seconds=inf) if self.templates.is_too_large(made) else made

    def _kind(self, fragment: Fragment) -> str | None:
        """What a fragment competes with others in: contractions read only some loops, those of
        octets, which stand beside cheaper ones."""
        if fragment.form in ANCHORED:
            return None
        seen = self.classes, fragment.cls, fragment
        is_read = fragment.form is Fused.LOOP and (octets(*seen) or is_dequantised(*seen))
        return "octets" if is_read else fragment.form.value
