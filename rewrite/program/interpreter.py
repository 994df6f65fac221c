"""The NumPy interpreter: what a program means, and the reference for every other way to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.program.arguments import as_arrays, sizes_of
from satura.rewrite.program.memory import named_types, refuse_beyond_memory, tensor_bytes
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import Count, HostCall
from satura.rewrite.types.tensor_type import Array, DType

_OF_THE_MODEL = (
    "its model may run there: satura.interpret, given the model and not the program, is for the"
    " sizes of the arguments"
)


def bind_sizes(program: Program, arguments: Mapping[str, Array]) -> dict[str, int]:
    """Sizes of the program's symbols, from the shapes of `arguments`.

    Raises CallError where the arguments do not fit the inputs; see `sizes_of`.
    """
    return sizes_of(program.input_types, arguments)


def host_results(node: Node, operands: list[Array]) -> tuple[Array, ...]:
    """Results of a host node: the onnx package's reference implementation, or a user's op.

    Raises CallError where these fail, or give other types than the program expects.
    """
    call = node.attributes[0] if node.attributes else None
    if not isinstance(call, HostCall):
        return (node.op.reference(*operands, *node.attributes),)
    from satura.rewrite.program.host_call import run

    return run(call, operands)


def evaluate_nodes(
    program: Program,
    arguments: Mapping[str, Array],
    keep: Callable[[int], bool] = lambda index: False,
    names: Mapping[int, str] = {},
) -> dict[int, Array]:
    """Values of the outputs, and of the nodes that `keep` asks for, by node index.

    Raises CallError where memory cannot hold one of the tensors on the way, and for an index
    outside of its axis, which says what `names` call the node.
    """
    arguments = as_arrays(arguments)
    program = _at_sizes_of(arguments, program)
    largest = max((tensor_bytes(node.type) for node in program.nodes), default=0)
    refuse_beyond_memory(largest, named_types(program, range(len(program.nodes))), CallError)
    last_use = {i: index for index, node in enumerate(program.nodes) for i in node.operands}
    outputs = set(program.output_nodes)
    values: dict[int, Array] = {}
    results: dict[int, tuple[Array, ...]] = {}
    for index, node in enumerate(program.nodes):
        if node.op.name == "input":
            values[index] = arguments[node.input_name]
        elif node.op.name == "host":
            results[index] = host_results(node, [values[i] for i in node.operands])
            values[index] = results[index][0]
        elif node.op.name == "item":
            position = node.attributes[0]
            assert isinstance(position, Count)
            values[index] = results[node.operands[0]][position.value]
        else:
            operands = [values[i] for i in node.operands]
            try:
                values[index] = np.asarray(node.op.reference(*operands, *node.attributes))
            except CallError as error:
                raise CallError(f"{names.get(index, f'%{index}')}: {error}") from None
        assert DType.of(values[index].dtype) is node.type.dtype, (str(node), values[index].dtype)
        for operand in set(node.operands):
            if last_use[operand] == index and operand not in outputs and not keep(operand):
                values.pop(operand, None)
                results.pop(operand, None)
    return values


def _at_sizes_of(arguments: Mapping[str, Array], program: Program) -> Program:
    """The program at the sizes of its arguments. Raises CallError where it does not run there."""
    sizes = bind_sizes(program, arguments)
    try:
        return program.concrete(sizes)
    except ProgramError as error:
        is_excluded = any(
            not each.holds(sizes) and not each.is_of_extent for each in program.conditions
        )
        advice = f"; {_OF_THE_MODEL}" if is_excluded else ""
        raise CallError(f"the program does not run at these sizes: {error}{advice}") from error


def interpret(
    program: Program, arguments: Mapping[str, Array], names: Mapping[int, str] = {}
) -> dict[str, Array]:
    """Outputs of `program` by name, for arguments by name; errors call nodes as `names` do.

    Raises CallError when the arguments do not fit the program's inputs.
    """
    values = evaluate_nodes(program, arguments, names=names)
    return {name: np.array(values[index], order="C") for name, index in program.outputs}
