"""The museum: rewrites that shipped in compilers and were wrong, each as a law.

A piece is wrong for one reason only. Where a condition mends it, `MENDED` has the sound rule, made
of the piece and that condition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

from satura.rewrite.language.dsl import (
    Direction,
    Law,
    Rule,
    RuleSet,
    Tensor,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.expressions import Apply, AttributeVariable, Expression
from satura.rewrite.language.terms import (
    TypeOf,
    binary,
    broadcast,
    cast,
    concat,
    conv,
    pad,
    pool,
    reduce,
    reshape,
    scalar,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Window,
    refuse_unless,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rewrite.types.typical import representative
from satura.rules.axis_groups import around_units, blocks, replace_axis
from satura.rules.broadcast import reduces_alike
from satura.rules.slice_concat import joined_slices
from satura.rules.transpose import moves_units


@attribute_function
def bordered(window: Window, padding: Padding, fill: Scalar) -> Window:
    """The window with a border of `fill` widened by the padding, whatever the padding's value."""
    refuse_unless(not window.has_border or window.fill == fill)
    refuse_unless(all(isinstance(dim, int) for dim in (*padding.lo, *padding.hi)))
    lo = tuple(a + static(b) for a, b in zip(window.lo, padding.lo, strict=True))
    hi = tuple(a + static(b) for a, b in zip(window.hi, padding.hi, strict=True))
    return replace(window, lo=lo, hi=hi, fill=fill)


@attribute_function
def least(type_: TensorType) -> Scalar:
    """What a max pool counts outside as nothing."""
    return Scalar.of(reduction_identity("max", type_.dtype), type_.dtype)


@attribute_function
def zero_of(type_: TensorType) -> Scalar:
    """0 in the type's dtype."""
    return Scalar.of(0, type_.dtype)


@attribute_function
def inner(padding: Padding) -> Padding:
    """The padding of all axes but the first and the last."""
    ends = (padding.lo[0], padding.hi[0], padding.lo[-1], padding.hi[-1])
    refuse_unless(not any(ends))
    return Padding(padding.lo[1:-1], padding.hi[1:-1])


@rule
def pad_into_max_pool(x: Tensor, v: Scalar, b: Padding, w: Window) -> Law:
    """pool(max, pad(x, 0, b), w) = pool(max, x, w with a border of nothing)"""
    return rewrites(
        pool("max", pad(x, v, b), w),
        pool("max", x, bordered(w, b, least(x.type))),
        v == zero_of(x.type),
    )


@rule
def pad_of_any_value_into_conv(
    x: Tensor, k: Tensor, v: Scalar, b: Padding, w: Window, g: Groups
) -> Law:
    """conv(pad(x, v, b), k, w) = conv(x, k, w with a border of 0)"""
    return rewrites(
        conv(pad(x, v, b), k, w, g), conv(x, k, bordered(w, inner(b), zero_of(x.type)), g)
    )


@attribute_function
def uncropped(window: Window, type_: TensorType, slices: Slices) -> Window:
    """The window with the crop taken off its border."""
    ends = [
        dim - start - size
        for dim, start, size in zip(type_.shape, slices.starts, slices.sizes, strict=True)
    ]
    refuse_unless(all(isinstance(dim, int) for dim in (*ends, *slices.starts)))
    refuse_unless(all(step == 1 for step in slices.steps))
    whole = [slices.starts[0], slices.starts[-1], ends[0], ends[-1]]
    refuse_unless(not any(whole) and slices.sizes != type_.shape)
    lo = tuple(a - static(b) for a, b in zip(window.lo, slices.starts[1:-1], strict=True))
    hi = tuple(a - static(b) for a, b in zip(window.hi, ends[1:-1], strict=True))
    refuse_unless(min((*lo, *hi, 0)) >= 0)
    return replace(window, lo=lo, hi=hi)


@rule
def crop_into_conv(x: Tensor, k: Tensor, s: Slices, w: Window, g: Groups) -> Law:
    """conv(slice(x, s), k, w) = conv(x, k, w with s taken off its border)"""
    return rewrites(conv(slice_(x, s), k, w, g), conv(x, k, uncropped(w, x.type, s), g))


@rule
def clamp(x: Tensor, lo: Tensor, hi: Tensor) -> Law:
    """max(min(x, hi), lo) = min(max(x, lo), hi)"""
    return rewrites(
        binary("max", binary("min", x, hi), lo), binary("min", binary("max", x, lo), hi)
    )


