"""Values of programs and of e-classes under the NumPy reference, and whether two of them agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.errors import CallError
from satura.rewrite.ops import REGISTRY, Kind, Op
from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Node, Program, ProgramBuilder
from satura.rewrite.types.attributes import Attribute, Parameter, Window, concrete_attribute
from satura.rewrite.types.comparison import Index, agreement, first_difference
from satura.rewrite.types.tensor_type import Array, DType, TensorType


@dataclass(frozen=True)
class Bound:
    """How far two results may be apart: not at all, or `steps` roundings at `magnitude`.

    A rounding is that of the result's dtype, or one of relative size `rounding` where both sides
    round so on their way to a wider one.
    `only_finite` leaves out elements that are not finite, where a constant made them so (x * 1e38)
    or some sum has no elements, as 0 takes the place of 0 * inf then. What overflows when
    multiplied by `steps` agrees with an infinity of its sign. Integers and bools have no bound: a
    law up to rounding that computes them from floats is refuted.
    """

    magnitude: float = 0.0
    steps: float = 0.0
    only_finite: bool = False
    rounding: float = 0.0

    def tolerance(self, dtype: DType) -> float:
        """How far two elements of this dtype may be apart."""
        if not dtype.is_float:
            return 0.0
        return ROUNDINGS * self.steps * self.magnitude * max(self.rounding, eps(dtype))


def eps(dtype: DType) -> float:
    """The distance from 1 to the next float of this dtype."""
    return float(ml_dtypes.finfo(dtype.numpy).eps)


EXACTLY = Bound()
ROUNDINGS = 4  # of the largest number for each operation of either side; docs/language.md says so
ValueOf = Callable[[Node, Sequence[Array]], Array]
SUMS = (Kind.REDUCTION, Kind.CONTRACTION, Kind.WINDOW)


def first_unlike(left: Array, right: Array, bound: Bound = EXACTLY) -> Index | None:
    """Index of the first element where both differ by more than `bound`; None where they agree.

    Raises ValueError when dtypes or shapes differ.
    """
    dtype = DType.of(left.dtype)
    agree = agreement(left, right, bound.tolerance(dtype) if bound.steps else None)
    if bound.steps and dtype.is_float:
        sides = [side.astype(np.float64) for side in (left, right)]
        finite = [np.isfinite(side) for side in sides]
        most = float(ml_dtypes.finfo(dtype.numpy).max) / bound.steps
        large = [np.abs(side) > most for side in sides]
        is_little = (finite[0] != finite[1]) & (np.signbit(sides[0]) == np.signbit(sides[1]))
        agree |= large[0] & large[1] & is_little
        if bound.only_finite:
            agree |= ~finite[0] | ~finite[1]
    return first_difference(agree)


def apply_op(op: Op, operands: Sequence[Array], attributes: Sequence[Attribute]) -> Array:
    """The result of the reference on contiguous operands; other strides may round differently."""
    with np.errstate(all="ignore"):
        return np.array(op.reference(*operands, *attributes), order="C")


def roundings(op: Op, operands: Sequence[TensorType], attributes: Sequence[Attribute]) -> float:
    """About how many roundings lie behind one element of the result."""
    result = op.infer(tuple(operands), tuple(attributes))
    assert isinstance(result, TensorType)
    flops = op.flops(tuple(operands), tuple(attributes), result)
    return 1.0 + flops / max(1.0, size_of(result))


def magnitude(values: Sequence[Array]) -> float:
    """The largest finite absolute value of a float in `values`; at least 0."""
    largest = 0.0
    for value in values:
        if DType.of(value.dtype).is_float and value.size:
            wide = np.abs(value.astype(np.float64))
            largest = max(largest, float(np.max(np.where(np.isfinite(wide), wide, 0.0))))
    return largest


def is_finite(value: Array) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(_are_finite(value).all())


@dataclass(frozen=True)
class Evaluated:
    """Values of all nodes of a concrete program, and a bound for what its outputs may differ by."""

    values: tuple[Array, ...]
    bound: Bound


def evaluate_all(program: Program, arguments: Mapping[str, Array], exact: bool) -> Evaluated:
    """Evaluate a program without symbols and host calls, node by node.

    An `exact` law has no bound.
    """
    values = node_values(program.nodes, arguments)
    return Evaluated(tuple(values), EXACTLY if exact else _bound_for(program, values))


def value_of(node: Node, operands: Sequence[Array]) -> Array:
    """The value of a node that is not an input."""
    return apply_op(node.op, operands, node.attributes)


def node_values(
    nodes: Sequence[Node], arguments: Mapping[str, Array], of: ValueOf = value_of
) -> list[Array]:
    """The values of the first nodes of a program, inputs' own and what `of` gives for others."""
    values: list[Array] = []
    for node in nodes:
        if node.op.name == "input":
            values.append(np.array(arguments[node.input_name], order="C"))
        else:
            values.append(of(node, [values[i] for i in node.operands]))
    return values


def _bound_for(program: Program, values: Sequence[Array]) -> Bound:
    steps = largest = 0.0
    only_finite = False
    constant: list[bool] = []
    sums_nothing = any(
        node.op.kind in SUMS and value.size and not all(values[i].size for i in node.operands)
        for node, value in zip(program.nodes, values, strict=True)
    )
    for index, node in enumerate(program.nodes):
        given = [constant[i] for i in node.operands]
        constant.append(all(given) and node.op.name != "input")
        if any(given) if node.operands else sums_nothing:
            only_finite |= _gets_infinite(node, values[index], values)
        if node.op.name != "input":
            types = [program.nodes[i].type for i in node.operands]
            steps += roundings(node.op, types, node.attributes)
        if node.op.kind is Kind.CONTRACTION:  # a product within may be larger than any result
            left, right = (values[i] for i in node.operands[:2])
            seen = magnitude([left, *_fills(node.attributes)])
            largest = max(largest, seen * magnitude([right]))
    largest = max(largest, magnitude(values))
    rounding = min(_coarsest_rounding(program, side) for side in program.output_nodes)
    return Bound(largest, steps, only_finite, rounding)


