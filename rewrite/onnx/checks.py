"""Checks around a model: opsets, declared outputs, nodes against ONNX's schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    OperatorSetIdProto,
    ValueInfoProto,
    checker,
    defs,
)

from satura.rewrite.errors import ModelError, ProgramError, UnsupportedError
from satura.rewrite.onnx.opsets import defining
from satura.rewrite.onnx.order import label
from satura.rewrite.onnx.types import dtype_of, element_name
from satura.rewrite.onnx.words import refuse_other_words
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import MOST_AXES, TensorType

OLDEST_OPSET = 7
MOST_ELEMENTS = 2**36  # of f32 256 GiB; and what they take in bytes is far from 64 bits
LARGEST_VERSION = 2**31 - 1


def opset_versions(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain.

    Raises UnsupportedError for a version of ONNX's own ops that is not known, ModelError for a
    number that is not a version, and for two versions of a domain.
    """
    versions: dict[str, int] = {}
    for entry in imports:
        if not 0 <= entry.version <= LARGEST_VERSION:
            raise ModelError(f"{entry.version} is not a version of domain '{entry.domain}'")
        if versions.setdefault(entry.domain, entry.version) != entry.version:
            raise ModelError(
                f"versions {versions[entry.domain]} and {entry.version} of domain '{entry.domain}'"
                " are imported: keep one"
            )
    newest = defs.onnx_opset_version()
    if "" in versions and not OLDEST_OPSET <= versions[""] <= newest:
        raise UnsupportedError(
            f"opset {versions['']} is not supported: {OLDEST_OPSET} to {newest} are read, and older"
            " ones where the onnx package converts them; convert the model with"
            " onnx.version_converter or install another onnx"
        )
    return versions


def checked_opset(node: NodeProto, domain: str, opsets: Mapping[str, int], ir_version: int) -> int:
    """The opset that the node's op is read in; errors for unknown domains, ops and attributes."""
    known = {schema.domain for schema in defs.get_all_schemas()} if domain else {""}
    if domain not in opsets or domain not in known:
        raise UnsupportedError(
            f"{label(node)}: nothing is known about '{node.op_type}' of the domain"
            f" '{node.domain}'; export the model with standard ops, with a function that defines"
            " this one, or declare it: satura.ops"
        )
    version = opsets[domain] if domain else defining(node.op_type, opsets[domain])
    try:
        schema = defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        raise ModelError(
            f"{label(node)}: there is no op '{node.op_type}' in opset {version}"
            + (f" of domain '{domain}'" if domain else "")
        ) from None
    if not domain:
        refuse_other_words(node)
    if schema.deprecated:
        return version  # the checker refuses it, though models use it
    _check_kinds(node, schema)
    context = checker.C.CheckerContext()
    context.ir_version = max(3, ir_version)
    context.opset_imports = {**opsets, domain: version}
    try:
        checker.check_node(_without_insides(node), context)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "it is not valid")
        raise ModelError(f"{label(node)}: {reason.strip()}") from None
    return version


def _without_insides(node: NodeProto) -> NodeProto:
    """The node with empty graphs inside: the checker would ask for the names around it."""
    if not any(attribute.HasField("g") for attribute in node.attribute):
        return node
    result = NodeProto()
    result.CopyFrom(node)
    for attribute in result.attribute:
        if attribute.HasField("g"):
            attribute.g.CopyFrom(GraphProto(name="inside"))
    return result


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


def declared_names(values: Iterable[ValueInfoProto], program: Program) -> dict[Dim, str]:
    """What a model calls the extents of its inputs and outputs that are computed from sizes.

    A name that it has for several of them, or for a size, is none of theirs.
    """
    types = {program.nodes[at].input_name: program.nodes[at].type for at in program.inputs}
    types |= {name: program.nodes[at].type for name, at in program.outputs}
    meant: dict[str, set[Dim]] = {}
    for value in values:
        declared = value.type.tensor_type.shape.dim
        found = types[value.name].shape if value.name in types else ()
        for dim, extent in zip(declared, found, strict=False):
            if dim.dim_param and not dim.dim_param.startswith("unk__"):  # ONNX's own
                meant.setdefault(dim.dim_param, set()).add(extent)
    names: dict[Dim, str] = {}
    for name, dims in meant.items():
        (dim, *others) = dims
        is_computed = isinstance(dim, SymbolicDim) and dim.name is None
        if is_computed and not others and name not in program.symbols:
            names.setdefault(dim, name)
    return names


def _describe(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    dims = [
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    ]
    shown = ", ".join(dims) if tensor.HasField("shape") else "..."
    return f"{element_name(tensor.elem_type)}[{shown}]"


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
    if elements > MOST_ELEMENTS:
        raise ProgramError(f"{type_} would have {elements} elements, more than any memory holds")


def check_given(what: str, type_: TensorType) -> None:
    """As `check_size` of what a model is given; raises ModelError that names it."""
    try:
        check_size(type_)
    except ProgramError as error:
        raise ModelError(f"{what}: {error}") from None
