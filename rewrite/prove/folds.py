"""Meanings of ops that combine elements: the result is a fold over a box of indices.

z3 sees a fold as a name of its own. Two folds are equal when they combine the same elements in the
same order; where the order does not matter (max, min, integers) also in another; and max and min do
not care how often they meet an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import z3

from satura.rewrite.ops.reductions import REDUCTIONS, SELECTIONS
from satura.rewrite.prove.layout import inside_or
from satura.rewrite.prove.open_values import function_term, scalar_parts
from satura.rewrite.prove.paths import Fact, Path
from satura.rewrite.prove.size import named_quotient, term_of, terms_of
from satura.rewrite.prove.stand_in import unknown
from satura.rewrite.prove.tensors import Elements, Index, Judge, demand
from satura.rewrite.prove.z3_terms import (
    DTYPES,
    ELEMENT,
    at_least,
    code,
    equal,
    formula,
    is_nonzero,
    is_static,
    within,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    ReduceFn,
    Window,
)
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType

Bound = tuple[SymbolicDim, ...]
Loop = tuple[SymbolicDim, Dim]  # a variable and its extent
NEVER = z3.BoolVal(False)
PRODUCT = z3.Function("product", z3.IntSort(), ELEMENT, ELEMENT, ELEMENT)


@dataclass(frozen=True)
class Fold:
    """`body` for every value of the variables of `axes` below their extents, row by row."""

    name: z3.ExprRef
    side: str
    depth: int
    heads: tuple[Any, ...]  # what is done with the elements
    axes: tuple[Loop, ...]
    body: z3.ExprRef
    any_order: Fact
    any_number: Fact


def reduce(judge: Judge, x: Elements, f: ReduceFn, axes: Axes) -> Elements:
    at_axes = axes.indices
    demand(judge, list(at_axes) == sorted(set(at_axes)), "the axes are not sorted")
    demand(judge, all(0 <= axis < x.rank for axis in at_axes), "the axes are out of range")
    number = function_term(f)
    picks = _is_selection(number)
    judge.always(z3.Or(x.dtype != code(DType.BOOL), picks), "bool has no sum")
    extents = tuple(x.shape[axis] for axis in at_axes)

    def at(index: Index) -> z3.ExprRef:
        def body(bound: Bound) -> z3.ExprRef:
            full = list(index)
            for axis, variable in zip(at_axes, bound, strict=True):
                full[axis] = variable
            return x.at(tuple(full))

        return _fold_term(judge.path, "reduce", (number, x.dtype), extents, body)

    return x.moved([1 if axis in at_axes else dim for axis, dim in enumerate(x.shape)], at)


def arg_reduce(judge: Judge, x: Elements, f: ReduceFn, axis: Axis, last: Count) -> Elements:
    at_axis = axis.index
    demand(judge, 0 <= at_axis < x.rank, "the axis is out of range")
    number = function_term(f)
    picks = _is_selection(number)
    judge.always(picks, "only max and min have an index")
    extent = x.shape[at_axis]
    others = [dim for axis, dim in enumerate(x.shape) if axis != at_axis]
    is_read = z3.And(*map(_has_elements, others))
    judge.always(z3.Implies(is_read, _has_elements(extent)), "the axis is empty")
    end = formula(term_of(last.value))
    judge.always(z3.And(end >= 0, end <= 1), "last is not 0 or 1")
    heads = (number, x.dtype, end)

    def at(index: Index) -> z3.ExprRef:
        def body(bound: Bound) -> z3.ExprRef:
            return x.at((*index[:at_axis], bound[0], *index[at_axis + 1 :]))

        return _fold_term(judge.path, "arg_reduce", heads, (extent,), body)

    shape = tuple(1 if axis == at_axis else dim for axis, dim in enumerate(x.shape))
    return Elements(shape, code(DType.I64), at)


def _has_elements(extent: Dim) -> z3.BoolRef:
    return z3.BoolVal(extent != 0) if isinstance(extent, int) else is_nonzero(extent)


def pool(judge: Judge, x: Elements, f: ReduceFn, window: Window) -> Elements:
    judge.always(x.dtype != code(DType.BOOL), "bool has no pool")
    shape = _outer(judge, x.shape, window)
    fill, dtype = scalar_parts(window.fill)
    judge.always(dtype == x.dtype, "the fill has another dtype")
    heads = (function_term(f), x.dtype)

    def at(index: Index) -> z3.ExprRef:
        def body(bound: Bound) -> z3.ExprRef:
            return inside_or(x, _positions(window, index, bound), fill)

        return _fold_term(judge.path, "reduce", heads, terms_of(window.sizes), body)

    return x.moved(shape, at)


def conv(judge: Judge, x: Elements, w: Elements, window: Window, groups: Groups) -> Elements:
    demand(judge, x.rank == w.rank >= 2, "the ranks do not fit")
    judge.always(x.dtype == w.dtype, "the dtypes differ")
    judge.always(x.dtype != code(DType.BOOL), "bool has no conv")
    fill, dtype = scalar_parts(window.fill)
    judge.always(dtype == x.dtype, "the fill has another dtype")
    sizes = terms_of(window.sizes)
    demand(judge, len(sizes) == x.rank - 2, "the window does not cover the spatial axes")
    for size, dim in zip(sizes, w.shape[:-2], strict=True):
        judge.same(size, dim, "the kernel is not the window")
    (count,) = terms_of((groups.count,))
    channels, inner, outer = x.shape[-1], w.shape[-2], w.shape[-1]
    for dim in (channels, *w.shape):
        for name in dim.symbols if isinstance(dim, SymbolicDim) else ():
            judge.always(is_static(unknown(name)), "channels must be static")
    judge.same(inner * count, channels, "the channels do not split into the groups")
    width = _floor_quotient(judge.path, outer, count)
    judge.same(width * count, outer, "the output channels do not split")
    spatial = x.moved(x.shape[1:-1], x.at)
    shape = (x.shape[0], *_outer(judge, spatial.shape, window), outer)

    def at(index: Index) -> z3.ExprRef:
        group = _floor_quotient(judge.path, index[-1], width)
        judge.path.assume(z3.Implies(within(index[-1], outer), within(group, count)))

        def body(bound: Bound) -> z3.ExprRef:
            *taps, channel = bound
            chosen = z3.And(within(group, count), within(channel, inner))
            inside = within(group * inner + channel, channels)
            judge.path.assume(z3.Implies(chosen, inside))

            def pixel_at(place: Index) -> z3.ExprRef:
                return x.at((index[0], *place, group * inner + channel))

            image = x.moved(spatial.shape, pixel_at)
            value = inside_or(image, _positions(window, index[1:-1], tuple(taps)), fill)
            return PRODUCT(x.dtype, value, w.at((*taps, channel, index[-1])))

        return _fold_term(judge.path, "conv", (x.dtype,), (*sizes, inner), body)

    return x.moved(shape, at)


def matmul(judge: Judge, x: Elements, y: Elements) -> Elements:
    demand(judge, x.rank == y.rank >= 2, "the ranks do not fit")
    judge.always(x.dtype == y.dtype, "the dtypes differ")
    judge.always(x.dtype != code(DType.BOOL), "bool has no matmul")
    pairs = zip((*x.shape[:-2], x.shape[-1]), (*y.shape[:-2], y.shape[-2]), strict=True)
    for mine, theirs in pairs:
        judge.same(mine, theirs, "the shapes do not fit")

    def at(index: Index) -> z3.ExprRef:
        def body(bound: Bound) -> z3.ExprRef:
            mine = x.at((*index[:-1], bound[0]))
            return PRODUCT(x.dtype, mine, y.at((*index[:-2], bound[0], index[-1])))

        return _fold_term(judge.path, "matmul", (x.dtype,), (x.shape[-1],), body)

    return x.moved((*x.shape[:-1], y.shape[-1]), at)


def _is_selection(function: z3.ExprRef) -> Fact:
    """Whether a reduction gives one of the elements that it combines."""
    return z3.Or(*(function == REDUCTIONS.index(name) for name in SELECTIONS))


def _outer(judge: Judge, shape: Sequence[Dim], window: Window) -> tuple[Dim, ...]:
    """Extents of a window's result."""
    fields = (window.sizes, window.strides, window.dilations, window.lo, window.hi)
    demand(judge, all(len(field) == len(shape) for field in fields), "the window has another rank")
    result: list[Dim] = []
    for dim, size, stride, dilation, lo, hi in zip(shape, *map(terms_of, fields), strict=True):
        for number, least in ((size, 1), (stride, 1), (dilation, 1), (lo, 0), (hi, 0)):
            judge.always(at_least(number, least), "the window is malformed")
        span = dim + lo + hi - (dilation * (size - 1) + 1)
        judge.at_run_time(at_least(span, -1), [span], "the window does not fit")
        result.append(_floor_quotient(judge.path, span, stride) + 1)
    return tuple(result)


