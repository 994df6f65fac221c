"""Why a law has no right side, as lines of a counterexample that show it again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from satura.rewrite.check.instances import Instance
from satura.rewrite.errors import ProgramError, RuleError
from satura.rewrite.language.definition import rules_module
from satura.rewrite.language.dsl import Rule
from satura.rewrite.ops import Op
from satura.rewrite.program.program import Program, ProgramBuilder, attribute_python
from satura.rewrite.types.attributes import Attribute, Refuse, concrete_attribute
from satura.rewrite.types.tensor_type import TensorType


@dataclass(frozen=True)
class RefusedOp:
    """An op that cannot stand on the right side: it does not fit its operands.

    `program` has no symbols; its outputs are the left side, then the operands.
    """

    program: Program
    op: str
    attributes: tuple[Attribute, ...]

    def lines(self, program: Program) -> list[str]:
        """Lines that add the op to `program`, which has these outputs, and print its refusal."""
        operands = "".join(f"v{index}, " for index in program.output_nodes[1:])
        arguments = [repr(self.op), f"({operands})", *map(attribute_python, self.attributes)]
        tried = f"    build.add({', '.join(arguments)})"
        return _refusal_lines(tried, "the right side cannot be computed:")


def refused_op(instance: Instance, sizes: Mapping[str, int]) -> RefusedOp | None:
    """The op of the right side that does not fit its operands at these sizes; None if all fit."""
    builder = _Trying()
    tensors = instance.add_variables(builder, {})
    left = instance.add_left(builder, tensors)
    try:
        instance.add_right(builder, tensors)
    except (ProgramError, Refuse):
        op, operands, attributes = builder.tried
    except Exception:  # whatever an op makes of what attribute functions answered
        return None
    else:
        return None
    outputs = {"left": left} | {str(number): node for number, node in enumerate(operands)}
    try:
        program = builder.program(outputs).concrete(sizes)
        concrete = tuple(concrete_attribute(value, sizes) for value in attributes)
        rebuilt = ProgramBuilder()
        rebuilt.nodes += program.nodes
    except Exception:
        return None
    try:
        rebuilt.add(op, program.output_nodes[1:], *concrete)
    except (ProgramError, Refuse):
        return RefusedOp(program, op, concrete)
    return None


class _Trying(ProgramBuilder):
    """A builder that keeps what was added last, or could not be."""

    tried: tuple[str, tuple[int, ...], tuple[Attribute, ...]]

    def add(self, op: str | Op, operands: Iterable[int] = (), *attributes: Attribute) -> int:
        name = op if isinstance(op, str) else op.name
        self.tried = (name, tuple(operands), attributes)
        return super().add(op, self.tried[1], *attributes)


def failing_function_lines(instance: Instance, rule: Rule, reason: str) -> list[str]:
    """Lines that load the rule and compute its attributes again; none where that does not fail for
    this reason, or the rule is not of a file that can be loaded."""
    directions = [each.label for each in rule.directions]
    if rules_module(Path(rule.file)) not in sys.modules:
        return []
    try:
        instance.direction.compute(instance.bindings)
    except (RuleError, TypeError) as error:
        if str(error) != reason:
            return []
    else:
        return []
    values = ", ".join(f"{name!r}: {_value_python(value)}" for name, value in instance.values)
    return [
        "from satura.pipeline.rule_file import load_rules",
        f"rules = {{rule.name: rule for rule in load_rules({str(rule.file)!r})}}",
        *(f"{name} = symbol({name!r})" for name in sorted(instance.symbols)),
        f"law = rules[{rule.name!r}].directions[{directions.index(instance.direction.label)}]",
        *_refusal_lines(f"    law.compute({{{values}}})"),
    ]


def _value_python(value: TensorType | Attribute) -> str:
    return repr(value) if isinstance(value, TensorType) else attribute_python(value)


def _refusal_lines(tried: str, before: str = "") -> list[str]:
    """Lines that try one, and print what it raises as the right side."""
    said = f"{before!r}, error" if before else "error"
    return ["try:", tried, "except Exception as error:", f'    print("right", {said})']
