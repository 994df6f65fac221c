"""Meanings of elementwise and layout ops."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from satura.rewrite.prove.open_values import FAMILIES, dtype_term, function_term
from satura.rewrite.prove.reshape import compare_rows
from satura.rewrite.prove.size import terms_of
from satura.rewrite.prove.stand_in import unknown
from satura.rewrite.prove.tensors import Elements, Index, Judge, demand, demand_one_shape
from satura.rewrite.prove.z3_terms import (
    BINARY_VALUE,
    CAST_VALUE,
    GIVES,
    IS_TRUE,
    TAKES,
    UNARY_VALUE,
    at_least,
    code,
    equal,
    formula,
    table,
    within,
)
from satura.rewrite.types.attributes import (
    Axis,
    Padding,
    Perm,
    Shape,
    Slices,
)
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType


def demand_one_type(judge: Judge, x: Elements, y: Elements) -> None:
    """Demand that both have one shape and dtype."""
    demand_one_shape(judge, x, y)
    judge.always(x.dtype == y.dtype, "the operands' dtypes differ")


def elementwise(judge: Judge, f: object, operands: Sequence[Elements]) -> Elements:
    """The meaning of `unary` and `binary`: a function of the elements at one index."""
    family = FAMILIES[next(sort for sort in FAMILIES if isinstance(f, sort))]
    number = function_term(f)
    first = operands[0]
    for other in operands[1:]:
        demand_one_type(judge, first, other)
    if z3.is_int_value(number):
        judge.path.assume(*table(family, number.as_long()))
    judge.always(TAKES[family](number, first.dtype), f"{f} does not take the dtype")

    def at(index: Index) -> z3.ExprRef:
        values = [operand.at(index) for operand in operands]
        function = UNARY_VALUE if family == "unary" else BINARY_VALUE
        return function(number, first.dtype, *values)

    return Elements(first.shape, GIVES[family](number, first.dtype), at)


def select(judge: Judge, condition: Elements, x: Elements, y: Elements) -> Elements:
    demand_one_type(judge, x, y)
    demand_one_shape(judge, condition, x, "the condition has another shape")
    judge.always(condition.dtype == code(DType.BOOL), "the condition is not bool")
    return x.moved(
        x.shape, lambda index: z3.If(IS_TRUE(condition.at(index)), x.at(index), y.at(index))
    )


def cast(judge: Judge, x: Elements, dtype: object) -> Elements:
    target = dtype_term(dtype)
    return Elements(x.shape, target, lambda index: CAST_VALUE(x.dtype, target, x.at(index)))


def transpose(judge: Judge, x: Elements, perm: Perm) -> Elements:
    demand(judge, sorted(perm.order) == list(range(x.rank)), f"{perm} does not permute the axes")
    back = perm.inverse
    return x.moved(perm.apply(x.shape), lambda index: x.at(back.apply(index)))


def broadcast(judge: Judge, x: Elements, shape: Shape) -> Elements:
    wide = terms_of(shape.dims)
    demand(judge, len(wide) == x.rank, "the ranks differ")
    for old, new in zip(x.shape, wide, strict=True):
        fits = z3.Or(equal(old, 1), equal(old, new))
        judge.always(fits, f"{old} does not broadcast to {new}")
        judge.natural(new, f"the size {new} is negative")

    def at(index: Index) -> z3.ExprRef:
        pairs = zip(x.shape, wide, index, strict=True)
        return x.at(tuple(_index_before_broadcast(judge, old, new, i) for old, new, i in pairs))

    def compare() -> None:
        for old, new in zip(x.shape, wide, strict=True):
            for dim in (1, new):
                if isinstance(old - dim, SymbolicDim) and judge.path.follows(equal(old, dim)):
                    judge.path.zeros.append(old - dim)

    judge.hint(compare)
    return x.moved(wide, at)


def _index_before_broadcast(judge: Judge, old: Dim, new: Dim, index: Dim) -> Dim:
    """Where `index` reads along an axis that is repeated from `old` to `new`."""
    equalities = judge.path.equalities
    if equalities.same(old, 1):
        return 0
    if equalities.same(old, new) or isinstance(index, int):
        return index
    place = unknown(f"({index} of {old})")
    is_unit = formula(old) == 1
    judge.path.assume(formula(place) == z3.If(is_unit, z3.IntVal(0), formula(index)))
    return place


def slice_(judge: Judge, x: Elements, slices: Slices) -> Elements:
    starts, sizes, steps = map(terms_of, (slices.starts, slices.sizes, slices.steps))
    demand(judge, len(starts) == len(sizes) == len(steps) == x.rank, "the ranks differ")
    axes = list(zip(x.shape, starts, sizes, steps, strict=True))
    for dim, start, size, step in axes:
        judge.always(z3.Not(equal(step, 0)), "a step is 0")
        last = start + (size - 1) * step
        inside = z3.Implies(at_least(size, 1), z3.And(within(start, dim), within(last, dim)))
        judge.at_run_time(inside, [dim, start, size], "the slices reach outside")
        judge.natural(size, "a size is negative")

    def at(index: Index) -> z3.ExprRef:
        reads: list[Dim] = []
        for (dim, start, size, step), i in zip(axes, index, strict=True):
            reads.append(start + i * step)
            # Between its ends a slice stays inside; z3 does not multiply to find out.
            judge.path.assume(z3.Implies(within(i, size), within(reads[-1], dim)))
        return x.at(tuple(reads))

    def compare() -> None:
        for start in starts:
            if isinstance(start, SymbolicDim) and judge.path.follows(formula(start) == 0):
                judge.path.actual_zeros.append(start)

    judge.hint(compare)
    judge.hint(lambda: x.at(starts))
    judge.hint(lambda: x.at(tuple(a + (n - 1) * s for _, a, n, s in axes)))
    return x.moved(sizes, at)


def pad(judge: Judge, x: Elements, value: Elements, padding: Padding) -> Elements:
    lows, highs = terms_of(padding.lo), terms_of(padding.hi)
    demand(judge, len(lows) == len(highs) == x.rank, "the ranks differ")
    demand(judge, value.rank == 0, "the fill is not a scalar")
    judge.always(value.dtype == x.dtype, "the fill has another dtype")
    for amount in (*lows, *highs):
        judge.natural(amount, "padding is negative")
    shape = tuple(lo + dim + hi for lo, dim, hi in zip(lows, x.shape, highs, strict=True))

    def at(index: Index) -> z3.ExprRef:
        inner = tuple(i - lo for i, lo in zip(index, lows, strict=True))
        return inside_or(x, inner, value.at(()))

    return x.moved(shape, at)


def inside_or(x: Elements, index: Index, outside: z3.ExprRef) -> z3.ExprRef:
    """The element of x at `index`, or `outside` where the index is not in x."""
    inside = [within(i, dim) for i, dim in zip(index, x.shape, strict=True)]
    return z3.If(z3.And(*inside), x.at(index), outside) if inside else x.at(index)


def concat(judge: Judge, x: Elements, y: Elements, axis: Axis) -> Elements:
    at_axis = axis.index
    demand(judge, x.rank == y.rank, "the ranks differ")
    demand(judge, 0 <= at_axis < x.rank, "the axis is out of range")
    judge.always(x.dtype == y.dtype, "the parts' dtypes differ")
    for number, (mine, theirs) in enumerate(zip(x.shape, y.shape, strict=True)):
        if number != at_axis:
            judge.same(mine, theirs, "the parts' shapes differ")
    first = x.shape[at_axis]
    shape = list(x.shape)
    shape[at_axis] = first + y.shape[at_axis]

    def at(index: Index) -> z3.ExprRef:
        i = index[at_axis]
        compare_rows(judge.path, i, shape[at_axis], first)
        later = (*index[:at_axis], i - first, *index[at_axis + 1 :])
        return z3.If(formula(i) < formula(first), x.at(index), y.at(later))

    return x.moved(shape, at)
