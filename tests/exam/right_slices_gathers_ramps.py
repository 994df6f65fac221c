"""Laws of slices, pads, gathers and ramps, all of them right."""

import typing

from satura.language import (
    Axis,
    Constant,
    DType,
    Elementwise,
    Law,
    Operands,
    Padding,
    Shape,
    Slices,
    Tensor,
    TensorType,
    attribute_function,
    broadcast,
    concat,
    constant,
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
    slice_,
    unary,
)


@attribute_function
def phase(t: TensorType, s: Slices, axis: Axis, is_first: bool) -> Slices:
    """The part of s in the first or second part, of which the first is t: s takes every k-th along
    the axis from the first on, and t has a multiple of k there."""
    refuse_unless(axis.index < t.rank == len(s.sizes))
    at, step, dim = axis.index, s.steps[axis.index], t.shape[axis.index]
    refuse_unless(isinstance(dim, int) and isinstance(s.sizes[at], int), "open")
    refuse_unless(
        s.starts[at] == 0 and step > 0 and typing.cast(int, dim) % step == 0, "another phase"
    )
    head = typing.cast(int, dim) // step
    refuse_unless(typing.cast(int, s.sizes[at]) >= head, "only the first part")
    starts, sizes = list(s.starts), list(s.sizes)
    sizes[at] = head if is_first else s.sizes[at] - head
    return Slices(tuple(starts), tuple(sizes), s.steps)


@rule
def every_kth_of_both(x: Tensor, y: Tensor, axis: Axis, s: Slices) -> Law:
    """slice(concat(x, y), every k-th) = concat(slice(x, every k-th), slice(y, every k-th)), when x
    has a multiple of k"""
    return rewrites(
        slice_(concat(x, y, axis), s),
        concat(
            slice_(x, phase(x.type, s, axis, True)), slice_(y, phase(x.type, s, axis, False)), axis
        ),
    )


@attribute_function
def is_in_front(b: Padding, s: Slices) -> bool:
    """Whether along some axis s takes only what b adds in front."""
    refuse_unless(len(b.lo) == len(s.sizes))
    for lo, start, size, step in zip(
        typing.cast(tuple[int, ...], b.lo),
        typing.cast(tuple[int, ...], s.starts),
        typing.cast(tuple[int, ...], s.sizes),
        s.steps,
    ):
        if (
            all(isinstance(value, int) for value in (lo, start, size))
            and size > 0
            and start < lo
            and start + (size - 1) * step < lo
        ):
            return True
    return False


@attribute_function
def ones(rank: int) -> Shape:
    return Shape((1,) * rank)


@rule
def slice_of_border(x: Tensor, v: Tensor, b: Padding, s: Slices) -> Law:
    """slice(pad(x, v, b), s) = v everywhere, when s takes only elements in front of x"""
    return rewrites(
        slice_(pad(x, v, b), s),
        broadcast(reshape(v, ones(x.type.rank)), Shape(s.sizes)),
        is_in_front(b, s),
    )


@attribute_function
def only_in_front(b: Padding, axis: Axis) -> bool:
    return all(hi == 0 for hi in b.hi) and all(
        lo == 0 or i == axis.index for i, lo in enumerate(b.lo)
    )


@rule
def pad_first_part(x: Tensor, y: Tensor, v: Tensor, b: Padding, axis: Axis) -> Law:
    """pad(concat(x, y, axis), v, b) = concat(pad(x, v, b), y, axis) both ways, when b pads only in
    front of the axis"""
    return equates(
        pad(concat(x, y, axis), v, b), concat(pad(x, v, b), y, axis), only_in_front(b, axis)
    )


@attribute_function
def padded_axis(b: Padding) -> Axis:
    """The only axis that is padded, in front."""
    refuse_unless(all(hi == 0 for hi in b.hi), "behind")
    found = [axis for axis, lo in enumerate(b.lo) if lo != 0]
    refuse_unless(len(found) == 1, "not one axis")
    return Axis(found[0])


@attribute_function
def border_shape(t: TensorType, b: Padding) -> Shape:
    refuse_unless(len(b.lo) == t.rank)
    return Shape(tuple(lo if lo != 0 else dim for dim, lo in zip(t.shape, b.lo)))


