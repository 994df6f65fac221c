"""Laws of bits, constants, ramps and elementwise functions beside movement, all of them right."""

from satura.language import (
    Axes,
    Axis,
    BinaryFn,
    Constant,
    Contraction,
    Count,
    DType,
    Elementwise,
    Law,
    Operands,
    Padding,
    Perm,
    Refuse,
    Scalar,
    Scalars,
    Shape,
    Slices,
    Tensor,
    TensorType,
    Varying,
    arg_reduce,
    attribute_function,
    binary,
    broadcast,
    concat,
    constant,
    family,
    iota,
    pad,
    reduce,
    reshape,
    rewrites,
    rule,
    scalar,
    slice_,
    transpose,
    unary,
)


@attribute_function
def dual(f: BinaryFn) -> BinaryFn:
    """`or` for `and`, and the other way round."""
    if f.name not in ("and", "or"):
        raise Refuse(f"{f} has no dual")
    return BinaryFn("or" if f.name == "and" else "and")


@rule
def complement_of_bits(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """~f(x, y) = g(~x, ~y), for and with or, and or with and"""
    return rewrites(
        unary("bitnot", binary(f, x, y)),
        binary(dual(f), unary("bitnot", x), unary("bitnot", y)),
    )


@attribute_function
def are_below_width(a: Constant, b: Constant) -> bool:
    """Whether all elements of a and b are from 0 to below their width."""
    for c in (a, b):
        if not c.type.dtype.is_integer or c.type.dtype.is_narrow:
            raise Refuse("no plain integers")
        if any(not 0 <= int(v) < 8 * c.type.dtype.itemsize for v in c.array.ravel()):
            return False
    return True


@rule
def merge_left_shifts(x: Tensor, a: Constant, b: Constant) -> Law:
    """(x << a) << b = x << (a + b), for constants below the width: beyond it nothing is left"""
    return rewrites(
        binary("shl", binary("shl", x, constant(a)), constant(b)),
        binary("shl", x, binary("add", constant(a), constant(b))),
        are_below_width(a, b),
    )


@family
def pad_out_of_elementwise(f: Elementwise, xs: Operands[Varying], cs: Scalars, p: Padding) -> Law:
    """f(pad(x, c, p)…) = pad(f(x…), f(c…), p)"""
    return rewrites(f(xs.each(pad, cs, p)), pad(f(xs), f(cs), p))


@family
def slice_out_of_elementwise(f: Elementwise, xs: Operands[Varying], s: Slices) -> Law:
    """f(slice(x, s)…) = slice(f(x…), s), when all x have one shape"""
    return rewrites(f(xs.each(slice_, s)), slice_(f(xs), s), *xs.of_one_shape)


@family(reassociates=True)
def negation_out_of_contraction(f: Contraction, x: Tensor, y: Tensor) -> Law:
    """f(x, neg(y)) = neg(f(x, y)): the fill of a window is multiplied by y, too"""
    return rewrites(f(x, unary("neg", y)), unary("neg", f(x, y)))


@attribute_function
def moved(p: Perm, axis: Axis) -> Axis:
    """Where p moves an axis."""
    if axis.index not in p.order:
        raise Refuse("no such axis")
    return Axis(p.order.index(axis.index))


@rule
def transposed_iota(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), where p moves the axis)"""
    return rewrites(transpose(iota(s, axis, t), p), iota(s.permuted(p), moved(p, axis), t))


@attribute_function
def step_along(s: Slices, axis: Axis, t: DType) -> Scalar:
    """The step along an axis, as an integer of this type."""
    if axis.index >= len(s.steps) or not t.is_integer or t.is_narrow:
        raise Refuse("no such axis, or no integers")
    step = s.steps[axis.index]
    if not t.bounds[0] <= step <= t.bounds[1]:
        raise Refuse("the step does not fit")
    return Scalar.of(step, t)


@attribute_function
def start_along(s: Slices, axis: Axis, t: DType) -> Scalar:
    """The start along an axis, as an integer of this type."""
    if axis.index >= len(s.starts) or not t.is_integer or t.is_narrow:
        raise Refuse("no such axis, or no integers")
    start = s.starts[axis.index]
    if not isinstance(start, int) or not t.bounds[0] <= start <= t.bounds[1]:
        raise Refuse("the start is open, or does not fit")
    return Scalar.of(start, t)


@attribute_function
def units(rank: int) -> Shape:
    """As many extents of 1."""
    return Shape((1,) * rank)


@rule
def sliced_iota(s: Shape, axis: Axis, t: DType, part: Slices) -> Law:
    """slice(iota(s, axis), part) = iota(sizes of part, axis) * step + start, for integers"""
    whole = iota(s, axis, t)
    sizes = Shape(part.sizes)
    step = broadcast(reshape(scalar(step_along(part, axis, t)), units(whole.type.rank)), sizes)
    start = broadcast(reshape(scalar(start_along(part, axis, t)), units(whole.type.rank)), sizes)
    return rewrites(
        slice_(whole, part), binary("add", binary("mul", iota(sizes, axis, t), step), start)
    )


@attribute_function
def only_element(c: Constant) -> Scalar:
    """The element that c has everywhere, by its bits."""
    if c.size == 0 or c.type.dtype.is_narrow:
        raise Refuse("no elements, or narrow ones")
    first = c.array.reshape(-1)[:1]
    content, width = c.array.tobytes(), c.array.dtype.itemsize
    if content != first.tobytes() * (len(content) // width):
        raise Refuse("elements differ")
    return Scalar(c.type.dtype, first.tobytes())


@rule
def uniform_constant(x: Tensor, c: Constant, f: BinaryFn) -> Law:
    """f(x, constant(c)) = f(x, e everywhere), where c has the same e in all places"""
    return rewrites(
        binary(f, x, constant(c)),
        binary(
            f,
            x,
            broadcast(reshape(scalar(only_element(c)), units(c.type.rank)), Shape(c.type.shape)),
        ),
    )


@rule
def place_of_maximum_by_negation(x: Tensor, axis: Axis, last: Count) -> Law:
    """arg_reduce(max, neg(x)) = arg_reduce(min, x), for floats"""
    return rewrites(
        arg_reduce("max", unary("neg", x), axis, last),
        arg_reduce("min", x, axis, last),
        x.type.dtype.is_float,
    )


@attribute_function
def adds_zeros(t: TensorType, c: Scalar, p: Padding, axes: Axes) -> bool:
    """Whether zeros of integers are added, along no axes but these."""
    if not t.dtype.is_integer or t.dtype.is_narrow or c.dtype != t.dtype:
        raise Refuse("no plain integers")
    if len(p.lo) != t.rank or len(p.hi) != t.rank:
        raise Refuse("a padding of another rank")
    others = [i for i in range(t.rank) if i not in axes.indices]
    return not any(c.bits) and all(p.lo[i] == 0 and p.hi[i] == 0 for i in others)


@rule
def drop_zeros_under_sum(x: Tensor, c: Scalar, p: Padding, axes: Axes) -> Law:
    """sum(pad(x, 0), axes) = sum(x, axes), for integers, where only summed axes are padded"""
    return rewrites(
        reduce("sum", pad(x, c, p), axes),
        reduce("sum", x, axes),
        adds_zeros(x.type, c, p, axes),
    )


@rule
def bounds_out_of_concat(
    f: BinaryFn, x: Tensor, y: Tensor, c: Scalar, ones: Shape, s: Shape, axis: Axis
) -> Law:
    """f(concat(x, y), c everywhere) = concat(f(x, c everywhere), f(y, c everywhere))"""
    return rewrites(
        binary(f, concat(x, y, axis), broadcast(reshape(c, ones), s)),
        concat(
            binary(f, x, broadcast(reshape(c, ones), Shape(x.type.shape))),
            binary(f, y, broadcast(reshape(c, ones), Shape(y.type.shape))),
            axis,
        ),
    )
