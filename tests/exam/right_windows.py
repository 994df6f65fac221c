"""Laws of windows, all of them right."""

from dataclasses import replace

from satura.language import (
    Axes,
    DType,
    Groups,
    Law,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Varying,
    Window,
    attribute_function,
    broadcast,
    cast,
    conv,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    unary,
)


@attribute_function
def chooses(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def along_first(w: Window) -> Window:
    refuse_unless(w.rank >= 2)
    ones, zeros = (1,) * (w.rank - 1), (0,) * (w.rank - 1)
    return Window(
        (w.sizes[0], *ones),
        (w.strides[0], *ones),
        (w.dilations[0], *ones),
        (w.lo[0], *zeros),
        (w.hi[0], *zeros),
        w.fill,
    )


@attribute_function
def along_others(w: Window) -> Window:
    refuse_unless(w.rank >= 2)
    return Window(
        (1, *w.sizes[1:]),
        (1, *w.strides[1:]),
        (1, *w.dilations[1:]),
        (0, *w.lo[1:]),
        (0, *w.hi[1:]),
        w.fill,
    )


@rule
def separate_pool(f: ReduceFn, x: Varying, w: Window) -> Law:
    """pool(f, x, w) = pool(f, pool(f, x, w along axis 0), w along the others) for max and min"""
    return rewrites(pool(f, x, w), pool(f, pool(f, x, along_first(w)), along_others(w)), chooses(f))


@attribute_function
def every_stride(w: Window, t: TensorType) -> Slices:
    refuse_unless(not w.has_border and set(w.sizes) <= {1})
    return Slices((0,) * t.rank, w.outer(t.shape), w.strides)


@rule
def pool_of_one_element(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = slice(x, in steps of the strides), for max and min under windows of one
    element without border, where such a slice fits"""
    left = pool(f, x, w)
    right = slice_(x, every_stride(w, x.type))
    return rewrites(left, right, chooses(f), left.type == right.type)


@attribute_function
def never_falls(g: UnaryFn) -> bool:
    return g.name in ("relu", "floor", "ceil", "round")


@attribute_function
def is_inside(w: Window) -> bool:
    return not w.has_border


@rule
def monotone_after_pool(f: ReduceFn, g: UnaryFn, x: Tensor, w: Window) -> Law:
    """pool(f, g(x), w) = g(pool(f, x, w)) for monotone g, f max or min, without a border"""
    return rewrites(
        pool(f, unary(g, x), w),
        unary(g, pool(f, x, w)),
        chooses(f) & never_falls(g),
        is_inside(w),
    )


@attribute_function
def other_end(f: ReduceFn) -> ReduceFn:
    refuse_unless(f.name in ("max", "min"))
    return ReduceFn("min" if f.name == "max" else "max")


@attribute_function
def negated_border(w: Window) -> Window:
    import numpy as np

    refuse_unless(w.fill.dtype.is_float and not w.fill.dtype.is_narrow)
    return replace(w, fill=Scalar.of(np.negative(w.fill.array), w.fill.dtype))


@rule
def negation_out_of_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """-pool(max, -x, w) = pool(min, x, w with a border of -fill) on floats, and the other way
    round"""
    return rewrites(
        unary("neg", pool(f, unary("neg", x), w)), pool(other_end(f), x, negated_border(w))
    )


@attribute_function
def in_type(w: Window, x: TensorType, t: DType) -> Window:
    """The window over x, where t holds all numbers of x's type."""
    plain = x.dtype.is_integer and t.is_integer and not x.dtype.is_narrow and not t.is_narrow
    refuse_unless(plain and not w.has_border)
    (low, high), (least, most) = x.dtype.bounds, t.bounds
    refuse_unless(least <= low and high <= most)
    return replace(w, fill=Scalar.of(0, x.dtype))


@rule
def widen_after_pool(f: ReduceFn, x: Tensor, t: DType, w: Window) -> Law:
    """pool(f, cast(x, t), w) = cast(pool(f, x, w), t) for max and min of integers that t holds"""
    return rewrites(pool(f, cast(x, t), w), cast(pool(f, x, in_type(w, x.type, t)), t), chooses(f))


@attribute_function
def sees_all(w: Window, t: TensorType) -> bool:
    return not w.has_border and tuple(w.sizes) == tuple(t.shape) and set(w.dilations) <= {1}


@attribute_function
def all_axes(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = reduce(f, x) for max and min under a window of x's extents"""
    return rewrites(pool(f, x, w), reduce(f, x, all_axes(x.type)), chooses(f), sees_all(w, x.type))


@attribute_function
def positions(w: Window, s: Shape, x: TensorType) -> Shape:
    """The shape of the pool, where the window only spans repeated axes."""
    refuse_unless(not w.has_border)
    for i in range(w.rank):
        refuse_unless(x.shape[i] == 1 or (w.sizes[i] == 1 and w.strides[i] == 1))
    return Shape(w.outer(s.dims))


@rule
def pool_along_repeated(f: ReduceFn, x: Tensor, s: Shape, w: Window) -> Law:
    """pool(f, broadcast(x, s), w) = broadcast(x, as many positions) for max and min, when the
    window only spans repeated axes"""
    return rewrites(pool(f, broadcast(x, s), w), broadcast(x, positions(w, s, x.type)), chooses(f))


@attribute_function
def unmoved(w: Window, g: Groups) -> Window:
    refuse_unless(not w.has_border and set(w.sizes) <= {1})
    return replace(w, strides=(1,) * w.rank)


@attribute_function
def every_pixel(w: Window, x: TensorType) -> Slices:
    sizes = (x.shape[0], *w.outer(x.shape[1:-1]), x.shape[-1])
    return Slices((0,) * x.rank, sizes, (1, *w.strides, 1))


@rule(reassociates=True)
def strided_pointwise_conv(x: Tensor, y: Tensor, w: Window, g: Groups) -> Law:
    """conv(x, y) in strides = conv(slice(x, in steps of the strides), y), for kernels of one tap"""
    left = conv(x, y, w, g)
    right = conv(slice_(x, every_pixel(w, x.type)), y, unmoved(w, g), g)
    return rewrites(left, right, left.type == right.type)