@rule
def pad_as_concat(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = concat(v everywhere, x), when b pads in front of one axis"""
    return rewrites(
        pad(x, v, b),
        concat(
            broadcast(reshape(v, ones(x.type.rank)), border_shape(x.type, b)), x, padded_axis(b)
        ),
    )


@attribute_function
def plain_steps(s: Slices) -> Slices:
    """s with a step of 1 where only one element is taken."""
    steps = tuple(1 if size == 1 else step for size, step in zip(s.sizes, s.steps))
    refuse_unless(steps != s.steps, "nothing to change")
    return Slices(s.starts, s.sizes, steps)


@rule
def step_of_one_element(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = slice(x, s with steps of 1 where it takes one element)"""
    return replaces(slice_(x, s), slice_(x, plain_steps(s)))


@attribute_function
def is_flip(t: TensorType, s: Slices, axis: Axis) -> bool:
    """Whether s reverses t along the axis, and leaves the others."""
    return (
        len(s.sizes) == t.rank
        and axis.index < t.rank
        and all(
            s.sizes[i] == dim
            and (
                (s.starts[i] == dim - 1 and s.steps[i] == -1)
                if i == axis.index
                else (s.starts[i] == 0 and s.steps[i] == 1)
            )
            for i, dim in enumerate(t.shape)
        )
    )


@rule
def gather_from_the_end(x: Tensor, s: Slices, i: Tensor, axis: Axis) -> Law:
    """gather(flip(x, axis), i, axis) = gather(x, ~i, axis): ~i is -1 - i, which counts from the
    end"""
    return rewrites(
        gather(slice_(x, s), i, axis), gather(x, unary("bitnot", i), axis), is_flip(x.type, s, axis)
    )


@rule
def gather_in_two_steps(x: Tensor, i: Tensor, j: Tensor, axis: Axis) -> Law:
    """gather(gather(x, i, axis), j, axis) = gather(x, gather(i, j, 0), axis), when i has an axis"""
    return rewrites(
        gather(gather(x, i, axis), j, axis), gather(x, gather(i, j, Axis(0)), axis), i.type.rank > 0
    )


@rule
def gather_by_reshaped(x: Tensor, i: Tensor, s: Shape, axis: Axis) -> Law:
    """gather(x, reshape(i, s)) = reshape(gather(x, i), ...)"""
    left = gather(x, reshape(i, s), axis)
    return rewrites(left, reshape(gather(x, i, axis), Shape(left.type.shape)))


@attribute_function
def at_constant(t: TensorType, i: Constant, axis: Axis) -> Slices:
    """The slice that the only index chooses, which may count from the end."""
    refuse_unless(axis.index < t.rank and i.size == 1, "not one index")
    refuse_unless(i.type.dtype.is_integer, "no indices")
    dim, index = t.shape[axis.index], int(i.array.reshape(-1)[0])
    refuse_unless(isinstance(dim, int) and -dim <= index < dim, "not known to be inside")
    return Slices(
        tuple(index % typing.cast(int, dim) if n == axis.index else 0 for n in range(t.rank)),
        tuple(1 if n == axis.index else extent for n, extent in enumerate(t.shape)),
        (1,) * t.rank,
    )


@rule
def gather_of_one_index(x: Tensor, i: Constant, axis: Axis) -> Law:
    """gather(x, one constant index) = slice(x, there), reshaped"""
    left = gather(x, constant(i), axis)
    return rewrites(left, reshape(slice_(x, at_constant(x.type, i, axis)), Shape(left.type.shape)))


@family
def gather_after(f: Elementwise, xs: Operands[Tensor], i: Tensor, axis: Axis) -> Law:
    """f(gather(x, i)...) = gather(f(x...), i), when all x have one shape"""
    return rewrites(f(xs.each(gather, i, axis)), gather(f(xs), i, axis), *xs.of_one_shape)


@attribute_function
def begins(s: Slices, axis: Axis) -> bool:
    return axis.index < len(s.sizes) and s.starts[axis.index] == 0 and s.steps[axis.index] == 1


@rule
def begin_of_iota(s: Shape, axis: Axis, d: DType, r: Slices) -> Law:
    """slice(iota, r) = a shorter iota, when r takes the first ones along its axis"""
    return rewrites(slice_(iota(s, axis, d), r), iota(Shape(r.sizes), axis, d), begins(r, axis))


@attribute_function
def keeps_axis(s: Shape, t: Shape, axis: Axis) -> bool:
    return axis.index < len(s.dims) == len(t.dims) and s.dims[axis.index] == t.dims[axis.index]


@rule
def broadcast_of_iota(s: Shape, axis: Axis, d: DType, t: Shape) -> Law:
    """broadcast(iota(s, axis), t) = iota(t, axis), when the axis is not repeated"""
    return rewrites(broadcast(iota(s, axis, d), t), iota(t, axis, d), keeps_axis(s, t, axis))
