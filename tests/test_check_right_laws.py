"""Right laws that a checker could take for wrong: for the reference's errors, or sizes."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.check.both_sides import MOST_COMPUTED, has_meaning
from satura.rewrite.check.disagreement import disagreement
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import attention, concat, winograd
from satura.rewrite.ops.cells import Cell
from satura.rewrite.ops.elementwise import BINARY
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Axis, Window
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.testing import check
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
