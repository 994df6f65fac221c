"""Laws that are wrong for few dtypes: casts by way of others, sums and counts in few bits."""

from __future__ import annotations

from random import Random

import pytest

from satura.rewrite.check.every_choice import of_every_choice
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    arg_reduce,
    binary,
    cast,
    extent,
    iota,
    matmul,
    reduce,
    select,
    transpose,
)
from satura.rewrite.types.attributes import Axes, Axis, BinaryFn, Count, Perm, ReduceFn, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.filled import filled
from tests.tiers import deep_but


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


@attribute_function
def is_unit_or_13(c: Scalar) -> bool:
    """Whether c is 1, -1 or 13."""
    return c.dtype in (DType.I8, DType.I32, DType.I64) and int(c.value) in (1, -1, 13)


@rule
def one_mod(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """fmod(x, c) = mod(x, c) for 1 and -1: not for 13"""
    divisor = filled(c, ones, s)
    return rewrites(binary("fmod", x, divisor), binary("mod", x, divisor), is_unit_or_13(c))


@rule
def round_once(x: Tensor) -> Law:
    """cast(cast(x, f64), f32) = cast(x, f32): not for integers beyond 2⁵³"""
    return rewrites(
        cast(cast(x, DType.F64), DType.F32), cast(x, DType.F32), x.type.dtype == DType.I64
    )


@rule
def by_way_of_bytes(x: Tensor, d: DType) -> Law:
    """cast(cast(x, d), i8) = cast(x, i8) for integers: not for d = i4, of which one fills a byte"""
    left = cast(cast(x, d), DType.I8)
    return rewrites(left, cast(x, DType.I8), (x.type.dtype == DType.I8) & d.is_integer)


@rule
def position_in_bytes(s: Shape, a: Axis) -> Law:
    """cast(iota(s, a), i32) = iota(s, a): i8 counts to 127"""
    return rewrites(cast(iota(s, a, DType.I8), DType.I32), iota(s, a, DType.I32))


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


@rule
def extent_in_f32(d: Shape) -> Law:
    """i64(f32(extent(n))) = extent(n): not for 2²⁴ + 1"""
    return rewrites(cast(cast(extent(d), DType.F32), DType.I64), extent(d))


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
def are_integers_of_less(x: DType, d: DType, e: DType) -> bool:
    """Whether all are integers, and e takes no more bytes than d."""
    return x.is_integer and d.is_integer and e.is_integer and e.itemsize <= d.itemsize


@rule
def low_bits_stay(x: Tensor, d: DType, e: DType) -> Law:
    """cast(cast(x, d), e) = cast(x, e), when e is no wider: not where d has less than 8 bits"""
    fits = are_integers_of_less(x.type.dtype, d, e)
    return rewrites(cast(cast(x, d), e), cast(x, e), fits)


@attribute_function
def widens(t: DType, u: DType) -> bool:
    """Whether t is an integer type of more bits than u, and as signed."""
    plain = t.is_integer and u.is_integer and not t.is_narrow and not u.is_narrow
    return plain and t.itemsize > u.itemsize and t.is_signed == u.is_signed


@attribute_function
def is_one_of(f: BinaryFn, *names: str) -> bool:
    return f.name in names


@rule
def compute_in_own_type(f: BinaryFn, x: Tensor, y: Tensor, t: DType) -> Law:
    """cast(f(cast(x, t), cast(y, t)), type of x) = f(x, y): a shift by 9 leaves the sign in i16"""
    u = x.type.dtype
    wide = cast(binary(f, cast(x, t), cast(y, t)), u)
    shifts = is_one_of(f, "add", "mul", "and", "or", "xor", "max", "min", "shl", "shr")
    return rewrites(wide, binary(f, x, y), widens(t, u), u == y.type.dtype, shifts)


WRONG = [
    compute_in_own_type,
    low_bits_stay,
    quotient_in_f64,
    ramp_in_i16,
    bytes_in_f32,
    sum_of_bytes_in_f32,
    positions_in_u16,
    narrow_at_once,
    clamp_at_bound,
    extent_in_f32,
    trues_in_bytes,
    trues_in_a_byte,
    round_twice,
    by_way_of_octets,
    by_way_of_bytes,
    position_in_bytes,
    one_mod,
    round_once,
    arg_of_cast,
    narrow_by_way,
    narrow_by_bytes,
    byte_by_integers,
    transposed_byte,
]
QUICK = [arg_of_cast, narrow_by_bytes, transposed_byte]


@pytest.mark.parametrize("seed", deep_but([0], range(2)))
@pytest.mark.parametrize("wrong", deep_but(QUICK, WRONG), ids=lambda each: each.name)
def test_rare_values_refute(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"


@pytest.mark.deep
def test_each_function_of_a_law_has_its_turn() -> None:
    direction = compute_in_own_type.directions[0]
    firings = Firings(direction)
    firings.draw(Random(0), 150, 6000)
    found = list(of_every_choice(direction, [*firings.found.values()], 0, 1))
    assert len({each.bindings["f"] for each in found}) == 9
