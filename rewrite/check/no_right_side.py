"""The op for which a law has no right side, as lines of a counterexample that show it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from satura.rewrite.check.instances import Instance
from satura.rewrite.errors import ProgramError
from satura.rewrite.ops import Op
from satura.rewrite.program.program import Program, ProgramBuilder, attribute_python
from satura.rewrite.types.attributes import Attribute, Refuse, concrete_attribute


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
        said = "the right side cannot be computed:"
        return ["try:", tried, "except Exception as error:", f'    print("right", {said!r}, error)']


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
