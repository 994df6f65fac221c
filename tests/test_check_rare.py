"""What the checker draws for the sake of few laws: rare dtypes, values, extents and orders."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from satura.rewrite.check.both_sides import Failure
from satura.rewrite.check.counterexample import counterexample
from satura.rewrite.check.exchanged_extents import with_exchanged_extents
from satura.rewrite.check.extremes import with_opposite_zeros
from satura.rewrite.check.from_operands import draw_from_operands
from satura.rewrite.check.instances import Instance, fires
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.check.solved import solved
from satura.rewrite.language.conditions import has_value
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    binary,
    cast,
    concat,
    conv,
    gather,
    pad,
    pool,
    reduce,
    reshape,
    select,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    Padding,
    Perm,
    Shape,
    Slices,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import known_at_least, static
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


@rule
def transpose_bits(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = ~transpose(~x, p) of integers: i4 has no ~"""
    right = unary("bitnot", transpose(unary("bitnot", x), p))
    return rewrites(transpose(x, p), right, x.type.dtype.is_integer)


@rule
def concat_bits(x: Tensor, y: Tensor, a: Axis) -> Law:
    """concat(x, y, a) = ~concat(~x, ~y, a) of integers: i4 has no ~"""
    right = unary("bitnot", concat(unary("bitnot", x), unary("bitnot", y), a))
    return rewrites(concat(x, y, a), right, x.type.dtype.is_integer)


@rule
def gather_bits(x: Tensor, i: Tensor, a: Axis) -> Law:
    """gather(x, i, a) = ~gather(~x, i, a) of integers: i4 has no ~"""
    right = unary("bitnot", gather(unary("bitnot", x), i, a))
    return rewrites(gather(x, i, a), right, x.type.dtype.is_integer)


@rule
def select_by_product(c: Tensor, x: Tensor) -> Law:
    """select(c, x, 0) = x * c of integers: i4 has no product"""
    right = binary("mul", x, cast(c, x.type.dtype))
    return rewrites(select(c, x, 0), right, x.type.dtype.is_integer)


@rule
def select_same(c: Tensor, x: Tensor) -> Law:
    """select(c, x, x) = max(x, x) but of bools: f8 has no max"""
    return rewrites(select(c, x, x), binary("max", x, x), x.type.dtype != DType.BOOL)


NARROW = [transpose_bits, concat_bits, gather_bits, select_by_product, select_same]


@pytest.mark.parametrize("law", deep_but(NARROW[::4], NARROW), ids=lambda each: each.name)
def test_what_is_only_moved_has_narrow_dtypes_too(law: Rule) -> None:
    report = check(law, shrink=False)
    assert report.verdict == "refuted" and "does not take" in report.reason


@attribute_function
def turned_at(t: TensorType, n: Count) -> Slices:
    """Everything in order, but from the end along axes of extent n."""
    turned = [dim == n.value for dim in t.shape]
    starts = tuple(n.value - 1 if each else 0 for each in turned)
    return Slices(starts, t.shape, tuple(-1 if each else 1 for each in turned))


@rule
def turned_12(x: Tensor) -> Law:
    """relu(relu(x)) = relu(x): not of an extent of 12, which stands in an attribute alone"""
    right = slice_(unary("relu", x), turned_at(x.type, Count(12)))
    return rewrites(unary("relu", unary("relu", x)), right)


@pytest.mark.parametrize("seed", range(2))
def test_extents_that_attributes_of_the_law_name_are_drawn(seed: int) -> None:
    assert check(turned_12, seed, shrink=False).verdict == "refuted"


@attribute_function
def at_most_at_both(b: Padding) -> Padding:
    """The padding, but less of it where both ends of an axis have eight or more."""
    is_long = [
        known_at_least(lo, 8) and known_at_least(hi, 8) for lo, hi in zip(b.lo, b.hi, strict=True)
    ]
    return Padding(b.lo, tuple(7 if each else hi for each, hi in zip(is_long, b.hi, strict=True)))


@rule
def pad_at_most(x: Tensor, b: Padding) -> Law:
    """pad(x, 0, b) = pad(x, 0, b): not of eight at both ends"""
    return rewrites(pad(x, 0, b), pad(x, 0, at_most_at_both(b)))


