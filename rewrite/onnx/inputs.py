"""Types of a model's inputs, as it declares them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.types import dtype_of, type_proto, unpacked
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import MOST_AXES, DType, TensorType

# Characters: arithmetic of exporters is shorter, and what is so short is not nested too deep.
_LONGEST_DIM = 100
_MOST_STATED = 8  # extents that are worth a try


def input_types(graph: GraphProto, constants: Mapping[str, object]) -> dict[str, TensorType]:
    """Types of the inputs that are not constants; unnamed open axes get names of their own."""
    taken = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
    types: dict[str, TensorType] = {}
    for value in graph.input:
        if value.name in constants:
            continue
        if value.name in types:
            raise ModelError(f"two inputs are called '{value.name}'")
        types[value.name] = _input_type(value, taken)
    return types


def declared_inputs(graph: GraphProto) -> dict[str, TensorType]:
    """Types of the inputs that have no initializer, by name in call order."""
    return input_types(graph, {tensor.name: tensor for tensor in graph.initializer})


def with_named_sizes(model: ModelApart) -> ModelApart:
    """The model where open axes of inputs have the names that `declared_inputs` gives them; it is
    itself where all have names."""
    tensors = {
        name: type_proto(type_)
        for name, type_ in declared_inputs(model.proto.graph).items()
        if not isinstance(type_, SequenceType)
    }
    inputs = model.proto.graph.input
    if all(value.type == tensors.get(value.name, value.type) for value in inputs):
        return model
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for value in proto.graph.input:
        value.type.CopyFrom(tensors.get(value.name, value.type))
    return replace(model, proto=proto)


def _named_dim(text: str, names: set[str]) -> Dim:
    """The size called `text`, or its value where it is arithmetic on sizes of other axes."""
    if len(text) > _LONGEST_DIM:
        return symbol(text)
    try:
        found = _arithmetic(ast.parse(text, mode="eval").body, names - {text})
    except (SyntaxError, ValueError):
        return symbol(text)
    return found if isinstance(found, SymbolicDim) else symbol(text)  # "5" is a name as any other


def _arithmetic(tree: ast.expr, names: set[str]) -> Dim:
    """Sums and products of ints and `names`, as torch.export writes them, say `2*seq + 1`."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in names:
        return symbol(tree.id)
    if isinstance(tree, ast.BinOp):
        left, right = _arithmetic(tree.left, names), _arithmetic(tree.right, names)
        if isinstance(tree.op, ast.Add):
            return left + right
        if isinstance(tree.op, ast.Sub):
            return left - right
        if isinstance(tree.op, ast.Mult):
            return left * right
    raise ValueError("not arithmetic on known sizes")


def _input_type(value: ValueInfoProto, taken: set[str]) -> TensorType:
    kinds, type_ = unpacked(value.type)
    if kinds[-1] != "tensor_type":
        raise UnsupportedError(
            f"input '{value.name}' is of kind {kinds[-1]}; only tensors are supported, and"
            " optionals and sequences of them"
        )
    tensor = type_.tensor_type
    if kinds[:-1]:
        return _sequence_type(value.name, kinds, tensor, taken)
    if not tensor.HasField("shape"):
        raise UnsupportedError(f"input '{value.name}' has no rank; declare its shape")
    if len(tensor.shape.dim) > MOST_AXES:
        rank = len(tensor.shape.dim)
        raise UnsupportedError(f"input '{value.name}' has {rank} axes; {MOST_AXES} are supported")
    dims: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.WhichOneof("value") == "dim_value":
            dims.append(dim.dim_value)
        elif dim.dim_param:
            dims.append(_named_dim(dim.dim_param, taken))
        else:
            dims.append(_new_size(f"{value.name}_{axis}", taken))
    try:
        return TensorType(dtype_of(tensor.elem_type), tuple(dims))
    except UnsupportedError as error:
        raise UnsupportedError(f"input '{value.name}': {error}") from None


def _sequence_type(
    name: str, kinds: Sequence[str], tensor: TypeProto.Tensor, taken: set[str]
) -> SequenceType:
    outer = kinds[:-1]
    if outer not in (["optional_type"], ["sequence_type"], ["optional_type", "sequence_type"]):
        raise UnsupportedError(f"input '{name}': {' of '.join(kinds)} is not supported")
    dims = None
    if tensor.HasField("shape"):
        dims = tuple(x.dim_value if x.HasField("dim_value") else None for x in tensor.shape.dim)
    count = _new_size(f"{name}_0", taken)
    element = dtype_of(tensor.elem_type)
    is_list = "sequence_type" in outer
    return SequenceType(DType.I64, (count,), element, dims, "optional_type" in outer, is_list)


def _new_size(name: str, taken: set[str]) -> Dim:
    """A size that nothing else has, called `name` or nearly so."""
    while name in taken:
        name += "_"
    taken.add(name)
    return symbol(name)


def stated_extents(graph: GraphProto) -> list[int]:
    """Numbers that are extents of the graph's inputs and constants, the first ones of them."""
    shapes = [each.type.tensor_type.shape.dim for each in graph.input]
    stated = [dim.dim_value for dims in shapes for dim in dims if dim.dim_value > 0]
    numbers = (*stated, *(dim for each in graph.initializer for dim in each.dims if dim > 0))
    return [*dict.fromkeys(numbers)][:_MOST_STATED]
