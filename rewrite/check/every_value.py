"""Firings whose small operands have all their values at once: 256 of 8 bits, pairs of these, 65,536
of 16 bits. A law of elements that is wrong for one value alone is seldom refuted by fewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from satura.rewrite.check.chosen_elements import ends_of
from satura.rewrite.check.every_choice import functions_of
from satura.rewrite.check.instances import (
    SHAPED,
    Instance,
    Wish,
    draw_instance,
    fires,
    is_well_typed,
    ops_of,
)
from satura.rewrite.check.neighbours import pads_nothing
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.types.attributes import Attribute, Padding, Perm, Shape
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import DType, TensorType

OF_ELEMENTS = {
    *("unary", "binary", "select", "cast", "constant"),
    *("reshape", "broadcast", "transpose", "slice", "pad"),
}
WANTED = 16  # that fire
WIDE = 4  # of these, with 65,536 elements
DRAWS = 60
OF_SHAPES = (TensorType, Padding, Perm, *SHAPED)
FEW, MANY = (256, 1), (256, 256)
ENDS = (49, 49)  # more elements than four integers have combinations of ends, or three floats
ENDS_DRAWS = 160
Dtypes = tuple[DType, ...]
Functions = tuple[Attribute, ...]
PLACES = {"gather", "scatter"}  # ops of which an operand is not any number


def of_every_value(
    direction: Direction, firings: Sequence[Instance], exact: bool, seed: int, scale: int
) -> Iterator[Instance]:
    """Matches like the firings with small operands, which have an element for each value.

    They have each choice of dtypes and functions in turn. Floats of laws up to rounding do not
    count.
    """
    random = Random(seed)
    by_choice: dict[tuple[Dtypes, Functions], list[Instance]] = {}
    for each in firings if ops_of(direction) <= OF_ELEMENTS else ():
        dtypes = tuple(type_.dtype for type_ in each.types.values())
        if any(_is_small(dtype, exact) for dtype in dtypes):
            by_choice.setdefault((dtypes, functions_of(each)), []).append(each)
    groups = list(by_choice.items())
    left, wide = WANTED * scale, WIDE * scale
    if any(functions for _, functions in by_choice):
        left, wide = left + len(groups), wide + len(groups)
    for number in range(max(DRAWS * scale, 2 * len(groups)) if groups else 0):
        (dtypes, _), bases = groups[number % len(groups)]
        bits = sum(8 * dtype.itemsize for dtype in dtypes if _is_small(dtype, exact))
        is_wide = bits > 8 and wide > 0
        instance = _with_shape(random.choice(bases), MANY if is_wide else FEW, random)
        if instance is not None and fires(instance):
            left, wide = left - 1, wide - is_wide
            yield instance
        if not left:
            return


def with_numbers_at_ends(
    direction: Direction, firings: Sequence[Instance], exact: bool, seed: int, scale: int
) -> Iterator[Instance]:
    """Matches like the firings, with an element for each combination of their ends, where elements
    are computed one by one; and with special constants: their own, -1 for all, the least of their
    types, and so on, then combinations of these. Floats of laws up to rounding do not count."""
    random = Random(seed)
    by_dtypes: dict[Dtypes, list[Instance]] = {}
    for each in firings if not ops_of(direction) & PLACES else ():
        types = [type_.dtype for type_ in each.types.values()]
        numbers = [_dtype_of(value) for value in _numbers(each).values()]
        if any(exact or not dtype.is_float for dtype in (*types, *numbers)):
            by_dtypes.setdefault((*types, *numbers), []).append(each)
    is_of_elements = ops_of(direction) <= OF_ELEMENTS
    groups = list(by_dtypes.values())
    known: set[object] = set()
    for number in range(ENDS_DRAWS * scale if groups else 0):
        bases = groups[number % len(groups)]
        moving = [each for each in bases if not pads_nothing(each)]
        base = random.choice(moving or bases)
        shaped = _with_shape(base, ENDS, random) if is_of_elements else None
        for like in (shaped, base):
            turn = number // len(groups)
            instance = like and (_with_numbers(like, turn - 1, number) if turn else like)
            if instance is not None and instance.values not in known and fires(instance):
                known.add(instance.values)
                yield instance
                break


def _numbers(instance: Instance) -> Mapping[str, Scalar | Constant]:
    """The constants among the attributes."""
    return {name: each for name, each in instance.values if isinstance(each, Scalar | Constant)}


def _dtype_of(number: Scalar | Constant) -> DType:
    return DType.of(number.array.dtype)


def _with_numbers(instance: Instance, turn: int, number: int) -> Instance:
    """The instance with other constants: in the first turns all have the same end of their types,
    then those of the combination of that number."""
    changed: dict[str, Attribute] = {}
    for place, (name, old) in enumerate(_numbers(instance).items()):
        ends = _ends_of_constants(_dtype_of(old))
        count = len(ends)
        end = ends[turn if turn < count else number // count**place % count]
        array = np.full(old.array.shape, end).astype(old.array.dtype)
        if isinstance(old, Scalar):
            changed[name] = Scalar(old.dtype, array.tobytes())
        else:
            changed[name] = Constant(array)
    values = tuple((name, changed.get(name, value)) for name, value in instance.values)
    return replace(instance, values=values)


def _ends_of_constants(dtype: DType) -> Sequence[float]:
    """The ends of a type, and of the integers those of narrower ones: masks have these."""
    narrower = (127, 255, 32_767, 65_535) if dtype.is_integer else ()
    return (*ends_of(dtype), *(most for most in narrower if most < dtype.bounds[1]))


def _is_small(dtype: DType, exact: bool) -> bool:
    return dtype.itemsize <= 2 and (exact or not dtype.is_float)


def _with_shape(base: Instance, shape: tuple[int, ...], random: Random) -> Instance | None:
    """A match like `base` with another shape; None where the draw gives none."""
    old = type_of(base.direction.left, base.bindings)
    root = old.with_shape(shape)
    resized = replace(
        base, values=tuple((name, _resized(each, old, root)) for name, each in base.values)
    )
    if is_well_typed(resized) and type_of(base.direction.left, resized.bindings) == root:
        return resized
    given = tuple((name, value) for name, value in base.values if not isinstance(value, OF_SHAPES))
    dtypes = tuple(dict.fromkeys((root.dtype, *(each.dtype for each in base.types.values()))))
    return draw_instance(
        base.direction, random, Wish(len(shape), shape, dtypes, given=given, root=root)
    )


def _resized(
    value: TensorType | Attribute, old: TensorType, new: TensorType
) -> TensorType | Attribute:
    """A type or shape that is as large as `old`, as large as `new`; any other value as it is."""
    if isinstance(value, TensorType) and value.shape == old.shape:
        return value.with_shape(new.shape)
    return Shape(new.shape) if value == Shape(old.shape) else value
