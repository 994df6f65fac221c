"""Instances like another one with f32 in the place of a rarer float type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.types.attributes import Attribute, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType


def with_plain_dtypes(instance: Instance) -> Iterator[Instance]:
    """Well-typed instances where one of the float types of tensors is f32 everywhere."""
    dtypes = dict.fromkeys(type_.dtype for type_ in instance.types.values())
    for dtype in dtypes:
        if dtype.is_float and dtype is not DType.F32:
            values = tuple((name, _plain(value, dtype)) for name, value in instance.values)
            plain = replace(instance, values=values)
            if is_well_typed(plain):
                yield plain


def _plain(value: TensorType | Attribute, dtype: DType) -> TensorType | Attribute:
    """The value with f32 in the place of this type."""
    match value:
        case TensorType() if value.dtype is dtype:
            return value.with_dtype(DType.F32)
        case Scalar() if value.dtype is dtype:
            return Scalar.of(float(value.array), DType.F32)
        case Window() if value.fill.dtype is dtype:
            return replace(value, fill=Scalar.of(float(value.fill.array), DType.F32))
    return DType.F32 if value is dtype else value
