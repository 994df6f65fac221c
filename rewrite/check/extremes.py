"""What draws leave out: high ranks, extents all equal or all symbolic, huge and tiny numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from random import Random
from typing import TypeGuard

from satura.rewrite.check.instances import HIGH_RANKS, Instance, draw_instance
from satura.rewrite.language.dsl import Direction
from satura.rewrite.ops.draw import SYMBOLS
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

DRAWS = 30  # at each of these ranks
SQUARE_DRAWS = 600  # of tensors of which all extents are equal, or all symbolic
SQUARE_RANKS = (2, 3, 4, 4, 5)
SQUARE_EXTENTS = ((2,), (3,), (2,), (3,), (2,), SYMBOLS)
REMADE = 30  # firings with other numbers
# Powers of ten far from 1 whose square is still finite, and whose inverse is not subnormal.
EXPONENTS = {DType.F64: 150, DType.F32: 18, DType.BF16: 18, DType.F16: 2}


def of_high_rank(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches at ranks that other draws leave out; none where the left side cannot have them."""
    random = Random(seed)
    for rank in HIGH_RANKS:
        for _ in range(DRAWS * scale):
            instance = draw_instance(direction, random, rank)
            if instance is not None:
                yield instance


def of_equal_extents(direction: Direction, seed: int, draws: int) -> Iterator[Instance]:
    """Matches that axes may change places in without a change of the shape, and some of no ints."""
    random = Random(seed)
    for _ in range(draws):
        rank, extents = random.choice(SQUARE_RANKS), random.choice(SQUARE_EXTENTS)
        instance = draw_instance(direction, random, rank, extents)
        if instance is not None:
            yield instance


def with_extreme_numbers(instances: Iterable[Instance], scale: int) -> Iterator[Instance]:
    """The first `instances` with floats as attributes, once made huge and once made tiny."""
    with_floats = (each for each in instances if any(_is_float(value) for _, value in each.values))
    for instance in islice(with_floats, REMADE * scale):
        for sign in (1, -1):
            values = tuple(
                (name, _extreme_number(value, sign) if _is_float(value) else value)
                for name, value in instance.values
            )
            yield replace(instance, values=values)


def _is_float(value: object) -> TypeGuard[Scalar]:
    return isinstance(value, Scalar) and value.dtype.is_float


def _extreme_number(value: Scalar, sign: int) -> Scalar:
    """A number with the sign of `value` that is huge, or tiny where `sign` is negative."""
    size = 10.0 ** (sign * EXPONENTS[value.dtype])
    return Scalar.of(-size if float(value.array) < 0 else size, value.dtype)
