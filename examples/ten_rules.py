"""Ten rules that are not in the rule book, each short and each checked.

`satura check examples/ten_rules.py` shows what is proved and what is tested of them, and
`python examples/ten_rules.py` what they make of a small program.
"""

from __future__ import annotations

import numpy as np

import satura
from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Builder,
    DType,
    Known,
    Law,
    Padding,
    Program,
    ReduceFn,
    Refuse,
    RuleSet,
    Scalar,
    Shape,
    Tensor,
    TensorType,
    UnaryFn,
    attribute_function,
    binary,
    both,
    broadcast,
    concat,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    select,
    unary,
)
from satura.rules import DEFAULT


@rule
def select_between_equals(c: Tensor, x: Tensor) -> Law:
    """select(c, x, x) = x"""
    return rewrites(select(c, x, x), x)


@rule
def select_by_negation(c: Tensor, x: Tensor, y: Tensor) -> Law:
    """select(not c, x, y) = select(c, y, x)"""
    return rewrites(select(unary("not", c), x, y), select(c, y, x))


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    """`or` for `and`, and the other way round."""
    if f.name not in ("and", "or"):
        raise Refuse(f"{f} has no dual")
    return BinaryFn("or" if f.name == "and" else "and")


@rule
def de_morgan(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """not(x and y) = not(x) or not(y), and the same with `and` and `or` exchanged; both ways"""
    return both(
        rewrites(unary("not", binary(f, x, y)), binary(dual(f), unary("not", x), unary("not", y))),
        rewrites(binary(f, unary("not", x), unary("not", y)), unary("not", binary(dual(f), x, y))),
    )


@attribute_function
def negated(f: BinaryFn) -> BinaryFn:
    """g such that not f(x, y) = g(y, x), where the order is total."""
    if f.name not in ("lt", "le"):
        raise Refuse(f"{f} is not an order")
    return BinaryFn("le" if f.name == "lt" else "lt")


@rule
def negate_order(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """not(x < y) = y <= x and not(x <= y) = y < x, on integers: a NaN is in no order"""
    return rewrites(
        unary("not", binary(f, x, y)), binary(negated(f), y, x), x.type.dtype.is_integer
    )


@attribute_function
def is_never_negative(f: UnaryFn, type_: TensorType) -> bool:
    """Whether f gives neither a negative number nor -0.0: sqrt(-0.0) is, and abs(-128) in i8."""
    return type_.dtype.is_float and f.name in ("abs", "cosh", "exp", "sigmoid")


@rule
def relu_of_never_negative(f: UnaryFn, x: Tensor) -> Law:
    """relu(f(x)) = f(x), for an f that is never negative"""
    return rewrites(unary("relu", unary(f, x)), unary(f, x), is_never_negative(f, x.type))


@attribute_function
def is_zero(value: Scalar) -> bool:
    """Whether all bits are 0: -0.0 is not."""
    return not any(value.bits)


@rule
def relu_from_max(x: Tensor, zero: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, 0 everywhere) = relu(x)"""
    return rewrites(
        binary("max", x, broadcast(reshape(zero, ones), s)), unary("relu", x), is_zero(zero)
    )


@attribute_function
def chooses(f: BinaryFn) -> bool:
    """Whether f(x, y) is always x or y, and the order of several does not matter."""
    return f.name in ("max", "min")


@rule
def merge_bounds(f: BinaryFn, x: Tensor, a: Known, b: Known, s: Shape) -> Law:
    """max(max(x, broadcast(a)), broadcast(b)) = max(x, broadcast(max(a, b))), and so for min, when
    a and b have one shape"""
    return rewrites(
        binary(f, binary(f, x, broadcast(a, s)), broadcast(b, s)),
        binary(f, x, broadcast(binary(f, a, b), s)),
        chooses(f) & (a.type.shape == b.type.shape),
    )


@attribute_function
def any_order(f: ReduceFn, type_: TensorType) -> bool:
    """Whether f gives the same bits however its elements are grouped."""
    return f.name in ("max", "min") or not type_.dtype.is_float


@attribute_function
def union(a: Axes, b: Axes) -> Axes:
    """The axes of both."""
    return Axes(tuple(sorted({*a.indices, *b.indices})))


@rule
def merge_reductions(f: ReduceFn, x: Tensor, a: Axes, b: Axes) -> Law:
    """reduce(reduce(x, a), b) = reduce(x, a and b), when no sum is rounded in another order"""
    return rewrites(reduce(f, reduce(f, x, a), b), reduce(f, x, union(a, b)), any_order(f, x.type))


@rule(reassociates=True)
def scale_out_of_sum(x: Tensor, c: Scalar, ones: Shape, s: Shape, axes: Axes) -> Law:
    """sum(x * c everywhere) = sum(x) * c everywhere: as many products as there are sums"""
    total = reduce("sum", x, axes)
    return rewrites(
        reduce("sum", binary("mul", x, broadcast(reshape(c, ones), s)), axes),
        binary("mul", total, broadcast(reshape(c, ones), Shape(total.type.shape))),
    )


@attribute_function
def padding_after(type_: TensorType, added: Shape, axis: Axis) -> Padding:
    """What adds as many elements after `axis` as `added` has along it."""
    nothing = (0,) * type_.rank
    at = axis.index
    return Padding(nothing, (*nothing[:at], added.dims[at], *nothing[at + 1 :]))


@rule
def concat_with_constant(x: Tensor, c: Scalar, ones: Shape, s: Shape, axis: Axis) -> Law:
    """concat(x, c everywhere, axis) = pad(x, c, as much after the axis)"""
    return rewrites(
        concat(x, broadcast(reshape(c, ones), s), axis), pad(x, c, padding_after(x.type, s, axis))
    )


TEN = RuleSet.of_module(__name__)


def bordered() -> Program:
    """y = min(min(max(x with two rows of zeros, 0), 6), 4), as an exporter may write it."""
    build = Builder()

    def everywhere(value: float, rows: int) -> int:
        return build.broadcast(build.constant([[value]], DType.F32), [rows, 8])

    y = build.concat([build.input("x", DType.F32, [6, 8]), everywhere(0, 2)], 0)
    y = build.binary("max", y, everywhere(0, 8))
    for bound in (6, 4):
        y = build.binary("min", y, everywhere(bound, 8))
    return build.program({"y": y})


def main() -> None:
    """Print the program before and after, and check that both say the same."""
    before = bordered()
    after = satura.optimize(before, rules=DEFAULT + TEN)
    print(f"before:\n{before}\n\nafter:\n{after}")
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    expected = satura.interpret(before, {"x": x})["y"]
    np.testing.assert_array_equal(satura.interpret(after, {"x": x})["y"], expected)


if __name__ == "__main__":
    main()
