"""Order of evaluation: every name has one producer, and nothing waits for itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto

from satura.rewrite.errors import ModelError


def label(node: NodeProto) -> str:
    """How messages call a node."""
    if node.name:
        return f"node '{node.name}' ({node.op_type})"
    outputs = ", ".join(f"'{name}'" for name in node.output)
    return f"node without a name ({node.op_type}) that computes {outputs}"


def short_label(node: NodeProto) -> str:
    """How lists call a node: by its name, or by its first result."""
    return f"{node.op_type} '{node.name or next(filter(None, node.output), '')}'"


def in_order(nodes: Sequence[NodeProto], given: Collection[str]) -> list[NodeProto]:
    """`nodes` such that each comes after the producers of what it reads, else in their order.

    `given` are the names known from outside. Raises ModelError for a name with two producers, a
    name that nothing produces, and a cycle.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and (name in producer or name in given):
                raise ModelError(
                    f"{label(node)} computes '{name}', which already has a value; rename one"
                )
            if name:
                producer[name] = index
    waits: list[set[int]] = []
    users: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for name in uses(node):
            if name not in producer and name not in given:
                raise ModelError(f"{label(node)} reads '{name}', which nothing computes")
        waits.append({producer[name] for name in uses(node) if name not in given})
        for before in sorted(waits[index]):
            users[before].append(index)
    missing = [len(before) for before in waits]
    return _sort(nodes, users, missing)


def _sort(
    nodes: Sequence[NodeProto], users: list[list[int]], missing: list[int]
) -> list[NodeProto]:
    done: list[NodeProto] = []
    emitted = [False] * len(nodes)
    for first in range(len(nodes)):
        ready = [first] if not missing[first] and not emitted[first] else []
        while ready:
            index = ready.pop()
            emitted[index] = True
            done.append(nodes[index])
            for user in reversed(users[index]):
                missing[user] -= 1
                if not missing[user] and user < first:
                    ready.append(user)
    stuck = [node for node, out in zip(nodes, emitted, strict=True) if not out]
    if stuck:
        raise ModelError(f"{label(stuck[0])} is part of a cycle: it waits for its own result")
    return done


def uses(node: NodeProto) -> Iterator[str]:
    """Names that `node` reads, those that its subgraphs take from outside included."""
    yield from (name for name in node.input if name)
    for graph in inner_graphs(node):
        yield from free_names(graph)


def inner_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        yield from ([attribute.g] if attribute.HasField("g") else attribute.graphs)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """`nodes`, each with those of the graphs inside it."""
    for node in nodes:
        yield node
        for graph in inner_graphs(node):
            yield from all_nodes(graph.node)


def nodes_of(model: ModelProto) -> Iterator[NodeProto]:
    """Every node of a model, of its functions and of graphs inside nodes."""
    yield from all_nodes(model.graph.node)
    for function in model.functions:
        yield from all_nodes(function.node)


def free_names(graph: GraphProto) -> Iterator[str]:
    """Names that a graph reads and does not have, each as often as it is read."""
    inner = {value.name for value in graph.input} | {value.name for value in graph.initializer}
    inner |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in uses(node) if name not in inner)
    yield from (value.name for value in graph.output if value.name not in inner)
