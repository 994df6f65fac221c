"""Constants that a nest reads with strides, copied at compile time into the order of its loops.

The copy has no more elements than the constant, so that no memory is spent on speed.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.lower.body import Access, Pointer, Value
from satura.backend.lower.canonical import Canonical
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.copies import row_major
from satura.rewrite.types.tensor_type import Array


def with_constants_relaid(form: Canonical, program: Program, store: ConstantStore) -> Canonical:
    """`form`, whose inner loop reads constants element after element where that is possible."""
    values = tuple(
        replace(value, access=_relaid(value, form.nest.extents, program, store) or value.access)
        for value in form.nest.values
    )
    return replace(form, nest=replace(form.nest, values=values))


def _relaid(
    value: Value, extents: tuple[int, ...], program: Program, store: ConstantStore
) -> Access | None:
    """The access to a copy of what `value` loads; None where it had better stay as it is."""
    access, size = value.access, value.dtype.itemsize
    if value.op != "load" or value.operands or access is None or access.extras:
        return None
    constant = _constant(access, program)
    if constant is None or access.strides[-1] in (0, size):
        return None
    assert isinstance(access.start, Pointer)
    start = access.start.offset
    moving = [loop for loop, stride in enumerate(access.strides) if stride]
    shape = tuple(extents[loop] for loop in moving)
    strides = tuple(access.strides[loop] for loop in moving)
    if prod(shape) > constant.constant.size or any(
        stride < 0 or stride % size for stride in strides
    ):
        return None

    def copy() -> Array:
        flat = constant.constant.array.reshape(-1)[start // size :]
        return row_major(np.lib.stride_tricks.as_strided(flat, shape, strides), shape)

    key = f"{constant.constant.digest.hex()} relaid {start} {shape} {strides}".encode()
    number = store.derived(key, copy)
    dense, pitch = [0] * len(extents), size
    for loop in reversed(moving):
        dense[loop] = pitch
        pitch *= extents[loop]
    return Access(Pointer(("constant", number)), tuple(dense))


def _constant(access: Access, program: Program) -> Node | None:
    if not isinstance(access.start, Pointer) or access.start.region[0] != "buffer":
        return None
    node = program.nodes[access.start.region[1]]
    return node if node.op.name == "constant" else None
