"""The element types of the tensors of a graph that is written: they decide which opsets serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from onnx import NodeProto, TensorProto

from satura.rewrite.onnx.opsets import operands_of
from satura.rewrite.onnx.order import all_nodes, inner_graphs
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import DType

_NAMING = ("to", "dtype", "output_dtype")
"""Attributes that say the element type of a result."""


def types_of(
    programs: Sequence[Program], nodes: Iterable[NodeProto],
    constants: Mapping[str, Constant], opset: int,
) -> Callable[[str], Set[str]]:  # fmt: skip
    """The element types that a tensor of the graph may have, by its name, as ONNX calls them.

    Of a result of which neither its op nor its operands say more these are all of the programs'.
    """
    found: dict[str, Set[str]] = {
        name: {element_type(x.type.dtype)} for name, x in constants.items()
    }
    used = {DType.BOOL, DType.I64, DType.F32}
    for program in programs:
        used |= {node.type.dtype for node in program.nodes}
        for node in (program.nodes[at] for at in program.inputs):
            found[node.input_name] = {element_type(node.type.dtype)}
    possible = {element_type(dtype) for dtype in used}
    for each in all_nodes(nodes):
        for graph in inner_graphs(each):
            codes = {value.name: value.type.tensor_type.elem_type for value in graph.input}
            codes |= {tensor.name: tensor.data_type for tensor in graph.initializer}
            found |= {name: {_of_code(code)} for name, code in codes.items() if code}
        _add_results(each, opset, found, possible)
    return lambda name: found.get(name, possible)


def element_type(dtype: DType) -> str:
    """An element type as ONNX calls it."""
    return _of_code(ELEMENT_CODES[dtype])


def _of_code(code: int) -> str:
    return f"tensor({TensorProto.DataType.Name(code).lower()})"


def _add_results(
    node: NodeProto, opset: int, found: dict[str, Set[str]], possible: Set[str]
) -> None:
    """Add the types of a node's results: those of operands of the same type variable, or the one
    that an attribute names."""
    reads, results = operands_of(node, opset)
    known = {x.variable: found[name] for name, x in reads if name in found and x.is_alike}
    named = {_of_code(each.i) for each in node.attribute if each.name in _NAMING and each.i}
    named |= {_of_code(each.t.data_type) for each in node.attribute if each.HasField("t")}
    for name, result in results:
        some = known.get(result.variable) or named & result.types or result.types & possible
        found.setdefault(name, some or possible)
