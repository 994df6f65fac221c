"""Instances of which a variable is made what a condition says that it is.

`w == f(x.type)`, `p.order == (0, 2, 1)`: what is drawn for such a variable is seldom that, and what
the condition computes always is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.language.expressions import Apply, AttributeVariable, Expression, Literal
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.tensor_type import TensorType


def solved(instance: Instance) -> Instance:
    """The instance with variables that meet the equations among its conditions, one after the
    other; those that cannot be computed, or make it ill typed, stay."""
    for condition in instance.direction.conditions:
        for left, right in _equations(condition):
            instance = _with_equal(instance, left, right) or instance
    return instance


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition that all have to hold."""
    if isinstance(condition, Apply) and condition.function is operator.and_:
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def _equations(condition: Expression) -> Iterator[tuple[Expression, Expression]]:
    """Both sides of each equation that has to hold, that of a variable first."""
    for part in conjuncts(condition):
        if isinstance(part, Apply) and part.function is operator.eq:
            left, right = part.arguments
            for one, other in ((left, right), (right, left)):
                if _variable(one) and _variable(one) not in other.variables():
                    yield one, other
                    break


def _variable(side: Expression) -> str:
    """The name of the attribute that a side is, or of which it is a field; else empty."""
    if isinstance(side, Apply) and side.function is getattr:
        side = side.arguments[0]
    return side.name if isinstance(side, AttributeVariable) else ""


def _with_equal(instance: Instance, left: Expression, right: Expression) -> Instance | None:
    """The instance whose variable on the left is equal to the right; None where there is none."""
    name = _variable(left)
    try:
        old, value = instance.bindings[name], right.evaluate(instance.bindings)
        if isinstance(left, Apply):
            field = left.arguments[1]
            assert isinstance(field, Literal) and not isinstance(old, TensorType)
            value = replace(old, **{str(field.value): value})  # type: ignore[type-var]
        if value == old or type(value) is not type(old):
            return None
        chosen = cast(Attribute, value)
        values = tuple((key, chosen if key == name else each) for key, each in instance.values)
        other = replace(instance, values=values)
        return other if is_well_typed(other) else None
    except Exception:  # an author's function may raise anything where an operand makes no sense
        return None
