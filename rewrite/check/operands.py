"""Given the type of a result, draw what an op could have made it from.

`DRAWN` has a function per op: it takes a `Draw`, the result's type, the attributes that are already
decided (None for the others) and the operands' types that are already decided, and returns operand
types and attributes. It raises `DrawError` where there are none; its answer may still be ill typed
where it was given attributes, so the type rule has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf
from typing import cast

import numpy as np

from satura.rewrite.check import layout_operands as layout
from satura.rewrite.ops.cells import ACTIVATIONS, ALPHA, BETA, FUNCTIONS, GATES, Cell
from satura.rewrite.ops.draw import EXTENTS, Draw, Drawn, Given, Types, is_concrete, reject_unless
from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction
from satura.rewrite.ops.reductions import REDUCTIONS, SELECTIONS, reduction_identity
from satura.rewrite.ops.registry import size_of
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    ReduceFn,
    Shape,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, known_at_least, static
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType, TensorType

MOST_OF_A_CONSTANT = 1_000_000  # elements: the product of two long extents may have far more
MANY_CHANNELS = (10, 12)  # of a convolution: as many as two tensors of weights have of 5 groups
NEUTRAL_DRAWS = 0.25  # of windows of pools
KEEPING_DRAWS = 0.1  # of windows, where the result's extents are those of the operand


def _function(
    draw: Draw, table: dict[str, ScalarFunction], given: str | None, result: DType, known: Types
) -> tuple[str, DType]:
    """A function that can give `result`, and a dtype that it takes then."""
    decided = [type_.dtype for type_ in known if type_ is not None]
    taken = frozenset(decided[:1]) if decided else draw.taken
    if given is None:
        names = [name for name, each in table.items() if _sources(each, result, taken)]
        preferred = [name for name in names if name in draw.functions]
        given = draw.one_of(preferred if preferred and draw.chance(0.8) else names)
    return given, draw.one_of(_sources(table[given], result, taken))


@cache
def _sources(function: ScalarFunction, result: DType, taken: frozenset[DType]) -> tuple[DType, ...]:
    """Dtypes among `taken` from which `function` makes `result`."""
    return tuple(
        dtype
        for dtype in COMPUTED
        if dtype in taken & function.dtypes and function.result(dtype) is result
    )


def _unary(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    f = cast(UnaryFn | None, given[0])
    name, dtype = _function(draw, UNARY, None if f is None else f.name, result.dtype, known)
    return (result.with_dtype(dtype),), (UnaryFn(name),)


def _binary(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    f = cast(BinaryFn | None, given[0])
    name, dtype = _function(draw, BINARY, None if f is None else f.name, result.dtype, known)
    return (result.with_dtype(dtype),) * 2, (BinaryFn(name),)


def _select(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    return (result.with_dtype(DType.BOOL), result, result), ()


def _cast(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """Often from a dtype of another cast, so that the two go there and back."""
    source = result.dtype if draw.chance(0.1) else draw.dtype(draw.taken)
    before = [dtype for dtype in draw.casts if dtype in draw.taken]
    if before and draw.chance(0.5):
        source = draw.one_of(before)
    narrow = [dtype for dtype in draw.dtypes if dtype.is_narrow]
    if narrow and draw.chance(0.5):
        source = draw.one_of(narrow)
    if known[0] is not None:
        source = known[0].dtype
    draw.casts += (result.dtype, source)
    return (result.with_dtype(source),), (result.dtype,)


def _reduce(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    f = given[0] or ReduceFn(draw.one_of(REDUCTIONS))
    units = [axis for axis, dim in enumerate(result.shape) if dim == 1]
    unlike = _changed_axes(known[0], result)
    chosen = tuple(axis for axis in units if axis in unlike or draw.chance(0.6))
    axes = cast(Axes, given[1] or Axes(chosen))
    reject_unless(set(axes.indices) <= set(units))
    shape = list(result.shape)
    for axis in axes.indices:
        shape[axis] = 0 if draw.chance(0.05) else draw.dim()
    return (known[0] or result.with_shape(tuple(shape)),), (f, axes)


def _changed_axes(known: TensorType | None, result: TensorType) -> list[int]:
    """The axes on which a decided operand differs from the result."""
    if known is None:
        return []
    reject_unless(known.rank == result.rank)
    return [axis for axis in range(result.rank) if known.shape[axis] != result.shape[axis]]


def _arg_reduce(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.dtype is DType.I64)
    units = [axis for axis, dim in enumerate(result.shape) if dim == 1]
    f = given[0] or ReduceFn(draw.one_of(SELECTIONS))
    axis = cast(Axis, given[1] or Axis(draw.one_of(_changed_axes(known[0], result) or units)))
    reject_unless(axis.index in units)
    shape = list(result.shape)
    shape[axis.index] = draw.dim()
    last = given[2] or Count(draw.up_to(1))
    return (known[0] or TensorType(draw.dtype(draw.taken), tuple(shape)),), (f, axis, last)


def _extents_before(draw: Draw, window: Window, outer: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Extents that the window turns into `outer`."""
    reject_unless(window.rank == len(outer))
    dims: list[Dim] = []
    for axis, extent in enumerate(outer):
        stride = window.strides[axis]
        reach = window.dilations[axis] * (window.sizes[axis] - 1) + 1
        slack = draw.up_to(stride - 1)
        dim = (extent - 1) * stride + reach - window.lo[axis] - window.hi[axis] + slack
        reject_unless(known_at_least(dim, 0))
        dims.append(dim)
    return tuple(dims)


