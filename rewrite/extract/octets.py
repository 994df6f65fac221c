"""Contractions of integers from 8 bits: which operands microkernels widen as they read them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.types.attributes import BinaryFn, Groups
from satura.rewrite.types.tensor_type import DType

_VIEWS = ("transpose", "reshape", "broadcast", "slice")
_MOST_STEPS = 4  # two casts, a zero point and a scale


class Part(Protocol):
    """The properties of a fragment that matter here."""

    @property
    def node(self) -> ENode: ...

    @property
    def cls(self) -> int: ...

    @property
    def parts(self) -> tuple[Part | None, ...]: ...

    @property
    def form(self) -> Enum: ...

    @property
    def reads(self) -> Mapping[int, float]: ...


def widens(classes: EClasses, cls: int, node: ENode) -> bool:
    """Whether integers are cast to i32 or i64: as weights they are better kept as they are."""
    wide = classes.types[cls].dtype in (DType.I32, DType.I64)
    return node.op == "cast" and wide and classes.types[node.operands[0]].dtype.is_integer


def sums_octets(classes: EClasses, base: Part) -> bool:
    """Whether this is a contraction of integers from 8 bits, and sums more than taps."""
    if base.node.op == "pool" or classes.types[base.cls].dtype not in (DType.I32, DType.I64):
        return False
    if base.node.op == "conv":
        groups = base.node.attributes[1]
        assert isinstance(groups, Groups)
        if groups.count > 1 and classes.types[base.node.operands[1]].shape[-2] == 1:
            return False
    pairs = zip(base.node.operands, base.parts, strict=True)
    return all(octets(classes, operand, part) for operand, part in pairs)


def octets(classes: EClasses, cls: int, part: Part | None) -> bool:
    """Whether integers `cls` are elements of 8 bits, seen by a view, widened and moved by
    constants, which are one number each. What is quantised anew is stored for that."""
    found = _source(classes, cls, part)
    if found is None:
        return False
    dtype = classes.types[found].dtype
    return dtype in (DType.I8, DType.U8) or (classes.known[found] and dtype is DType.I16)


def sums_pairs(classes: EClasses, base: Part) -> bool:
    """Whether the weights of such a contraction are constants that need more bits than an i8 has:
    half as many products are summed at once."""
    found = _source(classes, base.node.operands[1], base.parts[1])
    if found is None or classes.types[found].dtype is DType.I8:
        return False
    left, met = [found], {found}
    while left:
        cls = left.pop()
        for node in classes.nodes[cls] if classes.known[cls] else ():
            if node.op == "constant":
                return True
            if node.op in _VIEWS and node.operands[0] not in met:
                met.add(node.operands[0])
                left.append(node.operands[0])
    return False


def packed_reads(classes: EClasses, base: Part, size: int) -> dict[int, float]:
    """What such a contraction reads: constant weights are packed into so many bytes each."""
    weights = _source(classes, base.node.operands[1], base.parts[1])
    packed = {weights: classes.elements[weights] * size} if weights is not None else {}
    return {**base.reads, **{cls: each for cls, each in packed.items() if classes.known[cls]}}


def _source(classes: EClasses, cls: int, part: Part | None) -> int | None:
    """The integers that are seen, widened or moved, if nothing else is done to them."""
    if not classes.types[cls].dtype.is_integer:
        return None
    while part is not None:
        if REGISTRY[part.node.op].kind is Kind.ELEMENTWISE:
            found = varying_operand(classes, part)
            if found is None or not _widens_or_moves(classes, part, found):
                return None
        elif part.node.op in _VIEWS:
            found = 0
        else:
            return None
        cls, part = part.node.operands[found], part.parts[found]
    return cls


def _widens_or_moves(classes: EClasses, part: Part, varying: int) -> bool:
    """Whether an elementwise node on integers casts them to more bits, or adds one number to them
    where they have more than 8."""
    source, target = classes.types[part.node.operands[varying]].dtype, classes.types[part.cls].dtype
    if not (source.is_integer and target.is_integer):
        return False
    if part.node.op == "cast":
        wider = source.itemsize < target.itemsize and (target.is_signed or not source.is_signed)
        return source is target or wider
    moves = part.node.attributes == (BinaryFn("add"),)
    moves |= part.node.attributes == (BinaryFn("sub"),) and varying == 0
    return moves and target not in (DType.I8, DType.U8)


def varying_operand(classes: EClasses, fragment: Part) -> int | None:
    """The only operand of an elementwise node that is not one known number."""
    found = [
        position
        for position, (operand, part) in enumerate(
            zip(fragment.node.operands, fragment.parts, strict=True)
        )
        if not _is_one_number(classes, operand, part)
    ]
    return found[0] if len(found) == 1 else None


def _is_one_number(classes: EClasses, cls: int, part: Part | None) -> bool:
    while part is not None:
        if part.form.value != "view":
            return False
        cls, part = part.node.operands[0], part.parts[0]
    return classes.known[cls] and all(dim == 1 for dim in classes.types[cls].shape)


def dequantises(classes: EClasses, base: Part) -> bool:
    """Whether this is a convolution of one channel per group that reads dequantised integers."""
    if base.node.op != "conv":
        return False
    x, weights = base.node.operands
    groups = base.node.attributes[1]
    assert isinstance(groups, Groups)
    last = classes.types[x].shape[-1], classes.types[weights].shape[-1]
    is_depthwise = groups.count > 1 and last == (groups.count, groups.count)
    return is_depthwise and is_dequantised(classes, x, base.parts[0])


def is_dequantised(classes: EClasses, cls: int, part: Part | None) -> bool:
    """Whether floats `cls` are (x - zero point) * scale, in any part, of integers x of 8 bits: a
    window computes them in less time than it reads floats, even once per tap."""
    if not classes.types[cls].dtype.is_float:
        return False
    for _ in range(_MOST_STEPS):
        if part is None:
            break
        found = varying_operand(classes, part) if _is_step(part.node) else None
        if found is None:
            return False
        cls, part = part.node.operands[found], part.parts[found]
    return part is None and classes.types[cls].dtype in (DType.I8, DType.U8)


def _is_step(node: ENode) -> bool:
    return node.op == "cast" or node.attributes in ((BinaryFn("sub"),), (BinaryFn("mul"),))
