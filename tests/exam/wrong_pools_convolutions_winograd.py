"""Laws of windows of pools, convolutions and Winograd, all of them wrong."""

from satura.language import (
    Axes,
    Axis,
    Groups,
    Law,
    ReduceFn,
    Scalar,
    Slices,
    Tensor,
    TensorType,
    UnaryFn,
    Window,
    attribute_function,
    binary,
    concat,
    conv,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    unary,
    winograd,
)


@attribute_function
def plain(w: Window) -> bool:
    return not w.has_border and all(d == 1 for d in w.dilations)


@attribute_function
def joined(a: Window, b: Window) -> Window:
    refuse_unless(len(a.sizes) == len(b.sizes), "ranks differ")
    return Window(
        tuple(i + j - 1 for i, j in zip(a.sizes, b.sizes)),
        tuple(i * j for i, j in zip(a.strides, b.strides)),
        a.dilations,
        a.lo,
        a.hi,
        a.fill,
    )


# x = i32[3] = [1,2,9], a = sizes 1 strides 2, b = sizes 2: left max(1, 9) = 9; right sizes 2,
# stride 2: max(1, 2) = 2.
@rule
def pools_with_strides(x: Tensor, a: Window, b: Window) -> Law:
    """max-pool(max-pool(x, a), b) = max-pool(x, sizes a + b - 1, strides multiplied), when both
    have neither borders nor dilations (b's taps are a's strides apart)"""
    return rewrites(
        pool("max", pool("max", x, a), b), pool("max", x, joined(a, b)), plain(a) & plain(b)
    )


@attribute_function
def all_axes(t: TensorType) -> Axes:
    return Axes(tuple(range(t.rank)))


