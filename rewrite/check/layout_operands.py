"""Given the type of a result, draw what an op that moves elements could have made it from.

The functions are those of `operands`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from satura.rewrite.ops.draw import (
    SYMBOLS,
    Draw,
    Drawn,
    Given,
    Types,
    is_concrete,
    reject_unless,
)
from satura.rewrite.types.attributes import (
    Axis,
    Padding,
    Perm,
    Shape,
    Slices,
)
from satura.rewrite.types.dims import Dim, SymbolicDim, known_at_least, polynomial, static
from satura.rewrite.types.tensor_type import TensorType

STEPS = (1, 1, 1, 2, -1, -2, 3, -3)


def transpose(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
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


def reshape(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    return (known[0] or result.with_shape(draw.regroup(result.shape)),), (Shape(result.shape),)


def broadcast(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    return (known[0] or result.with_shape(draw.shrunk(result.shape)),), (Shape(result.shape),)


def slice_(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    if given[0] is not None:
        slices = cast(Slices, given[0])
        reject_unless(slices.sizes == result.shape)
        dims = [
            _reach(*axis) + draw.up_to(2 if draw.chance(0.3) else 0)
            for axis in zip(slices.starts, slices.sizes, slices.steps, strict=True)
        ]
        return (known[0] or result.with_shape(tuple(dims)),), (slices,)
    if known[0] is not None:
        return (known[0],), (_slices_of(draw, known[0], result),)
    if is_concrete(result.shape) and draw.chance(0.4 if draw.reverses else 0.08):
        every = range(result.rank)
        at = draw.up_to(max(0, result.rank - 1))
        one = every[at : at + 1]
        turned = draw.one_of((every, every, every[1:-1] or every, one, one))
        return (result,), (_reversal(result, turned),)
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


def _reversal(type_: TensorType, axes: Collection[int]) -> Slices:
    """The slices that read a whole tensor, these axes from their end."""
    starts = tuple(dim - 1 if axis in axes else 0 for axis, dim in enumerate(type_.shape))
    reject_unless(all(known_at_least(start, 0) for start in starts))
    steps = tuple(-1 if axis in axes else 1 for axis in range(type_.rank))
    return Slices(starts, type_.shape, steps)


def _reach(start: Dim, size: Dim, step: int) -> Dim:
    """The least extent that a slice fits into."""
    return start + (size - 1) * step + 1 if step > 0 else start + 1


def _slice_axis(draw: Draw, size: Dim) -> tuple[Dim, int, Dim]:
    """Start, step and extent of the axis that is sliced."""
    if draw.chance(0.2 if draw.starts else 0.45):
        return 0, 1, size
    if isinstance(size, SymbolicDim) and draw.chance(0.3):
        return 0, 1, draw.dim()  # it may or may not fit
    if not draw.starts and draw.chance(
        0.25
    ):  # every second element, or third, from one of the first to the end
        step = draw.one_of((2, 2, 3))
        begin = draw.up_to(step - 1)
        reach = begin if size == 0 else _reach(begin, size, step)
        return begin, step, reach + draw.up_to(step)
    step = draw.one_of(STEPS)
    first, slack = draw.up_to(2), draw.up_to(8 if draw.chance(0.2) else 2)
    if draw.starts:
        first = draw.one_of(draw.starts)
    if size == 0:
        return first, step, first + slack
    start = first if step > 0 else (size - 1) * -step + first
    extent = _reach(start, size, step) + slack
    reject_unless(known_at_least(start, 0) and known_at_least(extent, 0))
    return start, step, extent


def _slices_of(draw: Draw, operand: TensorType, result: TensorType) -> Slices:
    """Slices of a known operand, anywhere or at the end of slices drawn before."""
    reject_unless(operand.rank == result.rank and is_concrete(operand.shape + result.shape))
    if draw.slices and draw.chance(0.5):
        return _slices_after(draw, draw.one_of(draw.slices), result)
    starts: list[Dim] = []
    steps: list[int] = []
    for dim, size in zip(operand.shape, result.shape, strict=True):
        step = draw.one_of(STEPS) if draw.chance(0.2) else 1
        if static(size) and not known_at_least(dim - (size - 1) * abs(step) - 1, 0):
            step = 1
        reach = max(static(size) - 1, 0) * abs(step)
        slack = static(dim) - reach - min(1, static(size))
        reject_unless(slack >= 0)
        first = draw.one_of((0, slack, slack, draw.up_to(slack)))
        starts.append(first if step > 0 else first + reach)
        steps.append(step)
    return Slices(tuple(starts), result.shape, tuple(steps))


def _slices_after(draw: Draw, before: Slices, result: TensorType) -> Slices:
    """Slices that continue `before` along one axis, at its end or nearly there, or that read what
    it leaves out between its steps."""
    sizes = before.sizes
    reject_unless(len(sizes) == result.rank and is_concrete(before.starts + sizes))
    at = draw.one_of(range(result.rank))
    starts, steps = list(before.starts), list(before.steps)
    if abs(steps[at]) > 1 and draw.chance(0.6):
        starts[at] = starts[at] + draw.one_of((1, 1, -1))
        return Slices(tuple(starts), result.shape, before.steps)
    skipped = draw.one_of((1, 2)) if draw.chance(0.2) else steps[at]
    starts[at] = starts[at] + sizes[at] * skipped
    if draw.chance(0.4):
        steps[at] = draw.one_of((2, -1, -1, -2))
    return Slices(tuple(starts), result.shape, tuple(steps))


def pad(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
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
    parts = [split(draw, after - before) for before, after in zip(old, new, strict=True)]
    return Padding(tuple(lo for lo, _ in parts), tuple(hi for _, hi in parts))


def concat(draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
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
        first, second = split(draw, whole)
    reject_unless(known_at_least(first, 0) and known_at_least(second, 0))

    def part(extent: Dim) -> TensorType:
        shape = list(result.shape)
        shape[axis.index] = extent
        return result.with_shape(tuple(shape))

    return (part(first), part(second)), (axis,)


def split(draw: Draw, dim: Dim) -> tuple[Dim, Dim]:
    """Two parts of `dim`."""
    reject_unless(known_at_least(dim, 0))
    if isinstance(dim, int):
        first = dim // 2 if dim % 2 == 0 and draw.chance(0.4) else draw.up_to(dim)
        return first, dim - first
    choices: list[Dim] = [0, 1, 2, *(polynomial([term]) for term in dim.terms)]
    second = draw.one_of(choices)
    reject_unless(known_at_least(dim - second, 0))
    return dim - second, second
