"""What ONNX files have in place of a rewritten program: nodes of the model come back.

The loader splits some ONNX nodes for which a runtime has a single kernel. The rewritten program,
the program as it was loaded and the model's own nodes meet in the classes of the e-graph; among
them a choice is made anew, by what nodes cost a runtime that fuses little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from satura.pipeline.models import Model
from satura.pipeline.phases import Phases, Progress
from satura.pipeline.rates import cost_model
from satura.pipeline.rule_sets import Rules, rule_set
from satura.pipeline.sizes import Dims, typical_sizes
from satura.pipeline.stages import Searched, search
from satura.rewrite.egraph.classes import ENode
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.errors import SaturaError
from satura.rewrite.extract.choice_graph import ChoiceGraph
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.greedy import cheapest_dags, chosen
from satura.rewrite.extract.local_search import local_search
from satura.rewrite.onnx.calls import Call, Operand, Sizes
from satura.rewrite.onnx.load import load_with_calls
from satura.rewrite.onnx.write.emitter import COMMUTING, OPSET
from satura.rewrite.onnx.write.folding import with_constants
from satura.rewrite.onnx.write.program import opsets, write_program
from satura.rewrite.onnx.write.raised import Raised, raised
from satura.rewrite.ops import REGISTRY, Kind, Op
from satura.rewrite.program.program import Node, Program, ProgramBuilder
from satura.rewrite.types.attributes import Attribute, BinaryFn, Count, Parameter, Perm, Shape
from satura.rewrite.types.dims import Dim, symbol, symbols_of
from satura.rewrite.types.tensor_type import DType, TensorType, bytes_of

_NODE = 16_384.0  # bytes that a runtime moves in the time that it takes to start a node
_FLOP = 0.2  # bytes moved in the time of one
_TURNED = 0.25  # of a transpose's bytes: most vanish when a program is written
_OWN = 0.8  # what the model has costs this share: runtimes know the patterns that exporters write
_MARKS = ("QuantizeLinear", "DequantizeLinear")  # runtimes compute in integers between them
_SIZES = ("Shape", "Size")  # they read no elements
_MOVING = ("Transpose", "Reshape", "Identity")
_FREE = ("input", "constant", "item")
_PRODUCTS = ("matmul", "conv", "winograd", "attention", "recurrence")

_Make = Callable[[ProgramBuilder, Sequence[int]], int]


def rewrite_for_file(
    model: Model,
    rules: Rules,
    limits: Limits | None = None,
    progress: Progress | None = None,
    strict: bool = False,
    cost: CostModel | str | None = None,
    dims: Dims | None = None,
) -> Searched:
    """As `rewrite`; the program knows what is written in its place, and what was taken for
    equal. Costs are those of `cost`, on one thread, at the typical sizes that `dims` say."""
    phases = Phases(progress)
    source, calls = model, tuple[Call, ...]()
    with phases.phase("load"):
        if not isinstance(source, Program):
            source, calls = load_with_calls(source, OPSET)
    sizes = typical_sizes(source, dims)
    model_of_costs = cost_model(cost or "reference", sizes=sizes)
    found = search(source, rule_set(rules), limits, phases, strict, model_of_costs)
    made = found.schedule.program
    written = _Choice(made, source, calls, found.saturation, sizes).program() if calls else None
    program = replace(made, written=written, taken=source.taken, labels=source.labels)
    return replace(found, schedule=replace(found.schedule, program=program))


@dataclass(frozen=True)
class _Candidate:
    """A way to compute a class from others, its leaves."""

    home: int
    leaves: tuple[int, ...]
    cost: float
    make: _Make


class _Choice:
    """The candidates for the classes of one saturation, and the program of the cheapest."""

    def __init__(
        self, made: Program, source: Program, calls: Sequence[Call], saturation: Saturation,
        sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        """What is written is chosen by its cost at these `sizes`, and at usual ones of others."""
        self.sizes = sizes
        self.made = with_constants(made)
        self.size = len(saturation.classes.nodes)
        classes = dict(saturation.classes.homes)
        for home, nodes in enumerate(saturation.hidden):
            classes |= {node: home for node, _ in nodes}
        homes: list[int] = []
        for node in made.nodes:
            key = ENode(node.op.name, tuple(homes[x] for x in node.operands), node.attributes)
            homes.append(classes[key] if key in classes else self.fresh())
        known = [self.fresh() if home is None else home for home in saturation.program_classes]
        self.candidates = [
            *_of_program(made, homes, self.made, sizes),
            *_of_program(source, known, source, sizes, _OWN),
        ]
        for call in calls:
            times = _OWN * _OWN if call.inside else _OWN  # the model's are nodes of steps, too
            self.candidates += self.of_call(call, source, known, times)
        opset = max([opsets([self.made])[""], *(call.host.opset for call in calls)])
        types, reshapes = saturation.classes.types, _reshapes(saturation)
        products = {  # whose biases stay next to them
            home
            for program, places in ((made, homes), (source, known))
            for home, node in zip(places, program.nodes, strict=True)
            if node.op.name in _PRODUCTS
        }
        computed = {*homes, *known}
        readable = computed - products
        for to in computed:
            for of in readable.intersection(reshapes.get(to, ())):
                self.candidates.append(_reshape(to, of, types[to].shape))
        for op, call in _spelled_out(self.made, opset):
            self.candidates += self.of_call(call, self.made, homes)
            if _is_elementwise(op):
                self.candidates += self.before_reshapes(call, homes, types, reshapes)
        self.goals = [(name, homes[index]) for name, index in made.outputs]
        self.inputs = [homes[index] for index in made.inputs]

    def fresh(self) -> int:
        """A class that nothing has."""
        self.size += 1
        return self.size - 1

    def of_call(
        self, call: Call, source: Program, homes: Sequence[int], times: float = 1.0
    ) -> Iterator[_Candidate]:
        """The call in a class of its own, and its results."""
        reads = [x for x in call.operands if isinstance(x, int)]
        results = [x for x in call.results if x is not None]
        itself = self.fresh()
        is_known = all(source.known[x] for x in results) and not call.inside
        cost = 0.0
        if call.host.op_type not in _MARKS and not is_known:
            moved = {*results} if call.host.op_type in _SIZES else {*reads, *results}
            products = _products(source, reads, results, self.sizes)
            cost = call.nodes * _NODE + _bytes(source, moved, self.sizes) + products
            typical = source.typical | dict(self.sizes)
            cost += sum(bytes_of(each.typical(typical)) for each in call.inside)
            cost += sum(_NODE / 4 * _count_sizes(x) for x in call.operands if isinstance(x, Sizes))
        leaves = tuple(homes[x] for x in reads)

        def make(build: ProgramBuilder, operands: Sequence[int]) -> int:
            places = dict(zip(reads, operands, strict=True))
            return build.add("host", [_added(build, x, places) for x in call.operands], call.host)

        yield _Candidate(itself, leaves, cost * times, make)
        for number, result in enumerate(call.results):
            if result is not None:
                yield _Candidate(homes[result], (itself,), 0.0, _item(number))

    def before_reshapes(
        self,
        call: Call,
        homes: Sequence[int],
        types: Sequence[TensorType],
        reshapes: Mapping[int, Sequence[int]],
    ) -> Iterator[_Candidate]:
        """An elementwise call on what its operand is a reshape of: a product may be next to it."""
        (read,) = (x for x in call.operands if isinstance(x, int))
        (result,) = call.results
        assert result is not None
        for to in reshapes.get(homes[result], ()):
            for of in reshapes.get(homes[read], ()):
                if types[of] == types[to]:
                    places = [*homes]
                    places[read], places[result] = of, to
                    host = replace(call.host, outputs=(types[to],))
                    yield from self.of_call(replace(call, host=host), self.made, places)

    def program(self) -> Program:
        """The program of the cheapest choice."""
        graph = ChoiceGraph(
            self.size,
            tuple(each.home for each in self.candidates),
            tuple(each.leaves for each in self.candidates),
            tuple(each.cost for each in self.candidates),
            tuple(home for _, home in self.goals),
        )
        own = {self.candidates[at].home: at for at in reversed(range(len(self.made.nodes)))}
        picks = cheapest_dags(graph)
        start = min(chosen(graph, own), chosen(graph, picks), key=lambda each: each.cost)
        best = local_search(graph, start, picks)
        build = ProgramBuilder()
        places = {}
        for index, home in zip(self.made.inputs, self.inputs, strict=True):
            places[home] = build.add("input", (), *self.made.nodes[index].attributes)
        for _, goal in self.goals:
            stack = [goal]
            while stack:
                home = stack[-1]
                candidate = self.candidates[best.choice[home]]
                missing = [leaf for leaf in candidate.leaves if leaf not in places]
                if home not in places and not missing:
                    places[home] = candidate.make(build, [places[x] for x in candidate.leaves])
                stack = [*stack, *missing] if missing else stack[:-1]
        return build.program({name: places[home] for name, home in self.goals})


def _of_program(
    program: Program, homes: Sequence[int], folded: Program, sizes: Mapping[str, int],
    times: float = 1.0,
) -> list[_Candidate]:  # fmt: skip
    """The nodes of a program as they are in the `folded` one."""
    return [
        _Candidate(
            homes[at], tuple(homes[x] for x in node.operands), _cost(program, at, sizes) * times,
            partial(_add, node),
        )
        for at, node in enumerate(folded.nodes)
    ]  # fmt: skip


def _add(node: Node, build: ProgramBuilder, operands: Sequence[int]) -> int:
    return build.add(node.op, operands, *node.attributes)


def _spelled_out(program: Program, opset: int) -> Iterator[tuple[Raised, Call]]:
    """The ops of ONNX that nodes of a program compute together with nodes behind them."""
    for index, node in enumerate(program.nodes):
        op = raised(program.nodes, index, opset)
        if op is not None:
            yield op, op.call(index, node.type)


def _is_elementwise(op: Raised) -> bool:
    """Whether an op of one tensor and of scalars computes each element from one."""
    return (
        op.op_type in COMMUTING
        and "axis" not in op.attributes
        and len(op.reads) == 1
        and all(x is None or not x.type.rank for x in op.constants)
    )


def _reshapes(saturation: Saturation) -> dict[int, list[int]]:
    """The classes that are reshapes of each class, and those that it is a reshape of."""
    found: dict[int, list[int]] = {}
    for home, nodes in enumerate(saturation.classes.nodes):
        for node in (*nodes, *(node for node, _ in saturation.hidden[home])):
            if node.op == "reshape":
                found.setdefault(home, []).append(node.operands[0])
                found.setdefault(node.operands[0], []).append(home)
    return found


def _reshape(home: int, of: int, shape: tuple[Dim, ...]) -> _Candidate:
    """A class as the reshape of another: so the model's nodes take what rewritten ones give."""

    def make(build: ProgramBuilder, operands: Sequence[int]) -> int:
        return build.add("reshape", operands, Shape(shape))

    return _Candidate(home, (of,), _NODE / 4, make)