def _pool(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.dtype is not DType.BOOL)
    f = cast(ReduceFn, given[0] or ReduceFn(draw.one_of(REDUCTIONS)))
    window = cast(Window, given[1] or _pool_window(draw, f, result))
    if known[0] is not None:
        if given[1] is None:
            window = _window_between(draw, window, known[0].shape, result.shape)
        return (known[0],), (f, window)
    if given[1] is None:
        window = _maybe_keeping(draw, window, result.shape)
    return (result.with_shape(_extents_before(draw, window, result.shape)),), (f, window)


def _pool_window(draw: Draw, f: ReduceFn, result: TensorType) -> Window:
    """A window, often with the border that most pools have: of what f leaves as it is."""
    window = draw.window(result.rank, result.dtype)
    if not draw.chance(NEUTRAL_DRAWS):
        return window
    neutral = reduction_identity(f.name, result.dtype)
    return replace(window, fill=Scalar.of(neutral.item(), result.dtype))


def _window_between(
    draw: Draw, window: Window, old: tuple[Dim, ...], new: tuple[Dim, ...]
) -> Window:
    """The window with the border that turns `old` into `new`. Raises DrawError where none does."""
    reject_unless(len(old) == len(new))
    parts = []
    for axis, (dim, outer) in enumerate(zip(old, new, strict=True)):
        reach = window.dilations[axis] * (window.sizes[axis] - 1) + 1
        border = (outer - 1) * window.strides[axis] + reach - dim
        reject_unless(isinstance(border, int))
        lo, hi = layout.split(draw, border)
        parts.append((static(lo), static(hi)))
    return replace(window, lo=tuple(lo for lo, _ in parts), hi=tuple(hi for _, hi in parts))


def _maybe_keeping(draw: Draw, window: Window, shape: tuple[Dim, ...]) -> Window:
    """The window, now and then with the border by which its result is as large as its operand:
    where it has strides, too, that border is rare."""
    if not is_concrete(shape) or not draw.chance(KEEPING_DRAWS):
        return window
    return _window_between(draw, window, shape, shape)


def _inner(draw: Draw, usual: tuple[int, ...]) -> int:
    """An extent to sum over: of those that the draw keeps to, or a usual one."""
    kept = [] if draw.extents is EXTENTS else [n for n in draw.extents if isinstance(n, int)]
    return draw.one_of(kept or usual)


