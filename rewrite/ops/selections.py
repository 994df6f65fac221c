"""Ops that write where data say, or find where elements are: loops that nothing fuses with."""

from __future__ import annotations

import numpy as np

from satura.rewrite.ops.elementwise import BINARY
from satura.rewrite.ops.indexing import refuse_outside
from satura.rewrite.ops.reductions import STEPS
from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import Count, ReduceFn, refuse_unless
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def _scatter(x: Array, indices: Array, updates: Array, f: ReduceFn) -> Array:
    places = len(x)
    refuse_outside("scatter", indices, indices, places, 0)
    result = x.copy()
    with np.errstate(all="ignore"):
        if f.name == "last":
            result[indices] = updates
        elif f.name in _UFUNCS:
            _UFUNCS[f.name].at(result, indices.astype(np.int64), updates)
        else:  # np.maximum gives any of two zeros
            combined = BINARY[STEPS[f.name]].reference
            for place, update in zip(indices, updates, strict=True):
                result[place] = combined(result[place], update)
    return result


_UFUNCS = {"sum": np.add, "prod": np.multiply}


@op(kind=Kind.ALONE, reference=_scatter, flops=lambda result, x, i, updates, f: size_of(updates))
def scatter(x: TensorType, indices: TensorType, updates: TensorType, f: ReduceFn) -> TensorType:
    """x with row number i of `updates` combined into its row `indices[i]`, one after another.

    f is sum, prod, max or min, or last: then the update takes the row's place. An index outside
    the rows is an error of the call where the result is used.
    """
    refuse_unless(f.name == "last" or f.name in STEPS, f"there is no scatter by {f}")
    refuse_unless(x.rank == 2 and indices.rank == 1, f"{x} is scattered to by {indices}")
    refuse_unless(indices.dtype is DType.I64, f"indices are {indices.dtype.value}")
    wanted = x.with_shape((*indices.shape, x.shape[1]))
    refuse_unless(updates == wanted, f"the updates are {updates}, not {wanted}")
    computed = x.dtype is not DType.BOOL and x.dtype.compute is x.dtype
    refuse_unless(f.name == "last" or computed, f"no scatter by {f} computes in {x.dtype.value}")
    return x


def _first_places(x: Array, count: Count, largest: Count) -> Array:
    """Stable: of equal elements the first comes first; a NaN is larger than all numbers."""
    x = x.astype(DType.of(x.dtype).compute.numpy)
    ranks = np.unique(x, return_inverse=True, equal_nan=True)[1].reshape(x.shape)
    order = np.argsort(-ranks if largest.value else ranks, axis=1, kind="stable")
    return np.asarray(order[:, : count.value].astype(np.int64))


@op(kind=Kind.ALONE, reference=_first_places, flops=lambda result, x, *_: size_of(x))
def first_places(x: TensorType, count: Count, largest: Count) -> TensorType:
    """Where the `count` largest elements of each row of x are, the largest first; with `largest` 0,
    and not 1, the smallest. Of equal ones the first comes first; a NaN is larger than all numbers.
    """
    refuse_unless(x.rank == 2, f"{x} has no rows")
    rows, extent = x.shape
    refuse_unless(count.value >= 0, f"{count} places")
    refuse_unless(largest.value in (0, 1), f"largest is {largest}, and not 0 or 1")
    if isinstance(extent, int):
        refuse_unless(count.value <= extent, f"{count} places in rows of {extent}")
    return TensorType(DType.I64, (rows, count.value))
