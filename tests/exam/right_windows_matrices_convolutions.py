"""Laws of windows, matrices and convolutions, all of them right."""

import typing

from satura.language import (
    Axes,
    Axis,
    Dim,
    Groups,
    Law,
    ReduceFn,
    Slices,
    Tensor,
    TensorType,
    Window,
    attention,
    attribute_function,
    binary,
    concat,
    conv,
    matmul,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    slice_,
)


@attribute_function
def chooses(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def composed(a: Window, b: Window) -> Window:
    """The window of both, which move in steps of 1 and have neither borders nor dilations."""
    refuse_unless(a.rank == b.rank, "ranks differ")
    refuse_unless(not a.has_border and not b.has_border, "a border")
    ones = (1,) * a.rank
    refuse_unless(a.strides == b.strides == a.dilations == b.dilations == ones, "steps")
    sizes = tuple(k + j - 1 for k, j in zip(a.sizes, b.sizes))
    return Window(sizes, ones, ones, a.lo, a.hi, a.fill)


@rule
def compose_pools(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(f, pool(f, x, a), b) = pool(f, x, a and b) for max and min, without steps, dilations and
    borders"""
    return rewrites(pool(f, pool(f, x, a), b), pool(f, x, composed(a, b)), chooses(f))


def _along(w: Window, kept: set[int]) -> Window:
    def part(values: tuple[int, ...], neutral: int) -> tuple[int, ...]:
        return tuple(n if i in kept else neutral for i, n in enumerate(values))

    return Window(
        part(w.sizes, 1),
        part(w.strides, 1),
        part(w.dilations, 1),
        part(w.lo, 0),
        part(w.hi, 0),
        w.fill,
    )


@attribute_function
def on_first(w: Window) -> Window:
    refuse_unless(w.rank > 1 and w.sizes[0] > 1 and max(w.sizes[1:]) > 1, "one axis in all")
    return _along(w, {0})


@attribute_function
def on_others(w: Window) -> Window:
    return _along(w, set(range(1, w.rank)))


@rule
def separate_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, pool(f, x, w on the first axis), w on the others) for max and min,
    with steps, dilations and borders"""
    return rewrites(pool(f, x, w), pool(f, pool(f, x, on_first(w)), on_others(w)), chooses(f))


@attribute_function
def covers(x: TensorType, w: Window) -> bool:
    """Whether the window is x, so that it has one position."""
    return w.sizes == x.shape and set(w.dilations) <= {1} and not w.has_border


@attribute_function
def any_order(f: ReduceFn, x: TensorType) -> bool:
    """Whether the order of f's steps does not matter, of numbers that have arithmetic."""
    return (f.name in ("max", "min") or x.dtype.is_integer) and not x.dtype.is_narrow


@attribute_function
def all_axes(type_: TensorType) -> Axes:
    return Axes(tuple(range(type_.rank)))


@rule
def pool_of_whole(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = f(x, all axes), when w is as large as x, in whatever steps, and no sum of
    floats is reordered"""
    return rewrites(
        pool(f, x, w), reduce(f, x, all_axes(x.type)), covers(x.type, w), any_order(f, x.type)
    )


@rule
def associate_products(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x y) z = x (y z) for matrices of integers, modulo 2^n"""
    return rewrites(matmul(matmul(x, y), z), matmul(x, matmul(y, z)), x.type.dtype.is_integer)


T = typing.TypeVar("T")


def _but(s: Slices, at: int, dim: Dim) -> Slices:
    """s, but everything along an axis."""

    def part(values: tuple[T, ...], value: T) -> tuple[T, ...]:
        return tuple(value if i == at else n for i, n in enumerate(values))

    return Slices(part(s.starts, 0), part(s.sizes, dim), part(s.steps, 1))


@attribute_function
def of_rows(s: Slices, x: TensorType) -> Slices:
    return _but(s, x.rank - 1, x.shape[-1])


@attribute_function
def of_columns(s: Slices, y: TensorType) -> Slices:
    return _but(s, y.rank - 2, y.shape[-2])


@rule
def slice_into_product(x: Tensor, y: Tensor, s: Slices) -> Law:
    """slice(x y, s) = slice(x, batch and rows of s) slice(y, batch and columns of s)"""
    return rewrites(
        slice_(matmul(x, y), s),
        matmul(slice_(x, of_rows(s, x.type)), slice_(y, of_columns(s, y.type))),
    )


@rule
def sum_of_kernels(x: Tensor, w: Tensor, v: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) + conv(x, v) = conv(x, w + v) on integers, whatever the border"""
    return rewrites(
        binary("add", conv(x, w, window, g), conv(x, v, window, g)),
        conv(x, binary("add", w, v), window, g),
        x.type.dtype.is_integer,
    )


@rule
def split_outputs(x: Tensor, w: Tensor, v: Tensor, axis: Axis, window: Window, g: Groups) -> Law:
    """conv(x, concat(w, v)) = concat(conv(x, w), conv(x, v)) along the output channels, of one
    group"""
    return rewrites(
        conv(x, concat(w, v, axis), window, g),
        concat(conv(x, w, window, g), conv(x, v, window, g), axis),
        axis.index == x.type.rank - 1,
        g.count == 1,
    )


@attribute_function
def without_steps(w: Window) -> Window:
    refuse_unless(any(step > 1 for step in w.strides), "no steps")
    return Window(w.sizes, (1,) * w.rank, w.dilations, w.lo, w.hi, w.fill)


@attribute_function
def by_steps(result: TensorType, w: Window) -> Slices:
    return Slices((0,) * result.rank, result.shape, (1, *w.strides, 1))


@rule
def steps_of_conv(x: Tensor, w: Tensor, window: Window, g: Groups) -> Law:
    """conv(x, w) = slice(conv without steps, by steps), when the window moves in steps"""
    strided = conv(x, w, window, g)
    return rewrites(
        strided,
        slice_(conv(x, w, without_steps(window), g), by_steps(strided.type, window)),
    )


@rule(reassociates=True)
def split_queries(
    q: Tensor, r: Tensor, k: Tensor, b: Tensor, c: Tensor, v: Tensor, a: Axis, e: Axis
) -> Law:
    """attention(concat(q, r), k, concat(b, c), v) = concat(attention(q, k, b, v), attention(r, k,
    c, v)) along the queries, up to rounding"""
    return rewrites(
        attention(concat(q, r, a), k, concat(b, c, e), v),
        concat(attention(q, k, b, v), attention(r, k, c, v), a),
        a.index == e.index,
        a.index == q.type.rank - 2,
        q.type.shape[-2] == b.type.shape[-2],
    )
