"""A model rewritten for a file: as one program, or in parts around nodes that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto

from satura.pipeline.models import Model
from satura.pipeline.phases import Progress
from satura.pipeline.rule_sets import Rules
from satura.pipeline.sizes import Dims, check_sizes, declared_sizes, middles
from satura.pipeline.stages import Searched
from satura.pipeline.written import rewrite_for_file
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.onnx.checks import opset_versions
from satura.rewrite.onnx.cut import OpenExtents, constants_inside, cut
from satura.rewrite.onnx.files import ModelApart, read_apart
from satura.rewrite.onnx.inlined import inlined
from satura.rewrite.onnx.inputs import declared_inputs, with_named_sizes
from satura.rewrite.onnx.made_sequences import tensors_among
from satura.rewrite.onnx.order import all_nodes
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.tensors import initializer
from satura.rewrite.onnx.types import type_proto
from satura.rewrite.onnx.upgrade import upgrade
from satura.rewrite.onnx.write.kept import with_lasting_graphs
from satura.rewrite.onnx.write.program import OLDEST_SAVED
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import Dim, symbols_of
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import TensorType, open_sizes


@dataclass(frozen=True)
class Optimized:
    """What was made of a model, and the searches for its programs."""

    made: Program | Parts
    searches: tuple[Searched, ...]

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """The types of the model's inputs, as the programs take them."""
        if isinstance(self.made, Parts):
            return self.made.inputs
        return self.searches[0].source.input_types

    @property
    def is_cheaper(self) -> bool:
        """Whether a rule made a program cheaper."""
        return any(str(each.source) != str(each.schedule.program) for each in self.searches)


def optimized(
    model: Model,
    rules: Rules,
    limits: Limits | None = None,
    progress: Progress | None = None,
    strict: bool = False,
    cost: CostModel | str | None = None,
    dims: Dims | None = None,
) -> Optimized:
    """What `satura.optimize` makes of a model: a program, or Parts where data decide extents.

    A node that they depend on stays as it is; what comes before it, and after it, is rewritten.
    Costs are those of `cost`, at the typical sizes that `dims` say: by default the same on every
    machine. Raises CallError for a size that the model does not have.
    """

    def rewrite(part: Model) -> Searched:
        return rewrite_for_file(part, rules, limits, progress, strict, cost, dims)

    if isinstance(model, Program):
        check_sizes(middles(dims), model.symbols)
        return _as_one(rewrite(model))
    apart = read_apart(model)
    check_sizes(middles(dims), declared_sizes(apart))
    try:
        return _as_one(rewrite(apart))
    except OpenExtents:
        whole = upgrade(apart)
        flat = inlined(whole) if whole.proto.functions else whole
        lasting = with_lasting_graphs(flat, OLDEST_SAVED)
        return _in_parts(with_named_sizes(lasting), rewrite)


def _as_one(found: Searched) -> Optimized:
    return Optimized(found.schedule.program, (found,))


@dataclass(frozen=True)
class _Kept:
    """A node that stays, the types of its results that programs can take, and the constants that it
    has for itself."""

    node: NodeProto
    types: Mapping[str, TypeProto]
    constants: Mapping[str, Constant]


_Step = Searched | _Kept
_Rewrite = Callable[[ModelApart], Searched]


def _in_parts(model: ModelApart, rewrite: _Rewrite) -> Optimized:
    steps = [*_steps(model, rewrite)]
    searches = tuple(each for each in steps if isinstance(each, Searched))
    kept = [each for each in steps if isinstance(each, _Kept)]
    graph = model.proto.graph
    calls = {(each.domain, each.op_type) for each in all_nodes(each.node for each in kept)}
    parts = Parts(
        tuple(x.node if isinstance(x, _Kept) else x.schedule.program for x in steps),
        _types_taken(declared_inputs(graph), [each.source for each in searches]),
        tuple(_outputs(graph, steps)),
        {name: constant for each in kept for name, constant in each.constants.items()},
        opset_versions(model.proto.opset_import),
        tuple(dict.fromkeys(_taken(steps))),
        tuple(each for each in model.proto.functions if (each.domain, each.name) in calls),
    )
    return Optimized(parts, searches)


