"""Laws of windows of pools and convolutions, all of them right."""

from satura.language import (
    Axes,
    Axis,
    Groups,
    Law,
    Padding,
    ReduceFn,
    Slices,
    Tensor,
    TensorType,
    Window,
    attribute_function,
    concat,
    conv,
    pad,
    pool,
    reduce,
    refuse_unless,
    rewrites,
    rule,
    scalar,
    slice_,
)


@attribute_function
def chooses(f: ReduceFn, t: TensorType) -> bool:
    """Whether f takes one of its elements, of numbers."""
    return f.name in ("max", "min") and not t.dtype.is_narrow


@attribute_function
def is_plain(w: Window) -> bool:
    return not w.has_border and all(s == 1 for s in w.strides)


@attribute_function
def joined(a: Window, b: Window) -> Window:
    """The window of a under b: a in steps of 1, both without borders or dilations."""
    refuse_unless(a.rank == b.rank and not a.has_border and not b.has_border, "borders")
    refuse_unless(all(d == 1 for d in (*a.dilations, *b.dilations)), "dilations")
    refuse_unless(all(s == 1 for s in a.strides), "strides")
    sizes = tuple(i + j - 1 for i, j in zip(a.sizes, b.sizes))
    return Window(sizes, b.strides, a.dilations, a.lo, a.hi, a.fill)


@rule
def pool_of_pool(f: ReduceFn, x: Tensor, a: Window, b: Window) -> Law:
    """f-pool(f-pool(x, a), b) = f-pool(x, a and b), for max and min, when a moves in steps of 1"""
    return rewrites(pool(f, pool(f, x, a), b), pool(f, x, joined(a, b)), chooses(f, x.type))


@attribute_function
def single_taps(t: TensorType, w: Window) -> Slices:
    """What a window of one tap without border reads."""
    refuse_unless(w.rank == t.rank and not w.has_border, "a border")
    refuse_unless(all(size == 1 for size in w.sizes), "more taps")
    return Slices((0,) * t.rank, w.outer(t.shape), w.strides)


@attribute_function
def begins_with_unit(f: ReduceFn, t: TensorType) -> bool:
    return not t.dtype.is_narrow and (f.name != "sum" or not t.dtype.is_float)


