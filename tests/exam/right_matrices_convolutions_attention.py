"""Laws of matrix products, convolutions and attention, all of them right."""

from dataclasses import replace

from satura.language import (
    Axis,
    DType,
    Groups,
    Law,
    Padding,
    Perm,
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
    transpose,
    winograd,
)


def numbers(*dims: object) -> bool:
    """Whether all are ints."""
    return all(isinstance(d, int) for d in dims)


@attribute_function
def swaps_last_two(p: Perm) -> bool:
    """Whether p exchanges the last two axes and nothing else."""
    n = len(p.order)
    return n >= 2 and p.order == (*range(n - 2), n - 1, n - 2)


@attribute_function
def rows_of(s: Slices, x: TensorType) -> Slices:
    """s on batch and rows, everything along the inner axis."""
    return Slices((*s.starts[:-1], 0), (*s.sizes[:-1], x.shape[-1]), (*s.steps[:-1], 1))


@attribute_function
def columns_of(s: Slices, y: TensorType) -> Slices:
    """s on batch and columns, everything along the inner axis."""
    return Slices(
        (*s.starts[:-2], 0, s.starts[-1]),
        (*s.sizes[:-2], y.shape[-2], s.sizes[-1]),
        (*s.steps[:-2], 1, s.steps[-1]),
    )


