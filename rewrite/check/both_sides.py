"""Both sides of a law for one instance: a program with two outputs, compared on random values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from satura.rewrite.check.arguments import random_arguments, with_specials
from satura.rewrite.check.compare import is_finite
from satura.rewrite.check.disagreement import (
    MOST_ELEMENTS,
    UncomputableError,
    disagreement,
    failure_text,
    left_has_value,
)
from satura.rewrite.check.indices import index_nodes
from satura.rewrite.check.instances import Instance, ops_of
from satura.rewrite.check.unstable import unstable_call
from satura.rewrite.egraph.interner import content
from satura.rewrite.errors import ProgramError, RuleError
from satura.rewrite.ops.draw import Draw
from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.types.attributes import Refuse
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array

SIZES = (
    {"n": 3, "m": 2},
    {"n": 1, "m": 1},
    {"n": 2, "m": 5},
    {"n": 2, "m": 0},
    {"n": 0, "m": 3},
)
MOST_COMPUTED = 1 << 22  # of one on the left side: both are computed many times
ROUNDED_DRAWS = 2  # of values for a law up to rounding: they may be far from 1, or special


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
        return right_side_failure(instance, failure_text(error))
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
        return right_side_failure(instance, failure_text(error), sizes)
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


def has_left_value(instance: Instance) -> bool:
    """Whether constant indices of its gathers, if there are any, are in range for some size."""
    if "gather" not in ops_of(instance.direction):
        return True
    program = instance.left_side
    if index_nodes(program.nodes).intersection(program.inputs):
        return True
    programs = (program.concrete(sizes) for sizes in _valuations(instance))
    return any(left_has_value(each, zeros(each)) for each in programs)