@rule
def pool_of_single_taps(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = slice(x, strides), when w has one tap and no border, but for sums of floats"""
    return rewrites(pool(f, x, w), slice_(x, single_taps(x.type, w)), begins_with_unit(f, x.type))


@attribute_function
def sees_all(t: TensorType, w: Window) -> bool:
    """Whether the window is as large as t, without border or dilation."""
    return (
        w.rank == t.rank
        and w.sizes == t.shape
        and not w.has_border
        and all(d == 1 for d in w.dilations)
    )


@attribute_function
def all_axes(rank: int) -> Axes:
    return Axes(tuple(range(rank)))


@rule
def pool_of_everything(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = f(x, all axes), for max and min, when the window is as large as x"""
    return rewrites(
        pool(f, x, w), reduce(f, x, all_axes(x.type.rank)), chooses(f, x.type), sees_all(x.type, w)
    )


@attribute_function
def border(w: Window) -> Padding:
    return Padding(w.lo, w.hi)


@attribute_function
def without_border(w: Window) -> Window:
    refuse_unless(w.has_border, "no border")
    none = (0,) * w.rank
    return Window(w.sizes, w.strides, w.dilations, none, none, w.fill)


@rule
def border_out_of_pool(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """f-pool(x, w) = f-pool(pad(x, w's border), w without border)"""
    return rewrites(pool(f, x, w), pool(f, pad(x, scalar(w.fill), border(w)), without_border(w)))


@attribute_function
def with_plain_units(w: Window) -> Window:
    """w with dilations of 1 where it has one tap."""
    dilations = tuple(1 if size == 1 else d for size, d in zip(w.sizes, w.dilations))
    refuse_unless(dilations != w.dilations, "nothing to change")
    return Window(w.sizes, w.strides, dilations, w.lo, w.hi, w.fill)


@rule
def dilation_of_one_tap(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w) = conv(x, w) without dilations along axes of one tap"""
    return rewrites(conv(x, w, k, g), conv(x, w, with_plain_units(k), g))


@attribute_function
def spatial_taps(t: TensorType, k: Window) -> Slices:
    """What a kernel of one tap without border reads, of [n, *spatial, c]."""
    refuse_unless(t.rank == k.rank + 2 and not k.has_border, "a border")
    refuse_unless(all(size == 1 for size in k.sizes), "more taps")
    refuse_unless(any(step > 1 for step in k.strides), "no strides")
    shape = (t.shape[0], *k.outer(t.shape[1:-1]), t.shape[-1])
    return Slices((0,) * t.rank, shape, (1, *k.strides, 1))


@attribute_function
def in_single_steps(k: Window) -> Window:
    return Window(k.sizes, (1,) * k.rank, k.dilations, k.lo, k.hi, k.fill)


@rule
def strides_before_conv(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w) by strides = conv(slice(x, strides), w), when the kernel has one tap and no
    border"""
    return rewrites(
        conv(x, w, k, g), conv(slice_(x, spatial_taps(x.type, k)), w, in_single_steps(k), g)
    )


@attribute_function
def strides_of(t: TensorType, k: Window) -> Slices:
    refuse_unless(t.rank == k.rank + 2)
    refuse_unless(any(step > 1 for step in k.strides), "no strides")
    return Slices((0,) * t.rank, t.shape, (1, *k.strides, 1))


@rule
def strides_after_conv(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w) by strides = slice(conv(x, w) in steps of 1, strides); dilations and borders
    stay"""
    left = conv(x, w, k, g)
    return rewrites(left, slice_(conv(x, w, in_single_steps(k), g), strides_of(left.type, k)))


@attribute_function
def half_groups(g: Groups) -> Groups:
    refuse_unless(g.count >= 2 and g.count % 2 == 0, "an odd number of groups")
    return Groups(g.count // 2)


@attribute_function
def half_of_last(t: TensorType, is_second: bool) -> Slices:
    refuse_unless(t.rank > 0 and isinstance(t.shape[-1], int) and t.shape[-1] % 2 == 0, "odd")
    size = t.shape[-1] // 2
    begin = size if is_second else 0
    rest = t.rank - 1
    return Slices((*(0,) * rest, begin), (*t.shape[:-1], size), (1,) * t.rank)


@attribute_function
def last_axis(rank: int) -> Axis:
    refuse_unless(rank > 0)
    return Axis(rank - 1)


@rule
def groups_in_two_halves(x: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(x, w, g groups) = concat of the convs of either half of the channels, in g / 2 groups"""
    first, second = (
        conv(
            slice_(x, half_of_last(x.type, is_second)),
            slice_(w, half_of_last(w.type, is_second)),
            k,
            half_groups(g),
        )
        for is_second in (False, True)
    )
    return rewrites(conv(x, w, k, g), concat(first, second, last_axis(x.type.rank)))


@attribute_function
def is_last(axis: Axis, rank: int) -> bool:
    return axis.index == rank - 1


@rule
def columns_of_kernels(x: Tensor, w: Tensor, v: Tensor, a: Axis, k: Window) -> Law:
    """conv(x, concat(w, v)) = concat(conv(x, w), conv(x, v)) along the output channels of one
    group"""
    one = Groups(1)
    return rewrites(
        conv(x, concat(w, v, a), k, one),
        concat(conv(x, w, k, one), conv(x, v, k, one), a),
        is_last(a, w.type.rank),
    )


@rule
def batches_of_images(x: Tensor, y: Tensor, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(concat(x, y), w) = concat(conv(x, w), conv(y, w)) along the batch"""
    return rewrites(
        conv(concat(x, y, Axis(0)), w, k, g), concat(conv(x, w, k, g), conv(y, w, k, g), Axis(0))
    )


@attribute_function
def is_spatial_flip(t: TensorType, s: Slices) -> bool:
    return len(s.sizes) == t.rank and all(
        s.sizes[i] == dim
        and (
            (s.starts[i] == dim - 1 and s.steps[i] == -1)
            if 0 < i < t.rank - 1
            else (s.starts[i] == 0 and s.steps[i] == 1)
        )
        for i, dim in enumerate(t.shape)
    )


@attribute_function
def flip_between(t: TensorType, first: int, end: int) -> Slices:
    """The flip of the axes from `first` on, but for the last `end`."""
    here = range(first, t.rank - end)
    return Slices(
        tuple(dim - 1 if i in here else 0 for i, dim in enumerate(t.shape)),
        t.shape,
        tuple(-1 if i in here else 1 for i in range(t.rank)),
    )


@attribute_function
def turned(k: Window) -> Window:
    """k with its borders exchanged; it has to move in steps of 1."""
    refuse_unless(all(s == 1 for s in k.strides), "strides")
    return Window(k.sizes, k.strides, k.dilations, k.hi, k.lo, k.fill)


@rule(reassociates=True)
def conv_of_flipped_image(x: Tensor, s: Slices, w: Tensor, k: Window, g: Groups) -> Law:
    """conv(flip(x), w) = flip(conv(x, flip(w))) along the spatial axes, with lo and hi exchanged,
    in steps of 1"""
    right = conv(x, slice_(w, flip_between(w.type, 0, 2)), turned(k), g)
    return rewrites(
        conv(slice_(x, s), w, k, g),
        slice_(right, flip_between(right.type, 1, 1)),
        is_spatial_flip(x.type, s),
    )
