"""Numbers in laws: constants of the type that the tensor beside them has."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from satura.rewrite.language.expressions import attribute_function
from satura.rewrite.types.attributes import Refuse, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType

T = TypeVar("T")
Number = bool | int | float


def as_number(value: T) -> T | Number:
    """`value`, where a number of NumPy's, of any of its types, has become Python's."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if isinstance(number, Number) else value


@attribute_function
def scalar_like(number: Number, type_: TensorType) -> Scalar:
    """`number` as an element of `type_`; floats are for floats only, bools for bools only."""
    dtype = type_.dtype
    if isinstance(number, bool):
        fits = dtype is DType.BOOL
    elif isinstance(number, float):
        fits = dtype.is_float
    else:
        fits = dtype.is_float or (dtype.is_integer and dtype.bounds[0] <= number <= dtype.bounds[1])
    if not fits:
        raise Refuse(f"{number!r} is not an element of {dtype}")
    return Scalar.of(number, dtype)


@attribute_function
def unit_like(type_: TensorType) -> Shape:
    """The shape of as many axes as `type_` has, all of extent 1."""
    return Shape((1,) * type_.rank)


@attribute_function
def shape_like(type_: TensorType) -> Shape:
    """The shape of `type_`."""
    return Shape(type_.shape)
