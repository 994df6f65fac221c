"""Instances like another one, of which an extent is smaller: also where none is drawn so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.types.attributes import Attribute, Shape, Slices
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import TensorType

FEW = (1, 2, 3)  # in place of a symbolic extent


def with_smaller_extents(instance: Instance) -> Iterator[Instance]:
    """Well-typed instances where one extent is smaller wherever it stands, or at one place.

    An empty extent counts as more than 1, and a symbolic one as more than a few.
    """
    found = [(name, place) for name, value in instance.values for place in _places(value)]
    for dim in dict.fromkeys(_dims(instance.bindings[name])[place] for name, place in found):
        alike = [each for each in found if _dims(instance.bindings[each[0]])[each[1]] == dim]
        for lower in _lower(dim):
            for places in (alike, *([each] for each in alike if len(alike) > 1)):
                smaller = with_extent(instance, places, lower)
                if smaller.weight < instance.weight and is_well_typed(smaller):
                    yield smaller


def with_extent(instance: Instance, places: list[tuple[str, int]], extent: Dim) -> Instance:
    """The instance with this extent at these places of its values."""
    values = []
    for name, value in instance.values:
        dims = list(_dims(value))
        for changed, place in places:
            if changed == name:
                dims[place] = extent
        values.append((name, _with_dims(value, tuple(dims))))
    return replace(instance, values=tuple(values))


def _places(value: TensorType | Attribute) -> range:
    return range(len(_dims(value)))


def _dims(value: object) -> tuple[Dim, ...]:
    """The extents that a value has; none for most attributes."""
    if isinstance(value, TensorType):
        return value.shape
    return (
        value.dims if isinstance(value, Shape) else value.sizes if isinstance(value, Slices) else ()
    )


def _with_dims(value: TensorType | Attribute, dims: tuple[Dim, ...]) -> TensorType | Attribute:
    if isinstance(value, TensorType):
        return value.with_shape(dims)
    if isinstance(value, Slices):
        return replace(value, sizes=dims)
    return Shape(dims) if isinstance(value, Shape) else value


def _lower(dim: Dim) -> tuple[int, ...]:
    """Smaller extents to try, the smallest first."""
    if not isinstance(dim, int):
        return FEW
    steps = (dim >> bits for bits in range(1, dim.bit_length()))
    lower = (1, 2, dim // 4, *(dim - step for step in steps)) if dim else (1,)
    return tuple(sorted({each for each in lower if each > 0 and (not dim or each < dim)}))
