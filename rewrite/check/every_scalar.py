"""Firings in which a scalar that an author's function reads has each value of 8 bits in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FunctionType

from satura.rewrite.check.chosen_elements import all_values
from satura.rewrite.check.instances import Instance, fires, is_well_typed
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, Expression
from satura.rewrite.language.ours import is_ours
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType

BASES = 4  # firings of each dtype, which have their turn
ENOUGH = 6  # elements of a tensor, of which fewer show less


def of_every_scalar(direction: Direction, firings: Sequence[Instance]) -> Iterator[Instance]:
    """Firings like the smallest ones that have elements, where one scalar has another value.

    Only a scalar of 8 bits or a bool counts that a function of the rule's author reads: what
    satura computes of it is right for all values.
    """
    for name in _scalars_read(direction):
        by_dtype: dict[DType, list[Instance]] = {}
        for each in sorted(firings, key=_order):
            value = each.bindings[name]
            if isinstance(value, Scalar) and value.dtype.itemsize == 1 and _has_elements(each):
                by_dtype.setdefault(value.dtype, []).append(each)
        for dtype, bases in by_dtype.items():
            few = bases[:BASES]
            bits = all_values(dtype).tobytes()
            for number in range(len(bits)):
                base = few[number % len(few)]
                scalar = Scalar(dtype, bits[number : number + 1])
                values = tuple((key, scalar if key == name else old) for key, old in base.values)
                instance = replace(base, values=values)
                if is_well_typed(instance) and fires(instance):
                    yield instance


def _scalars_read(direction: Direction) -> list[str]:
    """The scalars among the variables that an author's function reads."""
    read = {name for each in direction.expressions for name in _read(each)}
    return [name for name, sort in direction.variables.items() if sort is Scalar and name in read]


def _read(expression: Expression) -> Iterator[str]:
    """The variables that the author's functions of an expression read."""
    if not isinstance(expression, Apply):
        return
    if _is_authored(expression):
        yield from expression.variables()
    else:
        for argument in expression.all_arguments:
            yield from _read(argument)


def _is_authored(expression: Apply) -> bool:
    function = expression.function
    return isinstance(function, FunctionType) and not is_ours(function)


def _order(instance: Instance) -> tuple[bool, float]:
    """Those with enough elements first, then by size."""
    return max(_elements(instance), default=0) < ENOUGH, instance.weight


def _has_elements(instance: Instance) -> bool:
    return min(_elements(instance), default=1) > 0


def _elements(instance: Instance) -> list[int]:
    """How many elements the tensors of fixed size have; 0 for the others."""
    sizes = (type_.size for type_ in instance.types.values())
    return [size if isinstance(size, int) else 0 for size in sizes]
