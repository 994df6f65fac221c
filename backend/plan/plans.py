"""Plans of one program for all sizes that calls come with, and the classes that they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from satura.backend.constants import ConstantStore, fold_constants
from satura.backend.lower.walk import LoweringError
from satura.backend.plan.kernels import refused_dispatches
from satura.backend.plan.lowered import Progress
from satura.backend.plan.plan import Plan, make_plan
from satura.backend.plan.size_class import SizeClass, size_class
from satura.backend.run.class_report import ClassReport
from satura.backend.run.instances import Instances
from satura.backend.run.part import Planned, Program, ShownTypes
from satura.backend.run.signatures import Sizes, Values
from satura.rewrite.errors import CallError, ModelError, ProgramError
from satura.rewrite.extract.schedule import Refusals, Schedule
from satura.rewrite.program.program import Program as Source
from satura.rewrite.system.heap import give_back_freed
from satura.rewrite.types.size_condition import sizes_text
from satura.rewrite.types.tensor_type import TensorType

if TYPE_CHECKING:
    from satura.rewrite.onnx.files import ModelApart

MOST_MORE = 256 << 20  # bytes of constants, beyond four times those of the first sizes
_MOST_CLASSES = 128  # and schedules that others than the first sizes have: those used last
_NODE = 1 << 13  # bytes of a node, in the program and in what was made of it
_CLASS = 1 << 16  # bytes of a class, which lives as long as any of its plans


def plan_of(planned: Planned) -> Plan:
    """The plan of what was made in this process. Raises CallError where there are several."""
    if not isinstance(planned.plan, Plan):
        raise CallError(
            "Python takes the steps or a branch of a node at these sizes: there is not one plan to"
            " look at"
        )
    return planned.plan


@dataclass(frozen=True)
class Elsewhere:
    """What runs where the schedule for all other sizes does not.

    `types` are those of the inputs as they were declared: their sizes may be more than the
    schedule's, where it takes some for equal. `at` gives a schedule that runs at given sizes, and
    where it leaves some open at further ones, or None where it cannot be made here; or for all
    sizes at which Python takes the steps or a branch of a node the one program around it. It
    searches `model` with satura's rules of the names that `rules` gives, and with others, and
    raises ModelError where the model does not run. `shown` are the types of inputs and outputs at
    all these sizes, where the schedule has fixed some.
    """

    types: Mapping[str, TensorType]
    at: Callable[[Mapping[str, int]], Schedule | Program | None]
    model: ModelApart | None = None
    rules: Callable[[], Sequence[str]] = tuple
    shown: ShownTypes | None = None


Again: TypeAlias = Callable[[Refusals], tuple[Schedule, object]]
"""Makes a schedule of dispatches that are not refused, and says how it was made."""


class Plans(Program):
    """A compiled program: its classes of sizes, and its constants. It was `made` as a caller says,
    from `source`, whose constants are not folded."""

    def __init__(
        self, source: Schedule, threads: int, elsewhere: Elsewhere | None = None,
        merging: str = "cost", values: Values = (), made: object = None,
        again: Again | None = None,
    ) -> None:  # fmt: skip
        nodes, outputs = source.program.nodes, source.program.outputs
        super().__init__(
            values,
            {nodes[index].input_name: nodes[index].type for index in source.program.inputs},
            {name: nodes[index].type for name, index in outputs},
            elsewhere.types if elsewhere else None,
            elsewhere.shown if elsewhere else None,
        )
        self._again = again
        self._take(source, made)
        self.elsewhere = elsewhere
        self.threads = threads
        self.merging = merging
        self.store, self._first_size = ConstantStore(), 0
        self.on_class: Callable[[], object] = tuple  # called when there is a new class

    def _take(self, source: Schedule, made: object) -> None:
        self.source, self.made = source, made
        self.schedule = fold_constants(source)
        self.known: tuple[tuple[ClassReport, SizeClass], ...] = ()  # the last used comes first
        self._others: list[tuple[Mapping[str, int], Schedule]] = []  # and the sizes made for first
        self._in_turns: Program | None = None

    @property
    def size(self) -> int:
        own = self.store.size + _NODE * len(self.schedule.program.nodes) + super().size
        return own + (self._in_turns.size if self._in_turns else 0)

    @property
    def classes(self) -> list[ClassReport]:
        own = [report for report, _ in self.known]
        own += [each for each in super().classes if all(each is not one for one in own)]
        return own + (self._in_turns.classes if self._in_turns else [])

    def looked_at(self, sizes: Mapping[str, int]) -> tuple[Plan, ConstantStore]:
        """The plan for these sizes and the constants that it has, to look at: what is made for it
        is not kept, so that no class or saved program is another one afterwards."""
        key = tuple(sorted(sizes.items()))
        for known, planned in self.ready:
            if known == key:
                return plan_of(planned), self.store
        for report, found in self.known:
            if report.sizes.keys() == sizes.keys() and found.failing(sizes) is None:
                return found.plan(sizes), self.store
        apart = Plans(
            self.source, self.threads, self.elsewhere, self.merging, self.values, self.made,
            self._again,
        )  # fmt: skip
        return plan_of(apart.planned(key)), apart.store

    def _made(self, key: Sizes, progress: Progress | None) -> Planned:
        """The plan for new sizes. Where a dispatch cannot be lowered, another schedule is made, of
        those that can be here and at all sizes before. Raises ProgramError where there is none."""
        try:
            return self._plan(key, progress)
        except LoweringError:
            if self._again is None:
                raise
            met = [dict(key)]
            met += [dict(each.sizes) for each, of in self.known if of.schedule is self.schedule]

            def refusals(schedule: Schedule) -> dict[int, str]:
                found: dict[int, str] = {}
                for sizes in met:
                    found |= refused_dispatches(schedule, self.threads, sizes)
                return found

            self._take(*self._again(refusals))
            self.release()
            return self._plan(key, progress)

    def _plan(self, key: Sizes, progress: Progress | None) -> Planned:
        """The plan for new sizes: of their class, or where no symbol is open for these sizes only.
        Raises ProgramError where there is none."""
        sizes, report = self._of_program(dict(key)), None
        if not sizes:
            plan = self._alone(self.schedule, progress)
        else:
            report, found = self._class(sizes, progress)
            if isinstance(found, Program):
                return found.planned(key)
            self._first_size = self._first_size or self.store.size
            plan = found if isinstance(found, Plan) else found.plan(sizes)
            assert report is not None
            report.plans += 1
            report.uses += 1
        instances = Instances(plan.instance, self.workspaces)
        is_first = report is not None and report.plans == 1
        size = _bytes(plan) + (_CLASS if is_first else 0)
        return Planned(instances.run, instances.bind, size, report, plan)

    def release(self) -> None:
        super().release()
        if self._in_turns is not None:
            self._in_turns.release()

    def _of_program(self, sizes: dict[str, int]) -> dict[str, int]:
        """Declared sizes as those of the program, where it takes the others for what they are."""
        own = {name: sizes[name] for name in sizes if name in self.schedule.program.symbols}
        if len(own) == len(sizes) or self.declared is None:
            return sizes
        same = all(
            type_.concrete(own) == self.declared[name].concrete(sizes)
            for name, type_ in self.inputs.items()
        )
        return own if same else sizes

    def _alone(self, schedule: Schedule, progress: Progress | None) -> Plan:
        """The plan of a schedule without symbols."""
        plan = make_plan(schedule, self.store, self.threads, False, progress, self.merging)
        give_back_freed(self.store.size)
        return plan

    def _class(
        self, sizes: Mapping[str, int], progress: Progress | None
    ) -> tuple[ClassReport | None, SizeClass | Plan | Program]:
        """The class of sizes; where the program excludes them one of another program, or the plan
        of one for these sizes only, or what has Python between two. Raises ProgramError where there
        is none."""
        missed = None
        for known in self.known:
            if known[0].sizes.keys() == sizes.keys():
                fact = known[1].failing(sizes)
                if fact is None:
                    self._keep(known)
                    return known
                missed = missed or str(fact)
        self._bound_constants()
        try:
            if not sizes.keys() <= self.schedule.program.symbols:
                raise ProgramError(f"the program takes some of {sorted(sizes)} for equal")
            found = self._lowered(self.schedule, sizes, progress)
        except ProgramError as error:
            try:
                folded = self._elsewhere(sizes)
            except ModelError as reason:
                raise _refusal(self.schedule.program, sizes, reason) from reason
            if folded is None:
                raise
            if isinstance(folded, Program):
                self._in_turns = folded
                return None, folded
            missed = f"in the program of other sizes: {error}"
            if not folded.program.symbols:
                facts = [f"{name} == {size}" for name, size in sorted(sizes.items())]
                return self._report(sizes, facts, missed), self._alone(folded, progress)
            found = self._lowered(folded, sizes, progress)
        new = self._report(sizes, map(str, found.facts), missed), found
        self._keep(new)
        self.on_class()
        return new

    def _elsewhere(self, sizes: Mapping[str, int]) -> Schedule | Program | None:
        """Another program that runs at these sizes, its constants folded; None where none does."""
        for first, known in self._others:
            if first.keys() == sizes.keys() and _fits(known.program, self.types_at(sizes), sizes):
                return known
        found = None if self.elsewhere is None else self.elsewhere.at(sizes)
        if found is None or isinstance(found, Program):
            return found
        folded = fold_constants(found)
        if folded.program.symbols:
            self._others = [(dict(sizes), folded), *self._others[: _MOST_CLASSES - 1]]
        return folded

    def _bound_constants(self) -> None:
        """Begin anew where programs of ever other sizes have left too many constants of their own;
        calls that run keep what they read."""
        if self.store.size > 4 * self._first_size + MOST_MORE:
            self.store, self.known, self._others = ConstantStore(), (), []
            self.release()

    def _lowered(
        self, schedule: Schedule, sizes: Mapping[str, int], progress: Progress | None
    ) -> SizeClass:
        types = self.types_at(sizes)
        found = size_class(schedule, sizes, self.store, self.threads, progress, self.merging, types)
        give_back_freed(self.store.size)
        return found

    def _keep(self, known: tuple[ClassReport, SizeClass]) -> None:
        """Put a class in front of the others."""
        others = [each for each in self.known if each is not known]
        self.known = (known, *others[: _MOST_CLASSES - 1])  # at once: reports take no lock

    def _report(
        self, sizes: Mapping[str, int], facts: Iterable[str], missed: str | None
    ) -> ClassReport:
        values = {
            name: np.frombuffer(data, dtype).reshape(shape).tolist()
            for name, dtype, shape, data in self.values
        }
        return ClassReport(dict(sizes), tuple(facts), missed, 0, 0, values)


def _refusal(source: Source, sizes: Mapping[str, int], reason: ModelError) -> ProgramError:
    """The error for sizes that neither the program of `source` runs nor another.

    The `reason` tells of the model itself, unless an extent is too small, which may be seen late.
    """
    for condition in source.conditions:
        try:
            if condition.is_of_extent:
                condition.check(sizes)
        except ProgramError as error:
            return error
    return ProgramError(f"{reason} where {sizes_text(sizes)}")


def _fits(source: Source, types: Mapping[str, TensorType], sizes: Mapping[str, int]) -> bool:
    """Whether a program runs calls of these sizes, whose inputs have these types."""
    nodes = (source.nodes[index] for index in source.inputs)
    return source.runs_at(sizes) and all(
        node.type.concrete(sizes) == types[node.input_name].concrete(sizes) for node in nodes
    )


def _bytes(plan: Plan) -> int:
    """About the memory of a plan with its usual single instance, as `tracemalloc` counts it."""
    return plan.routine.table_bytes + 60 * len(plan.order) + 80 * len(plan.arena.offsets)
