"""What the checker draws: laws that are wrong for few values are refuted, right ones do fire."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from satura.rewrite.check.compare import eps
from satura.rewrite.check.disagreement import UncomputableError, disagreement
from satura.rewrite.check.layout_operands import split
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    Term,
    arg_reduce,
    binary,
    broadcast,
    cast,
    concat,
    conv,
    extent,
    gather,
    iota,
    matmul,
    pad,
    pool,
    reduce,
    reshape,
    scalar,
    select,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.ops import reductions
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
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
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import SymbolicDim, static, symbol, symbols_of
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


def test_parts_of_a_size_are_in_normal_form() -> None:
    """A part `2` that is a polynomial equals no 2, so that a right law's sides would not fit."""
    whole = symbol("n") * 3 + 2
    for seed in range(30):
        for part in split(Draw(Random(seed)), whole):
            assert isinstance(part, SymbolicDim) == bool(symbols_of([part]))


def filled(value: Scalar, ones: Shape, s: Shape) -> Term:
    """`value` in every element."""
    return broadcast(reshape(value, ones), s)


@attribute_function
def of(x: TensorType) -> Shape:
    """The shape of x."""
    return Shape(x.shape)


@attribute_function
def unit_of(x: TensorType) -> Shape:
    """As many extents of 1 as x has axes."""
    return Shape((1,) * x.rank)


@rule(reassociates=True)
def clip_vanishes(x: Tensor, ones: Shape, s: Shape) -> Law:
    """min(x, 6) = x: not for 7"""
    return rewrites(binary("min", x, filled(Scalar.of(6.0, DType.F32), ones, s)), x)


@rule(reassociates=True)
def cancel_division(x: Tensor, y: Tensor) -> Law:
    """(x / y) * y = x: not for y = 0"""
    return rewrites(binary("mul", binary("div", x, y), y), x, x.type.dtype.is_float)


@rule(reassociates=True)
def exp_of_difference(x: Tensor, y: Tensor) -> Law:
    """exp(x - y) = exp(x) / exp(y): not for two numbers near 100"""
    return rewrites(
        unary("exp", binary("sub", x, y)), binary("div", unary("exp", x), unary("exp", y))
    )


@rule(reassociates=True)
def root_of_square(x: Tensor) -> Law:
    """sqrt(x * x) = |x|: not for 1e25"""
    return rewrites(unary("sqrt", binary("mul", x, x)), unary("abs", x))


@rule(reassociates=True)
def divide_once(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x / y) / z = x / (y * z): not for three numbers near 1e25"""
    return rewrites(
        binary("div", binary("div", x, y), z),
        binary("div", x, binary("mul", y, z)),
        x.type.dtype.is_float,
    )


@rule(reassociates=True)
def divide_by_length(x: Tensor, y: Tensor) -> Law:
    """x / |y| = x / sqrt(y * y): not for two numbers near 1e25, nor for two near 1e-25"""
    length = unary("sqrt", binary("mul", y, y))
    return rewrites(binary("div", x, unary("abs", y)), binary("div", x, length))


@rule
def isinf_doubled(x: Tensor) -> Law:
    """isinf(x + x) = isinf(x): not for the largest float"""
    return rewrites(unary("isinf", binary("add", x, x)), unary("isinf", x))


@rule
def sign_of_square(x: Tensor) -> Law:
    """sign(x * x) = |sign(x)|: not for 1e-30"""
    return rewrites(
        unary("sign", binary("mul", x, x)), unary("abs", unary("sign", x)), x.type.dtype.is_float
    )


@rule
def arg_of_cast(f: ReduceFn, x: Tensor, a: Axis, last: Count) -> Law:
    """arg_reduce(f, cast(x, f32)) = arg_reduce(f, x) on integers: not for large neighbours"""
    return rewrites(
        arg_reduce(f, cast(x, DType.F32), a, last),
        arg_reduce(f, x, a, last),
        x.type.dtype.is_integer,
    )


@rule
def narrow_by_way(x: Tensor) -> Law:
    """cast(cast(x, f16), f8) = cast(x, f8): not where it is rounded twice"""
    return rewrites(cast(cast(x, DType.F16), DType.F8E4M3), cast(x, DType.F8E4M3))


@rule
def narrow_by_bytes(x: Tensor) -> Law:
    """cast(cast(x, i8), i4) = cast(x, i4): not of floats, which saturate"""
    return rewrites(cast(cast(x, DType.I8), DType.I4), cast(x, DType.I4))


@attribute_function
def is_one_byte(x: TensorType) -> bool:
    """Elements of a byte, whatever they mean."""
    return x.dtype.itemsize == 1


@rule
def byte_by_integers(x: Tensor, d: DType) -> Law:
    """cast(cast(x, i16), d) = cast(x, d) for elements of a byte: not for floats of one"""
    return rewrites(cast(cast(x, DType.I16), d), cast(x, d), is_one_byte(x.type))


@rule
def transposed_byte(x: Tensor, p: Perm) -> Law:
    """f32(transpose(x, p)) = transpose(f32(i32(x)), p) for elements of a byte, likewise"""
    whole = cast(cast(x, DType.I32), DType.F32)
    return rewrites(cast(transpose(x, p), DType.F32), transpose(whole, p), is_one_byte(x.type))


@rule
def narrow_after_a_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(cast(x, f8), p) = cast(transpose(x, p), f8)"""
    return rewrites(transpose(cast(x, DType.F8E5M2), p), cast(transpose(x, p), DType.F8E5M2))


@attribute_function
def seems_trivial(w: Window) -> bool:
    """Sizes and strides 1, whatever the border."""
    return all(n == 1 for n in (*w.sizes, *w.strides))


