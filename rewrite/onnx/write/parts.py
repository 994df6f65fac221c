"""A model in parts as one ONNX graph: programs, and the nodes that stay between them."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, helper

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.made_sequences import sequence_of
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import all_nodes, label, uses
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.types import type_proto
from satura.rewrite.onnx.write.element_types import types_of
from satura.rewrite.onnx.write.emitter import Emitter
from satura.rewrite.onnx.write.kept import changes, moved
from satura.rewrite.onnx.write.program import (
    another_op,
    model_of,
    older_opsets,
    opsets,
    ready_to_write,
    rename,
    write_nodes,
    write_program,
)
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant


def write_model(made: Program | Parts) -> tuple[ModelProto, dict[str, Constant]]:
    """The ONNX model without its initializers, and these by name.

    Raises UnsupportedError for a node that means something else in the model's opset.
    """
    if isinstance(made, Program):
        return write_program(made)
    graph = _Graph(made)
    for step in made.steps:
        if isinstance(step, Program):
            graph.add_program(step)
        else:
            graph.add_node(step)
    return graph.model()


class _Graph:
    """The graph that is written: what has its name already, and what will get it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._programs = {id(each): ready_to_write(each) for each in parts.programs}
        self._old = parts.opsets.get("", 0)
        self._versions = opsets([*self._programs.values()], self._old)
        self._emit = Emitter([*self._programs.values()], parts.names)
        self._kept: dict[int, NodeProto] = {}
        self._elements: dict[str, str] = {}  # the tensors of one axis with the names they get
        self._ends = {value.name for value in parts.outputs}
        self._named = {*parts.inputs}
        self._new_names: dict[str, str] = {}
        self._equal_constants: dict[str, Constant] = {}
        for name, constant in parts.constants.items():
            self._name(self._emit.constant(constant), name)

    def add_program(self, program: Program) -> None:
        """Write a program, whose results get their names; those of parts before have theirs."""
        made = self._programs[id(program)]
        lists = {name for name, at in made.outputs if made.nodes[at].type.rank == 1}
        for name, tensor in write_nodes(made, self._emit, self._versions[""]).items():
            if name in lists:
                self._elements.setdefault(name, tensor)
            if name not in self._named:
                self._name(tensor, name)

    def add_node(self, node: NodeProto) -> None:
        """Write a node as it is, and those that make sequences for it of their tensors.

        A Range reads single elements without an axis: with one ONNX refuses them where it knows it.
        """
        for name in dict.fromkeys(uses(node)):
            if name not in self._named:
                self._emit.nodes.append(sequence_of(name, self._named))
                self._named.add(name)
        copy = NodeProto()
        copy.CopyFrom(node)
        if node.op_type == "Range" and is_standard(node.domain):
            copy.input[:] = [self._element(name) for name in node.input]
        self._kept[id(copy)] = copy
        self._emit.nodes.append(copy)
        self._named |= set(node.output)

    def _element(self, name: str) -> str:
        """What a program has computed, without its axis."""
        if name not in self._elements:
            return name
        return self._emit.node("Reshape", self._elements[name], self._emit.integers([]))

    def model(self) -> tuple[ModelProto, dict[str, Constant]]:
        """All that was written, in the oldest opset that serves."""
        opset, versions = self._opset(), dict(self._versions)
        versions[""] = opset
        nodes = [
            moved(each, self._old, opset, self._stored) if id(each) in self._kept else each
            for each in self._emit.nodes
        ]
        rename((each for each in self._emit.nodes if id(each) not in self._kept), self._new_names)
        domains = {each.domain for each in all_nodes(self._parts.kept)} & self._parts.opsets.keys()
        for domain in domains - {""}:
            versions[domain] = max(self._parts.opsets[domain], versions.get(domain, 1))
        inputs = [
            helper.make_value_info(name, type_proto(type_))
            for name, type_ in self._parts.inputs.items()
        ]
        constants = {self._new_names.get(name, name): x for name, x in self._emit.constants.items()}
        constants |= self._equal_constants
        return model_of(
            nodes, inputs, self._parts.outputs, versions, constants, self._parts.functions
        )

    def _name(self, tensor: str, name: str) -> None:
        """Let a tensor be called so: as a second name of one that has its name, or is constant and
        a result, it is copied. A constant with a second name is stored again: what a node may be
        can depend on constants, and runtimes do not look for them behind other nodes."""
        self._named.add(name)
        constant = self._emit.constants.get(tensor)
        has_name = tensor in self._new_names or tensor in self._named
        if has_name and constant is not None and name not in self._ends:
            self._equal_constants[name] = constant
        elif has_name or (name in self._ends and constant is not None):
            self._emit.nodes.append(helper.make_node("Identity", [tensor], [name]))
        else:
            self._new_names[tensor] = name

    def _stored(self, value: Constant) -> str:
        name = self._emit.constant(value)
        return self._new_names.get(name, name)

    def _opset(self) -> int:
        """The oldest opset in which all nodes mean the same."""
        newest, nodes = self._versions[""], self._emit.nodes
        types = types_of([*self._programs.values()], nodes, self._emit.constants, newest)
        made = [each for each in nodes if id(each) not in self._kept]
        differing: list[NodeProto] = []
        for opset in older_opsets(made, newest, types):
            kept = self._kept.values()
            differing = [x for each in kept for x in changes(each, self._old, opset, types)]
            if not differing:
                return opset
        raise UnsupportedError(another_op(label(differing[0]), self._old, newest))