@rule
def times_zero(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * 0 = 0"""
    zeros = broadcast(reshape(c, ones), s)
    return rewrites(binary("mul", x, zeros), zeros, c == zero_of(x.type))


@attribute_function
def units(type_: TensorType) -> Shape:
    """A shape of one element with the type's rank."""
    return Shape((1,) * type_.rank)


@rule
def minus_itself(x: Tensor) -> Law:
    """x - x = 0"""
    zero = reshape(scalar(zero_of(x.type)), units(x.type))
    return rewrites(binary("sub", x, x), broadcast(zero, Shape(x.type.shape)))


@attribute_function
def joined(a: Slices, b: Slices, axis: Axis) -> Slices:
    """`a` lengthened by `b`, wherever b begins."""
    total = a.sizes[axis.index] + b.sizes[axis.index]
    return Slices(a.starts, replace_axis(a.sizes, [axis.index], [total]), a.steps)


@rule
def join_any_slices(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b)"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), slice_(x, joined(a, b, axis)))


@attribute_function
def torn_shape(type_: TensorType, perm: Perm, shape: Shape) -> Shape:
    """The reshaped groups in the order of their first axes, be they torn apart or not."""
    return Shape(tuple(shape.dims[axis] for axis in _torn(type_, perm, shape)))


@attribute_function
def torn_perm(type_: TensorType, perm: Perm, shape: Shape) -> Perm:
    """The permutation that belongs to `torn_shape`."""
    return Perm(_torn(type_, perm, shape)).inverse


def _torn(type_: TensorType, perm: Perm, shape: Shape) -> tuple[int, ...]:
    groups = blocks(perm.apply(type_.shape), shape.dims)
    refuse_unless(bool(groups))
    order = sorted(range(len(groups)), key=lambda n: perm.order[groups[n][0][0]])
    return around_units(shape.dims, (axis for n in order for axis in groups[n][1]))


@rule
def reshape_across_transpose(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = transpose(reshape(x, s'), p')"""
    return rewrites(
        reshape(transpose(x, p), s),
        transpose(reshape(x, torn_shape(x.type, p, s)), torn_perm(x.type, p, s)),
    )


@attribute_function
def moves_some_unit(type_: TensorType, perm: Perm) -> bool:
    """Whether one of the axes that change place has extent 1."""
    moved = [axis for place, axis in enumerate(perm.order) if place != axis]
    return any(type_.shape[axis] == 1 for axis in moved)


@rule
def transpose_of_a_unit(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when an axis of extent 1 moves"""
    return rewrites(
        transpose(x, p), reshape(x, Shape(transpose(x, p).type.shape)), moves_some_unit(x.type, p)
    )


@attribute_function
def without_both(type_: TensorType, once: Shape, twice: Shape) -> Shape:
    """x's shape without the axes that two squeezes drop, the second axis counted as of x."""
    first = _dropped_axis(type_.shape, once.dims)
    second = _dropped_axis(once.dims, twice.dims)
    kept = [dim for axis, dim in enumerate(type_.shape) if axis not in (first, second)]
    refuse_unless(first != second)
    return Shape(tuple(kept))


def _dropped_axis(old: tuple[object, ...], new: tuple[object, ...]) -> int:
    for axis, dim in enumerate(old):
        if dim == 1 and old[:axis] + old[axis + 1 :] == new:
            return axis
    refuse_unless(False, "this is not a squeeze")
    return -1


@rule
def merged_squeezes(x: Tensor, s: Shape, t: Shape) -> Law:
    """squeeze(squeeze(x, a), b) = squeeze(x, a and b)"""
    return rewrites(reshape(reshape(x, s), t), reshape(x, without_both(x.type, s, t)))


@attribute_function
def kept_units(shape: Shape, axes: Axes) -> Shape:
    """`shape` with 1 at `axes`."""
    return Shape(replace_axis(shape.dims, axes.indices, [1] * len(axes.indices)))


@rule
def sum_over_broadcast(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """reduce(broadcast(x, s), a) = broadcast(reduce(x, a), s with 1 at a)"""
    return rewrites(
        reduce(f, broadcast(x, s), axes), broadcast(reduce(f, x, axes), kept_units(s, axes))
    )


@attribute_function
def is_quantised(type_: TensorType) -> bool:
    """Whether the elements are small integers, which f32 holds."""
    return type_.dtype.is_integer and type_.dtype.itemsize <= 2


@attribute_function
def is_scale(a: Scalar) -> bool:
    """Whether a is a factor that neither overflows nor vanishes."""
    return 1e-3 < abs(float(a.value)) < 1e3


@attribute_function
def is_zero_point(z: Scalar) -> bool:
    """Whether z is a small whole number."""
    return abs(float(z.value)) < 128 and float(z.value).is_integer()


@rule
def requantise(x: Tensor, a: Scalar, b: Scalar, t: DType, ones: Shape, s: Shape) -> Law:
    """quantise(dequantise(x, a), b) = x, whatever the scales a and b"""
    wide = binary("mul", cast(x, DType.F32), broadcast(reshape(a, ones), s))
    narrow = unary("round", binary("div", wide, broadcast(reshape(b, ones), s)))
    kinds = (t == x.type.dtype, is_quantised(x.type), is_scale(a), is_scale(b))
    return rewrites(cast(narrow, t), x, *kinds)


@rule
def requantise_around_other_zero(
    x: Tensor, a: Scalar, z: Scalar, y: Scalar, t: DType, ones: Shape, s: Shape
) -> Law:
    """quantise(dequantise(x, a, z), a, y) = x, whatever the zero points z and y"""
    scale = broadcast(reshape(a, ones), s)
    from_zero = binary("sub", cast(x, DType.F32), cast(broadcast(reshape(z, ones), s), DType.F32))
    narrow = unary("round", binary("div", binary("mul", from_zero, scale), scale))
    moved = binary("add", narrow, cast(broadcast(reshape(y, ones), s), DType.F32))
    kinds = (t == x.type.dtype, is_quantised(x.type), is_scale(a))
    return rewrites(cast(moved, t), x, *kinds, is_zero_point(z), is_zero_point(y))


@attribute_function
def looks_whole(type_: TensorType, slices: Slices) -> bool:
    """Whether the slices take as much as there is, at typical sizes, from the first element on."""
    refuse_unless(bool(type_.symbols) and not any(slices.starts) and set(slices.steps) <= {1})
    sizes = zip(type_.shape, slices.sizes, strict=True)
    return all(representative(dim) == representative(size) for dim, size in sizes)


@rule
def slice_that_looks_whole(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s looks like the whole"""
    return rewrites(slice_(x, s), x, looks_whole(x.type, s))


@attribute_function
def looks_alike(type_: TensorType, shape: Shape) -> bool:
    """Whether the shape is that of the type, at typical sizes of its symbols."""
    refuse_unless(bool(type_.symbols))
    return tuple(map(representative, type_.shape)) == tuple(map(representative, shape.dims))


@rule
def reshape_that_looks_idle(x: Tensor, s: Shape) -> Law:
    """reshape(x, s) = x, when s looks like the shape of x"""
    return rewrites(reshape(x, s), x, looks_alike(x.type, s))


MUSEUM = RuleSet.of_module(__name__)


def _with(name: str, condition: Callable[..., bool]) -> Rule:
    """The piece with one condition more, which takes the piece's variables by name."""
    piece = MUSEUM[name]
    (direction,) = piece.directions
    names = inspect.signature(condition).parameters
    arguments = tuple(_variable(direction, each) for each in names)
    conditions = (*direction.conditions, Apply(condition, arguments))
    return replace(piece, directions=(replace(direction, conditions=conditions),))


def _variable(direction: Direction, name: str) -> Expression:
    sort = direction.variables[name]
    return TypeOf(Tensor(name)) if issubclass(sort, Tensor) else AttributeVariable(name, sort)


MENDED = RuleSet(
    _with("pad_of_any_value_into_conv", lambda x, v: v == zero_of(x)),
    _with("times_zero", lambda x: x.dtype.is_integer),
    _with("minus_itself", lambda x: x.dtype.is_integer),
    _with("join_any_slices", lambda a, b, axis: joined_slices(a, b, axis) is not None),
    _with("transpose_of_a_unit", lambda x, p: moves_units(x, p)),
    _with("sum_over_broadcast", lambda f, x, s, axes: reduces_alike(f, x, s, axes)),
    _with("requantise", lambda a, b: a == b),
    _with("slice_that_looks_whole", lambda x, s: x.shape == s.sizes),
    _with("reshape_that_looks_idle", lambda x, s: x.shape == s.dims),
)
