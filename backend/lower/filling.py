"""Borders of what is computed from integers of 8 bits.

Outside, the integer is read that becomes the fill: so no kernel chooses element by element.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from satura.backend.lower.walk import Walk
from satura.rewrite.ops.elementwise import BINARY, convert
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import Array, DType

_EXACT = ("add", "sub", "mul", "max", "min")  # in kernels, too


def filled(walk: Walk, mask: int, value: int, fill: Scalar) -> int:
    """`value` where `mask` holds, else the fill."""
    results = _of_octets(walk, mask, value)
    if walk.body.values[value].op != "load" and results is not None and results.size > 1:
        for octet, result in enumerate(results):
            if result.tobytes() == fill.bits:
                return _read_as(walk, mask, value, octet)
    return walk.value_or(mask, value, walk.scalar(fill), fill.dtype)


def _of_octets(walk: Walk, mask: int, value: int) -> Array | None:
    """What becomes of each of the 256 integers that are read under a mask; None if others are read,
    too, or if kernels may round it in another way."""
    found = walk.body.values[value]
    if found.op == "load" and found.operands == (mask,) and found.dtype in (DType.I8, DType.U8):
        return np.arange(256, dtype=np.uint8).view(found.dtype.numpy)
    if found.op == "scalar":
        bits = found.literal.to_bytes(8, "little")[: found.dtype.itemsize]
        return np.frombuffer(bits, found.dtype.numpy)
    below = [_of_octets(walk, mask, operand) for operand in found.operands]
    operands = [each for each in below if each is not None]
    if not operands or len(operands) < len(below):
        return None
    if found.op == "cast":
        return convert(operands[0], found.dtype)
    if found.op not in _EXACT:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(BINARY[found.op].reference(*operands)).astype(found.dtype.numpy)


def _read_as(walk: Walk, mask: int, value: int, octet: int) -> int:
    """The same, computed from an octet wherever `mask` does not hold."""
    found = walk.body.values[value]
    if found.op == "load":
        return walk.value_or(mask, value, walk.body.scalar(found.dtype, octet), found.dtype)
    operands = tuple(_read_as(walk, mask, operand, octet) for operand in found.operands)
    return value if operands == found.operands else walk.add(replace(found, operands=operands))