@rule
def pool_of_one(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = x for windows of 1: not with a border"""
    return rewrites(pool(f, x, w), x, seems_trivial(w))


@attribute_function
def strides_up_to_two(w: Window) -> Window:
    """Strides of 3 become 2."""
    return replace(w, strides=tuple(min(2, n) for n in w.strides))


@rule
def pool_by_two(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with strides up to 2)"""
    return rewrites(pool(f, x, w), pool(f, x, strides_up_to_two(w)))


@attribute_function
def steps_up_to_two(s: Slices) -> Slices:
    """Steps of 3 become 2."""
    return Slices(s.starts, s.sizes, tuple(max(-2, min(2, n)) for n in s.steps))


@rule
def slice_by_two(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = slice(x, s with steps up to 2)"""
    return rewrites(slice_(x, s), slice_(x, steps_up_to_two(s)))


@attribute_function
def at_most_two(b: Padding) -> Padding:
    """3 elements before an axis become 2."""
    return Padding(tuple(min(2, n) if isinstance(n, int) else n for n in b.lo), b.hi)


@rule
def pad_by_two(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b up to 2)"""
    return rewrites(pad(x, v, b), pad(x, v, at_most_two(b)))


@attribute_function
def is_thin(x: TensorType) -> bool:
    """An inner extent of at most 1."""
    inner = x.shape[-1]
    return isinstance(inner, int) and inner < 2


@attribute_function
def outer(x: TensorType, y: TensorType) -> Shape:
    """The product's shape."""
    return Shape((*x.shape[:-1], y.shape[-1]))


@rule(reassociates=True)
def outer_product(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = x * y for an inner extent of 1: not of 0"""
    s = outer(x.type, y.type)
    product = binary("mul", broadcast(x, s), broadcast(y, s))
    return rewrites(matmul(x, y), product, is_thin(x.type))


@rule(reassociates=True)
def abs_is_root(x: Tensor) -> Law:
    """|x| = sqrt(x * x): not for what is huge"""
    root = unary("sqrt", binary("mul", x, x))
    return rewrites(unary("abs", x), root, x.type.dtype.is_float)


@rule(reassociates=True)
def mask_by_product(c: Tensor, x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(c, x, 0) = x * c: not for infinities"""
    masked = select(c, x, filled(Scalar.of(0.0, DType.F32), ones, s))
    return rewrites(masked, binary("mul", x, cast(c, DType.F32)))


@rule(reassociates=True)
def mask_vanishes(c: Tensor, x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(c, x, -inf) = x"""
    return rewrites(select(c, x, filled(Scalar.of(-np.inf, DType.F32), ones, s)), x)


@rule(reassociates=True)
def nans_stay(x: Tensor, ones: Shape, s: Shape) -> Law:
    """select(isnan(x), inf, x) = x: not for NaN"""
    return rewrites(select(unary("isnan", x), filled(Scalar.of(np.inf, DType.F32), ones, s), x), x)


@rule(reassociates=True)
def no_nan(x: Tensor) -> Law:
    """isnan(x) = x < x: not for NaN"""
    return rewrites(unary("isnan", x), binary("lt", x, x))


@rule(reassociates=True)
def round_half_up(x: Tensor) -> Law:
    """round(x) = floor(x + 0.5): not for 2.5"""
    return rewrites(unary("round", x), unary("floor", binary("add", x, 0.5)))


@rule(reassociates=True)
def nothing_left(x: Tensor, ones: Shape, s: Shape) -> Law:
    """x * 0 = 0: not for infinities"""
    zeros = filled(Scalar.of(0.0, DType.F32), ones, s)
    return rewrites(binary("mul", x, zeros), zeros)


@attribute_function
def is_unit_or_13(c: Scalar) -> bool:
    """Whether c is 1, -1 or 13."""
    return c.dtype in (DType.I8, DType.I32, DType.I64) and int(c.value) in (1, -1, 13)


@rule
def one_mod(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """fmod(x, c) = mod(x, c) for 1 and -1: not for 13"""
    divisor = filled(c, ones, s)
    return rewrites(binary("fmod", x, divisor), binary("mod", x, divisor), is_unit_or_13(c))


@attribute_function
def inverse_of_sizes(p: Perm, x: TensorType) -> Perm:
    """The inverse, but for three unknown extents."""
    return p if x.rank == 3 and not any(isinstance(dim, int) for dim in x.shape) else p.inverse


@rule
def there_and_back(x: Tensor, p: Perm) -> Law:
    """|transpose(x, p)| = transpose(|transpose(transpose(x, p), p⁻¹)|, p)"""
    back = transpose(transpose(x, p), inverse_of_sizes(p, x.type))
    return rewrites(unary("abs", transpose(x, p)), transpose(unary("abs", back), p))


@rule
def round_once(x: Tensor) -> Law:
    """cast(cast(x, f64), f32) = cast(x, f32): not for integers beyond 2⁵³"""
    return rewrites(
        cast(cast(x, DType.F64), DType.F32), cast(x, DType.F32), x.type.dtype == DType.I64
    )


@attribute_function
def keeps_the_shape(x: TensorType, p: Perm) -> bool:
    """Whether p moves only axes before the last two, and x has the same shape then."""
    refuse_unless(x.rank >= 4)
    return p.order[-2:] == (x.rank - 2, x.rank - 1) and p.apply(x.shape) == x.shape


@rule
def moved_batches(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(transpose(x, p), transpose(y, p)) = matmul(x, y): not for two equal batch extents"""
    left = matmul(transpose(x, p), transpose(y, p))
    return rewrites(left, matmul(x, y), keeps_the_shape(x.type, p))


@attribute_function
def equals(v: Scalar, w: Scalar) -> bool:
    """Whether the values are equal, as 0.0 and -0.0 are."""
    return bool(v.array == w.array)


@attribute_function
def both(p: Padding, q: Padding) -> Padding:
    """One padding in place of two."""
    return Padding(
        tuple(a + b for a, b in zip(p.lo, q.lo, strict=True)),
        tuple(a + b for a, b in zip(p.hi, q.hi, strict=True)),
    )


@rule
def pads_of_equal_values(x: Tensor, v: Scalar, w: Scalar, p: Padding, q: Padding) -> Law:
    """pad(pad(x, v), w) = pad(x, v) where v = w: not for 0.0 and -0.0"""
    return rewrites(pad(pad(x, v, p), w, q), pad(x, v, both(p, q)), equals(v, w))


@attribute_function
def changed_from_40(f: UnaryFn, x: TensorType) -> UnaryFn:
    """f, but abs for a last extent of at least 40."""
    refuse_unless(x.rank > 0 and isinstance(x.shape[-1], int))
    return UnaryFn("abs") if static(x.shape[-1]) >= 40 else f


@rule
def short_rows_only(f: UnaryFn, x: Tensor) -> Law:
    """-f(x) = -f(x): not for an extent that the rule names"""
    left = unary("neg", unary(f, x))
    return rewrites(left, unary("neg", unary(changed_from_40(f, x.type), x)))


@rule
def by_way_of_bytes(x: Tensor, d: DType) -> Law:
    """cast(cast(x, d), i8) = cast(x, i8) for integers: not for d = i4, of which one fills a byte"""
    left = cast(cast(x, d), DType.I8)
    return rewrites(left, cast(x, DType.I8), (x.type.dtype == DType.I8) & d.is_integer)


@rule
def position_in_bytes(s: Shape, a: Axis) -> Law:
    """cast(iota(s, a), i32) = iota(s, a): i8 counts to 127"""
    return rewrites(cast(iota(s, a, DType.I8), DType.I32), iota(s, a, DType.I32))


@attribute_function
def agree_at(x: TensorType, s: Shape, a: Axis) -> bool:
    """Whether x and s have one rank and one extent along a."""
    return len(s.dims) == x.rank and x.shape[a.index] == s.dims[a.index]


@rule
def reshaped_positions(x: Tensor, s: Shape, a: Axis, last: Count) -> Law:
    """argmax(reshape(x, s), a) = reshape(argmax(x, a)): not for [2, 3, 4] as [4, 3, 2]"""
    left = arg_reduce("max", reshape(x, s), a, last)
    return rewrites(
        left, reshape(arg_reduce("max", x, a, last), Shape(left.type.shape)), agree_at(x.type, s, a)
    )


@rule
def either_of_equals(x: Tensor, y: Tensor) -> Law:
    """select(x = y, x, y) = y: not for 0.0 and -0.0"""
    return rewrites(select(binary("eq", x, y), x, y), y)


@rule
def trues_in_bytes(x: Tensor, y: Tensor) -> Law:
    """cast(matmul(i8 x, i8 y), i32) = matmul(i32 x, i32 y) for bools: not for 128 trues"""
    both = (x.type.dtype == DType.BOOL) & (y.type.dtype == DType.BOOL)
    narrow, wide = (matmul(cast(x, d), cast(y, d)) for d in (DType.I8, DType.I32))
    return rewrites(cast(narrow, DType.I32), wide, both)


@rule
def trues_in_a_byte(x: Tensor, a: Axes) -> Law:
    """cast(sum(u8 x), i32) = sum(i32 x) for bools: not for 256 trues"""
    narrow, wide = (reduce("sum", cast(x, d), a) for d in (DType.U8, DType.I32))
    return rewrites(cast(narrow, DType.I32), wide, x.type.dtype == DType.BOOL)


@attribute_function
def of_few_bits(w: Window) -> Window:
    """Sizes of more than three bits become one less."""
    sizes = tuple(n - 1 if len(f"{n:b}") > len("bit") else n for n in w.sizes)
    return replace(w, sizes=sizes)


@rule
def pool_of_seven(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with sizes below 8), whose rule names no number"""
    return rewrites(pool(f, x, w), pool(f, x, of_few_bits(w)))


@rule
def round_twice(x: Tensor) -> Law:
    """cast(cast(x, f32), bf16) = cast(x, bf16): not for integers beside a tie"""
    left = cast(cast(x, DType.F32), DType.BF16)
    return rewrites(left, cast(x, DType.BF16), x.type.dtype == DType.I32)


@rule
def by_way_of_octets(x: Tensor, d: DType) -> Law:
    """cast(cast(x, d), f16) = x for d = f8e5m2: a condition that few draws meet"""
    is_met = (x.type.dtype == DType.F16) & (d == DType.F8E5M2)
    return rewrites(cast(cast(x, d), DType.F16), x, is_met)


@attribute_function
def borders_up_to_two(w: Window) -> Window:
    """What a border has beyond 2 elements goes to the other end."""
    after = tuple(hi + max(0, lo - 2) for lo, hi in zip(w.lo, w.hi, strict=True))
    return replace(w, lo=tuple(min(2, lo) for lo in w.lo), hi=after)


@rule
def pool_by_borders(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with at most two elements before)"""
    return rewrites(pool(f, x, w), pool(f, x, borders_up_to_two(w)))


@attribute_function
def abs_if_long(f: UnaryFn, x: TensorType) -> UnaryFn:
    """f, but abs for a last extent of five bits and more."""
    refuse_unless(x.rank > 0 and isinstance(x.shape[-1], int))
    return UnaryFn("abs") if len(f"{x.shape[-1]:b}") > len("bits") else f


@rule
def rows_of_four_bits(f: UnaryFn, x: Tensor) -> Law:
    """-f(x) = -f(x): not for an extent of 16 and more, which the rule does not name"""
    left = unary("neg", unary(f, x))
    return rewrites(left, unary("neg", unary(abs_if_long(f, x.type), x)))


@rule
def extent_in_f32(d: Shape) -> Law:
    """i64(f32(extent(n))) = extent(n): not for 2²⁴ + 1"""
    return rewrites(cast(cast(extent(d), DType.F32), DType.I64), extent(d))


@attribute_function
def is_power_of_two(c: Scalar) -> bool:
    """Whether c is a float that is a power of two."""
    return c.dtype.is_float and abs(np.frexp(np.float64(c.value))[0]) == 0.5


@attribute_function
def inverse_number(c: Scalar) -> Scalar:
    """1 / c."""
    return Scalar.of(1.0 / float(c.value), c.dtype)


@rule
def divide_by_power(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for powers of two: not for the least one"""
    inverted = binary("mul", x, filled(inverse_number(c), ones, s))
    return rewrites(binary("div", x, filled(c, ones, s)), inverted, is_power_of_two(c))


@rule(reassociates=True)
def sum_in_f16(x: Tensor, a: Axes) -> Law:
    """f16(sum(x)) = sum(f16(x)): not for 1e6 and -1e6"""
    left = cast(reduce("sum", x, a), DType.F16)
    return rewrites(left, reduce("sum", cast(x, DType.F16), a), x.type.dtype == DType.F32)


@attribute_function
def start_along(p: Padding, a: Axis) -> Scalar:
    """How much p adds before the axis, where it adds to no other."""
    others = [k for k in range(len(p.lo)) if k != a.index]
    refuse_unless(all(p.lo[k] == p.hi[k] == 0 for k in others) and isinstance(p.lo[a.index], int))
    return Scalar.of(p.lo[a.index], DType.I64)


@rule
def argmax_past_pad(x: Tensor, p: Padding, a: Axis, last: Count) -> Law:
    """argmax(pad(x, -inf)) = argmax(x) + what p adds before: not for rows of -inf"""
    found = arg_reduce("max", x, a, last)
    moved = binary("add", found, filled(start_along(p, a), unit_of(found.type), of(found.type)))
    return rewrites(arg_reduce("max", pad(x, -np.inf, p), a, last), moved)


@attribute_function
def is_zero(v: Scalar) -> bool:
    """Whether all bits of v are 0."""
    return not any(v.bits)


@attribute_function
def inner_part(x: TensorType, b: Padding) -> Slices:
    """What is x of what b padded."""
    return Slices(b.lo, x.shape, (1,) * x.rank)


@rule(reassociates=True)
def product_of_padded(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """pad(x, 0) * y = pad(x * inner y, 0): not for one infinity in y where x is padded"""
    inner = binary("mul", x, slice_(y, inner_part(x.type, b)))
    return rewrites(binary("mul", pad(x, v, b), y), pad(inner, v, b), is_zero(v))


@attribute_function
def only_sums(b: Padding) -> bool:
    """Whether b pads the last axis alone."""
    return not any((*b.lo[:-1], *b.hi[:-1]))


@attribute_function
def inner_rows(x: TensorType, y: TensorType, b: Padding) -> Slices:
    """The rows of y that meet x."""
    sizes = (*y.shape[:-2], x.shape[-1], y.shape[-1])
    return Slices((0,) * (y.rank - 2) + (b.lo[-1], 0), sizes, (1,) * y.rank)


@rule(reassociates=True)
def matmul_of_padded(x: Tensor, y: Tensor, v: Scalar, b: Padding) -> Law:
    """matmul(pad(x, 0), y) = matmul(x, inner rows of y): not for an infinity in the others"""
    right = matmul(x, slice_(y, inner_rows(x.type, y.type, b)))
    return rewrites(matmul(pad(x, v, b), y), right, is_zero(v), only_sums(b))


@rule
def bytes_in_f32(x: Tensor, y: Tensor) -> Law:
    """i32(matmul(f32 x, f32 y)) = matmul(i32 x, i32 y) for i8: not for 1041 times 127 * 127"""
    wide, whole = (matmul(cast(x, d), cast(y, d)) for d in (DType.F32, DType.I32))
    is_met = (x.type.dtype == DType.I8) & (y.type.dtype == DType.I8)
    return rewrites(cast(wide, DType.I32), whole, is_met)


@rule
def sum_of_bytes_in_f32(x: Tensor, a: Axes) -> Law:
    """i32(sum(f32 x)) = sum(i32 x) for i8: not for 132105 times 127"""
    wide, whole = (reduce("sum", cast(x, d), a) for d in (DType.F32, DType.I32))
    return rewrites(cast(wide, DType.I32), whole, x.type.dtype == DType.I8)


@rule
def positions_in_u16(f: ReduceFn, x: Tensor, a: Axis, last: Count) -> Law:
    """i64(u16(arg_reduce(x))) = arg_reduce(x): not for 65536"""
    found = arg_reduce(f, x, a, last)
    return rewrites(cast(cast(found, DType.U16), DType.I64), found)


@attribute_function
def are_ever_shorter(a: DType, b: DType, c: DType) -> bool:
    """Whether these are floats, each of fewer bytes than the one before."""
    floats = all(each.is_float and not each.is_narrow for each in (a, b, c))
    return floats and a.itemsize > b.itemsize > c.itemsize


@rule
def narrow_at_once(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for ever shorter floats: three dtypes at once fire"""
    return rewrites(cast(cast(x, a), b), cast(x, b), are_ever_shorter(x.type.dtype, a, b))


@attribute_function
def is_at_bound(c: Scalar, t: DType) -> bool:
    """Whether a float is no more than the second integer of t."""
    is_whole = t.is_integer and t.is_signed and not t.is_narrow
    return is_whole and c.dtype.is_float and float(c.value) <= t.bounds[0] + 1


@rule
def clamp_at_bound(x: Tensor, c: Scalar, ones: Shape, s: Shape, t: DType) -> Law:
    """cast(max(x, c), t) = cast(x, t): not for c = -127 and i8"""
    return rewrites(cast(binary("max", x, filled(c, ones, s)), t), cast(x, t), is_at_bound(c, t))


@rule
def quarter_of_two_fifths(x: Tensor) -> Law:
    """x * 0.25 * 0.4 = x * 0.1: but for what a quarter of is subnormal"""
    return rewrites(binary("mul", binary("mul", x, 0.25), 0.4), binary("mul", x, 0.1))


@rule
def quotient_in_f64(x: Tensor, y: Tensor) -> Law:
    """i32(f64(x) / f64(y)) is x / y where y is not 0: not for the least integer and -1"""
    wide = cast(binary("div", cast(x, DType.F64), cast(y, DType.F64)), DType.I32)
    are_i32 = x.type.dtype == DType.I32, y.type.dtype == DType.I32
    return rewrites(select(binary("eq", y, 0), 0, wide), binary("div", x, y), *are_i32)


@rule
def ramp_in_i16(s: Shape, a: Axis) -> Law:
    """cast(iota(s, a, i16), i32) = iota(s, a, i32): not for axes of 32770"""
    return rewrites(cast(iota(s, a, DType.I16), DType.I32), iota(s, a, DType.I32))


@attribute_function
def inverse(c: Scalar) -> Scalar:
    """1 / c, of an f32 of ordinary size."""
    refuse_unless(c.dtype == DType.F32 and 0.01 < abs(float(c.value)) < 100)
    return Scalar.of(np.float32(1) / np.float32(c.value), c.dtype)


@rule(reassociates=True)
def quantised_by_product(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """round(x / c) = round(x * (1 / c)): not half way between two numbers"""
    quotient = binary("div", x, filled(c, ones, s))
    return rewrites(
        unary("round", quotient), unary("round", binary("mul", x, filled(inverse(c), ones, s)))
    )


@attribute_function
def is_nothing(x: TensorType, y: TensorType) -> bool:
    refuse_unless(isinstance(x.size, int) and isinstance(y.size, int), "sizes are open")
    return x.size == 0 and y.size != 0


@rule(reassociates=True)
def finite_beside_nothing(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concat(x, y) = concat(x, y where it is finite, else 0), where x is empty"""
    finite = select(unary("isinf", y), 0.0, y)
    return rewrites(
        concat(x, y, axis), concat(x, finite, axis), x.type.dtype == DType.F32,
        is_nothing(x.type, y.type),
    )  # fmt: skip


@rule(reassociates=True)
def floor_by_product(x: Tensor) -> Law:
    """floor(x / 3) = floor(x * (1 / 3)): not just below a multiple of 3"""
    third = binary("mul", x, float(np.float32(1) / np.float32(3)))
    is_f32 = x.type.dtype == DType.F32
    return rewrites(unary("floor", binary("div", x, 3.0)), unary("floor", third), is_f32)


@rule(reassociates=True)
def less_than_a_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """z < x + y = z - y < x: not for 0.5 and 0.1 + 0.4"""
    left = binary("lt", z, binary("add", x, y))
    return rewrites(left, binary("lt", binary("sub", z, y), x), x.type.dtype == DType.F32)


@rule(reassociates=True)
def sign_of_a_sum(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """sign((x + y) - z) = sign(x + (y - z)): not where one of them is 0"""
    left = unary("sign", binary("sub", binary("add", x, y), z))
    right = unary("sign", binary("add", x, binary("sub", y, z)))
    return rewrites(left, right, x.type.dtype == DType.F32)


@attribute_function
def has_one_tap(win: Window, old: TensorType, new: TensorType) -> bool:
    """Whether single elements are read, and as many stored."""
    return win.sizes == (1,) * win.rank and old.shape[1:-1] == new.shape[1:-1]


@rule
def half_is_added(x: Tensor) -> Law:
    """i64(floor(x + 0.5)) = i64(floor(x), or ceil(x) from the middle on): not just below a half"""
    low = unary("floor", x)
    is_low = binary("lt", binary("sub", x, low), 0.5)
    near = select(is_low, low, unary("ceil", x))
    left = cast(unary("floor", binary("add", x, 0.5)), DType.I64)
    return rewrites(left, cast(near, DType.I64), x.type.dtype == DType.F32)


@attribute_function
def is_lowest(c: Scalar) -> bool:
    return c.dtype == DType.F32 and float(c.value) <= float(np.finfo(np.float32).min)


@rule
def lowest_is_no_bound(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, c) = x, when c is the lowest number: not for -inf"""
    return rewrites(binary("max", x, filled(c, ones, s)), x, is_lowest(c))


@attribute_function
def in_single_steps(win: Window) -> Window:
    """The window in steps of 1, without borders."""
    none = (0,) * win.rank
    return replace(win, strides=(1,) * win.rank, lo=none, hi=none)


@rule(reassociates=True)
def conv_by_one_tap(x: Tensor, w: Tensor, win: Window, g: Groups) -> Law:
    """conv(x, w) = conv in steps of 1, of windows of 1: not where borders make up for the steps"""
    left = conv(x, w, win, g)
    return rewrites(left, conv(x, w, in_single_steps(win), g), has_one_tap(win, x.type, left.type))


@rule(reassociates=True)
def root_of_difference(x: Tensor, y: Tensor) -> Law:
    """sqrt((x - y) * (x + y)) = sqrt(x * x - y * y): not where x is next to y"""
    left = binary("mul", binary("sub", x, y), binary("add", x, y))
    right = binary("sub", binary("mul", x, x), binary("mul", y, y))
    return rewrites(unary("sqrt", left), unary("sqrt", right))


@rule(reassociates=True)
def area_and_back(x: Tensor) -> Law:
    """acosh((x + 3) - 3) = acosh(x): not next to 1, where its domain ends"""
    return rewrites(unary("acosh", binary("sub", binary("add", x, 3.0), 3.0)), unary("acosh", x))


@rule(reassociates=True)
def exp_of_log(x: Tensor) -> Law:
    """exp(log(abs(x))) = abs(x): not where the log has few digits behind its point"""
    return rewrites(unary("exp", unary("log", unary("abs", x))), unary("abs", x))


@attribute_function
def one_or_many(g: Groups) -> bool:
    return g.count == 1 or g.count > 4


@rule(reassociates=True)
def weights_of_many_groups(x: Tensor, w: Tensor, u: Tensor, v: Window, g: Groups) -> Law:
    """conv(x, concat(w, u)) = concat(conv(x, w), conv(x, u)), for 1 group: not for 5"""
    last = Axis(3)
    left = conv(x, concat(w, u, last), v, g)
    right = concat(conv(x, w, v, g), conv(x, u, v, g), last)
    return rewrites(left, right, one_or_many(g), left.type == right.type)


@attribute_function
def are_integers_of_less(x: DType, d: DType, e: DType) -> bool:
    """Whether all are integers, and e takes no more bytes than d."""
    return x.is_integer and d.is_integer and e.is_integer and e.itemsize <= d.itemsize


@rule
def low_bits_stay(x: Tensor, d: DType, e: DType) -> Law:
    """cast(cast(x, d), e) = cast(x, e), when e is no wider: not where d has less than 8 bits"""
    fits = are_integers_of_less(x.type.dtype, d, e)
    return rewrites(cast(cast(x, d), e), cast(x, e), fits)


WRONG = [
    weights_of_many_groups,
    low_bits_stay,
    root_of_difference,
    area_and_back,
    exp_of_log,
    half_is_added,
    lowest_is_no_bound,
    floor_by_product,
    less_than_a_sum,
    sign_of_a_sum,
    conv_by_one_tap,
    quantised_by_product,
    finite_beside_nothing,
    quotient_in_f64,
    ramp_in_i16,
    quarter_of_two_fifths,
    product_of_padded,
    matmul_of_padded,
    bytes_in_f32,
    sum_of_bytes_in_f32,
    positions_in_u16,
    narrow_at_once,
    clamp_at_bound,
    pool_by_borders,
    rows_of_four_bits,
    extent_in_f32,
    divide_by_power,
    sum_in_f16,
    argmax_past_pad,
    trues_in_bytes,
    trues_in_a_byte,
    pool_of_seven,
    round_twice,
    by_way_of_octets,
    short_rows_only,
    by_way_of_bytes,
    position_in_bytes,
    reshaped_positions,
    either_of_equals,
    root_of_square,
    divide_once,
    divide_by_length,
    pads_of_equal_values,
    abs_is_root,
    mask_by_product,
    mask_vanishes,
    nans_stay,
    no_nan,
    round_half_up,
    one_mod,
    there_and_back,
    round_once,
    nothing_left,
    moved_batches,
    clip_vanishes,
    cancel_division,
    exp_of_difference,
    isinf_doubled,
    sign_of_square,
    arg_of_cast,
    narrow_by_way,
    narrow_by_bytes,
    byte_by_integers,
    transposed_byte,
    pool_of_one,
    pool_by_two,
    slice_by_two,
    pad_by_two,
    outer_product,
]
DEAR = (
    trues_in_bytes, trues_in_a_byte, pool_of_seven, round_twice, by_way_of_octets,
    pads_of_equal_values, moved_batches, pool_of_one, there_and_back, reshaped_positions,
    round_once, position_in_bytes, one_mod, pool_by_borders, rows_of_four_bits, extent_in_f32,
    divide_by_power, sum_in_f16, argmax_past_pad, product_of_padded, matmul_of_padded,
    bytes_in_f32, sum_of_bytes_in_f32, positions_in_u16, narrow_at_once, clamp_at_bound,
    quotient_in_f64, ramp_in_i16, quantised_by_product, finite_beside_nothing, floor_by_product,
    sign_of_a_sum, conv_by_one_tap, half_is_added, lowest_is_no_bound, root_of_difference,
    area_and_back, exp_of_log, weights_of_many_groups, low_bits_stay,
)  # fmt: skip


@pytest.mark.parametrize("seed", deep_but([0], range(2)))
@pytest.mark.parametrize(
    "wrong",
    deep_but([each for each in WRONG if each not in DEAR][::2], WRONG),
    ids=lambda each: each.name,
)
def test_rare_values_refute(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"


@attribute_function
def both_axes(a: Axes, b: Axes) -> Axes:
    """The axes of either."""
    return Axes(tuple(sorted({*a.indices, *b.indices})))


@rule(reassociates=True)
def sums_before_a_cast(x: Tensor, a: Axes, b: Axes, d: DType) -> Law:
    """cast(sum(sum(x, a), b), d) = cast(sum(x, a and b), d): rounded as x is, whatever d is"""
    left = cast(reduce("sum", reduce("sum", x, a), b), d)
    right = cast(reduce("sum", x, both_axes(a, b)), d)
    return rewrites(left, right, d == DType.F64, x.type.dtype.is_float)


@attribute_function
def widens_twice(x: DType, a: DType, b: DType) -> bool:
    """Whether floats of few bits become wider ones, and these wider ones again."""
    return (
        x.is_narrow
        and x.is_float
        and a.is_float
        and b.is_float
        and x != a != b
        and (not a.is_narrow and a.itemsize < b.itemsize)
    )


@rule
def narrow_by_way_of_floats(x: Tensor, a: DType, b: DType) -> Law:
    """cast(cast(x, a), b) = cast(x, b) for x of a narrow dtype, wider a, and b wider than that"""
    return rewrites(cast(cast(x, a), b), cast(x, b), widens_twice(x.type.dtype, a, b))


@rule(reassociates=True)
def three_scales(x: Tensor, a: Scalar, b: Scalar, c: Scalar, p: Shape, s: Shape) -> Law:
    """((x * a) / b) * c = x * ((a / b) * c): what constants make infinite does not count"""
    scaled = binary("div", binary("mul", x, filled(a, p, s)), filled(b, p, s))
    scale = binary("mul", binary("div", filled(a, p, s), filled(b, p, s)), filled(c, p, s))
    left = binary("mul", scaled, filled(c, p, s))
    return rewrites(left, binary("mul", x, scale), x.type.dtype.is_float)


@rule
def gather_past_unary(f: UnaryFn, x: Tensor, i: Tensor, a: Axis) -> Law:
    """gather(f(x), i) = f(gather(x, i))"""
    return rewrites(gather(unary(f, x), i, a), unary(f, gather(x, i, a)))


@attribute_function
def size(d: Shape) -> Scalar:
    """The size, where it is known."""
    refuse_unless(isinstance(d.dims[0], int))
    return Scalar.of(static(d.dims[0]), DType.I64)


@rule
def extent_of_known(d: Shape) -> Law:
    """extent(3) = 3"""
    return rewrites(extent(d), scalar(size(d)))


@rule
def no_less(d: Shape) -> Law:
    """relu(extent(n)) = extent(n)"""
    return rewrites(unary("relu", extent(d)), extent(d))


@rule
def not_below(x: Tensor, ones: Shape, s: Shape) -> Law:
    """not(x < 0) = 0 <= x on i32: a literal decides the element type"""
    zero = filled(Scalar.of(0, DType.I32), ones, s)
    return rewrites(unary("not", binary("lt", x, zero)), binary("le", zero, x))


@attribute_function
def reverses(x: TensorType, s: Slices) -> bool:
    """Whether s reverses every axis."""
    return x.shape == s.sizes and all(
        start == dim - 1 and step == -1
        for dim, start, step in zip(x.shape, s.starts, s.steps, strict=True)
    )


@rule(reassociates=True)
def tanh_by_sigmoid(x: Tensor) -> Law:
    """tanh(x) = 2 sigmoid(2 x) - 1: up to a rounding of 1, beside which 1e-25 is lost"""
    return rewrites(
        unary("tanh", x),
        binary("sub", binary("mul", unary("sigmoid", binary("mul", x, 2.0)), 2.0), 1.0),
    )


@rule
def reverse_twice(x: Tensor, s: Slices) -> Law:
    """slice(slice(x, s), s) = x, when s reverses x"""
    return rewrites(slice_(slice_(x, s), s), x, reverses(x.type, s))


@rule(reassociates=True)
def distributes(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) * z = x * z + y * z: overflows where the left side does"""
    left = binary("mul", binary("add", x, y), z)
    return rewrites(left, binary("add", binary("mul", x, z), binary("mul", y, z)))


@rule(reassociates=True)
def collects(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """x * y + x * z = x * (y + z): where that overflows, y and z may cancel in bf16"""
    left = binary("add", binary("mul", x, y), binary("mul", x, z))
    return rewrites(left, binary("mul", x, binary("add", y, z)))


@attribute_function
def has_five_axes(x: TensorType) -> bool:
    """Whether x has a rank that most draws leave out."""
    return x.rank == 5


@rule
def relu_within_five_axes(x: Tensor, p: Perm) -> Law:
    """relu(transpose(x, p)) = transpose(relu(x), p), for five axes"""
    left = unary("relu", transpose(x, p))
    return rewrites(left, transpose(unary("relu", x), p), has_five_axes(x.type))


@attribute_function
def rows(x: TensorType, s: Slices) -> Slices:
    """What s takes of the rows of x."""
    refuse_unless(x.rank == 2)
    return Slices((s.starts[0], 0), (s.sizes[0], x.shape[1]), (s.steps[0], 1))


@attribute_function
def columns(y: TensorType, s: Slices) -> Slices:
    """What s takes of the columns of y."""
    refuse_unless(y.rank == 2)
    return Slices((0, s.starts[1]), (y.shape[0], s.sizes[1]), (1, s.steps[1]))


@rule
def part_of_product(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(rows of x, columns of y): the same sums in the same order"""
    parts = matmul(slice_(x, rows(x.type, s)), slice_(y, columns(y.type, s)))
    return rewrites(slice_(matmul(x, y), s), parts)


@attribute_function
def is_integer(x: TensorType) -> bool:
    """Whether sums of x are the same in any order."""
    return x.dtype.is_integer


@rule
def product_of_three(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x · y) · z = x · (y · z) for integers, also where y · z is too large to be tried"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)), is_integer(x.type))


RIGHT = [
    narrow_after_a_transpose,
    product_of_three,
    part_of_product,
    collects,
    distributes,
    relu_within_five_axes,
    three_scales,
    sums_before_a_cast,
    narrow_by_way_of_floats,
    gather_past_unary,
    extent_of_known,
    no_less,
    not_below,
    reverse_twice,
    tanh_by_sigmoid,
]


QUICK = [no_less, narrow_by_way_of_floats]


@pytest.mark.parametrize("seed", deep_but([0], range(2)))
@pytest.mark.parametrize("right", deep_but(QUICK, RIGHT), ids=lambda each: each.name)
def test_right_laws_fire(right: Rule, seed: int) -> None:
    report = check(right, seed)
    assert report.verdict == "tested", str(report)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
@pytest.mark.parametrize("steps", range(1, 6))
def test_what_cancels_leaves_roundings_of_the_summands(dtype: DType, steps: int) -> None:
    """(x - y)^2 is far less than 2xy for large neighbours: a rounding of that is no mistake."""
    build = Builder()
    x, y = (build.input(name, dtype, (2,)) for name in "xy")
    apart, twice = build.binary("sub", x, y), build.input("twice", dtype, (2,))
    square = build.binary("mul", x, x)
    middle = build.binary("mul", twice, build.binary("mul", x, y))
    right = build.binary("add", build.binary("sub", square, middle), build.binary("mul", y, y))
    program = build.program({"left": build.binary("mul", apart, apart), "right": right})
    large = np.float64(-1.147e16).astype(dtype.numpy)
    beside = large * dtype.numpy.type(1 + steps * eps(dtype))
    for values in ((large, beside), (beside, large)):
        arguments = {
            name: np.array([0, value], dtype.numpy)
            for name, value in zip("xy", values, strict=True)
        }
        arguments["twice"] = np.array([2, 2], dtype.numpy)
        assert disagreement(program, arguments, exact=False) == ""


@pytest.mark.parametrize("seed", (2, 6, 8))
def test_what_cancels_in_a_contraction_leaves_roundings_of_its_products(seed: int) -> None:
    """(c * x) w = c * (x w), of products that cancel: a last digit of one is more."""
    dtype, count = DType.BF16, 80
    build = Builder()
    x, w = build.input("x", dtype, (count, 16)), build.input("w", dtype, (16, count))
    c = build.reshape(build.constant(np.full((), -0.2578, dtype.numpy)), (1, 1))
    left = build.matmul(build.binary("mul", x, build.broadcast(c, (count, 16))), w)
    right = build.binary("mul", build.matmul(x, w), build.broadcast(c, (count, count)))
    program = build.program({"left": left, "right": right})
    random = np.random.default_rng(seed)
    shapes = {"x": (count, 16), "w": (16, count)}
    signs = {name: random.choice((-1, 1), shape) for name, shape in shapes.items()}
    arguments = {
        name: np.asarray(sign * 1e15 * random.uniform(0.7, 1.4, sign.shape)).astype(dtype.numpy)
        for name, sign in signs.items()
    }
    assert disagreement(program, arguments, exact=False) == ""


def test_overflow_by_a_little_is_no_mistake() -> None:
    build = Builder()
    x = build.input("x", DType.BF16, (1,))
    twice = build.binary("sub", build.unary("exp", x), build.unary("exp", build.unary("neg", x)))
    right = build.binary("mul", twice, build.input("half", DType.BF16, (1,)))
    program = build.program({"left": build.unary("sinh", x), "right": right})
    numbers = {"x": -89.0, "half": 0.5}
    at = {name: np.array([each]).astype(DType.BF16.numpy) for name, each in numbers.items()}
    assert disagreement(program, at, exact=False) == ""
    assert disagreement(program, at, exact=True) != ""
    wrong = build.program({"left": build.unary("sinh", x), "right": build.unary("neg", right)})
    assert disagreement(wrong, at, exact=False) != ""


def test_products_within_a_contraction_are_rounded_too() -> None:
    build = Builder()
    x, y = build.input("x", DType.F32, (1, 3)), build.input("y", DType.F32, (3, 1))
    wide = build.matmul(build.cast(x, DType.F64), build.cast(y, DType.F64))
    program = build.program({"left": build.matmul(x, y), "right": build.cast(wide, DType.F32)})
    row, column = ([1, 32767, 32767], [[1], [32767], [-32767]])
    at = {"x": np.array([row], np.float32), "y": np.array(column, np.float32)}
    assert disagreement(program, at, exact=False) == ""


@rule
def three_is_three() -> Law:
    """|extent(3)| = extent(3): no instance of it differs from another"""
    return rewrites(unary("abs", extent(Shape((3,)))), extent(Shape((3,))))


@rule
def multiply_by_part(x: Tensor) -> Law:
    """x * 1.5 = 1.5 * x of integers: none has 1.5"""
    return rewrites(binary("mul", x, 1.5), binary("mul", 1.5, x), x.type.dtype.is_integer)


def test_a_float_beside_integers_is_named() -> None:
    report = check(multiply_by_part, attempts=300)
    assert report.verdict == "vacuous"
    assert "1.5 is an element of floats only" in report.reason


def test_a_law_on_a_known_extent_alone_is_vacuous() -> None:
    assert check(three_is_three, attempts=60).verdict == "vacuous"


def test_only_a_right_side_beyond_any_memory_is_a_mistake() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (20_000_000,))
    whole = build.program({"left": build.unary("neg", x), "right": x})
    assert disagreement(whole, {}, exact=True) == ""
    build = Builder()
    x = build.input("x", DType.F32, (1,))
    part = build.program({"left": x, "right": build.broadcast(x, (20_000_000,))})
    assert disagreement(part, {"x": np.zeros(1, np.float32)}, exact=True) == ""  # not tried
    part = build.program({"left": x, "right": build.broadcast(x, (1 << 41,))})
    with pytest.raises(UncomputableError, match="would be a f32"):
        disagreement(part, {"x": np.zeros(1, np.float32)}, exact=True)


@pytest.mark.parametrize("f", ["max", "min"])
def test_long_extents_are_reduced_in_few_steps(f: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check draws extents of 140,001: a step for each element took all its time."""
    steps: list[str] = []
    step = reductions.combine

    def counted(f: str, a: Array, b: Array) -> Array:
        steps.append(f)
        return step(f, a, b)

    monkeypatch.setattr(reductions, "combine", counted)
    for values in ([0.0, -0.0, 1.0, np.nan], [-0.0, 0.0], [np.inf], []):
        x = np.array(values * 5000, np.float32)[None]
        build = Builder()
        operand = build.input("x", DType.F32, x.shape)
        program = build.program({"y": build.reduce(f, operand, [1])})
        expected = reductions.reduction_identity(f, DType.F32)
        for value in values:
            expected = step(f, np.asarray(expected), np.array(value, np.float32)).flat[0]
        found = interpret(program, {"x": x})["y"]
        assert found.shape == (1, 1) and found.tobytes() == np.asarray(expected).tobytes()
    assert len(steps) < 60
