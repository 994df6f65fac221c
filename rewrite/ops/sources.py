"""Ops without operands: inputs, constants, index ramps and symbolic sizes as values."""

import numpy as np

from satura.rewrite.ops.registry import Kind, op
from satura.rewrite.types.attributes import Axis, Parameter, Shape, refuse_unless
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType, TensorType


def _no_reference(*_: object) -> Array:
    raise AssertionError("the interpreter binds inputs itself")


@op(kind=Kind.SOURCE, reference=_no_reference)
def input_(parameter: Parameter) -> TensorType:
    """An argument of the program."""
    return parameter.type


@op(kind=Kind.SOURCE, reference=lambda value: value.array)
def constant(value: Constant) -> TensorType:
    """A tensor known at compile time."""
    return value.type


def _iota(shape: Shape, axis: Axis, dtype: DType) -> Array:
    extents = tuple(map(static, shape.dims))
    line = [1] * len(extents)
    line[axis.index] = extents[axis.index]
    ramp = np.arange(extents[axis.index]).astype(dtype.numpy).reshape(line)
    return np.broadcast_to(ramp, extents)


@op(kind=Kind.SOURCE, reference=_iota)
def iota(shape: Shape, axis: Axis, dtype: DType) -> TensorType:
    """Each element is its own index along `axis`, as far as `dtype` has bits for it."""
    refuse_unless(0 <= axis.index < len(shape.dims), "axis is out of range")
    return TensorType(dtype, shape.dims)


@op(kind=Kind.SOURCE, reference=lambda dim: np.array(static(dim.dims[0]), np.int64))
def extent(dim: Shape) -> TensorType:
    """A size, symbolic or not, as an i64 scalar; `dim` has exactly one entry."""
    refuse_unless(len(dim.dims) == 1, "extent takes one dim")
    return TensorType(DType.I64, ())
