"""What is known of the elements of a tensor that is written: a model's guards are not repeated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nextafter

import numpy as np

from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.onnx.write.emitter import Emitter
from satura.rewrite.types.tensor_type import DType

_MOVING = ("Transpose", "Reshape", "Expand", "Identity")
_DEEPEST = 8  # guards are few nodes


@dataclass(frozen=True)
class Range:
    """All elements lie between two numbers, and are none of others; they may be NaN."""

    above: float = -inf
    below: float = inf
    without: frozenset[float] = frozenset()
    may_be_nan: bool = True

    def excludes(self, value: float) -> bool:
        """Whether no element is `value`."""
        return value in self.without or not self.above < value < self.below

    def is_within(self, above: float, below: float) -> bool:
        """Whether all elements are numbers between these two."""
        return not self.may_be_nan and above <= self.above and self.below <= below

    def or_(self, other: Range) -> Range:
        """The range of elements that lie in this one or in the other."""
        return Range(
            min(self.above, other.above), max(self.below, other.below),
            frozenset(value for value in self.without | other.without
                      if self.excludes(value) and other.excludes(value)),
            self.may_be_nan or other.may_be_nan,
        )  # fmt: skip


def range_of(emit: Emitter, x: str, depth: int = _DEEPEST) -> Range:
    """The range of the elements of a tensor."""
    x, _ = emit.source(x)
    if x in emit.constants:
        return _of_constant(emit.constants[x].array)
    made = emit.makers.get(x)
    if made is None or not depth:
        return Range()
    if made.op_type in _MOVING:
        return range_of(emit, made.input[0], depth - 1)
    if made.op_type == "Cast":
        new = dtype_of(made.attribute[0].i) if made.attribute[0].name == "to" else DType.BOOL
        old = range_of(emit, made.input[0], depth - 1)
        fits = new.is_integer and old.is_within(new.bounds[0] - 1, new.bounds[1] + 1)
        return replace(old, without=frozenset()) if fits else Range()
    if made.op_type == "Where":
        condition, *choices = made.input
        one, two = (
            _where(emit, condition, is_true, x, range_of(emit, x, depth - 1), depth)
            for x, is_true in zip(choices, (True, False), strict=True)
        )
        return one.or_(two)
    if made.op_type == "BitwiseAnd" and made.input[1] in emit.constants:
        mask = _of_constant(emit.constants[made.input[1]].array)
        return Range(-1, mask.below, may_be_nan=False) if mask.above >= -1 else Range()
    if made.op_type == "Add" and _is_one_for_zeros(emit, *made.input):
        return Range(without=frozenset((0,)))
    return Range()


def _is_one_for_zeros(emit: Emitter, x: str, y: str) -> bool:
    """Whether integers y are 1 where x is 0, and 0 elsewhere."""
    cast = emit.makers.get(y)
    test = emit.makers.get(cast.input[0]) if cast and cast.op_type == "Cast" else None
    if test is None or test.op_type != "Equal" or x != test.input[0]:
        return False
    zero = emit.constants.get(test.input[1])
    return zero is not None and zero.type.dtype.is_integer and not zero.array.any()


def _of_constant(array: np.ndarray) -> Range:
    if array.dtype.kind not in "iuf" or not array.size:
        return Range()
    least, most = array.min().item(), array.max().item()
    if array.dtype.kind == "f":
        is_open = bool(np.isnan(array).any())
        return (
            Range()
            if is_open
            else Range(nextafter(least, -inf), nextafter(most, inf), may_be_nan=False)
        )
    without = frozenset(value for value in (-1, 0) if not (array == value).any())
    return Range(least - 1, most + 1, without, False)


def _where(emit: Emitter, condition: str, is_true: bool, x: str, known: Range, depth: int) -> Range:
    """The range of the elements of x, which are `known`, where a condition is true or false."""
    made = emit.makers.get(condition)
    if made is None or not depth:
        return known
    if made.op_type == "Not":
        return _where(emit, made.input[0], not is_true, x, known, depth - 1)
    if made.op_type == ("And" if is_true else "Or"):
        for part in made.input:
            known = _where(emit, part, is_true, x, known, depth - 1)
        return known
    if x not in made.input:
        return known
    if made.op_type == "IsNaN":
        return known if is_true else replace(known, may_be_nan=False)
    if made.op_type not in ("Equal", "Less", "LessOrEqual"):
        return known
    (other,) = [each for each in made.input if each != x] or [x]
    if other not in emit.constants or emit.constants[other].array.size != 1:
        return known
    number = emit.constants[other].array.item()
    if made.op_type == "Equal":
        return known if is_true else replace(known, without=known.without | {number})
    is_below = (made.input[0] == x) is is_true  # and not the number
    includes = (made.op_type == "LessOrEqual") is is_true
    if includes and isinstance(number, float):
        number = nextafter(number, inf if is_below else -inf)
    elif includes:
        number += 1 if is_below else -1
    if is_true and isinstance(number, float):
        known = replace(known, may_be_nan=False)
    if is_below:
        return replace(known, below=min(known.below, number))
    return replace(known, above=max(known.above, number))
