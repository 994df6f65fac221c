"""3×3 convolutions with 16 products where sums of taps take 36: Winograd's F(2×2, 3×3).

A *tile* is the 4×4 positions that 2×2 neighbouring results see. Tile and kernel are transformed by
sums, multiplied element by element, and the products, summed over the channels, are transformed
into the results. All results of a tile mix all of its positions: one that is infinite or NaN would
make NaNs of them all, and a huge one leave nothing but its rounding errors. Tiles with a result
that is not finite, or huge, are therefore summed tap by tap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.ops.reductions import conv, products
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import Groups, Window, refuse_unless
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rewrite.types.typical import representative

TILE, RESULTS, TAPS = 4, 2, 3
"""How many positions, results and taps a tile has along one axis."""

OF_TILE = np.array([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
OF_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
HUGE = 2.0**100
OF_RESULTS = np.array([[1.0, 1, 1, 0], [0, 1, -1, -1]])


def transformed_kernel(w: Array) -> NDArray[np.float32]:
    """w [3, 3, c, oc] as [4, 4, c, oc]."""
    return np.array([_of_taps(taps) for taps in _of_taps(w)])


def _of_taps(taps: Array) -> tuple[Array, ...]:
    """The product of `OF_KERNEL` and three taps, without its zeros: they would make NaN of inf."""
    first, middle, last = taps
    outer = first + last
    return first, (outer + middle) * 0.5, (outer - middle) * 0.5, last


WEIGHT_OPERATIONS = 5 * (TAPS + TILE)
"""How many operations transform the taps of one channel and column."""


def tile_count(result: TensorType) -> int:
    """How many tiles give a result [n, height, width, oc], at representative sizes."""
    n, height, width, _ = (representative(dim) for dim in result.shape)
    return n * -(-height // RESULTS) * -(-width // RESULTS)


def transformed_elements(result: TensorType, x: TensorType) -> float:
    """How many elements the transformed tiles of x, and those of the result, have."""
    channels = representative(x.shape[-1]) + representative(result.shape[-1])
    return TILE**2 * tile_count(result) * channels


def _winograd(x: Array, w: Array, window: Window) -> Array:
    plain = np.asarray(conv.reference(x, w, window, Groups(1)))
    n, height, width, columns = plain.shape
    if plain.size == 0 or x.shape[-1] == 0:
        return plain
    down, across = -(-height // RESULTS), -(-width // RESULTS)
    bordered = np.pad(
        x,
        ((0, 0), *zip(window.lo, (hi + RESULTS for hi in window.hi), strict=True), (0, 0)),
        constant_values=window.fill.value,
    )
    wide = bordered.astype(np.float32)
    with np.errstate(all="ignore"):
        seen = _of_tiles(wide, (n, down, across)).reshape(TILE, TILE, -1, x.shape[-1])
        multiplied = products(seen, transformed_kernel(w)).astype(np.float32, copy=False)
        results = _transform(_transform(multiplied, OF_RESULTS, 0), OF_RESULTS, 1)
    usual = (np.abs(results) < HUGE).all(axis=(0, 1), keepdims=True)
    found, whole = (
        values.reshape(RESULTS, RESULTS, n, down, across, columns)
        .transpose(2, 3, 0, 4, 1, 5)
        .reshape(n, RESULTS * down, RESULTS * across, columns)[:, :height, :width]
        for values in (results, np.broadcast_to(usual, results.shape))
    )
    return np.asarray(np.where(whole, found, plain))


def _of_tiles(x: NDArray[np.float32], counts: tuple[int, int, int]) -> NDArray[np.float32]:
    """The transformed tiles of x, [4, 4, *counts, c]."""
    _, down, across = counts
    seen = [
        [
            x[:, i : i + RESULTS * down : RESULTS, j : j + RESULTS * across : RESULTS]
            for j in range(TILE)
        ]
        for i in range(TILE)
    ]
    return _transform(_transform(np.array(seen), OF_TILE, 0), OF_TILE, 1)


def _transform(
    values: NDArray[np.float32], sums: NDArray[np.float64], axis: int
) -> NDArray[np.float32]:
    """Sums of the parts of `values` along `axis`, from the first part to the last."""
    parts = np.moveaxis(values, axis, 0)
    found = []
    for signs in sums:
        total = np.zeros_like(parts[0])
        for sign, part in zip(signs, parts, strict=True):
            if sign:
                total = total + part if sign > 0 else total - part
        found.append(total)
    return np.stack(found, axis)


def _flops(result: TensorType, x: TensorType, w: TensorType, window: Window) -> float:
    return 2 * TILE**2 * tile_count(result) * size_of(w) / TAPS**2


@op(kind=Kind.CONTRACTION, reference=_winograd, flops=_flops)
def winograd(x: TensorType, w: TensorType, window: Window) -> TensorType:
    """conv(x, w) of f32 images by kernels of 3×3 taps that move in steps of 1, by Winograd's
    algorithm: other roundings, fewer products."""
    refuse_unless(x.dtype is DType.F32, "only f32 tensors are transformed")
    ones = (1, 1)
    refuse_unless(window.sizes == (TAPS, TAPS), "the window is not 3×3")
    refuse_unless(window.strides == ones, "the window moves in steps of more than 1")
    refuse_unless(window.dilations == ones, "the window is dilated")
    result = conv.type_rule(x, w, window, Groups(1))
    assert isinstance(result, TensorType)
    return result


__all__ = [
    "HUGE", "OF_KERNEL", "OF_RESULTS", "OF_TILE", "RESULTS", "TAPS", "TILE",
    "WEIGHT_OPERATIONS", "tile_count", "transformed_elements", "transformed_kernel", "winograd",
]  # fmt: skip
