"""The names of kernel text as Numba knows them: helpers as intrinsics, kinds as its types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from inspect import Parameter, Signature
from types import CodeType

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from satura.backend.helpers import kinds
from satura.backend.helpers.kinds import Helper, Kind
from satura.backend.helpers.namespace import meaning


def namespace_of(code: CodeType) -> dict[str, object]:
    """The globals for a kernel's code: exactly the names that it mentions and that exist."""
    found: dict[str, object] = {"np": np}
    for name in sorted(set(_names_mentioned(code))):
        value = meaning(name)
        if isinstance(value, Helper):
            found[name] = _intrinsic(value)
        elif value is not None:
            found[name] = _numba(value)
    return found


def _names_mentioned(code: CodeType) -> Iterator[str]:
    """Every global or attribute name in the code and in the functions it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_mentioned(constant)


@cache
def _intrinsic(helper: Helper) -> object:
    def type_operands(context: object, *operands: types.Type) -> tuple[object, object]:
        given = tuple(_kind(getattr(operand, "literal_type", operand)) for operand in operands)
        taken = given if helper.operands is None else helper.operands

        def generate(
            target: object, builder: ir.IRBuilder, signature: object, values: list[ir.Value]
        ) -> ir.Value:
            value = helper.emit(builder, taken, values)
            return ir.Constant(ir.IntType(8).as_pointer(), None) if value is None else value

        return _numba(helper.result(*taken))(*map(_numba, taken)), generate

    names = ["context", *(f"a{i}" for i in range(helper.arity))]
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    vars(type_operands)["__signature__"] = signature
    return intrinsic(type_operands)


def _numba(kind: Kind) -> types.Type:
    found: types.Type = getattr(types, kind.name)
    return found


def _kind(numba: types.Type) -> Kind:
    """Numba's bool is called so; its other types have the names of kinds."""
    found = getattr(kinds, "boolean" if numba is types.boolean else str(numba), None)
    if not isinstance(found, Kind):
        raise TypeError(f"kernels have no values of type {numba}")
    return found
