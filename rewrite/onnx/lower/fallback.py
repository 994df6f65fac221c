"""Ops without a lowering: as function bodies where ONNX defines one, else on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
)

from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.onnx.cut import RANDOM, OpenExtents, with_open_sizes
from satura.rewrite.onnx.inferred import InferenceFailed, inferred
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.opsets import Bodies, is_standard
from satura.rewrite.onnx.types import (
    ELEMENT_CODES,
    DataExtentError,
    dim_param,
    tensor_type,
    type_proto,
)
from satura.rewrite.program.host_call import check, run
from satura.rewrite.program.known_arrays import MOST_BYTES, known_arrays
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.dims import Dim, SymbolicDim, product
from satura.rewrite.types.tensor_type import Array, TensorType

_SHAPES = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""By op the operand that has a number for each axis of the result."""
_ALIKE = {"Expand": 0, "MaxUnpool": 0, "Compress": 0}
"""By op an operand of the same element type that has as many axes as the result, or fewer."""
NEW_NAMES = {"Scatter": ("ScatterElements", 11)}


def with_new_name(node: Context) -> Context:
    """A node whose op has another name since some opset, as one of that opset."""
    if not is_standard(node.proto.domain) or node.proto.op_type not in NEW_NAMES:
        return node
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, opset = NEW_NAMES[proto.op_type]
    return replace(node, proto=proto, opset=opset)


def function_body(node: Context, domain: str) -> FunctionProto | None:
    """The body that ONNX defines for the op at this opset, or None."""
    schema = cast(Bodies, defs.get_schema(node.proto.op_type, node.opset, domain))
    plain = [v for v in schema.function_opset_versions if v <= node.opset]
    if plain:
        return _function(schema.get_function_with_opset_version(max(plain)))
    dependent = [v for v in schema.context_dependent_function_opset_versions if v <= node.opset]
    if not dependent:
        return None
    types = [
        b"" if x is None else type_proto(node.build.type(x)).SerializeToString()
        for x in node.operands
    ]
    body = schema.get_context_dependent_function_with_opset_version(
        max(dependent), node.proto.SerializeToString(), types
    )
    return _function(body) if body else None


def _function(content: bytes) -> FunctionProto:
    function = FunctionProto()
    function.ParseFromString(content)
    return function


def with_defaults(node: NodeProto, opset: int, domain: str) -> NodeProto:
    """`node` with the attributes that it leaves out at their defaults, for its function body."""
    result = NodeProto()
    result.CopyFrom(node)
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in sorted(defs.get_schema(node.op_type, opset, domain).attributes.items()):
        if name not in given and attribute.default_value.name:
            result.attribute.append(attribute.default_value)
    return result


def host(
    node: Context, domain: str, salt: int, declared: Mapping[str, TypeProto]
) -> tuple[list[int], HostCall | None]:
    """The results of a host call, and the call; none where the results are constants.

    Raises UnsupportedError where ranks or extents of the results depend on data, and are not
    among the `declared` types.
    """
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.name = proto.doc_string = ""
    del proto.input[:], proto.output[:]
    proto.input.extend("" if x is None else f"i{at}" for at, x in enumerate(node.operands))
    proto.output.extend(f"o{at}" if wanted else "" for at, wanted in enumerate(node.wanted))
    refused: OpenExtents | None = None
    try:
        outputs = tuple(_result_types(node, proto, domain, declared))
    except OpenExtents as error:
        refused, outputs = error, tuple(error.types.values())
    is_random = node.proto.op_type in RANDOM
    call = HostCall(
        node.proto.op_type, domain, node.opset, proto.SerializeToString(deterministic=True),
        outputs, salt if is_random else 0,
    )  # fmt: skip
    build = node.build
    given = [x for x in node.operands if x is not None]
    known = None if is_random else _of_constants(node, call, given)
    if known is not None:
        results = iter([build.constant(each) for each in known])
        return [next(results) if wanted else -1 for wanted in node.wanted], None
    if refused is not None:
        raise refused
    try:
        check(call)
    except UnsupportedError as error:
        raise node.unsupported(str(error)) from None
    first = build.host(given, call)
    results = iter([first, *(build.item(first, at) for at in range(1, len(outputs)))])
    return [next(results) if wanted else -1 for wanted in node.wanted], call


