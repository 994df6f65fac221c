"""Laws up to rounding where terms overflow or cancel, and where that is no excuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from satura.language import (
    Axes,
    Builder,
    DType,
    Law,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    binary,
    broadcast,
    pool,
    reduce,
    reshape,
    rewrites,
    rule,
)
from satura.rewrite.check.compare import eps
from satura.rewrite.check.disagreement import UncomputableError, disagreement
from satura.rewrite.check.testing import check
from satura.rewrite.language.dsl import Rule
from satura.rewrite.program.program import Program

Sides = Callable[[Builder, int, int], tuple[int, int]]
FAR = {DType.F16: 300.0, DType.BF16: 1e30, DType.F32: 1e30, DType.F64: 1e200}


def summed(build: Builder, x: int, y: int) -> tuple[int, int]:
    """The sum of x * y, where x is the same everywhere; and x times the sum of y."""
    scaled = build.reduce("sum", build.binary("mul", x, y), (1,))
    first = build.slice(x, (0, 0), (1, 1))
    return scaled, build.binary("mul", first, build.reduce("sum", y, (1,)))


def pooled(build: Builder, x: int, y: int) -> tuple[int, int]:
    """The same by a window of two."""
    window = build.window(build.type(x).dtype, (1, 2))
    scaled = build.pool("sum", build.binary("mul", x, y), window)
    first = build.slice(x, (0, 0), (1, 1))
    return scaled, build.binary("mul", first, build.pool("sum", y, window))


def multiplied(build: Builder, x: int, y: int) -> tuple[int, int]:
    """The product of x and a column; and the one that was summed before."""
    first = build.slice(x, (0, 0), (1, 1))
    total = build.reduce("sum", y, (1,))
    return build.matmul(x, build.transpose(y, (1, 0))), build.binary("mul", first, total)


def compared(build: Builder, x: int, y: int) -> tuple[int, int]:
    """Whether such sums are 0."""
    left, right = summed(build, x, y)
    zero = build.broadcast(build.reshape(build.constant(0, build.type(x).dtype), (1, 1)), (1, 1))
    return build.binary("le", left, zero), build.binary("le", right, zero)


def squared(build: Builder, x: int, y: int) -> tuple[int, int]:
    """(x / y)^2 and x^2 / y^2: nothing cancels."""
    once = build.binary("div", x, y)
    squares = (build.binary("mul", each, each) for each in (x, y))
    return build.binary("mul", once, once), build.binary("div", *squares)


def shifted(build: Builder, x: int, y: int) -> tuple[int, int]:
    """The same, and y beside it: the NaN is not of that sum."""
    left, right = squared(build, x, y)
    return build.binary("add", left, y), build.binary("add", right, y)


def inverted(build: Builder, x: int, y: int) -> tuple[int, int]:
    """1 / x - 1 / x and x - x, which are not the same at a pole."""
    one = build.binary("div", y, y)
    inverse = build.binary("div", one, x)
    return build.binary("sub", inverse, inverse), build.binary("sub", x, x)


def cancelled(build: Builder, x: int, y: int) -> tuple[int, int]:
    """x * y - x * y and y - y, which are not the same at an infinity."""
    product = build.binary("mul", x, y)
    return build.binary("sub", product, product), build.binary("sub", y, y)


def narrowed(build: Builder, x: int, y: int) -> tuple[int, int]:
    """The difference of x and y once rounded before and once after it."""
    before = (build.cast(each, DType.F16) for each in (x, y))
    return build.binary("sub", *before), build.cast(build.binary("sub", x, y), DType.F16)


def reason(sides: Sides, dtype: DType, x: tuple[float, ...], y: tuple[float, ...]) -> str:
    """How the sides differ for rows x and y."""
    program = program_of(sides, dtype, len(x))
    values = {"x": np.array([x]), "y": np.array([y])}
    arguments = {name: array.astype(dtype.numpy) for name, array in values.items()}
    return disagreement(program, arguments, exact=False)


def program_of(sides: Sides, dtype: DType, size: int) -> Program:
    build = Builder()
    rows = [build.input(name, dtype, (1, size)) for name in "xy"]
    left, right = sides(build, *rows)
    return build.program({"left": left, "right": right})


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", FAR, ids=lambda each: each.value)
@pytest.mark.parametrize("sides", [summed, pooled, multiplied, compared])
def test_terms_that_overflow_may_cancel(sides: Sides, dtype: DType, swapped: bool) -> None:
    def in_turn(build: Builder, x: int, y: int) -> tuple[int, int]:
        left, right = sides(build, x, y)
        return (right, left) if swapped else (left, right)

    far = FAR[dtype]
    assert reason(in_turn, dtype, (far, far), (far, -far)) == ""
    assert reason(in_turn, dtype, (far, far), (far, -far * 0.73)) == ""


def test_a_term_that_overflows_may_nearly_cancel() -> None:
    assert reason(summed, DType.F16, (127.0, 127.0), (600.0, -510.0)) == ""
    assert reason(summed, DType.F16, (127.0, 127.0), (600.0, 5.0)) == ""


@pytest.mark.parametrize("dtype", FAR, ids=lambda each: each.value)
@pytest.mark.parametrize("sides", [squared, shifted])
def test_a_quotient_of_infinities_is_a_mistake(sides: Sides, dtype: DType) -> None:
    far = FAR[dtype]
    assert reason(sides, dtype, (far,), (far,)) != ""


def test_infinities_that_did_not_overflow_are_compared() -> None:
    assert reason(inverted, DType.F32, (0.0,), (1.0,)) != ""
    assert reason(cancelled, DType.F32, (np.inf,), (1.0,)) != ""
    assert reason(cancelled, DType.F32, (np.nan,), (1.0,)) != ""
    assert reason(narrowed, DType.F32, (1e6,), (1e6,)) != ""


def test_other_elements_are_compared() -> None:
    def wrong(build: Builder, x: int, y: int) -> tuple[int, int]:
        """x * (y - 2 * y) and -x * y in both of two elements, and in the second one 100 more."""
        ones = build.input("ones", build.type(x).dtype, (1, 2))
        product = build.binary("mul", x, y)
        twice = build.binary("add", product, product)
        left = build.binary("sub", product, twice)
        return left, build.binary("add", build.unary("neg", product), ones)

    program = program_of(wrong, DType.F16, 2)
    rows = {"x": [300.0, 1.0], "y": [300.0, 1.0], "ones": [0.0, 100.0]}
    arguments = {name: np.array([row], np.float16) for name, row in rows.items()}
    assert disagreement(program, arguments, exact=False).startswith("at [0, 1]")


@attribute_function
def is_alike_along(x: TensorType, axes: Axes) -> bool:
    """Whether x has one element along each of the axes."""
    return all(x.shape[axis] == 1 for axis in axes.indices)


@rule(reassociates=True)
def scale_the_sum(x: Tensor, y: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(x * y) = x * sum(y), where x is the same along the axes"""
    total = reduce("sum", y, axes)
    scaled = binary("mul", broadcast(x, Shape(total.type.shape)), total)
    left = reduce("sum", binary("mul", broadcast(x, s), y), axes)
    return rewrites(left, scaled, is_alike_along(x.type, axes))


