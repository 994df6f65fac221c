"""Constants with one number or a simple pattern: they meet conditions on all elements.

Most constants that are drawn meet such a condition only where they are empty, and it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from random import Random

import numpy as np

from satura.rewrite.check.instances import NO_WISH, Instance, Wish, draw_instance, fires
from satura.rewrite.check.named_values import named_numbers
from satura.rewrite.check.neighbours import beside
from satura.rewrite.language.dsl import Direction
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType

DRAWS = 300
WANTED = 150  # that fire
NUMBERS = (0.0, 1.0, -0.0, -1.0, 2.0, 0.5, np.inf, np.nan)
MOST_NAMED = 4
NEARLY = 2  # patterns of a number that is nearly one of these
OF_FLOATS = Wish(dtypes=tuple(dtype for dtype in COMPUTED if dtype.is_float))


def of_plain_constants(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches that fire, whose constants have elements: all alike, or ones on a diagonal, or 0, 1,
    2 and so on. Few come several times, for other arguments."""
    if Constant not in direction.variables.values():
        return
    random = Random(seed)
    numbers = (*NUMBERS, *named_numbers(direction)[:MOST_NAMED])
    found: dict[object, Instance] = {}
    for number in range(DRAWS * scale):
        drawn = draw_instance(direction, random, OF_FLOATS if number % 2 else NO_WISH)
        if drawn is None or _is_empty(drawn):
            continue
        for instance in _plain(drawn, numbers, random):
            if len(found) < WANTED * scale and instance.values not in found and fires(instance):
                found[instance.values] = instance
    yield from islice(cycle(found.values()), WANTED * scale)


def _is_empty(instance: Instance) -> bool:
    """Whether a constant is without elements."""
    return any(isinstance(value, Constant) and not value.array.size for _, value in instance.values)


def _plain(instance: Instance, numbers: Sequence[float], random: Random) -> Iterator[Instance]:
    """The match, with constants of each of these patterns in the place of its own."""
    constants = {name: each.array for name, each in instance.values if isinstance(each, Constant)}
    patterns = {name: list(_patterns(array, numbers, random)) for name, array in constants.items()}
    for arrays in zip(*patterns.values(), strict=True):
        plain = {name: Constant(array) for name, array in zip(patterns, arrays, strict=True)}
        values = tuple((name, plain.get(name, value)) for name, value in instance.values)
        yield replace(instance, values=values)


def _patterns(array: Array, numbers: Sequence[float], random: Random) -> Iterator[Array]:
    """Arrays of that shape and type."""
    shape, dtype = array.shape, array.dtype
    with np.errstate(all="ignore"):
        yield from (np.full(shape, number).astype(dtype) for number in numbers)
        for _ in range(NEARLY):
            number = np.array(random.choice(numbers)).astype(dtype)
            is_float = DType.of(dtype).is_float
            yield np.full(shape, beside(number, random) if is_float else number)
        yield np.where(np.arange(array.size) % 2, -0.0, 0.0).reshape(shape).astype(dtype)
        yield np.broadcast_to(
            np.eye(shape[-2], shape[-1]) if array.ndim > 1 else 1.0, shape
        ).astype(dtype)
        yield np.arange(array.size, dtype=np.float64).reshape(shape).astype(dtype)
