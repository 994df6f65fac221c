"""What the draws of a check leave out: high ranks, and numbers in laws that are huge or tiny."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

from satura.rewrite.check.instances import Instance, draw_instance
from satura.rewrite.language.dsl import Direction
from satura.rewrite.types.attributes import Scalar
from satura.rewrite.types.tensor_type import DType

HIGH_RANKS = (5, 6)
DRAWS = 30  # at each of these ranks
REMADE = 30  # firings with other numbers
# Powers of ten far from 1 whose square is still finite, and whose inverse is not subnormal.
EXPONENTS = {DType.F64: 150, DType.F32: 18, DType.BF16: 18, DType.F16: 2}


def of_high_rank(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches at ranks above those that are drawn otherwise; none where the left side has none."""
    random = Random(seed)
    for rank in HIGH_RANKS:
        for _ in range(DRAWS * scale):
            instance = draw_instance(direction, random, rank)
            if instance is not None:
                yield instance


def with_extreme_numbers(instances: Iterable[Instance], scale: int) -> Iterator[Instance]:
    """The first of `instances` that have floats as attributes, with huge and with tiny ones."""
    floats = (
        (instance, {n for n, value in instance.values if _is_float(value)})
        for instance in instances
    )
    chosen = [(instance, names) for instance, names in floats if names][: REMADE * scale]
    for instance, names in chosen:
        for sign in (1, -1):
            values = tuple(
                (
                    name,
                    _extreme(value, sign) if name in names and isinstance(value, Scalar) else value,
                )
                for name, value in instance.values
            )
            yield replace(instance, values=values)


def _is_float(value: object) -> bool:
    return isinstance(value, Scalar) and value.dtype.is_float


def _extreme(value: Scalar, sign: int) -> Scalar:
    """The power of ten, or of a tenth, that is far from 1; it has the sign of `value`."""
    size = 10.0 ** (sign * EXPONENTS[value.dtype])
    return Scalar.of(-size if float(value.array) < 0 else size, value.dtype)
