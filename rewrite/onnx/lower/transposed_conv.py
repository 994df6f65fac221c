"""ConvTranspose: every phase of the result is a convolution of its own, or of many all are one.

Position q of the result, with `lo` cut off before it, gets x[o] · w[t] where o · stride + t ·
dilation = q + lo. So results that are `stride` apart see the same taps of neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from math import gcd, prod

from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.contraction import add_bias, channels_last
from satura.rewrite.onnx.lower.geometry import Geometry, kernel_of
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, known_at_least

MOST_PHASES = 16  # more are one convolution, whose kernel is filled up to whole strides


@dataclass(frozen=True)
class _Phase:
    """What every so-manieth result of one axis sees: `taps` of the kernel, from the `last` one on.

    The first result sees positions from -`lo` on, the last one up to `hi` beyond the end.
    """

    last: int
    step: int
    taps: int
    dilation: int
    lo: int
    hi: int


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: `cut` results are left out in front, and the last one that there is stands
    `end` after the place of the last element."""

    extent: Dim
    kernel: int
    stride: int
    dilation: int
    cut: int
    end: int

    @property
    def results(self) -> Dim:
        """How many there are."""
        return (self.extent - 1) * self.stride + 1 - self.cut + self.end

    @property
    def per_phase(self) -> Dim:
        """How many results a phase has, the last one maybe in excess."""
        return self.extent + self._more

    @property
    def _more(self) -> int:
        """How many more results a phase has than there are elements."""
        return -((self.cut - self.end - 1) // self.stride) - 1

    def phase(self, phase: int) -> _Phase | None:
        """What results phase, phase + stride, … see; None where they see no element."""
        place = phase + self.cut
        seen = [t for t in range(self.kernel) if (place - t * self.dilation) % self.stride == 0]
        if not seen:
            return None
        first, last = ((place - tap * self.dilation) // self.stride for tap in (seen[-1], seen[0]))
        reaches = self.per_phase - 1 + last
        if isinstance(self.extent, int) and (first >= self.extent or known_at_least(-reaches, 1)):
            return None
        common = gcd(self.stride, self.dilation)
        return _Phase(
            seen[-1], self.stride // common, len(seen), self.dilation // common, -first,
            self._more + last,
        )  # fmt: skip


@lowering("ConvTranspose")
def conv_transpose(node: Context) -> int:
    """Convolutions with the taps of one phase each, their results interleaved."""
    build, x, w = node.build, node[0], node[1]
    rank = build.rank(x)
    if rank < 3 or build.rank(w) != rank:
        raise node.wrong(
            f"input has rank {rank}, weights have rank {build.rank(w)}; expected n, c, …"
        )
    build.need_if_possible(build.shape(x)[1], build.shape(w)[0])
    kernel = kernel_of(node, build.shape(w)[2:])
    spatial = build.shape(x)[2:]
    strides = node.integers("strides") or (1,) * len(kernel)
    dilations = node.integers("dilations") or (1,) * len(kernel)
    extra = node.integers("output_padding") or (0,) * len(kernel)
    lengths = {len(strides), len(dilations), len(extra)}
    if lengths != {len(kernel)} or min(*strides, *dilations) < 1:
        raise node.wrong(f"strides, dilations and output_padding do not fit the kernel {kernel}")
    reach = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    lo, hi = _transposed_pads(node, spatial, reach, strides, extra)
    ends = [r - b + e for r, b, e in zip(reach, hi, extra, strict=True)]
    last = build.transpose(x, (0, *range(2, rank), 1))
    groups = node.integer("group", 1)
    weights = _weights(node, w, groups)
    parameters = zip(spatial, kernel, strides, dilations, lo, ends, strict=True)
    axes = [_Axis(*each) for each in parameters]
    lowered = _at_once if prod(strides) > MOST_PHASES else _interleave
    result = lowered(build, last, weights, axes, groups)
    result = build.transpose(result, (0, rank - 1, *range(1, rank - 1)))
    bias = node.optional(2)
    return result if bias is None else add_bias(build, result, bias)


def _interleave(build: Tensors, x: int, weights: int, axes: Sequence[_Axis], groups: int) -> int:
    """The results of all phases, side by side along new axes, as one tensor."""
    n, channels = build.shape(x)[0], build.shape(weights)[-1]
    alone = [n, *(dim for axis in axes for dim in (axis.per_phase, 1)), channels]
    parts = []
    for phases in every(*([axis.phase(at) for at in range(axis.stride)] for axis in axes)):
        part = _of_phase(build, x, weights, axes, phases, groups)
        parts.append(build.reshape(part, alone))
    for place in reversed(range(len(axes))):
        step = axes[place].stride
        rows = [parts[at : at + step] for at in range(0, len(parts), step)]
        parts = [build.concat(row, 2 * place + 2) for row in rows]
    whole = [n, *(axis.per_phase * axis.stride for axis in axes), channels]
    results = [n, *(axis.results for axis in axes), channels]
    joined = build.reshape(parts[0], whole)
    return joined if whole == results else build.slice(joined, [0] * len(whole), results)


def _of_phase(
    build: Tensors, x: int, weights: int, axes: Sequence[_Axis],
    phases: Sequence[_Phase | None], groups: int,
) -> int:  # fmt: skip
    """The results of one phase."""
    found = [phase for phase in phases if phase is not None]
    *_, inner, channels = build.shape(weights)
    if len(found) < len(phases):
        shape = [build.shape(x)[0], *(axis.per_phase for axis in axes), channels]
        return build.full(0, shape, build.dtype(x))
    taps = tuple(phase.taps for phase in found)
    steps = [*(-phase.step for phase in found), 1, 1]
    starts = [*(phase.last for phase in found), 0, 0]
    window = Geometry(
        taps, (1,) * len(taps), tuple(phase.dilation for phase in found),
        tuple(phase.lo for phase in found), tuple(phase.hi for phase in found),
    )  # fmt: skip
    seen = build.slice(weights, starts, [*taps, inner, channels], steps)
    return channels_last(build, x, seen, window, groups)


def _at_once(build: Tensors, x: int, weights: int, axes: Sequence[_Axis], groups: int) -> int:
    """One convolution, whose channels are those of all phases, moved to where the phases stand."""
    strides = [axis.stride for axis in axes]
    w, taps = _by_phase(build, weights, axes, groups)
    first = [axis.cut // axis.stride for axis in axes]  # of the strides that hold a result
    window = Geometry(
        taps, (1,) * len(taps), (1,) * len(taps),
        tuple(count - 1 - begin for count, begin in zip(taps, first, strict=True)),
        tuple(axis.end // axis.stride for axis in axes),
    )  # fmt: skip
    found = channels_last(build, x, w, window, groups)
    n, *held, _ = build.shape(found)
    channels = build.shape(weights)[-1]
    split = build.reshape(found, [n, *held, groups, *strides, channels // groups])
    rank = len(axes)
    places = [place for at in range(1, rank + 1) for place in (at, rank + 1 + at)]
    moved = build.transpose(split, (0, *places, rank + 1, 2 * rank + 2))
    whole = [extent * stride for extent, stride in zip(held, strides, strict=True)]
    joined = build.reshape(moved, [n, *whole, channels])
    starts = [axis.cut - at * axis.stride for axis, at in zip(axes, first, strict=True)]
    return build.slice(joined, [0, *starts, 0], [n, *(axis.results for axis in axes), channels])


def _by_phase(
    build: Tensors, weights: int, axes: Sequence[_Axis], groups: int
) -> tuple[int, tuple[int, ...]]:
    """Weights [*kernel, c, oc] with the taps of each phase in channels of its own, the last tap
    first, and how many taps these are per axis."""
    rank, strides = len(axes), [axis.stride for axis in axes]
    inner, channels = build.shape(weights)[rank:]
    reach = [axis.dilation * (axis.kernel - 1) + 1 for axis in axes]
    taps = [-(-extent // stride) for extent, stride in zip(reach, strides, strict=True)]
    spread = _spread(build, weights, [axis.dilation for axis in axes])
    more = [
        count * stride - extent for count, stride, extent in zip(taps, strides, reach, strict=True)
    ]
    zero = build.constant(0, build.dtype(weights))
    full = build.padded(spread, zero, [0] * (rank + 2), [*more, 0, 0])
    by_stride = [size for pair in zip(taps, strides, strict=True) for size in pair]
    shape = [*by_stride, inner, groups, channels // groups]
    split = build.reshape(full, shape)
    last = [size - 1 if at % 2 == 0 and at < 2 * rank else 0 for at, size in enumerate(shape)]
    steps = [-1 if at % 2 == 0 and at < 2 * rank else 1 for at in range(len(shape))]
    flipped = build.slice(split, last, shape, steps)
    kernel, phases = range(0, 2 * rank, 2), range(1, 2 * rank, 2)
    moved = build.transpose(flipped, (*kernel, 2 * rank, 2 * rank + 1, *phases, 2 * rank + 2))
    return build.reshape(moved, [*taps, inner, prod(strides) * channels]), tuple(taps)


def _transposed_pads(
    node: Context,
    spatial: Sequence[Dim],
    reach: Sequence[int],
    strides: Sequence[int],
    extra: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Borders cut off the full result, from pads, output_shape or auto_pad."""
    axes = len(reach)
    pads = node.integers("pads") or (0,) * (2 * axes)
    auto = node.text("auto_pad", "NOTSET")
    wanted = node.integers("output_shape")
    if len(pads) != 2 * axes or (wanted is not None and len(wanted) < axes):
        raise node.wrong(f"pads or output_shape do not fit {axes} kernel axes")
    if wanted is None and not auto.startswith("SAME"):
        return list(pads[:axes]), list(pads[axes:])
    lo, hi = [], []
    for axis in range(axes):
        total = extra[axis] + reach[axis] + 1 - strides[axis]  # results beyond extent · stride
        if wanted is not None:
            (extent,) = node.static(spatial[axis : axis + 1], "the spatial extents")
            total += extent * strides[axis] - wanted[len(wanted) - axes + axis]
        smaller = total // 2
        first = smaller if auto == "SAME_UPPER" else total - smaller
        lo.append(first)
        hi.append(total - first)
    return lo, hi


def _weights(node: Context, w: int, groups: int) -> int:
    """Weights [c, oc/g, *kernel] as [*kernel, c/g, oc]."""
    build = node.build
    channels, width, *kernel = node.static(build.shape(w), "the weights' shape")
    if groups < 1 or channels % groups:
        raise node.wrong(f"{channels} channels do not split into {groups} groups")
    axes = range(3, 3 + len(kernel))
    split = build.reshape(w, (groups, channels // groups, width, *kernel))
    moved = build.transpose(split, (*axes, 1, 0, 2))
    return build.reshape(moved, (*kernel, channels // groups, groups * width))


def _spread(build: Tensors, weights: int, dilations: Sequence[int]) -> int:
    """Weights [*kernel, c, oc] with dilation - 1 zeros between the taps of each axis."""
    if max(dilations) == 1:
        return weights
    *kernel, inner, channels = build.shape(weights)
    split = build.reshape(weights, [*(dim for k in kernel for dim in (k, 1)), inner, channels])
    amounts = [*(amount for d in dilations for amount in (0, d - 1)), 0, 0]
    zero = build.constant(0, build.dtype(weights))
    padded = build.padded(split, zero, [0] * len(amounts), amounts)
    joined = [k * d for k, d in zip(kernel, dilations, strict=True)]
    whole = build.reshape(padded, [*joined, inner, channels])
    sizes = [size - (d - 1) for size, d in zip(joined, dilations, strict=True)]
    return build.slice(whole, [0] * (len(kernel) + 2), [*sizes, inner, channels])
