"""Control flow that data decide, and that so runs on the host: what is known of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
)

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.cut import OpenExtents, with_open_sizes
from satura.rewrite.onnx.inferred import InferenceFailed, inferred
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.order import free_names, inner_graphs, uses
from satura.rewrite.onnx.types import ELEMENT_CODES, shown_dim, type_proto

Types = Mapping[str, TypeProto]


def open_results(
    node: Context, scope: Mapping[str, int], model: ModelProto
) -> dict[str, TypeProto] | None:
    """The types of the results, with a size of its own for each extent that is not known.

    They are those of ONNX's shape inference, which is told the constants that bodies read from
    outside, and knows ranks alone where a branch does not run at the sizes of this program; what a
    loop passes on keeps its extents where each step keeps them, and its rank elsewhere, and what a
    step gives follows from that, whatever the body declares. None where a rank is not known, or a
    result, or what a loop passes on, is not a tensor.
    """
    if any(x is not None and x < 0 for x in node.operands):
        return None
    types = {
        name: _type_of(node.build, scope[name])
        for name in dict.fromkeys(uses(node.proto))
        if name in scope
    }
    outputs = [name for name in node.proto.output if name]
    told = NodeProto()
    told.CopyFrom(node.proto)
    _tell(told, _constants(node, scope, types))
    found = _inferred([told], types, outputs, model)
    if node.proto.op_type == "If" and not _have_ranks(found):
        ranks = {name: _of_rank(type_) for name, type_ in types.items()}
        found = _inferred([told], ranks, outputs, model)
    if found is None:
        return None
    if node.proto.op_type == "Loop":
        found |= _of_loop(told, types, found, model)
    sizes = {dim.dim_param for each in types.values() for dim in each.tensor_type.shape.dim}
    results: dict[str, TypeProto] = {}
    for name in outputs:
        tensor = found[name].tensor_type
        if not tensor.HasField("shape") or not tensor.elem_type:
            return None
        results[name] = with_open_sizes(name, found[name], sizes - {""})
    return results


def without_types(node: Context, error: UnsupportedError) -> OpenExtents:
    """What says of a node that no program takes its results, whose types are not known."""
    return OpenExtents(str(error), {name: TypeProto() for name in node.proto.output if name})


def _constants(node: Context, scope: Mapping[str, int], types: Types) -> dict[str, TensorProto]:
    """Those of the names that are numbers in all calls, on which shapes may depend."""
    constants = {}
    for name, type_ in types.items():
        known = node.values.of(scope[name]) if scope[name] >= 0 else None
        if known is not None and all(isinstance(each, int | float) for each in known.ravel()):
            kind = type_.tensor_type.elem_type
            constants[name] = helper.make_tensor(name, kind, known.shape, known.ravel().tolist())
    return constants


def _tell(node: NodeProto, constants: Mapping[str, TensorProto]) -> None:
    """Give each graph inside of a node those of the `constants` that it reads from outside.

    Shape inference knows of what a graph reads from outside the types alone.
    """
    for graph in inner_graphs(node):
        read = dict.fromkeys(free_names(graph))
        for inner in graph.node:
            _tell(inner, constants)
        graph.initializer.extend(constants[name] for name in read if name in constants)


def _type_of(build: Tensors, value: int) -> TypeProto:
    """The type of a tensor, or of a sequence what is the same of all its tensors."""
    if value >= 0:
        return type_proto(build.type(value))
    types = [build.type(x) for x in build.sequences[value] or ()]
    codes, ranks = {ELEMENT_CODES[each.dtype] for each in types}, {each.rank for each in types}
    shape: list[int | str | None] | None = None
    if len(ranks) == 1:
        extents = [{*each} for each in zip(*(each.shape for each in types), strict=True)]
        shape = [shown_dim(each.pop()) if len(each) == 1 else None for each in extents]
    code = codes.pop() if len(codes) == 1 else TensorProto.UNDEFINED
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(code, shape))


def _of_loop(
    loop: NodeProto, types: Types, declared: Types, model: ModelProto
) -> dict[str, TypeProto]:
    """The types of what a loop passes on, with the extents that a step keeps if all keep theirs,
    and of the rows that its steps give, with what those that are `declared` say beside it.

    A state that a step changes has no extents in the next step either.
    """
    body = next(each.g for each in loop.attribute if each.name == "body")
    at_first = [types[name] for name in loop.input[2:]]
    count = len(at_first)
    if len(body.input) != 2 + count or len(body.output) <= count:
        return {}  # of a broken model
    inner = [value.name for value in body.input[2:]]
    results = [value.name for value in body.output[1:]]
    kept, before = at_first, None
    made: Types = {}
    while kept != before:
        given = {**types, **_number_and_truth(body), **dict(zip(inner, kept, strict=True))}
        wanted = list(dict.fromkeys(results))
        made = given | (_inferred([*body.node], given, wanted, model, body.initializer) or {})
        before = kept
        kept = [
            type_ if made.get(name) == type_ else _of_rank(type_)
            for name, type_ in zip(results[:count], kept, strict=True)
        ]
    found = {name: type_ for name, type_ in zip(loop.output, kept, strict=False) if name}
    for name, result in zip(loop.output[count:], results[count:], strict=False):
        if name and result in made and made[result].tensor_type.HasField("shape"):
            found[name] = _with_declared(_rows(made[result]), declared[name])
    return found


def _rows(type_: TypeProto) -> TypeProto:
    """The type of any number of tensors of a type as one."""
    result = TypeProto()
    tensor = result.tensor_type
    tensor.elem_type = type_.tensor_type.elem_type
    tensor.shape.dim.add()
    tensor.shape.dim.extend(type_.tensor_type.shape.dim)
    return result


def _with_declared(type_: TypeProto, declared: TypeProto) -> TypeProto:
    """The type, with the numbers that only a declared one of its rank has for extents."""
    own, others = type_.tensor_type.shape.dim, declared.tensor_type.shape.dim
    for dim, other in zip(own, others, strict=False) if len(own) == len(others) else ():
        if other.HasField("dim_value") and not dim.HasField("dim_value"):
            dim.CopyFrom(other)
    return type_


def _of_rank(type_: TypeProto) -> TypeProto:
    """The type of tensors of any extents; that of a sequence is itself."""
    tensor = type_.tensor_type
    if not type_.HasField("tensor_type"):
        return type_
    return helper.make_tensor_type_proto(tensor.elem_type, [None] * len(tensor.shape.dim))


def _have_ranks(found: Types | None) -> bool:
    return found is not None and all(
        type_.tensor_type.HasField("shape") for type_ in found.values()
    )


def _number_and_truth(body: GraphProto) -> dict[str, TypeProto]:
    kinds = (TensorProto.INT64, TensorProto.BOOL)
    names = (value.name for value in body.input[:2])
    return {
        name: helper.make_tensor_type_proto(kind, [])
        for name, kind in zip(names, kinds, strict=True)
    }


def _inferred(
    nodes: Sequence[NodeProto],
    types: Types,
    outputs: Sequence[str],
    model: ModelProto,
    constants: Sequence[TensorProto] = (),
) -> dict[str, TypeProto] | None:
    """The types of what nodes compute of `constants` and of values of `types`, by ONNX's shape
    inference."""
    made = {name for each in nodes for name in each.output} | {each.name for each in constants}
    inputs = [helper.make_value_info(name, type_) for name, type_ in types.items()]
    graph = helper.make_graph(
        nodes, "part", [each for each in inputs if each.name not in made],
        [ValueInfoProto(name=name) for name in outputs], constants,
    )  # fmt: skip
    alone = helper.make_model(graph, opset_imports=model.opset_import, functions=model.functions)
    alone.ir_version = model.ir_version
    try:
        found = inferred(alone).graph.output
    except InferenceFailed:
        return None
    return {value.name: value.type for value in found}
