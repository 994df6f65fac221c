"""Counterexamples have no axis, extent, element or number that shows nothing."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from satura.language import (
    Axis,
    Count,
    DType,
    Law,
    Padding,
    Rule,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    cast,
    iota,
    pad,
    pool,
    rewrites,
    rule,
    slice_,
    unary,
)
from satura.rewrite.check.both_sides import examine
from satura.rewrite.check.fewer_axes import with_fewer_axes
from satura.rewrite.check.in_egraph import examine_saturated
from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.check.shrink import smallest
from satura.rewrite.check.simpler_numbers import with_simpler_numbers
from satura.rewrite.ops.draw import Draw
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array
from satura.testing import check


@rule
def best_of_twice(x: Tensor, a: Axis, n: Count) -> Law:
    """argmax(2·x) = argmax(x), but for what overflows"""
    return rewrites(arg_reduce("max", binary("mul", x, 2.0), a, n), arg_reduce("max", x, a, n))


@rule
def counted_in_bf16(s: Shape, a: Axis) -> Law:
    """Counting in bf16, which ends at 256"""
    return rewrites(cast(iota(s, a, DType.BF16), DType.I64), iota(s, a, DType.I64))


@rule
def relu_of_pool(x: Tensor, w: Window) -> Law:
    """max-pool(relu(x)) = relu(max-pool(x)), but for a fill below 0"""
    return rewrites(pool("max", unary("relu", x), w), unary("relu", pool("max", x, w)))


@rule
def pad_outside(x: Tensor, v: Scalar, p: Padding, y: Tensor, v2: Scalar) -> Law:
    """pad(x, v) + pad(y, v2) = pad(x + y, v), where v = v2"""
    sides = binary("add", pad(x, v, p), pad(y, v2, p)), pad(binary("add", x, y), v, p)
    return rewrites(*sides, v == v2)


@rule(reassociates=True)
def absolute(x: Tensor) -> Law:
    """sqrt(x² + 1e-30) = |x|, but for 0"""
    return rewrites(unary("sqrt", binary("add", binary("mul", x, x), 1e-30)), unary("abs", x))


OVERFLOWING = np.ones((4, 5), np.float32)
OVERFLOWING[2, 1:3] = (3e38, np.inf)
X = TensorType(DType.F32, (4, 5))
FILL = Scalar.of(-0.39680028, DType.F32)
ODD = Window((2, 1), (3, 1), (2, 4), (4, 0), (0, 1), FILL)


def shrunk(
    law: Rule, arguments: dict[str, Array], **values: TensorType | Attribute
) -> tuple[dict[str, str], dict[str, Array]]:
    """The smallest values and arguments, from a failure that is not small."""
    (direction,) = law.directions
    instance = Instance(direction, tuple((n, values[n]) for n in direction.variables), 0)
    draw = Draw(Random(1))
    draw.values, draw.filled = "filled", {}
    failure = None
    if arguments:
        draw.filled = {name: array.reshape(-1) for name, array in arguments.items()}
    for _ in range(30):
        failure = failure or examine(instance, law.exact, draw)
    assert failure is not None
    found = smallest(failure, law.exact)
    assert found.instance is not None
    return {n: str(v) for n, v in found.instance.values}, dict(found.arguments)


def test_elements_that_have_to_differ_stay() -> None:
    values, arguments = shrunk(best_of_twice, {"x": OVERFLOWING}, x=X, a=Axis(1), n=Count(0))
    assert values["x"] == "f32[2]" and np.isinf(arguments["x"]).sum() == 1


@pytest.mark.deep
def test_shapes_of_what_has_no_tensors_shrink() -> None:
    values, _ = shrunk(counted_in_bf16, {}, s=Shape((300, 1)), a=Axis(0))
    assert values == {"s": "[258]", "a": "0"}


@pytest.mark.deep
def test_windows_and_their_fills_are_simple() -> None:
    odd = Window((2,), (3,), (2,), (4,), (1,), FILL)
    values, _ = shrunk(relu_of_pool, {}, x=TensorType(DType.F32, (4,)), w=odd)
    assert values["w"].endswith("fill f32(-1.0)") and values["x"] == "f32[1]"


def test_numbers_that_have_to_be_equal_change_together() -> None:
    (direction,) = pad_outside.directions
    odd = Scalar.of(2.58e-08, DType.F32)
    values: dict[str, TensorType | Attribute] = {
        "x": X,
        "v": odd,
        "p": Padding((0, 1), (0, 0)),
        "y": X,
        "v2": odd,
    }
    instance = Instance(direction, tuple((n, values[n]) for n in direction.variables), 0)
    simpler = [each.bindings for each in with_simpler_numbers(instance)]
    assert (simpler[0]["v"], simpler[0]["v2"]) == (Scalar.of(0, DType.F32),) * 2
    assert simpler[1]["v"] != odd == simpler[1]["v2"]


def test_axes_and_the_attributes_that_name_them_go_together() -> None:
    (direction,) = best_of_twice.directions
    instance = Instance(direction, (("x", X), ("a", Axis(1)), ("n", Count(0))), 0)
    assert [str(each) for each in with_fewer_axes(instance)] == ["x = f32[5], a = 0, n = 0"]


def test_simpler_numbers_are_all_simpler() -> None:
    (direction,) = relu_of_pool.directions
    instance = Instance(direction, (("x", TensorType(DType.F32, ())), ("w", ODD)), 0)
    assert list(with_simpler_numbers(instance)) == []  # a window of two axes over none
    instance = Instance(direction, (("x", TensorType(DType.F32, (4, 4))), ("w", ODD)), 0)
    shown = [str(each.bindings["w"]) for each in with_simpler_numbers(instance)]
    assert len(shown) == len(set(shown)) > 10 and str(ODD) not in shown


def test_a_failure_in_the_egraph_is_one_of_an_instance() -> None:
    (direction,) = absolute.directions
    instances = [Instance(direction, (("x", TensorType(DType.F32, (2,))),), 0)]
    draws = (Draw(Random(seed)) for seed in range(40))
    found = (examine_saturated(absolute, instances, draw) for draw in draws)
    failure = next(each for each in found if each is not None)
    assert failure.instance == instances[0] and list(failure.arguments) == ["x"]
    assert failure.sizes == {}


@attribute_function
def backwards(t: TensorType, a: Axis) -> Slices:
    """All elements along an axis, which the type must have, from the last to the first."""
    starts, steps = [0] * t.rank, [1] * t.rank
    starts[a.index], steps[a.index] = static(t.shape[a.index]) - 1, -1
    return Slices(tuple(starts), t.shape, tuple(steps))


@rule
def best_of_reversed(x: Tensor, a: Axis, n: Count) -> Law:
    """argmax(reverse(x)) = argmax(x)"""
    backward = slice_(x, backwards(x.type, a))
    return rewrites(arg_reduce("max", backward, a, n), arg_reduce("max", x, a, n))


def test_functions_of_the_left_side_may_fail_for_fewer_axes() -> None:
    (direction,) = best_of_reversed.directions
    values = (("x", TensorType(DType.F32, ())), ("a", Axis(0)), ("n", Count(0)))
    assert not is_well_typed(Instance(direction, values, 0))
    assert check(best_of_reversed, attempts=100).verdict == "refuted"