def _coarsest_rounding(program: Program, side: int) -> float:
    """The largest relative size of a rounding behind a node; 0 where nothing rounds."""
    coarsest, stack, seen = 0.0, [side], set[int]()
    while stack:
        index = stack.pop()
        node = program.nodes[index]
        if index in seen:
            continue
        seen.add(index)
        stack += node.operands
        coarsest = max(coarsest, _rounding_of(node.op, node.type.dtype))
    return coarsest


def _rounding_of(op: Op, dtype: DType) -> float:
    """The relative size of the roundings of an op; 0 where it only moves elements."""
    return eps(dtype) if dtype.is_float and op.kind in (Kind.ELEMENTWISE, *SUMS) else 0.0


@dataclass(frozen=True)
class Conflict:
    """An e-node whose value is not the value of its class.

    `chosen` has the e-node that each class's value was computed by, its own class's included.
    """

    eclass: int
    node: ENode
    chosen: Mapping[int, ENode]

    def program(self, right: bool = True) -> Program:
        """A program of which `left` is the class and `right` the e-node; symbols stay open."""
        builder = ProgramBuilder()
        built: dict[int, int] = {}

        def add(node: ENode) -> int:
            for operand in node.operands:
                if operand not in built:
                    built[operand] = add(self.chosen[operand])
            return builder.add(node.op, [built[each] for each in node.operands], *node.attributes)

        outputs = {"left": add(self.chosen[self.eclass])}
        if right:
            outputs["right"] = add(self.node)
        return builder.program(outputs)


def first_conflict(
    classes: EClasses, arguments: Mapping[str, Array], sizes: Mapping[str, int], exact: bool
) -> Conflict | None:
    """The first e-node that disagrees with its class, or None.

    A class's value is that of its first e-node that can be evaluated.
    """
    values: dict[int, Array] = {}
    chosen: dict[int, ENode] = {}
    rounding: dict[int, float] = {}
    checked: set[tuple[int, int]] = set()
    progress = True
    while progress:
        progress = False
        for eclass, nodes in enumerate(classes.nodes):
            for number, node in enumerate(nodes):
                ready = all(operand in values for operand in node.operands)
                if (eclass, number) in checked or not ready:
                    continue
                checked.add((eclass, number))
                progress = True
                operands = [values[operand] for operand in node.operands]
                try:
                    value = _value_of_enode(node, operands, arguments, sizes)
                except CallError:  # for these arguments the program has no value either
                    continue
                expected = values.setdefault(eclass, value)
                chosen.setdefault(eclass, node)
                behind = _rounding_of(REGISTRY[node.op], DType.of(value.dtype))
                behind = max([behind, *(rounding[operand] for operand in node.operands)])
                both = min(behind, rounding.setdefault(eclass, behind))
                found = [*operands, value, expected]
                bound = EXACTLY if exact else _node_bound(node, found, both, sizes)
                unlike = value.shape != expected.shape or value.dtype != expected.dtype
                if unlike or first_unlike(value, expected, bound) is not None:
                    return Conflict(eclass, node, chosen)
    return None


def _value_of_enode(
    node: ENode,
    operands: Sequence[Array],
    arguments: Mapping[str, Array],
    sizes: Mapping[str, int],
) -> Array:
    if node.op == "input":
        (parameter,) = node.attributes
        assert isinstance(parameter, Parameter)
        return np.array(arguments[parameter.name], order="C")
    attributes = [concrete_attribute(value, sizes) for value in node.attributes]
    return apply_op(REGISTRY[node.op], operands, attributes)


def _node_bound(
    node: ENode, values: Sequence[Array], rounding: float, sizes: Mapping[str, int]
) -> Bound:
    """A bound with room for the roundings of this e-node and of those in its class.

    What is not finite may have come of a constant anywhere in these classes.
    """
    if not node.operands:
        return Bound(magnitude(values), 16, rounding=rounding)
    types = [TensorType(DType.of(v.dtype), v.shape) for v in values[: len(node.operands)]]
    attributes = [concrete_attribute(value, sizes) for value in node.attributes]
    steps = 16 * roundings(REGISTRY[node.op], types, attributes)
    largest = magnitude([*values, *_fills(attributes)])
    return Bound(largest, steps, only_finite=True, rounding=rounding)


def _gets_infinite(node: Node, value: Array, values: Sequence[Array]) -> bool:
    """Whether a node makes an infinity or NaN of finite elements: `values` are those of all nodes,
    and `value` is its own."""
    places = ~_are_finite(value)
    for operand in node.operands:
        finite = _are_finite(values[operand])
        # Elements of other ops may be made of those at any place.
        places &= finite if node.op.kind is Kind.ELEMENTWISE else finite.all()
    return bool(places.any())


def _are_finite(value: Array) -> NDArray[np.bool_]:
    """Where an array has finite elements: everywhere if they are no floats."""
    if not DType.of(value.dtype).is_float:
        return np.ones(value.shape, np.bool_)
    return np.isfinite(value.astype(np.float64))


def _fills(attributes: Iterable[Attribute]) -> list[Array]:
    """What windows read around a tensor."""
    return [each.fill.array for each in attributes if isinstance(each, Window)]
