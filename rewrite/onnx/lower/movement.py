"""Lowerings of ops that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.broadcasting import may_be_equal
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.slice_bounds import (
    FAR,
    clamped_bounds,
    hold_at_typical_sizes,
    slice_bounds,
)
from satura.rewrite.onnx.lower.staying import open_along
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    product,
)
from satura.rewrite.types.tensor_type import TensorType


@lowering("Transpose")
def transpose(node: Context) -> int:
    """Axes in another order; by default reversed."""
    perm = node.integers("perm")
    return node.build.transpose(
        node[0], perm if perm is not None else range(node.build.rank(node[0]))[::-1]
    )


@lowering("Reshape")
def reshape(node: Context) -> int:
    """Another shape; 0 copies a dim (unless allowzero), -1 takes what is left.

    Where -1 makes room for a dim to be copied at some sizes, a saved model keeps the node.
    """
    old = node.build.shape(node[0])
    target = list(node.dims(1))
    copying: list[int] = []  # axes that are copied at some sizes
    for axis, dim in enumerate(target):
        if node.integer("allowzero"):
            continue
        if dim == 0:
            if axis >= len(old):
                raise node.wrong(f"axis {axis} of its shape is 0, but the input has no such axis")
            target[axis] = old[axis]
        elif isinstance(dim, SymbolicDim) and not _zero_with(dim, old[axis:]):
            node.build.need_at_least(dim, 1)  # for calls where it is 0, another dim is copied
            copying += [axis][: len(old) - axis]
    open_axes = [axis for axis, dim in enumerate(target) if dim == -1]
    if len(open_axes) > 1:
        raise node.wrong("its shape has more than one -1")
    if any(isinstance(dim, int) and dim < -1 for dim in target):
        raise node.wrong(f"its shape {target} has a negative dim")
    if open_axes:
        rest, split = list(old), [dim for dim in target if dim != -1]
        for dim in [dim for dim in split if isinstance(dim, SymbolicDim) and dim in old]:
            if dim in rest:  # what is on both sides cancels
                rest.remove(dim)
                split.remove(dim)
        target[open_axes[0]] = _left_over(node, product(rest), product(split))
        if copying and node.build.for_all_sizes:
            reason = f"where axis {copying[0]} of its shape is 0, its input's extent is copied"
            type_ = TensorType(node.build.dtype(node[0]), tuple(target))
            raise open_along(node, reason, type_, [*copying, *open_axes])
    return node.build.reshape(node[0], target)


def _zero_with(dim: Dim, old: Sequence[Dim]) -> bool:
    """Whether `dim` is 0 only where the first of `old` is, which then copies as 0."""
    if known_at_least(dim, 1) or not old:
        return known_at_least(dim, 1)
    times = exact_quotient(dim, old[0])
    return exact_quotient(old[0], dim) is not None or (isinstance(times, int) and times != 0)


def _left_over(node: Context, size: Dim, rest: Dim) -> Dim:
    """What -1 stands for; calls where the elements do not split so are refused."""
    if rest == 0:
        raise node.wrong("its shape has both 0 and -1")
    quotient = exact_quotient(size, rest)
    if quotient is not None:
        return quotient
    if isinstance(size, SymbolicDim) or isinstance(rest, SymbolicDim):
        return size // rest  # which is taken for even, as all that is reshaped has as many elements
    raise node.wrong(f"{size} elements do not split into parts of {rest}")


@lowering("Flatten")
def flatten(node: Context) -> int:
    """Two axes: what is before `axis`, and the rest."""
    shape = node.build.shape(node[0])
    axis = node.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise node.wrong(f"axis {axis} is out of range for rank {len(shape)}")
    axis = axis + len(shape) if axis < 0 else axis
    return node.build.reshape(node[0], (product(shape[:axis]), product(shape[axis:])))


def _axes_operand(node: Context) -> tuple[int, ...] | None:
    """Axes from the attribute, or from the second input since opset 13."""
    if node.opset < 13:
        return node.integers("axes")
    return None if node.optional(1) is None else node.fixed(1)


@lowering("Squeeze")
def squeeze(node: Context) -> int:
    """Axes of extent 1 dropped; a named one whose extent is open is taken to have it.

    Where none is named, open ones that are longer at the sizes of the program stay.
    """
    shape = node.build.shape(node[0])
    given = _axes_operand(node)
    if given is None:
        axes = tuple(axis for axis, dim in enumerate(shape) if _is_single(node, dim))
    else:
        axes = node.axes(given, len(shape))
    x = node[0]
    for axis in axes:
        if may_be_equal(shape[axis], 1):
            node.build.need_equal(shape[axis], 1)
            x = node.build.one_axis_slice(x, axis, 0, 1)
        elif shape[axis] != 1:
            raise node.wrong(f"axis {axis} has extent {shape[axis]}, not 1")
    return node.build.drop(x, axes)


def _is_single(node: Context, dim: Dim) -> bool:
    """Whether an extent is 1; of an open one as it is at some sizes."""
    if not may_be_equal(dim, 1) or known_at_least(dim, 2):
        return dim == 1
    if node.build.for_all_sizes:
        reason = f"it has no axes, and whether it drops one depends on the size {dim}"
        raise node.unknown(f"{reason}; name the axes")
    is_single = node.build.at_likely_sizes(dim) == 1
    if not is_single:
        node.build.need_at_least(dim, 2)  # no elements are kept, too, in another program
    return is_single


@lowering("Unsqueeze")
def unsqueeze(node: Context) -> int:
    """New axes of extent 1."""
    given = _axes_operand(node)
    if given is None:
        raise node.wrong("axes are missing")
    shape = list(node.build.shape(node[0]))
    for axis in node.axes(given, len(shape) + len(given)):
        shape.insert(axis, 1)
    return node.build.reshape(node[0], shape)


@lowering("Expand")
def expand(node: Context) -> int:
    """NumPy broadcasting with a shape."""
    build, asked = node.build, node.extents(1)
    target = build.common_shape(build.shape(node[0]), asked)
    for dim, taken in zip(asked, target[len(target) - len(asked) :], strict=True):
        if dim != 1 and may_be_equal(dim, taken):
            build.need_broadcast(dim, taken)  # else only the operand's extent would be looked at
    return build.expand(node[0], target)


@lowering("Tile")
def tile(node: Context) -> int:
    """Each axis split in (repeats, extent), broadcast, and joined again."""
    build, x = node.build, node[0]
    shape, repeats = build.shape(x), node.extents(1)
    if len(repeats) != len(shape):
        raise node.wrong(f"{len(repeats)} repeats for rank {len(shape)}")
    pairs = [(dim, count) for dim, count in zip(shape, repeats, strict=True)]
    split = build.reshape(x, [extent for dim, _ in pairs for extent in (1, dim)])
    spread = build.broadcast(split, [extent for dim, count in pairs for extent in (count, dim)])
    return build.reshape(spread, [count * dim for dim, count in pairs])


@lowering("Concat")
def concat(node: Context) -> int:
    """Operands one after another, as a left-nested chain."""
    node.common_dtype(*node.given)
    return node.build.concat(node.given, node.axis(node.integer("axis"), node.build.rank(node[0])))


@lowering("Split")
def split(node: Context) -> list[int]:
    """One slice per output."""
    build, x = node.build, node[0]
    axis = node.axis(node.integer("axis"), build.rank(x))
    extent = build.shape(x)[axis]
    count = len(node.proto.output)
    sizes: tuple[Dim, ...]
    if node.opset < 13 and node.has("split"):
        sizes = node.integers("split") or ()
    elif node.opset >= 13 and node.optional(1) is not None:
        sizes = node.extents(1)
    else:
        sizes = _equal_parts(node, extent, count)
    if len(sizes) != count:
        raise node.wrong(f"{len(sizes)} parts for {count} outputs")
    return parts(node, axis, sizes)


def parts(node: Context, axis: int, sizes: Sequence[Dim]) -> list[int]:
    """Slices of operand 0 along an axis, one after another; it is taken to have no more."""
    build, x = node.build, node[0]
    extent = build.shape(x)[axis]
    total: Dim = 0
    starts: list[Dim] = []
    for size in sizes:
        starts.append(total)
        total = total + size
    if total != extent and not may_be_equal(total, extent):
        raise node.wrong(f"its parts add up to {total}, the axis has {extent}")
    if total != extent:
        build.need_equal(total, extent)
    return [
        build.one_axis_slice(x, axis, start, size)
        for start, size in zip(starts, sizes, strict=True)
    ]


def _equal_parts(node: Context, extent: Dim, count: int) -> tuple[Dim, ...]:
    """As many as outputs; the last may be smaller where opset 18's num_outputs says how many.

    Without it onnxruntime refuses a fixed extent, and splits an open one evenly.
    """
    if node.has("num_outputs") and node.integer("num_outputs") != count:
        raise node.wrong(f"num_outputs is {node.integer('num_outputs')}, it has {count} outputs")
    give = "sizes as input 'split'" if node.opset >= 13 else "sizes as attribute 'split'"
    if node.opset >= 18 and not node.has("num_outputs"):
        give = f"num_outputs={count}, and the last part may be smaller, or {give}"
        if isinstance(extent, int):
            raise node.wrong(f"it has neither sizes nor num_outputs: give {give}")
    part = exact_quotient(extent, count)
    if part is not None:
        return (part,) * count
    if node.opset < 18 or not node.has("num_outputs"):
        whole = extent // count * count
        if not may_be_equal(whole, extent):
            raise node.wrong(
                f"extent {extent} does not split into {count} equal parts: give {give}"
            )
        node.build.need_equal(whole, extent)
    part = (extent + (count - 1)) // count
    last = extent - part * (count - 1)
    if isinstance(last, int) and last < 0:
        raise node.wrong(
            f"num_outputs {count} does not fit extent {extent}: after parts of {part} the last has"
            f" {last}; give sizes as input 'split'"
        )
    return (*(part,) * (count - 1), last)


@lowering("Slice")
def slice_(node: Context) -> int:
    """Starts, ends and steps per axis, clamped to the axis.

    Where a clamp depends on sizes, the bound is taken as it is, and calls for which it would have
    to be clamped need another program, which has the clamp in its extents. In a program for all
    sizes a node stays where no extents have it.
    """
    build, x = node.build, node[0]
    shape = build.shape(x)
    steps: tuple[int, ...] | None = None
    starts: tuple[Dim, ...]
    ends: tuple[Dim, ...]
    if node.opset < 10:
        starts, ends = node.integers("starts") or (), node.integers("ends") or ()
        axes = node.integers("axes")
    else:
        starts, ends = node.dims(1), node.dims(2)
        axes = None if node.optional(3) is None else node.fixed(3)
        steps = None if node.optional(4) is None else node.fixed(4)
    axes = tuple(range(len(starts))) if axes is None else axes
    node.axes(axes, len(shape))  # raises where one comes twice
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.wrong("starts, ends, axes and steps have different lengths")
    first: list[Dim] = [0] * len(shape)
    sizes, strides = list(shape), [1] * len(shape)
    opened: list[int] = []  # axes for which a saved model has no formula
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = node.axis(axis, len(shape))
        if step == 0:
            raise node.wrong("a step is 0")
        step = max(-FAR, min(step, FAR))
        first[at], sizes[at], natural = slice_bounds(shape[at], start, end, step)
        strides[at] = step
        is_clamped = natural and (build.clamps or not hold_at_typical_sizes(natural))
        clamped = clamped_bounds(shape[at], start, end, step) if is_clamped else None
        if clamped is not None:
            (first[at], sizes[at]), natural = clamped, []
        elif natural and build.for_all_sizes:
            opened.append(at)
        for dim in natural:
            build.need_at_least(dim, 0)
    if opened:
        reason = f"how many elements it takes of axis {opened[0]} has no formula for all sizes"
        raise open_along(node, reason, TensorType(build.dtype(x), tuple(sizes)), opened)
    return build.slice(x, first, sizes, strides)


@lowering("DepthToSpace")
def depth_to_space(node: Context) -> int:
    """Channels spread over blocks of pixels (DCR or CRD order)."""
    build, x = node.build, node[0]
    n, c, h, w = _image(node)
    block = node.integer("blocksize")
    deep = _left_over(node, c, block * block)
    if node.text("mode", "DCR") == "DCR":
        split = build.reshape(x, (n, block, block, deep, h, w))
        moved = build.transpose(split, (0, 3, 4, 1, 5, 2))
    else:
        split = build.reshape(x, (n, deep, block, block, h, w))
        moved = build.transpose(split, (0, 1, 4, 2, 5, 3))
    return build.reshape(moved, (n, deep, h * block, w * block))


@lowering("SpaceToDepth")
def space_to_depth(node: Context) -> int:
    """Blocks of pixels gathered into channels (DCR or CRD order)."""
    build, x = node.build, node[0]
    n, c, h, w = _image(node)
    block = node.integer("blocksize")
    high, wide = _left_over(node, h, block), _left_over(node, w, block)
    split = build.reshape(x, (n, c, high, block, wide, block))
    depth_first = node.text("mode", "DCR") == "DCR"
    moved = build.transpose(split, (0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))
    return build.reshape(moved, (n, c * (block * block), high, wide))


def _image(node: Context) -> tuple[Dim, Dim, Dim, Dim]:
    shape = node.build.shape(node[0])
    if len(shape) != 4 or node.integer("blocksize") < 1:
        raise node.wrong(f"it needs a rank-4 input and a positive blocksize, not {list(shape)}")
    n, c, h, w = shape
    return n, c, h, w
