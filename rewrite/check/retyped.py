"""Instances of other dtypes: for laws that hold of few dtypes, or of rare ones.

What dtypes the conditions hold for is asked of one instance after the other, with other dtypes in
the place of its own. Then instances are drawn as ever, and get these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random

from satura.rewrite.check.instances import Instance, draw_instance, is_well_typed
from satura.rewrite.language.conditions import asks_for_value
from satura.rewrite.language.dsl import Direction
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType

MOST_BASES = 4  # instances that are asked about
MOST_ASKED = 2000  # dtypes for each of them
DRAWS = 600

Dtypes = Mapping[str, DType]
"""The dtypes of variables: tensors, numbers, and dtypes themselves."""


def retyped(direction: Direction, near: Sequence[Instance], random: Random) -> Iterator[Instance]:
    """Well-typed instances of dtypes for which the conditions hold, if some are found; `near` are
    instances that nearly fire."""
    drawn = (draw_instance(direction, random) for _ in range(MOST_BASES))
    bases = [*near[:MOST_BASES], *(each for each in drawn if each is not None)]
    known = [dtypes for base in bases[:MOST_BASES] for dtypes in fitting_dtypes(base, random)]
    for _ in range(DRAWS if known else 0):
        instance = draw_instance(direction, random)
        if instance is not None:
            other = with_dtypes(instance, random.choice(known))
            if is_well_typed(other):
                yield other


def fitting_dtypes(base: Instance, random: Random) -> Iterator[Dtypes]:
    """Dtypes for which `base` is well typed and meets the conditions."""
    groups = _groups(base)
    choices = list(product(DType, repeat=min(len(groups), 3)))
    for choice in random.sample(choices, min(len(choices), MOST_ASKED)):
        chosen = [*choice, *(random.choice([*DType]) for _ in groups[3:])]
        dtypes = {
            name: dtype for group, dtype in zip(groups, chosen, strict=True) for name in group
        }
        other = with_dtypes(base, dtypes)
        if _meets_conditions(other) and is_well_typed(other):
            yield dtypes


def _groups(base: Instance) -> list[list[str]]:
    """Variables that have a dtype or are one; tensors and numbers of one dtype keep together."""
    alike: dict[DType, list[str]] = {}
    alone: list[list[str]] = []
    for name, value in base.values:
        if isinstance(value, TensorType | Scalar):
            alike.setdefault(value.dtype, []).append(name)
        elif isinstance(value, DType):
            alone.append([name])
    return [*alike.values(), *alone]


def with_dtypes(base: Instance, dtypes: Dtypes) -> Instance:
    def changed(name: str, value: TensorType | Attribute) -> TensorType | Attribute:
        dtype = dtypes.get(name)
        if dtype is None:
            return value
        if isinstance(value, TensorType):
            return value.with_dtype(dtype)
        return converted(value, dtype) if isinstance(value, Scalar) else dtype

    return replace(base, values=tuple((name, changed(name, value)) for name, value in base.values))


def converted(number: Scalar, dtype: DType) -> Scalar:
    """The number in another dtype; 1 where that does not hold it."""
    try:
        return Scalar.of(number.array.item(), dtype)
    except (OverflowError, ValueError):
        return Scalar.of(1, dtype)


def _meets_conditions(instance: Instance) -> bool:
    direction = instance.direction
    decided = (each for each in direction.conditions if not asks_for_value(each))
    try:
        return all(direction.holds(each, instance.bindings) for each in decided)
    except Exception:  # an author's function may raise anything where a dtype makes no sense to it
        return False
