"""Right laws that a checker could take for wrong, or that fire for few draws only."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.check.both_sides import MOST_COMPUTED, has_meaning
from satura.rewrite.check.disagreement import disagreement
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    attention,
    binary,
    cast,
    concat,
    extent,
    gather,
    matmul,
    reduce,
    scalar,
    slice_,
    transpose,
    unary,
    winograd,
)
from satura.rewrite.ops.cells import Cell
from satura.rewrite.ops.elementwise import BINARY
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Perm,
    Shape,
    Slices,
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import static, symbol
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.testing import check
from tests.filled import filled
from tests.tiers import deep_but


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [2.0, -2.0, 4.0])
def test_an_even_power_of_what_is_negated_is_the_same(exponent: float, dtype: type) -> None:
    x: Array = np.random.default_rng(0).standard_normal(4096).astype(dtype)
    power = BINARY["pow"].reference
    exponents: Array = np.full(x.shape, exponent, dtype)
    np.testing.assert_array_equal(power(np.negative(x), exponents), power(x, exponents))
    np.testing.assert_array_equal(power(x[7:8], exponents[:1]), power(x, exponents)[7:8])


def test_a_fill_is_among_the_numbers_that_a_convolution_rounds() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 2, 0, 1))
    w = build.input("w", DType.F32, (3, 3, 1, 1))
    window = build.window(DType.F32, (3, 3), None, None, (0, 2), (2, 1), -134.2269)
    sides = {"left": build.conv(x, w, window), "right": build.add("winograd", (x, w), window)}
    weights = [-1.0, -0.99999964, -1.0000004, -0.49999994, 0.5, 0.5, 0.5, 1.0, 1.0]
    arguments = {
        "x": np.zeros((1, 2, 0, 1), np.float32),
        "w": np.array(weights, np.float32).reshape(3, 3, 1, 1),
    }
    assert not disagreement(build.program(sides), arguments, exact=False)


def test_instances_too_large_to_compute_often_are_left_out() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1 << 12, symbol("n")))
    program = build.program({"left": build.unary("neg", x)})
    most = MOST_COMPUTED >> 12
    assert has_meaning(program, {"n": most}) and not has_meaning(program, {"n": most + 1})


@attribute_function
def is_of_queries(type_: TensorType, axis: Axis) -> bool:
    return axis.index == type_.rank - 2


@rule
def attention_of_queries(
    q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, a: Axis
) -> Law:
    """attention(concat(q, r), k, concat(b, c), v) = concat(attention(q, …), attention(r, …))"""
    apart = concat(attention(q, k, b, v), attention(r, k, c, v), a)
    whole = attention(concat(q, r, a), k, concat(b, c, a), v)
    return rewrites(whole, apart, is_of_queries(q.type, a), whole.type == apart.type)


@rule
def attention_of_turned_queries(
    q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, a: Axis
) -> Law:
    """the same, but each half of the queries has the bias of the other one"""
    apart = concat(attention(q, k, c, v), attention(r, k, b, v), a)
    whole = attention(concat(q, r, a), k, concat(b, c, a), v)
    return rewrites(whole, apart, is_of_queries(q.type, a), whole.type == apart.type)


@rule
def winograd_of_images(x: Tensor, y: Tensor, w: Tensor, window: Window) -> Law:
    """winograd(concat(x, y), w) = concat(winograd(x, w), winograd(y, w)) of images"""
    first = Axis(0)
    apart = concat(winograd(x, w, window), winograd(y, w, window), first)
    return rewrites(winograd(concat(x, y, first), w, window), apart)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "right", [attention_of_queries, winograd_of_images], ids=lambda each: each.name
)
def test_contractions_of_parts_sum_the_same(right: Rule, seed: int) -> None:
    report = check(right, seed, shrink=False)
    assert report.verdict == "tested", str(report)


@pytest.mark.parametrize("seed", deep_but([0], range(3)))
def test_attention_with_another_bias_is_refuted(seed: int) -> None:
    assert check(attention_of_turned_queries, seed, shrink=False).verdict == "refuted"


def test_attention_of_a_query_is_no_other_for_other_queries() -> None:
    random = np.random.default_rng(0)
    queries, depth, keys, columns = 5, 40, 12, 3
    shapes = ((queries, depth), (depth, keys), (queries, keys), (keys, columns))
    build = Builder()
    operands = [build.input(name, DType.F32, s) for name, s in zip("qkbv", shapes, strict=True)]
    op = build.program({"y": build.add("attention", operands)}).nodes[-1].op
    q, k, b, v = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    whole = op.reference(q, k, b, v)
    for each in range(queries):
        part = slice(each, each + 1)
        np.testing.assert_array_equal(op.reference(q[part], k, b[part], v), whole[part])


def test_states_of_a_recurrence_are_no_others_for_other_sequences() -> None:
    random = np.random.default_rng(0)
    steps, batch, hidden = 3, 5, 40
    cell = Cell("rnn", (("tanh", 0.0, 0.0),))
    build = Builder()
    shapes = ((steps, batch, hidden), (1, hidden, hidden), (1, 1, batch, hidden), (1, 0, hidden))
    operands = [build.input(name, DType.F32, s) for name, s in zip("xwhp", shapes, strict=True)]
    lengths = build.input("n", DType.I64, (0,))
    op = build.program({"y": build.add("recurrence", (*operands, lengths), cell)}).nodes[-1].op
    x, w, h, p = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    none = np.zeros(0, np.int64)
    whole = op.reference(x, w, h, p, none, cell)
    for each in range(batch):
        part = slice(each, each + 1)
        alone = op.reference(x[:, part], w, h[:, :, part], p, none, cell)
        np.testing.assert_array_equal(alone, whole[:, :, part])


@rule
def narrow_after_a_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(cast(x, f8), p) = cast(transpose(x, p), f8)"""
    return rewrites(transpose(cast(x, DType.F8E5M2), p), cast(transpose(x, p), DType.F8E5M2))


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
