"""Which nodes of a builder the nodes of its program were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satura.rewrite.program.program import Node, Program


def origins(program: Program, nodes: Sequence[Node], outputs: Mapping[str, int]) -> dict[int, int]:
    """Per node of a program the one of the builder's `nodes` that it was."""
    inputs = {node.input_name: old for old, node in enumerate(nodes) if node.op.name == "input"}
    stack = [(index, inputs[program.nodes[index].input_name]) for index in program.inputs]
    stack += [(index, outputs[name]) for name, index in program.outputs]
    built: dict[int, int] = {}
    while stack:
        index, old = stack.pop()
        if index not in built:
            built[index] = old
            operands = nodes[old].operands
            stack.extend(zip(program.nodes[index].operands, operands, strict=True))
    return built
