"""Kernel text: lines, and ops on named operands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from satura.backend.lower.body import Value
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.types.tensor_type import DType

INDENT = "    "
_OPERAND = re.compile(r"\b[ab]\b")
_FUNCTIONS = {**UNARY, **BINARY}
_CALLED = (
    "decode_",
    "encode_",
    "nearest_",
    "moved_",
    "steps_",
)  # what ops begin with whose names are called


def indent(depth: int, lines: Iterable[str]) -> list[str]:
    """The lines, `depth` levels deeper."""
    return [INDENT * depth + line for line in lines]


def zero(dtype: DType) -> str:
    """A literal 0 of `dtype`."""
    return "False" if dtype is DType.BOOL else f"{dtype.value}(0)"


def op_text(value: Value, operands: Sequence[str]) -> str:
    """The text of an op on named operands."""
    if value.op == "select":
        return f"choose({', '.join(operands)})"
    if value.op in ("inside", "quotient") or value.op.startswith(_CALLED):
        return f"{value.op}({', '.join(operands)})"
    if value.op == "add_index":
        return f"choose({operands[0]} < 0, {operands[0]} + {operands[1]}, {operands[0]})"
    if value.op == "report":
        return operands[0]
    function = _FUNCTIONS[value.op]
    by_name = dict(zip("ab", operands, strict=False))
    text = _OPERAND.sub(lambda match: by_name[match.group()], function.formula)
    return text if function.to_bool else conversion_text(text, value.dtype)


def conversion_text(text: str, dtype: DType) -> str:
    """`text`, computed in a type that may be wider, as a value of `dtype`."""
    if dtype in (DType.F16, DType.BF16):
        return f"round_{dtype.value}({text})"
    return f"{dtype.value}({text})" if dtype.is_integer else text


def report_text(status: str, code: int, extent: str, index: str) -> list[str]:
    """Lines that tell the status words of an index outside of an extent, the code last."""
    stores = ((1, extent), (2, index), (0, str(code)))
    return [f"store_int64({status}, {at}, {word})" for at, word in stores]


def kernel_text(lines: Iterable[str], short: bool = False) -> str:
    """A whole kernel around `lines`; with `short`, its loops are of a few vectors each."""
    hints = ["short_loops()"] if short else []
    body = ["prefer_wide_vectors()", *hints, *lines]
    return "\n".join(["def kernel(args, thread, threads):", *indent(1, body), ""])
