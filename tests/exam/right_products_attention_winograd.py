"""Laws of matrix products, attention, Winograd and reductions of pairs, all of them right."""

from satura.language import (
    Arithmetic,
    Axes,
    Axis,
    BinaryFn,
    Contraction,
    Groups,
    Known,
    Law,
    Others,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    Some,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    broadcast,
    concat,
    conv,
    family,
    gather,
    has_value,
    matmul,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
    transpose,
    unary,
    winograd,
)


@attribute_function
def is_computed(t: TensorType) -> bool:
    return not t.dtype.is_narrow


@attribute_function
def swaps_last(p: Perm) -> bool:
    """Whether p exchanges the last two axes and leaves the others."""
    rank = len(p.order)
    return rank >= 2 and p.order == (*range(rank - 2), rank - 1, rank - 2)


@rule(reassociates=True)
def transpose_of_product(x: Tensor, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p exchanges the
    last two axes"""
    return rewrites(
        transpose(matmul(x, y), p), matmul(transpose(y, p), transpose(x, p)), swaps_last(p)
    )


@attribute_function
def product_type(x: TensorType, y: TensorType) -> TensorType:
    refuse_unless(x.rank == y.rank >= 2 and x.dtype == y.dtype)
    refuse_unless(x.shape[:-2] == y.shape[:-2] and x.shape[-1] == y.shape[-2], "they do not fit")
    return x.with_shape((*x.shape[:-1], y.shape[-1]))


@attribute_function
def is_last(axis: Axis, rank: int) -> bool:
    return axis.index == rank - 1


@attribute_function
def is_before_last(axis: Axis, rank: int) -> bool:
    return axis.index == rank - 2


@rule(reassociates=True)
def product_of_parts(x: Tensor, y: Tensor, z: Tensor, w: Tensor, a: Axis, b: Axis) -> Law:
    """matmul(concat(x, y, columns), concat(z, w, rows)) = matmul(x, z) + matmul(y, w), when x and z
    fit"""
    return rewrites(
        matmul(concat(x, y, a), concat(z, w, b)),
        binary("add", matmul(x, z), matmul(y, w)),
        is_last(a, x.type.rank),
        is_before_last(b, x.type.rank),
        is_computed(x.type),
        has_value(product_type(x.type, z.type)),
    )


@attribute_function
def are_rows(axes: Axes, rank: int) -> bool:
    return axes.indices == (rank - 2,)


@attribute_function
def cut(t: TensorType, s: Slices, whole: int) -> Slices:
    """s with everything along the axis `whole`, counted from the end."""
    refuse_unless(len(s.sizes) == t.rank >= whole)
    at = t.rank - whole
    starts, sizes, steps = list(s.starts), list(s.sizes), list(s.steps)
    starts[at], sizes[at], steps[at] = 0, t.shape[at], 1
    return Slices(tuple(starts), tuple(sizes), tuple(steps))


@rule
def part_of_product(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(matmul(x, y), s) = matmul(rows of x, columns of y), with batches of both, by any
    steps"""
    return rewrites(
        slice_(matmul(x, y), s),
        matmul(slice_(x, cut(x.type, s, 1)), slice_(y, cut(y.type, s, 2))),
    )


@rule
def chosen_columns(x: Tensor, y: Tensor, i: Tensor, axis: Axis) -> Law:
    """matmul(x, gather(y, i, columns)) = gather(matmul(x, y), i, columns), for one axis of
    indices"""
    return rewrites(
        matmul(x, gather(y, i, axis)),
        gather(matmul(x, y), i, axis),
        is_last(axis, y.type.rank),
        i.type.rank == 1,
    )


@rule(reassociates=True)
def sum_of_rows_first(x: Tensor, y: Tensor, axes: Axes) -> Law:
    """sum(matmul(x, y), rows) = matmul(sum(x, rows), y)"""
    return rewrites(
        reduce("sum", matmul(x, y), axes),
        matmul(reduce("sum", x, axes), y),
        are_rows(axes, x.type.rank),
        is_computed(x.type),
    )


@attribute_function
def has_no_spatial(t: TensorType, g: Groups) -> bool:
    return t.rank == 2 and g.count == 1


@rule(reassociates=True)
def conv_without_space(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w) = matmul(x, w), when there is no spatial axis and one group"""
    return rewrites(conv(x, w, k, g), matmul(x, w), has_no_spatial(x.type, g))


@attribute_function
def leaves_all_but_last(t: TensorType, s: Slices) -> bool:
    return len(s.sizes) == t.rank and all(
        start == 0 and size == dim and step == 1
        for dim, start, size, step in list(zip(t.shape, s.starts, s.sizes, s.steps))[:-1]
    )


@rule(reassociates=True)
def columns_of_attention(q: Tensor, k: Tensor, b: Tensor, v: Tensor, s: Slices) -> Law:
    """slice(attention(q, k, b, v), s) = attention(q, k, b, slice(v, columns)), when s cuts columns
    only"""
    left = attention(q, k, b, v)
    return rewrites(
        slice_(left, s),
        attention(q, k, b, slice_(v, cut(v.type, s, 2))),
        leaves_all_but_last(left.type, s),
    )


@attribute_function
def same_rows(q: TensorType, b: TensorType) -> bool:
    return q.rank == b.rank >= 2 and q.shape[:-1] == b.shape[:-1]


@rule(reassociates=True)
def attention_in_two_parts(
    q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, axis: Axis
) -> Law:
    """attention(concat(q, r), k, concat(b, c), v) = concat(attention(q, k, b, v), attention(r, k,
    c, v)) along the queries, when q and b have as many"""
    return rewrites(
        attention(concat(q, r, axis), k, concat(b, c, axis), v),
        concat(attention(q, k, b, v), attention(r, k, c, v), axis),
        is_before_last(axis, q.type.rank),
        same_rows(q.type, b.type),
    )


@rule(reassociates=True)
def winograd_of_batches(x: Tensor, y: Tensor, w: Tensor, k: Window) -> Law:
    """winograd(concat(x, y), w) = concat(winograd(x, w), winograd(y, w)) along the batch"""
    return rewrites(
        winograd(concat(x, y, Axis(0)), w, k), concat(winograd(x, w, k), winograd(y, w, k), Axis(0))
    )


@family(reassociates=True)
def negation_out_of_weights(f: Contraction, x: Tensor, w: Tensor) -> Law:
    """f(x, -w) = -f(x, w), whatever the border"""
    return rewrites(f(x, unary("neg", w)), unary("neg", f(x, w)))


@attribute_function
def is_one(t: TensorType) -> bool:
    return all(dim == 1 for dim in t.shape)


@family
def cut_before_constant(
    f: Arithmetic, xs: Some[Tensor], ys: Others[Known], s: Slices, t: Shape
) -> Law:
    """f(slice(x, s)..., broadcast(y, t)...) = slice(f(x..., broadcast(y, shape of x)...), s), when
    all x have one shape and y one element"""
    return rewrites(
        f(xs.each(slice_, s), ys.each(broadcast, t)),
        slice_(f(xs, ys.each(broadcast, xs.shape)), s),
        *xs.of_one_shape,
        *(is_one(y.type) for y in ys),
    )


STEPS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


@attribute_function
def step_of(f: ReduceFn, t: TensorType) -> BinaryFn:
    """What a reduction of integers does with two elements."""
    refuse_unless(f.name in STEPS and t.dtype.is_integer and not t.dtype.is_narrow, "no integers")
    return BinaryFn(STEPS[f.name])


@rule
def reduce_elementwise_pair(f: ReduceFn, x: Tensor, y: Tensor, axes: Axes) -> Law:
    """g(f(x, axes), f(y, axes)) = f(g(x, y), axes) on integers, g a step of f, when x and y have
    one type"""
    return rewrites(
        binary(step_of(f, x.type), reduce(f, x, axes), reduce(f, y, axes)),
        reduce(f, binary(step_of(f, x.type), x, y), axes),
        x.type == y.type,
    )
