"""Which ONNX ops are native, which go through a function body, the host, or not at all."""

from __future__ import annotations

from onnx import defs

from satura.rewrite.onnx.load import LOWERINGS

WAYS = {
    "native": "Lowered to canonical ops",
    "body": "Lowered through the body that ONNX defines",
    "host": "Run by the onnx package's reference implementation, with a warning, where the shape of "
    "the result does not depend on data",
    "unsupported": "Refused with an error that names the node",
}
NEWEST_LISTED = 23  # newer onnx packages know more ops; the page must not depend on which it is


def coverage() -> dict[str, list[str]]:
    """Ops of ONNX's own domain by the way they take, each list sorted by name."""
    schemas: dict[str, defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST_LISTED:
            older = schemas.get(schema.name)
            if older is None or older.since_version < schema.since_version:
                schemas[schema.name] = schema
    ways: dict[str, list[str]] = {way: [] for way in WAYS}
    for name in sorted(schemas):
        ways[_way(schemas[name])].append(name)
    return ways


def _way(schema: defs.OpSchema) -> str:
    if schema.name in LOWERINGS:
        return "native"
    if schema.deprecated or not all(map(_takes_tensors, [*schema.inputs, *schema.outputs])):
        return "unsupported"
    if any(a.type == defs.OpSchema.AttrType.GRAPH for a in schema.attributes.values()):
        return "unsupported"
    if schema.has_function or schema.has_context_dependent_function:
        return "body"
    return "host"


def _takes_tensors(parameter: defs.OpSchema.FormalParameter) -> bool:
    """Whether numbers fit: sequences, optionals and strings are no tensors of a program."""
    return any(text.startswith("tensor(") and text != "tensor(string)" for text in parameter.types)