@attribute_function
def reaches_no_border(w: Window) -> bool:
    """Whether all positions of the window are within its operand."""
    return not w.has_border


@rule(reassociates=True)
def scale_the_pool(x: Tensor, c: Scalar, ones: Shape, s: Shape, w: Window) -> Law:
    """The sum of x * c under a window is that of x, times c, where there is no border"""
    total = pool("sum", x, w)
    scaled = binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape)))
    left = pool("sum", binary("mul", x, broadcast(reshape(c, ones), s)), w)
    return rewrites(left, scaled, reaches_no_border(w))


@rule(reassociates=True)
def square_of_quotients(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """sum((x / y)^2) = sum(x^2 / y^2): not where the squares overflow"""
    once, squares = binary("div", x, y), (binary("mul", each, each) for each in (x, y))
    left = reduce("sum", binary("mul", once, once), axes)
    return rewrites(left, reduce("sum", binary("div", *squares), axes))


@rule(reassociates=True)
def scale_by_sums(x: Tensor, y: Tensor, s: Shape, axes: Axes) -> Law:
    """sum(x * y) = sum(x) * sum(y): not along several elements of x"""
    total = reduce("sum", y, axes)
    scaled = binary("mul", broadcast(reduce("sum", x, axes), Shape(total.type.shape)), total)
    return rewrites(reduce("sum", binary("mul", broadcast(x, s), y), axes), scaled)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("right", [scale_the_sum, scale_the_pool], ids=lambda each: each.name)
def test_laws_of_sums_that_overflow_hold(right: Rule, seed: int) -> None:
    report = check(right, seed)
    assert report.verdict == "tested", str(report)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wrong", [square_of_quotients, scale_by_sums], ids=lambda each: each.name)
def test_wrong_laws_of_sums_are_refuted(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"


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
