"""Laws of convolutions, pools, borders and attention, all of them wrong."""

import typing

from satura.language import (
    Axes,
    Axis,
    DType,
    Groups,
    Known,
    Law,
    Padding,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    pad,
    pool,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    winograd,
)


@attribute_function
def spatial(b: Padding) -> Padding:
    """The padding of the spatial axes, where no other is padded."""
    refuse_unless(b.lo[0] == b.hi[0] == b.lo[-1] == b.hi[-1] == 0, "other axes are padded")
    refuse_unless(all(isinstance(n, int) for n in (*b.lo, *b.hi)), "open")
    return Padding(b.lo[1:-1], b.hi[1:-1])


@attribute_function
def widened(w: Window, b: Padding, c: Scalar) -> Window:
    """The window with a border that is larger by b."""
    lo = tuple(i + j for i, j in zip(w.lo, typing.cast(tuple[int, ...], b.lo)))
    hi = tuple(i + j for i, j in zip(w.hi, typing.cast(tuple[int, ...], b.hi)))
    return Window(w.sizes, w.strides, w.dilations, lo, hi, c)


# f32 x = [1,1,1] of 5, b = one before the spatial axis, c = 1, window of 1 tap, lo = 1, fill 0, w =
# 1: left [0, 1, 5], right [1, 1, 5].
@rule
def pad_joins_border(
    x: Tensor, c: Scalar, b: Padding, w: Tensor, window: Window, groups: Groups
) -> Law:
    """conv(pad(x, c, b), w) = conv(x, w) with a border of c that is larger by b, when only spatial
    axes are padded"""
    return rewrites(
        conv(pad(x, c, b), w, window, groups),
        conv(x, w, widened(window, spatial(b), c), groups),
    )


@attribute_function
def takes_every_second(s: Slices, t: TensorType) -> bool:
    """Whether s takes every second position, and all of the batch and the channels."""
    k = t.rank - 1
    if s.starts != (0,) * t.rank or s.steps != (1, *(2,) * (k - 1), 1) or k < 2:
        return False
    if s.sizes[0] != t.shape[0] or s.sizes[k] != t.shape[k]:
        return False
    return all(
        isinstance(t.shape[i], int) and s.sizes[i] == (t.shape[i] + 1) // 2 for i in range(1, k)
    )


@attribute_function
def of_double_stride(w: Window) -> Window:
    """Twice the stride."""
    refuse_unless(not w.has_border, "a border")
    return Window(w.sizes, tuple(2 * k for k in w.strides), w.dilations, w.lo, w.hi, w.fill)