def _floor_quotient(path: Path, numerator: Dim, denominator: Dim) -> Dim:
    """The quotient rounded down, of a positive denominator."""
    if isinstance(denominator, int) and (denominator == 1 or isinstance(numerator, int)):
        return numerator // denominator
    return named_quotient(path, numerator, denominator)


def _positions(window: Window, index: Index, taps: Index) -> Index:
    """Where a window reads, counted from the first element of the operand."""
    fields = map(terms_of, (window.strides, window.dilations, window.lo))
    axes = zip(index, taps, *fields, strict=True)
    return tuple(i * stride + tap * dilation - lo for i, tap, stride, dilation, lo in axes)


def _fold_term(
    path: Path,
    family: str,
    heads: tuple[z3.ExprRef, ...],
    extents: tuple[Dim, ...],
    body: Callable[[Bound], z3.ExprRef],
) -> z3.ExprRef:
    """The name of a fold of `body`; its variables have names of their own on either side."""
    depth = path.depth
    bound = tuple(unknown(f"{path.side}{depth}.{number}") for number in range(len(extents)))
    path.depth += 1
    value = body(bound)
    path.depth -= 1
    key = str((path.side, depth, family, heads, extents, value.sexpr()))
    if key not in path.folds:
        picks = _is_selection(heads[0])
        exact = [heads[-1] == code(dtype) for dtype in DTYPES if not dtype.is_float]
        path.folds[key] = Fold(
            z3.Const(f"fold {len(path.folds)}", ELEMENT),
            path.side,
            depth,
            (family, *heads),
            tuple(zip(bound, extents, strict=True)),
            value,
            z3.Or(picks, *exact) if family == "reduce" else NEVER,
            picks if family == "reduce" else NEVER,
        )
    return path.folds[key].name


