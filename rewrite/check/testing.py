"""The property test of rules: does a law hold, and does it ever fire?

`check(rule)` draws instances of each left side (`instances.py`), computes the right side with
exactly the rule's own attribute functions, and compares both sides under the NumPy reference: bit
for bit for exact laws, else within a bound. Then many instances go into one e-graph, that rule
alone runs, and every e-node must equal the value of its class. `assert_sound(rule)` raises for a
rule that is refuted, or vacuous: it fires too rarely, or a condition of it is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from satura.rewrite.attributes import Constant, Refuse
from satura.rewrite.check.compare import EXACTLY, conflicts, evaluate_all, first_difference
from satura.rewrite.check.generate import Draw
from satura.rewrite.check.instances import Instance, draw_instance
from satura.rewrite.dsl import Direction, Rule, RuleSet
from satura.rewrite.errors import ProgramError, RuleError
from satura.rewrite.ir import Program, ProgramBuilder
from satura.rewrite.recorder import Expression
from satura.rewrite.saturate import Limits, saturate
from satura.rewrite.terms import Known
from satura.rewrite.types import Array

FIRINGS = 50  # fewer, and the rule is vacuous
WANTED = 150  # distinct firings to look for per direction
IN_EGRAPH = 40  # of these, per direction
SIZES = ({"n": 3, "m": 2}, {"n": 1, "m": 1}, {"n": 2, "m": 5}, {"n": 2, "m": 0})


@dataclass
class DirectionCheck:
    """What was tried of one direction: matches, firings, and each condition's answers."""

    label: str
    matches: int = 0
    firings: int = 0
    seen: dict[str, set[bool]] = field(default_factory=dict)

    @property
    def constant_conditions(self) -> list[str]:
        """Conditions that gave one answer only."""
        return [text for text, answers in self.seen.items() if len(answers) < 2]


@dataclass(frozen=True)
class RuleCheck:
    """The verdict on a rule: sound, refuted or vacuous, and why."""

    rule: str
    verdict: str
    directions: tuple[DirectionCheck, ...]
    reason: str = ""

    @property
    def is_sound(self) -> bool:
        return self.verdict == "sound"

    def __str__(self) -> str:
        counts = ", ".join(f"{d.label}: {d.firings} of {d.matches}" for d in self.directions)
        return f"{self.rule} is {self.verdict} ({counts})" + (
            f"\n{self.reason}" * bool(self.reason)
        )


class _RefutedError(Exception):
    """A law that does not hold; the message shows the counterexample."""


def assert_sound(rule: Rule, seed: int = 0, attempts: int = 6000) -> None:
    """Raise RuleError with the reason unless `rule` passes its property test."""
    result = check(rule, seed, attempts)
    if not result.is_sound:
        raise RuleError(str(result))


def check(rule: Rule, seed: int = 0, attempts: int = 6000) -> RuleCheck:
    """Test `rule`; the same seed gives the same verdict in every process.

    `attempts` bounds the draws per direction.
    """
    random = Random(crc32(rule.name.encode()) + seed)
    checks: list[DirectionCheck] = []
    fired: list[Instance] = []
    try:
        for direction in rule.directions:
            tried = DirectionCheck(direction.label)
            checks.append(tried)
            found = _firings(direction, random, attempts, tried)
            for instance in sorted(found, key=lambda instance: instance.weight):
                _check_instance(instance, rule.exact, random)
            fired += found[:IN_EGRAPH]
        _check_in_egraph(rule, fired, random)
    except _RefutedError as counterexample:
        return RuleCheck(rule.name, "refuted", tuple(checks), str(counterexample))
    except RuleError as error:
        return RuleCheck(rule.name, "refuted", tuple(checks), str(error))
    reasons = [
        f"{tried.label} fired on only {tried.firings} of {tried.matches} instances; {FIRINGS} are"
        " needed: is its condition too narrow?"
        for tried in checks
        if tried.firings < FIRINGS
    ] + [
        f"{tried.label}: the condition {condition} only ever gave {sorted(tried.seen[condition])}"
        for tried in checks
        for condition in tried.constant_conditions
    ]
    verdict = "vacuous" if reasons else "sound"
    return RuleCheck(rule.name, verdict, tuple(checks), "\n".join(reasons))


def _firings(
    direction: Direction, random: Random, attempts: int, tried: DirectionCheck
) -> list[Instance]:
    """Distinct instances for which the rule fires, and what its conditions said of all matches."""
    found: dict[object, Instance] = {}
    tried.seen = {str(condition): set() for condition in direction.conditions}
    for _ in range(attempts):
        if len(found) >= WANTED and not tried.constant_conditions:
            break
        instance = draw_instance(direction, random)
        if instance is None:
            continue
        tried.matches += 1
        for condition in direction.conditions:
            tried.seen[str(condition)].add(_holds(direction, condition, instance))
        try:
            direction.compute(instance.bindings)
        except Refuse:
            continue
        if len(found) < 2 * WANTED:
            found.setdefault(instance.values, instance)
    tried.firings = len(found)
    return list(found.values())


def _holds(direction: Direction, condition: Expression, instance: Instance) -> bool:
    try:
        return direction.holds(condition, instance.bindings)
    except Refuse:
        return False