# f32 x = [1,5,1] = 0..4, s every second: [0,2,4], w = two taps of 1, stride 1: left [2, 6];
# right stride 2 on x: [0+1, 2+3] = [1, 5].
@rule(reassociates=True)
def subsample_inside_conv(x: Tensor, s: Slices, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(every second of x, w) = conv(x, w) of twice the stride, without a border, where the
    types agree"""
    left = conv(slice_(x, s), w, window, groups)
    right = conv(x, w, of_double_stride(window), groups)
    return rewrites(left, right, takes_every_second(s, x.type), left.type == right.type)


# x = y f32[1,1,1] of 1 and 10, w f32[1,1,1] = [1], v f32[1,1,3] = [1,1,1], groups 1: left
# [1,10,10,10]; right 4 outputs in 2 groups: the first two read x: [1,1,10,10].
@rule(reassociates=True)
def join_convs_as_groups(
    x: Tensor, y: Tensor, w: Tensor, v: Tensor, window: Window, axis: Axis
) -> Law:
    """concat(conv(x, w), conv(y, v), channels) = conv(concat(x, y), concat(w, v)) of two groups,
    for x and y of one type"""
    one = Groups(1)
    return rewrites(
        concat(conv(x, w, window, one), conv(y, v, window, one), axis),
        conv(concat(x, y, axis), concat(w, v, axis), window, Groups(2)),
        axis.index == x.type.rank - 1,
        x.type == y.type,
        (w.type.shape[-1] + v.type.shape[-1]) % 2 == 0,
    )


@attribute_function
def steps_by_two(s: Slices) -> bool:
    """Whether s goes in steps of 2 along the spatial axes."""
    n = len(s.steps)
    return n >= 3 and s.steps == (1, *(2,) * (n - 2), 1) and s.starts[0] == s.starts[-1] == 0


@attribute_function
def twice_as_far(w: Window) -> Window:
    """Twice the stride."""
    return Window(w.sizes, tuple(2 * k for k in w.strides), w.dilations, w.lo, w.hi, w.fill)


# x f32[1,4,1] = 0..3, w one tap of 1, s = [0+1, 1+2*2, 0+1]: left [1,3]; right stride 2: [0,2].
@rule
def slice_as_stride(x: Tensor, w: Tensor, window: Window, groups: Groups, s: Slices) -> Law:
    """slice(conv(x, w), every second) = conv(x, w) of twice the stride, where the types agree"""
    left = slice_(conv(x, w, window, groups), s)
    right = conv(x, w, twice_as_far(window), groups)
    return rewrites(left, right, steps_by_two(s), left.type == right.type)


@attribute_function
def mirrors(s: Slices, t: TensorType) -> bool:
    """Whether s is all of t, backwards along the spatial axes."""
    for k, (start, size, step, n) in enumerate(zip(s.starts, s.sizes, s.steps, t.shape)):
        wanted = (0, n, 1) if k in (0, t.rank - 1) else (n - 1, n, -1)
        if (start, size, step) != wanted:
            return False
    return True


@attribute_function
def mirror_of_kernel(w: TensorType) -> Slices:
    """All of a kernel, backwards along its taps."""
    taps = w.rank - 2
    starts = tuple(n - 1 if k < taps else 0 for k, n in enumerate(w.shape))
    return Slices(starts, w.shape, (*(-1,) * taps, 1, 1))


@attribute_function
def moves_by_one(w: Window) -> bool:
    """Whether there are no strides."""
    return all(k == 1 for k in w.strides)


# x f32[1,2,1] = [1,2], w = taps [1,10], lo = 1, hi = 0, fill 0. left: conv of [2,1] with border:
# [0+20, 2+10] = [20,12], mirrored [12,20]. right: taps [10,1]: [0+1, 10+2] = [1,12].
@rule(reassociates=True)
def mirror_kernel_instead(
    x: Tensor, s: Slices, w: Tensor, window: Window, groups: Groups, t: Slices
) -> Law:
    """mirror(conv(mirror(x), w)) = conv(x, mirror(w)), without strides"""
    inner = conv(slice_(x, s), w, window, groups)
    return rewrites(
        slice_(inner, t),
        conv(x, slice_(w, mirror_of_kernel(w.type)), window, groups),
        mirrors(s, x.type),
        mirrors(t, inner.type),
        moves_by_one(window),
    )


@attribute_function
def strided(w: Window, result: TensorType) -> Slices:
    """What a window of one tap reads."""
    refuse_unless(all(k == 1 for k in w.sizes) and not any(w.lo), "more taps, or a border before")
    return Slices((0,) * w.rank, result.shape, w.strides)


# max, x = [1,2], window of one tap, hi = 1, fill 0: left [1,2,0]; right would read x[2]: no value.
@rule
def pool_of_one_tap(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f_pool(x, w) = slice(x, the strides) for max and min, a single tap and no border before x"""
    left = pool(f, x, w)
    return rewrites(
        left,
        slice_(x, strided(w, left.type)),
        (f == ReduceFn("max")) | (f == ReduceFn("min")),
    )


@attribute_function
def is_single(t: TensorType) -> bool:
    """Whether all extents are 1."""
    return all(n == 1 for n in t.shape)


@attribute_function
def all_axes(t: TensorType) -> Axes:
    """All axes."""
    return Axes(tuple(range(t.rank)))


# max, x = [0,0,0,0,9], 3 taps, stride 3: (5-3)//3+1 = 1 position: left [0], right [9].
@rule
def global_pool_as_reduce(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f_pool(x, w) = f(x, all axes) for max and min, when the result is a single element and there
    is no border"""
    left = pool(f, x, w)
    return rewrites(
        left,
        reduce(f, x, all_axes(x.type)),
        typing.cast(bool, is_single(left.type) & ~w.has_border),
        (f == ReduceFn("max")) | (f == ReduceFn("min")),
    )


@attribute_function
def has_nine_taps(w: Window) -> bool:
    """3 x 3 taps, moved by 1."""
    return w.sizes == (3, 3) and w.strides == (1, 1)


# f32 x = [1,5,5,1], w = ones, window of 3x3 taps with dilations (2,2): left one sum of every second
# element; winograd has no dilations: another type, or no value.
@rule(reassociates=True)
def any_3x3_by_tiles(x: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """conv(x, w) = winograd(x, w), on f32, for one group, 3×3 taps and no strides"""
    return rewrites(
        conv(x, w, window, groups),
        winograd(x, w, window),
        has_nine_taps(window) & (groups.count == 1),
        x.type.dtype == DType.F32,
    )


@attribute_function
def repeats_queries(c: TensorType, s: Shape) -> bool:
    """Whether c is the same for all queries and given for each key."""
    return c.rank >= 2 and c.shape[-2] == 1 and c.shape[-1] == s.dims[-1]


# q = k = 0, b = 0, c = [[0, 20]] (per key), v = [[0],[1]]: left softmax([0,20]) v = 1, right 0.5.
@rule(reassociates=True)
def drop_shift_of_scores(q: Tensor, k: Tensor, b: Tensor, c: Known, s: Shape, v: Tensor) -> Law:
    """attention(q, k, b + broadcast(c), v) = attention(q, k, b, v), when c is the same for all
    queries: a softmax knows no shifts"""
    return rewrites(
        attention(q, k, binary("add", b, broadcast(c, s)), v),
        attention(q, k, b, v),
        repeats_queries(c.type, s),
    )


@attribute_function
def over_channels(w: Window) -> Window:
    """The window over all axes of an image."""

    def ends(inner: tuple[int, ...], unit: int) -> tuple[int, ...]:
        return (unit, *inner, unit)

    return Window(
        ends(w.sizes, 1),
        ends(w.strides, 1),
        ends(w.dilations, 1),
        ends(w.lo, 0),
        ends(w.hi, 0),
        w.fill,
    )


# x f32[1,1,2] = [1,10], w f32[1,2,2] all 1, groups 1: left [11,11]; right sum_pool of one tap:
# [1,10].
@rule(reassociates=True)
def box_filter_as_pool(
    x: Tensor, c: Scalar, o: Shape, s: Shape, window: Window, groups: Groups
) -> Law:
    """conv(x, c everywhere) = sum_pool(x) * c everywhere, when there are as many channels after as
    before"""
    left = conv(x, broadcast(reshape(c, o), s), window, groups)
    return rewrites(
        left,
        binary(
            "mul",
            pool("sum", x, over_channels(window)),
            broadcast(reshape(c, o), Shape(left.type.shape)),
        ),
        s.dims[-1] == x.type.shape[-1],
    )
