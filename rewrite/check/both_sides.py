"""Both sides of a law for one instance: a program with two outputs, and whether they agree."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from satura.rewrite.check.arguments import LEAST_FAR, are_far, random_arguments, with_specials
from satura.rewrite.check.compare import (
    EXACTLY,
    SUMS,
    Evaluated,
    apply_op,
    eps,
    evaluate_all,
    first_unlike,
    is_finite,
    magnitude,
    node_values,
)
from satura.rewrite.check.indices import index_nodes
from satura.rewrite.check.instances import Instance, ops_of
from satura.rewrite.check.overflow import where_overflow_cancels
from satura.rewrite.check.unstable import unstable_call
from satura.rewrite.egraph.interner import content
from satura.rewrite.errors import CallError, ProgramError, RuleError, SaturaError
from satura.rewrite.ops import Kind
from satura.rewrite.ops.draw import Draw
from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Node, Program, ProgramBuilder
from satura.rewrite.types.attributes import BinaryFn, Refuse
from satura.rewrite.types.comparison import Index, first_difference
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType, TensorType

SIZES = (
    {"n": 3, "m": 2},
    {"n": 1, "m": 1},
    {"n": 2, "m": 5},
    {"n": 2, "m": 0},
    {"n": 0, "m": 3},
)
MOST_ELEMENTS = 10_000_000  # of a tensor
MOST_COMPUTED = 1 << 22  # of one on the left side: both are computed many times
MOST_OF_A_RIGHT_LAW = 1 << 40  # of one on the right side: more is a mistake, not a result
ROUNDED_DRAWS = 2  # of values for a law up to rounding: they may be far from 1, or special
NEAR = 2.0**-6  # by which results of numbers far from 1 may differ, relative to the left one,
NEAR_EPS = 128  # or as many last digits, where these are more
NUDGE = 1 / 64  # as much of that in the arguments: a left side that it changes much tells nothing


class UncomputableError(Exception):
    """The right side has no value; the message says why."""


@dataclass(frozen=True)
class Failure:
    """Where a rule goes wrong, and how.

    `program` has no symbols, an output `left` and, unless it cannot be built, `right`. `instance`
    is None where only a whole e-graph shows the failure.
    """

    program: Program
    reason: str
    sizes: Mapping[str, int]
    arguments: Mapping[str, Array]
    instance: Instance | None
    is_computed: bool = True  # all that the program has
    is_raised: bool = False  # by a function of the rule, so that nothing is known of the law

    @property
    def has_right(self) -> bool:
        return len(self.program.outputs) == 2

    @property
    def is_difference(self) -> bool:
        """Whether both sides have values, and not the same."""
        return self.has_right and self.is_computed

    @property
    def is_of_values(self) -> bool:
        """Whether both sides have the same type, and other elements for some arguments."""
        nodes = self.program.nodes
        return self.is_difference and (
            len({nodes[index].type for index in self.program.output_nodes}) == 1
        )


def examine(instance: Instance, exact: bool, draw: Draw) -> Failure | None:
    """How the rule fails for `instance`, on random values and for several sizes.

    None where it holds, where it does not fire, and where the left side has no value.
    """
    if not has_left_value(instance):
        return None
    before = (fingerprint(instance), str(instance))
    try:
        first, second = (instance.direction.compute(instance.bindings) for _ in range(2))
        stable = content(first) == content(second)
    except Refuse:
        return _failure_if_changed(instance, before)
    except RuleError as error:
        failure = right_side_failure(instance, str(error))
        return failure and replace(failure, is_raised=True)
    except TypeError as error:  # the answer is made of what is not a value
        return right_side_failure(instance, str(error))
    if not stable:
        shown = [", ".join(map(str, answer)) for answer in (first, second)]
        reason = f"the attributes of the right side are once {shown[0]}, once {shown[1]}"
        return right_side_failure(instance, unstable_call(instance) or reason)
    try:
        return _failure_if_changed(instance, before) or _compare(instance, exact, draw)
    except MemoryError as error:
        raise MemoryError(f"{error or 'there is no more'}, for {instance}") from error


def fingerprint(instance: Instance) -> Hashable:
    """A key that two instances share only if all bytes of their values are equal."""
    return tuple(
        (name, value.array.tobytes() if isinstance(value, Constant) else content(value))
        for name, value in instance.values
    )


def _failure_if_changed(instance: Instance, before: tuple[Hashable, str]) -> Failure | None:
    if fingerprint(instance) == before[0]:
        return None
    reason = f"an attribute function changes its arguments, which were {before[1]}"
    return right_side_failure(instance, reason)


def _compare(instance: Instance, exact: bool, draw: Draw) -> Failure | None:
    builder = ProgramBuilder()
    tensors = instance.add_variables(builder, {})
    left = instance.add_left(builder, tensors)
    try:
        right = instance.add_right(builder, tensors)
    except Exception as error:  # whatever an op makes of what attribute functions answered
        return right_side_failure(instance, _failure_text(error))
    program = builder.program({"left": left, "right": right})
    reason = ""
    if builder.type(left) != builder.type(right):
        reason = f"the left side is {builder.type(left)}, the right side {builder.type(right)}"
    for sizes in _valuations(instance) * (1 if exact else ROUNDED_DRAWS):
        failure = _compare_at(instance, program, sizes, exact, draw)
        if failure is not None:
            return replace(failure, reason=reason or failure.reason)
    return right_side_failure(instance, reason) if reason else None


def right_side_failure(
    instance: Instance, reason: str, sizes: Mapping[str, int] | None = None
) -> Failure | None:
    """The failure of the right side itself; None where the left side is ill typed at all sizes."""
    program = instance.left_side
    if sizes is None:
        sizes = next(iter(_valuations(instance)), None)
        if sizes is None:
            return None
    concrete = program.concrete(sizes)
    return Failure(concrete, reason, sizes, zeros(concrete), instance)


def zeros(program: Program) -> dict[str, Array]:
    """Arguments of zeros for a program without symbols."""
    nodes = [program.nodes[index] for index in program.inputs]
    return {
        node.input_name: np.zeros(list(map(static, node.type.shape)), node.type.dtype.numpy)
        for node in nodes
    }


def _valuations(instance: Instance) -> list[dict[str, int]]:
    """Sizes of the symbols for which the left side is well typed."""
    program = instance.left_side
    names = sorted(instance.symbols)
    unique = dict.fromkeys(tuple(sizes[name] for name in names) for sizes in SIZES)
    chosen = [dict(zip(names, values, strict=True)) for values in unique]
    return [sizes for sizes in chosen if has_meaning(program, sizes)]


def has_meaning(program: Program, sizes: Mapping[str, int]) -> bool:
    """Whether `program` is well typed for these sizes, and small enough to be computed often."""
    try:
        concrete = program.concrete(sizes)
    except ProgramError:
        return False
    shapes = [tuple(map(static, node.type.shape)) for node in concrete.nodes]
    return all(min(shape, default=0) >= 0 and prod(shape) <= MOST_COMPUTED for shape in shapes)


def _compare_at(
    instance: Instance, program: Program, sizes: dict[str, int], exact: bool, draw: Draw
) -> Failure | None:
    try:
        concrete = program.concrete(sizes)
    except Exception as error:  # as above: an attribute may be no number for these sizes
        return right_side_failure(instance, _failure_text(error), sizes)
    arguments = random_arguments(concrete, draw, moderate=not exact)
    constants = [node.constant.array for node in concrete.nodes if node.op.name == "constant"]
    if not exact and draw.values == "any":
        arguments = with_specials(arguments, draw, all(map(is_finite, constants)))
    try:
        reason = disagreement(concrete, arguments, exact)
    except UncomputableError as error:
        if any(size_of(node.type) > MOST_ELEMENTS for node in concrete.nodes):
            return right_side_failure(instance, str(error), sizes)  # nothing to be pasted
        return Failure(concrete, str(error), sizes, arguments, instance, is_computed=False)
    return Failure(concrete, reason, sizes, arguments, instance) if reason else None


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
        evaluated = evaluate_all(program, arguments, exact)
    except CallError as error:
        if not _left_has_value(program, arguments):
            return ""  # the arguments are at fault
        raise UncomputableError(_failure_text(error)) from error
    except Exception as error:  # a reference may raise anything for attributes that make no sense
        raise UncomputableError(_failure_text(error)) from error
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
    bound = replace(evaluated.bound, nan_for_inf=False)
    index = first_unlike(left, right, bound)
    if index is not None and not exact:
        met = _where_infinities_meet(program, arguments)
        met &= ~np.isfinite(left) & ~np.isfinite(right)
        index = first_unlike(left, np.where(met, left, right), bound)
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
    values: list[Array] = []
    with np.errstate(all="ignore"):
        for node in program.nodes:
            operands = [values[each] for each in node.operands]
            if node.op.name == "input":
                value = _without_nan(arguments[node.input_name])
            else:
                value = apply_op(node.op, operands, node.attributes)
            if node.op.name == "unary" and node.type.dtype.is_float:
                value = np.where(
                    np.isinf(operands[0].astype(np.float64)), _without_nan(value), value
                )
            values.append(value)
    left, right = (values[index].astype(np.float64) for index in program.output_nodes)
    return np.asarray((np.isnan(left) & np.isinf(right)) | (np.isinf(left) & np.isnan(right)))


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


def has_left_value(instance: Instance) -> bool:
    """Whether constant indices of its gathers, if there are any, are in range for some size."""
    if "gather" not in ops_of(instance.direction):
        return True
    program = instance.left_side
    if index_nodes(program.nodes).intersection(program.inputs):
        return True
    programs = (program.concrete(sizes) for sizes in _valuations(instance))
    return any(_left_has_value(each, zeros(each)) for each in programs)


def _left_has_value(program: Program, arguments: Mapping[str, Array]) -> bool:
    """Whether the left side has a value for these arguments."""
    try:
        node_values(program.nodes[: program.output_nodes[0] + 1], arguments)
    except CallError:
        return False
    return True


def _failure_text(error: Exception) -> str:
    kind = "" if isinstance(error, SaturaError | Refuse) else f"{type(error).__name__}: "
    return f"the right side cannot be computed: {kind}{error}"
