"""Nodes of a model beside what they were lowered to, so that a saved model may have them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from satura.rewrite.onnx.bodies import read_outside, standing_alone
from satura.rewrite.onnx.inferred import is_inferred
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.opsets import has_steps, is_standard, translated
from satura.rewrite.onnx.write.element_types import element_type
from satura.rewrite.onnx.write.kept import changes, moved
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import ProgramBuilder
from satura.rewrite.types.attributes import Axis, HostCall, Shape
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import DType, TensorType

_PLAIN = {DType.F32, DType.F64, DType.BOOL}
_RESIZE = 11  # the opset since which Resize has coordinates, and Upsample is deprecated
_PER_CHANNEL = 21  # the opset since which GroupNormalization has scales per channel, not per group


@dataclass(frozen=True)
class Sizes:
    """An operand that holds sizes, some of them open, as the `sizes` of a Resize."""

    dims: tuple[Dim, ...]
    type: TensorType

    def added(self, build: ProgramBuilder) -> int:
        """The node of a program that has this value."""
        lines = [
            build.add("reshape", [build.add("extent", (), Shape((dim,)))], Shape((1,)))
            for dim in self.dims
        ]
        x = reduce(lambda before, line: build.add("concat", (before, line), Axis(0)), lines)
        if build.type(x).dtype is not self.type.dtype:
            x = build.add("cast", (x,), self.type.dtype)
        if build.type(x) == self.type:
            return x
        return build.add("reshape", (x,), Shape(self.type.shape))


Operand = int | Constant | Sizes


@dataclass(frozen=True)
class Call:
    """An ONNX node: it computes nodes of a program from others, from constants and from sizes.

    A result is None that no output of the program needs. One of control flow runs many `nodes`,
    which read and write tensors of the types `inside`.
    """

    host: HostCall
    operands: tuple[Operand, ...]
    results: tuple[int | None, ...]
    nodes: int = 1
    inside: tuple[TensorType, ...] = ()


@dataclass(frozen=True)
class Steps:
    """What a node of control flow was lowered to: so many nodes in all steps, the nodes of these
    from `first` on, up to `last`, and what its graphs read from `outside`."""

    nodes: int
    first: int
    last: int
    outside: Mapping[str, int]


@dataclass(frozen=True)
class Lowered:
    """A node of a model, what it was lowered to, and its steps where it has some."""

    node: Context
    results: Sequence[int]
    steps: Steps | None = None

    @property
    def wanted(self) -> list[int]:
        """The results that have names."""
        pairs = zip(self.results, self.node.wanted, strict=False)
        return [at for at, is_wanted in pairs if is_wanted]


def calls_of(lowered: Sequence[Lowered], places: Mapping[int, int], opset: int) -> tuple[Call, ...]:
    """The nodes with what they were `lowered` to, where `opset` has them.

    `places` are the positions in a program of what was built. Nodes that became a single one are
    left out: they are written as they were anyway.
    """
    found = (
        _call(each, places, opset) if each.steps is None
        else _call_of_steps(each, each.steps, lowered, places, opset)
        for each in lowered
    )  # fmt: skip
    return tuple(call for call in found if call is not None)


def _call_of_steps(
    one: Lowered, steps: Steps, lowered: Sequence[Lowered], places: Mapping[int, int], opset: int
) -> Call | None:
    """A node of control flow, with what its graphs read as further operands."""
    node, nodes = one.node, one.node.build.nodes
    given = [x for x in node.operands if x is not None]
    inner = lowered[steps.first : steps.last]
    met = [(*(x for x in each.node.operands if x is not None), *each.wanted) for each in inner]
    ends = (*given, *one.wanted, *steps.outside.values())
    if (
        not any(at in places for at in one.wanted)
        or min(ends, default=0) < 0
        or any(changes(node.proto, node.opset, opset))
    ):
        return None
    inside = tuple(nodes[at].type for each in met for at in each if at >= 0)
    if any(type_.dtype.is_narrow for type_ in inside):
        return None  # which opset has these depends on the op
    proto, outside, constants = standing_alone(node.proto)
    read: dict[str, Operand | None] = {**constants}
    for name, x in steps.outside.items():
        read[outside[name]] = _operand(node, x, places)

    def store(value: Constant) -> str:
        name = f"m{len(read)}"
        read[name] = value
        return name

    proto = moved(proto, node.opset, opset, store)
    operands = [_operand(node, x, places) for x in given]
    operands += [read[name] for name in read_outside(proto)]
    known = tuple(x for x in operands if x is not None)
    if len(known) < len(operands):
        return None
    host = _host(node, proto.attribute, [x is not None for x in node.operands], one.wanted, opset)
    return Call(host, known, tuple(places.get(at) for at in one.wanted), steps.nodes, inside)


def _host(
    node: Context, attributes: Iterable[AttributeProto], given: Sequence[bool],
    results: Sequence[int], opset: int, op_type: str = "",
) -> HostCall:  # fmt: skip
    """The call of a node with these attributes, which is given some operands."""
    bare = NodeProto(
        op_type=op_type or node.proto.op_type,
        input=[f"i{at}" if is_given else "" for at, is_given in enumerate(given)],
        output=[f"o{at}" if is_wanted else "" for at, is_wanted in enumerate(node.wanted)],
        attribute=attributes,
    )
    types = tuple(node.build.nodes[at].type for at in results)
    content = bare.SerializeToString(deterministic=True)
    return HostCall(bare.op_type, "", opset, content, types)


def _call(one: Lowered, places: Mapping[int, int], opset: int) -> Call | None:
    node, wanted = one.node, one.wanted
    proto = node.proto
    given = {x for x in node.operands if x is not None}
    if (
        not any(at in places for at in wanted)
        or any(at < 0 for at in (*wanted, *given))
        or all(at in given or _is_itself(node, at, given) for at in wanted)
        or any(a.HasField("g") or a.graphs or a.ref_attr_name for a in proto.attribute)
    ):
        return None
    operands = [None if x is None else _operand(node, x, places) for x in node.operands]
    is_per_group = proto.op_type == "GroupNormalization" and node.opset < _PER_CHANNEL <= opset
    if is_per_group:
        operands[1:] = [_per_channel(node, x) for x in node.operands[1:]]
    if any(x is None and y is not None for x, y in zip(operands, node.operands, strict=True)):
        return None
    if proto.op_type in ("Resize", "Upsample") and node.opset < _RESIZE <= opset:
        scales = _scales(node)
        if scales is None:
            return None
        proto, operands = _resize(node), [operands[0], None, scales]
    elif not is_per_group and not _is_in(one, opset):
        return None
    attributes, added = translated(proto, opset)
    for at, value in added.items():
        operands += [None] * (at + 1 - len(operands))
        operands[at] = value
    are_given = [x is not None for x in operands]
    host = _host(node, attributes, are_given, wanted, opset, proto.op_type)
    known = tuple(x for x in operands if x is not None)
    types = [
        node.build.type(node[at]) if isinstance(x, int) else x.type
        for at, x in enumerate(operands)
        if x is not None
    ]
    if not is_inferred(host, types):
        return None
    return Call(host, known, tuple(places.get(at) for at in wanted))


def _is_in(one: Lowered, opset: int) -> bool:
    """Whether an opset, which may be older, has a node with the types of its tensors.

    One of f16 that a newer opset defines by others is none of it: a runtime may round each of
    these, so that what is between them overflows.
    """
    node = one.node
    op_type, dtypes = node.proto.op_type, {node.build.dtype(at) for at in one.wanted}
    is_split = has_steps(op_type, opset) and not has_steps(op_type, node.opset)
    if is_split and any(dtype.compute is not dtype for dtype in dtypes if dtype.is_float):
        return False
    named = [*zip(node.proto.input, node.operands, strict=False)]
    named += zip(filter(None, node.proto.output), one.wanted, strict=False)
    types = {
        name: frozenset((element_type(node.build.dtype(at)),))
        for name, at in named
        if at is not None
    }
    return is_standard(node.proto.domain) and not any(
        changes(node.proto, node.opset, opset, lambda name: types.get(name, frozenset()))
    )


def _scales(node: Context) -> Constant | None:
    """The scales of an Upsample or of a Resize of opset 10, where newer ops can have them.

    Nearest was rounded up where there are fewer elements than before.
    """
    scales = node.numbers("scales")
    if scales is None:
        made = node.build.nodes[node[1]]
        if made.op.name != "constant":
            return None
        scales = tuple(made.constant.array.ravel().tolist())
    if node.text("mode") != "linear" and min(scales, default=1) < 1:
        return None
    return Constant(np.array(scales, np.float32))


def _resize(node: Context) -> NodeProto:
    """What an Upsample or a Resize of opset 10 is called since."""
    return helper.make_node(
        "Resize", ["x", "", "scales"], node.proto.output, mode=node.text("mode", "nearest"),
        nearest_mode="floor", coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


def _is_itself(node: Context, at: int, given: set[int]) -> bool:
    """Whether an ONNX node became one node that is written as it was.

    Arithmetic on integers and on narrow floats may be written as many: what ONNX leaves open about
    it is spelled out there, or it is computed in wider types. Sizes may take nodes of their own.
    """
    nodes = node.build.nodes
    made = nodes[at]
    if not given >= {*made.operands}:
        return False
    types = [nodes[x].type for x in (at, *made.operands)]
    if made.op.kind is Kind.ELEMENTWISE:
        return {each.dtype for each in types} <= _PLAIN and node.proto.op_type != "Mod"
    if made.op.kind is Kind.LAYOUT:
        return not any(each.symbols for each in types)
    return made.op.kind is Kind.SOURCE and made.op.name != "extent"


def _per_channel(node: Context, x: int | None) -> Constant | None:
    """A constant of one element per group with one per channel; None where that is not known."""
    made = None if x is None else node.build.nodes[x]
    groups, channels = node.integer("num_groups"), node.build.shape(node[0])[1]
    if made is None or made.op.name != "constant" or not isinstance(channels, int):
        return None
    return Constant(np.repeat(made.constant.array, channels // groups))


def _operand(node: Context, x: int, places: Mapping[int, int]) -> Operand | None:
    """Where an operand stands in the program, or its value where it is in no other node."""
    if x in places:
        return places[x]
    made = node.build.nodes[x]
    if made.op.name == "constant":
        return made.constant
    known = node.values.of(x)
    if known is None:
        return None
    elements = known.ravel().tolist()
    if any(isinstance(element, SymbolicDim) for element in elements):
        are_whole = all(isinstance(element, SymbolicDim | int) for element in elements)
        return Sizes(tuple(elements), made.type) if are_whole else None
    return Constant(np.array(known.tolist(), made.type.dtype.numpy).reshape(known.shape))
