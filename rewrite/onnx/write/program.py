"""A whole program as an ONNX graph: which nodes are written, under which names and opsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from onnx import FunctionProto, ModelProto, NodeProto, ValueInfoProto, helper

from satura.rewrite.errors import ProgramError, UnsupportedError
from satura.rewrite.onnx import user_ops
from satura.rewrite.onnx.bodies import read_outside, with_new_names
from satura.rewrite.onnx.opsets import is_one_of, means_the_same
from satura.rewrite.onnx.order import all_nodes, uses
from satura.rewrite.onnx.types import type_proto
from satura.rewrite.onnx.write import (
    elementwise,
    layout,
    recurrent,
    reductions,
    selections,
    windows,
)
from satura.rewrite.onnx.write.axes_of_one import with_early_transposes
from satura.rewrite.onnx.write.element_types import types_of
from satura.rewrite.onnx.write.emitter import COMMUTING, OPSET, REDUCTIONS, Emitter, Site
from satura.rewrite.onnx.write.folding import with_constants
from satura.rewrite.onnx.write.int8_zeros import without_int8_zeros
from satura.rewrite.onnx.write.kept import changes, moved
from satura.rewrite.onnx.write.raised import Raised, raised
from satura.rewrite.onnx.write.unread import without_unread
from satura.rewrite.ops.registry import user_op
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import Count, HostCall
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

IR_VERSION = 10
# onnxruntime has slow kernels of AveragePools newer than 18, and refuses some int8 QDQ of 21.
OLDEST_SAVED = 18

EMITTERS: dict[str, Callable[[Emitter, Site], str]] = {
    "unary": elementwise.unary,
    "binary": elementwise.binary,
    "select": elementwise.select,
    "cast": elementwise.cast,
    "transpose": layout.transpose,
    "reshape": layout.reshape,
    "broadcast": layout.broadcast,
    "slice": layout.slice_,
    "pad": layout.pad,
    "concat": layout.concat,
    "gather": layout.gather,
    "iota": layout.iota,
    "extent": layout.extent,
    "reduce": reductions.reduce,
    "arg_reduce": reductions.arg_reduce,
    "matmul": reductions.matmul,
    "attention": reductions.attention,
    "pool": windows.pool,
    "conv": windows.conv,
    "winograd": windows.conv,
    "recurrence": recurrent.recurrence,
    "scatter": selections.scatter,
    "first_places": selections.first_places,
}
_BROADCASTING = ("binary", "select")
_MOVING = COMMUTING | REDUCTIONS


def write_program(program: Program) -> tuple[ModelProto, dict[str, Constant]]:
    """The ONNX model without its initializers, and these by name.

    Raises UnsupportedError for a host node whose op means something else in the model's opset, and
    for a program without outputs, as an empty sequence has none.
    """
    if not program.outputs:
        raise UnsupportedError("the program has no outputs, and an ONNX model must have one")
    labels = program.labels
    program = ready_to_write(program)
    emit = Emitter([program])
    versions = opsets([program])
    outputs = write_nodes(program, emit, versions[""])
    nodes = _with_outputs(
        emit.nodes, outputs, {program.nodes[at].input_name for at in program.inputs}
    )
    types = types_of([program], nodes, emit.constants, versions[""])
    versions[""] = older_opsets(nodes, versions[""], types)[0]
    inputs = [(program.nodes[index].input_name, index) for index in program.inputs]
    return model_of(
        nodes,
        [value_info(program, name, index, labels) for name, index in inputs],
        [value_info(program, name, index, labels) for name, index in program.outputs],
        versions,
        emit.constants,
    )


def ready_to_write(program: Program) -> Program:
    """The program that is written in place of another."""
    return with_early_transposes(with_constants(program.written or program))


def write_nodes(program: Program, emit: Emitter, opset: int) -> dict[str, str]:
    """Write the nodes of a program that is ready for it; the tensors of its outputs."""
    names = _Names(program, emit, opset)
    return {name: emit.ready(names.of(index)) for name, index in program.outputs}


def model_of(
    nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto], versions: Mapping[str, int],
    constants: Mapping[str, Constant], functions: Sequence[FunctionProto] = (),
) -> tuple[ModelProto, dict[str, Constant]]:  # fmt: skip
    """The model of these nodes without its initializers, and those of `constants` that are read."""
    nodes = without_int8_zeros(nodes, constants, versions[""])
    nodes = without_unread(nodes, [value.name for value in outputs], versions[""])
    graph = helper.make_graph(nodes, "satura", inputs, outputs)
    imports = [helper.make_opsetid(*pair) for pair in versions.items()]
    least = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model = helper.make_model(
        graph,
        opset_imports=imports,
        ir_version=max(IR_VERSION, least),
        producer_name="satura",
        functions=functions,
    )
    read = {name for node in graph.node for name in uses(node)}
    return model, {name: x for name, x in constants.items() if name in read}


def older_opsets(
    nodes: Sequence[NodeProto], newest: int, types: Callable[[str], Set[str]]
) -> list[int]:
    """The opsets in which nodes of the newest one mean the same, and this, from the oldest on."""
    return [
        opset
        for opset in range(OLDEST_SAVED, newest + 1)
        if opset == newest or all(is_one_of(each, opset, newest, types) for each in nodes)
    ]


def value_info(
    program: Program, name: str, index: int, labels: Mapping[Dim, str]
) -> ValueInfoProto:
    """The value that a node of a program computes, under this name."""
    return helper.make_value_info(name, type_proto(program.nodes[index].type, labels))


class _Names:
    """Writes all nodes that the outputs need, in order, and knows their tensors' names."""

    def __init__(self, program: Program, emit: Emitter, opset: int) -> None:
        self._opset = opset
        self._nodes = program.nodes
        self._emit = emit
        self._names: dict[int, str] = {}
        self._results: dict[int, list[str]] = {}
        for index, (reads, op) in _needed_nodes(program, opset).items():
            node = program.nodes[index]
            if node.op.name == "input":
                self._names[index] = node.input_name
            elif node.op.name != "constant":
                site = Site(node, reads, program.nodes, self.of)
                self._names[index] = op.written(emit, site) if op else self._written(index, site)

    def of(self, index: int) -> str:
        """The tensor of a node; a constant is stored when it is first asked for."""
        node = self._nodes[index]
        if node.op.name == "constant":
            return self._emit.constant(node.constant)
        return self._names[index]

    def _written(self, index: int, site: Site) -> str:
        found = user_op(site.node.op, site.node.attributes)
        if found is not None:
            return user_ops.write_user_op(self._emit, found, site)
        attribute = site.node.attributes[0] if site.node.attributes else None
        if isinstance(attribute, HostCall):
            self._results[index] = self._host(attribute, site)
            return self._results[index][0]
        if site.node.op.name == "item":
            assert isinstance(attribute, Count)
            return self._results[site.reads[0]][attribute.value]
        name = site.node.op.name
        if name not in EMITTERS:
            raise UnsupportedError(f"op {name} cannot be saved: EMITTERS of {__name__} lacks it")
        return EMITTERS[name](self._emit, site)

    def _host(self, call: HostCall, site: Site) -> list[str]:
        """The results of a host call: its node, reading and writing this graph's tensors."""
        node = _node(call)
        if not call.domain and call.op_type in _MOVING and all(node.input):
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            return [self._emit.node(call.op_type, *map(self.of, site.reads), **attributes)]
        operands = (self._emit.ready(self.of(index)) for index in site.reads)
        node.input[:] = [next(operands) if name else "" for name in node.input]
        node.output[:] = [self._emit.fresh() if name else "" for name in node.output]
        outside = dict(zip(read_outside(node), operands, strict=True))
        node = with_new_names(node, outside, self._emit.fresh)
        if not call.domain:
            node = moved(node, call.opset, self._opset, self._emit.constant)
        self._emit.nodes.append(node)
        return [name for name in node.output if name]


