"""Formulas found in programs: nodes compared with nodes, up to the order of factors and addends.

Types are compared with every node, so that what a formula's operand stands for has its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product as cartesian
from math import isclose

import numpy as np

from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import BinaryFn, UnaryFn
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import SymbolicDim, product, static

Nodes = Sequence[Node]
_LARGEST = 1e38  # what f32, the type of attributes, surely holds
_COMMUTATIVE = ("add", "mul", "max", "min", "eq")
_KINDS = {"div": "mul", "sub": "add", "relu": "max"}


@dataclass(frozen=True)
class Formula:
    """Nodes that compute `result` of `x`, of tensors that are constants, and of numbers.

    `unknown` are the numbers that stand for others, each with the position of what it stands for.
    """

    nodes: tuple[Node, ...]
    result: int
    x: int
    constants: tuple[int, ...]
    unknown: Mapping[float, int]


@dataclass(frozen=True)
class Match:
    """What a formula's x, constants and unknown numbers are in a program."""

    x: int = -1
    numbers: Mapping[int, float] = field(default_factory=dict)
    constants: Mapping[int, Constant] = field(default_factory=dict)


def found(formula: Formula, nodes: Nodes, index: int) -> Match | None:
    """What the parts of a formula are where node `index` is its result; None where it is not."""
    matches = _Comparison(formula, nodes).node(formula.result, index, Match())
    wanted = len(formula.constants), len(formula.unknown)
    return next((m for m in matches if (len(m.constants), len(m.numbers)) == wanted), None)


def root_kind(node: Node) -> str:
    """What two nodes have in common of which one may be written as the other."""
    if node.op.name not in ("unary", "binary"):
        return node.op.name
    return _KINDS.get(_function(node), _function(node))


