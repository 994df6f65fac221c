"""Nodes as text: readable and complete; `parse.py` reads it back."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable

from satura.rewrite.types.attributes import Attribute, HostCall, UserAttribute


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


def quote(name: str) -> str:
    """A name of any characters, in one line."""
    return json.dumps(name, ensure_ascii=False)
