"""Checks around a model: opsets, declared inputs and outputs, nodes against ONNX's schemas."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    OperatorSetIdProto,
    TypeProto,
    ValueInfoProto,
    checker,
    defs,
)

from satura.rewrite.errors import ModelError, ProgramError, UnsupportedError
from satura.rewrite.onnx.order import label
from satura.rewrite.onnx.types import dtype_of, element_name
from satura.rewrite.types.dims import Dim, SymbolicDim, symbol
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import MOST_AXES, DType, TensorType

OLDEST_OPSET = 7
_MOST_ELEMENTS = 2**36
_LONGEST_DIM = 100
LARGEST_VERSION = 2**31 - 1


def opset_versions(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain.

    Raises UnsupportedError for a version of ONNX's own ops that is not known, ModelError for a
    number that is not a version.
    """
    versions: dict[str, int] = {}
    for entry in imports:
        if not 0 <= entry.version <= LARGEST_VERSION:
            raise ModelError(f"{entry.version} is not a version of domain '{entry.domain}'")
        versions["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
    newest = defs.onnx_opset_version()
    if "" in versions and not OLDEST_OPSET <= versions[""] <= newest:
        raise UnsupportedError(
            f"opset {versions['']} is not supported: this version reads {OLDEST_OPSET} to {newest};"
            " convert the model with onnx.version_converter or install another onnx"
        )
    return versions


def check_node(node: NodeProto, domain: str, opsets: Mapping[str, int], ir_version: int) -> int:
    """The opset that the node's op is read in; errors for unknown domains, ops and attributes."""
    known = {schema.domain for schema in defs.get_all_schemas()} if domain else {""}
    if domain not in opsets or domain not in known:
        raise UnsupportedError(
            f"{label(node)}: nothing is known about the domain '{node.domain}'; export the model"
            " with standard ops, with a function that defines this one, or declare it: satura.ops"
        )
    version = opsets[domain]
    try:
        schema = defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        raise ModelError(
            f"{label(node)}: there is no op '{node.op_type}' in opset {version}"
            + (f" of domain '{domain}'" if domain else "")
        ) from None
    if schema.deprecated:
        return version  # the checker refuses it, though models use it
    _check_kinds(node, schema)
    if any(attribute.HasField("g") for attribute in node.attribute):
        return version  # the checker would ask for the names around the node
    context = checker.C.CheckerContext()
    context.ir_version = max(3, ir_version)
    context.opset_imports = dict(opsets)
    try:
        checker.check_node(node, context)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "it is not valid")
        raise ModelError(f"{label(node)}: {reason.strip()}") from None
    return version


def _check_kinds(node: NodeProto, schema: defs.OpSchema) -> None:
    """Raise ModelError where an attribute is an int, say, though the op takes several."""
    for attribute in node.attribute:
        if attribute.name in schema.attributes and attribute.type:
            _, _, wanted = str(schema.attributes[attribute.name].type).rpartition(".")
            kind = AttributeProto.AttributeType.Name(attribute.type)
            if kind != wanted:
                raise ModelError(
                    f"{label(node)}: attribute '{attribute.name}' must be of kind"
                    f" {wanted.lower()}, not {kind.lower()}"
                )


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
    kinds, type_ = _unpacked(value.type)
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
            if dim.dim_value < 0:
                raise ModelError(f"input '{value.name}': axis {axis} has extent {dim.dim_value}")
            dims.append(dim.dim_value)
        elif dim.dim_param:
            dims.append(_named_dim(dim.dim_param, taken))
        else:
            dims.append(_new_size(f"{value.name}_{axis}", taken))
    try:
        return TensorType(dtype_of(tensor.elem_type), tuple(dims))
    except UnsupportedError as error:
        raise UnsupportedError(f"input '{value.name}': {error}") from None


def _unpacked(type_: TypeProto) -> tuple[list[str], TypeProto]:
    """What a type is, what that is of, and so on, and the innermost type."""
    kinds = [type_.WhichOneof("value") or "unknown"]
    while kinds[-1] in ("optional_type", "sequence_type"):
        type_ = getattr(type_, kinds[-1]).elem_type
        kinds.append(type_.WhichOneof("value") or "unknown")
    return kinds, type_


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


def check_declared_type(output: ValueInfoProto, found: TensorType) -> None:
    """Compare an output's declared type with what its nodes compute."""
    if output.type.WhichOneof("value") != "tensor_type":
        return
    declared = output.type.tensor_type
    try:
        fits = declared.elem_type == 0 or dtype_of(declared.elem_type) is found.dtype
    except UnsupportedError as error:
        raise UnsupportedError(f"output '{output.name}': {error}") from None
    if declared.HasField("shape"):
        dims = declared.shape.dim
        fits = fits and len(dims) == found.rank
        for dim, extent in zip(dims, found.shape, strict=False):
            if dim.WhichOneof("value") == "dim_value" and isinstance(extent, int):
                fits = fits and dim.dim_value == extent
    if not fits:
        raise ModelError(
            f"output '{output.name}' is declared as {_describe(output)}, but computed is {found}"
        )


def _describe(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    return f"{element_name(tensor.elem_type)}[{', '.join(dims)}]"


def check_size(type_: TensorType) -> None:
    """Raise ProgramError for a tensor that no memory holds, or of too many axes.

    An extent that is negative at some sizes is refused there, and one that always is here.
    """
    if any(isinstance(dim, int) and dim < 0 for dim in type_.shape):
        raise ProgramError(f"{type_} has a negative extent")
    if type_.rank > MOST_AXES:
        raise ProgramError(f"{type_.rank} axes; {MOST_AXES} are supported")
    # Also of a tensor without elements: the product of all extents but 0 must have a place.
    elements = prod(dim for dim in type_.shape if isinstance(dim, int) and dim)
    if elements > _MOST_ELEMENTS:
        raise ProgramError(f"{type_} would have {elements} elements, more than any memory holds")
