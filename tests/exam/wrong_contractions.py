"""Laws of contractions, all of them wrong."""

from dataclasses import replace

from satura.language import (
    Axis,
    DType,
    Groups,
    Law,
    Padding,
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
    matmul,
    pad,
    product,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    slice_,
    winograd,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def is_zero(v: Scalar) -> bool:
    """Whether all bits of v are 0."""
    return not any(v.bits)


@attribute_function
def pads_inner(b: Padding, c: Padding) -> bool:
    """Whether b pads the last axis alone and c the one before alone, as much."""
    n = len(b.lo)
    for i in range(n):
        if i != n - 1 and (b.lo[i] != 0 or b.hi[i] != 0):
            return False
        if i != n - 2 and (c.lo[i] != 0 or c.hi[i] != 0):
            return False
    return n >= 2 and b.lo[-1] == c.lo[-2] and b.hi[-1] == c.hi[-2]


@attribute_function
def is_pointwise(w: Window, g: Groups) -> bool:
    """Whether the kernel is of one tap, without groups and border."""
    return all(k == 1 for k in w.sizes) and not w.has_border and g.count == 1


@attribute_function
def as_rows(x: TensorType) -> Shape:
    """x as a matrix, a row for each position."""
    return Shape((product(x.shape[:-1]), x.shape[-1]))


@attribute_function
def wider_steps(w: Window, s: Slices) -> Window:
    """The window that takes the steps of s, too."""
    steps = s.steps[1:-1]
    refuse_unless(len(steps) == w.rank and all(step > 0 for step in steps), "backwards")
    return replace(w, strides=tuple(a * b for a, b in zip(w.strides, steps)))


@attribute_function
def is_whole_outside(s: Slices, t: TensorType) -> bool:
    """Whether s takes all images and all channels."""
    return all(s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1 for i in (0, -1))


@attribute_function
def is_last(a: Axis, t: TensorType) -> bool:
    """Whether a is the last axis."""
    return a.index == t.rank - 1


@attribute_function
def whole_numbers(t: TensorType) -> bool:
    """Whether t has integers."""
    return t.dtype.is_integer


@attribute_function
def turns(s: Slices, t: TensorType, first: int, behind: int) -> bool:
    """Whether s turns round the axes from `first` on but for the last `behind`."""
    if not numbers(*t.shape, *s.starts, *s.sizes):
        return False
    for i, n in enumerate(t.shape):
        inside = first <= i < t.rank - behind
        wanted = (n - 1, n, -1) if inside else (0, n, 1)
        if (s.starts[i], s.sizes[i], s.steps[i]) != wanted:
            return False
    return True


@attribute_function
def turned_result(t: TensorType) -> Slices:
    """All spatial axes turned round."""
    refuse_unless(numbers(*t.shape), "symbolic")
    starts = [n - 1 if 0 < i < t.rank - 1 and n else 0 for i, n in enumerate(t.shape)]
    steps = [-1 if 0 < i < t.rank - 1 else 1 for i in range(t.rank)]
    return Slices(tuple(starts), t.shape, tuple(steps))


@attribute_function
def is_plain_border(w: Window) -> bool:
    """Whether the border is as wide on both sides."""
    return w.lo == w.hi


@attribute_function
def is_one_matrix(x: TensorType, y: TensorType) -> bool:
    """Whether x is one matrix and y are many."""
    return x.rank == 3 and y.rank == 3 and x.shape[0] == 1


@attribute_function
def only_batch(x: TensorType, s: Shape) -> bool:
    """Whether only the batch of x is repeated."""
    return s.dims[1:] == x.shape[1:]


@attribute_function
def one_matrix(x: TensorType) -> Shape:
    """x [1, m, k] as [m, k]."""
    return Shape(x.shape[1:])


@attribute_function
def side_by_side(y: TensorType) -> Shape:
    """y [b, k, n] as [k, b * n]."""
    return Shape((y.shape[1], y.shape[0] * y.shape[2]))


@attribute_function
def of_taps(x: TensorType, w: Window, g: Groups) -> bool:
    """Whether Winograd's algorithm computes this."""
    return x.dtype == DType.F32 and w.sizes == (3, 3) and w.dilations == (1, 1) and g.count == 1


@attribute_function
def one_query(c: TensorType) -> bool:
    """Whether c is the same for all queries."""
    return c.rank >= 2 and c.shape[-2] == 1


@attribute_function
def spatial(b: Padding) -> Padding:
    """The part of b on the axes of the window."""
    return Padding(b.lo[:-2], b.hi[:-2])


@attribute_function
def spares_channels(b: Padding) -> bool:
    """Whether neither images nor channels are added."""
    return all(d == 0 for d in (b.lo[0], b.hi[0], b.lo[-1], b.hi[-1]))


@attribute_function
def is_inner(a: Axis, t: TensorType, back: int) -> bool:
    """Whether a is axis number `back` from behind."""
    return a.index == t.rank - back


# f32, 1×1: x = 1e-30, y = 1e-30, z = 1e30: left (1e-60 = 0) * 1e30 = 0; right 1e-30 * 1 = 1e-30.
# (Right for integers.)
@rule
def group_matmuls(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z))"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)))


