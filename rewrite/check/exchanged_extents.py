"""Firings of which a shape has two extents exchanged: where something is reshaped, it has as many
elements as before, and they lie along other axes. A law may compare too few of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from satura.rewrite.check.instances import (
    Instance,
    Wish,
    draw_instance,
    fires,
    is_well_typed,
    ops_of,
)
from satura.rewrite.language.dsl import Direction
from satura.rewrite.types.attributes import Attribute, Shape
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import TensorType

RANKS = (4, 5)  # at which other axes can stay,
EXTENTS = (1, 2, 2, 3, 4)
DRAWN = 300  # matches for each of them,
DRAWS = 1000  # and exchanges among those and the firings
WANTED = 200  # that fire


def with_exchanged_extents(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Firings with two extents of a tensor or a shape exchanged; ranks 4 and 5 are frequent."""
    if "reshape" not in ops_of(direction) or not firings:
        return
    random = Random(seed)
    drawn = [*firings, *_of_high_rank(direction, firings, random, scale)]
    chosen = [(each, name) for each in drawn for name in _exchangeable(each)]
    known = {each.values for each in drawn}
    most = len(known) + WANTED * scale
    for _ in range(DRAWS * scale if chosen else 0):
        base, name = random.choice(chosen)
        values = tuple(
            (each, _exchanged(value, random) if each == name else value)
            for each, value in base.values
        )
        instance = replace(base, values=values)
        if values not in known and is_well_typed(instance) and fires(instance):
            known.add(values)
            yield instance
        if len(known) == most:
            return


def _of_high_rank(
    direction: Direction, firings: Sequence[Instance], random: Random, scale: int
) -> Iterator[Instance]:
    """Matches that fire, of the dtypes of firings."""
    for number in range(len(RANKS) * DRAWN * scale):
        types = random.choice(firings).types.values()
        dtypes = tuple(dict.fromkeys(type_.dtype for type_ in types))
        wish = Wish(RANKS[number % len(RANKS)], EXTENTS, dtypes)
        instance = draw_instance(direction, random, wish)
        if instance is not None and fires(instance):
            yield instance


def _exchangeable(instance: Instance) -> list[str]:
    """The names of its tensors and shapes of which two extents differ."""
    return [name for name, value in instance.values if len(set(_dims(value))) > 1]


def _dims(value: object) -> tuple[Dim, ...]:
    if isinstance(value, TensorType):
        return value.shape
    return value.dims if isinstance(value, Shape) else ()


def _exchanged(value: TensorType | Attribute, random: Random) -> TensorType | Attribute:
    """The shape with two extents exchanged that differ."""
    dims = list(_dims(value))
    first = random.randrange(len(dims))
    second = random.choice([axis for axis, dim in enumerate(dims) if dim != dims[first]])
    dims[first], dims[second] = dims[second], dims[first]
    return value.with_shape(tuple(dims)) if isinstance(value, TensorType) else Shape(tuple(dims))
