"""ONNX in: a model file becomes a Program of canonical ops.

Every node is lowered by its own definition; nothing is folded, cancelled or simplified here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    ValueInfoProto,
    checker,
    defs,
)

from satura.rewrite.attributes import HostCall
from satura.rewrite.dims import Dim, symbol
from satura.rewrite.errors import ModelError, ProgramError, SaturaError, UnsupportedError
from satura.rewrite.ir import Program
from satura.rewrite.onnx import (
    activations,
    contraction,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    padding,
    quantize,
    reductions,
    resize,
    shapes,
    windows,
)
from satura.rewrite.onnx.context import LOWERINGS, Context, Lowered, NoLowering
from satura.rewrite.onnx.fallback import function_body, host, with_defaults
from satura.rewrite.onnx.files import array_of, read_model
from satura.rewrite.onnx.host import HostFallbackWarning
from satura.rewrite.onnx.order import in_order, label
from satura.rewrite.onnx.tensors import Tensors
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.onnx.values import Values
from satura.rewrite.types import TensorType

FAMILIES = (
    activations,
    contraction,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    padding,
    quantize,
    reductions,
    resize,
    shapes,
    windows,
)
OLDEST_OPSET = 7
MOST_ELEMENTS = 2**36
_MOST_NESTED = 64

Scope = dict[str, int]


def load(model: str | Path | bytes | ModelProto) -> Program:
    """The program of an ONNX model, given as a path, its bytes, or a ModelProto.

    Raises ModelError for a model that is broken, UnsupportedError for one that uses something
    satura cannot run; both name the node. Warns with HostFallbackWarning for nodes that only the
    reference implementation of the onnx package can run.
    """
    return _Importer(read_model(model)).program()


class _Importer:
    """The state of one load: the builder, symbolic values, functions and host calls met so far."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.build = Tensors()
        self.values = Values(self.build)
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.host_calls: dict[HostCall, str] = {}
        self.random_count = 0
        self.checked = 0

    def program(self) -> Program:
        """The program of the model's graph."""
        graph = self.model.graph
        opsets = _opsets(self.model.opset_import)
        scope = self._inputs(graph)
        self._walk(graph.node, scope, opsets, 0)
        outputs: dict[str, int] = {}
        if not graph.output:
            raise ModelError("the graph has no outputs")
        for output in graph.output:
            if output.name not in scope:
                raise ModelError(f"output '{output.name}' is computed by no node")
            if output.name in outputs:
                raise ModelError(f"two outputs are called '{output.name}'")
            outputs[output.name] = scope[output.name]
            self._check_declared(output, self.build.type(scope[output.name]))
        program = self.build.program(outputs)
        self._warn(program)
        return program

    def _inputs(self, graph: GraphProto) -> Scope:
        """Values of the graph's inputs and initializers; an initializer makes an input constant."""
        scope: Scope = {}
        if graph.sparse_initializer:
            raise UnsupportedError("sparse initializers are not supported; make them dense")
        constants = {}
        for tensor in graph.initializer:
            if tensor.name in constants:
                raise ModelError(f"two initializers are called '{tensor.name}'")
            constants[tensor.name] = tensor
        for name, dtype_and_shape in _input_types(graph, constants).items():
            if name in scope:
                raise ModelError(f"two inputs are called '{name}'")
            scope[name] = self.build.input(name, dtype_and_shape.dtype, dtype_and_shape.shape)
        for name, tensor in constants.items():
            scope[name] = self.build.constant(array_of(tensor))
        return scope

    def _walk(
        self, nodes: Sequence[NodeProto], scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> None:
        """Lower `nodes`, adding their results to `scope`."""
        if depth > _MOST_NESTED:
            raise ModelError(f"functions call each other more than {_MOST_NESTED} deep")
        for node in in_order(nodes, scope):
            try:
                results = self._lower(node, scope, opsets, depth)
                self._check_sizes()
            except ProgramError as error:
                raise self._misfit(node, scope, error) from None
            for name, result in zip(node.output, results, strict=False):
                if name:
                    scope[name] = result

    def _misfit(self, node: NodeProto, scope: Scope, error: ProgramError) -> SaturaError:
        """What a type error of the builder means to the user."""
        symbolic = any(self.build.type(scope[name]).symbols for name in node.input if name)
        hint = "; it may depend on symbolic sizes: give equal axes equal names, or fix them"
        kind = UnsupportedError if symbolic else ModelError
        return kind(f"{label(node)}: {error}{hint if symbolic else ''}")

    def _lower(
        self, node: NodeProto, scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> Sequence[int]:
        domain = "" if node.domain == "ai.onnx" else node.domain
        operands = tuple(scope[name] if name else None for name in node.input)
        function = self.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._inline(node, function, operands, None, depth)
        opset = _check_node(node, domain, opsets, self.model.ir_version)
        context = Context(self.build, self.values, node, opset, operands)
        if domain == "" and node.op_type == "If":
            return self._branch(context, scope, opsets, depth)
        if domain == "" and node.op_type in LOWERINGS:
            try:
                return _sequence(LOWERINGS[node.op_type](context))
            except NoLowering:
                pass
        if any(attribute.HasField("g") for attribute in node.attribute):
            raise context.unsupported("loops and other control flow are not supported")
        return self._fall_back(context, domain, opsets, depth)

    def _fall_back(
        self, context: Context, domain: str, opsets: Mapping[str, int], depth: int
    ) -> Sequence[int]:
        """The op's function body, or the host where there is none or it cannot be lowered."""
        body = function_body(context, domain)
        if body is not None:
            try:
                call = with_defaults(context.proto, context.opset, domain)
                return self._inline(call, body, context.operands, opsets, depth)
            except (UnsupportedError, ProgramError):
                pass
        self.random_count += 1
        results, call = host(context, domain, self.random_count)
        self.host_calls[call] = label(context.proto)
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
        given = {attribute.name: attribute for attribute in node.attribute}
        bound = {attribute.name: attribute for attribute in function.attribute_proto} | given
        absent = {name for name in function.input if name not in scope}
        nodes = [_bound(inner, bound, absent) for inner in function.node]
        imports = _opsets(function.opset_import) if function.opset_import else dict(opsets or {})
        try:
            self._walk(nodes, scope, imports, depth + 1)
        except SaturaError as error:
            raise type(error)(f"{label(node)}: in its body: {error}") from None
        results = zip(function.output, node.output, strict=False)
        for name, wanted in results:
            if wanted and name not in scope:
                raise ModelError(f"{label(node)}: its function does not compute '{name}'")
        return [scope.get(name, -1) for name in function.output]

    def _branch(
        self, context: Context, scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> Sequence[int]:
        """The branch of an If that a known condition selects."""
        known = self.values.of(context[0])
        if known is None or known.size != 1:
            raise context.unsupported("its condition is not known; make it a constant")
        name = "then_branch" if known.ravel()[0] else "else_branch"
        graph = next((a.g for a in context.proto.attribute if a.name == name), None)
        if graph is None:
            raise context.wrong(f"{name} is missing")
        inner = dict(scope)
        for tensor in graph.initializer:
            inner[tensor.name] = self.build.constant(array_of(tensor))
        self._walk(graph.node, inner, opsets, depth + 1)
        for output in graph.output:
            if output.name not in inner:
                raise context.wrong(f"its {name} does not compute '{output.name}'")
        return [inner[output.name] for output in graph.output]

    def _check_sizes(self) -> None:
        for node in self.build.nodes[self.checked :]:
            size = node.type.size
            if isinstance(size, int) and size > MOST_ELEMENTS:
                raise ProgramError(f"{node.type} has {size} elements, more than any memory holds")
        self.checked = len(self.build.nodes)

    def _check_declared(self, output: ValueInfoProto, found: TensorType) -> None:
        """Compare an output's declared type with what its nodes compute."""
        if output.type.WhichOneof("value") != "tensor_type":
            return
        declared = output.type.tensor_type
        fits = declared.elem_type == 0 or dtype_of(declared.elem_type) is found.dtype
        if declared.HasField("shape"):
            dims = declared.shape.dim
            fits = fits and len(dims) == found.rank
            for dim, extent in zip(dims, found.shape, strict=False):
                if dim.WhichOneof("value") == "dim_value" and isinstance(extent, int):
                    fits = fits and dim.dim_value == extent
        if not fits:
            shown = [
                d.dim_value if d.HasField("dim_value") else d.dim_param or "?"
                for d in declared.shape.dim
            ]
            raise ModelError(
                f"output '{output.name}' is declared with shape {shown}, computed is {found}"
            )

    def _warn(self, program: Program) -> None:
        for node in program.nodes:
            call = node.attributes[0] if node.attributes else None
            if isinstance(call, HostCall):
                warnings.warn(
                    f"{self.host_calls[call]} has no lowering: it runs on the slow reference"
                    " implementation of the onnx package",
                    HostFallbackWarning,
                    stacklevel=4,
                )


def _sequence(results: Lowered) -> Sequence[int]:
    return [results] if isinstance(results, int) else results


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain. Raises ModelError for a version of ONNX's own ops that is not known."""
    versions: dict[str, int] = {}
    for entry in imports:
        versions["" if entry.domain == "ai.onnx" else entry.domain] = entry.version
    newest = defs.onnx_opset_version()
    if "" in versions and not OLDEST_OPSET <= versions[""] <= newest:
        raise UnsupportedError(
            f"opset {versions['']} is not supported: this version reads {OLDEST_OPSET} to {newest};"
            " convert the model with onnx.version_converter or install another onnx"
        )
    return versions


def _check_node(node: NodeProto, domain: str, opsets: Mapping[str, int], ir_version: int) -> int:
    """The opset that the node's op is read in; errors for unknown domains, ops and attributes."""
    known = {schema.domain for schema in defs.get_all_schemas()} if domain else {""}
    if domain not in opsets or domain not in known:
        raise UnsupportedError(
            f"{label(node)}: nothing is known about the domain '{node.domain}'; export the model"
            " with standard ops, or with a function that defines this one"
        )
    version = opsets[domain]
    try:
        defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        raise ModelError(
            f"{label(node)}: there is no op '{node.op_type}' in opset {version}"
            + (f" of domain '{domain}'" if domain else "")
        ) from None
    if any(attribute.HasField("g") for attribute in node.attribute):
        return version  # the checker would ask for the names around the node
    context = checker.C.CheckerContext()
    context.ir_version = max(3, ir_version)
    context.opset_imports = dict(opsets)
    try:
        checker.check_node(node, context)
    except checker.ValidationError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "it is not valid")
        raise ModelError(f"{label(node)}: {reason.strip()}") from None
    return version


def _input_types(graph: GraphProto, constants: Mapping[str, object]) -> dict[str, TensorType]:
    """Types of the inputs that are not constants; unnamed open axes get names of their own."""
    taken = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
    types: dict[str, TensorType] = {}
    for value in graph.input:
        if value.name in constants:
            continue
        if value.name in types:
            raise ModelError(f"two inputs are called '{value.name}'")
        types[value.name] = _input_type(value, taken)
    return types


def _input_type(value: ValueInfoProto, taken: set[str]) -> TensorType:
    if value.type.WhichOneof("value") != "tensor_type":
        kind = value.type.WhichOneof("value") or "unknown"
        raise UnsupportedError(
            f"input '{value.name}' is of kind {kind}; only tensors are supported"
        )
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        raise UnsupportedError(f"input '{value.name}' has no rank; declare its shape")
    dims: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.WhichOneof("value") == "dim_value":
            if dim.dim_value < 0:
                raise ModelError(f"input '{value.name}': axis {axis} has extent {dim.dim_value}")
            dims.append(dim.dim_value)
        elif dim.dim_param:
            dims.append(symbol(dim.dim_param))
        else:
            name = f"{value.name}_{axis}"
            while name in taken:
                name += "_"
            taken.add(name)
            dims.append(symbol(name))
    try:
        return TensorType(dtype_of(tensor.elem_type), tuple(dims))
    except UnsupportedError as error:
        raise UnsupportedError(f"input '{value.name}': {error}") from None


def _bound(
    node: NodeProto, attributes: Mapping[str, AttributeProto], absent: set[str]
) -> NodeProto:
    """A function's node with attribute references resolved and left-out inputs emptied."""
    result = NodeProto()
    result.CopyFrom(node)
    del result.attribute[:], result.input[:]
    result.input.extend("" if name in absent else name for name in node.input)
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            found = attributes.get(attribute.ref_attr_name)
            if found is None:
                continue
            copy = result.attribute.add()
            copy.CopyFrom(found)
            copy.name = attribute.name
            continue
        copy = result.attribute.add()
        copy.CopyFrom(attribute)
        for graph in [copy.g] if copy.HasField("g") else copy.graphs:
            inner = [_bound(child, attributes, absent) for child in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
    return result
