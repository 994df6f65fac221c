"""Rules with one mistake each: what the checker has to find.

A mutant differs from its rule in one direction by one dropped condition, two swapped variables, two
swapped operands, or one attribute of the right side that is slightly wrong. What says the same
whatever the rule is left out: a tensor equals itself, and one element has only axes of extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.expressions import Apply, Expression, Literal
from satura.rewrite.language.terms import Application, ScalarTerm, Tensor, Term, subterms
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    Refuse,
    Shape,
    Slices,
    Window,
)
from satura.rewrite.types.constant import Scalar

Mutation = tuple[str, Direction]
SYMMETRIC = ((Literal(BinaryFn("add")),), (Literal(BinaryFn("mul")),))
T = TypeVar("T")


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """All mutants of `rule` with their names."""
    for number, direction in enumerate(rule.directions):
        for what, wrong in _mutations(direction):
            directions = list(rule.directions)
            directions[number] = wrong
            yield f"{direction.label}, {what}", replace(rule, directions=tuple(directions))


def _mutations(direction: Direction) -> Iterator[Mutation]:
    for number, condition in enumerate(direction.conditions):
        rest = direction.conditions[:number] + direction.conditions[number + 1 :]
        yield f"without {condition}", replace(direction, conditions=rest)
    for term in dict.fromkeys(subterms(direction.right)):
        for what, wrong in _wrong_terms(direction, term):
            right = _replace_term(direction.right, term, wrong)
            if right != direction.left:
                yield what, replace(direction, right=right)


def _replace_term(term: Term, old: Term, new: Term) -> Term:
    if term == old:
        return new
    if isinstance(term, Application):
        operands = tuple(_replace_term(operand, old, new) for operand in term.operands)
        return replace(term, operands=operands)
    return term


def _wrong_terms(direction: Direction, term: Term) -> Iterator[tuple[str, Term]]:
    if isinstance(term, Tensor):
        for name, sort in direction.variables.items():
            if name != term.name and issubclass(sort, Tensor):
                yield f"{name} for {term}", cast(Term, sort(name))
    elif isinstance(term, ScalarTerm):
        yield f"another value for {term}", ScalarTerm(Apply(_another_scalar, (term.value,)))
    elif isinstance(term, Application):
        symmetric = term.attributes in SYMMETRIC
        if len(term.operands) == 2 and len(set(term.operands)) == 2 and not symmetric:
            swapped = (term.operands[1], term.operands[0])
            yield f"swapped operands of {term}", replace(term, operands=swapped)
        is_unit = term.op.name == "reshape" and isinstance(term.operands[0], ScalarTerm)
        for number, attribute in enumerate(() if is_unit else term.attributes):
            for what, wrong in _wrong_attributes(attribute, term.op.attributes[number]):
                attributes = list(term.attributes)
                attributes[number] = wrong
                yield f"{what} in {term}", replace(term, attributes=tuple(attributes))


def _wrong_attributes(attribute: Expression, sort: type) -> Iterator[tuple[str, Expression]]:
    if isinstance(attribute, Literal):
        return
    for what, function in WRONG.get(sort, {}).items():
        yield what, Apply(function, (attribute,))
    if isinstance(attribute, Apply):
        if attribute.function is getattr and attribute.arguments[1] == Literal("inverse"):
            yield "no inverse", attribute.arguments[0]
        for number, argument in enumerate(attribute.arguments):
            inner = isinstance(argument, Apply) and argument.function is getattr
            if inner and cast(Apply, argument).arguments[1] == Literal("inverse"):
                arguments = list(attribute.arguments)
                arguments[number] = cast(Apply, argument).arguments[0]
                yield "no inner inverse", replace(attribute, arguments=tuple(arguments))
        first, *rest = attribute.arguments
        if len(rest) == 1 and type(first) is type(rest[0]) and sort in (Perm, Slices, Padding):
            yield "swapped arguments", replace(attribute, arguments=(rest[0], first))


def _refuse_unchanged(old: T, new: T) -> T:
    """`new`; refuses where nothing changed, so that a mutant fires only where it is wrong."""
    if old == new:
        raise Refuse("nothing changes")
    return new


def _another_scalar(value: Scalar) -> Scalar:
    """Another element of the same dtype."""
    zeros = value.bits == bytes(len(value.bits))
    return Scalar.of(1 if zeros else 0, value.dtype)


def _another_perm(perm: Perm) -> Perm:
    """Another permutation: the last two axes change places."""
    if len(perm.order) < 2:
        raise Refuse("there is none")
    return Perm((*perm.order[:-2], perm.order[-1], perm.order[-2]))


def _shifted_padding(padding: Padding) -> Padding:
    """The same extents, shifted by one where there is a border."""
    moved = [
        (lo - 1, hi + 1) if lo else (lo, hi) for lo, hi in zip(padding.lo, padding.hi, strict=True)
    ]
    return _refuse_unchanged(
        padding, Padding(tuple(a for a, _ in moved), tuple(b for _, b in moved))
    )


def _wider_padding(padding: Padding) -> Padding:
    """One element more at the end of each axis."""
    return _refuse_unchanged(padding, Padding(padding.lo, tuple(hi + 1 for hi in padding.hi)))


def _later_slices(slices: Slices) -> Slices:
    """The same extents from one element earlier, where there is one."""
    starts = tuple(
        start - 1 if isinstance(start, int) and start else start for start in slices.starts
    )
    return _refuse_unchanged(slices, replace(slices, starts=starts))


def _reversed_slices(slices: Slices) -> Slices:
    """The same elements in reverse."""
    axes = list(zip(slices.starts, slices.sizes, slices.steps, strict=True))
    starts = tuple(start + (size - 1) * step for start, size, step in axes)
    return _refuse_unchanged(
        slices, Slices(starts, slices.sizes, tuple(-step for step in slices.steps))
    )


def _shifted_window(window: Window) -> Window:
    """The same extents, with the border shifted by one."""
    moved = [
        (lo - 1, hi + 1) if lo else (lo, hi) for lo, hi in zip(window.lo, window.hi, strict=True)
    ]
    lo, hi = tuple(a for a, _ in moved), tuple(b for _, b in moved)
    return _refuse_unchanged(window, replace(window, lo=lo, hi=hi))


def _other_fill(window: Window) -> Window:
    """Another value outside."""
    if not window.has_border:
        raise Refuse("the window has no border")
    return replace(window, fill=_another_scalar(window.fill))


def _next_axis(axis: Axis) -> Axis:
    """The axis after."""
    return Axis(axis.index + 1)


def _fewer_axes(axes: Axes) -> Axes:
    """One axis less."""
    return _refuse_unchanged(axes, Axes(axes.indices[1:]))


def _reversed_shape(shape: Shape) -> Shape:
    """The dims in reverse."""
    return _refuse_unchanged(shape, Shape(shape.dims[::-1]))


WRONG: dict[type, dict[str, Callable[..., object]]] = {
    Perm: {"another permutation": _another_perm},
    Padding: {"shifted by one": _shifted_padding, "wider by one": _wider_padding},
    Slices: {"off by one": _later_slices, "reversed": _reversed_slices},
    Window: {"shifted by one": _shifted_window, "another fill": _other_fill},
    Axis: {"next axis": _next_axis},
    Axes: {"an axis less": _fewer_axes},
    Shape: {"dims reversed": _reversed_shape},
}