@pytest.mark.parametrize("seed", range(2))
def test_paddings_that_a_law_names_are_drawn_at_both_ends(seed: int) -> None:
    assert check(pad_at_most, seed, shrink=False).verdict == "refuted"


@attribute_function
def turns_along(s: Slices, x: TensorType, a: Axes) -> bool:
    """Whether s takes all of x, axes other than a in order."""
    steps = all(step == 1 or (step == -1 and i in a.indices) for i, step in enumerate(s.steps))
    return s.sizes == x.shape and steps


@rule
def sum_turned(x: Tensor, s: Slices, a: Axes) -> Law:
    """sum(slice(x, s), a) = sum(x, a) where s turns what is summed: not for three floats"""
    right = reduce("sum", x, a)
    return rewrites(reduce("sum", slice_(x, s), a), right, turns_along(s, x.type, a))


@attribute_function
def before(p: Perm, a: Axes) -> Axes:
    """The axes of x that are a in transpose(x, p)."""
    return Axes(tuple(sorted(p.order[axis] for axis in a.indices)))


@rule
def product_of_transposed(x: Tensor, p: Perm, a: Axes) -> Law:
    """prod(transpose(x, p), a) = transpose(prod(x, p(a)), p): not for floats along two axes"""
    right = transpose(reduce("prod", x, before(p, a)), p)
    return rewrites(reduce("prod", transpose(x, p), a), right)


ORDERS = [sum_turned, product_of_transposed]


@pytest.mark.parametrize("seed", deep_but([0], range(8)))
@pytest.mark.parametrize("law", deep_but([sum_turned], ORDERS), ids=lambda each: each.name)
def test_floats_are_summed_in_another_order(law: Rule, seed: int) -> None:
    assert check(law, seed, shrink=False).verdict == "refuted"


@rule
def divide_bytes(x: Tensor) -> Law:
    """x / 22 = x * 187 >> 12 of bytes: not for 241"""
    right = binary("shr", binary("mul", cast(x, DType.U32), 187), 12)
    return rewrites(cast(binary("div", x, 22), DType.U32), right, x.type.dtype == DType.U8)


@rule
def sums_of_bytes(x: Tensor, y: Tensor) -> Law:
    """x + 1000 y = x + 1000 y of bytes, but for x = 83 and y = 57"""
    left = binary("add", cast(x, DType.I32), binary("mul", cast(y, DType.I32), 1000))
    right = binary("add", left, cast(binary("eq", left, 57_083), DType.I32))
    return rewrites(left, right, x.type.dtype == DType.I8, y.type.dtype == DType.I8)


@rule
def all_but_one(x: Tensor) -> Law:
    """u32(x) = u32(x) of 16 bits, but of one number that no function names"""
    wide = cast(x, DType.U32)
    is_one = binary("eq", binary("mul", wide, 7), 7 * 45_678)
    return rewrites(wide, binary("add", wide, cast(is_one, DType.U32)), x.type.dtype == DType.U16)


SMALL = [divide_bytes, sums_of_bytes, all_but_one]


@pytest.mark.parametrize("seed", deep_but([1], range(4)))
@pytest.mark.parametrize("law", deep_but([divide_bytes], SMALL), ids=lambda each: each.name)
def test_small_operands_have_every_value(law: Rule, seed: int) -> None:
    assert check(law, seed, shrink=False).verdict == "refuted"


@attribute_function
def mirrored(x: TensorType) -> Slices:
    """Everything of images, whose rows and columns are read from the end."""
    inner = range(1, x.rank - 1)
    starts = tuple(dim - 1 if axis in inner else 0 for axis, dim in enumerate(x.shape))
    return Slices(starts, x.shape, tuple(-1 if axis in inner else 1 for axis in range(x.rank)))


@attribute_function
def turned_taps(w: TensorType) -> Slices:
    """All of a kernel, whose taps are read from the end."""
    taps = range(w.rank - 2)
    starts = tuple(dim - 1 if axis in taps else 0 for axis, dim in enumerate(w.shape))
    return Slices(starts, w.shape, tuple(-1 if axis in taps else 1 for axis in range(w.rank)))


