"""Laws that drop an op, such as transpose(x, identity) = x, applied before the op's node is made.

Where a direction would make a node that such a law drops, it equates what it matched with the
node's operand instead: else there is one more node, over its own class, that others go on from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property

from satura.rewrite.language.dsl import Computed, Direction
from satura.rewrite.language.expressions import AttributeVariable, Expression, Values
from satura.rewrite.language.terms import (
    Application,
    Tensor,
    Term,
    subterms,
    term_variables,
    type_of,
)
from satura.rewrite.types.attributes import Attribute, Count


@dataclass(frozen=True, eq=False)
class IsDropped(Expression):
    """Whether the direction `law`, which drops an op, holds for `term`: a count of 1 or 0."""

    term: Application
    law: Direction

    @property
    def operand(self) -> Term:
        """What `term` equals then."""
        return next(term for name, term in self._operands if name == str(self.law.right))

    @property
    def _operands(self) -> Iterator[tuple[str, Term]]:
        """The variables of `law` for tensors, with what they stand for."""
        return zip(map(str, self.law.left.operands), self.term.operands, strict=True)

    def evaluate(self, values: Values) -> Count:
        return self.count(values, {})

    def count(self, values: Values, made: Mapping[Expression, Attribute]) -> Count:
        """The answer, where the attributes in `made` are computed already."""
        read = self.law.inputs
        with suppress(Exception):  # raised again, with the law's name, when it fires for the node
            own: dict[str, object] = {
                name: type_of(term, values) for name, term in self._operands if name in read
            }
            for name, value in zip(self.law.left.attributes, self.term.attributes, strict=True):
                own[str(name)] = made[value] if value in made else value.evaluate(values)
            return Count(int(all(self.law.holds(each, own) for each in self.law.conditions)))
        return Count(0)

    def variables(self) -> Iterator[str]:
        for name, term in self._operands:
            if name in self.law.inputs:
                yield from term_variables(term)
        for value in self.term.attributes:
            yield from value.variables()


@dataclass(frozen=True, kw_only=True)
class Dropping(Direction):
    """The direction `plain`, whose right side is `dropped` for some matches.

    The last output says for which; `number` is that of the direction that drops.
    """

    plain: Direction
    dropped: IsDropped
    number: int

    @cached_property
    def outputs(self) -> tuple[Computed, ...]:
        return (*self.plain.outputs, Computed(self.dropped, Count))

    def compute(
        self, values: Values, found: tuple[object, ...] | None = None
    ) -> tuple[Attribute, ...]:
        results = self.plain.compute(values, found)
        pairs = zip(self.plain.outputs, results, strict=True)
        made = {output.expression: result for output, result in pairs}
        return (*results, self.dropped.count(values, made))


def with_drops(directions: Sequence[Direction], apart: Sequence[bool]) -> list[Direction]:
    """`directions`, those that can make a node that another drops as `Dropping`.

    Those that run `apart` are let alone: each does what its own law says.
    """
    numbers = {
        each.left.op.name: number
        for number, (each, alone) in enumerate(zip(directions, apart, strict=True))
        if not alone and _drops(each)
    }
    found = []
    for direction, alone in zip(directions, apart, strict=True):
        made = None if alone else _made(direction)
        if made is not None and made.op.name in numbers:
            number = numbers[made.op.name]
            same = {field.name: getattr(direction, field.name) for field in fields(Direction)}
            dropped = IsDropped(made, directions[number])
            direction = Dropping(**same, plain=direction, dropped=dropped, number=number)
        found.append(direction)
    return found


def _drops(direction: Direction) -> bool:
    """Whether it equates any node of an op, where its conditions hold, with an operand."""
    left = direction.left
    return (
        direction.right in left.operands
        and all(type(operand) is Tensor for operand in left.operands)
        and all(isinstance(value, AttributeVariable) for value in left.attributes)
        and len({*left.operands, *left.attributes}) == len(left.operands + left.attributes)
        and not direction.varies
    )


def _made(direction: Direction) -> Application | None:
    """The right side, where it is one node over what is matched."""
    right, matched = direction.right, frozenset(subterms(direction.left))
    if not isinstance(right, Application) or right in matched:
        return None
    return right if matched.issuperset(right.operands) else None