def _steps(model: ModelApart, rewrite: _Rewrite) -> Iterator[_Step]:
    """The programs of a model, and the nodes between them, in the order in which they run."""
    rest: ModelApart | None = model
    while rest is not None:
        try:
            found = rewrite(rest)
        except OpenExtents as error:
            parts = cut(rest, error.outputs)
        else:
            yield found
            return
        ends = [value.name for value in parts.before.proto.graph.output]
        results: dict[str, TensorType] = {}
        for step in _steps(parts.before, rewrite) if ends else ():
            yield step
            results |= _results(step)
        for node in parts.nodes:
            types = {name: parts.open[name] for name in node.output if name in parts.open}
            yield _Kept(node, types, _constants_inside(node, rest))
        rest = parts.after({name: results[name] for name in tensors_among(ends, results)})


def _results(step: _Step) -> dict[str, TensorType]:
    """The types of what a program or a node computes; those of a node have sizes of its own."""
    if isinstance(step, _Kept):
        return OpenExtents("", step.types).types
    return {name: step.source.nodes[index].type for name, index in step.source.outputs}


def _constants_inside(node: NodeProto, model: ModelApart) -> dict[str, Constant]:
    graph = model.proto.graph
    names = constants_inside(node, graph)
    return {
        each.name: initializer(each, model.weights.get(each.name))
        for each in graph.initializer
        if each.name in names
    }


def _taken(steps: Sequence[_Step]) -> Iterator[SizeCondition]:
    """The sizes that programs take for equal, and those that data decide and programs take for 1:
    no input's type says so."""
    types: dict[str, TensorType] = {}
    for step in steps:
        if isinstance(step, Searched):
            yield from step.source.taken
            for name, type_ in step.source.input_types.items():
                for stated, own in zip(types.get(name, type_).shape, type_.shape, strict=True):
                    if own == 1 != stated:
                        yield SizeCondition(stated, own, "=", f"behind '{name}'")
        types |= _results(step)


def _types_taken(
    declared: Mapping[str, TensorType], programs: Sequence[Program]
) -> dict[str, TensorType]:
    """The types of a model's inputs, where programs take other sizes of it for open extents, or
    numbers, with these."""
    found, sizes = dict(declared), open_sizes(declared.values())
    for own in (program.input_types for program in programs):
        for name in own.keys() & found.keys():
            triples = zip(declared[name].shape, found[name].shape, own[name].shape, strict=True)
            dims = tuple(
                there if here == stated and symbols_of([there]) <= sizes else here
                for stated, here, there in triples
            )
            found[name] = found[name].with_shape(dims)
    return found


def _outputs(graph: GraphProto, steps: Sequence[_Step]) -> Iterator[ValueInfoProto]:
    """The results of a model that has these steps; extents that data decide as it declares them."""
    types: dict[str, TensorType] = {}
    labels: dict[str, Mapping[Dim, str]] = {}
    for step in steps:
        found = _results(step)
        types |= found
        labels |= dict.fromkeys(found, step.source.labels if isinstance(step, Searched) else {})
    sizes = open_sizes(declared_inputs(graph).values())
    declared = {value.name: value.type.tensor_type.shape.dim for value in graph.output}
    kept = {name for each in steps if isinstance(each, _Kept) for name in each.node.output}
    untyped = {value.name: value for value in graph.output if value.name in kept - types.keys()}
    for name in tensors_among(declared, {**types, **untyped}):
        if name in untyped:
            yield untyped[name]
            continue
        type_ = type_proto(types[name], labels[name])
        dims = type_.tensor_type.shape.dim
        for extent, own, stated in zip(
            types[name].shape, dims, declared.get(name, ()), strict=False
        ):
            is_name = stated.HasField("dim_value") or {stated.dim_param} - sizes - {""}
            if is_name and not symbols_of([extent]) <= sizes:
                own.CopyFrom(stated)
        yield ValueInfoProto(name=name, type=type_)
