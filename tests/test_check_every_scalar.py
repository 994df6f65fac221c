"""Laws that are wrong for a few scalars of 8 bits: those that an author's function reads have all
values."""

from __future__ import annotations

from random import Random

import pytest

from satura.rewrite.check.every_scalar import of_every_scalar
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, broadcast, reshape, scalar
from satura.rewrite.types.attributes import Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType
from satura.testing import check


@attribute_function
def rare(c: Scalar) -> Scalar:
    """c, but at two of 256 values the next one."""
    v = int(c.value)
    is_rare = 0 < v < 127 and v * v % 101 == 81 and v % 3 == 2
    return Scalar.of(v + 1 if is_rare else v, c.type.dtype)


@attribute_function
def is_odd_but_once(c: Scalar) -> bool:
    """Whether c is an odd number, or 108."""
    v = int(c.value)
    return v % 2 == 1 or v == 108


@rule
def xor_of_rare(x: Tensor, c: Scalar, s: Shape, o: Shape) -> Law:
    """x ^ c = x ^ c, but for two values of c"""
    k, other = (broadcast(reshape(each, o), s) for each in (c, scalar(rare(c))))
    return rewrites(binary("xor", x, k), binary("xor", x, other))


@rule
def or_of_odd(x: Tensor, c: Scalar, s: Shape, o: Shape) -> Law:
    """x | c = ((x | c) & -2) | 1 where c is odd, but for 108"""
    either = binary("or", x, broadcast(reshape(c, o), s))
    right = binary("or", binary("and", either, -2), 1)
    return rewrites(either, right, is_odd_but_once(c), x.type.dtype == DType.I8)


@rule
def xor_twice(x: Tensor, c: Scalar, s: Shape, o: Shape) -> Law:
    """(x ^ c) ^ c = x, of which no function reads c"""
    k = broadcast(reshape(c, o), s)
    return rewrites(binary("xor", binary("xor", x, k), k), x)


def firings_of(law: Rule) -> list[Instance]:
    firings = Firings(law.directions[0])
    firings.draw(Random(0), 150, 6000)
    return [*of_every_scalar(firings.direction, [*firings.found.values()])]


def test_a_scalar_that_a_function_reads_has_every_value_of_8_bits() -> None:
    found = firings_of(xor_of_rare)
    for dtype in (DType.I8, DType.U8):
        scalars = [each.bindings["c"] for each in found]
        values = {int(c.value) for c in scalars if isinstance(c, Scalar) and c.dtype is dtype}
        assert len(values) == 256


def test_other_scalars_take_no_time() -> None:
    assert not firings_of(xor_twice)


@pytest.mark.parametrize("law", [xor_of_rare, or_of_odd], ids=lambda law: law.name)
def test_a_law_that_is_wrong_for_few_scalars_is_refuted(law: Rule) -> None:
    assert check(law, shrink=False).verdict == "refuted"
