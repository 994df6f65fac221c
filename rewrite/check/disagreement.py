"""How the outputs of a law's two sides differ, where they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from satura.rewrite.check.arguments import LEAST_FAR, are_far
from satura.rewrite.check.compare import (
    EXACTLY,
    SUMS,
    Evaluated,
    eps,
    evaluate_all,
    first_unlike,
    magnitude,
    node_values,
    value_of,
)
from satura.rewrite.check.overflow import where_overflow_cancels
from satura.rewrite.errors import CallError, ProgramError, SaturaError
from satura.rewrite.ops import Kind
from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import BinaryFn, Refuse, Window
from satura.rewrite.types.comparison import Index, first_difference
from satura.rewrite.types.tensor_type import Array, DType, TensorType

MOST_ELEMENTS = 10_000_000  # of a tensor
MOST_OF_A_RIGHT_LAW = 1 << 40  # of one on the right side: more is a mistake, not a result
NEAR = 2.0**-6  # by which results of numbers far from 1 may differ, relative to the left one,
NEAR_EPS = 128  # or as many last digits, where these are more
NUDGE = 1 / 64  # as much of that in the arguments: a left side that it changes much tells nothing


class UncomputableError(Exception):
    """The right side has no value; the message says why."""


def padded_size(node: Node, operands: Sequence[TensorType]) -> float:
    """How many elements a node has, or its operand with the borders of its window, if those are
    more."""
    found = size_of(node.type)
    for window in node.attributes:
        if isinstance(window, Window):
            sizes = [size_of(operands[0].with_shape((dim,))) for dim in operands[0].shape]
            first = 0 if window.rank == len(sizes) else 1  # a convolution has images, channels
            for axis, (lo, hi) in enumerate(zip(window.lo, window.hi, strict=True), first):
                sizes[axis] += lo + hi
            found = max(found, prod(sizes))
    return found


def disagreement(program: Program, arguments: Mapping[str, Array], exact: bool) -> str:
    """How the outputs of a program without symbols differ; empty where they agree.

    Raises UncomputableError where one of them has no value.
    """
    try:
        for number, node in enumerate(program.nodes):
            if size_of(node.type) > MOST_ELEMENTS:
                is_right = number > program.output_nodes[0]
                if is_right and size_of(node.type) > MOST_OF_A_RIGHT_LAW:
                    raise ProgramError(f"{node} would be a {node.type}")
                return ""  # too large to be tried
            operands = tuple(program.nodes[operand].type for operand in node.operands)
            if padded_size(node, operands) > MOST_ELEMENTS:
                return ""
        evaluated = evaluate_all(program, arguments, exact)
    except CallError as error:
        if not left_has_value(program, arguments):
            return ""  # the arguments are at fault
        raise UncomputableError(failure_text(error)) from error
    except MemoryError:
        return ""
    except Exception as error:  # a reference may raise anything for attributes that make no sense
        raise UncomputableError(failure_text(error)) from error
    left, right = (evaluated.values[index] for index in program.output_nodes)
    if left.dtype != right.dtype or left.shape != right.shape:
        shown = [TensorType(DType.of(side.dtype), side.shape) for side in (left, right)]
        return f"the left side is {shown[0]}, the right side {shown[1]}"
    index = _first_difference(program, arguments, evaluated, exact)
    if index is not None and not exact:
        open_places = where_overflow_cancels(program, arguments)
        values = list(evaluated.values)
        values[program.output_nodes[1]] = right = np.where(open_places, left, right)
        evaluated = replace(evaluated, values=tuple(values))
        index = _first_difference(program, arguments, evaluated, exact)
    if index is None:
        return ""
    return f"at {list(index)} the left side is {left[index]!s}, the right side {right[index]!s}"


def _first_difference(
    program: Program, arguments: Mapping[str, Array], evaluated: Evaluated, exact: bool
) -> Index | None:
    """The first place where two outputs differ, unless `exact` by more than rounding."""
    left, right = (evaluated.values[index] for index in program.output_nodes)
    if not exact and DType.of(left.dtype).is_float and are_far([*arguments.values()]):
        wrong = _unlike_far_from_1(program, arguments, evaluated)
        index = first_difference(~wrong)
        if index is not None or _summed(program, evaluated.values):
            return index
    index = first_unlike(left, right, evaluated.bound)
    if index is not None and not exact:
        met = _where_infinities_meet(program, arguments)
        met &= ~np.isfinite(left) & ~np.isfinite(right)
        index = first_unlike(left, np.where(met, left, right), evaluated.bound)
    return index


def elements_where_unlike(
    program: Program, arguments: Mapping[str, Array]
) -> dict[str, np.generic]:
    """The elements of arguments at the first place where the outputs differ, of those that have
    the outputs' shape, or one element."""
    values = node_values(program.nodes, arguments)
    left, right = (values[index] for index in program.output_nodes)
    if left.shape != right.shape or left.dtype != right.dtype:
        return {}
    place = first_unlike(left, right, EXACTLY)
    shown = {name: a for name, a in arguments.items() if a.shape == left.shape or a.size == 1}
    if place is None:
        return {}
    return {name: a[place] if a.shape == left.shape else a.flat[0] for name, a in shown.items()}


