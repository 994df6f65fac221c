"""Instances like another one that have an axis less, also where none is drawn so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    Padding,
    Perm,
    Shape,
    Slices,
    Window,
)
from satura.rewrite.types.tensor_type import TensorType

T = TypeVar("T")


def with_fewer_axes(instance: Instance) -> Iterator[Instance]:
    """Well-typed instances without one of the axes that tensors and attributes have."""
    rank = max((_rank(value) for _, value in instance.values), default=0)
    for at in range(rank):
        values = tuple((name, _without(value, rank, at)) for name, value in instance.values)
        fewer = replace(instance, values=values)
        if fewer.weight < instance.weight and is_well_typed(fewer):
            yield fewer


def _rank(value: TensorType | Attribute) -> int:
    if isinstance(value, TensorType):
        return value.rank
    return len(value.dims) if isinstance(value, Shape) else 0


def _drop(parts: tuple[T, ...], at: int) -> tuple[T, ...]:
    return parts[:at] + parts[at + 1 :]


def _without(value: TensorType | Attribute, rank: int, at: int) -> TensorType | Attribute:
    """The value without axis `at` where it has this rank; an axis that it names is another one."""
    match value:
        case TensorType() if value.rank == rank:
            return value.with_shape(_drop(value.shape, at))
        case Shape(dims) if len(dims) == rank:
            return Shape(_drop(dims, at))
        case Perm(order) if len(order) == rank:
            return Perm(tuple(axis - (axis > at) for axis in order if axis != at))
        case Axis(index):
            return Axis(index - (index > at))
        case Axes(indices):
            return Axes(tuple(axis - (axis > at) for axis in indices if axis != at))
        case Padding(lo, hi) if len(lo) == rank:
            return Padding(_drop(lo, at), _drop(hi, at))
        case Slices(starts, sizes, steps) if len(sizes) == rank:
            return Slices(_drop(starts, at), _drop(sizes, at), _drop(steps, at))
        case Window() if value.rank == rank or (value.rank == rank - 2 and 0 < at < rank - 1):
            place = at if value.rank == rank else at - 1  # the images' number is before it
            return Window(
                _drop(value.sizes, place),
                _drop(value.strides, place),
                _drop(value.dilations, place),
                _drop(value.lo, place),
                _drop(value.hi, place),
                value.fill,
            )
    return value