@attribute_function
def equal(s: Slices, t: Slices) -> bool:
    return s == t


@attribute_function
def is_symmetric(w: Window) -> bool:
    return w.lo == w.hi and w.strides == (1,) * w.rank


@rule
def conv_of_mirrored(x: Tensor, w: Tensor, s: Slices, v: Window, g: Groups) -> Law:
    """conv(mirrored(x), w) = mirrored(conv(x, mirrored(w))) of integers, in steps of 1"""
    left = conv(slice_(x, s), w, v, g)
    taps = slice_(w, turned_taps(w.type))
    right = slice_(conv(x, taps, v, g), mirrored(left.type))
    are_mirrored = equal(s, mirrored(x.type))
    return rewrites(left, right, are_mirrored, is_symmetric(v), x.type.dtype.is_integer)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_all_of_a_tensor_is_read_from_the_end(seed: int) -> None:
    report = check(conv_of_mirrored, seed)
    assert report.is_sound, str(report)


@attribute_function
def begins_alike(x: TensorType, s: Shape) -> bool:
    """Whether both have the same first extent: other axes are forgotten."""
    return x.rank == len(s.dims) > 0 and x.shape[0] == s.dims[0]


@rule
def max_of_reshaped(x: Tensor, s: Shape, a: Axes) -> Law:
    """max(reshape(x, s), a) = reshape(max(x, a)): not for a later axis that others have moved to"""
    left = reduce("max", reshape(x, s), a)
    right = reshape(reduce("max", x, a), Shape(left.type.shape))
    return rewrites(left, right, begins_alike(x.type, s), has_value(right.type))


@attribute_function
def is_larger(v: Scalar, w: Scalar) -> bool:
    return float(v.value) >= float(w.value)


@rule
def larger_fill(x: Tensor, y: Tensor, v: Scalar, w: Scalar, p: Padding) -> Law:
    """max(pad(x, v), pad(y, w)) = pad(max(x, y), v) for v >= w: not for -0.0 and 0.0"""
    left = binary("max", pad(x, v, p), pad(y, w, p))
    return rewrites(left, pad(binary("max", x, y), v, p), is_larger(v, w))


RARE = [max_of_reshaped, larger_fill]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("law", RARE, ids=lambda each: each.name)
def test_extents_are_exchanged_and_zeros_opposite(law: Rule, seed: int) -> None:
    assert check(law, seed, shrink=False).verdict == "refuted"


def test_exchanged_extents_fire() -> None:
    (direction,) = max_of_reshaped.directions
    firings = Firings(direction)
    firings.draw(Random(0), 20, 600)
    found = list(with_exchanged_extents(direction, [*firings.found.values()], 0, 1))
    assert len(found) > 5 and all(map(fires, found))
    assert not {each.values for each in firings.found.values()} & {each.values for each in found}


def test_each_of_two_floats_is_either_zero() -> None:
    (direction,) = larger_fill.directions
    type_, one = TensorType(DType.F32, (2,)), Scalar.of(1.0, DType.F32)
    padding = ("p", Padding((0,), (1,)))
    base = Instance(direction, (("x", type_), ("y", type_), ("v", one), ("w", one), padding), 0)
    found = [each.bindings for each in with_opposite_zeros([base], 1)]
    assert [(str(each["v"]), str(each["w"])) for each in found] == [
        ("f32(0.0)", "f32(-0.0)"),
        ("f32(-0.0)", "f32(0.0)"),
    ]


@attribute_function
def turned_but_hi(w: Window) -> Window:
    """The window over two axes in the other order, but for the border behind them."""
    return replace(w.permuted(Perm((1, 0))), hi=w.hi)


@rule
def pool_of_turned(x: Tensor, w: Window, p: Perm) -> Law:
    """pool(xᵀ, w) = pool(x, w turned)ᵀ: where x is empty, a window may fit into a border alone"""
    left, right = pool("max", transpose(x, p), w), pool("max", x, turned_but_hi(w))
    turned = transpose(right, p)
    return rewrites(left, turned, p.order == (1, 0), left.type == turned.type)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_windows_with_a_border_are_over_what_may_be_empty(seed: int) -> None:
    assert check(pool_of_turned, seed, shrink=False).verdict == "refuted"