def _added(build: ProgramBuilder, x: Operand, places: Mapping[int, int]) -> int:
    """The operand of a call in the program that is built."""
    if isinstance(x, int):
        return places[x]
    return x.added(build) if isinstance(x, Sizes) else build.add("constant", (), x)


def _item(number: int) -> _Make:
    """The result of this number of a call."""

    def make(build: ProgramBuilder, operands: Sequence[int]) -> int:
        (call,) = operands
        return build.add("item", (call,), Count(number)) if number else call

    return make


def _cost(program: Program, index: int, sizes: Mapping[str, int]) -> float:
    """What a node costs a runtime that runs what it is written as, in bytes moved."""
    node = program.nodes[index]
    if node.op.name in _FREE or (node.op.name == "broadcast" and _is_implied(program, index)):
        return 0.0
    if program.known[index]:
        return 1.0
    each = _NODE + _bytes(program, {index, *node.operands}, sizes)
    count = 1
    types = tuple(program.nodes[x].type for x in node.operands)
    if node.op.kind is Kind.ELEMENTWISE:
        scalars = tuple(TensorType(each.dtype, ()) for each in types)
        count = max(_count_written(node.op, node.attributes, scalars), 1)
    elif node.op.kind is Kind.LAYOUT:
        if node.op.name == "transpose":
            return each * (_TURNED if _moves_one_axis(node.attributes[0]) else 1.0)
        alone = 0 if node.op.name == "reshape" else 1
        own = _NODE / 4 if not alone and not _is_before_a_bias(program, index) else each
        others = 0
        if any(type_.symbols for type_ in (node.type, *types)):
            others = _count_written(node.op, node.attributes, types) - alone
        return own + others * _NODE / 4
    elif node.op.kind is not Kind.CONTRACTION:
        count = _count_written(node.op, node.attributes, types)
    return count * each + _products(program, node.operands, [index], sizes)


