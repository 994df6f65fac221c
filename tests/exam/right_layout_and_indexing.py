"""Laws of layout and indexing, all of them right."""

from satura.language import (
    Arithmetic,
    Axis,
    Count,
    Dim,
    DType,
    Elementwise,
    Known,
    Law,
    Movable,
    Operands,
    Others,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    Some,
    Tensor,
    TensorType,
    Varying,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    concat,
    equates,
    family,
    gather,
    iota,
    pad,
    refuse_unless,
    replaces,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
)


@family
def transpose_with_known(f: Elementwise, xs: Some[Movable], ys: Others[Known], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, transpose(y, p⁻¹)…), p), for known y"""
    return rewrites(
        f(xs.each(transpose, p), ys), transpose(f(xs, ys.each(transpose, p.inverse)), p)
    )


@family
def reshape_into(f: Arithmetic, xs: Operands[Varying], s: Shape) -> Law:
    """reshape(f(x…), s) = f(reshape(x, s)…), but for selects"""
    return rewrites(reshape(f(xs), s), f(xs.each(reshape, s)))


@attribute_function
def source(p: Perm, axis: Axis, i: TensorType) -> Axis:
    refuse_unless(i.rank == 1)
    return Axis(p.order[axis.index])


@rule
def gather_by_list_before_transpose(x: Tensor, i: Tensor, p: Perm, axis: Axis) -> Law:
    """gather(transpose(x, p), i, axis) = transpose(gather(x, i, p[axis]), p) for i of rank 1"""
    return rewrites(
        gather(transpose(x, p), i, axis), transpose(gather(x, i, source(p, axis, i.type)), p)
    )


@attribute_function
def has_axes(t: TensorType) -> bool:
    return t.rank >= 1


@rule
def gather_of_gather(x: Tensor, i: Tensor, j: Tensor) -> Law:
    """gather(gather(x, i, 0), j, 0) = gather(x, gather(i, j, 0), 0), unless i is of rank 0"""
    return rewrites(
        gather(gather(x, i, Axis(0)), j, Axis(0)),
        gather(x, gather(i, j, Axis(0)), Axis(0)),
        has_axes(i.type),
    )


@attribute_function
def place(p: Perm, axis: Axis) -> Axis:
    return Axis(p.order.index(axis.index))


@rule
def transpose_of_places(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), where p puts the axis)"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), place(p, axis), t))


@attribute_function
def turns_axes(s: Slices, t: TensorType) -> bool:
    """Whether s takes each axis whole, forwards or backwards."""
    parts = zip(s.starts, s.sizes, s.steps, t.shape, strict=True)
    return all((a, n, d) in ((0, m, 1), (m - 1, m, -1)) for a, n, d, m in parts)


@rule
def reverse_twice(x: Tensor, s: Slices) -> Law:
    """slice(slice(x, s), s) = x, when s turns some axes round"""
    return rewrites(slice_(slice_(x, s), s), x, turns_axes(s, x.type))


@rule
def regroup_concats(x: Tensor, y: Tensor, z: Tensor, axis: Axis) -> Law:
    """concat(concat(x, y), z) = concat(x, concat(y, z)) along one axis; both ways"""
    return equates(concat(concat(x, y, axis), z, axis), concat(x, concat(y, z, axis), axis))


@attribute_function
def end_axis(b: Padding) -> Axis:
    """The only axis that b adds elements to, all of them after it."""
    axes = [i for i, n in enumerate(b.hi) if n != 0]
    refuse_unless(len(axes) == 1 and all(n == 0 for n in b.lo))
    return Axis(axes[0])


@attribute_function
def added(t: TensorType, b: Padding) -> Shape:
    return Shape(tuple(n if n != 0 else m for n, m in zip(b.hi, t.shape, strict=True)))


@attribute_function
def units(t: TensorType) -> Shape:
    return Shape((1,) * t.rank)


@rule
def pad_as_concat(x: Tensor, v: Scalar, b: Padding) -> Law:
    """pad(x, v, after one axis) = concat(x, v everywhere, axis)"""
    return rewrites(
        pad(x, v, b),
        concat(x, broadcast(reshape(v, units(x.type)), added(x.type, b)), end_axis(b)),
    )


@attribute_function
def ones_like(t: Shape) -> Shape:
    return Shape((1,) * len(t.dims))


@rule
def reshape_of_constant(c: Scalar, o: Shape, s: Shape, t: Shape) -> Law:
    """reshape(c everywhere, t) = c everywhere in t"""
    return rewrites(reshape(broadcast(reshape(c, o), s), t), broadcast(reshape(c, ones_like(t)), t))


@rule
def transpose_back(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), p⁻¹) = x"""
    return replaces(transpose(transpose(x, p), p.inverse), x)


@attribute_function
def turns_only(s: Slices, axis: Axis, t: TensorType) -> bool:
    parts = enumerate(zip(s.starts, s.sizes, s.steps, t.shape, strict=True))
    return all(
        (a, n, d) == ((m - 1, m, -1) if i == axis.index else (0, m, 1)) for i, (a, n, d, m) in parts
    )


@attribute_function
def last_place(t: TensorType, axis: Axis) -> Scalar:
    n = t.shape[axis.index]
    refuse_unless(isinstance(n, int) and n >= 1)
    return Scalar.of(n - 1, DType.I64)


@attribute_function
def opposite(last: Count) -> Count:
    refuse_unless(last.value in (0, 1))
    return Count(1 - last.value)


@rule
def place_in_turned(f: ReduceFn, x: Tensor, s: Slices, axis: Axis, last: Count) -> Law:
    """arg_reduce(f, reversed x, axis) = n - 1 - arg_reduce(f, x, axis), where of equal elements the
    other one counts"""
    found = arg_reduce(f, x, axis, opposite(last))
    return rewrites(
        arg_reduce(f, slice_(x, s), axis, last),
        binary(
            "sub",
            broadcast(
                reshape(scalar(last_place(x.type, axis)), units(found.type)),
                Shape(found.type.shape),
            ),
            found,
        ),
        turns_only(s, axis, x.type),
    )


@attribute_function
def halves(x: TensorType, y: TensorType, axis: Axis, s: Slices) -> bool:
    """Whether s turns the axis of both and leaves the others."""
    return turned(x, s, axis) and s.sizes[axis.index] == x.shape[axis.index] + y.shape[axis.index]


def turned(x: TensorType, s: Slices, axis: Axis) -> bool:
    for i, n in enumerate(x.shape):
        if i == axis.index:
            if s.steps[i] != -1 or s.starts[i] != s.sizes[i] - 1:
                return False
        elif (s.starts[i], s.sizes[i], s.steps[i]) != (0, n, 1):
            return False
    return True


@attribute_function
def turn(t: TensorType, axis: Axis) -> Slices:
    at = axis.index
    n = t.shape[at]
    refuse_unless(isinstance(n, int) and n >= 1)
    starts: list[Dim] = [0] * t.rank
    steps = [1] * t.rank
    starts[at], steps[at] = n - 1, -1
    return Slices(tuple(starts), t.shape, tuple(steps))


@rule
def reverse_of_concat(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y, axis), reversed) = concat(y reversed, x reversed, axis)"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(slice_(y, turn(y.type, axis)), slice_(x, turn(x.type, axis)), axis),
        halves(x.type, y.type, axis, s),
    )