@pytest.mark.deep
def test_a_counterexample_of_elements_has_one_element() -> None:
    shown = check(divide_bytes, 1).counterexample
    assert shown is not None and shown.bindings == {"x": "u8[]"}
    assert "np.array(241, 'uint8')" in shown.program


def test_elements_of_large_arrays_are_told() -> None:
    build = Builder()
    x = build.input("x", DType.I16, (256,))
    program = build.program({"left": build.unary("abs", x), "right": build.unary("relu", x)})
    at = {"x": np.arange(-2, 254).astype(np.int16)[::-1].copy()}
    shown = counterexample(Failure(program, "they differ", {}, at, None), divide_bytes)
    assert shown.reason == "they differ, where x has -1"


@attribute_function
def whole(x: TensorType) -> Window:
    """The window that covers the second of two axes, and begins before it."""
    refuse_unless(x.rank == 2 and isinstance(x.shape[1], int) and x.shape[1] > 0, "two axes")
    n = static(x.shape[1])
    return Window((1, n), (1, 1), (1, 1), (0, n - 1), (0, 0), Scalar.of(0, x.dtype))


@rule
def largest_so_far(x: Tensor, w: Window) -> Law:
    """a pool over a window that a condition computes: -(pool(x, w)) twice"""
    left = pool("max", x, w)
    return rewrites(left, unary("neg", unary("neg", left)), w == whole(x.type))


@rule
def turned_twice(x: Tensor, p: Perm, s: Shape) -> Law:
    """(xᵀ)ᵀ = x, of which fields are equal to what a condition says"""
    left = transpose(reshape(transpose(x, p), s), p)
    return rewrites(left, x, (p.order == (0, 2, 1)) & (s.dims == transpose(x, p).type.shape))


@attribute_function
def in_pairs(x: TensorType) -> Shape:
    refuse_unless(x.rank == 2 and x.shape[1] == 4, "four columns")
    return Shape((x.shape[0], 2, 2))


@rule
def shuffled_twice(x: Tensor, p: Perm) -> Law:
    """x whose four columns are shuffled twice is x: an attribute inside is computed"""
    once = reshape(transpose(reshape(x, in_pairs(x.type)), p), Shape(x.type.shape))
    left = reshape(transpose(reshape(once, in_pairs(x.type)), p), Shape(x.type.shape))
    return rewrites(left, x, p.order == (0, 2, 1))


COMPUTED = [largest_so_far, turned_twice, shuffled_twice]


def test_a_variable_is_what_a_condition_computes() -> None:
    for law in (largest_so_far, turned_twice):
        (direction,) = law.directions
        firings = Firings(direction)
        firings.draw(Random(0), 20, 600)
        assert len(firings.found) >= 20, law.name


def test_what_a_condition_computes_may_not_fit() -> None:
    (direction,) = turned_twice.directions
    x, p, s = TensorType(DType.F32, (2, 3)), Perm((1, 0)), Shape((2, 3))
    instance = Instance(direction, (("x", x), ("p", p), ("s", s)), 0)
    assert solved(instance).bindings == {"x": x, "p": p, "s": Shape((3, 2))}


def test_matches_are_drawn_from_their_operands() -> None:
    (direction,) = shuffled_twice.directions
    random = Random(0)
    drawn = [draw_from_operands(direction, random) for _ in range(400)]
    found = [each for each in drawn if each is not None]
    assert found
    near = [draw_from_operands(direction, random, found[0]) for _ in range(100)]
    assert sum(each is not None and fires(solved(each)) for each in near) > 20


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, 1009, 424242, 1, 7, 99])
@pytest.mark.parametrize("law", COMPUTED, ids=lambda each: each.name)
def test_laws_with_computed_attributes_fire(law: Rule, seed: int) -> None:
    report = check(law, seed)
    assert report.is_sound, str(report)