def connect(path: Path, depth: int = 0) -> None:
    """Tell the solver which folds of both sides are equal."""
    folds = [fold for fold in path.folds.values() if fold.depth == depth]
    for mine in folds:
        for other in folds:
            if mine.side < other.side and _are_equal(path, mine, other):
                path.solver.add(mine.name == other.name)


def _are_equal(path: Path, mine: Fold, other: Fold) -> bool:
    if mine.heads[0] != other.heads[0] or len(mine.heads) != len(other.heads):
        return False
    heads = zip(mine.heads[1:], other.heads[1:], strict=True)
    unlike = [a == b for a, b in heads if not a.eq(b)]
    if unlike and not path.follows(z3.And(*unlike)):
        return False
    left, right = _repeating_loops(path, mine), _repeating_loops(path, other)
    any_order = not mine.any_order.eq(NEVER) and path.follows(mine.any_order)
    any_number = any_order and path.follows(mine.any_number)
    units = [v for v, extent in (*mine.axes, *other.axes) if (v, extent) not in (*left, *right)]
    for pairs, rest in _alignments(left, right, any_order, any_number):
        claims = [equal(a[1], b[1]) for a, b in pairs] + [at_least(axis[1], 1) for axis in rest]
        if not path.follows(z3.And(*claims)):
            continue
        facts = [formula(variable) == 0 for variable in units]
        facts += [formula(a[0]) == formula(b[0]) for a, b in pairs]
        facts += [within(*axis) for axis in (*left, *rest)]
        with path.scope(*facts):
            connect(path, mine.depth + 1)
            if path.follows(mine.body == other.body):
                return True
    return False


def _repeating_loops(path: Path, fold: Fold) -> list[Loop]:
    """The loops that may run more than once."""
    return [loop for loop in fold.axes if not path.follows(equal(loop[1], 1))]


def _alignments(
    left: list[Loop], right: list[Loop], any_order: bool, any_number: bool
) -> Iterator[tuple[list[tuple[Loop, Loop]], list[Loop]]]:
    """Pairings of loops that may run over the same indices, each with the loops left over."""
    few, many = sorted((left, right), key=len)
    if len(few) < len(many) and not any_number:
        return
    for chosen in permutations(many, len(few)) if any_order else combinations(many, len(few)):
        yield list(zip(few, chosen, strict=True)), [loop for loop in many if loop not in chosen]
