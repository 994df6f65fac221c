"""Laws of activations, bits, ramps and elementwise functions beside movement, all of them wrong."""

from satura.language import (
    Axis,
    BinaryFn,
    DType,
    Law,
    Padding,
    Perm,
    Refuse,
    Scalar,
    Shape,
    Slices,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    cast,
    concat,
    iota,
    pad,
    reshape,
    rewrites,
    rule,
    scalar,
    select,
    slice_,
    transpose,
    unary,
)


# f32[1] x = [1.0], c = 2.0: max(1, 2) = 2.0; 1 < 0 is false, so the right side is 1.0.
@rule
def leaky_relu(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """max(x, x * c everywhere) = x * c where x < 0, else x, for floats"""
    scaled = binary("mul", x, broadcast(reshape(c, ones), s))
    return rewrites(
        binary("max", x, scaled),
        select(binary("lt", x, 0.0), scaled, x),
    )


# f32[1] x = [-1.0]: relu gives 0.0; -1 * 0.0 is -0.0. (x = [-inf]: 0.0 and NaN.)
@rule
def relu_by_mask(x: Tensor) -> Law:
    """relu(x) = x * cast(0 < x)"""
    return rewrites(unary("relu", x), binary("mul", x, cast(binary("lt", 0, x), x.type.dtype)))


# i32[1] x = [1], y = [2]: ~3 = -4; -2 + -3 = -5.
@rule
def complement_of_sum(x: Tensor, y: Tensor) -> Law:
    """~(x + y) = ~x + ~y"""
    return rewrites(
        unary("bitnot", binary("add", x, y)),
        binary("add", unary("bitnot", x), unary("bitnot", y)),
    )


@attribute_function
def is_bitwise(f: BinaryFn) -> bool:
    """Whether f treats each bit alike."""
    return f.name in ("and", "or", "xor")


@attribute_function
def bitwise_dual(f: BinaryFn) -> BinaryFn:
    """`or` for `and`, and the other way round; `xor` is left."""
    if f.name not in ("and", "or", "xor"):
        raise Refuse(f"{f} is not bitwise")
    return BinaryFn({"and": "or", "or": "and", "xor": "xor"}[f.name])


# f = xor, i32[1] x = [1], y = [1]: ~(1 ^ 1) = -1; ~1 ^ ~1 = 0.
@rule
def de_morgan_for_bits(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """~f(x, y) = g(~x, ~y), where g is the dual of f"""
    return rewrites(
        unary("bitnot", binary(f, x, y)),
        binary(bitwise_dual(f), unary("bitnot", x), unary("bitnot", y)),
        is_bitwise(f),
    )


# i8[1] x = [0], y = [8]: ~0 = -1, shifted by the width it gives 0; 0 >> 8 = 0, ~0 = -1.
@rule
def complement_out_of_shift(x: Tensor, y: Tensor) -> Law:
    """~x >> y = ~(x >> y), for signed integers: right shifts keep the sign"""
    return rewrites(
        binary("shr", unary("bitnot", x), y),
        unary("bitnot", binary("shr", x, y)),
        x.type.dtype.is_signed,
    )


# f32: x and w of [1], y and z of [2], axis = 0: both concats are of [3], but max of x [1] and z [2]
# is ill typed.
@rule
def binary_into_concats(f: BinaryFn, x: Tensor, y: Tensor, z: Tensor, w: Tensor, a: Axis) -> Law:
    """f(concat(x, y), concat(z, w)) = concat(f(x, z), f(y, w))"""
    return rewrites(
        binary(f, concat(x, y, a), concat(z, w, a)),
        concat(binary(f, x, z), binary(f, y, w), a),
    )


@attribute_function
def is_wider(a: DType, b: DType) -> bool:
    """Whether the integers b have more bits than a."""
    return (
        a.is_integer
        and b.is_integer
        and not a.is_narrow
        and not b.is_narrow
        and b.itemsize > a.itemsize
    )


# s = [200], axis = 0, t = i8, u = i64: element 128 is -128 in i8, and so in i64; iota in i64 has
# 128.
@rule
def widen_iota(s: Shape, axis: Axis, t: DType, u: DType) -> Law:
    """cast(iota(s, axis, t), u) = iota(s, axis, u), for wider integers"""
    return rewrites(cast(iota(s, axis, t), u), iota(s, axis, u), is_wider(t, u))


@attribute_function
def moved(p: Perm, axis: Axis) -> Axis:
    """Where p moves an axis."""
    if axis.index >= len(p.order):
        raise Refuse("no such axis")
    return Axis(p.order[axis.index])


# s = [2, 3, 5], p = (1, 2, 0), axis = 0: the result is [3, 5, 2], and counts along axis 2, where p
# has 0; p.order[0] is 1.
@rule
def transposed_iota(s: Shape, axis: Axis, t: DType, p: Perm) -> Law:
    """transpose(iota(s, axis), p) = iota(p(s), p(axis))"""
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
def units(s: Slices) -> Shape:
    """As many extents of 1 as there are slices."""
    return Shape((1,) * len(s.sizes))


# i32, s = [3], axis = 0, the slice [1, 2): the left side is [1]; iota([1]) * 1 = [0].
@rule
def sliced_iota(s: Shape, axis: Axis, t: DType, part: Slices) -> Law:
    """slice(iota(s, axis), part) = iota(sizes of part, axis) * the step along it"""
    sizes = Shape(part.sizes)
    return rewrites(
        slice_(iota(s, axis, t), part),
        binary(
            "mul",
            iota(sizes, axis, t),
            broadcast(reshape(scalar(step_along(part, axis, t)), units(part)), sizes),
        ),
    )


# f = add, f32[1] x = [1.0], y = [2.0], a = b = 0.0, p = one before, q = one after: [0, 1] + [2, 0]
# = [2, 1]; the right side is [0, 3].
@rule
def pad_out_of_binary(
    f: BinaryFn, x: Tensor, y: Tensor, a: Scalar, b: Scalar, p: Padding, q: Padding
) -> Law:
    """f(pad(x, a, p), pad(y, b, q)) = pad(f(x, y), f(a, b), p), where x and y are of one type"""
    return rewrites(
        binary(f, pad(x, a, p), pad(y, b, q)),
        pad(binary(f, x, y), binary(f, a, b), p),
        x.type == y.type,
    )
