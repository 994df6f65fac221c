"""Plans that are evaluated, and what they differ in from plans that are lowered."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

import pytest

from satura.backend.constants import fold_constants
from satura.backend.jit.machine_code import KernelSource
from satura.backend.plan import lowered
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import Plans, plan_of
from satura.backend.plan.size_class import size_class
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import rewrite
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol

N, M = symbol("n"), symbol("m")


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans without machine code: a kernel's address is the checksum of its text."""

    def addresses(sources: Sequence[KernelSource], report: object = None) -> list[int]:
        return [zlib.crc32(source.text.encode()) for source in sources]

    with monkeypatch.context() as patch:
        patch.setattr(lowered, "compile_all", addresses)
        yield


def scheduled(program: Program) -> Schedule:
    return fold_constants(rewrite(program, rule_set("none"), None, lambda *_: None).schedule)


def difference(found: Plan, wanted: Plan) -> str | None:
    """What differs between two plans for the same sizes."""
    mine, theirs = found.routine, wanted.routine
    pairs = {
        "arena": (found.arena, wanted.arena),
        "scratch": (mine.scratch, theirs.scratch),
        "kernels": (found.executables, wanted.executables),
        "steps": ((mine.launches, found.order), (theirs.launches, wanted.order)),
        "outputs": (mine.outputs, theirs.outputs),
        "regions": (mine.regions.tolist(), theirs.regions.tolist()),
        "numbers": (mine.numbers().tolist(), theirs.numbers().tolist()),
    }
    return next((what for what, (one, other) in pairs.items() if one != other), None)


def wrong_plans(program: Program, every: Sequence[Mapping[str, int]]) -> list[str]:
    """Where evaluated plans are not what lowering at these sizes gives."""
    schedule = scheduled(program)
    plans = Plans(schedule, 2)
    wrong = []
    for sizes in every:
        named = {name: sizes[name] for name in sorted(program.symbols)}
        try:
            schedule.concrete(named)
        except ProgramError:
            with pytest.raises(ProgramError):
                plans.planned(tuple(named.items()))
            continue
        found = plan_of(plans.planned(tuple(named.items())))
        own = size_class(schedule, named, plans.store, 2).plan(named) if named else found
        what = difference(found, own)
        if what:
            wrong.append(f"{what} at {named}")
    assert all(found.is_traced for _, found in plans.known)
    return wrong
