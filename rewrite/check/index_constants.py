"""Firings whose constants are the indices of gathers, with other indices: in order, from the end,
every one once, or the same ones again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from satura.rewrite.check.instances import Instance, fires, ops_of
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array

WANTED = 100  # that fire
DRAWS = 400
USUAL = 20  # where an extent is not known


def with_index_constants(firings: Sequence[Instance], seed: int, scale: int) -> Iterator[Instance]:
    """The firings that gather by constants of integers, with others for one of these."""
    random = Random(seed)
    found = [each for each in firings if "gather" in ops_of(each.direction) and _indices(each)]
    known: set[object] = set()
    for number in range(DRAWS * scale if found else 0):
        if len(known) == WANTED * scale:
            return
        base = found[number % len(found)]
        name = random.choice(_indices(base))
        constant = base.bindings[name]
        assert isinstance(constant, Constant)
        indices = Constant(_other_indices(constant.array, _extent(base, constant), random))
        values = tuple((key, indices if key == name else each) for key, each in base.values)
        instance = replace(base, values=values)
        if values not in known and fires(instance):
            known.add(values)
            yield instance


def _indices(instance: Instance) -> list[str]:
    """The constants of integers with elements."""
    return [
        name
        for name, value in instance.values
        if isinstance(value, Constant) and value.array.size and value.type.dtype.is_integer
    ]


def _extent(instance: Instance, constant: Constant) -> int:
    """How many slices a constant chooses from, as far as that is known."""
    nodes = instance.left_side.nodes
    for gather in nodes:
        if gather.op.name == "gather" and constant in nodes[gather.operands[1]].attributes:
            axis = gather.attributes[0]
            assert isinstance(axis, Axis)
            extent = nodes[gather.operands[0]].type.shape[axis.index]
            return extent if isinstance(extent, int) and extent else USUAL
    return USUAL


def _other_indices(array: Array, extent: int, random: Random) -> Array:
    """As many indices below an extent: in order, backwards, shuffled, one of them repeated, or a
    run from the last ones on."""
    places = np.arange(array.size) % extent
    match random.randrange(6):
        case 0:
            pass
        case 5 if array.size <= extent:
            places = np.arange(array.size) - random.randint(0, array.size)
            return np.asarray(places.astype(array.dtype).reshape(array.shape))
        case 1:
            places = places[::-1]
        case 2:
            places = np.array(random.sample(places.tolist(), len(places)))
        case 3:
            places[random.randrange(array.size)] = random.randrange(extent)
        case _:
            places = np.full_like(places, random.choice((0, extent - 1)))
    if random.random() < 0.3:  # counted from the end, some of them
        places = np.where([random.random() < 0.5 for _ in places], places - extent, places)
    return np.asarray(places.astype(array.dtype).reshape(array.shape))
