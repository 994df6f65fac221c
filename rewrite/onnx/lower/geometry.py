"""Kernel, strides, dilations and borders of ONNX's convolutions and pools, resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.types.dims import Dim, SymbolicDim, static


@dataclass(frozen=True)
class Geometry:
    """A window over the spatial axes; a border may be negative, which is a crop."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements the window spans per axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def padded_geometry(
    node: Context, x: int, kernel: Sequence[int], fill: object
) -> tuple[int, Geometry]:
    """x and the node's window; borders that depend on sizes are filled in x, and not the window's.

    ceil_mode is not yet regarded.
    """
    build = node.build
    spatial = build.shape(x)[2:]
    is_same = node.text("auto_pad", "NOTSET").startswith("SAME")
    if not is_same or not any(isinstance(extent, SymbolicDim) for extent in spatial):
        return x, geometry(node, spatial, kernel)
    bare = geometry(node, spatial, kernel, auto="VALID")
    pads, axes = _same_pads(node, spatial, bare), len(kernel)
    lo, hi = ([0, 0, *side] for side in (pads[:axes], pads[axes:]))
    if all(isinstance(amount, int) for amount in pads):
        fixed = tuple(map(static, pads))
        return x, replace(bare, lo=fixed[:axes], hi=fixed[axes:])
    return build.padded(x, build.constant(fill, build.dtype(x)), lo, hi), bare


def kernel_of(node: Context, spatial: Sequence[Dim]) -> tuple[int, ...]:
    """The extents of a kernel: open ones are what the attribute says, else what they are at some
    sizes."""
    for dim, number in zip(spatial, node.integers("kernel_shape") or (), strict=False):
        node.build.need_if_possible(dim, number)
    return node.static(spatial, "the kernel's shape")


def geometry(
    node: Context, spatial: Sequence[Dim], kernel: Sequence[int], auto: str | None = None
) -> Geometry:
    """The node's window, with pads from `pads` or `auto_pad`, ceil_mode not yet regarded."""
    axes = len(kernel)
    strides = node.integers("strides") or (1,) * axes
    dilations = node.integers("dilations") or (1,) * axes
    pads = node.integers("pads") or (0,) * (2 * axes)
    given = node.integers("kernel_shape") or tuple(kernel)
    if tuple(given) != tuple(kernel):
        raise node.wrong(f"kernel_shape is {list(given)}, the weights have {list(kernel)}")
    if len(spatial) != axes or len(strides) != axes or len(dilations) != axes:
        raise node.wrong(f"{axes} kernel axes do not fit {len(spatial)} spatial axes and strides")
    if len(pads) != 2 * axes or min(*kernel, *strides, *dilations) < 1:
        raise node.wrong("kernel, strides and dilations must be positive, pads two per axis")
    auto = node.text("auto_pad", "NOTSET") if auto is None else auto
    if auto == "VALID":
        pads = (0,) * (2 * axes)
    for extent, lo, hi in zip(spatial, pads, pads[axes:], strict=False):
        if isinstance(extent, int) and extent + min(0, lo) + min(0, hi) < 0:
            raise node.wrong(
                f"pads of {lo} and {hi} take more than the {extent} elements there are"
            )
    window = Geometry(tuple(kernel), strides, dilations, pads[:axes], pads[axes:])
    if auto.startswith("SAME"):
        same = node.static(_same_pads(node, spatial, window), "a spatial extent under auto_pad")
        return replace(window, lo=same[:axes], hi=same[axes:])
    return window


def _same_pads(node: Context, spatial: Sequence[Dim], window: Geometry) -> tuple[Dim, ...]:
    """Pads such that the result has ceil(extent / stride) elements."""
    upper = node.text("auto_pad") == "SAME_UPPER"
    lo: list[Dim] = []
    hi: list[Dim] = []
    for extent, reach, stride in zip(spatial, window.reach, window.strides, strict=True):
        total: Dim = reach - 1
        if stride != 1 and reach != 1:
            total = ((extent + (stride - 1)) // stride - 1) * stride + reach - extent
        if isinstance(total, int):
            total = max(0, total)
        elif reach < stride:
            lo.append(_gaps_before(extent, stride, reach if upper else reach + 1))
            hi.append((extent + (stride - 1)) // stride * stride - extent - lo[-1])
            continue
        smaller = total // 2
        lo.append(smaller if upper else total - smaller)
        hi.append(total - lo[-1])
    return (*lo, *hi)


def _gaps_before(extent: Dim, stride: int, reach: int) -> Dim:
    """Half of what windows reach beyond their last stride, rounded down; 0 where they do not.

    That stride has 1 to `stride` elements of the extent. It has at most k where one more multiple
    of the stride lies among `stride` - k further elements.
    """
    total: Dim = 0
    for most in range(reach - 2, 0, -2):
        total += 1 - (extent + (stride - most - 1)) // stride + (extent - 1) // stride
    return total