def _matmul(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank >= 2 and result.dtype is not DType.BOOL)
    inner = draw.dim() if draw.chance(0.2) else _inner(draw, (1, 1, 2, 2, 3, 6, 8, 12, 12, 24, 0))
    if known[0] is not None and known[0].rank == result.rank:
        inner = known[0].shape[-1]
    elif known[1] is not None and known[1].rank == result.rank:
        inner = known[1].shape[-2]
    left, right = (*result.shape[:-1], inner), (*result.shape[:-2], inner, result.shape[-1])
    return (result.with_shape(left), result.with_shape(right)), ()


def _conv(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank >= 2 and result.dtype is not DType.BOOL)
    reject_unless(is_concrete(result.shape[-1:]) and result.shape[-1] != 0)
    outer = static(result.shape[-1])
    drawn = _plain_window if draw.chance(0.5) else Draw.window
    window = cast(Window, given[0] or drawn(draw, result.rank - 2, result.dtype))
    if given[0] is None:
        window = _maybe_keeping(draw, window, result.shape[1:-1])
    counts = (1, 1, 2, 3, outer, *[outer // 2] * (outer >= MANY_CHANNELS[0]))
    divisors = [count for count in counts if count and outer % count == 0]
    groups = cast(Groups, given[1] or Groups(draw.one_of(divisors)))
    inner = 0 if draw.chance(0.03) else _inner(draw, (1, 2, 3))
    spatial = _extents_before(draw, window, result.shape[1:-1])
    x = result.with_shape((result.shape[0], *spatial, inner * groups.count))
    w = result.with_shape((*window.sizes, inner, outer))
    return (x, w), (window, groups)


def _winograd(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank == 4 and result.dtype is DType.F32)
    window = given[0] or _plain_window(draw, result.rank - 2, result.dtype)
    operands, _ = _conv(draw, result, (window, Groups(1)), known)
    return operands, (window,)


def _attention(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank >= 2 and result.dtype is DType.F32)
    (weights, v), _ = _matmul(draw, result, (), (None, known[3]))
    (q, k), _ = _matmul(draw, weights, (), known[:2])
    return (q, k, weights, v), ()


def _recurrence(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """One or two sides, a few units and sequences."""
    reject_unless(result.rank == 4 and result.dtype in (DType.F32, DType.F64))
    total, sides, batch, hidden = result.shape
    reject_unless(isinstance(sides, int) and isinstance(hidden, int) and sides > 0)
    sides, hidden = static(sides), static(hidden)
    cell = cast(Cell | None, given[0])
    if cell is None:
        kind = draw.one_of(tuple(GATES))
        names = [draw.one_of(tuple(ACTIVATIONS)) for _ in range(FUNCTIONS[kind])]
        functions = tuple((name, ALPHA.get(name, 0.0), BETA.get(name, 0.0)) for name in names)
        backward = tuple(draw.chance(0.5) for _ in range(sides))
        cell = Cell(kind, functions, backward, 0.5 if draw.chance(0.2) else inf, draw.chance(0.3))
    steps, held = total - len(cell.states), draw.one_of(cell.parameters)
    reject_unless(known_at_least(steps, 0))
    at = result.with_shape
    operands = (
        at((steps, batch, sides * cell.gates * hidden)), at((sides, hidden, cell.gates * hidden)),
        at((len(cell.states), sides, batch, hidden)), at((sides, held, hidden)),
        TensorType(DType.I64, (0,) if draw.chance(0.5) else (batch,)),
    )  # fmt: skip
    return operands, (cell,)


def _scatter(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """Rows are written; where there are none, none is."""
    reject_unless(result.rank == 2)
    f = given[0] or ReduceFn(draw.one_of(("last", "last", *REDUCTIONS)))
    count = draw.dim() if result.shape[0] != 0 else 0
    indices = known[1] or TensorType(DType.I64, (count,))
    updates = result.with_shape((*indices.shape, result.shape[1]))
    return (result, indices, updates), (f,)


def _first_places(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank == 2 and result.dtype is DType.I64)
    rows, count = result.shape
    reject_unless(isinstance(count, int))
    counted, largest = Count(static(count)), given[1] or Count(draw.up_to(1))
    x = TensorType(draw.dtype(draw.taken), (rows, count + draw.up_to(6)))
    return (known[0] or x,), (counted, largest)


def _plain_window(draw: Draw, rank: int, dtype: DType) -> Window:
    """A window as most convolutions have it: 3 taps along every axis, in steps of 1.

    Its border is often 0.
    """
    lo, hi = (tuple(draw.up_to(2) for _ in range(rank)) for _ in range(2))
    ones = (1,) * rank
    fill = Scalar.of(0, dtype) if draw.chance(0.5) else draw.scalar(dtype)
    return Window((3,) * rank, ones, ones, lo, hi, fill)


def _constant(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(is_concrete(result.shape) and size_of(result) <= MOST_OF_A_CONSTANT)
    if given[0] is None and result.dtype.is_integer and result.rank == 1 and draw.chance(0.2):
        return (), (Constant(_places(draw, result)),)
    return (), (given[0] or Constant(draw.array(result, moderate=False)),)


def _places(draw: Draw, result: TensorType) -> Array:
    """Places of as many elements, each once: in order, backwards or shuffled."""
    places = list(range(static(result.shape[0])))
    how = draw.up_to(3)
    if how == 1:
        places.reverse()
    elif how:
        draw.random.shuffle(places)
    return np.array(places, np.int64).astype(result.dtype.numpy)


def _extent(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result == TensorType(DType.I64, ()))
    dim = draw.up_to(300) if draw.chance(0.5) else draw.dim()  # all that there is to draw
    return (), (given[0] or Shape((dim,)),)


def _gather(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """Indices have rank 0 to 2; their axes take the place of one axis of x in the result."""
    x, indices = known
    rank = draw.one_of((1, 0, 1, 2)) if indices is None else indices.rank
    if x is not None:
        rank = result.rank + 1 - x.rank
    reject_unless(0 <= rank <= result.rank)
    axis = cast(Axis, given[0] or Axis(draw.up_to(result.rank - rank)))
    before, after = axis.index, axis.index + rank
    reject_unless(after <= result.rank)
    chosen = result.shape[before:after]
    extent = draw.one_of(chosen) if chosen and draw.chance(0.3) else draw.dim()
    reject_unless(extent != 0 or 0 in chosen)
    shape = (*result.shape[:before], extent, *result.shape[after:])
    kinds = TensorType(draw.one_of((DType.I32, DType.I64)), chosen)
    return (x or result.with_shape(shape), indices or kinds), (axis,)


def _iota(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    axis = given[1] or Axis(draw.one_of(range(result.rank)))
    return (), (Shape(result.shape), axis, result.dtype)


DRAWN: dict[str, Callable[[Draw, TensorType, Given, Types], Drawn]] = {
    "unary": _unary,
    "binary": _binary,
    "select": _select,
    "cast": _cast,
    "transpose": layout.transpose,
    "reshape": layout.reshape,
    "broadcast": layout.broadcast,
    "slice": layout.slice_,
    "pad": layout.pad,
    "concat": layout.concat,
    "reduce": _reduce,
    "arg_reduce": _arg_reduce,
    "pool": _pool,
    "matmul": _matmul,
    "conv": _conv,
    "winograd": _winograd,
    "attention": _attention,
    "recurrence": _recurrence,
    "scatter": _scatter,
    "first_places": _first_places,
    "constant": _constant,
    "iota": _iota,
    "extent": _extent,
    "gather": _gather,
}