def _needed_nodes(program: Program, opset: int) -> dict[int, tuple[tuple[int, ...], Raised | None]]:
    """The nodes that the outputs depend on, in order; what the ONNX op of each reads, and which op
    that is where it is one of many nodes."""
    wanted = set(program.output_nodes)
    needed: dict[int, tuple[tuple[int, ...], Raised | None]] = {}
    for index in range(len(program.nodes) - 1, -1, -1):
        if index in wanted:
            op = raised(program.nodes, index, opset)
            reads = op.reads if op else _reads(program, index)
            needed[index] = reads, op
            wanted.update(reads)
    return dict(sorted(needed.items()))


def _reads(program: Program, index: int) -> tuple[int, ...]:
    """What the ONNX op of a node reads: it broadcasts and joins many tensors by itself."""
    node = program.nodes[index]
    if node.op.name == "concat":
        return _parts_of_concat(program, node)
    if node.op.name == "reshape":
        return layout.reads_of_reshape(program.nodes, node)
    if node.op.name == "recurrence":
        return recurrent.reads(program.nodes, node)
    if node.op.name == "attention":  # a bias has the scores' shape by being added to them
        q, k, bias, v = node.operands
        bias = (
            program.nodes[bias].operands[0] if program.nodes[bias].op.name == "broadcast" else bias
        )
        return q, k, bias, v
    broadcasts = node.op.name in _BROADCASTING and user_op(node.op, node.attributes) is None
    return _unbroadcast(program.nodes, node) if broadcasts else node.operands