@dataclass(frozen=True)
class _Comparison:
    """One formula beside one program; each method gives all ways in which they agree."""

    formula: Formula
    nodes: Nodes

    def node(self, wanted: int, index: int, match: Match) -> Iterator[Match]:
        """Node `wanted` of the formula is node `index` of the program."""
        ours, theirs = self.formula.nodes[wanted], self.nodes[index]
        if ours.type != theirs.type:
            return
        if wanted == self.formula.x:
            if match.x in (-1, index):
                yield replace(match, x=index)
        elif number_of(self.formula.nodes, wanted) is not None:
            value = number_of(self.nodes, index)
            if value is not None:
                yield from self._value(wanted, value, match)
        elif self._constant(wanted) is not None:
            yield from self._bound(wanted, index, match)
        elif root_kind(ours) == "mul":
            for after, factor in self._factors(self._split(wanted), index, match):
                yield from self._numbers(self._multiples(wanted), factor, after)
        elif self._shift(wanted) is not None:
            yield from self._shifted(wanted, index, match)
        else:
            yield from self._same(wanted, index, match)

    def _same(self, wanted: int, index: int, match: Match) -> Iterator[Match]:
        """Both apply one op to operands that agree."""
        ours, theirs = self.formula.nodes[wanted], self.nodes[index]
        if ours.op is theirs.op and ours.attributes == theirs.attributes:
            yield from self._all(ours.operands, theirs.operands, match)
            if ours.op.name == "binary" and _function(ours) in _COMMUTATIVE:
                yield from self._all(ours.operands, theirs.operands[::-1], match)
        elif is_function(ours, "max") and is_function(theirs, "relu"):
            x, least = ours.operands
            for after in self._value(least, 0.0, match):
                yield from self.node(x, theirs.operands[0], after)

    def _all(self, wanted: Sequence[int], found: Sequence[int], match: Match) -> Iterator[Match]:
        if not wanted:
            yield match
            return
        for after in self.node(wanted[0], found[0], match):
            yield from self._all(wanted[1:], found[1:], after)

    # Numbers

    def _value(self, wanted: int, value: float, match: Match) -> Iterator[Match]:
        """A number of the formula, or a constant that is one, is `value`."""
        at, number = self._constant(wanted), number_of(self.formula.nodes, wanted)
        if at is not None:
            type_ = self.formula.nodes[at].type
            if not type_.shape:
                yield from self._with(at, Constant(np.array(value, type_.dtype.numpy)), match)
        elif number is not None:
            yield from self._numbers([(number, 1)], value, match)

    def _numbers(
        self, wanted: Sequence[tuple[float, int]], value: float, match: Match
    ) -> Iterator[Match]:
        """The product of powers of the formula's numbers is `value`."""
        rest, unknown = value, None
        for number, power in wanted:
            at = self.formula.unknown.get(number)
            if at is not None and at not in match.numbers:
                unknown = at, power
            else:
                known = number if at is None else match.numbers[at]
                if known == 0 and (rest != 0 or power < 0):
                    return
                rest = rest / known**power if known else 1.0
        if unknown is None:
            if isclose(rest, 1.0, rel_tol=1e-6):
                yield match
        elif abs(rest) < _LARGEST and (rest or unknown[1] > 0):
            yield replace(match, numbers={**match.numbers, unknown[0]: rest ** unknown[1]})

    # Products and sums with numbers

    def _split(self, wanted: int) -> list[int]:
        """The factors of a product in the formula that are not numbers."""
        node = self.formula.nodes[wanted]
        if number_of(self.formula.nodes, wanted) is not None:
            return []
        x, *y = node.operands[:2] if root_kind(node) == "mul" else [wanted]
        if is_function(node, "mul"):
            return [*self._split(x), *self._split(y[0])]
        if is_function(node, "div") and number_of(self.formula.nodes, y[0]) is not None:
            return self._split(x)
        return [wanted]

    def _multiples(self, wanted: int) -> list[tuple[float, int]]:
        """The numbers among the factors of a product in the formula, each with its power."""
        node, number = self.formula.nodes[wanted], number_of(self.formula.nodes, wanted)
        if number is not None:
            return [(number, 1)]
        if is_function(node, "mul"):
            return [each for x in node.operands for each in self._multiples(x)]
        if is_function(node, "div"):
            by = number_of(self.formula.nodes, node.operands[1])
            return [] if by is None else [*self._multiples(node.operands[0]), (by, -1)]
        return []

    def _factors(
        self, wanted: Sequence[int], index: int, match: Match
    ) -> Iterator[tuple[Match, float]]:
        """Node `index` is the product of these factors and of the number that comes with them."""
        node, number = self.nodes[index], number_of(self.nodes, index)
        if number is not None:
            if not wanted:
                yield match, number
            return
        if is_function(node, "mul"):
            for sides in cartesian((0, 1), repeat=len(wanted)):
                parts = [[f for f, s in zip(wanted, sides, strict=True) if s == k] for k in (0, 1)]
                for first, a in self._factors(parts[0], node.operands[0], match):
                    for second, b in self._factors(parts[1], node.operands[1], first):
                        yield second, a * b
        elif is_function(node, "div"):
            by = number_of(self.nodes, node.operands[1])
            if by:
                for after, a in self._factors(wanted, node.operands[0], match):
                    yield after, a / by
        if len(wanted) == 1:
            is_quotient = is_function(self.formula.nodes[wanted[0]], "div")
            whole = self._same if is_quotient else self.node
            for after in whole(wanted[0], index, match):
                yield after, 1.0

    def _shift(self, wanted: int) -> tuple[int, float, int] | None:
        """x, a number and its sign where a node of the formula is x plus or minus the number."""
        return next(iter(_shifts(self.formula.nodes, wanted)), None)

    def _shifted(self, wanted: int, index: int, match: Match) -> Iterator[Match]:
        """Both add a number, or subtract one."""
        shift = self._shift(wanted)
        assert shift is not None
        x, number, sign = shift
        for y, by, direction in [*_shifts(self.nodes, index), (index, 0.0, 1)]:
            for after in self._numbers([(number, 1)], by * direction * sign, match):
                yield from self.node(x, y, after)

    # Constants

    def _constant(self, wanted: int) -> int | None:
        """The constant that a node of the formula is, reshaped or repeated."""
        while self.formula.nodes[wanted].op.name in ("reshape", "broadcast"):
            wanted = self.formula.nodes[wanted].operands[0]
        return wanted if wanted in self.formula.constants else None

    def _bound(self, wanted: int, index: int, match: Match) -> Iterator[Match]:
        """A constant of the formula is one of the program, reshaped or repeated alike."""
        at = self._constant(wanted)
        ours, theirs = (
            spread_from(self.formula.nodes, wanted),
            self.nodes[spread_from(self.nodes, index)],
        )
        if at is None or theirs.op.name != "constant":
            return
        wide = self.formula.nodes[ours].type.shape
        if any(isinstance(dim, SymbolicDim) for dim in wide) or any(
            dim not in (1, all_) for dim, all_ in zip(theirs.type.shape, wide, strict=True)
        ):
            return
        if np.isnan(theirs.constant.array).any():
            return  # ONNX leaves open what a bound that is NaN does
        whole = np.broadcast_to(theirs.constant.array, tuple(map(static, wide)))
        array = whole.reshape(tuple(map(static, self.formula.nodes[at].type.shape)))
        yield from self._with(at, Constant(array), match)

    def _with(self, constant: int, value: Constant, match: Match) -> Iterator[Match]:
        """A constant of the formula is `value`, as wherever it stands."""
        place = self.formula.constants.index(constant)
        if match.constants.get(place, value) == value:
            yield replace(match, constants={**match.constants, place: value})


def _shifts(nodes: Nodes, index: int) -> Iterator[tuple[int, float, int]]:
    """x, the number and its sign where a node is x plus a number or minus one."""
    node = nodes[index]
    if is_function(node, "add") or is_function(node, "sub"):
        x, y = node.operands
        sides = [(x, y, -1)] if is_function(node, "sub") else [(x, y, 1), (y, x, 1)]
        for other, number, sign in sides:
            value = number_of(nodes, number)
            if value is not None and number_of(nodes, other) is None:
                yield other, value, sign


def is_function(node: Node, function: str) -> bool:
    """Whether a node applies this function to each element."""
    return node.op.name in ("unary", "binary") and _function(node) == function


def _function(node: Node) -> str:
    function = node.attributes[0]
    assert isinstance(function, UnaryFn | BinaryFn)
    return function.name


def spread_from(nodes: Nodes, index: int) -> int:
    """What is repeated to become a node."""
    return nodes[index].operands[0] if nodes[index].op.name == "broadcast" else index


def number_of(nodes: Nodes, index: int) -> float | None:
    """The value of all elements of a constant, or of what is repeated from one."""
    node = nodes[spread_from(nodes, index)]
    if node.op.name != "constant" or product(node.type.shape) != 1:
        return None
    return float(np.asarray(node.constant.array).ravel()[0])
