"""Laws on constants: conditions on all elements, which hold of hardly any but empty ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from satura.rewrite.check import both_sides
from satura.rewrite.check.instances import draw_instance
from satura.rewrite.check.large_extents import of_large_extents
from satura.rewrite.check.plain_constants import of_plain_constants
from satura.rewrite.check.refute import first_failure
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, constant, matmul
from satura.rewrite.ops.draw import Draw
from satura.rewrite.types.constant import Constant
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def is_zero(c: Constant) -> bool:
    return not c.array.any()


@rule
def add_zeros(x: Tensor, c: Constant) -> Law:
    """x + 0 = x: not for -0.0 + 0.0"""
    return rewrites(binary("add", x, constant(c)), x, is_zero(c))


@attribute_function
def is_identity(c: Constant) -> bool:
    rows = c.array
    return rows.ndim == 2 and np.array_equal(rows, np.eye(len(rows), dtype=rows.dtype))


@rule
def multiply_by_identity(x: Tensor, c: Constant) -> Law:
    """x 1 = x: not for -0.0, nor beside a NaN"""
    return rewrites(matmul(x, constant(c)), x, is_identity(c))


@rule
def multiply_integers_by_identity(x: Tensor, c: Constant) -> Law:
    """x 1 = x of integers"""
    return rewrites(matmul(x, constant(c)), x, is_identity(c), x.type.dtype.is_integer)


WRONG = [add_zeros, multiply_by_identity]


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("wrong", deep_but([add_zeros], WRONG), ids=lambda each: each.name)
def test_what_fires_on_few_constants_with_elements_is_refuted(wrong: Rule, seed: int) -> None:
    report = check(wrong, seed, shrink=False)
    assert report.verdict == "refuted", str(report)


def test_plain_constants_have_elements() -> None:
    (direction,) = add_zeros.directions
    found = list(of_plain_constants(direction, 0, 1))
    constants = [each.bindings["c"] for each in found]
    assert found and all(isinstance(c, Constant) and c.array.size for c in constants)


def test_the_product_of_two_long_extents_is_not_drawn_as_a_constant() -> None:
    (direction,) = multiply_integers_by_identity.directions
    random = Random(0)
    drawn = [draw_instance(direction, random) for _ in range(50)]
    firings = [each for each in drawn if each is not None]
    large = list(of_large_extents(direction, firings, 0, 1, longest=True))
    constants = [each.bindings["c"] for each in large]
    assert all(isinstance(c, Constant) and c.array.size <= 1_000_000 for c in constants)


def test_an_instance_without_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("Unable to allocate 146 GiB")

    monkeypatch.setattr(both_sides, "_compare", fails)
    (direction,) = add_zeros.directions
    with pytest.raises(MemoryError, match=r"146 GiB, for x = .*, c = "):
        for each in of_plain_constants(direction, 0, 1):
            both_sides.examine(each, True, Draw(Random(0)))


@attribute_function
def is_nearly_one(c: Constant) -> bool:
    return bool(c.array.size) and np.allclose(c.array.astype(np.float64), 1.0)


@rule
def multiply_by_nearly_one(x: Tensor, c: Constant) -> Law:
    """x * c = x, where all of c is 1 but for 1e-5"""
    return rewrites(binary("mul", x, constant(c)), x, is_nearly_one(c))


@pytest.mark.parametrize("seed", deep_but([0], (0, 1009, 424242, 1, 7, 99)))
def test_constants_near_a_number_are_tried(seed: int) -> None:
    (direction,) = multiply_by_nearly_one.directions
    assert first_failure(of_plain_constants(direction, seed, 1), True, seed) is not None
