"""Laws of layout, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    DType,
    Law,
    Movable,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    binary,
    broadcast,
    concat,
    iota,
    known_at_least,
    matmul,
    product,
    reduce,
    refuse_unless,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
)


@rule
def transpose_back(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p⁻¹) = x"""
    return rewrites(transpose(transpose(x, p), p.inverse), x)


@attribute_function
def of_operand(p: Perm, a: Axes) -> Axes:
    """The axes of the operand that `a` are of the result."""
    refuse_unless(all(axis < len(p.order) for axis in a.indices))
    return Axes(tuple(sorted(p.order[axis] for axis in a.indices)))


@attribute_function
def is_choice(f: ReduceFn) -> bool:
    """Whether neither order nor number of equal elements matters."""
    return f.name in ("max", "min")


@rule
def transpose_out_of_choice(f: ReduceFn, x: Tensor, p: Perm, a: Axes) -> Law:
    """max(transpose(x, p), a) = transpose(max(x, p(a)), p), and so for min"""
    return rewrites(
        reduce(f, transpose(x, p), a),
        transpose(reduce(f, x, of_operand(p, a)), p),
        is_choice(f),
    )


@attribute_function
def swaps_last(p: Perm) -> bool:
    """Whether the last two axes are exchanged, and nothing else."""
    rank = len(p.order)
    return rank >= 2 and p.order == (*range(rank - 2), rank - 1, rank - 2)


@rule(reassociates=True)
def transpose_of_product(x: Movable, y: Tensor, p: Perm) -> Law:
    """transpose(matmul(x, y), p) = matmul(transpose(y, p), transpose(x, p)), when p swaps the last
    two"""
    return rewrites(
        transpose(matmul(x, y), p), matmul(transpose(y, p), transpose(x, p)), swaps_last(p)
    )


@attribute_function
def last_of(x: TensorType) -> Axes:
    """The last axis."""
    refuse_unless(x.rank > 0)
    return Axes((x.rank - 1,))


@attribute_function
def keeps_rows(x: TensorType, s: Shape) -> bool:
    """Whether a reshape to `s` keeps the last axis, and the number of rows, which is not implied
    where rows are empty."""
    if not x.rank or not s.dims:
        return False
    return x.shape[-1] == s.dims[-1] and product(x.shape[:-1]) == product(s.dims[:-1])