def _of_constants(node: Context, call: HostCall, given: Sequence[int]) -> list[Array] | None:
    """The results of a call of constants alone; None where it fails, as it may in a call."""
    extents = [product(type_.shape) for type_ in call.outputs]
    sizes = [size * 8 for size in extents if isinstance(size, int)]
    arrays = known_arrays(node.build.nodes, given) if sum(sizes) <= MOST_BYTES else None
    if arrays is None:
        return None
    try:
        check(call)
        return [*run(call, arrays)]
    except (CallError, UnsupportedError):
        return None


def _result_types(
    node: Context, proto: NodeProto, domain: str, declared: Mapping[str, TypeProto]
) -> list[TensorType]:
    """Types of the named results by ONNX's shape inference on this node alone, or as declared."""
    build = node.build
    named: dict[str, Dim] = {}
    inputs, constants = [], []
    for name, x in zip(proto.input, node.operands, strict=True):
        if x is None:
            continue
        named |= {dim_param(dim): dim for dim in build.shape(x) if isinstance(dim, SymbolicDim)}
        inputs.append(helper.make_value_info(name, type_proto(build.type(x))))
        known = node.values.of(x)
        if known is not None and not any(isinstance(v, SymbolicDim) for v in known.ravel()):
            array = np.array(known.tolist(), build.dtype(x).numpy).reshape(known.shape)
            constants.append(numpy_helper.from_array(array, name))
    graph = helper.make_graph(
        [proto], "host", inputs, [ValueInfoProto(name=name) for name in proto.output if name],
        constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, node.opset)])
    try:
        outputs = inferred(model, strict=True).graph.output
        names = [name for name in node.proto.output if name]
        found = {
            name: _of_known_rank(node, output.type, declared.get(name))
            for name, output in zip(names, outputs, strict=True)
        }
        return [_type_of(type_, declared.get(name), named) for name, type_ in found.items()]
    except InferenceFailed as error:
        raise node.wrong(f"its types do not fit: {error}") from None
    except UnsupportedError as error:
        is_open = all(type_.tensor_type.HasField("shape") for type_ in found.values())
        if isinstance(error, DataExtentError) and is_open:
            opened = {name: with_open_sizes(name, type_, named) for name, type_ in found.items()}
            raise OpenExtents(str(node.unsupported(str(error))), opened) from None
        raise node.unsupported(
            f"it has no lowering, and the type of its result is not known: {error}"
        ) from None


def _of_known_rank(node: Context, found: TypeProto, declared: TypeProto | None) -> TypeProto:
    """The type that is inferred, or where its rank is not, the declared one, or else of as many
    axes as operands say."""
    if found.tensor_type.HasField("shape"):
        return found
    if declared is not None and declared.tensor_type.HasField("shape"):
        return declared
    rank = _rank(node)
    if rank is None:
        return found
    code = found.tensor_type.elem_type or ELEMENT_CODES[node.build.dtype(node[0])]
    return helper.make_tensor_type_proto(code, [None] * rank)


def _rank(node: Context) -> int | None:
    """The number of axes of a result as operands say it."""
    op_type, build = node.proto.op_type, node.build
    if op_type == "Compress" and not any(each.name == "axis" for each in node.proto.attribute):
        return 1
    counts: list[Dim] = []
    if op_type in _SHAPES:
        counts.append(build.shape(node[_SHAPES[op_type]])[0])
    if op_type in _ALIKE:
        counts.append(build.rank(node[_ALIKE[op_type]]))
    known = [count for count in counts if isinstance(count, int)]
    return max(known) if known and len(known) == len(counts) else None


def _type_of(found: TypeProto, declared: TypeProto | None, named: Mapping[str, Dim]) -> TensorType:
    try:
        return tensor_type(found, named)
    except UnsupportedError:
        if declared is None or not declared.tensor_type.HasField("shape"):
            raise
        return tensor_type(declared, named)


def with_attributes(
    node: NodeProto, attributes: Mapping[str, AttributeProto], absent: set[str]
) -> NodeProto:
    """A function's node with attribute references resolved and left-out inputs emptied."""
    result = NodeProto()
    result.CopyFrom(node)
    del result.attribute[:], result.input[:]
    result.input.extend("" if name in absent else name for name in node.input)
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            found = attributes.get(attribute.ref_attr_name)
            if found is None:
                continue
            copy = result.attribute.add()
            copy.CopyFrom(found)
            copy.name = attribute.name
            continue
        copy = result.attribute.add()
        copy.CopyFrom(attribute)
        for graph in [copy.g] if copy.HasField("g") else copy.graphs:
            inner = [with_attributes(child, attributes, absent) for child in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
    return result
