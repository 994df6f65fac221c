"""Attributes that stand as values in a rule's text: what is wrong with one, and what was meant."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from numbers import Integral

from satura.rewrite.language.annotations import MistakeError, article, hints, suggestion
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Perm,
    ReduceFn,
    Shape,
    UnaryFn,
)  # fmt: skip

FUNCTIONS = (UnaryFn, BinaryFn, ReduceFn)
_FROM_TUPLE = (Perm, Shape, Axes)


def check_literal(value: object) -> None:
    """Raise MistakeError where `value` is an attribute that no tensor can have."""
    if not is_dataclass(value) or isinstance(value, type):
        return
    for field in fields(value):
        part, annotation = getattr(value, field.name), hints(type(value)).get(field.name)
        if not _is_a(part, annotation):
            raise MistakeError(
                f"{value!r}: {field.name} must be {article(annotation)}, not {part!r}"
            )
    if isinstance(value, Perm) and sorted(value.order) != list(range(len(value.order))):
        raise MistakeError(f"{value!r} is no permutation: it must hold each axis from 0 on once")
    if isinstance(value, Axes) and list(value.indices) != sorted(set(value.indices)):
        raise MistakeError(f"{value!r}: write the axes in order, each once")
    if any(index < 0 for index in _axes(value)):
        raise MistakeError(f"{value!r}: axes are counted from 0, from the first one")
    if isinstance(value, FUNCTIONS):
        check_function(value)


def check_function(value: UnaryFn | BinaryFn | ReduceFn) -> None:
    """Raise MistakeError where there is no scalar function of this name."""
    names = _function_names(type(value))
    if value.name not in names:
        kind = type(value).__name__.removesuffix("Fn").lower()
        advice = suggestion(value.name, names) or f"; there are {', '.join(names)}"
        others = [sort for sort in FUNCTIONS if value.name in _function_names(sort)]
        if others:
            advice = f"; it is {article(others[0])}"
        raise MistakeError(f"there is no {kind} function '{value.name}'{advice}")


def _function_names(sort: type) -> list[str]:
    from satura.rewrite.ops.elementwise import BINARY, UNARY
    from satura.rewrite.ops.reductions import REDUCTIONS

    if sort is UnaryFn:
        return list(UNARY)
    return list(BINARY if sort is BinaryFn else REDUCTIONS)


def spelling(value: object, sort: type) -> str:
    """`; write Perm((1, 0))`, where a plain value stands for an attribute of class `sort`."""
    if sort in _FROM_TUPLE and isinstance(value, tuple | list):
        return f"; write {sort.__name__}({tuple(value)!r})"
    names = [field.name for field in fields(sort)] if is_dataclass(sort) else []
    if len(names) == 1 and _is_a(value, hints(sort).get(names[0])):
        return f"; write {sort.__name__}({value!r})"
    return ""


def comparison_advice(hint: object, other: object) -> str:
    """What to compare a value of class `hint` with, instead of `other`."""
    if not isinstance(hint, type) or not is_dataclass(hint):
        return ""
    named = " or ".join(f".{field.name}" for field in fields(hint))
    return spelling(other, hint) + f"; or compare its {named}"


def _axes(value: object) -> tuple[int, ...]:
    if isinstance(value, Axis):
        return (value.index,)
    return value.indices if isinstance(value, Axes) else ()


def _is_a(value: object, annotation: object) -> bool:
    """Whether a plain value is what `annotation` says, elements of tuples included."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or origin is typing.Union:
        return any(_is_a(value, choice) for choice in arguments)
    if origin is tuple:
        inner = arguments[0] if arguments else object
        return isinstance(value, tuple) and all(_is_a(part, inner) for part in value)
    if annotation is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return not isinstance(annotation, type) or isinstance(value, annotation)


__all__ = ["check_function", "check_literal", "comparison_advice", "spelling"]
