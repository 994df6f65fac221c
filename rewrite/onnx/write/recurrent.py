"""Recurrences as LSTM, GRU and RNN nodes.

These multiply their inputs by weights: by those of the matmul that a recurrence's inputs come from,
else by a matrix that picks them.
"""

from __future__ import annotations

from math import inf

import numpy as np
from onnx import helper

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.lower.recurrent import VARIANTS
from satura.rewrite.onnx.write.emitter import Emitter, Site
from satura.rewrite.ops.cells import ALPHA, BETA, FUNCTIONS, Cell
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import BinaryFn
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static

_DIRECTIONS = {(False,): "forward", (True,): "reverse", (False, True): "bidirectional"}
_NAMES = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
        "HardSigmoid", "Elu", "Softsign", "Softplus",
    )
}  # fmt: skip


def reads(nodes: tuple[Node, ...], node: Node) -> tuple[int, ...]:
    """What the ONNX node reads: weights, first states, parameters, lengths and the gates' inputs.

    Where these come from a matmul, its operands and its bias, if it has one, stand for them.
    """
    x, *others = node.operands
    return (*others, *(_projection(nodes, x) or (x,)))


def _projection(nodes: tuple[Node, ...], at: int) -> tuple[int, ...] | None:
    """The matmul that gives a tensor, row by row, and what is added to all its rows."""
    bias: tuple[int, ...] = ()
    while nodes[at].op.name != "matmul":
        node = nodes[at]
        width = node.type.shape[-1] if node.type.rank else 1
        if node.op.name == "reshape" and nodes[node.operands[0]].type.shape[-1:] == (width,):
            at = node.operands[0]
        elif node.op.name == "binary" and node.attributes == (BinaryFn("add"),) and not bias:
            rows = [(each, _row(nodes, each, width)) for each in node.operands]
            found = [row for _, row in rows if row is not None]
            if len(found) != 1:
                return None
            (bias,), (at,) = ((found[0],),), (each for each, row in rows if row is None)
        else:
            return None
    if nodes[at].type.rank != 2:
        return None
    return (*nodes[at].operands, *bias)


def _row(nodes: tuple[Node, ...], at: int, width: object) -> int | None:
    """The one row that is repeated in this tensor."""
    node = nodes[at]
    if node.op.name != "broadcast":
        return None
    shape = nodes[node.operands[0]].type.shape
    is_row = shape[-1:] == (width,) and all(dim == 1 for dim in shape[:-1])
    return node.operands[0] if is_row else None


def recurrence(emit: Emitter, site: Site) -> str:
    """recurrence(x, weights, first, parameters, lengths, cell)"""
    (cell,) = site.node.attributes
    assert isinstance(cell, Cell)
    direction = _DIRECTIONS.get(cell.backward)
    if direction is None:
        raise UnsupportedError(f"no ONNX node has sides that go {cell.backward} backward")
    type_ = site.node.type
    dtype, (total, sides, batch, _) = type_.dtype, type_.shape
    hidden, columns = (static(dim) for dim in site.type(0).shape[1:])
    count, states = static(sides), len(cell.states)
    zeros = Constant(np.zeros((count, columns), dtype.numpy))

    def joined(*parts: str) -> str:
        return emit.node("Concat", *parts, axis=1)

    def reshaped(x: str, *shape: int) -> str:
        return emit.node("Reshape", x, emit.integers(shape))

    own = emit.constant(zeros)
    if len(site.reads) > 5:
        turned = emit.node("Transpose", site.operand(5), perm=[1, 0])
        weights = reshaped(turned, count, columns, -1)
        if len(site.reads) > 6:
            own = reshaped(site.operand(6), count, columns)
    else:
        picked = np.eye(count * columns, dtype=dtype.numpy).reshape(count, columns, -1)
        weights = emit.constant(Constant(picked))
    rows = emit.shape((total - states, batch))
    width = emit.integers([static(site.type(4).shape[-1])])
    x = emit.node("Reshape", site.operand(4), emit.node("Concat", rows, width, axis=0))
    bias, holes = emit.constant(zeros), ""
    if cell.parameters == (1,):
        before = Constant(np.zeros((count, columns - hidden), dtype.numpy))
        bias = joined(emit.constant(before), reshaped(site.operand(2), count, hidden))
    elif static(site.type(2).shape[1]):
        holes = reshaped(site.operand(2), count, -1)
    lengths = ""
    if site.type(3).shape != (0,):
        lengths = emit.node("Cast", site.operand(3), to=6)
    first = [
        emit.node("Gather", site.operand(1), emit.constant(Constant(np.array(number))), axis=0)
        for number in range(states)
    ]
    operands = [
        x, weights, emit.node("Transpose", site.operand(0), perm=[0, 2, 1]), joined(own, bias),
        lengths, *first, *([holes] if holes else []),
    ]  # fmt: skip
    outputs = [emit.fresh() for _ in range(1 + states)]
    ready = [emit.ready(each) for each in operands]
    made = helper.make_node(cell.kind.upper(), ready, outputs, hidden_size=hidden)
    made.attribute.extend(
        helper.make_attribute(*pair) for pair in _attributes(cell, direction).items()
    )
    emit.nodes.append(made)
    axis = emit.integers([0])
    lasts = [emit.node("Unsqueeze", last, axis) for last in outputs[1:]]
    return emit.node("Concat", outputs[0], *lasts, axis=0)


def _attributes(cell: Cell, direction: str) -> dict[str, object]:
    functions = cell.functions * len(cell.backward)
    assert len(cell.functions) == FUNCTIONS[cell.kind]
    found: dict[str, object] = {
        "direction": direction, "activations": [_NAMES[name] for name, _, _ in functions],
    }  # fmt: skip
    alphas = [alpha for name, alpha, _ in functions if name in ALPHA]
    betas = [beta for name, _, beta in functions if name in BETA]
    if alphas:
        found["activation_alpha"] = alphas
    if betas:
        found["activation_beta"] = betas
    if cell.clip != inf:
        found["clip"] = cell.clip
    if cell.variant:
        found[VARIANTS[cell.kind.upper()]] = 1
    return found
