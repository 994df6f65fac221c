"""Laws of convolutions, all of them wrong."""

from __future__ import annotations

from satura.language import (
    Axis,
    Dim,
    DType,
    Groups,
    Law,
    Movable,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Term,
    Window,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    matmul,
    pad,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
    winograd,
)


@attribute_function
def ones(t: TensorType) -> Shape:
    """A shape of as many 1 as t has axes."""
    return Shape((1,) * t.rank)


@attribute_function
def full(t: TensorType) -> Shape:
    """The shape of t."""
    return Shape(t.shape)


def everywhere(value: Scalar, like: TensorType) -> Term:
    """The scalar `value` repeated to the type `like`."""
    return broadcast(reshape(scalar(value), ones(like)), full(like))


@attribute_function
def all_are(values: tuple[Dim, ...], value: int) -> bool:
    """Whether all of the values are `value`."""
    return all(each == value for each in values)


@attribute_function
def only_axis(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s takes everything, in order, on all axes but `axis`."""
    return all(
        i == axis.index or (s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1)
        for i in range(t.rank)
    )


@attribute_function
def along(t: TensorType, axis: Axis, start: Dim, size: Dim, step: int) -> Slices:
    """The slices of t that take everything but along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    starts: list[Dim] = [0] * t.rank
    sizes, steps = list(t.shape), [1] * t.rank
    starts[axis.index], sizes[axis.index], steps[axis.index] = start, size, step
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@attribute_function
def reverses(s: Slices, t: TensorType, axis: Axis) -> bool:
    """Whether s turns t around along `axis` and does nothing else."""
    at = axis.index
    if at >= t.rank:
        return False
    n = t.shape[at]
    return len(s.sizes) == t.rank and (
        only_axis(s, t, axis) and s.starts[at] == n - 1 and s.sizes[at] == n and s.steps[at] == -1
    )


@attribute_function
def is_plain(w: Window) -> bool:
    """Whether the window has neither strides nor dilations nor a border."""
    return set(w.strides) | set(w.dilations) <= {1} and not w.has_border


@attribute_function
def turned(t: TensorType, axis: Axis) -> Slices:
    """The slices that turn t around along `axis`."""
    refuse_unless(axis.index < t.rank, "no such axis")
    return along(t, axis, t.shape[axis.index] - 1, t.shape[axis.index], -1)


@attribute_function
def is_finite(c: Scalar) -> bool:
    """Whether c is neither infinite nor NaN."""
    return not c.dtype.is_float or abs(float(c.value)) < float("inf")


@attribute_function
def reach_without_dilation(s: Slices, w: Window, x: TensorType) -> Slices:
    """What of x the positions see that s takes, on the spatial axes."""
    refuse_unless(set(s.steps) == {1} and not w.has_border, "steps or a border")
    refuse_unless(s.sizes[-1] != 0, "no channels")
    inner = range(1, x.rank - 1)
    starts = tuple(s.starts[i] * w.strides[i - 1] for i in inner)
    sizes = tuple((s.sizes[i] - 1) * w.strides[i - 1] + w.sizes[i - 1] for i in inner)
    return Slices((s.starts[0], *starts, 0), (s.sizes[0], *sizes, x.shape[-1]), (1,) * x.rank)


@attribute_function
def takes_all_channels(s: Slices, t: TensorType) -> bool:
    return s.starts[-1] == 0 and s.sizes[-1] == t.shape[-1] and s.steps[-1] == 1


# x = f32[1, 3, 1], w = f32[2, 1, 1], a dilation of 2: the result is f32[1, 1, 1], of which s takes
# everything. The right side slices x to (1 - 1) * 1 + 2 = 2 elements, in which a window that
# reaches 3 is one too long: f32[1, 0, 1].
@rule
def slice_before_dilated_conv(x: Tensor, w: Tensor, window: Window, g: Groups, s: Slices) -> Law:
    """slice(conv(x, w), s) = conv(slice(x, s'), w), when s takes all channels and x has no
    border"""
    result = conv(x, w, window, g)
    return rewrites(
        slice_(result, s),
        conv(slice_(x, reach_without_dilation(s, window, x.type)), w, window, g),
        takes_all_channels(s, result.type),
    )


@attribute_function
def spatial_only(w: Window, b: Padding, v: Scalar) -> Window:
    return w.padded(Padding(b.lo[1:-1], b.hi[1:-1]), v)


@attribute_function
def no_channels_padded(b: Padding) -> bool:
    return b.lo[-1] == 0 and b.hi[-1] == 0


# x = f32[1, 1, 1], b = [1:0, 0:0, 0:0] pads the batch: the left side has 2 images, the right side
# 1.
@rule
def pad_into_conv_but_channels(
    x: Tensor, v: Scalar, b: Padding, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(pad(x, v, b), w) = conv(x, w with a border), when no channels are added"""
    return rewrites(
        conv(pad(x, v, b), w, window, g),
        conv(x, w, spatial_only(window, b, v), g),
        no_channels_padded(b),
    )


# x = f32[1, 2], w = f32[1, 2] = 1, 2 and u = f32[1, 2] = 3, 4, no spatial axes, 2 groups, x = 10,
# 100: all four channels of the concatenation 1, 2, 3, 4 belong to groups 0, 0, 1, 1: 10, 20, 300,
# 400; apart it is 10, 200, 30, 400.
@rule
def concat_grouped_kernels(
    x: Tensor, w: Tensor, u: Tensor, a: Axis, window: Window, g: Groups
) -> Law:
    """conv(x, concat(w, u, channels)) = concat(conv(x, w), conv(x, u), channels)"""
    return rewrites(
        conv(x, concat(w, u, a), window, g),
        concat(conv(x, w, window, g), conv(x, u, window, g), a),
        a.index == x.type.rank - 1,
    )


@attribute_function
def is_swap_of_spatial(p: Perm, w: Window) -> bool:
    return p.order == (0, 2, 1, 3) and w.sizes[0] == w.sizes[1]


# x = f32[1, 2, 2, 1] = [[1, 2], [3, 4]], w = f32[2, 2, 1, 1] = [[0, 1], [0, 0]]: transposed x is
# [[1, 3], [2, 4]], left 3; on the right the kernel sees [[1, 2], [3, 4]] and gives 2. The kernel
# must be transposed, too.
@rule(reassociates=True)
def conv_of_transposed_image(x: Movable, p: Perm, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(transpose(x, p), w) = transpose(conv(x, w), p), when p swaps height and width and the
    kernel is square"""
    swapped = Perm((1, 0))
    return rewrites(
        conv(transpose(x, p), w, window, g),
        transpose(conv(x, w, window.permuted(swapped), g), p),
        is_swap_of_spatial(p, window),
    )


# x = f32[1, 0, 1], w = f32[1, 1, 1] = 1, a border of 1 before with the fill 1.0, c = 2.0: the left
# side is the fill, 1.0; the right side is 2.0. The fill has to be 0.
@rule(reassociates=True)
def scale_out_of_conv(
    x: Tensor, c: Scalar, u: Shape, s: Shape, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(x * c, w) = conv(x, w) * c, for a finite c everywhere"""
    result = conv(x, w, window, g)
    return rewrites(
        conv(binary("mul", x, broadcast(reshape(c, u), s)), w, window, g),
        binary("mul", result, everywhere(c, result.type)),
        is_finite(c),
    )


@attribute_function
def is_1_by_1(w: Window, g: Groups) -> bool:
    return set(w.sizes) <= {1} and g.count == 1 and not w.has_border


@attribute_function
def rows(t: TensorType) -> Shape:
    return Shape((product(t.shape[:-1]), t.shape[-1]))


@attribute_function
def last_two(t: TensorType) -> Shape:
    return Shape(t.shape[-2:])


# x = f32[1, 2, 1], w = f32[1, 1, 1], steps of 2: the conv has 1 position, the matmul 2 rows, which
# do not reshape.
@rule(reassociates=True)
def strided_conv_as_matmul(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = matmul(x, w), for kernels of one tap, one group and no border"""
    return rewrites(
        conv(x, w, window, g),
        reshape(
            matmul(reshape(x, rows(x.type)), reshape(w, last_two(w.type))),
            Shape(conv(x, w, window, g).type.shape),
        ),
        is_1_by_1(window, g),
    )


@attribute_function
def is_3_by_3(w: Window, g: Groups) -> bool:
    return w.sizes == (3, 3) and w.strides == (1, 1) and g.count == 1


# x = f32[1, 5, 5, 1], w = f32[3, 3, 1, 1], dilations of 2: no winograd has such a window.
@rule(reassociates=True)
def dilated_conv_by_tiles(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = winograd(x, w), on f32, for one group and 3×3 taps in steps of 1"""
    return rewrites(
        conv(x, w, window, g),
        winograd(x, w, window),
        is_3_by_3(window, g) & (x.type.dtype == DType.F32),
    )


@attribute_function
def mirrored_kernel(t: TensorType) -> Slices:
    return turned(t, Axis(0))


# x = f32[1, 1, 1] = 1, w = f32[1, 1, 1] = 1, a border of 1 before alone, fill 0: both ways round x
# is 1, the left side is 0, 1; the right side turns 0, 1 around to 1, 0. The border has to be
# mirrored as well.
@rule(reassociates=True)
def conv_backwards(x: Tensor, s: Slices, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x backwards, w) = conv(x, w backwards) backwards, in steps of 1 along one spatial
    axis"""
    result = conv(x, slice_(w, mirrored_kernel(w.type)), window, g)
    return rewrites(
        conv(slice_(x, s), w, window, g),
        slice_(result, turned(result.type, Axis(1))),
        reverses(s, x.type, Axis(1)),
        window.rank == 1,
        all_are(window.strides, 1),
    )


@attribute_function
def is_depthwise(g: Groups, w: Window, x: TensorType) -> bool:
    return g.count == x.shape[-1] and is_plain(w) and set(w.sizes) <= {1}


@attribute_function
def row_of(t: TensorType) -> Shape:
    return Shape((*(1,) * (t.rank - 1), t.shape[-1]))


# x = f32[1, 1] = 3, w = f32[1, 2] = 1, 2, 1 group of 1 channel: there are two output channels: the
# left side is f32[1, 2], and the product of x and w repeated to x's type is none: 2 does not
# broadcast to 1.
@rule(reassociates=True)
def depthwise_conv_as_product(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = x * w, for one tap and a group per channel"""
    return rewrites(
        conv(x, w, window, g),
        binary("mul", x, broadcast(reshape(w, row_of(w.type)), Shape(x.type.shape))),
        is_depthwise(g, window, x.type),
    )


# x = f32[1, 2, 1] = 1, 2, w = f32[2, 1, 1] = 1, 1: conv is 3; relu after or before: x = -1, 2 gives
# relu(1) = 1 on the left, and conv(0, 2) = 2 on the right.
@rule
def relu_before_conv_of_positive_kernel(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """relu(conv(x, relu(w))) = conv(relu(x), relu(w)): no weight is negative"""
    return rewrites(
        unary("relu", conv(x, unary("relu", w), window, g)),
        conv(unary("relu", x), unary("relu", w), window, g),
    )
