"""Graphs inside of nodes: what they read from outside, and what is called how in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count

from onnx import GraphProto, NodeProto

from satura.rewrite.onnx.cut import RANDOM
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import all_nodes, free_names, inner_graphs
from satura.rewrite.onnx.tensors import array_of
from satura.rewrite.types.constant import Constant

_LARGEST_INSIDE = 1024  # bytes of a constant that stays in a graph inside of a node
_IN_BODY = ": in its body: "
_MOST_PLACES = 3  # that a message names at each end


def read_outside(node: NodeProto) -> list[str]:
    """The names that the graphs inside of a node read from outside of it, each once."""
    return list(dict.fromkeys(name for graph in inner_graphs(node) for name in free_names(graph)))


def count_run(graph: GraphProto) -> int:
    """How many nodes of a graph compute something, those of graphs inside of it not counted."""
    return sum(node.op_type not in ("Identity", "Constant") for node in graph.node)


def inside(place: str, message: str, depth: int) -> str:
    """`message` with the place around it; of many places only the first and last are named."""
    if depth < _MOST_PLACES or message.count(_IN_BODY) < _MOST_PLACES:
        return f"{place}{_IN_BODY}{message}"
    return message if message.startswith("…") else f"…: {message}"


def can_stand_alone(node: NodeProto, functions: Collection[tuple[str, str, str]]) -> bool:
    """Whether what is in a node means the same in each model, and gives the same in each call."""
    return all(
        is_standard(each.domain)
        and each.op_type not in RANDOM
        and (each.domain, each.op_type, each.overload) not in functions
        for each in all_nodes([node])
    )


def with_new_names(
    node: NodeProto, outside: Mapping[str, str], fresh: Callable[[], str]
) -> NodeProto:
    """A node in which graphs have `fresh` names for their own, and those `outside` of it."""
    result = NodeProto()
    result.CopyFrom(node)
    for graph in inner_graphs(result):
        _rename(graph, outside, fresh)
    return result


def _rename(graph: GraphProto, outside: Mapping[str, str], fresh: Callable[[], str]) -> None:
    own = [*graph.input, *graph.initializer]
    inside = dict.fromkeys(
        [*(each.name for each in own), *(name for node in graph.node for name in node.output)]
    )
    names = {**outside, **{name: fresh() for name in inside if name}}
    for each in (*own, *graph.output):
        each.name = names.get(each.name, each.name)
    for node in graph.node:
        for inner in inner_graphs(node):
            _rename(inner, names, fresh)
        for tensors in (node.input, node.output):
            tensors[:] = [names.get(name, name) for name in tensors]
    del graph.value_info[:], graph.quantization_annotation[:]


def standing_alone(node: NodeProto) -> tuple[NodeProto, dict[str, str], dict[str, Constant]]:
    """A node with names of its own inside, so that equal ones are equal; the new names of what is
    read outside, and of larger constants inside, which it reads from outside, too."""
    outside = {name: f"c{at}" for at, name in enumerate(read_outside(node))}
    numbers = count()
    result = with_new_names(node, outside, lambda: f"b{next(numbers)}")
    constants: dict[str, Constant] = {}
    for each in all_nodes([result]):
        for graph in inner_graphs(each):
            constants |= _taken_out(graph)
    return result, outside, constants


def _taken_out(graph: GraphProto) -> dict[str, Constant]:
    """The larger constants of a graph, which it has no longer; a result has to be its own."""
    results = {value.name for value in graph.output}
    found: dict[str, Constant] = {}
    for at, tensor in reversed([*enumerate(graph.initializer)]):
        if tensor.name not in results and tensor.ByteSize() > _LARGEST_INSIDE:
            found[tensor.name] = Constant(array_of(tensor))
            del graph.initializer[at]
    return found