def _is_implied(program: Program, index: int) -> bool:
    """Whether all that read a broadcast spread their operands by themselves."""
    readers = [program.nodes[user].op.name for user in program.users[index]]
    return index not in program.output_nodes and {*readers} <= {"binary", "select"}


def _is_before_a_bias(program: Program, index: int) -> bool:
    """Whether a node stands between a product and its bias, which runtimes add as they multiply."""
    if program.nodes[program.nodes[index].operands[0]].op.name not in _PRODUCTS:
        return False
    readers = [program.nodes[user] for user in program.users[index]]
    return any(
        each.op.name == "binary"
        and each.attributes[0] == BinaryFn("add")
        and any(program.known[x] for x in each.operands)
        for each in readers
    )


def _moves_one_axis(perm: Attribute) -> bool:
    """Whether the others keep their order, as between channels first and channels last."""
    assert isinstance(perm, Perm)
    order = list(perm.order)
    rests = ([axis for axis in order if axis != moved] for moved in order)
    return any(rest == sorted(rest) for rest in rests)


@lru_cache(maxsize=4096)
def _count_written(op: Op, attributes: tuple[Attribute, ...], types: tuple[TensorType, ...]) -> int:
    """How many nodes of ONNX a node is written as, beside those that only move elements."""
    build = ProgramBuilder()
    operands = [
        build.add("input", (), Parameter(f"x{at}", type_)) for at, type_ in enumerate(types)
    ]
    _add_sources(build, [dim for x in attributes if isinstance(x, Shape) for dim in x.dims])
    try:
        model, _ = write_program(build.program({"y": build.add(op, operands, *attributes)}))
    except SaturaError:
        return 1
    moving = () if op.kind is Kind.WINDOW else _MOVING  # those around it are not written elsewhere
    return sum(node.op_type not in moving for node in model.graph.node)


