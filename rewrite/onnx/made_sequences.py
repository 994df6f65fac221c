"""Nodes that make sequences of their tensors, which parts of a model have as inputs."""

from __future__ import annotations

from collections.abc import Container, Iterable

from onnx import NodeProto, TensorProto, helper

from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.types.sequence_type import SequenceType, is_absent, member
from satura.rewrite.types.tensor_type import Array


def sequence_input(name: str, type_: SequenceType, ranks: Array) -> NodeProto:
    """The node that makes an input of this type from its tensors, which have these ranks."""
    code = ELEMENT_CODES[type_.element]
    if is_absent(ranks):
        element = helper.make_tensor_type_proto(code, None)
        kind = helper.make_sequence_type_proto(element) if type_.is_list else element
        return helper.make_node("Optional", [], [name], type=kind)
    tensors = [member(name, at) for at in range(ranks.size)]
    if not type_.is_list:
        return helper.make_node("Optional", tensors, [name])
    return _made_of(tensors, name, code)


def sequence_of(name: str, values: Container[str]) -> NodeProto:
    """The node that makes a sequence from its tensors among `values`."""
    return _made_of(members_among(name, values), name)


def members_among(name: str, values: Container[str]) -> list[str]:
    """What the tensors of a sequence are called that are among `values`."""
    found: list[str] = []
    while member(name, len(found)) in values:
        found.append(member(name, len(found)))
    return found


def tensors_among(names: Iterable[str], values: Container[str]) -> list[str]:
    """The tensors of these names; of those that `values` lacks, as sequences, the ones it has."""
    return [
        each
        for name in names
        for each in ([name] if name in values else members_among(name, values))
    ]


def _made_of(tensors: list[str], name: str, code: int = TensorProto.FLOAT) -> NodeProto:
    if tensors:
        return helper.make_node("SequenceConstruct", tensors, [name])
    return helper.make_node("SequenceEmpty", [], [name], dtype=code)
