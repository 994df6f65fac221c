"""Nodes as text: readable and complete; `parse.py` reads it back."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable

from satura.rewrite.types.attributes import Attribute, HostCall, UserAttribute
from satura.rewrite.types.tensor_type import Array, DType


def application_text(op: str, operands: Iterable[str], attributes: Iterable[str]) -> str:
    """An op applied to operands by their names, its attributes behind it."""
    return " ".join([f"{op}({', '.join(operands)})", *attributes])


def attribute_text(value: Attribute) -> str:
    """The attribute, complete but for the elements of large constants."""
    if isinstance(value, HostCall):
        names = f"{quote(value.op_type)} of {quote(value.domain)} opset {value.opset}"
        types = ", ".join(map(str, value.outputs))
        proto = b64encode(value.proto).decode()
        return f"{names} salt {value.salt} gives ({types}) node {quote(proto)}"
    return repr(value) if isinstance(value, UserAttribute) else str(value)


def array_python(array: Array) -> str:
    """Python text for the array; a type that NumPy alone does not know is asked of its DType."""
    dtype = array.dtype
    named = repr(dtype.name) if dtype.isbuiltin == 1 else f"{DType.of(dtype)!r}.numpy"
    if not any(array.tobytes()):
        return f"np.zeros({array.shape}, {named})"
    return f"np.array({array.tolist()!r}, {named}).reshape({array.shape})"


def quote(name: str) -> str:
    """A name of any characters, in one line."""
    return json.dumps(name, ensure_ascii=False)
