"""Whether what a law computes is of the class that is needed there, as annotations tell."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import FunctionType, NoneType
from typing import cast, get_args

import numpy as np

from satura.rewrite.errors import brief
from satura.rewrite.language.annotations import (
    METHOD,
    can_be,
    class_of_field,
    has_members_of_its_own,
    parameter_class,
    returned_class,
)
from satura.rewrite.language.expressions import (
    Apply,
    AttributeVariable,
    Expression,
    Literal,
    Values,
)
from satura.rewrite.language.mistakes import MistakeError, with_article
from satura.rewrite.types.attributes import Attribute, UserAttribute
from satura.rewrite.types.plain import KindError, as_plain
from satura.rewrite.types.tensor_type import DType, TensorType

_BOOLS = (bool, np.bool_)
_USUAL = ("value", "scalar")  # of a number, of a constant
_ATTRIBUTES = frozenset(get_args(Attribute)) - {UserAttribute}
_CERTAIN = _ATTRIBUTES | {TensorType, METHOD}  # classes that nothing else passes for


def check_answer(expression: Expression, sort: type, taker: str) -> None:
    """Raise MistakeError where `taker` takes a `sort` and the expression is of another class."""
    found = expression.answers
    if found is None or can_be(found, sort):
        return
    advice = _dtype_advice(expression) if sort is DType else ""
    raise MistakeError(f"{taker} takes {with_article(sort)}, not {told(expression)}{advice}")


def _dtype_advice(expression: Expression) -> str:
    """What to write for a dtype that is given by its name, or as NumPy's."""
    given = expression.value if isinstance(expression, Literal) else None
    if not isinstance(given, str | type | np.dtype):
        return ""
    named = [each for each in DType if given in (each.value, each.name)]
    with suppress(TypeError):
        named = named or [each for each in DType if each.numpy == np.dtype(given)]
    return f"; write DType.{named[0].name}" if named else ""


def check_condition(expression: Expression) -> None:
    """Raise MistakeError where a condition is of another class than bool."""
    found = expression.answers
    if found is not None and (found is int or not any(can_be(found, each) for each in _BOOLS)):
        raise MistakeError(f"a condition is a bool, not {told(expression)}")


def check_arguments(expression: Expression) -> None:
    """Raise MistakeError where an attribute function of the author's is given what is certainly of
    another class than its annotations say."""
    if not isinstance(expression, Apply):
        return
    for argument in expression.all_arguments:
        check_arguments(argument)
    if not expression.is_of_author:
        return
    for name, argument in _by_parameter(expression):
        sort, found = parameter_class(expression.function, name), argument.answers
        if sort is None or found is None or found is NoneType or can_be(found, sort):
            continue
        if {sort, found} & _CERTAIN:
            taker = getattr(expression.function, "__name__", str(expression.function))
            raise MistakeError(
                f"{taker} takes {with_article(sort)} as '{name}', not {told(argument)}"
            )


def _by_parameter(call: Apply) -> Iterator[tuple[str, Expression]]:
    """The arguments of a call of a function, but those that stand behind all its parameters."""
    code = cast(FunctionType, call.function).__code__
    yield from zip(code.co_varnames[: code.co_argcount], call.arguments, strict=False)
    yield from call.keywords


def check_comparisons(expression: Expression) -> None:
    """Raise MistakeError where an expression compares an attribute with what it never equals."""
    if not isinstance(expression, Apply):
        return
    for argument in expression.all_arguments:
        check_comparisons(argument)
    if expression.function not in (operator.eq, operator.ne):
        return
    for attribute, other in _both_ways(expression):
        sort, found = attribute.answers, other.answers
        if sort is None or found is None or has_members_of_its_own(found):
            continue
        if sort in _ATTRIBUTES and not can_be(found, sort):
            raise MistakeError(
                f"{_shown(attribute)} is {with_article(sort)}, and {_shown(other)}"
                f" {with_article(found)}: they are never equal; {_comparable(attribute, other)}"
            )


def _both_ways(comparison: Apply) -> Iterator[tuple[Expression, Expression]]:
    one, other = comparison.arguments
    yield one, other
    yield other, one


def _comparable(attribute: Expression, other: Expression) -> str:
    """What may be meant by a comparison of an attribute with what is none."""
    sort = attribute.answers
    assert sort is not None
    if sort is DType:
        return f"name it, as in {attribute} == DType.F32"
    field = _field_like(sort, other.answers) if not isinstance(attribute, Literal) else ""
    by_field = f"compare {attribute}.{field}" if field else "compare values of one class"
    if other.answers is str:
        return f"write {attribute} == {sort.__name__}({_shown(other)}), or {by_field}"
    return by_field


def _field_like(sort: type, found: type | None) -> str:
    """The field of a `sort` that is of the class `found`; else the one that is usually meant."""
    names = [each.name for each in fields(sort)] if is_dataclass(sort) else []
    alike = [name for name in names if class_of_field(sort, name) is found]
    return next(iter((*alike, *(each for each in _USUAL if hasattr(sort, each)), *names)))


def _shown(expression: Expression) -> str:
    return repr(expression.value) if isinstance(expression, Literal) else str(expression)


def attribute_value(expression: Expression, sort: type, values: Values) -> Attribute:
    """The value of an attribute, made plain. Raises Refuse where there is none, KindError where it
    is of another class than `sort`."""
    result = expression.evaluate(values)
    if type(result) is not sort:  # a subclass could answer anything, anywhere
        must = f"{expression} must be {with_article(sort)}, not a {type(result).__name__}"
        raise KindError(undeclared(expression, result) or f"{must}: {brief(result)}")
    return cast(Attribute, as_plain(result))


def undeclared(expression: Expression, answer: object) -> str:
    """How an answer differs from what its function is declared to return; empty if it does not."""
    if not isinstance(expression, Apply) or expression.called is None:
        return ""
    declared = returned_class(expression.called)
    if declared is None or isinstance(answer, declared):
        return ""
    name = expression.called.__name__
    return f"{name} is declared to return {declared.__name__}, and returned {brief(answer)}"


def _name(found: type) -> str:
    return "None" if found is NoneType else found.__name__


def told(expression: Expression) -> str:
    """An expression that is wrong where it stands, its class, and what may be meant."""
    found = expression.answers
    if found is None:
        return str(expression)
    if isinstance(expression, AttributeVariable | Literal):
        return f"the {found.__name__} {expression}"
    if found is METHOD:
        return f"the method {expression} (call it: {expression}(…))"
    if isinstance(expression, Apply) and expression.is_of_author:
        name = getattr(expression.function, "__name__", str(expression.function))
        return f"{expression} ({name} is declared to return {_name(found)})"
    return f"{expression} ({with_article(found)})"