# x = [[1]], v = 0, b = [0:0, 0:1]; y = [[1]], u = inf, c = [0:1, 0:0]: left 1 * 1 + 0 * inf = NaN;
# right 1.
@rule
def matmul_of_padded(x: Tensor, y: Tensor, v: Scalar, u: Tensor, b: Padding, c: Padding) -> Law:
    """matmul(pad(x, 0, b), pad(y, u, c)) = matmul(x, y), when only the inner axis is padded"""
    return rewrites(matmul(pad(x, v, b), pad(y, u, c)), matmul(x, y), is_zero(v) & pads_inner(b, c))


# x = f32[1, 4, 1], w = f32[1, 1, 1], strides (2,): left f32[1, 2, 1]; the right side has 4 rows,
# which do not reshape to 2.
@rule(reassociates=True)
def pointwise_conv_as_matmul(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = matmul of x's positions and w, for kernels of one tap, groups and border none"""
    left = conv(x, w, window, g)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(w, as_rows(w.type))),
            Shape(left.type.shape),
        ),
        is_pointwise(window, g),
    )


# x = [0, 1, 2, 3] : f32[1, 4, 1], w = [1], s takes 2 from 1 on in steps of 2: left 1, 3; right:
# strides (2,), 0, 2.
@rule
def slice_into_strides(x: Tensor, w: Tensor, window: Window, g: Groups, s: Slices) -> Law:
    """slice(conv(x, w), s) = conv(x, w) by wider strides, when there are as many positions"""
    whole = conv(x, w, window, g)
    left, right = slice_(whole, s), conv(x, w, wider_steps(window, s), g)
    return rewrites(left, right, is_whole_outside(s, whole.type), left.type == right.type)


# x = f32[1, 2] (no spatial axes) = [[1, 10]], w = v = f32[1, 2] = [[1, 1]], groups 2: conv gives
# [1, 10], twice: left 1, 10, 1, 10. right: 4 columns in 2 groups: 1, 1, 10, 10.
@rule
def merge_convs(x: Tensor, w: Tensor, v: Tensor, window: Window, g: Groups, a: Axis) -> Law:
    """concat(conv(x, w), conv(x, v), channels) = conv(x, concat(w, v, channels))"""
    return rewrites(
        concat(conv(x, w, window, g), conv(x, v, window, g), a),
        conv(x, concat(w, v, a), window, g),
        is_last(a, x.type),
    )