@attribute_function
def is_integer(t: TensorType) -> bool:
    """Whether nothing is rounded."""
    return t.dtype.is_integer


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
def half(t: TensorType, which: int) -> Slices:
    """The first or the second half of the last axis."""
    n = t.shape[-1]
    refuse_unless(numbers(n) and n % 2 == 0, "odd")
    rank = t.rank - 1
    return Slices((0,) * rank + (which * (n // 2),), (*t.shape[:-1], n // 2), (1,) * t.rank)


@attribute_function
def halved(g: Groups) -> Groups:
    """Half as many groups."""
    refuse_unless(g.count % 2 == 0, "odd")
    return Groups(g.count // 2)


@attribute_function
def last_axis(t: TensorType) -> Axis:
    """The last axis."""
    return Axis(t.rank - 1)


@attribute_function
def is_one_tap(w: Window) -> bool:
    """Whether the window sees each element once, and nothing else."""
    return not w.has_border and all(k == 1 and s == 1 for k, s in zip(w.sizes, w.strides))


@attribute_function
def as_rows(x: TensorType) -> Shape:
    """x as a matrix, a row for each position."""
    return Shape((product(x.shape[:-1]), x.shape[-1]))


@attribute_function
def is_single(g: Groups) -> bool:
    """Whether there is one group."""
    return g.count == 1


@attribute_function
def is_depthwise(g: Groups, x: TensorType, w: TensorType) -> bool:
    """Whether each channel has a factor of its own."""
    return x.shape[-1] == w.shape[-1] == g.count


@attribute_function
def along_last(x: TensorType, w: TensorType) -> Shape:
    """As many axes as x has, the last as long as w's."""
    return Shape((1,) * (x.rank - 1) + (w.shape[-1],))


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
def other_border(w: Window, x: TensorType) -> Window:
    """The window whose border changes sides; its last position is at the end of the operand."""
    for n, k, s, d, lo, hi in zip(x.shape[1:-1], w.sizes, w.strides, w.dilations, w.lo, w.hi):
        refuse_unless(numbers(n), "symbolic")
        refuse_unless((n + lo + hi - (d * (k - 1) + 1)) % s == 0, "something is left over")
    return replace(w, lo=w.hi, hi=w.lo)


@attribute_function
def wider_steps(w: Window, s: Slices) -> Window:
    """The window that takes the steps of s, too."""
    steps = s.steps[1:-1]
    refuse_unless(len(steps) == w.rank and all(step > 0 for step in steps), "backwards")
    refuse_unless(all(i == 0 for i in s.starts[1:-1]), "it begins later")
    return replace(w, strides=tuple(a * b for a, b in zip(w.strides, steps)))


@attribute_function
def is_whole_outside(s: Slices, t: TensorType) -> bool:
    """Whether s takes all images and all channels."""
    return all(s.starts[i] == 0 and s.sizes[i] == t.shape[i] and s.steps[i] == 1 for i in (0, -1))


@attribute_function
def is_static(t: TensorType) -> bool:
    """Whether all extents are numbers."""
    return numbers(*t.shape)


@attribute_function
def is_one_matrix(y: TensorType) -> bool:
    """Whether y is one matrix, of three axes."""
    return y.rank == 3 and y.shape[0] == 1


@attribute_function
def only_batch(y: TensorType, s: Shape) -> bool:
    """Whether only the batch is repeated."""
    return s.dims[1:] == y.shape[1:]


@attribute_function
def one_matrix(y: TensorType) -> Shape:
    """y [1, k, n] as [k, n]."""
    return Shape(y.shape[1:])


@attribute_function
def keys_whole(s: Slices, v: TensorType) -> bool:
    """Whether s leaves the batch alone."""
    n = len(s.sizes) - 2
    return all(s.starts[i] == 0 and s.steps[i] == 1 and s.sizes[i] == v.shape[i] for i in range(n))


@attribute_function
def queries(s: Slices, t: TensorType) -> Slices:
    """s along the queries, everything else."""
    n = t.rank - 2
    return Slices(
        (0,) * n + (s.starts[-2], 0),
        (*t.shape[:-2], s.sizes[-2], t.shape[-1]),
        (1,) * n + (s.steps[-2], 1),
    )


@attribute_function
def value_columns(s: Slices, t: TensorType) -> Slices:
    """s along the columns of the values, everything else."""
    n = t.rank - 1
    return Slices((0,) * n + s.starts[-1:], (*t.shape[:-1], s.sizes[-1]), (1,) * n + s.steps[-1:])


@attribute_function
def of_taps(x: TensorType, w: Window, g: Groups) -> bool:
    """Whether Winograd's algorithm computes this."""
    plain = w.sizes == (3, 3) and w.dilations == (1, 1) and w.strides == (1, 1)
    return x.dtype == DType.F32 and plain and g.count == 1


@rule
def transposed_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(x, y) transposed = matmul(y transposed, x transposed)"""
    return rewrites(
        transpose(matmul(x, y), p),
        matmul(transpose(y, p), transpose(x, p)),
        swaps_last_two(p),
    )


@rule
def slice_into_product(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(rows of x, columns of y), batches of both"""
    return rewrites(
        slice_(matmul(x, y), s),
        matmul(slice_(x, rows_of(s, x.type)), slice_(y, columns_of(s, y.type))),
    )


@rule
def group_integer_products(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """matmul(matmul(x, y), z) = matmul(x, matmul(y, z)), for integers, which wrap"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)), is_integer(x.type))


@rule
def product_of_padded(x: Tensor, y: Tensor, v: Scalar, u: Tensor, b: Padding, c: Padding) -> Law:
    """matmul(pad(x, 0, b), pad(y, u, c)) = matmul(x, y), for integers, the inner axis padded"""
    return rewrites(
        matmul(pad(x, v, b), pad(y, u, c)),
        matmul(x, y),
        is_zero(v) & pads_inner(b, c) & is_integer(x.type),
    )


@rule
def split_groups(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = concat of convs of the halves of x's and w's channels, for an even number"""
    return rewrites(
        conv(x, w, window, g),
        concat(
            conv(slice_(x, half(x.type, 0)), slice_(w, half(w.type, 0)), window, halved(g)),
            conv(slice_(x, half(x.type, 1)), slice_(w, half(w.type, 1)), window, halved(g)),
            last_axis(x.type),
        ),
    )


@rule(reassociates=True)
def pointwise_as_matmul(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = matmul of x's positions and w, for kernels of one tap in steps of 1"""
    left = conv(x, w, window, g)
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(w, as_rows(w.type))),
            Shape(left.type.shape),
        ),
        is_one_tap(window) & is_single(g),
    )


@rule
def depthwise_as_product(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = x * w, for kernels of one tap, each channel alone, and integers"""
    return rewrites(
        conv(x, w, window, g),
        binary("mul", x, broadcast(reshape(w, along_last(x.type, w.type)), Shape(x.type.shape))),
        is_one_tap(window) & is_depthwise(g, x.type, w.type) & is_integer(x.type),
    )


@rule(reassociates=True)
def conv_of_turned(x: Tensor, w: Tensor, r: Slices, q: Slices, window: Window, g: Groups) -> Law:
    """conv(x turned, w turned) = conv(x, w) with the border's sides exchanged, turned"""
    right = conv(x, w, other_border(window, x.type), g)
    return rewrites(
        conv(slice_(x, r), slice_(w, q), window, g),
        slice_(right, turned_result(right.type)),
        turns(r, x.type, 1, 1) & turns(q, w.type, 0, 2),
    )


@rule
def steps_into_conv(x: Tensor, w: Tensor, window: Window, g: Groups, s: Slices) -> Law:
    """slice(conv(x, w), s) = conv(x, w) by wider strides, when s begins at 0 and goes to the end"""
    whole = conv(x, w, window, g)
    left, right = slice_(whole, s), conv(x, w, wider_steps(window, s), g)
    return rewrites(
        left, right, is_whole_outside(s, whole.type) & is_static(x.type), left.type == right.type
    )


@rule
def shared_right_matrix(x: Tensor, y: Tensor, s: Shape) -> Law:
    """matmul(x, broadcast(y, s)) = matmul(all rows of x, y), when y is one matrix"""
    left = matmul(x, broadcast(y, s))
    return rewrites(
        left,
        reshape(
            matmul(reshape(x, as_rows(x.type)), reshape(y, one_matrix(y.type))),
            Shape(left.type.shape),
        ),
        is_one_matrix(y.type) & only_batch(y.type, s),
    )


@rule
def slice_into_attention(q: Tensor, k: Tensor, bias: Tensor, v: Tensor, s: Slices) -> Law:
    """slice(attention(q, k, bias, v), s) = attention of some queries and some columns"""
    return rewrites(
        slice_(attention(q, k, bias, v), s),
        attention(
            slice_(q, queries(s, q.type)),
            k,
            slice_(bias, queries(s, bias.type)),
            slice_(v, value_columns(s, v.type)),
        ),
        keys_whole(s, v.type),
    )


@rule(reassociates=True)
def conv_of_nine_taps(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = winograd(x, w), on f32, for 3×3 taps in steps of 1, one group, no dilation"""
    return rewrites(conv(x, w, window, g), winograd(x, w, window), of_taps(x.type, window, g))
