"""Types for arrays of other extents than those that were met before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import symbol, symbols_of
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def fitting(
    types: Mapping[str, TensorType], names: Iterable[str], values: Mapping[str, Array],
    sizes: Mapping[str, int],
) -> dict[str, TensorType]:  # fmt: skip
    """Types that the `values` of these names have: those in `types`, widened where need be.

    A tensor of a sequence that is longer than before has none there.
    """
    return {name: _fitting(types.get(name), values[name], name, sizes) for name in names}


def of_any_size(type_: TensorType, name: str) -> TensorType:
    """The type with sizes of its own, called after `name`, for all extents."""
    return type_.with_shape(tuple(symbol(f"{name}[{axis}]") for axis in range(type_.rank)))


def _fitting(
    type_: TensorType | None, value: Array, name: str, sizes: Mapping[str, int]
) -> TensorType:
    if type_ is None or (type_.rank, type_.dtype.numpy) != (value.ndim, value.dtype):
        return of_any_size(TensorType(DType.of(value.dtype), value.shape), name)
    return _widened(type_, value.shape, name, sizes)


def _widened(
    type_: TensorType, shape: tuple[int, ...], name: str, sizes: Mapping[str, int]
) -> TensorType:
    """A type that arrays of this shape have, too: with sizes of their own for other extents."""
    dims = [
        dim if not symbols_of([dim]) <= sizes.keys() or evaluate(dim, sizes) == size
        else symbol(f"{name}[{axis}]")
        for axis, (dim, size) in enumerate(zip(type_.shape, shape, strict=True))
    ]  # fmt: skip
    return replace(type_, shape=tuple(dims))
