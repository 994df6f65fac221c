"""Constants of a saved program: what is computed from constants alone is stored as its value.

A runtime would compute it anew, once or at every call. What is larger than the constants behind it
is left to the runtime: broadcasts, and weights that are stored in a narrow type. So are quantised
ones of any size, with which runtimes compute in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from satura.rewrite.onnx.write.formula import is_function
from satura.rewrite.onnx.write.marks import QUANTISED, dequantised
from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.registry import user_op
from satura.rewrite.program.memory import tensor_bytes
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType

SMALL = 1024  # bytes that a value may have whatever lies behind it


def with_constants(program: Program) -> Program:
    """The program in which values that are no larger than their constants stand for their nodes."""
    nodes = list(program.nodes)
    values: dict[int, Callable[[], Array]] = {}
    behind: dict[int, frozenset[int]] = {}
    for index, known in enumerate(program.known):
        node = program.nodes[index]
        if not known or user_op(node.op, node.attributes) is not None:
            continue
        if node.op.name == "constant":
            values[index], behind[index] = partial(_array, node.constant), frozenset([index])
            continue
        if not all(operand in values for operand in node.operands) or dequantised(nodes, index):
            continue
        behind[index] = frozenset().union(*(behind[operand] for operand in node.operands))
        operands = [values[operand] for operand in node.operands]
        if node.op.name == "broadcast":
            values[index] = partial(_spread, operands[0], tuple(map(static, node.type.shape)))
            continue
        most = SMALL + sum(tensor_bytes(program.nodes[at].type) for at in behind[index])
        if tensor_bytes(node.type) > most:
            continue
        if _is_before_scale(program, index):
            values[index] = partial(_computed, node, operands)
        else:
            constant = Constant(_computed(node, operands))
            nodes[index] = Node(REGISTRY["constant"], (), (constant,), node.type)
            values[index] = partial(_array, constant)
    return Program(tuple(nodes), program.inputs, program.outputs)


def _is_before_scale(program: Program, index: int) -> bool:
    """Whether a node is a quantised constant in f32, which each of its readers multiplies,
    and so is not stored."""
    node, users = program.nodes[index], program.users[index]
    return (
        node.op.name == "cast"
        and node.type.dtype is DType.F32
        and program.nodes[node.operands[0]].type.dtype in QUANTISED
        and index not in program.output_nodes
        and all(is_function(program.nodes[user], "mul") for user in users)
    )


def _computed(node: Node, operands: Sequence[Callable[[], Array]]) -> Array:
    with np.errstate(all="ignore"):
        arrays = [operand() for operand in operands]
        return np.asarray(node.op.reference(*arrays, *node.attributes))


def _array(constant: Constant) -> Array:
    return constant.array


def _spread(value: Callable[[], Array], shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(value(), shape)
