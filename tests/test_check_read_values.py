"""Numbers that the functions of a law read: they are drawn as those that stand in their code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum

import numpy as np
import pytest

from satura.rewrite.check.named_values import named_numbers
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, broadcast, reshape, scalar, slice_, unary
from satura.rewrite.types.attributes import Shape, Slices
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import TensorType
from satura.testing import check
from tests.tiers import deep_but

SIX = 6.25
SIZES = frozenset({41, 43})
TABLE = {37: "exp"}
HELD = np.float32(2.75)


class Laws:
    """Constants of laws, and what compares with them."""

    TWO = 2.625

    class Inner:
        THREE = 3.375

    @staticmethod
    def is_two(number: float) -> bool:
        return number == Laws.TWO


class Size(Enum):
    LARGE = 39


def is_six(number: float) -> bool:
    return number == SIX


def wrapped(function: Callable[[float], bool]) -> Callable[[float], bool]:
    return lambda number: function(number)


def number_of(c: Scalar) -> float:
    """The number, of which no comparison is seen."""
    return float(c.value) if c.dtype.is_float else 0.0


def reads(function: Callable[..., object]) -> tuple[float, ...]:
    """The numbers that are drawn for a law whose condition is `function` of a scalar."""
    condition = attribute_function(function)

    @rule
    def law(x: Tensor, c: Scalar) -> Law:
        """a law with a condition"""
        return rewrites(binary("mul", reshape(c, Shape(())), x), x, bool_of(condition(c)))

    (direction,) = law.directions
    return named_numbers(direction)


def bool_of(value: object) -> bool:
    return value  # type: ignore[return-value]


def test_what_functions_read_is_named() -> None:
    held = 4.875
    inner = wrapped(is_six)

    def by_default(c: Scalar, least: float = 5.125, *, most: float = 7.625) -> bool:
        return least < number_of(c) < most

    assert reads(by_default) == (5.125, 7.625)
    assert reads(lambda c: is_six(number_of(c))) == (SIX,)
    assert reads(lambda c: inner(number_of(c))) == (SIX,)
    assert reads(lambda c: Laws.is_two(number_of(c))) == (Laws.TWO,)
    assert reads(lambda c: number_of(c) == Laws.Inner.THREE) == (3.375,)
    assert reads(lambda c: any(number_of(c) == each + held for each in (0, 1))) == (4.875,)
    assert reads(lambda c: number_of(c) in SIZES) == (41, 43)
    assert reads(lambda c: number_of(c) == Size.LARGE.value) == (39,)
    assert reads(lambda c: number_of(c) in TABLE) == (37,)
    assert reads(lambda c: number_of(c) == HELD) == (2.75,)
    assert reads(lambda c: operator.eq(number_of(c), np.pi)) == (np.pi,)


def test_what_is_large_or_in_a_circle_is_looked_at_in_part() -> None:
    circle: list[object] = [51]
    circle.append(circle)
    many = [*range(100, 100_000)]
    assert reads(lambda c: number_of(c) in circle) == (51,)
    assert 10 < len(reads(lambda c: number_of(c) in many)) < 100


@attribute_function
def is_at_two(c: Scalar) -> bool:
    return Laws.is_two(number_of(c))


@rule
def exchanged_at_two(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c = c * x for a c that a class has"""
    factor = broadcast(reshape(c, o), s)
    return rewrites(binary("mul", x, factor), binary("mul", factor, x), is_at_two(c))


@attribute_function
def doubled_at_six(c: Scalar) -> Scalar:
    """c, but twice as much for a number that the module has."""
    return Scalar.of(2 * SIX, c.dtype) if is_six(number_of(c)) else c


@rule
def doubled(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c = x * c: not where it is doubled"""
    right = binary("mul", x, broadcast(reshape(scalar(doubled_at_six(c)), o), s))
    return rewrites(binary("mul", x, broadcast(reshape(c, o), s)), right)


@attribute_function
def turned_in_sizes(t: TensorType) -> Slices:
    """Everything in order, but from the end along axes of some extents that the module has."""
    turned = [isinstance(dim, int) and dim in SIZES for dim in t.shape]
    starts = tuple(dim - 1 if each else 0 for each, dim in zip(turned, t.shape, strict=True))
    return Slices(starts, t.shape, tuple(-1 if each else 1 for each in turned))


@rule
def turned(x: Tensor) -> Law:
    """relu(relu(x)) = relu(x): not of an extent of 41"""
    right = slice_(unary("relu", x), turned_in_sizes(x.type))
    return rewrites(unary("relu", unary("relu", x)), right)


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("law", deep_but([doubled], [doubled, turned]), ids=lambda each: each.name)
def test_laws_that_are_wrong_at_what_they_read_are_refuted(law: Rule, seed: int) -> None:
    report = check(law, seed, shrink=False)
    assert report.verdict == "refuted", str(report)


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
def test_laws_about_what_they_read_are_not_vacuous(seed: int) -> None:
    report = check(exchanged_at_two, seed)
    assert report.verdict == "tested", str(report)
