"""Laws of several slices that hang together, and count in elements where they step over some."""

from __future__ import annotations

from random import Random

import pytest

from satura.rewrite.check import testing
from satura.rewrite.check.common_steps import with_common_steps
from satura.rewrite.check.instances import fires
from satura.rewrite.check.refute import first_failure
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.conditions import has_value
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, concat, slice_
from satura.rewrite.types.attributes import Axis, Slices, refuse_unless
from satura.rewrite.types.tensor_type import TensorType
from satura.testing import check


def longer(s: Slices, t: Slices, axis: int) -> Slices:
    """The slices s that go on along an axis by as many elements as t has."""
    sizes = tuple(size + t.sizes[axis] if at == axis else size for at, size in enumerate(s.sizes))
    return Slices(s.starts, sizes, s.steps)


def are_alike(s: Slices, t: Slices, axis: int) -> bool:
    """Whether two slices have the same steps, and the same starts along other axes."""
    others = [at for at in range(len(s.sizes)) if at != axis]
    return s.steps == t.steps and all(s.starts[at] == t.starts[at] for at in others)


@attribute_function
def one_slice(s: Slices, t: Slices, a: Axis, counts_steps: bool) -> Slices:
    """Both slices as one, where t begins behind s by its elements, or by all that it steps over."""
    step = s.steps[a.index] if counts_steps else 1
    refuse_unless(are_alike(s, t, a.index))
    refuse_unless(t.starts[a.index] == s.starts[a.index] + s.sizes[a.index] * step)
    return longer(s, t, a.index)


@rule
def adjacent_slices(x: Tensor, s: Slices, t: Slices, a: Axis) -> Law:
    """concat(slice(x, s), slice(x, t)) = slice(x, …) where t begins at s's start + size"""
    whole = slice_(x, one_slice(s, t, a, False))
    return rewrites(concat(slice_(x, s), slice_(x, t), a), whole, has_value(whole.type))


@rule
def adjacent_steps(x: Tensor, s: Slices, t: Slices, a: Axis) -> Law:
    """the same where t begins at s's start + size * step, which is right"""
    whole = slice_(x, one_slice(s, t, a, True))
    return rewrites(concat(slice_(x, s), slice_(x, t), a), whole, has_value(whole.type))


@attribute_function
def over_the_seam(x: TensorType, s: Slices, t: Slices, a: Axis) -> Slices:
    """A slice that reads the end of x as s does, and then what t does."""
    refuse_unless(are_alike(s, t, a.index) and t.starts[a.index] == 0)
    refuse_unless(s.starts[a.index] + s.sizes[a.index] == x.shape[a.index])
    return longer(s, t, a.index)


@rule
def slices_of_neighbours(x: Tensor, y: Tensor, s: Slices, t: Slices, a: Axis) -> Law:
    """concat(slice(x, s), slice(y, t)) = slice(concat(x, y), …) where s ends x and t begins y"""
    whole = slice_(concat(x, y, a), over_the_seam(x.type, s, t, a))
    return rewrites(concat(slice_(x, s), slice_(y, t), a), whole, has_value(whole.type))


@attribute_function
def as_far(s: Slices, t: Slices) -> bool:
    """Whether two slices begin and end at the same places if their steps are 1."""
    return (s.starts, s.sizes) == (t.starts, t.sizes)


@rule
def sum_of_slices(x: Tensor, y: Tensor, s: Slices, t: Slices) -> Law:
    """slice(x, s) + slice(y, t) = slice(x + y, s) of slices as long: not for other steps"""
    left = binary("add", slice_(x, s), slice_(y, t))
    whole = slice_(binary("add", x, y), s)
    return rewrites(left, whole, as_far(s, t), x.type == y.type)


WRONG = [adjacent_slices, slices_of_neighbours, sum_of_slices]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.name)
def test_slices_that_step_over_elements_are_refuted(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_slices_one_step_apart_are_one(seed: int) -> None:
    report = check(adjacent_steps, seed, shrink=False)
    assert report.is_sound, str(report)


@pytest.mark.deep
def test_some_are_refuted_by_common_steps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "with_common_steps", lambda *_: iter(()))
    verdicts = {wrong.name: check(wrong, shrink=False).verdict for wrong in WRONG}
    assert "tested" in verdicts.values(), verdicts


def test_slices_with_one_step_fire() -> None:
    (direction,) = adjacent_slices.directions
    firings = Firings(direction)
    firings.draw(Random(0), 40, 1500)
    drawn = [*firings.found.values()]
    found = list(with_common_steps(drawn, 0, 1))
    assert len(found) > 20 and all(map(fires, found))
    assert not {each.values for each in drawn} & {each.values for each in found}
    assert first_failure(found, exact=True) is not None
