"""Borders: what a window has where it reads nothing.

A load that is masked gives 0 there, and so needs no choice before a fill of 0; anything else does:
what is computed from loads, and constants, positions and extents, which no mask reaches. Of what is
computed from integers of 8 bits, that integer is read which becomes the fill: so no kernel chooses
element by element.
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
    if not any(fill.bits) and _vanishes(walk, mask, value):
        return value
    results = _of_octets(walk, mask, value)
    if walk.body.values[value].op != "load" and results is not None and results.size > 1:
        for octet, result in enumerate(results):
            if result.tobytes() == fill.bits:
                return _read_as(walk, mask, value, octet)
    return walk.value_or(mask, value, walk.scalar(fill), fill.dtype)


def _vanishes(walk: Walk, mask: int, value: int) -> bool:
    """Whether `value` is surely of zero bits wherever `mask` does not hold."""
    found = walk.body.values[value]
    if found.op == "load":
        return len(found.operands) == 1 and _implies(walk, found.operands[0], mask)
    if found.op == "select":
        return all(_vanishes(walk, mask, operand) for operand in found.operands[1:])
    return found.op == "scalar" and not found.literal


def _implies(walk: Walk, first: int, second: int) -> bool:
    """Whether mask `first` is a conjunction of `second` and others."""
    found = walk.body.values[first]
    parts = found.operands if found.op == "and" else ()
    return first == second or any(_implies(walk, part, second) for part in parts)


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
