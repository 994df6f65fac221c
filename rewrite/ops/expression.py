"""A formula as data: its text, and the expression that the text says."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Operand:
    """An element of operand `position`."""

    position: int


@dataclass(frozen=True)
class Number:
    """A number that takes the element type of what it meets."""

    value: float | int


@dataclass(frozen=True)
class Parameter:
    """The number in attribute `position`."""

    position: int


@dataclass(frozen=True)
class Call:
    """A scalar function, `select`, or a conversion to the element type of that name."""

    function: str
    arguments: tuple[Expression, ...]
    text: str = field(compare=False)


Expression = Operand | Number | Parameter | Call


@dataclass(frozen=True)
class Formula:
    """A formula's text, and what it says."""

    text: str
    root: Expression
