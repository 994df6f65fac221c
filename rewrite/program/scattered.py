"""ScatterND and ScatterElements as ONNX defines them, for host calls.

The onnx package's own references go through the indices one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from satura.rewrite.types.tensor_type import Array, DType

_UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class ScatterND(OpRun):
    """x with slices at index tuples."""

    op_domain = ""

    def _run(
        self, x: Array, indices: Array, updates: Array, reduction: str | None = None
    ) -> tuple[Array, ...]:
        depth = indices.shape[-1]
        extents = x.shape[:depth]
        tuples = indices.reshape(-1, depth)
        rows = np.zeros(len(tuples), np.int64)
        for at, extent in enumerate(extents):
            rows = rows * extent + _inside(tuples[:, at], extent)
        rest = int(np.prod(x.shape[depth:]))
        places = rows[:, None] * rest + np.arange(rest)
        return (_written(x, places, updates, reduction),)


class ScatterElements(OpRun):
    """x with update (i, j, …) at (i, index, …) along an axis."""

    op_domain = ""

    def _run(
        self, x: Array, indices: Array, updates: Array, axis: int = 0, reduction: str | None = None
    ) -> tuple[Array, ...]:
        lines = list(np.indices(indices.shape, np.int64, sparse=True))
        lines[axis] = _inside(indices, x.shape[axis])
        places = np.zeros(indices.shape, np.int64)
        for line, extent in zip(lines, x.shape, strict=True):
            places = places * extent + line
        return (_written(x, places, updates, reduction),)


SCATTERED: tuple[type[OpRun], ...] = (ScatterND, ScatterElements)


def _inside(indices: Array, extent: int) -> NDArray[np.int64]:
    """Indices counted from 0. Raises IndexError where one is outside."""
    wide = indices.astype(np.int64)
    if ((wide < -extent) | (wide >= extent)).any():
        raise IndexError(f"an index is out of range for an axis of {extent}")
    return np.where(wide < 0, wide + extent, wide)


def _written(x: Array, places: NDArray[np.int64], updates: Array, reduction: str | None) -> Array:
    """x with updates at places of its elements, one after another."""
    ufunc = _UFUNCS.get(reduction or "none")
    flat = x.reshape(-1)
    at, given = places.reshape(-1), updates.reshape(-1)
    if ufunc is None:
        result = flat.copy()
        result[at] = given
    else:
        result = flat.astype(DType.of(x.dtype).compute.numpy)
        with np.errstate(all="ignore"):
            ufunc.at(result, at, given.astype(result.dtype))
    return result.astype(x.dtype).reshape(x.shape)
