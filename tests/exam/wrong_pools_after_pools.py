"""Laws of pools after pools, all of them wrong."""

from dataclasses import replace

from satura.language import (
    Law,
    ReduceFn,
    Refuse,
    Tensor,
    Window,
    attribute_function,
    pool,
    refuse_unless,
    rewrites,
    rule,
)


@attribute_function
def joined(f: ReduceFn, v: Window, w: Window) -> Window:
    """One window that sees what w sees of v's results."""
    if f.name not in ("max", "min") or v.has_border or w.has_border:
        raise Refuse("sums count what is seen twice, and borders differ")
    if any(n != 1 for n in (*v.dilations, *w.dilations)) or v.rank != w.rank:
        raise Refuse("windows with holes")
    sizes = tuple(a + s * (b - 1) for a, s, b in zip(v.sizes, v.strides, w.sizes, strict=True))
    strides = tuple(a * b for a, b in zip(v.strides, w.strides, strict=True))
    return Window(sizes, strides, v.dilations, v.lo, v.hi, v.fill)


# f = min, x = i16[3] [1, 0, 1], v = size 1 in steps of 2, w = size 2 in steps of 1: v steps over
# the 0 and sees [1, 1], whose min is 1; the window of size 3 in steps of 2 sees the 0, too.
@rule
def join_pools(f: ReduceFn, x: Tensor, v: Window, w: Window) -> Law:
    """pool(pool(x, v), w) = pool(x, v and w), for max and min, without borders and dilations"""
    left, right = pool(f, pool(f, x, v), w), pool(f, x, joined(f, v, w))
    return rewrites(left, right, left.type == right.type)


@attribute_function
def chooses(f: ReduceFn) -> bool:
    return f.name in ("max", "min")


@attribute_function
def composed(a: Window, b: Window) -> Window:
    """The window over what b sees of a's results: without borders and dilations."""
    refuse_unless(not a.has_border and not b.has_border)
    refuse_unless(set(a.dilations + b.dilations) <= {1})
    sizes = tuple(
        m + (n - 1) * step for m, n, step in zip(a.sizes, b.sizes, a.strides, strict=True)
    )
    strides = tuple(m * n for m, n in zip(a.strides, b.strides, strict=True))
    for size, step in zip(a.sizes, a.strides, strict=True):
        refuse_unless(step <= size, "elements between the windows are not seen")
    return replace(a, sizes=sizes, strides=strides)


# f = max, x = f32[2m + 4], a = size 2 in steps of 2, b = size 3 in steps of 1: at m = 0 the inner
# pool has 2 places, which is one less than b takes: the left side has no elements. The window of
# both has size 6, which is more than one too long for 4 elements: the right side is ill typed.
@rule
def compose_pools(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """pool(f, pool(f, x, a), b) = pool(f, x, a then b) for max and min, when a leaves no gaps"""
    left = pool(f, pool(f, x, a), b)
    right = pool(f, x, composed(a, b))
    return rewrites(left, right, chooses(f), left.type == right.type)


@attribute_function
def tiled(a: Window, b: Window) -> Window:
    """The window of b's tiles, each a window of a: a stands side by side."""
    refuse_unless(not a.has_border and not b.has_border and a.sizes == a.strides)
    refuse_unless(set(a.dilations + b.dilations) <= {1})
    sizes = tuple(m * n for m, n in zip(a.sizes, b.sizes, strict=True))
    strides = tuple(m * n for m, n in zip(a.strides, b.strides, strict=True))
    return replace(a, sizes=sizes, strides=strides)


# x = i8[4m + 2], a = size 2 in steps of 2, b = size 2 in steps of 1: at m = 0 the inner pool has 1
# place, which is one less than b takes: the left side has no elements. The tiles have size 4, which
# is more than one too long for 2 elements: the right side is ill typed.
@rule
def sums_of_tiles(x: Tensor, a: Window, b: Window) -> Law:
    """pool(sum, pool(sum, x, a), b) = pool(sum, x, tiles) on integers, when a's windows touch"""
    left = pool("sum", pool("sum", x, a), b)
    right = pool("sum", x, tiled(a, b))
    return rewrites(left, right, x.type.dtype.is_integer, left.type == right.type)
