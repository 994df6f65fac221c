"""Import: the walk over the nodes of a model, each lowered by its own definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import FunctionProto, GraphProto, NodeProto

from satura.rewrite.errors import ModelError, ProgramError, SaturaError, UnsupportedError
from satura.rewrite.onnx.asked import bind_inputs
from satura.rewrite.onnx.bodies import can_stand_alone, count_run, inside, read_outside
from satura.rewrite.onnx.calls import Call, Lowered, Steps, calls_of
from satura.rewrite.onnx.checks import (
    LARGEST_VERSION,
    check_declared_type,
    check_given,
    check_size,
    checked_opset,
    declared_names,
    opset_versions,
)
from satura.rewrite.onnx.contrib.table import DEFINITIONS
from satura.rewrite.onnx.control_flow import Body, LongRepetition, control_flow, is_decided
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.element_kinds import refuse_other_kinds
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.host_warnings import warn_of_host_calls
from satura.rewrite.onnx.inputs import input_types
from satura.rewrite.onnx.lower.context import Context, NoLowering, UnknownValue
from satura.rewrite.onnx.lower.fallback import (
    function_body,
    host,
    with_attributes,
    with_defaults,
    with_new_name,
)
from satura.rewrite.onnx.lower.sequences import bound_input, check_operands, named_tensors
from satura.rewrite.onnx.lower.table import LOWERINGS
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.misfit import misfit
from satura.rewrite.onnx.open_control_flow import open_results, without_types
from satura.rewrite.onnx.order import in_order, label, short_label
from satura.rewrite.onnx.origins import origins
from satura.rewrite.onnx.tensors import array_of, initializer
from satura.rewrite.onnx.types_of_steps import types_of_steps
from satura.rewrite.onnx.user_ops import custom
from satura.rewrite.onnx.values import Values
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import substitute
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import Array
from satura.rewrite.user_ops.declare import find

MOST_INLINED = 100_000
"""Nodes that the bodies of functions and loops may add up to, each as often as it is used."""
MOST_NESTED = 64

_UNDECLARED = "declare the shapes in its body, and Python takes the steps"

Scope = dict[str, int]
Operands = tuple[int | None, ...]


class Importer:
    """The state of one load: the builder, symbolic values, functions and host calls met so far."""

    def __init__(
        self,
        apart: ModelApart,
        given: Mapping[str, Array],
        asks: bool,
        sizes: Mapping[str, Dim],
        build: Tensors,
        takes_turns: bool = False,
        is_as_declared: bool = True,
        leaves_out: bool = False,
    ) -> None:
        """Outputs are checked where the model `is_as_declared`: sizes of 1 may change ranks.

        It `leaves_out`, for the host, also control flow that may run here at other sizes.
        """
        self.model = model = apart.proto
        self.weights = apart.weights
        self.given = given
        self.sizes = sizes
        self.build = build
        self.takes_turns, self.is_as_declared = takes_turns, is_as_declared
        self.leaves_out = leaves_out
        self.values = Values(self.build, asks, apart.data)
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.host_calls: dict[HostCall, str] = {}
        self.random_count = 0
        self.inlined = self.in_steps = 0
        self.checked = 0
        self.outputs: dict[str, int] = {}
        self.labels: dict[int, str] = {}
        self.lowered: list[Lowered] = []
        values = (*model.graph.value_info, *model.graph.output)
        self.declared = {value.name: value.type for value in values}

    def program(self) -> Program:
        """The program of the model's graph."""
        graph = self.model.graph
        if self.model.ir_version > LARGEST_VERSION:
            raise ModelError(f"{self.model.ir_version} is not a version of ONNX's file format")
        scope, outputs = self._inputs(graph), self.outputs
        self._walk(graph.node, scope, opset_versions(self.model.opset_import), 0)
        for output in graph.output:
            if output.name not in scope:
                raise ModelError(f"output '{output.name}' is computed by no node")
            named = named_tensors(self.build, output.name, scope[output.name])
            if named.keys() & outputs.keys():
                raise ModelError(f"two outputs are called '{output.name}'")
            for index in named.values() if self.is_as_declared else ():
                check_declared_type(output, self.build.type(index))
            outputs |= named
        if not graph.output:
            raise ModelError("the graph has no outputs")
        program = self.build.program(outputs)
        if self.build.conditions:
            program = program.where(tuple(self.build.conditions.values()))
        warn_of_host_calls(program, self.host_calls)
        return replace(program, labels=declared_names((*graph.input, *graph.output), program))

    def names(self, program: Program) -> dict[int, str]:
        """Per node of the program that was built last the ONNX node that it was made for."""
        built = origins(program, self.build.nodes, self.outputs)
        return {index: self.labels[old] for index, old in built.items() if old in self.labels}

    def calls(self, program: Program, opset: int) -> tuple[Call, ...]:
        """The ONNX nodes that became many of the program that was built last."""
        built = origins(program, self.build.nodes, self.outputs)
        places = {old: index for index, old in built.items()}
        own = opset_versions(self.model.opset_import).get("", opset)
        return calls_of(self.lowered, places, max(opset, own))

    def _inputs(self, graph: GraphProto) -> Scope:
        """Values of the graph's inputs and initializers; an initializer makes an input constant."""
        scope: Scope = {}
        constants = {}
        for tensor in graph.initializer:
            if tensor.name in constants:
                raise ModelError(f"two initializers are called '{tensor.name}'")
            constants[tensor.name] = tensor
        declared = input_types(graph, constants)
        types, given = bind_inputs(declared, self.given)
        self.values.ask(types, declared)
        for name, type_ in types.items():
            shape = [substitute(dim, self.sizes) for dim in type_.shape]
            scope[name] = self.build.input(name, type_.dtype, shape)
            check_given(f"input '{name}'", self.build.type(scope[name]))
        for name, value in given.items():
            scope[name] = bound_input(self.build, name, declared[name], value, scope)
        for name, tensor in constants.items():
            constant = initializer(tensor, self.weights.get(name))
            scope[name] = self.build.add("constant", (), constant)
            check_given(f"initializer '{name}'", constant.type)
        return scope

    def _walk(
        self, nodes: Sequence[NodeProto], scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> None:
        """Lower `nodes`, adding their results to `scope`."""
        if depth > MOST_NESTED:
            raise ModelError(f"functions call each other more than {MOST_NESTED} deep")
        for node in in_order(nodes, scope):
            if not any(node.output):
                continue
            first = len(self.build.nodes)
            if depth == 0:
                self.build.place = label(node)
            try:
                results = self._lower(node, scope, opsets, depth)
                self._check_sizes()
            except ProgramError as error:
                operands = [scope[name] for name in node.input if name]
                raise misfit(label(node), error, self.build, operands) from None
            except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
                raise ModelError(
                    f"{label(node)}: its inputs and attributes do not fit together: {error}"
                ) from error
            if depth == 0:
                self.labels |= dict.fromkeys(range(first, len(self.build.nodes)), short_label(node))
            for name, result in zip(node.output, results, strict=False):
                if name:
                    scope[name] = result

    def _lower(
        self, node: NodeProto, scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> Sequence[int]:
        domain = node.domain
        operands = tuple(scope[name] if name else None for name in node.input)
        user_op = find(domain, node.op_type)
        if user_op is not None:
            return [custom(self._context(node, domain, opsets, operands), user_op)]
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._inline(node, function, operands, None, depth)
        definition = DEFINITIONS.get((domain, node.op_type))
        if definition is not None:
            context = self._context(node, domain, opsets, operands)
            check_operands(context)
            return self._inline(node, definition.function(context), operands, None, depth)
        opset = checked_opset(node, domain, opsets, self.model.ir_version)
        context = with_new_name(Context(self.build, self.values, node, opset, operands))
        check_operands(context)
        if domain == "":
            refuse_other_kinds(context)
        self.build.takes_turns = self.takes_turns and not (
            self.build.has_chosen or _is_batched(context)
        )
        first, before = len(self.lowered), self.in_steps
        body = self._body_of(context, scope, opsets, depth)
        results = self._control_flow(context, scope, body, depth)
        if results is not None:
            if can_stand_alone(context.proto, self.functions) and not is_decided(context):
                if context.proto.op_type == "If":  # a call runs one branch of both
                    self.in_steps -= (self.in_steps - before) // 2
                outside = {name: scope[name] for name in read_outside(context.proto)}
                run = max(self.in_steps - before, 1)
                steps = Steps(run, first, len(self.lowered), outside)
                self.lowered.append(Lowered(context, results, steps))
            return results
        try:
            return self._defined(context, domain, opsets, depth)
        except UnknownValue as error:
            raise self._without_program(context, error, depth) from None

    def _defined(
        self, context: Context, domain: str, opsets: Mapping[str, int], depth: int
    ) -> Sequence[int]:
        """Results of a node by its definition here, or by the host's."""
        refused: SaturaError | None = None
        if domain == "" and context.proto.op_type in LOWERINGS:
            try:
                lowered = LOWERINGS[context.proto.op_type](context)
                made = [lowered] if isinstance(lowered, int) else lowered
                self.lowered.append(Lowered(context, made))
                return made
            except NoLowering:
                pass
            except UnknownValue as error:
                if any(x is not None and x < 0 for x in context.operands):
                    raise  # the host is given tensors alone
                refused = error
        if any(attribute.HasField("g") for attribute in context.proto.attribute):
            raise context.unsupported("loops and other control flow are not supported")
        return self._fall_back(context, domain, opsets, depth, refused)

    def _control_flow(
        self, context: Context, scope: Scope, body: Body, depth: int
    ) -> Sequence[int] | None:
        """Results of a node of control flow, which may be a program where it cannot run outside;
        None for one of another op."""
        may_stay = not depth and (self.values.asks or self.build.for_all_sizes)
        while True:
            self.build.may_stay = may_stay
            try:
                return control_flow(context, body)
            except UnsupportedError as error:
                outside = self._may_run_outside(context, scope, body, depth, error)
                may_be_program = may_stay and isinstance(error, LongRepetition)
                if isinstance(outside, OpenExtents) or not may_be_program:
                    raise outside from None
                may_stay = False

    def _without_program(
        self, node: Context, error: UnsupportedError, depth: int
    ) -> UnsupportedError:
        """The error of a node, or what says that it can stay in a model that is saved."""
        if not self.build.for_all_sizes:
            return error
        return OpenExtents(str(error)) if depth else without_types(node, error)

    def _context(
        self, node: NodeProto, domain: str, opsets: Mapping[str, int], operands: Operands
    ) -> Context:
        """What an op is defined by; ModelError where the model does not import its domain."""
        if domain not in opsets:
            raise ModelError(f"{label(node)}: the model does not import its domain")
        return Context(self.build, self.values, node, opsets[domain], operands)

    def _may_run_outside(
        self, node: Context, scope: Scope, body: Body, depth: int, error: UnsupportedError
    ) -> UnsupportedError:
        """The error of a node of control flow, or what says that it can run on the host."""
        is_chosen = self.build.has_chosen and not self.leaves_out
        if is_chosen and not isinstance(error, UnknownValue):
            return error  # at other sizes it may run here
        if _is_batched(node):
            return error
        if depth:
            return OpenExtents(str(error))  # once functions are inlined, the graph has it
        outputs, is_long = open_results(node, scope, self.model), isinstance(error, LongRepetition)
        if outputs is None and not is_long:
            outside = [scope[name] for name in read_outside(node.proto)]
            outputs = types_of_steps(node, body, outside)
        if outputs is None and self.build.for_all_sizes:
            return without_types(node, error)
        if outputs is None and node.proto.op_type != "If":
            error.args = (f"{error}; {_UNDECLARED}",)
        return error if outputs is None else OpenExtents(str(error), outputs, is_long=is_long)

    def _fall_back(
        self,
        context: Context,
        domain: str,
        opsets: Mapping[str, int],
        depth: int,
        refused: SaturaError | None,
    ) -> Sequence[int]:
        """The op's function body, or the host where there is none or it cannot be lowered."""
        body = function_body(context, domain)
        if body is not None:
            try:
                call = with_defaults(context.proto, context.opset, domain)
                made = self._inline(call, body, context.operands, opsets, depth)
                self.lowered.append(Lowered(context, made))
                return made
            except (UnsupportedError, ProgramError) as error:
                refused = refused or error
        self.random_count += 1
        try:
            declared = {} if depth else self.declared
            results, host_call = host(context, domain, self.random_count, declared)
        except UnsupportedError as error:
            if isinstance(error, OpenExtents):
                raise OpenExtents(str(refused or error), error.outputs) from None
            if isinstance(refused, OpenExtents):
                raise self._without_program(context, refused, depth) from None
            raise (refused or error) from None
        if host_call is not None:
            self.host_calls[host_call] = str(refused or f"{label(context.proto)} has no lowering")
        return results

    def _inline(
        self,
        node: NodeProto,
        function: FunctionProto,
        operands: Sequence[int | None],
        opsets: Mapping[str, int] | None,
        depth: int,
    ) -> Sequence[int]:
        """Lower a function's body in place of its call."""
        if len(operands) > len(function.input):
            raise ModelError(f"{label(node)}: the function takes {len(function.input)} inputs")
        scope = {
            name: operand
            for name, operand in zip(function.input, operands, strict=False)
            if operand is not None
        }
        self._count_body(node, len(function.node))
        given = {attribute.name: attribute for attribute in node.attribute}
        bound = {attribute.name: attribute for attribute in function.attribute_proto} | given
        absent = {name for name in function.input if name not in scope}
        nodes = [with_attributes(inner, bound, absent) for inner in function.node]
        imports = (
            opset_versions(function.opset_import) if function.opset_import else dict(opsets or {})
        )
        try:
            self._walk(nodes, scope, imports, depth + 1)
        except SaturaError as error:
            message = inside(label(node), str(error), depth)
            if isinstance(error, OpenExtents):
                raise OpenExtents(message) from None  # the graph has no such outputs
            error.args = (message,)
            raise
        for name, wanted in zip(function.output, node.output, strict=False):
            if wanted and name not in scope:
                raise ModelError(f"{label(node)}: its function does not compute '{name}'")
        return [scope.get(name, -1) for name in function.output]

    def _count_body(self, node: NodeProto, size: int) -> None:
        """Raise UnsupportedError where the bodies lowered so far and this one are too much."""
        self.inlined += 1 + size  # a body without nodes takes a step, too
        if self.inlined > MOST_INLINED:
            raise UnsupportedError(
                f"{label(node)}: the bodies of functions and loops have more than"
                f" {MOST_INLINED:,} nodes in all"
            )

    def _body_of(
        self, context: Context, scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> Body:
        """What lowers a graph inside a node of control flow."""

        def lower(graph: GraphProto, operands: Sequence[int]) -> Sequence[int]:
            self._count_body(context.proto, len(graph.node))
            self.in_steps += count_run(graph)
            inner = dict(scope)
            for tensor in graph.initializer:
                inner[tensor.name] = self.build.constant(array_of(tensor))
            if len(graph.input) != len(operands):
                raise context.wrong(f"its body takes {len(graph.input)} inputs")
            for value, operand in zip(graph.input, operands, strict=True):
                inner[value.name] = operand
            try:
                self._walk(graph.node, inner, opsets, depth + 1)
            except OpenExtents as error:  # no part of a model ends inside a body
                reason = inside(label(context.proto), str(error), depth)
                raise UnsupportedError(reason) from None
            for output in graph.output:
                if output.name not in inner:
                    raise context.wrong(f"its body does not compute '{output.name}'")
            return [inner[output.name] for output in graph.output]

        return lower

    def _check_sizes(self) -> None:
        for node in self.build.nodes[self.checked :]:
            check_size(node.type)
            for dim in node.type.shape:
                self.build.need_extent(dim)
        self.checked = len(self.build.nodes)


def _is_batched(node: Context) -> bool:
    """Whether it scans each element of a batch, as up to opset 8."""
    return node.proto.op_type == "Scan" and node.opset < 9
