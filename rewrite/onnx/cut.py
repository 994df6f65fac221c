"""A model cut at a node whose results have extents that only its data decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.asked import bind_inputs, may_decide
from satura.rewrite.onnx.defaults import without_defaults
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.inferred import InferenceFailed, inferred
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.onnx.made_sequences import sequence_input, sequence_of
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import in_order, uses
from satura.rewrite.onnx.tensors import initializer
from satura.rewrite.onnx.types import tensor_type, type_proto
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

RANDOM = frozenset((
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
    "Bernoulli", "Dropout",
))  # fmt: skip


class OpenExtents(UnsupportedError):
    """The node that computes `outputs` has results whose extents depend on data.

    There are no outputs where the node is in a function: the graph has names for them where the
    functions are inlined. Where it `is_long`, sizes decide, and a program could run the node. A
    result that no program takes, a sequence or of unknown rank, has an empty type: such a node can
    only stay in a saved model, together with those that read it.
    """

    def __init__(
        self, message: str, outputs: Mapping[str, TypeProto] = {}, is_inlined: bool = False,
        is_long: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.outputs, self.is_inlined, self.is_long = outputs, is_inlined, is_long

    def with_outputs(self, outputs: Mapping[str, TypeProto]) -> OpenExtents:
        """The same of a node, with other types of its results."""
        return OpenExtents(str(self), outputs, self.is_inlined, self.is_long)

    def opened(self, stays: Callable[[int], bool]) -> OpenExtents:
        """The same, with a size of its own for each extent but numbers that stay."""
        return self.with_outputs(
            {name: opened(name, each, stays) for name, each in self.outputs.items()}
        )

    @property
    def types(self) -> dict[str, TensorType]:
        """The types of the results, with a size of its own for each open extent."""
        sizes = {
            dim.dim_param: symbol(dim.dim_param)
            for type_ in self.outputs.values()
            for dim in type_.tensor_type.shape.dim
        }
        typed = {name: type_ for name, type_ in self.outputs.items() if is_typed(type_)}
        return {name: tensor_type(type_, sizes) for name, type_ in typed.items()}

    @property
    def is_typed(self) -> bool:
        """Whether programs can take all results."""
        return all(map(is_typed, self.outputs.values()))


def is_typed(type_: TypeProto) -> bool:
    """Whether a type is that of tensors whose element type and rank are known."""
    return bool(type_.tensor_type.elem_type) and type_.tensor_type.HasField("shape")


def with_open_sizes(name: str, type_: TypeProto, sizes: Collection[str]) -> TypeProto:
    """The type of value `name` with a size of its own for each extent that `sizes` do not give."""
    result = TypeProto()
    result.CopyFrom(type_)
    for axis, dim in enumerate(result.tensor_type.shape.dim):
        if dim.WhichOneof("value") != "dim_value" and dim.dim_param not in sizes:
            dim.dim_param = f"{name}[{axis}]"
    return result


def opened(name: str, type_: TypeProto, stays: Callable[[int], bool]) -> TypeProto:
    """The type of value `name` with a size of its own for each extent but numbers that stay."""
    tensor = type_.tensor_type
    if not is_typed(type_):
        return type_
    numbers = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    shape = [each if each is not None and stays(each) else None for each in numbers]
    return with_open_sizes(name, helper.make_tensor_type_proto(tensor.elem_type, shape), ())


@dataclass(frozen=True)
class Cut:
    """`before` computes what the `nodes` between read, mostly one, and whatever else of it comes
    after them.

    Constants that only graphs inside of a node read are not among that. The results of the nodes
    that come after them are `open`.
    """

    model: ModelApart
    before: ModelApart
    nodes: tuple[NodeProto, ...]
    known: frozenset[str]
    open: Mapping[str, TypeProto]

    @property
    def cut_node(self) -> NodeProto:
        """The first of the nodes."""
        return self.nodes[0]

    @property
    def made(self) -> frozenset[str]:
        """The names of all that the nodes compute."""
        return frozenset(name for node in self.nodes for name in node.output if name)

    def alone(self) -> ModelProto:
        """The model of the node alone, for the reference implementation."""
        node, whole = self.cut_node, self.model.proto
        graph = GraphProto(name="node")
        graph.node.append(node)
        inside = constants_inside(node, whole.graph)
        read = dict.fromkeys(uses(node))
        for tensor in whole.graph.initializer:
            if tensor.name in inside:
                array = initializer(tensor, self.model.weights.get(tensor.name)).array
                graph.initializer.append(numpy_helper.from_array(array, tensor.name))
        graph.input.extend(ValueInfoProto(name=name) for name in read if name not in inside)
        graph.output.extend(ValueInfoProto(name=name) for name in node.output if name)
        return helper.make_model(graph, opset_imports=whole.opset_import, functions=whole.functions)

    def deciding(self, names: Collection[str]) -> frozenset[str]:
        """The inputs of the model whose values are behind `names`; none where one of them is data.

        Data are also results of nodes, of which no input says what they are for.
        """
        graph = self.model.proto.graph
        behind = _nodes_behind(names, _producers(graph.node))
        types = declared_inputs(graph)
        found = (set(names) | _read(behind)) & types.keys()
        is_data = any(name in self.model.data or not may_decide(types[name]) for name in found)
        return frozenset() if is_data else frozenset(found)

    def after(self, passed: Mapping[str, TensorType]) -> ModelApart | None:
        """What reads the results of `before`, of these types, and of the node; None for nothing."""
        graph = self.model.proto.graph
        done = self.known | self.made
        outputs = [value for value in graph.output if value.name not in done]
        nodes = _nodes_behind(
            (value.name for value in outputs),
            {name: node for name, node in _producers(graph.node).items() if name not in done},
        )
        if not outputs:
            return None
        types = {**{name: type_proto(each) for name, each in passed.items()}, **self.open}
        sequences = (_read(nodes) & self.known) - types.keys()
        nodes = [*(sequence_of(name, types) for name in sorted(sequences)), *nodes]
        own = {name for node in nodes for name in node.output}  # of sizes: the cut node reads it
        read = _read(nodes) - own - {value.name for value in graph.input}
        inputs = [
            helper.make_value_info(name, type_) for name, type_ in types.items() if name in read
        ]
        part = _part(self.model, nodes, inputs, outputs)
        data = {value.name for value in inputs if not self.deciding([value.name])}
        return replace(part, data=part.data | data)


def with_values(model: ModelApart, values: Mapping[str, Array]) -> ModelApart:
    """The model where inputs of these `values` are constants; it is itself where there are none.

    Sequences are made of their tensors, which are inputs. Raises CallError as `bind_inputs` does.
    """
    if not values:
        return model
    model = without_defaults(model, values)
    declared = declared_inputs(model.proto.graph)
    types, _ = bind_inputs(declared, values)
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    del graph.input[:], graph.node[:]
    graph.input.extend(
        helper.make_value_info(name, type_proto(each)) for name, each in types.items()
    )
    for name, value in values.items():
        type_ = declared[name]
        if isinstance(type_, SequenceType):
            graph.node.append(sequence_input(name, type_, value))
        else:
            graph.initializer.append(numpy_helper.from_array(value, name))
    graph.node.extend(model.proto.graph.node)
    return replace(model, proto=proto, data=model.data | (types.keys() - declared.keys()))


def cut(model: ModelApart, outputs: Mapping[str, TypeProto]) -> Cut:
    """`model` cut at the node that computes `outputs`, and at those that have to stay with it."""
    graph = model.proto.graph
    producers = _producers(graph.node)
    node = producers[next(iter(outputs))]
    are_typed = all(map(is_typed, outputs.values()))
    nodes, types = ((node,), outputs) if are_typed else staying(model, node)
    made = {name for node in nodes for name in node.output}
    reads = {name for node in nodes for name in uses(node)} - made
    first = _nodes_behind(reads, producers)
    apart = _sizes(graph)
    known = {name for each in first for name in each.output if name} - apart
    results = {value.name for value in graph.output}
    rest = _nodes_behind(
        results,
        {name: each for name, each in producers.items() if name not in known | made},
    )
    wanted = {name for each in nodes for name in {*uses(each)} - constants_inside(each, graph)}
    wanted = (wanted - made) | ((_read(rest) | results) & known)
    ends = [ValueInfoProto(name=name) for name in sorted(wanted)]
    return Cut(model, _part(model, first, [], ends), nodes, frozenset(known), types)


def staying(
    model: ModelApart, node: NodeProto
) -> tuple[tuple[NodeProto, ...], dict[str, TypeProto]]:
    """The node and those that read what no program takes of it, or lie between; and the types of
    their results that programs take, by ONNX's shape inference.

    Extents that are not known have sizes of their own.
    """
    graph = model.proto.graph
    try:
        found = inferred(model.proto).graph
    except InferenceFailed:
        found = graph
    types = {value.name: value.type for value in (*found.output, *found.value_info)}
    sizes = open_sizes(declared_inputs(graph).values())
    order = in_order(graph.node, _given(graph))
    inside, before = {order.index(node)}, set[int]()
    while inside != before:
        before = inside
        made = {name for at in inside for name in order[at].output if name}
        untyped = {name for name in made if not is_typed(types.get(name, TypeProto()))}
        readers = {at for at, each in enumerate(order) if untyped & {*uses(each)}}
        inside = _with_all_between(order, inside | readers)
    typed = {name: with_open_sizes(name, types[name], sizes) for name in sorted(made - untyped)}
    return tuple(order[at] for at in sorted(inside)), typed


def _with_all_between(order: Sequence[NodeProto], chosen: set[int]) -> set[int]:
    """The chosen ones of nodes, and those that depend on one of them where another depends on
    them."""
    behind: set[str] = set()
    found: set[int] = set()
    for at, node in enumerate(order):
        if at in chosen or behind & {*uses(node)}:
            found.add(at)
            behind |= {*node.output} - {""}
    read: set[str] = set()
    for at in sorted(found, reverse=True):
        if at in chosen or read & {*order[at].output}:
            read |= {*uses(order[at])}
        else:
            found.remove(at)
    return found


def _given(graph: GraphProto) -> set[str]:
    """The names of what no node of a graph computes."""
    return {each.name for each in graph.initializer} | {each.name for each in graph.input}


def constants_of(graph: GraphProto) -> set[str]:
    """The initializers that no argument replaces."""
    return {each.name for each in graph.initializer} - {value.name for value in graph.input}


def constants_inside(node: NodeProto, graph: GraphProto) -> set[str]:
    """The constants of `graph` that only graphs inside of `node` read."""
    return (set(uses(node)) & constants_of(graph)) - set(node.input)


def _has_graphs(node: NodeProto) -> bool:
    return any(each.HasField("g") for each in node.attribute)


def _sizes(graph: GraphProto) -> set[str]:
    """What is computed of sizes and constants only: parts that read it compute it themselves, since
    it may decide shapes in each of them."""
    given = {tensor.name for tensor in graph.initializer}
    found: set[str] = set()
    for node in in_order(graph.node, _given(graph)):
        is_plain = is_standard(node.domain) and node.op_type not in RANDOM
        if (
            is_plain
            and not _has_graphs(node)
            and (node.op_type in ("Shape", "Size") or given | found >= set(uses(node)))
        ):
            found |= set(node.output)
    return found - {""}


def _producers(nodes: Iterable[NodeProto]) -> dict[str, NodeProto]:
    return {name: node for node in nodes for name in node.output if name}


def _nodes_behind(names: Iterable[str], producers: Mapping[str, NodeProto]) -> list[NodeProto]:
    """The nodes that the values of these names are computed by, in the order of `producers`."""
    needed: set[str] = set()
    pending = [*names]
    while pending:
        name = pending.pop()
        if name in producers and name not in needed:
            needed |= set(producers[name].output)
            pending += uses(producers[name])
    found = {id(node): node for name, node in producers.items() if name in needed}
    return list(found.values())


def _read(nodes: Iterable[NodeProto]) -> set[str]:
    return {name for node in nodes for name in uses(node)}


def _part(
    model: ModelApart, nodes: Collection[NodeProto], inputs: Iterable[ValueInfoProto],
    outputs: Collection[ValueInfoProto],
) -> ModelApart:  # fmt: skip
    """The model of some nodes, with what they read."""
    whole = model.proto
    read = _read(nodes) | {value.name for value in outputs}
    graph = GraphProto(name=whole.graph.name)
    graph.node.extend(nodes)
    graph.input.extend(each for each in whole.graph.input if each.name in read)
    graph.input.extend(inputs)
    graph.output.extend(outputs)
    return model_of(graph, model, read)


def model_of(graph: GraphProto, whole: ModelApart, read: Collection[str]) -> ModelApart:
    """The model of a new graph that is a part of a whole one; it gets the constants that are read
    by these names."""
    proto = whole.proto
    graph.initializer.extend(each for each in proto.graph.initializer if each.name in read)
    made = helper.make_model(graph, opset_imports=proto.opset_import, functions=proto.functions)
    made.ir_version = proto.ir_version
    weights = {name: stored for name, stored in whole.weights.items() if name in read}
    return ModelApart(made, weights, whole.data)