def _constants(instance: Instance, draw: Draw, moderate: bool) -> dict[str, Constant]:
    """A value for every variable that must be known at compile time."""
    return {
        name: Constant(draw.array(type_, moderate))
        for name, type_ in instance.types.items()
        if issubclass(instance.direction.variables[name], Known)
    }


def _both_sides(instance: Instance, constants: dict[str, Constant]) -> Program:
    """The program whose outputs are the left and the right side. Raises _RefutedError."""
    builder = ProgramBuilder()
    tensors = instance.add_variables(builder, constants)
    left = instance.add_left(builder, tensors)
    try:
        right = instance.add_right(builder, tensors)
    except (ProgramError, Refuse) as error:
        program = builder.program({"left": left})
        raise _RefutedError(_shown(instance, program, f"the right side fails: {error}")) from None
    program = builder.program({"left": left, "right": right})
    if builder.type(left) != builder.type(right):
        reason = f"the left side is {builder.type(left)}, the right side {builder.type(right)}"
        raise _RefutedError(_shown(instance, program, reason))
    return program


def _check_instance(instance: Instance, exact: bool, random: Random) -> None:
    """Compare both sides on random values, for several sizes. Raises _RefutedError."""
    draw = Draw(random)
    program = _both_sides(instance, _constants(instance, draw, not exact))
    symbolic = any(node.type.symbols for node in program.nodes)
    for sizes in SIZES if symbolic else SIZES[:1]:
        if not _has_meaning(instance, sizes):
            continue
        try:
            concrete = program.concrete(sizes)
        except ProgramError as error:
            reason = f"the right side fails for the sizes {sizes}: {error}"
            raise _RefutedError(_shown(instance, program, reason)) from None
        arguments = _arguments(concrete, draw, moderate=not exact)
        evaluated = evaluate_all(concrete, arguments)
        left, right = (evaluated.values[index] for index in concrete.output_nodes)
        index = first_difference(left, right, EXACTLY if exact else evaluated.bound)
        if index is not None:
            reason = _difference(left, right, index, "left", "right")
            raise _RefutedError(_shown(instance, concrete, reason, arguments))


def _has_meaning(instance: Instance, sizes: dict[str, int]) -> bool:
    """Whether the left side is well typed for these sizes."""
    builder = ProgramBuilder()
    tensors = instance.add_variables(builder, {})
    left = instance.add_left(builder, tensors)
    try:
        builder.program({"left": left}).concrete(sizes)
    except ProgramError:
        return False
    return True


def _arguments(program: Program, draw: Draw, moderate: bool) -> dict[str, Array]:
    nodes = [program.nodes[index] for index in program.inputs]
    return {node.input_name: draw.array(node.type, moderate) for node in nodes}


def _check_in_egraph(rule: Rule, instances: Sequence[Instance], random: Random) -> None:
    """Run the rule alone on many instances at once. Raises _RefutedError."""
    draw = Draw(random)
    sizes = SIZES[0]
    builder = ProgramBuilder()
    outputs: dict[str, int] = {}
    chosen = [instance for instance in instances if _has_meaning(instance, sizes)]
    for number, instance in enumerate(chosen):
        constants = _constants(instance, draw, not rule.exact)
        tensors = instance.add_variables(builder, constants, f"i{number}_")
        outputs[f"left{number}"] = instance.add_left(builder, tensors)
        outputs[f"right{number}"] = instance.add_right(builder, tensors)
    program = builder.program(outputs)
    saturation = saturate(program, RuleSet(rule), Limits(rounds=2, nodes=20_000, seconds=10))
    nodes = dict(program.outputs)
    for number, instance in enumerate(chosen):
        sides = [saturation.program_classes[nodes[f"{side}{number}"]] for side in ("left", "right")]
        if sides[0] != sides[1]:
            reason = "the rule does not fire in the e-graph, where it should"
            raise _RefutedError(_shown(instance, _both_sides(instance, {}), reason))
    arguments = _arguments(program.concrete(sizes), draw, moderate=not rule.exact)
    conflict = conflicts(saturation.classes, arguments, sizes, rule.exact)
    if conflict is not None:
        text = f"in the e-graph, {conflict.node} differs from its class {conflict.eclass}"
        if conflict.index is not None:
            text += "; " + _difference(
                conflict.value, conflict.expected, conflict.index, "it", "the class"
            )
        raise _RefutedError(f"{rule.name} ({rule.place}): {rule.law}\n{text}")


def _difference(left: Array, right: Array, index: tuple[int, ...], name: str, other: str) -> str:
    return f"at {list(index)} {name} is {left[index]!r}, {other} is {right[index]!r}"


def _shown(
    instance: Instance, program: Program, reason: str, arguments: dict[str, Array] | None = None
) -> str:
    """A counterexample with a program to paste."""
    direction = instance.direction
    bindings = ", ".join(f"{name} = {value}" for name, value in instance.values)
    lines = [f"{direction.label} ({direction.place}): {direction}", f"for {bindings}:", reason]
    lines += ["", program.python()]
    if arguments is not None:
        lines.append("arguments = {")
        for name, array in arguments.items():
            values = f"np.array({array.tolist()!r}, {array.dtype.name!r})"
            lines.append(f"    {name!r}: {values}.reshape({array.shape}),")
        lines += ["}", "print(interpret(program, arguments))"]
    return "\n".join(lines)
