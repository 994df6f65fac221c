"""Programs: typed, immutable DAGs of tensor ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from satura.rewrite.errors import ProgramError
from satura.rewrite.ops import REGISTRY, REPEATING, USER_OPS, Kind, Op
from satura.rewrite.ops.registry import user_op
from satura.rewrite.program.text import application_text, array_python, attribute_text, quote
from satura.rewrite.types.attributes import (
    Attribute,
    Count,
    HostCall,
    Parameter,
    concrete_attribute,
    is_open,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes
from satura.rewrite.types.typical import allowed_sizes, representative, running_sizes


@dataclass(frozen=True)
class Node:
    """One op applied to earlier nodes, which are named by their index in the program."""

    op: Op
    operands: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    type: TensorType

    @property
    def constant(self) -> Constant:
        """The value of a constant node."""
        value = self.attributes[0]
        assert isinstance(value, Constant)
        return value

    @property
    def input_name(self) -> str:
        """The name of an input node."""
        parameter = self.attributes[0]
        assert isinstance(parameter, Parameter)
        return parameter.name

    def __str__(self) -> str:
        operands = (f"%{index}" for index in self.operands)
        return application_text(self.op.name, operands, map(attribute_text, self.attributes))


def varies(op: Op, attributes: tuple[Attribute, ...]) -> bool:
    """Whether a node depends on an input, another source or a size, whatever its operands do."""
    if op.kind in (Kind.SOURCE, Kind.HOST):
        return op.name != "constant"
    return op.name not in REPEATING and is_open(attributes)


@dataclass(frozen=True)
class Program:
    """Nodes in topological order; inputs in call order; outputs by name.

    Equal nodes are one node. `str(program)` is readable text that `parse.py` reads back, and
    `program.python()` can be pasted. `written` is what ONNX files have in its place: the same
    outputs, with nodes of the model as host calls where these are cheaper for a runtime. `taken`
    are sizes that a node of the model has taken for equal, and that would broadcast or decide for
    another program where they are not: this one is for fewer calls than the model. `labels` are
    what the model calls extents that are computed from sizes.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]
    written: Program | None = field(default=None, compare=False, repr=False)
    taken: tuple[SizeCondition, ...] = field(default=(), compare=False, repr=False)
    labels: Mapping[Dim, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def output_nodes(self) -> tuple[int, ...]:
        return tuple(index for _, index in self.outputs)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each node the nodes that read it, each once."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for operand in dict.fromkeys(node.operands):
                users[operand].append(index)
        return tuple(map(tuple, users))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of the sizes that the inputs' types leave open."""
        return open_sizes(self.nodes[index].type for index in self.inputs)

    @cached_property
    def known(self) -> tuple[bool, ...]:
        """For each node whether it is computed from constants alone."""
        known: list[bool] = []
        for node in self.nodes:
            if node.op.kind is Kind.SOURCE:
                known.append(node.op.name == "constant")
            else:
                free = node.type.symbols or is_open(node.attributes) or node.op.kind is Kind.HOST
                known.append(not free and all(known[index] for index in node.operands))
        return tuple(known)

    @cached_property
    def varying(self) -> tuple[bool, ...]:
        """For each node whether it depends on an input, another source or a size.

        A repeated constant does not, however often sizes say: it is a constant that was repeated.
        """
        varying: list[bool] = []
        for node in self.nodes:
            behind = any(varying[index] for index in node.operands)
            varying.append(behind or varies(node.op, node.attributes))
        return tuple(varying)

    def verify(self) -> None:
        """Raise ProgramError where a node is badly typed or reads a later node."""
        for index, node in enumerate(self.nodes):
            if any(not 0 <= operand < index for operand in node.operands):
                raise ProgramError(f"%{index} = {node} reads a node that does not come before it")
            expected = infer(node.op, node.operands, node.attributes, self.nodes)
            if expected != node.type:
                raise ProgramError(f"%{index} = {node} has type {node.type}, not {expected}")
        for index in (*self.inputs, *self.output_nodes):
            if not 0 <= index < len(self.nodes):
                raise ProgramError(f"%{index} is not a node")

    def concrete(self, sizes: Mapping[str, int]) -> Program:
        """The program where every symbol has its size from `sizes`."""
        if not sizes:
            return self
        nodes: list[Node] = []
        for node in self.nodes:
            attributes = tuple(concrete_attribute(value, sizes) for value in node.attributes)
            type_ = infer(node.op, node.operands, attributes, nodes)
            if any(isinstance(dim, int) and dim < 0 for dim in type_.shape):
                raise ProgramError(f"%{len(nodes)} = {node} would be {type_}")
            nodes.append(Node(node.op, node.operands, attributes, type_))
        return Program(tuple(nodes), self.inputs, self.outputs)

    def runs_at(self, sizes: Mapping[str, int]) -> bool:
        """Whether these sizes are none that the program excludes."""
        try:
            self.concrete(sizes)
        except ProgramError:
            return False
        return True

    @property
    def conditions(self) -> tuple[SizeCondition, ...]:
        """What the sizes of its calls have to fulfil."""
        parameters = (self.nodes[index].attributes[0] for index in self.inputs)
        return tuple(
            each for own in parameters if isinstance(own, Parameter) for each in own.conditions
        )

    @property
    def input_types(self) -> dict[str, TensorType]:
        """The types of the inputs by name, in their order."""
        nodes = [self.nodes[index] for index in self.inputs]
        return {node.input_name: node.type for node in nodes}

    @cached_property
    def typical(self) -> dict[str, int]:
        """A size for each symbol: what costs count, or others at which the program runs."""
        return self.typical_beside({})

    def typical_beside(
        self, given: Mapping[str, int], usual: int = representative(symbol("usual"))
    ) -> dict[str, int]:
        """As `typical`, beside sizes that are `given`; others are the `usual` one where it runs."""
        conditions = self.conditions
        allowed = allowed_sizes(conditions, self.symbols, usual)
        first = {name: given.get(name, size) for name, size in allowed.items()}

        def runs(sizes: Mapping[str, int]) -> bool:
            return all(each.holds(sizes) for each in conditions) and self.runs_at(sizes)

        return running_sizes(first, self.symbols - given.keys(), runs) or first

    def where(self, conditions: tuple[SizeCondition, ...]) -> Program:
        """The program for calls that fulfil `conditions`: its first input says so."""
        nodes, first = list(self.nodes), self.inputs[0]
        (parameter,) = nodes[first].attributes
        assert isinstance(parameter, Parameter)
        needed = replace(parameter, conditions=conditions)
        nodes[first] = replace(nodes[first], attributes=(needed,))
        return Program(tuple(nodes), self.inputs, self.outputs)

    @property
    def constants(self) -> Mapping[str, Array]:
        """Elements of the constants that the text leaves out, by the labels in their place."""
        values = [node.constant for node in self.nodes if node.op.name == "constant"]
        return {value.label: value.array for value in values if value.label is not None}

    @property
    def output_lines(self) -> list[str]:
        """The end of the text: a line per output."""
        return [f"output {quote(name)} = %{index}" for name, index in self.outputs]

    def __str__(self) -> str:
        lines = [f"%{index} = {node} : {node.type}" for index, node in enumerate(self.nodes)]
        return "\n".join([*lines, *self.output_lines])

    def _user_ops(self) -> Iterable[Op]:
        found = (user_op(node.op, node.attributes) for node in self.nodes)
        return dict.fromkeys(op for op in found if op is not None)

    def python(self) -> str:
        """Python text that builds this program again; it can be pasted as it is.

        Ops of users must have been declared before; comments say where.
        """
        symbols = open_sizes(node.type for node in self.nodes)
        lines = [
            "import numpy as np",
            "from numpy import inf, nan",
            "from satura.language import Builder, DType, TensorType",
            "from satura.rewrite.program.interpreter import interpret",
            "from satura.rewrite.types.attributes import *",
            "from satura.rewrite.types.dims import symbol",
            *(f"{name} = symbol({name!r})" for name in sorted(symbols)),
            *(f"# {op.name} is declared at {op.user.place}" for op in self._user_ops() if op.user),
            "build = Builder()",
        ]
        for index, node in enumerate(self.nodes):
            arguments = [f"{node.op.name!r}", f"({''.join(f'v{i}, ' for i in node.operands)})"]
            arguments += [attribute_python(value) for value in node.attributes]
            lines.append(f"v{index} = build.add({', '.join(arguments)})")
        named = ", ".join(f"{name!r}: v{index}" for name, index in self.outputs)
        return "\n".join([*lines, f"program = build.program({{{named}}})"])


def attribute_python(value: Attribute) -> str:
    """Python text for the attribute."""
    if isinstance(value, Constant):
        return f"Constant({array_python(value.array)})"
    if isinstance(value, Scalar):
        return f"Scalar({value.dtype!r}, {value.bits!r})"
    return repr(value)


def infer(
    op: Op,
    operands: tuple[int, ...],
    attributes: tuple[Attribute, ...],
    nodes: list[Node] | tuple[Node, ...],
) -> TensorType:
    """Type of `op` on the given nodes; for a host node the type of its first result."""
    if op.name == "item":
        calls = [value for i in operands for value in nodes[i].attributes]
        match calls, attributes:
            case [HostCall(outputs=types)], (Count(value=index),) if 0 <= index < len(types):
                return types[index]
        raise ProgramError("item takes a host call and the number of one of its results")
    result = op.infer(tuple(nodes[index].type for index in operands), attributes)
    return result[0] if isinstance(result, tuple) else result


def _op(op: str | Op) -> Op:
    """The op of this name. Raises ProgramError."""
    if isinstance(op, Op):
        return op
    if op not in REGISTRY and op not in USER_OPS:
        raise ProgramError(
            f"there is no op '{op}'; ops: {', '.join(sorted({**REGISTRY, **USER_OPS}))}"
        )
    return REGISTRY[op] if op in REGISTRY else USER_OPS[op]


class ProgramBuilder:
    """Builds a program node by node; equal nodes become one."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[int] = []
        self._index: dict[tuple[str, tuple[int, ...], tuple[Attribute, ...]], int] = {}

    def add(self, op: str | Op, operands: Iterable[int] = (), *attributes: Attribute) -> int:
        """Index of the node `op(operands, attributes)`; `op` is an op or the name of one.

        Raises ProgramError when the op does not exist or its operands do not fit.
        """
        standing, attributes = _op(op).in_programs(attributes)
        return add_typed(self, standing, tuple(operands), attributes)

    def type(self, index: int) -> TensorType:
        """Type of a node built before."""
        return self.nodes[index].type

    def program(self, outputs: Mapping[str, int]) -> Program:
        """The program with the given outputs; nodes that no output needs are left out."""
        needed = set(self.inputs)
        stack = list(outputs.values())
        while stack:
            index = stack.pop()
            if index not in needed:
                needed.add(index)
                stack.extend(self.nodes[index].operands)
        order = {old: new for new, old in enumerate(sorted(needed))}
        nodes = []
        for old in order:
            node = self.nodes[old]
            operands = tuple(order[index] for index in node.operands)
            nodes.append(Node(node.op, operands, node.attributes, node.type))
        return Program(
            tuple(nodes),
            tuple(order[index] for index in self.inputs),
            tuple((name, order[index]) for name, index in outputs.items()),
        )


def add_typed(
    builder: ProgramBuilder,
    standing: Op,
    operands: tuple[int, ...],
    attributes: tuple[Attribute, ...],
    type_: TensorType | None = None,
) -> int:
    """Index of a node, of an op that stands in programs; of its type, where that is known."""
    key = (standing.name, operands, attributes)
    if key not in builder._index:
        if type_ is None:
            type_ = infer(standing, operands, attributes, builder.nodes)
        if standing.name == "input":
            node = Node(standing, operands, attributes, type_)
            if node.input_name in {builder.nodes[index].input_name for index in builder.inputs}:
                raise ProgramError(f"two inputs are called '{node.input_name}'")
            builder.inputs.append(len(builder.nodes))
        builder._index[key] = len(builder.nodes)
        builder.nodes.append(Node(standing, operands, attributes, type_))
    return builder._index[key]
