"""Laws on gathers whose indices are computed: the argument that they come from may be anything."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from satura.language import (
    Axis,
    Builder,
    Constant,
    DType,
    Law,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    attribute_function,
    binary,
    broadcast,
    cast,
    constant,
    gather,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    unary,
)
from satura.rewrite.check.arguments import random_arguments
from satura.rewrite.check.both_sides import examine
from satura.rewrite.check.compare import node_values
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.large_extents import of_large_extents
from satura.rewrite.check.refute import first_failure
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.check.testing import check
from satura.rewrite.language.dsl import Rule
from satura.rewrite.ops.draw import Draw
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array
from tests.tiers import deep_but

EXTENT = 4
DRAWS = 40


@pytest.mark.parametrize(
    ("f", "number"), [("add", 4), ("sub", 9), ("min", 3), ("max", -4), ("mod", 4), ("and", 3)]
)
def test_a_computed_index_is_in_range_where_its_argument_is_not(f: str, number: int) -> None:
    assert shares(lambda build, i: build.binary(f, i, pair(build, number)))[1] > 0.1


def test_an_index_is_in_range_where_what_a_function_takes_is_not() -> None:
    assert shares(lambda build, i: build.cast(i, DType.I32))[1] > 0.1
    assert shares(lambda build, i: build.unary("sign", i))[1] > 0.1


def test_a_multiple_is_in_range() -> None:
    assert shares(lambda build, i: build.binary("mul", i, pair(build, 3)))[0] > 0.4


def pair(build: Builder, number: int) -> int:
    """Two elements that are both this number."""
    one = build.reshape(build.constant(number, DType.I64), (1,))
    return build.broadcast(one, (2,))


def shares(computed: Callable[[Builder, int], int]) -> tuple[float, float]:
    """In how many draws two computed indices are in range, and of these an argument is not."""
    build = Builder()
    x, i = build.input("x", DType.F32, (EXTENT,)), build.input("i", DType.I64, (2,))
    indices = computed(build, i)
    program = build.program({"left": build.gather(x, indices, 0)})
    draw = Draw(Random(0))
    valid = beyond = 0
    for _ in range(DRAWS):
        arguments = random_arguments(program, draw, moderate=False)
        found = node_values(program.nodes[: indices + 1], arguments)[indices]
        is_valid = are_in_range(found)
        valid += is_valid
        beyond += is_valid and not are_in_range(arguments["i"])
    return valid / DRAWS, beyond / DRAWS


def are_in_range(indices: Array) -> bool:
    return all(-EXTENT <= index < EXTENT for index in indices.tolist())


def filled(c: Scalar, ones: Shape, s: Shape) -> Term:
    return broadcast(reshape(c, ones), s)


@attribute_function
def is_extent(x: TensorType, a: Axis, c: Scalar) -> bool:
    """Whether c is how many slices x has along the axis."""
    return bool(c.value == x.shape[a.index])


@attribute_function
def is_last(x: TensorType, a: Axis, c: Scalar) -> bool:
    """Whether c is the index of the last slice of x."""
    return bool(int(c.value) + 1 == x.shape[a.index])


@rule
def count_from_the_end(x: Tensor, i: Tensor, a: Axis, c: Scalar, ones: Shape, s: Shape) -> Law:
    """gather(x, i + n) = gather(x, i): not for i less than -n"""
    shifted = binary("add", i, filled(c, ones, s))
    return rewrites(gather(x, shifted, a), gather(x, i, a), is_extent(x.type, a, c))


@rule
def count_to_the_end(x: Tensor, i: Tensor, a: Axis, c: Scalar, ones: Shape, s: Shape) -> Law:
    """gather(x, i - n) = gather(x, i): not for i of n and more"""
    shifted = binary("sub", i, filled(c, ones, s))
    return rewrites(gather(x, shifted, a), gather(x, i, a), is_extent(x.type, a, c))


@rule
def index_below(x: Tensor, i: Tensor, a: Axis, c: Scalar, ones: Shape, s: Shape) -> Law:
    """gather(x, min(i, n - 1)) = gather(x, i): not for i of n and more"""
    least = binary("min", i, filled(c, ones, s))
    return rewrites(gather(x, least, a), gather(x, i, a), is_last(x.type, a, c))


@rule
def index_around(x: Tensor, i: Tensor, a: Axis, c: Scalar, ones: Shape, s: Shape) -> Law:
    """gather(x, i mod n) = gather(x, i): not for other i than from -n to n - 1"""
    around = binary("mod", i, filled(c, ones, s))
    return rewrites(gather(x, around, a), gather(x, i, a), is_extent(x.type, a, c))


@rule
def index_by_32_bits(x: Tensor, i: Tensor, a: Axis) -> Law:
    """gather(x, i32(i)) = gather(x, i): not for an i64 of more bits"""
    return rewrites(gather(x, cast(i, DType.I32), a), gather(x, i, a), i.type.dtype == DType.I64)


@rule
def index_around_twice(x: Tensor, i: Tensor, a: Axis, c: Scalar, ones: Shape, s: Shape) -> Law:
    """gather(x, i mod c) = gather(x, (i mod c) mod c)"""
    number = filled(c, ones, s)
    twice = binary("mod", binary("mod", i, number), number)
    return rewrites(gather(x, binary("mod", i, number), a), gather(x, twice, a))


@rule
def index_as_negative(x: Tensor, i: Tensor, a: Axis) -> Law:
    """gather(x, ~i) = gather(x, -i - 1), which is the same index"""
    below = binary("sub", unary("neg", i), 1)
    return rewrites(gather(x, unary("bitnot", i), a), gather(x, below, a))


@attribute_function
def run_of(x: TensorType, a: Axis, indices: Constant, wraps: bool) -> Slices:
    """The run that indices are, where they count by 1; an IndexError where one is out of range."""
    extent = x.shape[a.index]
    refuse_unless(isinstance(extent, int) and indices.array.size > 1)
    places = np.arange(static(extent))[indices.array].tolist()
    counted = places if wraps else indices.array.tolist()
    refuse_unless(all(n == counted[0] + number for number, n in enumerate(counted)))
    starts = tuple(places[0] if axis == a.index else 0 for axis in range(x.rank))
    sizes = tuple(len(places) if axis == a.index else dim for axis, dim in enumerate(x.shape))
    return Slices(starts, sizes, (1,) * x.rank)


@rule
def slice_of_run(x: Tensor, a: Axis, i: Constant) -> Law:
    """gather(x, i) = slice(x, …) where the places that i reads from are a run"""
    run = slice_(x, run_of(x.type, a, i, True))
    return rewrites(gather(x, constant(i), a), run, i.type.rank == 1)


@rule
def slice_of_indices(x: Tensor, a: Axis, i: Constant) -> Law:
    """the same where i is a run: not for -1 and 0"""
    run = slice_(x, run_of(x.type, a, i, False))
    return rewrites(gather(x, constant(i), a), run, i.type.rank == 1)


WRONG = [
    count_from_the_end, count_to_the_end, index_below, index_around, index_by_32_bits,
    slice_of_indices,
]  # fmt: skip
RIGHT = [index_around_twice, index_as_negative, slice_of_run]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.name)
def test_wrong_indices_are_refuted(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed).verdict == "refuted"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("right", RIGHT, ids=lambda each: each.name)
def test_right_indices_are_not(right: Rule, seed: int) -> None:
    report = check(right, seed)
    assert report.verdict == "tested", str(report)


def test_an_instance_whose_indices_are_out_of_range_is_none() -> None:
    (direction,) = slice_of_indices.directions
    firings = Firings(direction)
    firings.draw(Random(0), 20, 300)
    assert firings.broken is None and firings.found
    places = Constant(np.array([0, 2]))
    beyond = Instance(
        direction, (("x", TensorType(DType.F32, (2,))), ("a", Axis(0)), ("i", places)), 0
    )
    assert examine(beyond, True, Draw(Random(0))) is None


@rule
def index_as_i8(x: Tensor, i: Tensor, a: Axis) -> Law:
    """x[i] = x[i64(i8(i))]: not from the 128th on"""
    return rewrites(gather(x, i, a), gather(x, cast(cast(i, DType.I8), DType.I64), a))


@rule
def index_as_u8(x: Tensor, i: Tensor, a: Axis) -> Law:
    """x[|i|] = x[i64(u8(|i|))]: not from the 256th on"""
    there = unary("abs", i)
    return rewrites(gather(x, there, a), gather(x, cast(cast(there, DType.U8), DType.I64), a))


@rule
def index_as_i16(x: Tensor, i: Tensor, a: Axis) -> Law:
    """x[i] = x[i64(i16(i))]: not from the 32,768th on"""
    return rewrites(gather(x, i, a), gather(x, cast(cast(i, DType.I16), DType.I64), a))


@pytest.mark.parametrize("seed", deep_but([0], (0, 1009, 424242, 1, 7, 99)))
@pytest.mark.parametrize(
    "law", [index_as_i8, index_as_u8, index_as_i16], ids=lambda each: each.name
)
def test_indices_near_the_end_of_long_axes_are_drawn(law: Rule, seed: int) -> None:
    (direction,) = law.directions
    assert first_failure(of_large_extents(direction, [], seed, 1), True, seed) is not None
