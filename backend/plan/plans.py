"""Plans of one schedule for all sizes that calls came with, and the classes that they are of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from satura.backend.constants import ConstantStore
from satura.backend.plan.lowered import Progress
from satura.backend.plan.plan import Plan, make_plan
from satura.backend.plan.size_class import SizeClass, size_class
from satura.backend.run.instances import Instances
from satura.backend.run.workspace import Workspaces
from satura.backend.sizes.size import Fact
from satura.rewrite.extract.schedule import Schedule

Sizes = tuple[tuple[str, int], ...]
MOST_BYTES = 32 << 20  # of plans: those that were longest not used go first


@dataclass(frozen=True)
class Planned:
    """A plan, its bytes, and what runs its calls."""

    plan: Plan
    size: int
    instances: Instances


@dataclass
class ClassRecord:
    """A class, the sizes that made it, how often new sizes were of it, and why it was made.

    `missed` is what did not hold in the class that was used last; None for the first one.
    """

    found: SizeClass
    sizes: Mapping[str, int]
    missed: Fact | None
    plans: int = 0


class Plans:
    """Finds or makes the plan for sizes. One thread at a time may use it."""

    def __init__(self, schedule: Schedule, threads: int) -> None:
        self.schedule = schedule
        self.threads = threads
        self.store = ConstantStore()
        self.workspaces = Workspaces()
        self.classes: list[ClassRecord] = []  # the one used last comes first
        self._plans: OrderedDict[Sizes, Planned] = OrderedDict()
        self._size = 0

    def get(self, key: Sizes) -> Planned | None:
        """The plan for these sizes, where it is there."""
        found = self._plans.get(key)
        if found is not None and len(self._plans) > 1:
            self._plans.move_to_end(key)
        return found

    def make(self, key: Sizes, progress: Progress | None) -> Planned:
        """The plan for new sizes."""
        sizes = dict(key)
        if sizes:
            plan = self._class(sizes, progress).plan(sizes)
        else:
            plan = make_plan(self.schedule, self.store, self.threads, False, progress)
        made = self._plans[key] = Planned(
            plan, _bytes(plan), Instances(plan.instance, self.workspaces)
        )
        self._size += made.size
        while self._size > MOST_BYTES and len(self._plans) > 1:
            _, oldest = self._plans.popitem(last=False)
            self._size -= oldest.size
        return made

    def _class(self, sizes: Mapping[str, int], progress: Progress | None) -> SizeClass:
        missed = None
        for record in self.classes:
            fact = record.found.failing(sizes)
            if fact is None:
                break
            missed = missed or fact
        else:
            found = size_class(self.schedule, sizes, self.store, self.threads, progress)
            record = ClassRecord(found, sizes, missed)
            self.classes.append(record)
        record.plans += 1
        self.classes.remove(record)
        self.classes.insert(0, record)
        return record.found

    def ready(self) -> list[tuple[Sizes, Plan]]:
        """The plans that are kept, each with its sizes."""
        return [(sizes, planned.plan) for sizes, planned in self._plans.items()]

    def forget(self) -> None:
        """Drop unused memory, and all plans but that of a schedule without symbols."""
        self.workspaces.forget()
        if self.schedule.program.symbols:
            self._plans.clear()
            self._size = 0


def _bytes(plan: Plan) -> int:
    """About the memory of a plan with its usual single instance."""
    words = 3 * plan.routine.numbers.nbytes  # the plan's, the table's and those that calls set
    return words + 400 * len(plan.order) + 100 * len(plan.arena.offsets) + 4096
