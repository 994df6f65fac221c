"""Calls of the functions in a user's op: what they get wrong is an error that names the op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from satura.rewrite.errors import CallError, ProgramError, brief
from satura.rewrite.ops.expression import Formula
from satura.rewrite.ops.formula import formula_steps
from satura.rewrite.types.attributes import Attribute, Refuse, refuse_unless
from satura.rewrite.types.tensor_type import Array, DType, TensorType

TypeRule = Callable[..., TensorType]
Reference = Callable[..., Array]


class TypeRuleError(ProgramError):
    """A user's type rule neither refuses nor gives a type that is possible."""


def type_rule(
    rule: Callable[..., object], arity: int, name: str, formula: Formula | None
) -> TypeRule:
    """`rule` as a type rule that fails with ProgramError only.

    With a formula it also refuses operands of different shapes, and what the formula cannot take.
    """

    @functools.wraps(rule)
    def checked_rule(*arguments: object) -> TensorType:
        types = [value for value in arguments[:arity] if isinstance(value, TensorType)]
        if formula is not None:
            refuse_unless(all(t.shape == types[0].shape for t in types), "the shapes differ")
        try:
            result = rule(*arguments)
        except (Refuse, ProgramError):
            raise
        except Exception as error:
            shown = ", ".join(map(str, arguments))
            raise TypeRuleError(
                f"{name}: its type rule failed on ({shown}): {type(error).__name__}: {error};"
                " it must answer or raise Refuse"
            ) from error
        if not isinstance(result, TensorType):
            raise TypeRuleError(f"{name}: its type rule gave {brief(result)}, not a TensorType")
        if formula is not None:
            _check_result(name, types, _attributes(arguments[arity:]), result, formula)
        return result

    return checked_rule


def _check_result(
    name: str, types: Sequence[TensorType], attributes: Sequence[Attribute], result: TensorType,
    formula: Formula,
) -> None:  # fmt: skip
    steps = formula_steps(formula, tuple(type_.dtype for type_ in types), tuple(attributes))
    if result.shape != types[0].shape:
        raise TypeRuleError(
            f"{name}: its type rule gave {result} for operands of shape {list(types[0].shape)};"
            " the result of an op with a formula has the shape of its operands"
        )
    if result.dtype.compute is not steps[-1].dtype:
        raise TypeRuleError(
            f"{name}: for ({', '.join(type_.dtype.value for type_ in types)}) its type rule gives"
            f" {result.dtype.value}, but its formula {steps[-1].dtype.value}"
        )


def _attributes(values: Sequence[object]) -> tuple[Attribute, ...]:
    return tuple(value for value in values if isinstance(value, Attribute))


def elements(reference: Callable[..., object], name: str) -> Reference:
    """`reference` of an elementwise op, for arrays of the types that the op computes in."""

    def call(*arguments: object) -> Array:
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        result = _call(reference, name, arguments)
        if result.shape != arrays[0].shape:
            raise CallError(
                f"{name}: its reference gave shape {list(result.shape)} for operands of shape"
                f" {list(arrays[0].shape)}; it must work on arrays of every shape"
            )
        return result

    return call


def wide_reference(reference: Reference, rule: TypeRule, arity: int) -> Reference:
    """A `reference` by `elements`, for operands as they are stored; its result is rounded once."""

    def call(*arguments: object) -> Array:
        arrays = [value for value in arguments[:arity] if isinstance(value, np.ndarray)]
        result = rule(*map(_type_of, arrays), *arguments[arity:])
        wide = [array.astype(_type_of(array).dtype.compute.numpy, copy=False) for array in arrays]
        with np.errstate(all="ignore"):
            return reference(*wide, *arguments[arity:]).astype(result.dtype.numpy, copy=False)

    return call


def host_reference(
    reference: Callable[..., object], rule: TypeRule, arity: int, name: str
) -> Reference:
    """`reference` of a host op; raises CallError where it gives another type than the type rule."""

    def call(*arguments: object) -> Array:
        arrays = [value for value in arguments[:arity] if isinstance(value, np.ndarray)]
        expected = rule(*map(_type_of, arrays), *arguments[arity:])
        result = _call(reference, name, arguments)
        if result.dtype != expected.dtype.numpy or result.shape != expected.shape:
            raise CallError(
                f"{name}: its reference gave {result.dtype}{list(result.shape)} where its type"
                f" rule says {expected}"
            )
        return result

    return call


def _call(reference: Callable[..., object], name: str, arguments: Sequence[object]) -> Array:
    """The result as an array; operands cannot be written to. Raises CallError."""
    try:
        return np.asarray(reference(*map(_read_only, arguments)))
    except CallError:
        raise
    except Exception as error:
        shown = ", ".join(
            str(_type_of(v)) if isinstance(v, np.ndarray) else str(v) for v in arguments
        )
        raise CallError(
            f"{name}: its reference failed on ({shown}): {type(error).__name__}: {error}"
        ) from error


def _read_only(value: object) -> object:
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _type_of(array: Array) -> TensorType:
    return TensorType(DType.of(array.dtype), array.shape)
