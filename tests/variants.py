"""The same law in other clothes: other names, operands swapped, axes counted from the other end.

All is done on the rule as data, so a checker that only recognised a law's text would not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.expressions import Apply, AttributeVariable, Expression, Literal
from satura.rewrite.language.terms import Application, ScalarTerm, Tensor, Term, TypeOf
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    Shape,
    Slices,
    Window,
)
from satura.rewrite.types.tensor_type import TensorType

COMMUTATIVE = [BinaryFn(name) for name in ("add", "mul", "max", "min")]
Change = Callable[[Expression], Expression]


def rename(rule: Rule) -> Rule:
    """The law under another name, with other variables, in another order."""
    names = {name: f"v{number}" for number, name in enumerate(reversed(list(rule.variables)))}

    def other(leaf: Expression) -> Expression:
        if isinstance(leaf, AttributeVariable):
            return replace(leaf, name=names[leaf.name])
        return TypeOf(_term(leaf.term, other, names)) if isinstance(leaf, TypeOf) else leaf

    directions = tuple(
        Direction(
            f"other_{direction.label}",
            _application(_term(direction.left, other, names)),
            _term(direction.right, other, names),
            tuple(_expression(condition, other) for condition in direction.conditions),
            {names[name]: sort for name, sort in reversed(list(direction.variables.items()))},
            direction.place,
        )
        for direction in rule.directions
    )
    variables = {names[name]: sort for name, sort in reversed(list(rule.variables.items()))}
    return replace(
        rule, name=f"other_{rule.name}", law="", directions=directions, variables=variables
    )


def swap_operands(rule: Rule) -> Rule | None:
    """The law with the operands of its commutative functions swapped; None without any."""

    def other(term: Term) -> Term:
        if not isinstance(term, Application):
            return term
        operands = tuple(map(other, term.operands))
        function = term.attributes[0] if term.op.name == "binary" else None
        if isinstance(function, Literal) and function.value in COMMUTATIVE:
            operands = operands[::-1]
        return replace(term, operands=operands)

    directions = tuple(
        replace(direction, left=_application(other(direction.left)), right=other(direction.right))
        for direction in rule.directions
    )
    return None if directions == rule.directions else replace(rule, directions=directions)


def turn_round(rule: Rule) -> Rule | None:
    """The law read from right to left; None where that side does not bind all variables."""
    turned_round = []
    for direction in rule.directions:
        if not isinstance(direction.right, Application):
            return None
        if set(_bound_names(direction.right)) != set(direction.variables):
            return None
        turned_round.append(replace(direction, left=direction.right, right=direction.left))
    return replace(rule, directions=tuple(turned_round))


def mirror_axes(rule: Rule, inner_only: bool) -> Rule | None:
    """The law with its axes counted from the other end; None where it computes on no axes.

    Whatever it computes, it computes from mirrored attributes and types, and the result is mirrored
    back. With `inner_only` the first and the last axis stay, as a convolution needs it.
    """

    def mirror(value: object, like: TensorType) -> object:
        return _mirror_value(value, like.rank, inner_only)

    directions = []
    for direction in rule.directions:
        tensor = next(n for n, sort in direction.variables.items() if issubclass(sort, Tensor))
        like = TypeOf(Tensor(tensor))

        def inside(leaf: Expression, like: TypeOf = like) -> Expression:
            return leaf if isinstance(leaf, Literal) else Apply(mirror, (leaf, like))

        def computed(expression: Expression, like: TypeOf = like) -> Expression:
            changed = _expression(expression, inside)
            return Apply(mirror, (changed, like)) if isinstance(expression, Apply) else expression

        right = _with_attributes(direction.right, computed)
        conditions = tuple(_expression(each, inside) for each in direction.conditions)
        directions.append(replace(direction, right=right, conditions=conditions))
    changed = replace(rule, directions=tuple(directions))
    return None if changed.directions == rule.directions else changed


def _mirror_value(value: object, rank: int, inner_only: bool) -> object:
    def reverse(entries: tuple[object, ...]) -> tuple[object, ...]:
        if inner_only and len(entries) == rank >= 2:
            return (entries[0], *entries[-2:0:-1], entries[-1])
        return entries[::-1]

    axes = reverse(tuple(range(rank)))
    if isinstance(value, TensorType):
        return value.with_shape(reverse(value.shape))  # type: ignore[arg-type]  # dims of a shape
    if isinstance(value, Shape):
        return Shape(reverse(value.dims))  # type: ignore[arg-type]
    if isinstance(value, Padding):
        return Padding(reverse(value.lo), reverse(value.hi))  # type: ignore[arg-type]
    if isinstance(value, Slices):
        parts = (value.starts, value.sizes, value.steps)
        return Slices(*map(reverse, parts))  # type: ignore[arg-type]
    if isinstance(value, Window):
        return value.permuted(Perm(tuple(range(value.rank))[::-1]))
    if isinstance(value, Perm):
        last = len(value.order) - 1
        return Perm(tuple(last - axis for axis in reversed(value.order)))
    if isinstance(value, Axis):
        return Axis(axes.index(value.index))
    if isinstance(value, Axes):
        return Axes(tuple(sorted(axes.index(axis) for axis in value.indices)))
    return value


def _expression(expression: Expression, leaf: Change) -> Expression:
    if not isinstance(expression, Apply):
        return leaf(expression)
    return replace(
        expression,
        arguments=tuple(_expression(argument, leaf) for argument in expression.arguments),
        keywords=tuple((name, _expression(value, leaf)) for name, value in expression.keywords),
    )


def _term(term: Term, leaf: Change, names: Mapping[str, str]) -> Term:
    if isinstance(term, Tensor):
        return type(term)(names[term.name])
    if isinstance(term, ScalarTerm):
        return ScalarTerm(_expression(term.value, leaf))
    assert isinstance(term, Application)
    operands = tuple(_term(operand, leaf, names) for operand in term.operands)
    attributes = tuple(_expression(attribute, leaf) for attribute in term.attributes)
    return replace(term, operands=operands, attributes=attributes)


def _with_attributes(term: Term, change: Change) -> Term:
    if isinstance(term, ScalarTerm):
        return ScalarTerm(change(term.value))
    if isinstance(term, Application):
        operands = tuple(_with_attributes(operand, change) for operand in term.operands)
        return replace(
            term, operands=operands, attributes=tuple(change(each) for each in term.attributes)
        )
    return term


def _bound_names(term: Term) -> list[str]:
    if isinstance(term, Tensor):
        return [term.name]
    if isinstance(term, ScalarTerm):
        return [term.value.name] if isinstance(term.value, AttributeVariable) else []
    assert isinstance(term, Application)
    own = [each.name for each in term.attributes if isinstance(each, AttributeVariable)]
    return own + [name for operand in term.operands for name in _bound_names(operand)]


def _application(term: Term) -> Application:
    assert isinstance(term, Application)
    return term