# i32, x = y = [[[0]]] : [1, 1, 1], w = [[[1]], [[1]]] : [2, 1, 1], border (1:0) of fill 5: left 5 +
# 0 = 5; right 5 + 5 = 10.
@rule
def conv_of_sum(x: Tensor, y: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x + y, w) = conv(x, w) + conv(y, w), for integers"""
    return rewrites(
        conv(binary("add", x, y), w, window, g),
        binary("add", conv(x, w, window, g), conv(y, w, window, g)),
        whole_numbers(x.type),
    )


# x = [0, 1, 2, 3] : f32[1, 4, 1], w = [1], strides (2,): x turned: 3, 2, 1, 0: positions 3, 1;
# right: 0, 2 turned: 2, 0.
@rule(reassociates=True)
def turn_conv(x: Tensor, w: Tensor, r: Slices, q: Slices, window: Window, g: Groups) -> Law:
    """conv(x turned, w turned) = conv(x, w), turned, when the border is symmetric"""
    right = conv(x, w, window, g)
    return rewrites(
        conv(slice_(x, r), slice_(w, q), window, g),
        slice_(right, turned_result(right.type)),
        turns(r, x.type, 1, 1) & turns(q, w.type, 0, 2) & is_plain_border(window),
    )


# x = [[[1, 1]]] (m 1, k 2), s = [2, 1, 2], y = [[[1], [2]], [[3], [4]]] (b 2, k 2, n 1): left 3 and
# 7. right: y's elements as rows [1, 2], [3, 4]: sums of columns 4, 6.
@rule
def shared_left_matrix(x: Tensor, y: Tensor, s: Shape) -> Law:
    """matmul(broadcast(x, s), y) = matmul(x, all of y side by side), when x is one matrix"""
    left = matmul(broadcast(x, s), y)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, one_matrix(x.type)), reshape(y, side_by_side(y.type))),
            Shape(left.type.shape),
        ),
        is_one_matrix(x.type, y.type) & only_batch(x.type, s),
    )


# x = f32[1, 5, 5, 1], w = f32[3, 3, 1, 1], strides (2, 2): winograd moves in steps of 1, and has no
# value or 3×3 results in place of 2×2.
@rule(reassociates=True)
def any_conv_by_tiles(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = winograd(x, w), on f32, for 3×3 taps, one group and no dilation"""
    return rewrites(conv(x, w, window, g), winograd(x, w, window), of_taps(x.type, window, g))


# one query, keys 2, q = 0, bias = 0, c = [[0, 100]] : f32[1, 2], v = [[1], [0]]: left weights (0,
# 1): 0 (e^-100); right weights (1/2, 1/2): 0.5.
@rule(reassociates=True)
def attention_is_shift_invariant(
    q: Tensor, k: Tensor, bias: Tensor, v: Tensor, c: Tensor, s: Shape
) -> Law:
    """attention(q, k, bias + broadcast(c), v) = attention(q, k, bias, v): softmax forgets shifts"""
    return rewrites(
        attention(q, k, binary("add", bias, broadcast(c, s)), v),
        attention(q, k, bias, v),
        one_query(c.type),
    )


# x = f32[1, 2, 2, 1], b pads axis 1 by 1:1, w = f32[1, 1, 1, 1]: left f32[1, 4, 2, 1]. b.lo[:-2] is
# that of axes 0 and 1: the right side pads axis 2 by 1:1 and has f32[1, 2, 4, 1].
@rule
def pad_into_conv_one_axis_off(
    x: Tensor, v: Scalar, b: Padding, w: Tensor, window: Window, g: Groups
) -> Law:
    """conv(pad(x, v, b), w) = conv(x, w) with a border of v, when only spatial axes are padded"""
    return rewrites(
        conv(pad(x, v, b), w, window, g),
        conv(x, w, window.padded(spatial(b), v), g),
        spares_channels(b),
    )


# x : f32[1, 1], y : f32[1, 2]; u : f32[2, 1], v : f32[1, 1]: both have 3 along the inner axis, but
# x has 1 column and u 2 rows: the right side does not multiply.
@rule(reassociates=True)
def split_inner_axis(x: Tensor, y: Tensor, u: Tensor, v: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(u, v, rows)) = matmul(x, u) + matmul(y, v)"""
    return rewrites(
        matmul(concat(x, y, a), concat(u, v, b)),
        binary("add", matmul(x, u), matmul(y, v)),
        is_inner(a, x.type, 1) & is_inner(b, u.type, 2),
    )
