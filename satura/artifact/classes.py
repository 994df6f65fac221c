"""Classes of sizes in the file of a saved program: for all sizes of one, the same kernels serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from satura.artifact.container import Container, Writer, natural, of
from satura.artifact.tables import are_below, are_inside
from satura.artifact.types import type_of, type_row
from satura.backend.plan.buffers import Lifetime
from satura.backend.plan.sized import Sized, Table
from satura.backend.run.routine import FIRST_TENSOR, SMALL_WORK, Launch, Output, Routine
from satura.backend.run.runtime import ALL_THREADS
from satura.backend.sizes.size import DEFERRED, Call, Fact, Relation
from satura.rewrite.errors import ArtifactError, CallError
from satura.rewrite.program.memory import refuse_beyond_memory
from satura.rewrite.program.reader import Reader
from satura.rewrite.types.dims import Dim, SymbolicDim

if TYPE_CHECKING:
    from satura.backend.plan.size_class import SizeClass
    from satura.backend.run.class_report import ClassReport
    from satura.rewrite.extract.schedule import Schedule
    from satura.rewrite.program.program import Program
    from satura.rewrite.types.tensor_type import Array, TensorType

_PACKAGE = "satura.backend."


def class_row(
    writer: Writer, found: SizeClass, report: ClassReport, places: Mapping[int, int],
    schedule: Schedule,
) -> dict[str, object] | None:  # fmt: skip
    """What a header says of a class that is reported so; None where text does not tell all of it.
    `places` are the kernels' numbers by address, `schedule` is that of most sizes."""
    sized, lowered = found.sized, found.lowered
    dims = [*sized.dims, *(each.dim for each in sized.facts)]
    dims += [each for call in sized.calls.values() for each in call.arguments]
    if any(_dim(_text(each)) != each for each in dims):
        return None
    return {
        "first": dict(report.sizes),
        "missed": report.missed,
        "facts": [[_text(each.dim), each.relation.value, each.holds] for each in sized.facts],
        "calls": [
            [name, f"{call.function.__module__} {call.function.__name__}",
             list(map(_text, call.arguments))]
            for name, call in sized.calls.items()
        ],
        "dims": list(map(_text, sized.dims)),
        "steps": [[places[step.kernel], step.first] for step in lowered.steps],
        "scratches": sized.scratches,
        "buffers": [[each.first, each.last] for each in sized.buffers],
        "table": [writer.add(each) for each in sized.table],
        "outputs": [region for _, region in lowered.outputs],
        "types": None if found.schedule is schedule else _types(found.schedule.program),
        "computed": len(lowered.places) - len(found.schedule.program.inputs),
        "constants": len(found.store.arrays),
    }  # fmt: skip


def _types(program: Program) -> list[object]:
    """The types of the outputs, in order."""
    return [type_row(program.nodes[index].type) for index in program.output_nodes]


class ReadyClass:
    """A class in a file, whose launches have addresses of kernels.

    `types` are those of its outputs, None where they are the program's.
    """

    def __init__(
        self, file: Container, row: Mapping[str, object], addresses: Sequence[int],
        launched: Set[int], constants: Sequence[Array], inputs: int,
    ) -> None:  # fmt: skip
        """Raise ArtifactError and others where the row is not as it was written."""
        self.first = {name: natural(size) for name, size in of(dict, row["first"]).items()}
        self.missed = None if row["missed"] is None else of(str, row["missed"])
        facts = [of(list, each) for each in of(list, row["facts"])]
        calls = [of(list, each) for each in of(list, row["calls"])]
        steps = [tuple(map(natural, each)) for each in of(list, row["steps"])]
        arrays = [
            file.section(natural(each)).view(np.int64) for each in of(list, row["table"])
        ]  # fmt: skip
        self.sized = Sized(
            tuple(
                Fact(_symbolic(dim), Relation(what), of(bool, holds)) for dim, what, holds in facts
            ),
            {of(str, name): _call(of(str, function), dims) for name, function, dims in calls},
            tuple(map(_dim, of(list, row["dims"]))),
            len(steps),
            natural(row["scratches"]),
            tuple(
                Lifetime(number, 0, natural(first), natural(last))
                for number, (first, last) in enumerate(of(list, row["buffers"]))
            ),
            Table(*arrays),
        )
        self.computed = natural(row["computed"])
        self.outputs = [natural(region) for region in of(list, row["outputs"])]
        types = row["types"]
        self.types = None if types is None else tuple(map(type_of, of(list, types)))
        self.constants = tuple(constants[: natural(row["constants"])])
        self._check(steps, launched, natural(row["constants"]), inputs)
        self._launches = [
            tuple(Launch(addresses[kernel], first, width) for width in (1, ALL_THREADS))
            for kernel, first in steps
        ]

    def _check(
        self, steps: Sequence[tuple[int, ...]], launched: Set[int], constants: int, inputs: int
    ) -> None:
        """Raise ArtifactError where something leaves its table."""
        table, sized = self.sized.table, self.sized
        words, buffers = len(table.numbers), len(sized.buffers)
        last = FIRST_TENSOR + inputs + self.computed + constants
        computed = range(FIRST_TENSOR + inputs, last - constants)
        values = len(sized.dims) - 1 - sized.steps - buffers - sized.scratches
        inside = (
            are_inside(words, table.regions, last, self.outputs, steps, launched)
            and sum(each in computed for each in {*self.outputs}) == self.computed
            and len(self.constants) == constants
            and len(table.places) == len(table.which)
            and len(table.in_arena) == len(table.buffers)
            and all(
                are_below(each, most)
                for each, most in (
                    (table.places, words), (table.which, values), (table.in_arena, words),
                    (table.buffers, buffers),
                )
            )
        )  # fmt: skip
        if not inside:
            raise ArtifactError("a class of sizes leaves its tables")

    def routine(
        self, sizes: Mapping[str, int], inputs: Mapping[str, TensorType],
        outputs: Mapping[str, TensorType], threads: int,
    ) -> Routine:  # fmt: skip
        """What a call of sizes of this class does. Raises CallError where memory cannot hold it."""
        found = self.sized.at(sizes)
        own = outputs.values() if self.types is None else self.types
        types = {name: each.concrete(sizes) for name, each in zip(outputs, own, strict=True)}
        named = ((f"output {name!r}", type_) for name, type_ in types.items())
        refuse_beyond_memory(found.results + found.arena.size, named, CallError)
        launches = zip(self._launches, found.works, strict=True)
        return Routine(
            {name: type_.concrete(sizes) for name, type_ in inputs.items()},
            tuple(
                Output(name, type_, region)
                for (name, type_), region in zip(types.items(), self.outputs, strict=True)
            ),
            self.computed,
            self.constants,
            tuple(pair[work > SMALL_WORK] for pair, work in launches),
            found.words,
            self.sized.table.regions,
            found.arena.size,
            found.scratch,
            threads,
        )


def _text(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def _dim(value: object) -> Dim:
    if type(value) is int:
        return value
    line = Reader(of(str, value))
    found = line.dim()
    line.expect_end()
    return found


def _symbolic(value: object) -> SymbolicDim:
    found = _dim(value)
    if not isinstance(found, SymbolicDim):
        raise ArtifactError("a fact does not depend on sizes")
    return found


def _call(function: str, dims: object) -> Call:
    """A call of a function that satura itself defers."""
    module, _, _ = function.partition(" ")
    if module.startswith(_PACKAGE):
        import_module(module)
    if function not in DEFERRED:
        raise ArtifactError(f"there is no function '{function}'")
    return Call(DEFERRED[function], tuple(map(_dim, of(list, dims))))
