"""Operands and attributes for ops of users: by their generator, else by what they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from satura.rewrite.check.operands import DRAWN
from satura.rewrite.errors import OpError, ProgramError
from satura.rewrite.ops import Op
from satura.rewrite.ops.draw import Draw, DrawError, Drawn, Given, Types, reject_unless
from satura.rewrite.ops.registry import Generator
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    Count,
    Perm,
    Refuse,
    Shape,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rewrite.user_ops.guard import TypeRuleError


def draw_operands(op: Op, draw: Draw, result: TensorType, given: Given, known: Types) -> Drawn:
    """Operand types and attributes that `op` could make `result` from; those `given` stay.

    Raises DrawError where there is nothing, OpError for an op that needs a generator, and where its
    generator or its type rule is mistaken.
    """
    if op.user is None:
        if op.name not in DRAWN:
            raise DrawError(f"{op.name} is not drawn")
        return DRAWN[op.name](draw, result, given, known)
    if op.user.generator is not None:
        types, attributes = _draw_by_generator(op, op.user.generator, draw, result)
    else:
        types = _operand_types(op, draw, result)
        attributes = tuple(_attribute(op, sort, draw, result) for sort in op.attributes)
    chosen = tuple(
        value if before is None else before for value, before in zip(attributes, given, strict=True)
    )
    try:
        reject_unless(op.infer(types, chosen) == result)
    except TypeRuleError as error:  # says which op it is
        raise OpError(str(error)) from error
    except ProgramError as error:
        raise DrawError(str(error)) from error
    return types, chosen


def _draw_by_generator(op: Op, generator: Generator, draw: Draw, result: TensorType) -> Drawn:
    """What the op's own generator draws. Raises OpError for what is not operands and attributes."""
    try:
        made: object = generator(draw, result)
    except (DrawError, Refuse):
        raise
    except Exception as error:
        raise _op_error(
            op, f"its generator failed for {result}: {type(error).__name__}: {error}"
        ) from error
    operands = (TensorType,) * (op.arity or 0)
    match made:
        case (types, attributes) if _match_sorts(types, operands) and _match_sorts(
            attributes, op.attributes
        ):
            return tuple(types), tuple(attributes)
    sorts = ", ".join(sort.__name__ for sort in op.attributes)
    raise _op_error(
        op,
        f"its generator gave {made!r} for {result}; it must give a tuple of {op.arity} TensorType"
        f" and a tuple of the attributes ({sorts})",
    )


def _match_sorts(values: object, sorts: Sequence[type]) -> TypeGuard[Sequence[Any]]:
    """Whether there is one value of each class."""
    return (
        isinstance(values, tuple | list)
        and len(values) == len(sorts)
        and all(map(isinstance, values, sorts))
    )


def _op_error(op: Op, reason: str) -> OpError:
    assert op.user is not None
    return OpError(f"op '{op.name}' ({op.user.place}): {reason}")


def _operand_types(op: Op, draw: Draw, result: TensorType) -> tuple[TensorType, ...]:
    """Dtypes that an elementwise op takes; other ops are tried on operands like their result."""
    assert op.user is not None and op.arity is not None
    if not op.user.signatures:
        return (result,) * op.arity
    choices = [dtypes for dtypes, made in op.user.signatures if made is result.dtype]
    return tuple(map(result.with_dtype, draw.one_of(choices)))


def _attribute(op: Op, sort: type, draw: Draw, result: TensorType) -> Attribute:
    if sort is Scalar:
        return draw.scalar(DType.F32)
    if sort is Count:
        return Count(draw.up_to(3))
    if sort is DType:
        return draw.dtype()
    if sort is Axis:
        return Axis(draw.one_of(range(result.rank)))
    if sort is Axes:
        return Axes(tuple(axis for axis in range(result.rank) if draw.chance(0.5)))
    if sort is Perm:
        return draw.perm(result.rank)
    if sort is Shape:
        return Shape(result.shape)
    raise _op_error(
        op,
        f"rules about it cannot be checked, because a {sort.__name__} cannot be drawn; give the op"
        " a generator",
    )
