"""Lowerings of DFT and STFT: products with constant matrices of sines and cosines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.types.dims import SymbolicDim, known_at_least, product, static
from satura.rewrite.types.tensor_type import DType

Table = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_LONGEST = 1024  # a matrix has the square of it; longer ones go to the host


@lowering("DFT")
@computed_wide
def discrete_fourier(node: Context) -> int:
    """Σ x·exp(∓2πi·k·t / n) along an axis; the last axis has real and imaginary parts."""
    build, x = node.build, node[0]
    rank = build.rank(x)
    if node.opset >= 20:
        axis = -2 if node.optional(2) is None else node.fixed(2, 1)[0]
    else:
        axis = node.integer("axis", 1)
    at = node.axis(axis, rank)
    if at == rank - 1:
        raise node.wrong("its axis is that of real and imaginary parts")
    inverse, one_sided = bool(node.integer("inverse")), bool(node.integer("onesided"))
    (extent,) = node.static([build.shape(x)[at]], "the transformed axis")
    back_to_real = inverse and one_sided
    usual = 2 * (extent - 1) if back_to_real else extent
    period = usual if node.optional(1) is None else node.fixed(1, 1)[0]
    if period < 1:
        raise node.wrong(f"it transforms {period} elements")
    length = period // 2 + 1 if back_to_real else period
    x = build.one_axis_slice(x, at, 0, min(extent, length))
    if length > extent:
        amounts = [length - extent if axis == at else 0 for axis in range(rank)]
        zero = build.constant(0, build.dtype(x))
        x = build.padded(x, zero, [0] * rank, amounts)
    order = [axis for axis in range(rank) if axis not in (at, rank - 1)] + [at, rank - 1]
    moved = build.transpose(x, order)
    if back_to_real:
        result = _real_signal(node, moved, period)
    else:
        result = _fourier(node, moved, inverse, one_sided)
    return build.transpose(result, [order.index(axis) for axis in range(rank)])


@lowering("STFT")
@computed_wide
def short_time_fourier(node: Context) -> int:
    """The transforms of frames of the signal, each times the window."""
    build, x = node.build, node[0]
    if build.rank(x) not in (2, 3):
        raise node.wrong(f"its signal has rank {build.rank(x)}, not 2 or 3")
    if build.rank(x) == 2:
        x = build.insert(x, 2)
    extent = build.shape(x)[1]
    (step,) = node.fixed(1, 1)
    window = node.optional(2)
    if node.optional(3) is not None:
        (length,) = node.fixed(3, 1)
    elif window is not None:
        (length,) = node.static(build.shape(window), "the length of the window")
    else:
        raise node.wrong("it has neither a window nor the length of a frame")
    if step < 1 or length < 1 or known_at_least(length - 1 - extent, 0):
        raise node.wrong(f"frames of {length}, {step} apart, do not fit {extent} elements")
    if isinstance(extent, SymbolicDim):
        build.need_at_least(extent, length)
    shape = ((extent - length) // step + 1, length)
    frame, at = (Value(build, build.iota(shape, axis, DType.I64)) for axis in (0, 1))
    frames = build.gather(x, (frame * step + at).index, 1)
    if window is not None:
        frames = build.binary("mul", frames, build.along(window, 2, build.shape(frames)))
    return _fourier(node, frames, False, bool(node.integer("onesided", 1)))


def _fourier(node: Context, x: int, inverse: bool, one_sided: bool) -> int:
    """The transform along the last axis but one, whose extent is fixed."""
    length = static(node.build.shape(x)[-2])
    count = length // 2 + 1 if one_sided else length
    return _times(node, x, length, lambda parts: _sines(length, count, parts, inverse), 2)


def _real_signal(node: Context, x: int, period: int) -> int:
    """The signal whose frequencies up to the middle are on the last axis but one."""
    length = static(node.build.shape(x)[-2])

    def table(parts: int) -> Table:
        steps = np.outer(np.arange(length), np.arange(period)) % period
        angle = 2 * np.pi * steps / period
        both = np.full((length, 1), 2.0)  # each but the ends stands for its mirror image, too
        both[0] = 1
        if period % 2 == 0:
            both[-1] = 1
        sides = np.stack([both * np.cos(angle), -both * np.sin(angle)][:parts], axis=1)
        return sides.reshape(length * parts, period) / period

    return _times(node, x, period, table, 1)


def _times(node: Context, x: int, period: int, table: Callable[[int], Table], outer: int) -> int:
    """The last two axes of x, whose last has real parts or both, times the matrix for so many.

    The result has `outer` parts.
    """
    build = node.build
    *before, _, last = build.shape(x)
    (parts,) = node.static([last], "the axis of real and imaginary parts")
    if parts not in (1, 2):
        raise node.wrong(f"its last axis has {parts} elements, not a real part or two")
    if period > _LONGEST:
        raise NoLowering
    matrix = table(parts)
    right = build.constant(matrix, build.dtype(x))
    flat = build.reshape(x, (product(before), len(matrix)))
    return build.reshape(build.matmul(flat, right), (*before, matrix.shape[1] // outer, outer))


def _sines(length: int, count: int, parts: int, inverse: bool) -> Table:
    """What each part of each element gives to each part of each frequency, as a matrix."""
    steps = np.outer(np.arange(length), np.arange(count)) % length
    angle = 2 * np.pi * steps / length * (1 if inverse else -1)
    sine, cosine = np.sin(angle), np.cos(angle)
    real = np.stack([cosine, sine], axis=-1)
    imaginary = np.stack([-sine, cosine], axis=-1)
    table = np.stack([real, imaginary][:parts], axis=1)
    scaled = table / length if inverse else table
    return scaled.reshape(length * parts, count * 2)
