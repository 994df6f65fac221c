"""Sums of which terms overflow that would cancel: nothing is promised of what depends on them.

In f32, 1e30 * 1e30 - 1e30 * 1e30 is inf - inf, and 1e30 * (1e30 - 1e30) is 0. An infinity that came
in by an argument or a constant, that a function has at a pole, as 1 / 0, or that a cast to a
smaller type makes is no overflow: what it leads to is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from satura.rewrite.check.compare import SUMS, apply_op, node_values
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import BinaryFn, ReduceFn
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.tensor_type import Array, DType

STAND_INS = (1.0, -1.0)  # for such sums: what depends on them is another number for one of these
POLES = (0.0, 1.0, -1.0)  # of scalar functions, none of which overflows there
MOST_LEFT = 0.5  # of the largest number, where a term overflows that others nearly cancel

Mask = NDArray[np.bool_]


def where_overflow_cancels(program: Program, arguments: Mapping[str, Array]) -> Mask:
    """The places at which one of two outputs of one type depends on a sum whose terms overflow."""
    usual = node_values(program.nodes, arguments)
    places = np.zeros(usual[program.output_nodes[0]].shape, np.bool_)
    for number in STAND_INS:
        found = _values_with(number, program.nodes, arguments)
        for index in program.output_nodes:
            places |= ~agreement(usual[index], found[index])
    return places


def _values_with(
    number: float, nodes: Sequence[Node], arguments: Mapping[str, Array]
) -> list[Array]:
    """The values of the nodes if sums whose terms overflow and cancel were this `number`.

    Beside them goes a computation where what overflows is the largest number instead: what is
    still infinite in it did not overflow.
    """
    values: list[Array] = []
    bounded: list[Array] = []
    for node in nodes:
        if node.op.name == "input":
            value = bound = np.array(arguments[node.input_name], order="C")
        else:
            given, held = ([each[i] for i in node.operands] for each in (values, bounded))
            value, bound = (apply_op(node.op, each, node.attributes) for each in (given, held))
            if DType.of(value.dtype).is_float and node.op.name not in ("cast", "constant"):
                are_finite = _of_all(node, held, np.isfinite)
                bound = np.where(are_finite & _has_no_pole(node, held), _largest(bound), bound)
                if _is_sum(node):
                    are_numbers = are_finite & _of_all(node, given, _is_number)
                    cancels = _cancels(value, bound, are_numbers)
                    stand_in = np.array(number, value.dtype)
                    value, bound = (np.where(cancels, stand_in, each) for each in (value, bound))
        values.append(value)
        bounded.append(bound)
    return values


def _largest(array: Array) -> Array:
    """The array with the largest number of its sign in place of each infinity."""
    most = float(ml_dtypes.finfo(array.dtype).max)
    wide = array.astype(np.float64)
    return np.where(np.isinf(wide), np.copysign(most, wide), wide).astype(array.dtype)


def _is_sum(node: Node) -> bool:
    """Whether a node adds or subtracts floats, or products of them."""
    if node.op.kind in SUMS:
        return node.op.kind is Kind.CONTRACTION or ReduceFn("sum") in node.attributes
    return node.op.name == "binary" and node.attributes[0] in (BinaryFn("add"), BinaryFn("sub"))


def _cancels(value: Array, bound: Array, are_numbers: Mask) -> Mask:
    """Where a sum of numbers is NaN, or infinite though little is left of its bounded terms."""
    most = MOST_LEFT * float(ml_dtypes.finfo(bound.dtype).max)
    wide, left = value.astype(np.float64), np.abs(bound.astype(np.float64))
    return np.asarray(np.isnan(wide) & are_numbers | np.isinf(wide) & (left <= most))


def _of_all(node: Node, operands: Sequence[Array], test: Callable[[Array], Mask]) -> Mask:
    """Where a test holds for all elements of float operands that an element is made of."""
    passed = [
        np.where(test(array.astype(np.float64)), np.ones_like(array), np.array(np.nan, array.dtype))
        if DType.of(array.dtype).is_float
        else array
        for array in operands
    ]
    if node.op.kind is Kind.ELEMENTWISE:  # of which pow(1, NaN) is 1
        return np.asarray(np.logical_and.reduce([each == each for each in passed]))
    return ~np.isnan(apply_op(node.op, passed, node.attributes).astype(np.float64))


def _is_number(array: Array) -> Mask:
    return ~np.isnan(array)


def _has_no_pole(node: Node, operands: Sequence[Array]) -> Mask:
    """Where no operand of an elementwise node is a pole of some function; else everywhere."""
    if node.op.kind is not Kind.ELEMENTWISE:
        return np.asarray(True)
    return _of_all(node, operands, lambda array: ~np.isin(array, POLES))
