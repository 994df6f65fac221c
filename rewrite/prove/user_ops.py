"""The meaning of users' elementwise ops: an unknown function of the elements at one index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import z3

from satura.rewrite.ops import Kind, Op
from satura.rewrite.prove.paths import Undecided
from satura.rewrite.prove.size import Size
from satura.rewrite.prove.stand_in import StandIn
from satura.rewrite.prove.tensors import Elements, Index, Judge, demand_one_shape
from satura.rewrite.prove.z3_terms import BOOL, ELEMENT, INT
from satura.rewrite.types.attributes import Attribute


def user_elements(
    judge: Judge, op: Op, operands: Sequence[Elements], attributes: Sequence[object]
) -> Elements:
    """An op with a formula on operands of one shape; its dtypes are left open."""
    if op.kind is not Kind.ELEMENTWISE:
        raise Undecided(f"{op.name} runs on the host: nothing is known of its elements")
    first = operands[0]
    for other in operands[1:]:
        demand_one_shape(judge, first, other)
    name = f"user {op.name} {' '.join(map(name_of, attributes))}"
    dtypes, count = [operand.dtype for operand in operands], len(operands)
    takes = z3.Function(f"takes {name}", *[INT] * count, BOOL)
    gives = z3.Function(f"gives {name}", *[INT] * count, INT)
    value = z3.Function(name, *[INT] * count, *[ELEMENT] * count, ELEMENT)
    judge.always(takes(*dtypes), f"{op.name} does not take the dtypes")

    # Open attributes are known apart by identity: `at` keeps them, so that no other takes their id.
    def at(index: Index, _kept: Sequence[object] = attributes) -> z3.ExprRef:
        return value(*dtypes, *(operand.at(index) for operand in operands))

    return Elements(first.shape, gives(*dtypes), at)


def name_of(attribute: object) -> str:
    """A text that two attributes share only where they are equal in every case."""
    if type(attribute) is Size:
        return str(attribute.term)
    if isinstance(attribute, StandIn) or not isinstance(attribute, Attribute | tuple | int):
        return f"open {id(attribute)}"
    if isinstance(attribute, tuple):
        return f"({', '.join(map(name_of, attribute))})"
    if is_dataclass(attribute):
        parts = [getattr(attribute, field.name) for field in fields(attribute)]
        return f"{type(attribute).__name__}({', '.join(map(name_of, parts))})"
    return repr(attribute)
