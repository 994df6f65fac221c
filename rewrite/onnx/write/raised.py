"""Ops that programs spell out in small ones, and that ONNX has: Softmax, Gelu, LayerNormalization.

A runtime has a kernel for each of them, and cannot always find it in the small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose, sqrt

import numpy as np

from satura.rewrite.onnx.write.emitter import Emitter, Site
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Axes, BinaryFn, ReduceFn, UnaryFn
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import product
from satura.rewrite.types.tensor_type import DType

Nodes = Sequence[Node]


@dataclass(frozen=True)
class Raised:
    """An op of ONNX and the nodes that it reads; constants have the shapes that it wants."""

    op_type: str
    reads: tuple[int, ...]
    attributes: tuple[tuple[str, object], ...]
    constants: tuple[Constant, ...] = ()

    def written(self, emit: Emitter, site: Site) -> str:
        """The name of the op's result."""
        operands = [site.operand(position) for position in range(len(self.reads))]
        operands += map(emit.constant, self.constants)
        return emit.node(self.op_type, *operands, **dict(self.attributes))


def raised(nodes: Nodes, index: int) -> Raised | None:
    """The op that computes node `index` from nodes far behind it, if there is one."""
    node = nodes[index]
    if node.op.name != "binary" or node.type.dtype is not DType.F32:
        return None
    return _softmax(nodes, index) or _gelu(nodes, index) or _layer_norm(nodes, index)


def _softmax(nodes: Nodes, index: int) -> Raised | None:
    """exp(x - max(x)) / sum of that"""
    for powers, total in _of_binary(nodes, index, "div"):
        axes = _of_reduce(nodes, total, "sum", powers)
        for x, largest in _of_binary(nodes, _of_unary(nodes, powers, "exp"), "sub"):
            if axes is not None and axes == _of_reduce(nodes, largest, "max", x) and len(axes) == 1:
                return Raised("Softmax", (x,), (("axis", axes[0]),))
    return None


def _gelu(nodes: Nodes, index: int) -> Raised | None:
    """x · (1 + erf(x / sqrt(2))) · 0.5 in any order"""
    for outer, rest in _of_binary(nodes, index, "mul"):
        for one, two in _of_binary(nodes, outer, "mul"):
            for half, x, factor in ((rest, one, two), (one, rest, two), (one, two, rest)):
                if _is_number(nodes, half, 0.5) and _is_erf_of(nodes, factor, x):
                    return Raised("Gelu", (x,), ())
    return None


def _is_erf_of(nodes: Nodes, index: int, x: int) -> bool:
    """Whether a node is 1 + erf(x / sqrt(2))."""
    for inner, one in _of_binary(nodes, index, "add"):
        scaled = _of_unary(nodes, inner, "erf")
        if scaled is not None and _is_number(nodes, one, 1.0):
            divided = [pair for pair in _of_binary(nodes, scaled, "div") if pair[0] == x]
            times = [pair for pair in _of_binary(nodes, scaled, "mul") if pair[0] == x]
            return any(_is_number(nodes, by, sqrt(2)) for _, by in divided) or any(
                _is_number(nodes, by, sqrt(0.5)) for _, by in times
            )
    return False


def _layer_norm(nodes: Nodes, index: int) -> Raised | None:
    """(x - mean) / sqrt(variance + epsilon) · scale, with a bias or without, along the last axes"""
    for scaled, bias in [*_of_binary(nodes, index, "add"), (index, None)]:
        for normal, scale in _of_binary(nodes, scaled, "mul"):
            for centred, deviation in _of_binary(nodes, normal, "div"):
                found = _normalised(nodes, centred, _of_unary(nodes, deviation, "sqrt"))
                if found is None:
                    continue
                x, axes, epsilon = found
                constants = [
                    _along(nodes, each, axes) for each in (scale, bias) if each is not None
                ]
                if all(constant is not None for constant in constants):
                    return Raised(
                        "LayerNormalization", (x,), (("axis", axes[0]), ("epsilon", epsilon)),
                        tuple(constant for constant in constants if constant is not None),
                    )  # fmt: skip
    return None


def _normalised(
    nodes: Nodes, centred: int, variance: int | None
) -> tuple[int, tuple[int, ...], float] | None:
    """x, the axes and epsilon, where `centred` is x less its mean, `variance` that plus epsilon."""
    for mean_square, more in _of_binary(nodes, variance, "add"):
        epsilon = _number(nodes, more)
        square, axes = _mean(nodes, mean_square)
        if (
            epsilon is None
            or not axes
            or (centred, centred) not in _of_binary(nodes, square, "mul")
        ):
            continue
        for x, mean in _of_binary(nodes, centred, "sub"):
            rank = nodes[x].type.rank
            if _mean(nodes, mean) == (x, axes) and axes == tuple(range(axes[0], rank)):
                return x, axes, epsilon
    return None


def _mean(nodes: Nodes, index: int) -> tuple[int, tuple[int, ...]]:
    """x and the axes where a node is the mean of x along them; no axes where it is not."""
    for function in ("mul", "div"):
        for total, by in _of_binary(nodes, index, function):
            node, number = nodes[total], _number(nodes, by)
            if node.op.name != "reduce" or node.attributes[0] != ReduceFn("sum") or not number:
                continue
            (x,), axes = node.operands, node.attributes[1]
            assert isinstance(axes, Axes)
            count = product(nodes[x].type.shape[axis] for axis in axes.indices)
            share = 1 / number if function == "mul" else number
            if isinstance(count, int) and isclose(share, count, rel_tol=1e-6):
                return x, tuple(axes.indices)
    return index, ()


def _along(nodes: Nodes, index: int, axes: tuple[int, ...]) -> Constant | None:
    """A constant of the last axes only, without the others."""
    node = nodes[index]
    if node.op.name != "constant" or any(dim != 1 for dim in node.type.shape[: axes[0]]):
        return None
    return Constant(node.constant.array.reshape(node.constant.array.shape[axes[0] :]))


def _of_binary(nodes: Nodes, index: int | None, function: str) -> Iterator[tuple[int, int]]:
    """The operands of a node of `function`, and the other way round where that is the same."""
    if index is None or nodes[index].op.name != "binary":
        return
    if nodes[index].attributes[0] == BinaryFn(function):
        x, y = (_spread(nodes, at) for at in nodes[index].operands)
        yield x, y
        if function in ("add", "mul"):
            yield y, x


def _of_unary(nodes: Nodes, index: int, function: str) -> int | None:
    node = nodes[index]
    is_of = node.op.name == "unary" and node.attributes[0] == UnaryFn(function)
    return node.operands[0] if is_of else None


def _of_reduce(nodes: Nodes, index: int, function: str, x: int) -> tuple[int, ...] | None:
    """The axes along which a node reduces x."""
    node = nodes[index]
    if (
        node.op.name != "reduce"
        or node.attributes[0] != ReduceFn(function)
        or node.operands != (x,)
    ):
        return None
    axes = node.attributes[1]
    assert isinstance(axes, Axes)
    return tuple(axes.indices)


def _spread(nodes: Nodes, index: int) -> int:
    """What is repeated to become a node."""
    return nodes[index].operands[0] if nodes[index].op.name == "broadcast" else index


def _number(nodes: Nodes, index: int) -> float | None:
    """The value of all elements of a constant."""
    node = nodes[index]
    if node.op.name != "constant" or product(node.type.shape) != 1:
        return None
    return float(np.asarray(node.constant.array).ravel()[0])


def _is_number(nodes: Nodes, index: int, value: float) -> bool:
    found = _number(nodes, index)
    return found is not None and isclose(found, value, rel_tol=1e-6)
