"""ONNX nodes in other opsets: whether they mean the same there, and what they look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, defs, helper

from satura.rewrite.onnx.order import inner_graphs
from satura.rewrite.types.constant import Constant

_CHANGED = {"GroupNormalization", "RoiAlign", "Upsample"}
"""Ops that other opsets give another meaning under the same names."""
_NEW_TEXTS = {("GridSample", b"bilinear"): b"linear", ("GridSample", b"bicubic"): b"cubic"}
"""What texts of attributes are called since some opset, by op; the loader knows both."""
_COUNT = "num_outputs"
_ROUNDED = {f"tensor({each})" for each in ("float16", "bfloat16")}
"""Element types of which nodes round once."""
_F8 = {f"tensor(float8{each})" for each in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
_RESHAPES_F8 = 21  # the opset since which onnxruntime does
_EARLY = {"LayerNormalization": 17, "ThresholdedRelu": 10}
"""Ops that onnxruntime has in older opsets, too, where its tools write them."""


def defining(op_type: str, opset: int) -> int:
    """The opset whose definition one of ONNX's own ops has in another: that one, or a later one
    where the op came later than in onnxruntime."""
    return max(opset, _EARLY.get(op_type, opset))


@lru_cache(maxsize=4096)
def means_the_same(op_type: str, old: int, new: int, domain: str = "") -> bool:
    """Whether a node of one opset is one of another: all its inputs and attributes are there, or
    lists that were attributes are inputs."""
    if not domain:
        old, new = defining(op_type, old), defining(op_type, new)
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


class Bodies(Protocol):
    """The part of onnx.defs.OpSchema that its type stubs leave out."""

    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int) -> bytes: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, input_types: Sequence[bytes]
    ) -> bytes: ...


@lru_cache(maxsize=4096)
def has_steps(op_type: str, opset: int) -> bool:
    """Whether an opset defines an op of its own by others."""
    if not defs.has(op_type, opset, ""):
        return False
    schema = cast(Bodies, defs.get_schema(op_type, opset, ""))
    return any((schema.function_opset_versions, schema.context_dependent_function_opset_versions))


@lru_cache(maxsize=4096)
def is_replaced(op_type: str, opset: int) -> bool:
    """Whether a runtime may put others in place of an op: its definition has them, and they are in
    this opset what they are in that which it was written for."""
    schema = cast(Bodies, defs.get_schema(op_type, opset, ""))
    written = max((x for x in schema.function_opset_versions if x <= opset), default=None)
    if written is None:
        return False
    body = FunctionProto.FromString(schema.get_function_with_opset_version(written))
    return all(_since(each.op_type, written) == _since(each.op_type, opset) for each in body.node)


def _since(op_type: str, opset: int) -> int:
    """The opset in which an op of ONNX's own came to be what it is in this one."""
    return defs.get_schema(op_type, opset, "").since_version


def is_standard(domain: str) -> bool:
    """Whether a domain is that of ONNX's own ops, by the one name that it has in models here."""
    return not domain


@dataclass(frozen=True)
class Operand:
    """What a schema says of an input or a result: its type variable or type, and the element types
    that it may have. Those of a variadic one may differ where it is not `is_alike`."""

    variable: str
    types: frozenset[str]
    is_alike: bool


@lru_cache(maxsize=4096)
def _operands(op_type: str, opset: int, is_result: bool) -> tuple[tuple[Operand, ...], bool]:
    """The inputs or the results of an op, and whether the last stands for any number of them."""
    schema = defs.get_schema(op_type, opset, "")
    every = schema.outputs if is_result else schema.inputs
    found = tuple(Operand(x.type_str, frozenset(x.types), x.is_homogeneous) for x in every)
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    return found, bool(every) and every[-1].option == variadic


Named = list[tuple[str, Operand]]


def operands_of(node: NodeProto, opset: int) -> tuple[Named, Named]:
    """The tensors that a node reads, and those that it computes, with what an opset says of them:
    nothing of other domains and of ops that it has not."""
    if not is_standard(node.domain) or not defs.has(node.op_type, opset, ""):
        return [], []
    return _named(node, opset, False), _named(node, opset, True)


def _named(node: NodeProto, opset: int, is_result: bool) -> Named:
    names = node.output if is_result else node.input
    operands, is_variadic = _operands(node.op_type, opset, is_result)
    if is_variadic:
        operands += operands[-1:] * (len(names) - len(operands))
    return [pair for pair in zip(names, operands, strict=False) if pair[0]]


def is_one_of(node: NodeProto, old: int, new: int, types: Callable[[str], Set[str]]) -> bool:
    """Whether a node of the newer opset is one of the older: no input, attribute, text or element
    type of its tensors, which `types` has by their names, came in between.

    One of f16 is not where the older replaces it by others: a runtime may round each of these, so
    that what is between them overflows. Nor is a Reshape of f8, which onnxruntime lacks in opsets
    that have it.
    """
    if not is_standard(node.domain):
        return True
    if not all(is_one_of(x, old, new, types) for graph in inner_graphs(node) for x in graph.node):
        return False
    if not means_the_same(node.op_type, old, new):
        return False
    is_rounded = any(_ROUNDED & types(name) for name in node.output if name)
    if is_rounded and is_replaced(node.op_type, old) and not is_replaced(node.op_type, new):
        return False
    if node.op_type == "Reshape" and old < _RESHAPES_F8 and _F8 & types(node.input[0]):
        return False
    one, two = (defs.get_schema(node.op_type, opset, "") for opset in (old, new))
    if one.since_version == two.since_version:
        return True
    _, is_variadic = _operands(node.op_type, old, False)
    pairs = [
        pair
        for each in zip(operands_of(node, old), operands_of(node, new), strict=True)
        for pair in zip(*each, strict=False)
    ]
    return (
        not any((newer.types - older.types) & types(name) for (_, older), (name, newer) in pairs)
        and (is_variadic or len(node.input) <= len(one.inputs))
        and all(
            each.name in one.attributes and each.s == one.attributes[each.name].default_value.s
            for each in node.attribute
        )
    )


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