# x = i32[2] = [1,5], sizes 1, strides 2: one position, left 1; right 5.
@rule
def pool_to_one_is_reduce(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = f(x, all axes), when the result has one element"""
    left, right = pool(f, x, w), reduce(f, x, all_axes(x.type))
    return rewrites(left, right, left.type == right.type)


@attribute_function
def taken(t: TensorType, w: Window) -> Slices:
    refuse_unless(w.rank == t.rank)
    refuse_unless(all(size == 1 for size in w.sizes), "more taps")
    sizes = w.outer(t.shape)
    refuse_unless(
        all(
            isinstance(d, int) and isinstance(n, int) and (n - 1) * s < d
            for d, n, s in zip(t.shape, sizes, w.strides)
        ),
        "outside",
    )
    return Slices((0,) * t.rank, sizes, w.strides)


# x = i32[3] = [1,2,3], sizes 1, strides 2, lo 1, hi 0, fill 9: the places are 0 and 2 of [9,1,2,3]:
# left [9,2], right x[0::2] = [1,3].
@rule
def pool_of_one_tap(x: Tensor, w: Window) -> Law:
    """max-pool(x, w) = slice(x, every stride-th), when w has one tap (forgets the border)"""
    return rewrites(pool("max", x, w), slice_(x, taken(x.type, w)))


@attribute_function
def is_monotone(f: UnaryFn) -> bool:
    return f.name in ("exp", "relu", "floor", "ceil", "tanh", "sinh", "atan")


# f = exp, x = f32[1] = [-1], sizes 1, stride 1, lo 1, fill 0: left max: [0, e^-1]; right exp(0) = 1
# at the border: [1, e^-1].
@rule
def monotone_out_of_pool(f: UnaryFn, x: Tensor, w: Window) -> Law:
    """max-pool(f(x), w) = f(max-pool(x, w)), for a monotone f (of the border's value, too)"""
    return rewrites(pool("max", unary(f, x), w), unary(f, pool("max", x, w)), is_monotone(f))


@attribute_function
def is_last(axis: Axis, t: TensorType) -> bool:
    return axis.index == t.rank - 1


# x = f32[1,2] = [[1,10]], w = v = f32[1,2] = ones, groups 2, rank-0 window: left columns 0, 1 read
# channel 0 and 2, 3 channel 1: [1,1,10,10]; right [1,10] twice.
@rule
def conv_of_joined_columns(x: Tensor, w: Tensor, v: Tensor, a: Axis, k: Window, g: Groups) -> Law:
    """conv(x, concat(w, v)) = concat(conv(x, w), conv(x, v)) along the output channels (of one
    group)"""
    return rewrites(
        conv(x, concat(w, v, a), k, g),
        concat(conv(x, w, k, g), conv(x, v, k, g), a),
        is_last(a, w.type),
    )


# x = y = f32[1,1,1] = 1, w = f32[3,1,1] = ones, border 1:1 of 0: left [1,1] convolved: [2,2]; right
# [1] and [1].
@rule
def conv_of_joined_images(x: Tensor, y: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(concat(x, y, 1), w) = concat(conv(x, w), conv(y, w), 1), when the types agree (axis 1 is
    spatial)"""
    left = conv(concat(x, y, Axis(1)), w, k, g)
    right = concat(conv(x, w, k, g), conv(y, w, k, g), Axis(1))
    return rewrites(left, right, left.type == right.type)


@attribute_function
def in_ones(k: Window) -> Window:
    ones = (1,) * k.rank
    return Window(k.sizes, ones, ones, k.lo, k.hi, k.fill)


@attribute_function
def strided(t: TensorType, k: Window) -> Slices:
    refuse_unless(t.rank == k.rank + 2)
    refuse_unless(any(s > 1 for s in k.strides))
    return Slices((0,) * t.rank, t.shape, (1, *k.strides, 1))


# x = f32[1,3,1] = 1,2,3, w = f32[2,1,1] = ones, strides 2, dilations 2: left x0 + x2 = 4 (one
# place); right without dilation x0 + x1 = 3.
@rule
def conv_then_stride(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w) by strides = slice(conv(x, w) by steps of 1, strides) (forgets the dilations)"""
    left = conv(x, w, k, g)
    return rewrites(left, slice_(conv(x, w, in_ones(k), g), strided(left.type, k)))


@attribute_function
def is_spatial_flip(t: TensorType, s: Slices) -> bool:
    return all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if 0 < i < t.rank - 1
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


@attribute_function
def spatial_flip(t: TensorType, first: int, end: int) -> Slices:
    here = range(first, t.rank - end)
    return Slices(
        tuple(dim - 1 if i in here else 0 for i, dim in enumerate(t.shape)),
        t.shape,
        tuple(-1 if i in here else 1 for i in range(t.rank)),
    )


@attribute_function
def in_steps_of_one(k: Window) -> bool:
    return all(s == 1 for s in k.strides)


# x = f32[1,1,1] = 5, w = f32[1,1,1] = 1, lo 1, hi 0, fill 0: left [0,5]; right the conv is [0,5],
# flipped [5,0].
@rule(reassociates=True)
def conv_of_flipped(x: Tensor, s: Slices, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(flip(x), w) = flip(conv(x, flip(w))), in steps of 1 (lo and hi have to change places)"""
    right = conv(x, slice_(w, spatial_flip(w.type, 0, 2)), k, g)
    return rewrites(
        conv(slice_(x, s), w, k, g),
        slice_(right, spatial_flip(right.type, 1, 1)),
        is_spatial_flip(x.type, s),
        in_steps_of_one(k),
    )


# x = y = f32[1,1,1] = 1, w = ones of 1 tap, lo 1, fill 1: left [1, 2]; right [1 + 1, 2].
@rule(reassociates=True)
def conv_of_sum(x: Tensor, y: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x + y, w) = conv(x, w) + conv(y, w) (counts the border twice where it is not 0)"""
    return rewrites(
        conv(binary("add", x, y), w, k, g), binary("add", conv(x, w, k, g), conv(y, w, k, g))
    )


# Winograd's algorithm adds and subtracts taps before it multiplies: other roundings, so not bit for
# bit: x = f32[1,4,4,1] of random numbers, w = f32[3,3,1,1] of random numbers.
@rule
def winograd_is_exact(x: Tensor, w: Tensor, k: Window) -> Law:
    """winograd(x, w) = conv(x, w), bit for bit"""
    return rewrites(winograd(x, w, k), conv(x, w, k, Groups(1)))


@attribute_function
def without_fill(k: Window) -> Window:
    refuse_unless(k.has_border and any(k.fill.bits), "no border")
    return Window(
        k.sizes, k.strides, k.dilations, k.lo, k.hi, Scalar(k.fill.dtype, bytes(len(k.fill.bits)))
    )


# x = i32[1] = [-5], sizes 1, stride 1, lo 1, fill -7: left [-7, -5], right [0, -5].
@rule
def any_fill_will_do(f: ReduceFn, x: Tensor, k: Window) -> Law:
    """pool(x, w) = pool(x, w with a border of zeros)"""
    return rewrites(pool(f, x, k), pool(f, x, without_fill(k)))
