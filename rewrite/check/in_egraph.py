"""The rule alone in an e-graph of many instances: each e-node must equal the value of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.rewrite.check.arguments import random_arguments
from satura.rewrite.check.both_sides import SIZES, Failure, has_meaning, right_side_failure, zeros
from satura.rewrite.check.compare import first_conflict
from satura.rewrite.check.disagreement import UncomputableError, disagreement
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.unstable import unstable_call
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import Saturation, saturate
from satura.rewrite.errors import ProgramError, RuleError
from satura.rewrite.language.dsl import Rule, RuleSet
from satura.rewrite.language.terms import Approximate, Known
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array

LIMITS = Limits(rounds=2, nodes=20_000)


def examine_saturated(rule: Rule, instances: Sequence[Instance], draw: Draw) -> Failure | None:
    """How the rule fails in an e-graph that holds both sides of all `instances`."""
    sizes = SIZES[0]
    kept = [instance for instance in instances if has_meaning(instance.left_side, sizes)]
    program = _program_of(kept, draw, rule.exact)
    try:
        saturation = saturate(program, RuleSet(rule), LIMITS)
    except RuleError as error:
        culprit = _culprit(rule, kept, draw).concrete(sizes)
        return Failure(culprit, str(error), sizes, zeros(culprit), None, is_raised=True)
    apart = _first_unmerged(program, saturation, kept)
    if apart is not None and saturation.report.stopped != "nodes":
        reason = "the rule does not fire in the e-graph, where it should"
        return right_side_failure(apart, unstable_call(apart) or reason, sizes)
    arguments = random_arguments(program.concrete(sizes), draw, moderate=not rule.exact)
    conflict = first_conflict(saturation.classes, arguments, sizes, rule.exact)
    if conflict is None:
        return None
    try:
        sides = conflict.program().concrete(sizes)
    except ProgramError as error:  # NumPy computes more than the ops' types allow
        reason = f"the right side fails in the e-graph: {error}"
        left = conflict.program(right=False).concrete(sizes)
        return Failure(left, reason, sizes, _arguments_of(left, arguments), None)
    chosen = _arguments_of(sides, arguments)
    for number, instance in enumerate(kept):
        if any(name.startswith(f"i{number}_") for name in chosen):
            found = _of_instance(instance, number, arguments, rule.exact)
            if found is not None:
                return found
    try:
        reason = disagreement(sides, chosen, rule.exact)
    except UncomputableError as error:
        return Failure(sides, str(error), sizes, chosen, None, is_computed=False)
    return Failure(sides, reason or "the e-graph holds both to be equal", sizes, chosen, None)


def _of_instance(
    instance: Instance, number: int, arguments: Mapping[str, Array], exact: bool
) -> Failure | None:
    """The failure of one of the instances at these arguments; None where they show none."""
    builder = ProgramBuilder()
    tensors = instance.add_variables(builder, {})
    sides = {"left": instance.add_left(builder, tensors)}
    sides["right"] = instance.add_right(builder, tensors)
    sizes = {name: size for name, size in SIZES[0].items() if name in instance.symbols}
    program = builder.program(sides).concrete(sizes)
    given = {name: arguments.get(f"i{number}_{name}") for name in instance.types}
    own = {name: array for name, array in given.items() if array is not None}
    if len(own) < len(given) or Approximate in instance.direction.variables.values():
        return None  # others are constants, or functions of what is given
    try:
        reason = disagreement(program, own, exact)
    except UncomputableError:
        return None
    return Failure(program, reason, sizes, own, instance) if reason else None


def _arguments_of(program: Program, arguments: Mapping[str, Array]) -> dict[str, Array]:
    names = {program.nodes[index].input_name for index in program.inputs}
    return {name: array for name, array in arguments.items() if name in names}


def _program_of(instances: Sequence[Instance], draw: Draw, exact: bool) -> Program:
    """A program whose outputs are both sides of all instances."""
    builder = ProgramBuilder()
    outputs: dict[str, int] = {}
    for number, instance in enumerate(instances):
        constants = {
            name: Constant(draw.array(type_, moderate=not exact))
            for name, type_ in instance.types.items()
            if issubclass(instance.direction.variables[name], Known)
        }
        tensors = instance.add_variables(builder, constants, f"i{number}_")
        tensors = instance.with_facts(builder, tensors)
        outputs[f"left{number}"] = instance.add_left(builder, tensors)
        outputs[f"right{number}"] = instance.add_right(builder, tensors)
    return builder.program(outputs)


def _first_unmerged(
    program: Program, saturation: Saturation, instances: Sequence[Instance]
) -> Instance | None:
    """An instance whose sides are not in one class."""
    nodes = dict(program.outputs)
    for number, instance in enumerate(instances):
        sides = [saturation.program_classes[nodes[f"{side}{number}"]] for side in ("left", "right")]
        if sides[0] != sides[1]:
            return instance
    return None


def _culprit(rule: Rule, instances: Sequence[Instance], draw: Draw) -> Program:
    """The left side of the first instance that makes saturation fail alone; else of the first."""
    for instance in instances:
        try:
            saturate(_program_of([instance], draw, rule.exact), RuleSet(rule), LIMITS)
        except RuleError:
            return instance.left_side
    return instances[0].left_side
