"""Lowerings of Pad in its four modes."""

from __future__ import annotations

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim, SymbolicDim, known_at_least, static
from satura.rewrite.types.tensor_type import DType


@lowering("Pad")
def pad(node: Context) -> int:
    """Elements added before and after each axis; a negative amount is a slice."""
    build, x = node.build, node[0]
    lo, hi = _amounts(node)
    mode = node.text("mode", "constant")
    for axis, (first, last, extent) in enumerate(zip(lo, hi, build.shape(x), strict=True)):
        lo[axis], hi[axis] = _within(node, axis, first, last, extent)
    if mode == "constant":
        for first, last, extent in zip(lo, hi, build.shape(x), strict=True):
            _need_known(build, first, last, extent)
        return build.padded(x, _fill(node), lo, hi)
    for axis, (first, last) in enumerate(zip(lo, hi, strict=True)):
        if isinstance(first, SymbolicDim) or isinstance(last, SymbolicDim):
            x = _padded_by_gather(node, x, axis, first, last, mode)
            continue
        x = _cut(build, x, axis, min(0, first), min(0, last))
        if first > 0 or last > 0:
            extent = build.shape(x)[axis]
            _check_extent(node, mode, extent, max(first, last))
            if isinstance(extent, SymbolicDim) and mode == "wrap":
                x = _padded_by_gather(node, x, axis, max(0, first), max(0, last), mode)
                continue
            x = _MODES[mode](build, x, axis, extent, max(0, first), max(0, last))
    return x


def _amounts(node: Context) -> tuple[list[Dim], list[Dim]]:
    rank = node.build.rank(node[0])
    pads = (node.integers("pads") or ()) if node.opset < 11 else node.dims(1)
    axes = tuple(range(rank))
    if node.opset >= 18 and node.optional(3) is not None:
        axes = tuple(node.axis(axis, rank) for axis in node.fixed(3))
    if len(pads) != 2 * len(axes):
        raise node.wrong(f"{len(pads)} pads for {len(axes)} axes")
    lo: list[Dim] = [0] * rank
    hi: list[Dim] = [0] * rank
    for position, axis in enumerate(axes):
        lo[axis], hi[axis] = pads[position], pads[len(axes) + position]
    return lo, hi


def _within(node: Context, axis: int, lo: Dim, hi: Dim, extent: Dim) -> tuple[Dim, Dim]:
    """The pads of an axis, none of which cuts more than there is: the other one adds less then.

    Raises ModelError where less than nothing is left, or nothing that could be repeated.
    """
    if not (isinstance(lo, int) and isinstance(hi, int) and isinstance(extent, int)):
        return lo, hi
    repeats = node.text("mode", "constant") != "constant"
    if lo + hi + extent < 0 or (repeats and min(lo, hi) < -extent):
        raise node.wrong(f"pads of {lo} and {hi} cut more than axis {axis} has, {extent} elements")
    total = lo + hi + extent
    return (-extent, total) if lo < -extent else (total, -extent) if hi < -extent else (lo, hi)


def _need_known(build: Tensors, lo: Dim, hi: Dim, extent: Dim) -> None:
    """Let calls be refused where an amount whose sign depends on sizes is negative, or where more
    is cut than there is."""
    cut: Dim = 0
    for amount in (lo, hi):
        if known_at_least(-amount, 0):
            cut = cut - amount
        elif not known_at_least(amount, 0):
            build.need_at_least(amount, 0)
    if not known_at_least(extent - cut, 0):
        build.need_at_least(extent, cut)


def _fill(node: Context) -> int:
    """The value around, as a scalar tensor."""
    build = node.build
    dtype = build.dtype(node[0])
    if node.opset < 11:
        return build.constant(node.number("value"), dtype)
    value = node.optional(2)
    if value is None:
        return build.constant(0, dtype)
    return build.reshape(value, ()) if build.rank(value) else value


def _padded_by_gather(node: Context, x: int, axis: int, lo: Dim, hi: Dim, mode: str) -> int:
    """One axis padded as its mode says, by a gather: for amounts that depend on sizes."""
    build = node.build
    cut = [min(0, amount) if isinstance(amount, int) else 0 for amount in (lo, hi)]
    x, lo, hi = _cut(build, x, axis, *cut), lo - cut[0], hi - cut[1]
    extent = build.shape(x)[axis]
    for amount in (lo, hi):
        if not known_at_least(amount, 0):
            build.need_at_least(amount, 0)  # it would cut
        _check_extent(node, mode, extent, amount)
    ramp = Value(build, build.iota((lo + extent + hi,), 0, DType.I64))
    first, size = (Value(build, build.size_of([dim], ramp.index)) for dim in (lo, extent))
    at, last = ramp - first, size - 1
    if mode == "wrap":
        at = at.binary("mod", size)
    else:
        at = at.clipped(last) if mode == "edge" else last - abs(last - abs(at))
    return build.gather(x, at.index, axis)


def _check_extent(node: Context, mode: str, extent: Dim, amount: Dim) -> None:
    """Refuse an axis that has too few elements for its mode, or let such calls be refused."""
    least = amount + 1 if mode == "reflect" else 1
    if isinstance(extent, SymbolicDim) or isinstance(least, SymbolicDim):
        node.build.need_at_least(extent, least)
    elif extent < least:
        raise node.wrong(
            f"an axis of extent {extent} cannot be padded by {amount} in mode '{mode}'"
        )


def _cut(build: Tensors, x: int, axis: int, first: int, last: int) -> int:
    if not first and not last:
        return x
    return build.one_axis_slice(x, axis, -first, build.shape(x)[axis] + first + last)


def _edge(build: Tensors, x: int, axis: int, extent: Dim, lo: int, hi: int) -> int:
    """The outermost elements, repeated."""

    def rim(start: Dim, amount: int) -> list[int]:
        shape = list(build.shape(x))
        shape[axis] = amount
        element = build.one_axis_slice(x, axis, start, 1)
        return [build.broadcast(element, shape)] if amount else []

    return build.concat([*rim(0, lo), x, *rim(extent - 1, hi)], axis)


def _reflect(build: Tensors, x: int, axis: int, extent: Dim, lo: int, hi: int) -> int:
    """Mirrored at the outermost elements, which are not repeated."""
    before = [build.one_axis_slice(x, axis, lo, lo, -1)] if lo else []
    after = [build.one_axis_slice(x, axis, extent - 2, hi, -1)] if hi else []
    return build.concat([*before, x, *after], axis)


def _wrap(build: Tensors, x: int, axis: int, extent: Dim, lo: int, hi: int) -> int:
    """Repeated periodically: whole copies, and a part at either end."""
    extent = static(extent)
    parts = (
        [build.one_axis_slice(x, axis, extent - lo % extent, lo % extent)] if lo % extent else []
    )
    parts += [x] * (lo // extent + 1 + hi // extent)
    parts += [build.one_axis_slice(x, axis, 0, hi % extent)] if hi % extent else []
    return build.concat(parts, axis)


_MODES = {"edge": _edge, "reflect": _reflect, "wrap": _wrap}
