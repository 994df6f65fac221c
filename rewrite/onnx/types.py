"""ONNX element types and value types in satura's terms, and back."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto, TypeProto, helper

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType, TensorType

ELEMENT_TYPES: dict[int, DType] = {
    TensorProto.DOUBLE: DType.F64,
    TensorProto.FLOAT: DType.F32,
    TensorProto.FLOAT16: DType.F16,
    TensorProto.BFLOAT16: DType.BF16,
    TensorProto.INT8: DType.I8,
    TensorProto.INT16: DType.I16,
    TensorProto.INT32: DType.I32,
    TensorProto.INT64: DType.I64,
    TensorProto.UINT8: DType.U8,
    TensorProto.UINT16: DType.U16,
    TensorProto.UINT32: DType.U32,
    TensorProto.UINT64: DType.U64,
    TensorProto.BOOL: DType.BOOL,
    TensorProto.FLOAT8E4M3FN: DType.F8E4M3,
    TensorProto.FLOAT8E4M3FNUZ: DType.F8E4M3Z,
    TensorProto.FLOAT8E5M2: DType.F8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: DType.F8E5M2Z,
    TensorProto.FLOAT4E2M1: DType.F4E2M1,
    TensorProto.INT4: DType.I4,
    TensorProto.UINT4: DType.U4,
    TensorProto.INT2: DType.I2,
    TensorProto.UINT2: DType.U2,
}
ELEMENT_CODES: dict[DType, int] = {dtype: code for code, dtype in ELEMENT_TYPES.items()}


def element_name(code: int) -> str:
    """ONNX's name of an element type, also for numbers that name none."""
    names: Mapping[int, str] = {value: name for name, value in TensorProto.DataType.items()}
    return names.get(code, str(code)).lower()


def dtype_of(code: int) -> DType:
    """The DType of an ONNX element type; UnsupportedError when satura has none for it."""
    if code not in ELEMENT_TYPES:
        supported = ", ".join(element_name(known) for known in ELEMENT_TYPES)
        raise UnsupportedError(
            f"element type {element_name(code)} is not supported; supported are {supported}"
        )
    return ELEMENT_TYPES[code]


def type_proto(type_: TensorType, labels: Mapping[Dim, str] = {}) -> TypeProto:
    """`type_` for ONNX; a symbolic dim becomes a dim_param, of its name in `labels` if any."""
    shape = [labels.get(dim, shown_dim(dim)) for dim in type_.shape]
    return helper.make_tensor_type_proto(ELEMENT_CODES[type_.dtype], shape)


def unpacked(type_: TypeProto) -> tuple[list[str], TypeProto]:
    """What a type is, what that is of, and so on, and the innermost type."""
    kinds = [type_.WhichOneof("value") or "unknown"]
    while kinds[-1] in ("optional_type", "sequence_type"):
        type_ = getattr(type_, kinds[-1]).elem_type
        kinds.append(type_.WhichOneof("value") or "unknown")
    return kinds, type_


def shown_dim(dim: Dim) -> int | str:
    """An extent for ONNX: a number or a dim_param."""
    return dim if isinstance(dim, int) else dim_param(dim)


def dim_param(dim: SymbolicDim) -> str:
    """The name of a size, or what it is computed from."""
    return str(dim) if dim.name is None else dim.name


class DataExtentError(UnsupportedError):
    """A type with an extent that is neither a number nor a size of an input."""


def tensor_type(proto: TypeProto, named: Mapping[str, Dim]) -> TensorType:
    """The type that `proto` states, with `named` giving the dims of its dim_params.

    Raises UnsupportedError where the value is not a tensor, or its rank or a dim is not known.
    """
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        raise UnsupportedError(
            f"values of kind {kind or 'unknown'} are not supported, only tensors"
        )
    tensor = proto.tensor_type
    dtype = dtype_of(tensor.elem_type)
    if not tensor.HasField("shape"):
        raise UnsupportedError("the rank is not known")
    dims: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif dim.dim_param in named:
            dims.append(named[dim.dim_param])
        else:
            name = dim.dim_param if not dim.dim_param.startswith("unk__") else ""  # ONNX's own
            shown = f", '{name}', is a size of no input: it" if name else ""
            raise DataExtentError(f"the extent of axis {axis}{shown} depends on data")
    return TensorType(dtype, tuple(dims))
