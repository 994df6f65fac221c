"""Laws that are wrong at high ranks only, where few draws are, and no proof is."""

from __future__ import annotations

from random import Random

import pytest

from satura.rewrite.check.instances import fires
from satura.rewrite.check.lifted import of_more_axes
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import conv, slice_, transpose, unary
from satura.rewrite.types.attributes import Groups, Perm, Slices, Window, refuse_unless
from satura.rewrite.types.tensor_type import TensorType
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def whole_but_fifth(x: TensorType, s: Slices) -> bool:
    """Whether all is read, and the first four axes in order."""
    return s.sizes == x.shape and all(step == 1 for step in s.steps[:4])


@rule
def drop_whole_slice(x: Tensor, s: Slices) -> Law:
    """slice(x, everything) = x: not where the fifth axis is read from its end"""
    return rewrites(slice_(x, s), x, whole_but_fifth(x.type, s))


@attribute_function
def of_image(p: Perm) -> Perm:
    """How the axes between the first and the last move."""
    rank = len(p.order)
    refuse_unless(rank >= 2 and p.order[0] == 0 and p.order[-1] == rank - 1)
    return Perm(tuple(axis - 1 for axis in p.order[1:-1]))


@attribute_function
def of_kernel(p: Perm) -> Perm:
    """The same of a kernel, whose last two axes stay."""
    rank = len(p.order)
    return Perm((*(axis - 1 for axis in p.order[1:-1]), rank - 2, rank - 1))


@rule
def turn_conv(x: Tensor, w: Tensor, p: Perm, window: Window, groups: Groups) -> Law:
    """transpose(conv(x, w), p) = conv(transpose(x, p), transpose(w, p)): the window by p⁻¹, which
    is another permutation where three axes change places"""
    left = transpose(conv(x, w, window, groups), p)
    turned = window.permuted(of_image(p).inverse)
    right = conv(transpose(x, p), transpose(w, of_kernel(p)), turned, groups)
    return rewrites(left, right, x.type.dtype.is_integer, left.type == right.type)


WRONG = [drop_whole_slice, turn_conv]


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.name)
def test_laws_that_are_wrong_at_high_ranks_only_are_refuted(wrong: Rule, seed: int) -> None:
    report = check(wrong, seed, shrink=False)
    assert report.verdict == "refuted", str(report)


@pytest.mark.parametrize("law", WRONG, ids=lambda each: each.name)
def test_firings_get_more_axes(law: Rule) -> None:
    (direction,) = law.directions
    firings = Firings(direction)
    firings.draw(Random(0), 50, 2000)
    found = list(of_more_axes(direction, [*firings.found.values()], 0, 1))
    assert {each.types["x"].rank for each in found} == {5, 6}
    assert all(map(fires, found))


@attribute_function
def turned_at_seven(t: TensorType) -> Slices:
    """Everything in order, but the last axis of seven from its end."""
    at = t.rank - 1 if t.rank == 7 else t.rank
    starts = tuple(dim - 1 if axis == at else 0 for axis, dim in enumerate(t.shape))
    return Slices(starts, t.shape, tuple(-1 if axis == at else 1 for axis in range(t.rank)))


@rule
def wrong_at_seven(x: Tensor) -> Law:
    """relu(relu(x)) = relu(x): not of seven axes"""
    right = slice_(unary("relu", x), turned_at_seven(x.type))
    return rewrites(unary("relu", unary("relu", x)), right)


MOST = 7


@attribute_function
def is_longer(p: Perm) -> bool:
    return len(p.order) > MOST


@rule
def wrong_above_seven(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, p⁻¹) of more axes than the module says"""
    return rewrites(transpose(x, p), transpose(x, p.inverse), is_longer(p))


NAMED = [wrong_at_seven, wrong_above_seven]


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("wrong", NAMED, ids=lambda each: each.name)
def test_ranks_that_a_law_names_are_drawn(wrong: Rule, seed: int) -> None:
    report = check(wrong, seed, shrink=False)
    assert report.verdict == "refuted", str(report)
