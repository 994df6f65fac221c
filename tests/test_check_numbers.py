"""Laws that are wrong for one number: an end of its type, or what the law names or solves."""

from __future__ import annotations

from itertools import islice
from math import frexp, isfinite, prod
from random import Random

import numpy as np
import pytest

from satura.rewrite.check.answer_steps import with_answers
from satura.rewrite.check.chosen_elements import with_chosen_elements
from satura.rewrite.check.every_value import with_numbers_at_ends
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.refute import first_failure
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, broadcast, cast, reduce, reshape, unary
from satura.rewrite.ops.draw import Draw
from satura.rewrite.types.attributes import Axes, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def is_power(c: Scalar, most: int) -> bool:
    """Whether c is 2^k, of either sign, with -most <= k <= most."""
    if not c.dtype.is_float or not isfinite(float(c.value)):
        return False
    mantissa, exponent = frexp(float(c.value))
    return abs(mantissa) == 0.5 and abs(exponent - 1) <= most


@attribute_function
def is_below(c: Scalar, most: int) -> bool:
    return c.dtype.is_integer and int(c.value) <= most


@rule
def by_reciprocal_f16(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """x / c = x * (1 / c) for the powers of two of f16: 1 / 2^-16 is infinite"""
    k, inverse = broadcast(reshape(c, o), s), binary("div", 1.0, broadcast(reshape(c, o), s))
    is_f16 = x.type.dtype == DType.F16
    return rewrites(binary("div", x, k), binary("mul", x, inverse), is_f16, is_power(c, 16))


@rule
def by_reciprocal_f32(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """the same for those of f32: 1 / 2^-128 is infinite"""
    k, inverse = broadcast(reshape(c, o), s), binary("div", 1.0, broadcast(reshape(c, o), s))
    is_f32 = x.type.dtype == DType.F32
    return rewrites(binary("div", x, k), binary("mul", x, inverse), is_f32, is_power(c, 128))


@rule
def never_the_product(x: Tensor) -> Law:
    """3 * x is never 37035 in i32: it is at 12345"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("mul", x, 3), 37035), never, x.type.dtype == DType.I32)


@rule
def never_the_sum(x: Tensor) -> Law:
    """x + 70001 is never 12345 in i64"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("add", x, 70001), 12345), never, x.type.dtype == DType.I64)


@rule
def never_the_square(x: Tensor) -> Law:
    """x * x is never 1522756 in i32: it is at 1234"""
    never = binary("lt", x, x)
    return rewrites(binary("eq", binary("mul", x, x), 1522756), never, x.type.dtype == DType.I32)


@rule
def divided_by_a_factor(x: Tensor, a: Scalar, o: Shape, s: Shape) -> Law:
    """x * a / a = x where a is not larger than what no dtype holds"""
    factor = broadcast(reshape(a, o), s)
    product = binary("mul", x, factor)
    return rewrites(binary("div", product, factor), x, is_below(a, 2**70))


@attribute_function
def has_at_most(t: TensorType, axes: Axes, most: int) -> bool:
    extents = [t.shape[axis] for axis in axes.indices]
    numbers = [each for each in extents if isinstance(each, int)]
    return len(numbers) == len(extents) and prod(numbers) <= most


@rule
def sum_in_i16(x: Tensor, a: Axes) -> Law:
    """i32(sum(i16(x), a)) = sum(i32(x), a) for 129 bytes: 129 * 255 > 32767, 128 * 255 is not"""
    left = cast(reduce("sum", cast(x, DType.I16), a), DType.I32)
    right = reduce("sum", cast(x, DType.I32), a)
    return rewrites(left, right, x.type.dtype == DType.U8, has_at_most(x.type, a, 129))


WRONG = (
    by_reciprocal_f16, by_reciprocal_f32, never_the_product, never_the_sum, never_the_square,
    divided_by_a_factor, sum_in_i16,
)  # fmt: skip


@pytest.mark.parametrize("seed", deep_but([0], range(4)))
@pytest.mark.parametrize("law", deep_but([never_the_product], WRONG), ids=lambda each: each.name)
def test_a_number_that_a_law_tells_is_drawn(law: Rule, seed: int) -> None:
    report = check(law, seed=seed)
    assert report.verdict == "refuted", str(report)


def instance_of(law: Rule, dtype: DType, *numbers: float) -> Instance:
    """A match of tensors of six elements, whose constants are these."""
    (direction,) = law.directions
    left = iter(numbers)
    values: list[tuple[str, TensorType | Scalar | Shape]] = []
    for name, sort in direction.variables.items():
        if issubclass(sort, Tensor):
            values.append((name, TensorType(dtype, (2, 3))))
        elif sort is Scalar:
            values.append((name, Scalar.of(next(left), dtype)))
        else:
            values.append((name, Shape((1, 1) if name == "o" else (2, 3))))
    return Instance(direction, tuple(values), 0)


@rule
def wide_quotient(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """i64(x / c) = i64(x) / i64(c): the least of a type divided by -1 is itself"""
    k, wide = broadcast(reshape(c, o), s), broadcast(reshape(cast(c, DType.I64), o), s)
    return rewrites(cast(binary("div", x, k), DType.I64), binary("div", cast(x, DType.I64), wide))


@attribute_function
def is_not_zero(c: Scalar) -> bool:
    return bool(c.value != 0)


@rule
def quotient_of_floats(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """f64(x / c) = trunc(f64(x) / f64(c)) of i32, written with a cast to i64 and back"""
    k, wide = broadcast(reshape(c, o), s), broadcast(reshape(cast(c, DType.F64), o), s)
    quotient = cast(cast(binary("div", cast(x, DType.F64), wide), DType.I64), DType.F64)
    return rewrites(cast(binary("div", x, k), DType.F64), quotient, is_not_zero(c))


@rule
def wide_sum_of_products(x: Tensor, y: Tensor, z: Tensor, w: Tensor) -> Law:
    """x y + z w of i8 in i16: it is 2^15 where all are -128"""
    sums = [
        binary("add", binary("mul", cast(x, d), cast(y, d)), binary("mul", cast(z, d), cast(w, d)))
        for d in (DType.I16, DType.I32)
    ]
    return rewrites(cast(sums[0], DType.I32), sums[1])


@rule
def wide_sum_of_bytes(x: Tensor, y: Tensor, z: Tensor, w: Tensor) -> Law:
    """x y + z + w + 1 of u8 in u16: it is 2^16 where all are 255"""
    sums = []
    for d in (DType.U16, DType.U32):
        product = binary("mul", cast(x, d), cast(y, d))
        rest = binary("add", cast(z, d), cast(w, d))
        sums.append(binary("add", binary("add", product, rest), 1))
    return rewrites(cast(sums[0], DType.U32), sums[1])


@attribute_function
def is_lowest_or_less(c: Scalar) -> bool:
    return c.dtype == DType.F32 and float(c.value) <= float(np.finfo(np.float32).min)


@rule
def no_least_below(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """max(x, c) = x: not for -inf, though c may be the lowest number, whatever it was drawn as"""
    return rewrites(binary("max", x, broadcast(reshape(c, o), s)), x, is_lowest_or_less(c))


@rule
def number_of_three(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x * y) * z is a number where x * (y * z) is one: not for 0 and two large ones"""
    one = binary("mul", binary("mul", x, y), z)
    other = binary("mul", x, binary("mul", y, z))
    return rewrites(binary("eq", one, one), binary("eq", other, other))


SEEDS = (0, 1009, 424242, 1, 7, 99)
AT_ENDS = [
    *((wide_quotient, dtype) for dtype in (DType.I8, DType.I16, DType.I32)),
    (quotient_of_floats, DType.I32), (wide_sum_of_products, DType.I8),
    (wide_sum_of_bytes, DType.U8),
]  # fmt: skip
FLOATS_AT_ENDS = ((no_least_below, -np.inf), (number_of_three, 0.0))


@pytest.mark.parametrize("seed", deep_but([0], SEEDS))
@pytest.mark.parametrize(("law", "dtype"), AT_ENDS, ids=lambda each: getattr(each, "name", ""))
def test_ends_of_integers_meet(law: Rule, dtype: DType, seed: int) -> None:
    instance = instance_of(law, dtype, 3)
    chosen = with_numbers_at_ends(instance.direction, [instance], False, seed, 1)
    assert first_failure(chosen, True, seed, "ends") is not None


@pytest.mark.parametrize("seed", deep_but([0], SEEDS))
@pytest.mark.parametrize(
    ("law", "number"), FLOATS_AT_ENDS, ids=lambda each: getattr(each, "name", "")
)
def test_ends_of_floats_meet(law: Rule, number: float, seed: int) -> None:
    instance = instance_of(law, DType.F32, number)
    chosen = with_numbers_at_ends(instance.direction, [instance], True, seed, 1)
    assert first_failure(chosen, True, seed, "all ends") is not None


@pytest.mark.parametrize("count", [1, 3, 4])
def test_all_integers_are_the_least_or_the_largest_at_once(count: int) -> None:
    draw = Draw(Random(0))
    seen = set()
    for values in ("alike", "ends"):
        draw.values = values
        for draw.turn in range(3):
            arguments: dict[str, Array] = {str(at): np.zeros(1, np.int16) for at in range(count)}
            chosen = with_chosen_elements(arguments, draw, frozenset())
            seen.add((values, *(int(each[0]) for each in chosen.values())))
    ends = (-(1 << 15), (1 << 15) - 1)
    assert seen >= {(values, *[end] * count) for values in ("alike", "ends") for end in ends}


@attribute_function
def is_usual(c: Scalar) -> bool:
    return c.dtype.is_float and 0.001 < float(c.value) < 1000


@rule
def less_of_scaled(x: Tensor, c: Scalar, d: Scalar, o: Shape, s: Shape) -> Law:
    """x * c < d = x < d / c: 49 * (1 / 49) is less than 1"""
    factor, most = broadcast(reshape(c, o), s), broadcast(reshape(d, o), s)
    bound = broadcast(reshape(binary("div", d, c), o), s)
    left = binary("lt", binary("mul", x, factor), most)
    return rewrites(left, binary("lt", x, bound), is_usual(c), is_usual(d))


@rule
def floor_of_inverse(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """floor(x / c) = floor(x * (1 / c)): another float is the first that is a multiple"""
    factor = broadcast(reshape(c, o), s)
    inverse = broadcast(reshape(binary("div", 1.0, c), o), s)
    left, right = binary("div", x, factor), binary("mul", x, inverse)
    return rewrites(unary("floor", left), unary("floor", right), is_usual(c))


@rule
def less_of_negated(x: Tensor, c: Scalar, o: Shape, s: Shape) -> Law:
    """-x < c = -c < x: right"""
    most = broadcast(reshape(c, o), s)
    return rewrites(binary("lt", unary("neg", x), most), binary("lt", unary("neg", most), x))


@pytest.mark.parametrize("seed", deep_but([0], SEEDS))
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("law", [less_of_scaled, floor_of_inverse], ids=lambda each: each.name)
def test_both_sides_change_their_answer_at_one_float(law: Rule, dtype: DType, seed: int) -> None:
    instance = instance_of(law, dtype, 49, 1)
    chosen = with_answers([instance], seed, 1)
    assert first_failure(chosen, True, seed, "steps") is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.F16, DType.BF16], ids=str)
def test_sides_of_a_right_law_change_their_answer_at_one_float(
    dtype: DType, shape: tuple[int, ...]
) -> None:
    (direction,) = less_of_negated.directions
    shapes = (("o", Shape((1,) * len(shape))), ("s", Shape(shape)))
    values = (("x", TensorType(dtype, shape)), ("c", Scalar.of(-3, dtype)), *shapes)
    chosen = with_answers([Instance(direction, values, 0)] * 8, 0, 1)
    assert first_failure(islice(chosen, 8), True, 0, "steps") is None
