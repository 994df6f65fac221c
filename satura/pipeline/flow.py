"""Control flow that data decide: Python takes each turn of it, and its bodies are programs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from satura.backend.plan.compiled import CompiledSchedule
from satura.pipeline.suppression import Suppression
from satura.pipeline.widened import fitting
from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.asked import Asked
from satura.rewrite.onnx.cut import Cut, constants_inside, constants_of, model_of
from satura.rewrite.onnx.files import ModelApart
from satura.rewrite.onnx.load import named_sizes
from satura.rewrite.onnx.made_sequences import members_among, sequence_of, tensors_among
from satura.rewrite.onnx.opsets import is_standard
from satura.rewrite.onnx.order import free_names, uses
from satura.rewrite.onnx.types import type_proto
from satura.rewrite.types.tensor_type import Array, DType, TensorType

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

Make = Callable[[ModelApart], CompiledSchedule]
Types = Mapping[str, TensorType]
Values = Mapping[str, Array]

_NUMBER, _TRUTH = TensorType(DType.I64, ()), TensorType(DType.BOOL, ())


class NodeInPython:
    """A node that the reference implementation runs."""

    bodies: tuple[CompiledSchedule, ...] = ()

    def __init__(self, part: Cut) -> None:
        self._evaluator = _evaluator(part.alone())
        self.reads: tuple[str, ...] = tuple(self._evaluator.input_names)

    def run(self, values: Values) -> Sequence[object]:
        """The results that have names, in order, for what the node reads, by name."""
        results = self._evaluator.run(None, {name: values[name] for name in self.reads})
        return [*results]


def _evaluator(model: ModelProto) -> ReferenceEvaluator:
    from satura.rewrite.program.reference import evaluator  # few models need it

    return evaluator(model)


class Body:
    """A graph inside of a node, compiled for the types that what it reads mostly has.

    The reference implementation runs what cannot be a program.
    """

    def __init__(self, model: ModelApart, graph: GraphProto, types: Types, make: Make) -> None:
        self._model, self._graph, self._make = model, graph, make
        self.inputs: Final = [value.name for value in graph.input]
        self.outputs: Final = [value.name for value in graph.output]
        constants = constants_of(model.proto.graph)
        outer = [name for name in dict.fromkeys(free_names(graph)) if name not in constants]
        self._sequences: Final = [name for name in outer if name not in types]
        self._tensors: Final = [name for name in (*outer, *self.inputs) if name in types]
        self._types = {name: types[name] for name in self._names(types)}
        self._making = Lock()
        self.runs = self._made(self._types)

    def run(self, values: Values) -> list[Array]:
        """What the graph computes of `values`, which may have more than it reads."""
        sizes = named_sizes(self._types, values)
        with self._making:
            types = fitting(self._types, self._names(values), values, sizes)
            if types != self._types:
                self.runs, self._types = self._made(types), types
            runs = self.runs
        if isinstance(runs, CompiledSchedule):
            results = runs.run({name: values[name] for name in runs.inputs})
        else:
            given = {name: values[name] for name in self._types}
            results = dict(zip(runs.output_names, [*runs.run(None, given)], strict=True))
        return [results[name] for name in self.outputs]

    def _names(self, values: Container[str]) -> list[str]:
        """What it takes, of sequences the tensors that are among `values`."""
        tensors = (members_among(name, values) for name in self._sequences)
        return [*self._tensors, *chain.from_iterable(tensors)]

    def _made(self, types: Types) -> CompiledSchedule | ReferenceEvaluator:
        model = self._model_for(types)
        try:
            return self._make(model)
        except (UnsupportedError, Asked):
            return _evaluator(model.whole())

    def _model_for(self, types: Types) -> ModelApart:
        graph = GraphProto(name=self._graph.name or "body")
        graph.node.extend(sequence_of(name, types) for name in self._sequences)
        graph.node.extend(self._graph.node)
        graph.initializer.extend(self._graph.initializer)
        graph.input.extend(
            helper.make_value_info(name, type_proto(type_)) for name, type_ in types.items()
        )
        graph.output.extend(ValueInfoProto(name=name) for name in dict.fromkeys(self.outputs))
        return model_of(graph, self._model, set(free_names(self._graph)) - types.keys())


class Flow:
    """An If, Loop or Scan whose bodies are programs."""

    def __init__(self, part: Cut, types: Types, make: Make) -> None:
        """`types` are those of what the node reads."""
        node = self._node = part.cut_node
        inside = constants_inside(node, part.model.proto.graph)
        read = (name for name in dict.fromkeys(uses(node)) if name not in inside)
        self.reads = tuple(tensors_among(read, types))
        self._numbers = {
            each.name: [*each.ints] if each.ints else each.i for each in node.attribute
        }
        self._bodies = {
            each.name: Body(part.model, each.g, self._types_in(each.g, types), make)
            for each in node.attribute
            if each.HasField("g")
        }
        self._run = {"If": self._choose, "Loop": self._repeat, "Scan": self._scan}[node.op_type]

    @property
    def bodies(self) -> tuple[CompiledSchedule, ...]:
        """What runs the bodies."""
        found = (body.runs for body in self._bodies.values())
        return tuple(each for each in found if isinstance(each, CompiledSchedule))

    def run(self, values: Values) -> Sequence[Array]:
        """The results that have names, in order, for what the node reads, by name."""
        pairs = zip(self._node.output, self._run(values), strict=False)
        return [result for name, result in pairs if name]

    def _types_in(self, graph: GraphProto, types: Types) -> Types:
        """The types of all that is known in a body."""
        given = [types.get(name) for name in self._node.input]
        if self._node.op_type == "Loop":
            given = [_NUMBER, _TRUTH, *given[2:]]
        elif self._node.op_type == "Scan":
            first = len(given) - self._scanned
            axes = self._per_tensor("scan_input_axes", self._scanned)
            rows = zip(given[first:], axes, strict=True)
            given = [*given[:first], *(x and _without(x, axis) for x, axis in rows)]
        pairs = zip(graph.input, given, strict=False)
        return {**types, **{value.name: type_ for value, type_ in pairs if type_ is not None}}

    def _choose(self, values: Values) -> Sequence[Array]:
        holds = bool(values[self._node.input[0]].ravel()[0])
        return self._bodies["then_branch" if holds else "else_branch"].run(values)

    def _repeat(self, values: Values) -> Sequence[Array]:
        most, goes_on = [*self._node.input, "", ""][:2]
        state = [values[name] for name in self._node.input[2:]]
        count = int(values[most].ravel()[0]) if most else None
        alive = values[goes_on].reshape(()) if goes_on else np.array(True)
        body, number = self._bodies["body"], 0
        rows: list[list[Array]] = []
        while alive and (count is None or number < count):
            turn = zip(body.inputs, (np.array(number), alive, *state), strict=True)
            alive, *results = body.run({**values, **dict(turn)})
            alive = alive.reshape(())
            state, number = results[: len(state)], number + 1
            rows.append(results[len(state) :])
        wanted = len(body.outputs) - 1 - len(state)
        return [*_own(state, rows), *_stacked(rows, [0] * wanted)]

    @property
    def _scanned(self) -> int:
        count = self._numbers["num_scan_inputs"]
        assert isinstance(count, int)
        return count

    def _scan(self, values: Values) -> Sequence[Array]:
        body, given = self._bodies["body"], [values[name] for name in self._node.input]
        first = len(given) - self._scanned
        state, sources = given[:first], given[first:]
        axes = self._per_tensor("scan_input_axes", len(sources))
        backward = self._per_tensor("scan_input_directions", len(sources))
        moved = [np.moveaxis(x, axis, 0) for x, axis in zip(sources, axes, strict=True)]
        moved = [x[::-1] if back else x for x, back in zip(moved, backward, strict=True)]
        rows: list[list[Array]] = []
        for elements in zip(*map(_elements, moved), strict=True):
            turn = zip(body.inputs, (*state, *elements), strict=True)
            results = body.run({**values, **dict(turn)})
            state = results[:first]
            rows.append(results[first:])
        wanted = len(body.outputs) - first
        ends = self._per_tensor("scan_output_directions", wanted)
        made = _stacked(rows, self._per_tensor("scan_output_axes", wanted), ends)
        return [*_own(state, rows), *made]

    def _per_tensor(self, name: str, count: int) -> list[int]:
        given = self._numbers.get(name)
        return given if isinstance(given, list) else [0] * count


def _elements(x: Array) -> Iterator[Array]:
    """What the first axis has; those of a vector are arrays, too, whose memory programs read."""
    return (x[at, ...] for at in range(len(x)))


def _without(type_: TensorType, axis: int) -> TensorType:
    at = axis % type_.rank
    return type_.with_shape((*type_.shape[:at], *type_.shape[at + 1 :]))


def _own(state: Sequence[Array], rows: Sequence[object]) -> list[Array]:
    """The state, in arrays that are not the caller's where no step has made it."""
    return [*state] if rows else [array.copy() for array in state]


def _stacked(
    rows: Sequence[Sequence[Array]], axes: Sequence[int], backward: Sequence[int] = ()
) -> Iterator[Array]:
    """The rows of each result as one array, with an axis of their own."""
    for at, axis in enumerate(axes):
        column = [row[at] for row in rows]
        if backward and backward[at]:
            column.reverse()
        yield np.stack(column, axis) if column else np.empty(0)


def in_python(
    part: Cut, types: Types, make: Make, threads: int
) -> Flow | Suppression | NodeInPython:
    """What runs the node of a cut, which reads values of these types."""
    node = part.cut_node
    if node.op_type in ("If", "Loop", "Scan"):
        return Flow(part, types, make)
    if node.op_type == "NonMaxSuppression" and is_standard(node.domain):
        return Suppression(node, threads)
    return NodeInPython(part)
