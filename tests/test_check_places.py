"""The checker on laws of few instances: every second element, every place once, a border, a size, a
chain of casts."""

from __future__ import annotations

import pytest

from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    arg_reduce,
    binary,
    broadcast,
    cast,
    concat,
    constant,
    conv,
    extent,
    gather,
    iota,
    pad,
    reduce,
    reshape,
    scalar,
    slice_,
    transpose,
    unary,
    winograd,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, exact_quotient, static
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def are_by_turns(a: Slices, b: Slices, t: TensorType) -> bool:
    """Whether a takes every second element of a list, and b all others."""
    return (
        t.rank == 1
        and a.steps == b.steps == (2,)
        and (a.starts, b.starts) == ((0,), (1,))
        and a.sizes[0] + b.sizes[0] == t.shape[0]
    )


@rule
def one_after_the_other(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(x[::2], x[1::2]) = x: the order is another one"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, are_by_turns(a, b, x.type))


@attribute_function
def pairs(t: TensorType) -> Shape:
    refuse_unless(t.rank == 1)
    return Shape((t.shape[0] // 2, 2))


@attribute_function
def first_column(t: TensorType) -> Slices:
    refuse_unless(t.rank == 1)
    return Slices((0, 0), (t.shape[0] // 2, 1), (1, 1))


@attribute_function
def is_every_second(s: Slices, t: TensorType) -> bool:
    return t.rank == 1 and s.starts == (0,) and s.steps == (2,) and s.sizes[0] == t.shape[0] // 2


@attribute_function
def is_every_second_of_even(s: Slices, t: TensorType) -> bool:
    if t.rank != 1:
        return False
    half = exact_quotient(t.shape[0], 2)
    return half is not None and s == Slices((0,), (half,), (2,))


@rule
def by_pairs_of_any(x: Tensor, s: Slices) -> Law:
    """x[::2] = the first column of x as pairs: an odd number has no pairs"""
    column = slice_(reshape(x, pairs(x.type)), first_column(x.type))
    return rewrites(slice_(x, s), reshape(column, Shape(s.sizes)), is_every_second(s, x.type))


@rule
def by_pairs(x: Tensor, s: Slices) -> Law:
    """x[::2] = the first column of x as pairs, for an even number"""
    column = slice_(reshape(x, pairs(x.type)), first_column(x.type))
    right = reshape(column, Shape(s.sizes))
    return rewrites(slice_(x, s), right, is_every_second_of_even(s, x.type))


@attribute_function
def is_each_once(c: Constant, n: Dim) -> bool:
    if not isinstance(n, int) or c.type.rank != 1 or not c.type.dtype.is_integer:
        return False
    return bool(sorted(c.array.tolist()) == list(range(n)))


@rule
def gather_each_once(x: Tensor, c: Constant, axis: Axis) -> Law:
    """gather(x, c) = x, where c has each index once: their order matters"""
    is_each = is_each_once(c, x.type.shape[axis.index])
    return rewrites(gather(x, constant(c), axis), x, is_each)


@attribute_function
def with_border(w: Window, p: Padding, c: Scalar) -> Window:
    refuse_unless(not w.has_border)
    refuse_unless(all(isinstance(n, int) for n in (*p.lo, *p.hi)))
    lo, hi = (tuple(map(static, side[1:-1])) for side in (p.lo, p.hi))
    return Window(w.sizes, w.strides, w.dilations, lo, hi, c)


@rule(reassociates=True)
def border_for_a_pad(x: Tensor, c: Scalar, p: Padding, w: Tensor, win: Window) -> Law:
    """winograd(pad(x, c, p), w) = winograd(x, w) with p as border: not where p adds images"""
    return rewrites(winograd(pad(x, c, p), w, win), winograd(x, w, with_border(win, p, c)))


@attribute_function
def part(d: Shape, c: Scalar) -> Shape:
    """How many pieces of c elements there are; it fails for numbers that no size can have."""
    refuse_unless(c.dtype is DType.I64 and int(c.value) > 0)
    return Shape(((d.dims[0] + int(c.value) - 1) // int(c.value),))


@rule
def pieces(d: Shape, c: Scalar) -> Law:
    """extent(d) / c = extent(d / c): of the left one a part may be left"""
    return rewrites(binary("div", extent(d), c), extent(part(d, c)))


@rule(reassociates=True)
def root_by_power(x: Tensor) -> Law:
    """pow(x, 0.5) = sqrt(x): not of -inf"""
    return rewrites(binary("pow", x, 0.5), unary("sqrt", x))


@attribute_function
def product_within(a: Scalar, b: Scalar) -> Scalar:
    refuse_unless(a.dtype.is_integer and a.dtype is b.dtype)
    value = int(a.value) * int(b.value)
    refuse_unless(value != 0 and a.dtype.bounds[0] <= value <= a.dtype.bounds[1])
    return Scalar.of(value, a.dtype)


@rule
def one_division(x: Tensor, a: Scalar, b: Scalar, o: Shape, s: Shape) -> Law:
    """(x / a) / b = x / (a * b), where the product has a place: not of the least, by -1 and by 2"""
    one, other, both = (broadcast(reshape(c, o), s) for c in (a, b, product_within(a, b)))
    return rewrites(binary("div", binary("div", x, one), other), binary("div", x, both))


@attribute_function
def exchanges_space(p: Perm) -> bool:
    return p.order == (0, 2, 1, 3)


@attribute_function
def is_square(w: Window) -> bool:
    """Whether a window without borders is the same along both axes."""
    both = [(w.sizes[at], w.strides[at], w.dilations[at]) for at in range(w.rank)]
    return w.rank == 2 and both[0] == both[1] and not w.has_border


@rule
def kernel_as_it_is(x: Tensor, w: Tensor, p: Perm, win: Window, g: Groups) -> Law:
    """conv(transpose(x), w) = transpose(conv(x, w)) of squares: the weights are transposed, too"""
    right = transpose(conv(x, w, win, g), p)
    left = conv(transpose(x, p), w, win, g)
    return rewrites(left, right, exchanges_space(p), is_square(win))


@attribute_function
def widens_few(t: DType, u: DType) -> bool:
    return t in (DType.I8, DType.I16) and u in (DType.I32, DType.I64)


@rule
def places_of_few_bits(s: Shape, a: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, a, t), u) = iota(s, a, u): 128 is -128 in i8"""
    return rewrites(cast(iota(s, a, t), u), iota(s, a, u), widens_few(t, u))


@attribute_function
def by_way_of_wider(x: TensorType, a: DType, b: DType) -> bool:
    floats = x.dtype.is_float and a.is_float and b.is_float
    return floats and not a.is_narrow and not b.is_narrow and a.itemsize > b.itemsize


@rule
def rounded_once(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for floats: f64 by way of f32 to f16 rounds twice"""
    return rewrites(cast(cast(x, a), b), cast(x, b), by_way_of_wider(x.type, a, b))


@rule
def element_at_its_place(f: ReduceFn, x: Tensor, last: Count) -> Law:
    """gather(x, arg_reduce(x)) = reduce(x) of lists: 0.0 and -0.0 are equal, and not the same"""
    left = gather(x, arg_reduce(f, x, Axis(0), last), Axis(0))
    return rewrites(left, reduce(f, x, Axes((0,))), x.type.rank == 1)


@attribute_function
def only_element(c: Constant) -> Scalar:
    array = c.array
    refuse_unless(array.size > 1 and bool((array == array.flat[0]).all()))
    return Scalar(c.type.dtype, array.reshape(-1)[:1].tobytes())


@attribute_function
def ones_of(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def repeated_element(c: Constant) -> Law:
    """a constant of equal elements = one of them, repeated: 0.0 is equal to -0.0"""
    one = reshape(scalar(only_element(c)), ones_of(c.type))
    return rewrites(constant(c), broadcast(one, Shape(c.type.shape)))


@attribute_function
def first_place(s: Slices, a: Axis, t: DType) -> Scalar:
    refuse_unless(t in (DType.BF16, DType.F16) and set(s.steps) == {1})
    refuse_unless(a.index < len(s.starts) and isinstance(s.starts[a.index], int))
    return Scalar.of(s.starts[a.index], t)


@attribute_function
def ones_for(s: Slices) -> Shape:
    return Shape((1,) * len(s.sizes))


@rule
def slice_of_float_places(shape: Shape, a: Axis, t: DType, s: Slices) -> Law:
    """slice(iota, s) = iota + start: bf16 has no 259, so that it is 260 + 2 where 261 is 260"""
    start = broadcast(reshape(scalar(first_place(s, a, t)), ones_for(s)), Shape(s.sizes))
    return rewrites(slice_(iota(shape, a, t), s), binary("add", iota(Shape(s.sizes), a, t), start))


@rule
def add_repeated_element(c: Constant, x: Tensor) -> Law:
    """x + a constant of equal elements = x + one of them: -0.0 + 0.0 is not -0.0 - 0.0"""
    one = broadcast(reshape(scalar(only_element(c)), ones_of(c.type)), Shape(c.type.shape))
    return rewrites(binary("add", x, constant(c)), binary("add", x, one))


WRONG = [
    slice_of_float_places, add_repeated_element,
    one_after_the_other, by_pairs_of_any, gather_each_once, border_for_a_pad, pieces, root_by_power,
    one_division, kernel_as_it_is, places_of_few_bits, rounded_once,
    element_at_its_place, repeated_element,
]  # fmt: skip
QUICK = [gather_each_once, pieces, root_by_power]
SEEDS = (0, 1009, 424242, 5)


@pytest.mark.parametrize("seed", deep_but([0], SEEDS))
@pytest.mark.parametrize("law", deep_but(QUICK, WRONG), ids=lambda each: each.name)
def test_laws_of_places_are_refuted(law: Rule, seed: int) -> None:
    assert check(law, seed, shrink=False).verdict == "refuted"


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_every_second_element_is_drawn(seed: int) -> None:
    report = check(by_pairs, seed)
    assert report.verdict == "tested", str(report)
