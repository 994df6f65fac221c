"""Kinds of elements that ONNX's own ops take: floats, integers, or bools.

Which types of a kind they take depends on the opset, and models do not keep to it; but an index is
a float in none.
"""

from __future__ import annotations

from functools import lru_cache

from onnx import TensorProto, defs

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.types import ELEMENT_TYPES
from satura.rewrite.types.tensor_type import DType


def refuse_other_kinds(node: Context) -> None:
    """Raise ModelError for an operand of a kind that the op takes there in no opset."""
    for position, operand in enumerate(node.operands):
        if operand is not None and operand >= 0:
            dtype = node.build.dtype(operand)
            taken = _taken(node.proto.op_type, node.opset, position)
            if taken and _kind(dtype) not in taken:
                kinds = " or ".join(sorted(taken))
                raise node.wrong(f"input {position} is {dtype.value}, where the op takes {kinds}")


@lru_cache(maxsize=4096)
def _taken(op_type: str, opset: int, position: int) -> frozenset[str]:
    """The kinds that an input may have in this opset and in the newest; none where it is unknown,
    and where it is not a tensor."""
    types: set[str] = set()
    for schema in (defs.get_schema(op_type, opset, ""), defs.get_schema(op_type)):
        inputs = list(schema.inputs)
        types.update(*(each.types for each in inputs[min(position, len(inputs) - 1) :][:1]))
    codes = dict(TensorProto.DataType.items())
    names = (text[7:-1].upper() for text in types if text.startswith("tensor("))
    return frozenset(
        _kind(ELEMENT_TYPES[codes[name]]) for name in names if codes[name] in ELEMENT_TYPES
    )


def _kind(dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "bools"
    return "floats" if dtype.is_float else "integers"
