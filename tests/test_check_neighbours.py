"""Laws that are wrong by one field of an attribute, which firings seldom have."""

from __future__ import annotations

from math import isclose
from random import Random

import numpy as np
import pytest

from satura.rewrite.check import side_conditions, testing
from satura.rewrite.check.disagreement import disagreement
from satura.rewrite.check.instances import Instance, fires
from satura.rewrite.check.neighbours import beside, neighbours
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    conv,
    matmul,
    pad,
    pool,
    reshape,
    scalar,
    select,
    transpose,
    unary,
)
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Groups, Padding, Perm, Shape, Window, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import product
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules import DEFAULT
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def is_zero(v: Scalar) -> bool:
    return float(v.value) == 0.0


@attribute_function
def only_inner(p: Padding, q: Padding) -> bool:
    """Whether both pad what a matmul sums over, by as much; at which end is forgotten."""
    last = len(p.lo) - 1
    rest = [each for axis in range(last) for each in (p.lo[axis], p.hi[axis])]
    others = [axis for axis in range(last + 1) if axis != last - 1]
    rest += [each for axis in others for each in (q.lo[axis], q.hi[axis])]
    return not any(rest) and p.lo[last] + p.hi[last] == q.lo[last - 1] + q.hi[last - 1]


@rule(reassociates=True)
def matmul_of_pads(x: Tensor, y: Tensor, v: Scalar, p: Padding, q: Padding) -> Law:
    """matmul(pad(x, 0), pad(y, 0)) = matmul(x, y), when the sum is longer by as much"""
    zero = scalar(v)
    return rewrites(
        matmul(pad(x, zero, p), pad(y, zero, q)), matmul(x, y), only_inner(p, q), is_zero(v)
    )


@attribute_function
def covers(w: Window, x: TensorType) -> bool:
    """Whether there are as many taps as elements; that they may be apart is forgotten."""
    return w.sizes == x.shape[1:-1] and not w.has_border


@attribute_function
def flat(x: TensorType, kept: int) -> Shape:
    """Two axes: the first or the last, and all others."""
    dims = x.shape
    return Shape((dims[0], product(dims[1:])) if kept == 0 else (product(dims[:-1]), dims[-1]))


@attribute_function
def one_place(x: TensorType, w: TensorType) -> Shape:
    return Shape((x.shape[0], *(1,) * (x.rank - 2), w.shape[-1]))


@rule(reassociates=True)
def conv_that_covers(x: Tensor, w: Tensor, window: Window) -> Law:
    """conv(x, w) is a matmul, when the window is as large as x"""
    whole = matmul(reshape(x, flat(x.type, 0)), reshape(w, flat(w.type, 1)))
    return rewrites(
        conv(x, w, window, Groups(1)),
        reshape(whole, one_place(x.type, w.type)),
        covers(window, x.type),
    )


@attribute_function
def same(x: TensorType, y: TensorType) -> bool:
    return x == y


@attribute_function
def are_alike(v: Window, w: Window) -> bool:
    """Whether two windows are the same but for the sides of their borders."""
    borders = zip(v.lo, v.hi, w.lo, w.hi, strict=True)
    same = (v.sizes, v.strides, v.dilations, v.fill) == (w.sizes, w.strides, w.dilations, w.fill)
    return same and all(a + b == c + d for a, b, c, d in borders)


@rule
def max_of_pools(x: Tensor, y: Tensor, v: Window, w: Window) -> Law:
    """max(pool(x, v), pool(y, w)) = pool(max(x, y), v), when the windows are alike"""
    return rewrites(
        binary("max", pool("max", x, v), pool("max", y, w)),
        pool("max", binary("max", x, y), v),
        are_alike(v, w),
        same(x.type, y.type),
    )


@attribute_function
def last_axis_once(p: Perm, q: Perm) -> Perm:
    """The permutations one after the other, if both keep the last axis or neither does."""
    last = len(p.order) - 1
    refuse_unless(last >= 0 and (p.order[last] == last) == (q.order[last] == last))
    return Perm(tuple(p.order[axis] for axis in q.order)) if p == q else p.inverse


@rule
def transposes_that_agree(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) is one transpose; it is another one, where p is not q"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, last_axis_once(p, q)))


@attribute_function
def is_plus_zero(v: Scalar) -> bool:
    return not any(v.bits)


@attribute_function
def is_above_0(c: Scalar) -> bool:
    return float(c.value) > 0


@rule
def scale_of_pad(x: Tensor, v: Scalar, p: Padding, c: Scalar, ones: Shape, s: Shape) -> Law:
    """pad(x, 0) * c = pad(x * c, 0) for c above 0; wrong for an infinite c"""
    factor = reshape(scalar(c), ones)
    return rewrites(
        binary("mul", pad(x, scalar(v), p), broadcast(factor, s)),
        pad(binary("mul", x, broadcast(factor, Shape(x.type.shape))), scalar(v), p),
        is_plus_zero(v),
        is_above_0(c),
    )


WRONG = [matmul_of_pads, conv_that_covers, max_of_pools, transposes_that_agree, scale_of_pad]


@pytest.mark.parametrize("seed", deep_but([0], range(3)))
@pytest.mark.parametrize(
    "wrong", deep_but([transposes_that_agree], WRONG), ids=lambda each: each.name
)
def test_laws_that_are_wrong_by_one_field_are_refuted(wrong: Rule, seed: int) -> None:
    report = check(wrong, seed, shrink=False)
    assert report.verdict == "refuted", str(report)


@pytest.mark.deep
def test_some_are_refuted_by_neighbours_or_equations_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "neighbours", lambda *_: iter(()))
    monkeypatch.setattr(side_conditions, "solved_within", lambda *_: iter(()))
    verdicts = {wrong.name: check(wrong, shrink=False).verdict for wrong in WRONG}
    assert "tested" in verdicts.values(), verdicts


