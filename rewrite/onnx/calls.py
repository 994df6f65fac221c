"""Nodes of a model beside what they were lowered to, so that a saved model may have them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, NodeProto, defs, helper

from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import SymbolicDim

_CHANGED = {"GroupNormalization", "RoiAlign", "Upsample"}
"""Ops that other opsets give another meaning under the same names."""
_NEW_TEXTS = {("GridSample", b"bilinear"): b"linear", ("GridSample", b"bicubic"): b"cubic"}
"""What texts of attributes are called since some opset, by op; the loader knows both."""


@dataclass(frozen=True)
class Call:
    """An ONNX node: it computes nodes of a program from others and from constants.

    A result is None that no output of the program needs.
    """

    host: HostCall
    operands: tuple[int | Constant, ...]
    results: tuple[int | None, ...]


def calls_of(
    lowered: Iterable[tuple[Context, Sequence[int]]], places: Mapping[int, int], opset: int
) -> tuple[Call, ...]:
    """The nodes with what they were `lowered` to, where `opset` has them.

    `places` are the positions in a program of what was built. Nodes that became a single one are
    left out: they are written as they were anyway.
    """
    found = (_call(context, results, places, opset) for context, results in lowered)
    return tuple(call for call in found if call is not None)


def _call(
    node: Context, results: Sequence[int], places: Mapping[int, int], opset: int
) -> Call | None:
    proto = node.proto
    wanted = [at for at, is_wanted in zip(results, node.wanted, strict=False) if is_wanted]
    given = {x for x in node.operands if x is not None}
    nodes = node.build.nodes
    if (
        not any(at in places for at in wanted)
        or any(at < 0 for at in (*wanted, *given))
        or all(at in given or _is_itself(nodes[at], given) for at in wanted)
        or any(a.HasField("g") or a.graphs or a.ref_attr_name for a in proto.attribute)
        or not _means_the_same(proto.op_type, node.opset, opset)
    ):
        return None
    operands = [None if x is None else _operand(node, x, places) for x in node.operands]
    if any(x is None and y is not None for x, y in zip(operands, node.operands, strict=True)):
        return None
    inputs = [each.name for each in defs.get_schema(proto.op_type, opset, "").inputs]
    attributes = []
    for attribute in proto.attribute:
        if attribute.name in inputs:  # as the axes of reductions
            at = inputs.index(attribute.name)
            operands += [None] * (at + 1 - len(operands))
            operands[at] = Constant(np.array(helper.get_attribute_value(attribute), np.int64))
        else:
            attributes.append(_renamed(proto.op_type, attribute))
    names = ["" if x is None else f"i{at}" for at, x in enumerate(operands)]
    outputs = [f"o{at}" if is_wanted else "" for at, is_wanted in enumerate(node.wanted)]
    bare = NodeProto(op_type=proto.op_type, input=names, output=outputs, attribute=attributes)
    types = tuple(nodes[at].type for at in wanted)
    content = bare.SerializeToString(deterministic=True)
    host = HostCall(proto.op_type, "", opset, content, types)
    known = tuple(x for x in operands if x is not None)
    return Call(host, known, tuple(places.get(at) for at in wanted))


def _is_itself(made: Node, given: set[int]) -> bool:
    """Whether an ONNX node became one node that is written as it was."""
    return given >= {*made.operands} and made.op.kind in (
        Kind.SOURCE, Kind.ELEMENTWISE, Kind.LAYOUT,
    )  # fmt: skip


def _renamed(op_type: str, attribute: AttributeProto) -> AttributeProto:
    """The attribute with its text as newer opsets have it."""
    result = AttributeProto()
    result.CopyFrom(attribute)
    if attribute.s:
        result.s = _NEW_TEXTS.get((op_type, attribute.s), attribute.s)
    return result


def _operand(node: Context, x: int, places: Mapping[int, int]) -> int | Constant | None:
    """Where an operand stands in the program, or its value where it is in no other node."""
    if x in places:
        return places[x]
    made = node.build.nodes[x]
    if made.op.name == "constant":
        return made.constant
    known = node.values.of(x)
    if known is None or any(isinstance(value, SymbolicDim) for value in known.ravel()):
        return None
    return Constant(np.array(known.tolist(), made.type.dtype.numpy).reshape(known.shape))


def _means_the_same(op_type: str, old: int, new: int) -> bool:
    """Whether a node of one opset is one of another: all its inputs and attributes are there, or
    lists that were attributes are inputs."""
    if not all(defs.has(op_type, opset, "") for opset in (old, new)):
        return False
    one, two = (defs.get_schema(op_type, opset, "") for opset in (old, new))
    if one.since_version == two.since_version:
        return True
    return (
        op_type not in _CHANGED
        and not two.deprecated
        and len(one.inputs) <= len(two.inputs)
        and all(
            _default(two.attributes[name], op_type) == _default(each, op_type)
            if name in two.attributes
            else name in {x.name for x in two.inputs} and each.type == each.type.INTS
            for name, each in one.attributes.items()
        )
    )


def _default(attribute: defs.OpSchema.Attribute, op_type: str) -> object:
    text = attribute.default_value.s
    return _NEW_TEXTS.get((op_type, text), text) or attribute.default_value
