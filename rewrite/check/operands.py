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
from typing import cast

from satura.rewrite.attributes import (
    Attribute,
    Axes,
    Axis,
    BinaryFn,
    Constant,
    Count,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
    Window,
)
from satura.rewrite.check.generate import SYMBOLS, Draw, is_concrete, reject_unless
from satura.rewrite.dims import Dim, SymbolicDim, known_at_least
from satura.rewrite.ops.combining import REDUCTIONS
from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction
from satura.rewrite.types import DType, TensorType

STEPS = (1, 1, 1, 2, -1, -2, 3, -3)

Given = tuple[Attribute | None, ...]
Types = tuple[TensorType | None, ...]
Drawn = tuple[tuple[TensorType, ...], tuple[Attribute, ...]]


def _function(
    draw: Draw, table: dict[str, ScalarFunction], given: str | None, result: DType, known: Types
) -> tuple[str, DType]:
    """A function that can give `result`, and a dtype that it takes then."""
    decided = [type_.dtype for type_ in known if type_ is not None]
    taken = frozenset(decided[:1]) if decided else draw.taken
    if given is None:
        given = draw.one_of([name for name, each in table.items() if _sources(each, result, taken)])
    return given, draw.one_of(_sources(table[given], result, taken))


@cache
def _sources(function: ScalarFunction, result: DType, taken: frozenset[DType]) -> tuple[DType, ...]:
    """Dtypes among `taken` from which `function` makes `result`."""
    return tuple(
        dtype
        for dtype in DType
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
    """Often from a dtype that another cast has to do with: there and back."""
    source = result.dtype if draw.chance(0.1) else draw.dtype(draw.taken)
    before = [dtype for dtype in draw.casts if dtype in draw.taken]
    if before and draw.chance(0.5):
        source = draw.one_of(before)
    if known[0] is not None:
        source = known[0].dtype
    draw.casts += (result.dtype, source)
    return (result.with_dtype(source),), (result.dtype,)


def _transpose(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    if known[0] is not None:
        perm = cast(Perm, given[0] or _perm_between(draw, known[0].shape, result.shape))
        return (known[0],), (perm,)
    perm = cast(Perm, given[0] or draw.perm(result.rank))
    reject_unless(len(perm.order) == result.rank)
    return (result.with_shape(perm.inverse.apply(result.shape)),), (perm,)


def _perm_between(draw: Draw, old: tuple[Dim, ...], new: tuple[Dim, ...]) -> Perm:
    """A permutation that turns `old` into `new`."""
    reject_unless(len(old) == len(new))
    order: list[int] = []
    for dim in new:
        fitting = [axis for axis, each in enumerate(old) if each == dim and axis not in order]
        order.append(draw.one_of(fitting))
    return Perm(tuple(order))


def _reshape(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    return (known[0] or result.with_shape(draw.regroup(result.shape)),), (Shape(result.shape),)


def _broadcast(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    return (known[0] or result.with_shape(draw.shrunk(result.shape)),), (Shape(result.shape),)


def _slice(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    if given[0] is not None:
        slices = cast(Slices, given[0])
        reject_unless(slices.sizes == result.shape)
        dims = [
            _reach(*axis) for axis in zip(slices.starts, slices.sizes, slices.steps, strict=True)
        ]
        return (known[0] or result.with_shape(tuple(dims)),), (slices,)
    if known[0] is not None:
        return (known[0],), (_slices_of(draw, known[0], result),)
    if is_concrete(result.shape) and draw.chance(0.06):
        return (result,), (_reversal(result),)
    ends = (0, result.rank - 1) if draw.chance(0.3) else ()
    axes = [
        (0, 1, size) if axis in ends else _slice_axis(draw, size)
        for axis, size in enumerate(result.shape)
    ]
    if draw.symbolic and draw.chance(0.4):  # what is whole, but for some sizes
        axes = [
            (0, 1, draw.one_of(SYMBOLS) if isinstance(size, SymbolicDim) else size)
            for size in result.shape
        ]
    starts, steps, extents = (tuple(axis[part] for axis in axes) for part in range(3))
    slices = Slices(starts, result.shape, cast(tuple[int, ...], steps))
    draw.slices.append(slices)
    return (result.with_shape(extents),), (slices,)


def _reversal(type_: TensorType) -> Slices:
    """All of it, every axis from its end."""
    starts = tuple(dim - 1 for dim in type_.shape)
    reject_unless(all(known_at_least(start, 0) for start in starts))
    return Slices(starts, type_.shape, (-1,) * type_.rank)


def _reach(start: Dim, size: Dim, step: int) -> Dim:
    """The least extent that a slice fits into."""
    return start + (size - 1) * step + 1 if step > 0 else start + 1


def _slice_axis(draw: Draw, size: Dim) -> tuple[Dim, int, Dim]:
    """Start, step and extent of the axis that is sliced."""
    if draw.chance(0.45):
        return 0, 1, size
    if isinstance(size, SymbolicDim) and draw.chance(0.3):
        return 0, 1, draw.dim()  # it may or may not fit
    step = draw.one_of(STEPS)
    first, slack = draw.up_to(2), draw.up_to(8 if draw.chance(0.2) else 2)
    if size == 0:
        return first, step, first + slack
    start = first if step > 0 else (size - 1) * -step + first
    extent = _reach(start, size, step) + slack
    reject_unless(known_at_least(start, 0) and known_at_least(extent, 0))
    return start, step, extent


def _slices_of(draw: Draw, operand: TensorType, result: TensorType) -> Slices:
    """Slices of a known operand: anywhere, or where a piece drawn before ends."""
    reject_unless(operand.rank == result.rank and is_concrete(operand.shape + result.shape))
    if draw.slices and draw.chance(0.5):
        return _continued(draw, draw.one_of(draw.slices), result)
    starts: list[Dim] = []
    steps: list[int] = []
    for dim, size in zip(operand.shape, result.shape, strict=True):
        step = draw.one_of(STEPS) if draw.chance(0.2) else 1
        if int(str(size)) and not known_at_least(dim - (size - 1) * abs(step) - 1, 0):
            step = 1
        reach = max(int(str(size)) - 1, 0) * abs(step)
        slack = int(str(dim)) - reach - min(1, int(str(size)))
        reject_unless(slack >= 0)
        first = draw.one_of((0, slack, slack, draw.up_to(slack)))
        starts.append(first if step > 0 else first + reach)
        steps.append(step)
    return Slices(tuple(starts), result.shape, tuple(steps))


def _continued(draw: Draw, before: Slices, result: TensorType) -> Slices:
    """Slices that go on where `before` ends along one axis, or nearly, and agree on the others."""
    sizes = before.sizes
    reject_unless(len(sizes) == result.rank)
    at = draw.one_of(range(result.rank))
    starts, steps = list(before.starts), list(before.steps)
    skipped = draw.one_of((1, 2)) if draw.chance(0.2) else steps[at]
    starts[at] = starts[at] + sizes[at] * skipped
    if draw.chance(0.4):
        steps[at] = draw.one_of((2, -1, -1, -2))
    return Slices(tuple(starts), result.shape, tuple(steps))


def _pad(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    value = result.with_shape(())
    if known[0] is not None:
        padding = cast(Padding, given[0] or _padding_of(draw, known[0].shape, result.shape))
        return (known[0], value), (padding,)
    padding = cast(Padding, given[0] or draw.padding(result.shape))
    reject_unless(len(padding.lo) == result.rank)
    axes = zip(result.shape, padding.lo, padding.hi, strict=True)
    shape = tuple(dim - lo - hi for dim, lo, hi in axes)
    reject_unless(all(known_at_least(dim, 0) for dim in shape))
    return (result.with_shape(shape), value), (padding,)


def _padding_of(draw: Draw, old: tuple[Dim, ...], new: tuple[Dim, ...]) -> Padding:
    """A padding that turns `old` into `new`."""
    reject_unless(len(old) == len(new))
    parts = [_split(draw, after - before) for before, after in zip(old, new, strict=True)]
    return Padding(tuple(lo for lo, _ in parts), tuple(hi for _, hi in parts))


def _concat(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    decided = next((type_ for type_ in known if type_ is not None), result)
    reject_unless(decided.rank == result.rank)
    unlike = [axis for axis in range(result.rank) if decided.shape[axis] != result.shape[axis]]
    axis = cast(Axis, given[0] or Axis(draw.one_of(unlike or range(result.rank))))
    reject_unless(axis.index < result.rank)
    whole = result.shape[axis.index]
    if known[0] is not None:
        first = known[0].shape[axis.index]
        second = whole - first
    elif known[1] is not None:
        second = known[1].shape[axis.index]
        first = whole - second
    else:
        first, second = _split(draw, whole)
    reject_unless(known_at_least(first, 0) and known_at_least(second, 0))

    def part(extent: Dim) -> TensorType:
        shape = list(result.shape)
        shape[axis.index] = extent
        return result.with_shape(tuple(shape))

    return (part(first), part(second)), (axis,)


def _split(draw: Draw, dim: Dim) -> tuple[Dim, Dim]:
    """Two parts of `dim`."""
    reject_unless(known_at_least(dim, 0))
    if isinstance(dim, int):
        first = dim // 2 if dim % 2 == 0 and draw.chance(0.4) else draw.up_to(dim)
        return first, dim - first
    choices: list[Dim] = [0, 1, 2, *(SymbolicDim((term,)) for term in dim.terms)]
    second = draw.one_of(choices)
    reject_unless(known_at_least(dim - second, 0))
    return dim - second, second


def _reduce(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    f = given[0] or ReduceFn(draw.one_of(REDUCTIONS))
    units = [axis for axis, dim in enumerate(result.shape) if dim == 1]
    unlike = _unlike(known[0], result)
    chosen = tuple(axis for axis in units if axis in unlike or draw.chance(0.6))
    axes = cast(Axes, given[1] or Axes(chosen))
    reject_unless(set(axes.indices) <= set(units))
    shape = list(result.shape)
    for axis in axes.indices:
        shape[axis] = 0 if draw.chance(0.05) else draw.dim()
    return (known[0] or result.with_shape(tuple(shape)),), (f, axes)


def _unlike(known: TensorType | None, result: TensorType) -> list[int]:
    """The axes of a decided operand that are not as in the result."""
    if known is None:
        return []
    reject_unless(known.rank == result.rank)
    return [axis for axis in range(result.rank) if known.shape[axis] != result.shape[axis]]


def _arg_reduce(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.dtype is DType.I64)
    units = [axis for axis, dim in enumerate(result.shape) if dim == 1]
    f = given[0] or ReduceFn(draw.one_of(("max", "min")))
    axis = cast(Axis, given[1] or Axis(draw.one_of(_unlike(known[0], result) or units)))
    reject_unless(axis.index in units)
    shape = list(result.shape)
    shape[axis.index] = draw.dim()
    last = given[2] or Count(draw.up_to(1))
    return (known[0] or TensorType(draw.dtype(draw.taken), tuple(shape)),), (f, axis, last)


def _windowed(draw: Draw, window: Window, outer: tuple[Dim, ...]) -> tuple[Dim, ...]:
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
    f = given[0] or ReduceFn(draw.one_of(REDUCTIONS))
    window = cast(Window, given[1] or draw.window(result.rank, result.dtype))
    if known[0] is not None:
        if given[1] is None:
            window = _window_between(draw, window, known[0].shape, result.shape)
        return (known[0],), (f, window)
    return (result.with_shape(_windowed(draw, window, result.shape)),), (f, window)


def _window_between(
    draw: Draw, window: Window, old: tuple[Dim, ...], new: tuple[Dim, ...]
) -> Window:
    """The window with the border that turns `old` into `new`; there may be none."""
    reject_unless(len(old) == len(new))
    parts = []
    for axis, (dim, outer) in enumerate(zip(old, new, strict=True)):
        reach = window.dilations[axis] * (window.sizes[axis] - 1) + 1
        border = (outer - 1) * window.strides[axis] + reach - dim
        reject_unless(isinstance(border, int))
        lo, hi = _split(draw, border)
        parts.append((int(str(lo)), int(str(hi))))
    return replace(window, lo=tuple(lo for lo, _ in parts), hi=tuple(hi for _, hi in parts))


def _matmul(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank >= 2 and result.dtype is not DType.BOOL)
    inner = draw.dim() if draw.chance(0.2) else draw.one_of((1, 1, 2, 2, 3, 6, 8, 12, 12, 24, 0))
    if known[0] is not None and known[0].rank == result.rank:
        inner = known[0].shape[-1]
    elif known[1] is not None and known[1].rank == result.rank:
        inner = known[1].shape[-2]
    left, right = (*result.shape[:-1], inner), (*result.shape[:-2], inner, result.shape[-1])
    return (result.with_shape(left), result.with_shape(right)), ()


def _conv(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result.rank >= 2 and result.dtype is not DType.BOOL)
    reject_unless(is_concrete(result.shape[-1:]) and result.shape[-1] != 0)
    outer = int(str(result.shape[-1]))
    window = cast(Window, given[0] or draw.window(result.rank - 2, result.dtype))
    divisors = [
        count for count in (1, 2, 3, outer) if count and int(str(outer)) % int(str(count)) == 0
    ]
    groups = cast(Groups, given[1] or Groups(int(str(draw.one_of(divisors)))))
    inner = 0 if draw.chance(0.03) else draw.one_of((1, 2, 3))
    spatial = _windowed(draw, window, result.shape[1:-1])
    x = result.with_shape((result.shape[0], *spatial, inner * groups.count))
    w = result.with_shape((*window.sizes, inner, outer))
    return (x, w), (window, groups)


def _constant(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(is_concrete(result.shape))
    return (), (given[0] or Constant(draw.array(result, moderate=False)),)


def _extent(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    reject_unless(result == TensorType(DType.I64, ()))
    dim = draw.up_to(300) if draw.chance(0.5) else draw.dim()  # all that there is to draw
    return (), (given[0] or Shape((dim,)),)


def _gather(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """Indices of rank 0 to 2, whose axes stand in the result where x has one."""
    x, indices = known
    rank = draw.one_of((1, 0, 1, 2)) if indices is None else indices.rank
    if x is not None:
        rank = result.rank + 1 - x.rank
    reject_unless(0 <= rank <= result.rank)
    axis = cast(Axis, given[0] or Axis(draw.up_to(result.rank - rank)))
    before, after = axis.index, axis.index + rank
    reject_unless(after <= result.rank)
    chosen = result.shape[before:after]
    extent = draw.dim()
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
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "reduce": _reduce,
    "arg_reduce": _arg_reduce,
    "pool": _pool,
    "matmul": _matmul,
    "conv": _conv,
    "constant": _constant,
    "iota": _iota,
    "extent": _extent,
    "gather": _gather,
}