@rule(reassociates=True)
def reshape_after_rows(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """reduce(reshape(x, s), last) = reshape(reduce(x, last), …), when the rows stay"""
    whole = reduce(f, reshape(x, s), a)
    return rewrites(
        whole,
        reshape(reduce(f, x, last_of(x.type)), Shape(whole.type.shape)),
        a == last_of(reshape(x, s).type),
        keeps_rows(x.type, s),
    )


@attribute_function
def flat(x: TensorType) -> Shape:
    """One axis of as many elements."""
    return Shape((product(x.shape),))


@rule
def flatten_rows(x: Tensor, y: Tensor, s: Shape) -> Law:
    """reshape(concat(x, y, first axis), flat) = concat(reshape(x, flat), reshape(y, flat))"""
    whole = concat(x, y, Axis(0))
    return rewrites(
        reshape(whole, s),
        concat(reshape(x, flat(x.type)), reshape(y, flat(y.type)), Axis(0)),
        s == flat(whole.type),
    )


@attribute_function
def folded(x: TensorType) -> Shape:
    """All batches as rows of one."""
    refuse_unless(x.rank >= 3)
    return Shape((*(1,) * (x.rank - 2), product(x.shape[:-1]), x.shape[-1]))


@attribute_function
def is_repeated_as_batch(w: TensorType, s: Shape) -> bool:
    """Whether w is one matrix, and a broadcast to `s` repeats it, but none of its rows or
    columns."""
    return all(n == 1 for n in w.shape[:-2]) and w.shape[-2:] == s.dims[-2:]


@rule(reassociates=True)
def fold_batches(x: Tensor, w: Tensor, s: Shape) -> Law:
    """matmul(x, broadcast(w, s)) = matmul(x as one batch, w), when w is one matrix"""
    whole = matmul(x, broadcast(w, s))
    return rewrites(
        whole,
        reshape(matmul(reshape(x, folded(x.type)), w), Shape(whole.type.shape)),
        is_repeated_as_batch(w.type, s),
    )


@attribute_function
def is_all_of_some(a: Axes, s: Shape) -> bool:
    """Whether `a` has all axes, and none of them is empty at any size."""
    return a.indices == tuple(range(len(s.dims))) and all(known_at_least(n, 1) for n in s.dims)


@rule
def choose_before_broadcast(f: ReduceFn, x: Tensor, s: Shape, a: Axes) -> Law:
    """f(broadcast(x, s), all axes) = f(x, all axes), for max and min, when nothing is empty"""
    return rewrites(
        reduce(f, broadcast(x, s), a), reduce(f, x, a), is_choice(f), is_all_of_some(a, s)
    )


@attribute_function
def before(x: TensorType, n: int) -> Shape:
    """The shape with an axis of extent n before it."""
    return Shape((n, *x.shape))


@rule
def concat_with_itself(x: Tensor) -> Law:
    """concat(x, x, first axis) = x repeated along a new first axis, and reshaped"""
    whole = concat(x, x, Axis(0))
    return rewrites(
        whole,
        reshape(
            broadcast(reshape(x, before(x.type, 1)), before(x.type, 2)), Shape(whole.type.shape)
        ),
    )


@attribute_function
def flips(s: Slices, x: TensorType) -> bool:
    """Whether `s` takes each axis as a whole, or reversed as a whole."""
    axes = zip(s.starts, s.sizes, s.steps, x.shape, strict=True)
    return all(
        size == n and ((start == 0 and step == 1) or (start == n - 1 and step == -1))
        for start, size, step, n in axes
    )


@rule
def flip_twice(x: Tensor, s: Slices) -> Law:
    """slice(slice(x, s), s) = x, when s reverses some axes and takes the others as they are"""
    return rewrites(slice_(slice_(x, s), s), x, flips(s, x.type))


@attribute_function
def element(value: Dim, dtype: DType) -> Scalar:
    """A number, wrapped to an integer type that is computed with."""
    refuse_unless(dtype.is_integer and not dtype.is_narrow and isinstance(value, int))
    bits = typing.cast(int, value) % (1 << 8 * dtype.itemsize)
    return Scalar(dtype, bits.to_bytes(dtype.itemsize, "little"))


@attribute_function
def units(x: TensorType) -> Shape:
    """As many axes of extent 1."""
    return Shape((1,) * x.rank)


@rule
def slice_of_ramp(n: Shape, axis: Axis, t: DType, s: Slices) -> Law:
    """slice(iota(n, axis), s) = iota(sizes of s, axis) * step + start, on integers"""
    part = slice_(iota(n, axis, t), s)
    step, start = element(s.steps[axis.index], t), element(s.starts[axis.index], t)
    everywhere = Shape(s.sizes)
    return rewrites(
        part,
        binary(
            "add",
            binary(
                "mul",
                iota(everywhere, axis, t),
                broadcast(reshape(scalar(step), units(part.type)), everywhere),
            ),
            broadcast(reshape(scalar(start), units(part.type)), everywhere),
        ),
    )


@attribute_function
def follow(a: Slices, b: Slices, x: TensorType, axis: Axis) -> bool:
    """Whether `a` and `b` are the two parts of x along the axis."""
    for i, n in enumerate(x.shape):
        if a.steps[i] != 1 or b.steps[i] != 1 or a.starts[i] != 0:
            return False
        if i == axis.index and (b.starts[i] != a.sizes[i] or a.sizes[i] + b.sizes[i] != n):
            return False
        if i != axis.index and (b.starts[i] != 0 or a.sizes[i] != n or b.sizes[i] != n):
            return False
    return True


@rule
def join_parts(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = x, when a is a first part and b all that follows"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), x, follow(a, b, x.type, axis))
