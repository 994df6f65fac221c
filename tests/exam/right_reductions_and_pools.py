"""Laws of reductions, pools and places of extremes, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Count,
    DType,
    Law,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    Window,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    known_at_least,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


@attribute_function
def chooses(f: ReduceFn) -> bool:
    """Whether f is always one of its elements, whatever their order."""
    return f.name in ("max", "min")


@attribute_function
def any_order(f: ReduceFn, t: TensorType) -> bool:
    """Whether f gives the same bits in any order."""
    return f.name in ("max", "min") or t.dtype.is_integer


@attribute_function
def none_is_empty(x: TensorType, s: Shape, axes: Axes) -> bool:
    """Whether no axis is repeated 0 times that is reduced."""
    return all(x.shape[k] == s.dims[k] or known_at_least(s.dims[k], 1) for k in axes.indices)


@rule
def maximum_before_broadcast(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """f(broadcast(x, s), axes) = broadcast(f(x, axes), …) for max and min, when no repeated axis
    among the axes is empty"""
    left = reduce(f, broadcast(x, s), axes)
    return rewrites(
        left,
        broadcast(reduce(f, x, axes), Shape(left.type.shape)),
        chooses(f),
        none_is_empty(x.type, s, axes),
    )


@attribute_function
def below(axes: Axes, p: Perm) -> Axes:
    """The operand's axes."""
    return Axes(tuple(sorted(p.order[k] for k in axes.indices)))


@rule
def reduce_below_transpose(f: ReduceFn, x: Varying, p: Perm, axes: Axes) -> Law:
    """f(transpose(x, p), axes) = transpose(f(x, p(axes)), p), where the order does not matter"""
    return rewrites(
        reduce(f, transpose(x, p), axes),
        transpose(reduce(f, x, below(axes, p)), p),
        any_order(f, x.type),
    )


@attribute_function
def all_axes(t: TensorType) -> Axes:
    """All axes."""
    return Axes(tuple(range(t.rank)))


@rule
def total_of_reshaped(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """f(reshape(x, s), all axes) = reshape(f(x, all axes), ones), where the order does not
    matter"""
    left = reduce(f, reshape(x, s), axes)
    return rewrites(
        left,
        reshape(reduce(f, x, all_axes(x.type)), Shape(left.type.shape)),
        any_order(f, x.type),
        all_axes(left.type) == axes,
    )


@attribute_function
def only_reorders(s: Slices, t: TensorType, axes: Axes) -> bool:
    """Whether s is all of t, backwards at most along the axes."""
    for k, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, t.shape)):
        forward = (start, size, step) == (0, n, 1)
        backward = (start, size, step) == (n - 1, n, -1) and k in axes.indices
        if not (forward or backward):
            return False
    return True


@rule
def reduce_of_reversed(f: ReduceFn, x: Tensor, s: Slices, axes: Axes) -> Law:
    """f(slice(x, s), axes) = f(x, axes), when s turns round axes of these, and the order does not
    matter"""
    return rewrites(
        reduce(f, slice_(x, s), axes),
        reduce(f, x, axes),
        any_order(f, x.type),
        only_reorders(s, x.type, axes),
    )


@attribute_function
def strided(w: Window, x: TensorType) -> Slices:
    """What a window of one tap reads."""
    refuse_unless(all(k == 1 for k in w.sizes) and not w.has_border, "more taps, or a border")
    refuse_unless(all(isinstance(n, int) for n in x.shape), "open")
    sizes = tuple((n - 1) // k + 1 for n, k in zip(x.shape, w.strides))
    return Slices((0,) * x.rank, sizes, w.strides)


@rule
def pool_of_one_tap_as_slice(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f_pool(x, w) = slice(x, the strides), for max and min, of a single tap without a border"""
    return rewrites(pool(f, x, w), slice_(x, strided(w, x.type)), chooses(f))


@attribute_function
def of_both(w: Window, v: Window) -> Window:
    """One dense window in place of two."""
    refuse_unless(not w.has_border and not v.has_border, "a border")
    refuse_unless(all(k == 1 for k in (*w.strides, *v.strides)), "strides")
    refuse_unless(all(k == 1 for k in (*w.dilations, *v.dilations)), "dilations")
    sizes = tuple(a + b - 1 for a, b in zip(w.sizes, v.sizes))
    return Window(sizes, w.strides, w.dilations, w.lo, w.hi, w.fill)


@rule
def merge_dense_pools(f: ReduceFn, x: Tensor, w: Window, v: Window) -> Law:
    """f(f(x, w), v) = f(x, w and v) for max and min, without strides, dilations and borders"""
    return rewrites(pool(f, pool(f, x, w), v), pool(f, x, of_both(w, v)), chooses(f))


@attribute_function
def clipped(w: Window) -> Window:
    """The window whose border is relu of what it was."""
    fill = w.fill if not typing.cast(float, w.fill.value) <= 0 else Scalar.of(0, w.fill.dtype)
    return Window(w.sizes, w.strides, w.dilations, w.lo, w.hi, fill)


@rule
def relu_into_max_pool(x: Tensor, w: Window) -> Law:
    """relu(max_pool(x, w)) = max_pool(relu(x), w with a border of relu)"""
    return rewrites(unary("relu", pool("max", x, w)), pool("max", unary("relu", x), clipped(w)))


@rule
def pool_below_padded_transpose(
    f: ReduceFn, x: Tensor, p: Perm, c: Scalar, b: Padding, w: Window
) -> Law:
    """f_pool(pad(transpose(x, p), c, b), w) = transpose(f_pool(x, p⁻¹(w with a border of c)), p),
    for max and min"""
    return rewrites(
        pool(f, pad(transpose(x, p), c, b), w),
        transpose(pool(f, x, w.padded(b, c).permuted(p.inverse)), p),
        chooses(f),
    )


@attribute_function
def opposite(f: ReduceFn) -> ReduceFn:
    """min for max, and the other way round."""
    refuse_unless(f.name in ("max", "min"), "f chooses none")
    return ReduceFn("min" if f.name == "max" else "max")


@rule
def arg_of_negated_floats(f: ReduceFn, x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_f(-x) = arg_g(x), for floats: g is min where f is max"""
    return rewrites(
        arg_reduce(f, unary("neg", x), axis, last),
        arg_reduce(opposite(f), x, axis, last),
        x.type.dtype.is_float,
        chooses(f),
    )


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s is all of t, backwards along `axis`."""
    for k, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, t.shape)):
        wanted = (n - 1, n, -1) if k == axis.index else (0, n, 1)
        if (start, size, step) != wanted:
            return False
    return True


@attribute_function
def last_index(t: TensorType, axis: Axis) -> Scalar:
    """n - 1."""
    n = t.shape[axis.index]
    refuse_unless(isinstance(n, int) and n >= 1, "an open size, or an empty axis")
    return Scalar.of(n - 1, DType.I64)


@attribute_function
def other(last: Count) -> Count:
    """The first for the last, and the other way round."""
    return Count(1 - last.value)


@attribute_function
def units(t: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * t.rank)


@rule
def arg_from_the_other_end(f: ReduceFn, x: Tensor, axis: Axis, s: Slices, last: Count) -> Law:
    """arg_f(reverse(x), axis, last) = n - 1 - arg_f(x, axis, not last)"""
    found = arg_reduce(f, x, axis, other(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_index(x.type, axis)), units(x.type)), Shape(found.type.shape)
            ),
            found,
        ),
        reverses(s, x.type, axis),
    )