def _where_infinities_meet(program: Program, arguments: Mapping[str, Array]) -> NDArray[np.bool_]:
    """Where one side is NaN and the other infinite, which no NaN among the arguments has made, nor
    a function that has no value at an infinity: inf - inf may be inf * (1 - 1) elsewhere, but
    the root of -inf is nothing else."""
    without = {name: _without_nan(array) for name, array in arguments.items()}
    values = node_values(program.nodes, without, _value_or_1_of_infinities)
    left, right = (values[index].astype(np.float64) for index in program.output_nodes)
    return np.asarray((np.isnan(left) & np.isinf(right)) | (np.isinf(left) & np.isnan(right)))


def _value_or_1_of_infinities(node: Node, operands: Sequence[Array]) -> Array:
    """The value of a node, but 1 where a function has none at an infinity."""
    value = value_of(node, operands)
    if node.op.name == "unary" and node.type.dtype.is_float:
        return np.where(np.isinf(operands[0].astype(np.float64)), _without_nan(value), value)
    return value


def _without_nan(array: Array) -> Array:
    """The array with 1 in place of NaN."""
    if not DType.of(array.dtype).is_float:
        return array
    return np.where(np.isnan(array), np.ones_like(array), array)


def _unlike_far_from_1(
    program: Program, arguments: Mapping[str, Array], evaluated: Evaluated
) -> NDArray[np.bool_]:
    """Where two results of huge or tiny numbers, all of one magnitude, are no roundings apart.

    A law that holds up to rounding overflows on both sides or on neither, as a·c + b·c and
    (a + b)·c do, and x²/y² and (x/y)² do not. Nothing is said of what a constant makes infinite, of
    what underflows on the left, nor of what the arguments' last digits decide, nor of what is lost
    beside a number near 1, as all of x is in (1 + x) - 1, or beside a summand.
    """
    left, right = (evaluated.values[index] for index in program.output_nodes)
    ordinary = [each[_is_near_1(each)] for each in evaluated.values]
    ordinary += _summed(program, evaluated.values)
    lost = replace(evaluated.bound, magnitude=magnitude(ordinary)).tolerance(DType.of(left.dtype))
    tiny = 1e3 * float(ml_dtypes.finfo(left.dtype).tiny)
    floats = [each for each in arguments.values() if DType.of(each.dtype).is_float]
    digits = [eps(DType.of(each.dtype)) for each in (left, *floats)]
    near = max(NEAR, NEAR_EPS * max(digits))
    with np.errstate(all="ignore"):
        a, b = left.astype(np.float64), right.astype(np.float64)
        near_left = np.maximum(near * np.abs(a), lost)
        unlike = np.isfinite(a) & (np.abs(a) > tiny) & ~(np.abs(a - b) <= near_left)
        overflown = ~np.isfinite(a) & np.isfinite(b) & (not evaluated.bound.only_finite)
        unlike &= np.isfinite(b) | (not evaluated.bound.only_finite)
        if unlike.any() or overflown.any():
            nudged = {
                name: _nudge(array, NUDGE * near, number)
                for number, (name, array) in enumerate(arguments.items())
            }
            beside = node_values(program.nodes, nudged)
            beside_a, beside_b = (
                beside[index].astype(np.float64) for index in program.output_nodes
            )
            unlike &= np.abs(a - beside_a) <= near / 4 * np.abs(a)
            overflown &= np.abs(b - beside_b) <= near / 4 * np.abs(b)
        return np.asarray(unlike | overflown)


def _summed(program: Program, values: Sequence[Array]) -> list[Array]:
    """The floats that a program adds or subtracts: what cancels leaves their roundings. Of the
    products that contractions add, there is one that is as large as any."""
    sums = (node for node in program.nodes if node.op.kind in SUMS or _is_sum(node))
    found: list[Array] = []
    for node in sums:
        operands = [values[each] for each in node.operands]
        if node.op.kind is Kind.CONTRACTION:
            operands.append(np.array(magnitude(operands[:1]) * magnitude(operands[1:2])))
        found += operands
    return found


def _is_sum(node: Node) -> bool:
    """Whether a node adds two tensors or subtracts one from the other."""
    return node.op.name == "binary" and node.attributes[0] in (BinaryFn("add"), BinaryFn("sub"))


def _is_near_1(array: Array) -> NDArray[np.bool_]:
    """Where floats are neither huge nor tiny."""
    size = np.abs(array.astype(np.float64))
    return np.asarray((size >= 1 / LEAST_FAR) & (size <= LEAST_FAR))


def _nudge(array: Array, step: float, number: int) -> Array:
    """Floats beside those of `array`, some larger and some smaller; by another step per `number`.

    What cancels exactly does not, after that.
    """
    step *= (1 + number // 2) * (-1) ** number
    signs = np.where(np.arange(array.size) % 3, 1.0, -1.0).reshape(array.shape)
    return np.asarray(array.astype(np.float64) * (1 + step * signs)).astype(array.dtype)


def left_has_value(program: Program, arguments: Mapping[str, Array]) -> bool:
    """Whether the left side has a value for these arguments."""
    try:
        node_values(program.nodes[: program.output_nodes[0] + 1], arguments)
    except CallError:
        return False
    return True


def failure_text(error: Exception) -> str:
    kind = "" if isinstance(error, SaturaError | Refuse) else f"{type(error).__name__}: "
    return f"the right side cannot be computed: {kind}{error}"