def _parts_of_concat(program: Program, node: Node) -> tuple[int, ...]:
    """The operands of a chain of concats of which only the last is read elsewhere."""
    first, *rest = node.operands
    while (
        program.nodes[first].op is node.op
        and program.nodes[first].attributes == node.attributes
        and len(program.users[first]) == 1
        and first not in program.output_nodes
    ):
        first, *before = program.nodes[first].operands
        rest = [*before, *rest]
    return (first, *rest)


def _unbroadcast(nodes: tuple[Node, ...], node: Node) -> tuple[int, ...]:
    """The operands of a node without the broadcasts that are implied."""
    reads = list(node.operands)
    for position, index in enumerate(reads):
        if nodes[index].op.name == "broadcast":
            shorter = [*reads[:position], nodes[index].operands[0], *reads[position + 1 :]]
            if _spans([nodes[at].type.shape for at in shorter], node.type.shape):
                reads = shorter
    return tuple(reads)


def _spans(shapes: list[tuple[Dim, ...]], result: tuple[Dim, ...]) -> bool:
    """Whether shapes of extents 1 or as in `result` broadcast to `result`."""
    return all(
        dim in extents for dim, extents in zip(result, zip(*shapes, strict=True), strict=True)
    )


_SINCE = {DType.F4E2M1: 23, DType.I2: 25, DType.U2: 25}


def opsets(programs: Sequence[Program], least: int = OPSET) -> dict[str, int]:
    """The opset of each domain: recent enough for every host call; 1 for a user's own."""
    nodes = [node for program in programs for node in program.nodes]
    calls = [node.attributes[0] for node in nodes if node.op.name == "host"]
    dtypes = {node.type.dtype for node in nodes}
    versions = {"": max(OPSET, least, *(_SINCE.get(dtype, 0) for dtype in dtypes))}
    for node in nodes:
        op = user_op(node.op, node.attributes)
        if op is not None and op.user is not None:
            versions[op.user.domain] = 1
    for call in calls:
        assert isinstance(call, HostCall)
        versions[call.domain] = max(call.opset, versions.get(call.domain, 1))
    for call in calls:
        assert isinstance(call, HostCall)
        saved = versions[call.domain]
        if not means_the_same(call.op_type, call.opset, saved, call.domain):
            raise UnsupportedError(another_op(str(call), call.opset, saved))
        inside = () if call.opset == saved else changes(_node(call), call.opset, saved)
        for each in inside:
            raise UnsupportedError(another_op(f"{each.op_type} in {call}", call.opset, saved))
    return versions


def _node(call: HostCall) -> NodeProto:
    node = NodeProto()
    node.ParseFromString(call.proto)
    return node


def another_op(what: str, opset: int, saved: int) -> str:
    """Why a node is not saved that means something else in the opset that models are saved in."""
    return (
        f"{what} of opset {opset} cannot be saved: it is another op in opset {saved},"
        " which the model is saved in; convert the original model to that opset first"
    )


def _with_outputs(
    nodes: list[NodeProto], outputs: Mapping[str, str], inputs: set[str]
) -> list[NodeProto]:
    """`nodes` whose results carry the outputs' names; what is not a node's own result is copied."""
    produced = {name for node in nodes for name in node.output}
    renamed: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for name, tensor in outputs.items():
        if name in inputs and name != tensor:
            raise ProgramError(f"output '{name}' has the name of an input but another value")
        if tensor in produced and tensor not in renamed:
            renamed[tensor] = name
        elif name != tensor:
            copies.append((tensor, name))
    rename(nodes, renamed)
    identities = [
        helper.make_node("Identity", [renamed.get(tensor, tensor)], [name])
        for tensor, name in copies
    ]
    return [*nodes, *identities]


def rename(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> None:
    """Give tensors that nodes read and compute other names."""
    for node in all_nodes(nodes):
        for own in (node.input, node.output):
            for position, name in enumerate(own):
                own[position] = names.get(name, name)
