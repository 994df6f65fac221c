"""ONNX nodes in other opsets: whether they mean the same there, and what they look like."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from math import inf

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, defs, helper

from satura.rewrite.onnx.order import inner_graphs
from satura.rewrite.types.constant import Constant

_CHANGED = {"GroupNormalization", "RoiAlign", "Upsample"}
"""Ops that other opsets give another meaning under the same names."""
_NEW_TEXTS = {("GridSample", b"bilinear"): b"linear", ("GridSample", b"bicubic"): b"cubic"}
"""What texts of attributes are called since some opset, by op; the loader knows both."""
_COUNT = "num_outputs"
_CODES = ("to", "dtype", "output_dtype")  # attributes that name element types


@lru_cache(maxsize=4096)
def means_the_same(op_type: str, old: int, new: int, domain: str = "") -> bool:
    """Whether a node of one opset is one of another: all its inputs and attributes are there, or
    lists that were attributes are inputs."""
    if not all(defs.has(op_type, opset, domain) for opset in (old, new)):
        return old == new
    one, two = (defs.get_schema(op_type, opset, domain) for opset in (old, new))
    if one.since_version == two.since_version:
        return True
    places = {x.name: at for at, x in enumerate(two.inputs)}
    return (
        op_type not in _CHANGED
        and not two.deprecated
        and len(one.inputs) <= len(two.inputs)
        and all(places.get(x.name, at) == at for at, x in enumerate(one.inputs))
        and all(
            _default(two.attributes[name], op_type) == _default(each, op_type)
            if name in two.attributes
            else name in {x.name for x in two.inputs} and each.type == each.type.INTS
            for name, each in one.attributes.items()
        )
    )


def is_standard(domain: str) -> bool:
    """Whether a domain is that of ONNX's own ops, which has two names."""
    return domain in ("", "ai.onnx")


def is_one_of(node: NodeProto, old: int, new: int, types: Set[str]) -> bool:
    """Whether a node of the newer opset is one of the older: no input, attribute, text or one of
    the element types that are in use came in between."""
    if not is_standard(node.domain):
        return True
    types = types | _types_named(node)
    if not all(is_one_of(x, old, new, types) for graph in inner_graphs(node) for x in graph.node):
        return False
    if not means_the_same(node.op_type, old, new):
        return False
    one, two = (defs.get_schema(node.op_type, opset, "") for opset in (old, new))
    if one.since_version == two.since_version:
        return True
    return (
        not (_types(two) - _types(one)) & types
        and len(node.input) <= _most_inputs(one)
        and all(
            each.name in one.attributes and each.s == one.attributes[each.name].default_value.s
            for each in node.attribute
        )
    )


def _types_named(node: NodeProto) -> set[str]:
    """The element types that attributes of a node name, or graphs inside it declare."""
    codes = [each.i for each in node.attribute if each.name in _CODES]
    codes += [each.t.data_type for each in node.attribute if each.HasField("t")]
    for graph in inner_graphs(node):
        codes += [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
        codes += [tensor.data_type for tensor in graph.initializer]
    return {f"tensor({TensorProto.DataType.Name(code).lower()})" for code in codes}


def _most_inputs(schema: defs.OpSchema) -> float:
    is_variadic = any(x.option == x.option.Variadic for x in schema.inputs[-1:])
    return inf if is_variadic else len(schema.inputs)


def _types(schema: defs.OpSchema) -> set[str]:
    """The element types that a node may have to do with: some inputs have a type of their own."""
    own = {each.type_str for each in (*schema.inputs, *schema.outputs)}
    return own.union(*(each.allowed_type_strs for each in schema.type_constraints))


def translated(node: NodeProto, opset: int) -> tuple[list[AttributeProto], dict[int, Constant]]:
    """A node's attributes as an opset has them in which it means the same, and by their positions
    those that are inputs there."""
    inputs: list[str] = []
    has_count = False
    if is_standard(node.domain) and defs.has(node.op_type, opset, ""):
        schema = defs.get_schema(node.op_type, opset, "")
        inputs = [each.name for each in schema.inputs]
        has_count = _COUNT in schema.attributes
    attributes, operands = [], {}
    for attribute in node.attribute:
        if attribute.name in inputs:  # as the axes of reductions
            value = np.array(helper.get_attribute_value(attribute), np.int64)
            operands[inputs.index(attribute.name)] = Constant(value)
        else:
            attributes.append(_renamed(node.op_type, attribute))
    has_sizes = operands or any(node.input[1:]) or any(x.name == _COUNT for x in attributes)
    if has_count and not has_sizes:  # older opsets count a Split's outputs
        attributes.append(helper.make_attribute(_COUNT, len(node.output)))
    return attributes, operands


def _renamed(op_type: str, attribute: AttributeProto) -> AttributeProto:
    """The attribute with its text as newer opsets have it."""
    result = AttributeProto()
    result.CopyFrom(attribute)
    if attribute.s:
        result.s = _NEW_TEXTS.get((op_type, attribute.s), attribute.s)
    return result


def _default(attribute: defs.OpSchema.Attribute, op_type: str) -> object:
    text = attribute.default_value.s
    return _NEW_TEXTS.get((op_type, text), text) or attribute.default_value
