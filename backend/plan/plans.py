"""Plans of one program for all sizes that calls come with, and the classes that they are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from satura.backend.constants import ConstantStore, fold_constants
from satura.backend.plan.lowered import Progress
from satura.backend.plan.plan import Plan, make_plan
from satura.backend.plan.size_class import SizeClass, size_class
from satura.backend.run.instances import Instances
from satura.backend.run.signatures import Signatures, Sizes, Values
from satura.backend.run.workspace import Workspaces
from satura.backend.sizes.size import is_equal
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import TensorType

Given = TypeVar("Given")
_NODE = 1 << 13  # bytes of a node, in the program and in what was made of it


@dataclass(frozen=True)
class Planned:
    """A plan, its bytes, and what runs its calls."""

    plan: Plan
    size: int
    instances: Instances
    record: Record | None


@dataclass
class Record:
    """The first sizes of a class, what holds for all of them, and what did not hold elsewhere."""

    sizes: Mapping[str, int]
    facts: Sequence[object]
    missed: object | None
    plans: int = 1
    uses: int = 1


@dataclass
class ClassRecord(Record):
    """A class with its lowering; sizes that have a program of their own have a plain Record."""

    found: SizeClass = field(kw_only=True)


@dataclass(frozen=True)
class ClassReport:
    """A class of sizes: sizes for which one lowering and the same kernels serve.

    `sizes` were the first, `facts` say which others are of the class. `missed` is the fact of the
    class used before that did not hold for `sizes`; None for the first class. `plans` counts how
    often sizes of the class were new, `uses` how often they were asked for. `values` are those of
    the inputs that decide shapes.
    """

    sizes: Mapping[str, int]
    facts: tuple[str, ...]
    missed: str | None
    plans: int
    uses: int
    values: Mapping[str, object]

    def __str__(self) -> str:
        given = {**self.values, **self.sizes}
        shown = ", ".join(f"{name}={each}" for name, each in given.items())
        why = f"not {self.missed}" if self.missed else "first sizes"
        facts = "\n".join(f"  {fact}" for fact in self.facts)
        return f"class of {shown} ({why}): {self.plans} sizes, {self.uses} uses\n{facts}"


@dataclass(frozen=True)
class Elsewhere:
    """What runs where the schedule for all other sizes does not.

    `types` are those of the inputs as they were declared: their sizes may be more than the
    schedule's, where it takes some for equal. `at` gives the schedule for sizes of all of them, or
    None where there is none.
    """

    types: Mapping[str, TensorType]
    at: Callable[[Mapping[str, int]], Schedule | None]


class Plans:
    """Makes plans of one program, one thread at a time; `values` are those that decided it, and
    `made` is what it was made as."""

    def __init__(
        self, schedule: Schedule, threads: int, elsewhere: Elsewhere | None = None,
        merging: str = "cost", values: Values = (), made: object = None,
    ) -> None:  # fmt: skip
        self.source = schedule
        self.schedule = fold_constants(schedule)
        self.elsewhere = elsewhere
        self.threads = threads
        self.merging = merging
        self.values = values
        self.made = made
        self.store = ConstantStore()
        self.workspaces = Workspaces()
        self.classes: tuple[ClassRecord, ...] = ()  # the last that was searched or made comes first
        nodes = (schedule.program.nodes[index] for index in schedule.program.inputs)
        self.inputs = {node.input_name: node.type for node in nodes}
        self.signatures = Signatures(self.inputs, elsewhere.types if elsewhere else None)

    @property
    def size(self) -> int:
        """About its bytes, without plans."""
        return self.store.size + _NODE * len(self.schedule.program.nodes)

    @property
    def outputs(self) -> dict[str, TensorType]:
        """Types of the outputs by name."""
        nodes = self.schedule.program.nodes
        return {name: nodes[index].type for name, index in self.schedule.program.outputs}

    def others(self, arguments: Mapping[str, Given]) -> dict[str, Given]:
        """The arguments that did not decide the program."""
        bound = {name for name, *_ in self.values}
        return {name: each for name, each in arguments.items() if name not in bound}

    def make(self, key: Sizes, progress: Progress | None) -> Planned:
        """The plan for new sizes."""
        sizes = dict(key)
        record: Record | None = None
        try:
            if not sizes.keys() <= self.schedule.program.symbols:
                raise ProgramError(f"the program takes some of {sorted(sizes)} for equal")
            if sizes:
                record = found = self._class(sizes, progress)
                plan = found.found.plan(sizes)
                record.plans += 1
                record.uses += 1
            else:
                plan = self._alone(self.schedule, progress)
        except ProgramError as error:
            schedule = None if self.elsewhere is None else self.elsewhere.at(sizes)
            if schedule is None:
                raise
            facts = [is_equal(symbol(name), size) for name, size in key]
            record = Record(sizes, facts, f"in the program of other sizes: {error}")
            plan = self._alone(fold_constants(schedule), progress)
        return Planned(plan, _bytes(plan), Instances(plan.instance, self.workspaces), record)

    def _alone(self, schedule: Schedule, progress: Progress | None) -> Plan:
        """The plan of a schedule for these sizes only."""
        plan = make_plan(schedule, self.store, self.threads, False, progress, self.merging)
        give_back_freed(self.store.size)
        return plan

    def report(self, record: Record) -> ClassReport:
        """What there is to say of a class."""
        missed = None if record.missed is None else str(record.missed)
        values = {
            name: np.frombuffer(data, dtype).reshape(shape).tolist()
            for name, dtype, shape, data in self.values
        }
        return ClassReport(
            dict(record.sizes), tuple(map(str, record.facts)), missed, record.plans, record.uses,
            values,
        )  # fmt: skip

    def _class(self, sizes: Mapping[str, int], progress: Progress | None) -> ClassRecord:
        missed = None
        for record in self.classes:
            fact = record.found.failing(sizes)
            if fact is None:
                break
            missed = missed or fact
        else:
            found = size_class(
                self.schedule, sizes, self.store, self.threads, progress, self.merging
            )
            record = ClassRecord(sizes, found.facts, missed, 0, 0, found=found)
            give_back_freed(self.store.size)
        others = (each for each in self.classes if each is not record)
        self.classes = (record, *others)  # at once: reports take no lock
        return record


def _bytes(plan: Plan) -> int:
    """About the memory of a plan with its usual single instance."""
    words = 3 * plan.routine.numbers.nbytes  # the plan's, the table's and those that calls set
    return words + 400 * len(plan.order) + 100 * len(plan.arena.offsets) + 4096