@pytest.mark.parametrize("law", deep_but(WRONG[1::2], WRONG), ids=lambda each: each.name)
def test_neighbours_fire_and_have_other_attributes(law: Rule) -> None:
    (direction,) = law.directions
    firings = Firings(direction)
    firings.draw(Random(0), 150, 6000)
    drawn = [*firings.found.values()]
    found = list(neighbours(direction, drawn, 0, 1))
    assert len(found) > 5
    assert all(map(fires, found))
    assert not {each.values for each in drawn} & {each.values for each in found}


def test_flags_are_0_or_1_in_neighbours_too() -> None:
    (direction,) = DEFAULT["transpose_past_arg_reduce"].directions
    firings = Firings(direction)
    firings.draw(Random(0), 20, 6000)
    found = neighbours(direction, [*firings.found.values()], 0, 1)
    assert {str(each.bindings["last"]) for each in found} == {"0", "1"}


@pytest.mark.parametrize("other", [0.0, np.nan])
def test_infinities_that_meet_are_no_mistake_beside_a_nan(other: float) -> None:
    """(3 - 2) / 0 is infinite, and 3 / 0 - 2 / 0 is NaN, whatever another element is."""
    build = Builder()
    x, y, z = (build.input(name, DType.F32, (2,)) for name in "xyz")
    left = build.binary("div", build.binary("sub", x, y), z)
    right = build.binary("sub", build.binary("div", x, z), build.binary("div", y, z))
    program = build.program({"left": left, "right": right})
    at = {
        "x": np.array([3, other], np.float32),
        "y": np.array([2, 1], np.float32),
        "z": np.array([0, 1], np.float32),
    }
    assert disagreement(program, at, exact=False) == ""
    swallowed = build.program(
        {"left": left, "right": build.unary("abs", build.binary("sub", y, y))}
    )
    assert disagreement(swallowed, at, exact=False) != ""


@attribute_function
def is_near_one(c: Scalar) -> bool:
    return c.dtype.is_float and abs(float(c.value) - 1.0) < 1e-6


@attribute_function
def is_close_to_one(c: Scalar) -> bool:
    return c.dtype.is_float and isclose(float(c.value), 1.0)


@attribute_function
def is_near_zero(c: Scalar) -> bool:
    return c.dtype.is_float and abs(float(c.value)) < 1e-30


@rule
def times_nearly_one(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x * c = x, where c is 1 but for 1e-6"""
    return rewrites(binary("mul", x, broadcast(reshape(c, o), s)), x, is_near_one(c))


@rule
def divided_by_what_is_close_to_one(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x, where c is close to 1: of all floats only f64 has others"""
    return rewrites(binary("div", x, broadcast(reshape(c, o), s)), x, is_close_to_one(c))


@rule
def largest_of_nearly_zero(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """max(x, c) = relu(x), where c is 0 but for 1e-30"""
    largest = binary("max", x, broadcast(reshape(c, o), s))
    return rewrites(largest, unary("relu", x), is_near_zero(c))


@pytest.mark.parametrize("seed", deep_but([0], (0, 1009, 424242, 1, 7, 99)))
@pytest.mark.parametrize(
    ("law", "number"),
    [
        (times_nearly_one, 1.0),
        (divided_by_what_is_close_to_one, 1.0),
        (largest_of_nearly_zero, 0.0),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_floats_beside_a_number_that_meets_a_condition_are_tried(
    law: Rule, number: float, seed: int
) -> None:
    (direction,) = law.directions
    x, c = TensorType(DType.F64, (2, 3)), Scalar.of(number, DType.F64)
    shapes = (("o", Shape((1, 1))), ("s", Shape((2, 3))))
    instance = Instance(direction, (("x", x), ("c", c), *shapes), 0)
    found = [each.bindings["c"] for each in neighbours(direction, [instance], seed, 1)]
    assert any(isinstance(c, Scalar) and float(c.value) != number for c in found)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 1009, 424242])
@pytest.mark.parametrize(
    "law", [times_nearly_one, divided_by_what_is_close_to_one], ids=lambda each: each.name
)
def test_what_holds_at_a_number_and_not_beside_it_is_refuted(law: Rule, seed: int) -> None:
    report = check(law, seed, shrink=False)
    assert report.verdict == "refuted", str(report)


@pytest.mark.parametrize("dtype", [each for each in DType if each.is_float], ids=str)
def test_every_float_has_others_beside_it(dtype: DType) -> None:
    random = Random(0)
    for number in (0.0, 1.0, -0.5, np.inf, np.nan):
        found = [beside(Scalar.of(number, dtype).array, random) for _ in range(50)]
        assert {each.dtype for each in found} == {dtype.numpy}
        assert len({each.tobytes() for each in found}) > 1 or not np.isfinite(number)


@rule
def choose_twice(x: Tensor, f: Scalar, c: Scalar, o: Shape, s: Shape) -> Law:
    """where(f, c, where(f, c, x)) = where(f, c, x)"""
    flag, number = broadcast(reshape(f, o), s), broadcast(reshape(c, o), s)
    once = select(flag, number, x)
    return rewrites(select(flag, number, once), once)


def test_floats_beside_flags_are_moved_alone() -> None:
    (direction,) = choose_twice.directions
    x, c, f = TensorType(DType.F32, (2,)), Scalar.of(1.0, DType.F32), Scalar.of(1, DType.BOOL)
    shapes = (("o", Shape((1,))), ("s", Shape((2,))))
    instance = Instance(direction, (("x", x), ("f", f), ("c", c), *shapes), 0)
    found = list(neighbours(direction, [instance], 0, 1))
    assert found and all(each.bindings["f"] == f for each in found)
