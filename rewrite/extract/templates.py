"""Templates: fragments that look equal, as those of equal layers do, are combined and priced once.

What `combine` makes of an e-node and its parts depends on the op and its attributes, on the types
of the classes, on which of them are constants, and on where one class occurs twice; their numbers
do not matter. So a template stands for all fragments that agree in these, in every e-graph of a
saturation, and one of them is an instance: the template and its classes. The fragment itself is
built where it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.forms import ANCHORED, INLINED, Fused
from satura.rewrite.extract.fragments import MAX_NODES, Fragment, combine
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType

_OWN = -1
_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What equal fragments have in common.

    `reads` and `computed` are the places of its leaves, and of what it computes, among the classes
    of an instance; `anchor` is the part that has its anchor, None where there is none. It costs
    `seconds` as a dispatch of its own, constants apart, and `inlined` in a larger one, which can
    only be made where it `grows`. Of fragments of one class that share their `kind`, and their
    anchor where the kind is None, one is the best to grow from.
    """

    number: int
    form: Fused
    anchor: int | None
    reads: tuple[int, ...]
    computed: tuple[int, ...]
    seconds: float
    inlined: float
    grows: bool
    kind: str | None


@dataclass(slots=True, eq=False)
class Instance:
    """One fragment: a template, and the classes that stand in it, its own first.

    `node` is the e-node at `position` of that class. It reads `leaves` and, for `given` seconds,
    what is there without a dispatch; `seconds` are its cost with these. Instances that share
    `anchor` share the anchor of the fragments. `inner` is a bit set of the classes that are
    computed here, `outer` one of those that are read.
    """

    template: Template
    position: int
    node: ENode
    parts: tuple[Instance | None, ...]
    classes: tuple[int, ...]
    inner: int
    outer: int
    leaves: frozenset[int]
    given: float
    seconds: float
    anchor: object = None
    fragment: Fragment | None = None

    @property
    def cls(self) -> int:
        return self.classes[0]

    @property
    def reads(self) -> list[int]:
        """The classes that it reads."""
        return [self.classes[place] for place in self.template.reads]

    @property
    def computed(self) -> list[int]:
        """The classes that are computed here: its own and those of its parts."""
        return [self.classes[place] for place in self.template.computed]


class Templates:
    """The templates under one cost model; None stands for what does not fuse."""

    def __init__(self, model: CostModel) -> None:
        self.model = model
        self.found: dict[_Key, Template | None] = {}
        self._kinds: dict[tuple[TensorType, bool], int] = {}
        self._ops: dict[tuple[str, int, tuple[Attribute, ...]], int] = {}

    def kind(self, type_: TensorType, is_known: bool) -> int:
        """A number for classes of this type; constants have other ones."""
        return self._kinds.setdefault((type_, is_known), len(self._kinds))

    def op(self, node: ENode) -> int:
        """A number for e-nodes with this op and these attributes."""
        key = node.op, len(node.operands), node.attributes
        return self._ops.setdefault(key, len(self._ops))


class Instances:
    """The fragments of one e-graph; `given` are the prices of what needs no dispatch."""

    def __init__(
        self, classes: EClasses, templates: Templates, given: Sequence[float | None]
    ) -> None:
        self.classes = classes
        self.templates = templates
        self.given = given
        pairs = zip(classes.types, classes.known, strict=True)
        self._kinds = [templates.kind(*pair) for pair in pairs]
        self._ops = [tuple(map(templates.op, nodes)) for nodes in classes.nodes]

    def combined(
        self, cls: int, position: int, parts: tuple[Instance | None, ...]
    ) -> Instance | None:
        """The e-node at a position of a class over some parts, None where these do not fuse."""
        node = self.classes.nodes[cls][position]
        union = _union(cls, node, parts)
        if union is None:
            return None
        kinds = self._kinds
        mentioned = [cls]
        key: list[object] = [kinds[cls], self._ops[cls][position]]
        anchors = []
        for operand, part in zip(node.operands, parts, strict=True):
            if part is None:
                mentioned.append(operand)
                key.append(-1 - kinds[operand])
            else:
                mentioned += part.classes
                key.append(part.template.number)
                if part.anchor is not None:
                    anchors.append(part.anchor)
        inside = tuple(dict.fromkeys(mentioned))
        if len(inside) < len(mentioned):
            place = {each: number for number, each in enumerate(inside)}
            key += [place[each] for each in mentioned]
        if len(anchors) > 1:
            key += [anchors.index(anchor) for anchor in anchors]
        found, made = self.templates.found, tuple(key)
        fragment, template = None, found.get(made)
        if template is None:
            if made in found:
                return None
            fragment = self._built(cls, node, parts)
            if fragment is not None:
                template = self._template(fragment, inside, parts)
            found[made] = template
            if template is None:
                return None
        leaves, given, seconds = [], 0.0, template.seconds
        for number in template.reads:
            leaf = inside[number]
            price = self.given[leaf]
            if price is None:
                leaves.append(leaf)
            else:
                given += price
                seconds += price
        instance = Instance(
            template, position, node, parts, inside, *union, frozenset(leaves), given, seconds
        )
        instance.fragment = fragment
        if template.anchor is not None:
            part = parts[template.anchor] if template.anchor != _OWN else None
            instance.anchor = part.anchor if part else instance
        return instance

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
        model, anchor = self.templates.model, None
        if fragment.anchor is not None:
            of_parts = [part and part.fragment and part.fragment.anchor for part in parts]
            shared = [at for at, each in enumerate(of_parts) if each is fragment.anchor]
            anchor = shared[0] if shared else _OWN
        form = fragment.form
        grows = form in INLINED
        return Template(
            len(self.templates.found), form, anchor,
            tuple(map(inside.index, fragment.reads)), tuple(map(inside.index, fragment.computed)),
            fragment.seconds(self.classes, model),
            fragment.inlined_seconds(self.classes, model) if grows else inf,
            grows, None if form in ANCHORED else form.value,
        )  # fmt: skip


def _union(cls: int, node: ENode, parts: tuple[Instance | None, ...]) -> tuple[int, int] | None:
    """What a class over some parts computes and what it reads, as bit sets.

    None where `combine` would refuse at once: most of what is tried computes too much, or reads
    what it computes.
    """
    inner, outer = 1 << cls, 0
    for operand, part in zip(node.operands, parts, strict=True):
        if part is None:
            outer |= 1 << operand
        elif part.inner >> cls & 1:
            return None
        else:
            inner |= part.inner
            outer |= part.outer
    return None if inner & outer or inner.bit_count() > MAX_NODES else (inner, outer)