@lru_cache(maxsize=4096)
def _count_sizes(sizes: Sizes) -> int:
    """How many nodes of ONNX compute an operand of sizes."""
    build = ProgramBuilder()
    _add_sources(build, sizes.dims)
    model, _ = write_program(build.program({"y": sizes.added(build)}))
    return len(model.graph.node)


def _add_sources(build: ProgramBuilder, dims: Sequence[Dim]) -> None:
    """Inputs from which the sizes in `dims` can be read."""
    for name in sorted(symbols_of(dims)):
        build.add("input", (), Parameter(name, TensorType(DType.BOOL, (symbol(name),))))


def _bytes(program: Program, indices: Iterable[int], sizes: Mapping[str, int]) -> float:
    """The bytes of some tensors; what is broadcast is read as it was."""
    total, typical = 0.0, program.typical | dict(sizes)
    for index in indices:
        node = program.nodes[index]
        source = node.operands[0] if node.op.name == "broadcast" else index
        total += bytes_of(program.nodes[source].type.typical(typical))
    return total


def _products(
    program: Program, reads: Sequence[int], results: Sequence[int], sizes: Mapping[str, int]
) -> float:
    """The cost of the products between operands and results."""
    total, seen, stack = 0.0, {*reads}, [*results]
    typical = program.typical | dict(sizes)
    while stack:
        index = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        node = program.nodes[index]
        stack.extend(node.operands)
        if node.op.name in _PRODUCTS:
            types = [program.nodes[x].type.typical(typical) for x in node.operands]
            result = node.type.typical(typical)
            op = REGISTRY["conv"] if node.op.name == "winograd" else node.op  # as it is written
            total += _FLOP * op.flops(tuple(types), node.attributes, result)
    return total
