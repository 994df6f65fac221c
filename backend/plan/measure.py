"""Measurements of a plan: what its launches really do, and how long each of them takes.

What is counted comes from what runs: the steps that the executor has launched, and the values that
the kernels compute. The statistics of a schedule are a prediction of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from time import perf_counter, thread_time

import numpy as np

from satura.backend.lower.body import Nest, Pointer
from satura.backend.lower.loop_nests import lower
from satura.backend.plan.plan import Plan
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.types.tensor_type import Array

_WARM = 1 << 23  # bytes that caches keep
_MOVES = {"load", "position", "argument", "scalar", "inside", "and", "quotient", "add_index"}


@dataclass(frozen=True)
class Measured:
    """Seconds by the number of the dispatch, host calls apart; and what one call launched.

    A launch is one of the `fills` where it reads nothing that varies, and one of the `copies` where
    it computes nothing but where to read.
    """

    seconds: Mapping[int, float]
    launches: int
    fills: int
    copies: int


def measure(
    plan: Plan, arguments: Mapping[str, Array], rounds: int, is_warm: bool = False
) -> Measured:
    """Run a call, and then each of its launches `rounds` times, in order and one at a time.

    Where `is_warm`, what a launch reads is in the caches before, and where it stores, as they are
    where another launch has just made the one, and yet another one has read what was in the other.
    """
    readable = {name: np.require(each, requirements=("C", "A")) for name, each in arguments.items()}
    instance = plan.instance()
    launches, executor = plan.launched, instance.executor
    is_alone = instance.routine.threads == 1  # what others run need not count then
    clock = thread_time if is_alone else perf_counter
    before = executor.launched
    results = instance.run(readable)
    launched = executor.launched - before
    best = [inf] * len(launches)
    idle = min(_seconds(clock, executor.run_nothing) for _ in range(20 * rounds))
    dispatches = [plan.concrete.dispatches[number] for number in launches]
    nodes = plan.schedule.program.nodes
    arrays = {index: readable[nodes[index].input_name] for index in plan.schedule.program.inputs}
    arrays |= {index: results[name] for name, index in plan.schedule.program.outputs}
    for _ in range(rounds):
        for number, dispatch in enumerate(dispatches):
            for node in (*dispatch.operands, dispatch.root) if is_warm else ():
                if node in arrays and arrays[node].nbytes <= _WARM:
                    arrays[node].view(np.uint8).max(initial=0)
            taken = _seconds(clock, partial(executor.run, number, number + 1))
            best[number] = min(best[number], taken)
    del arrays, results, readable  # they were alive until here: launches read and write them
    kinds = [traffic(plan.concrete, dispatch) for dispatch in dispatches]
    seconds = {number: max(best[i] - idle, idle / 10) for i, number in enumerate(launches)}
    return Measured(seconds, launched, kinds.count("fill"), kinds.count("copy"))


def _seconds(clock: Callable[[], float], run: Callable[[], None]) -> float:
    start = clock()
    run()
    return clock() - start


def traffic(schedule: Schedule, dispatch: Dispatch) -> str:
    """ "fill", "copy" or "work": what the kernel of a dispatch with concrete sizes does."""
    if dispatch.form is not Form.LOOP:
        return "work"
    nests = lower(schedule, dispatch)
    known = schedule.program.known
    if not any(not known[node] for nest in nests for node in _read(nest)):
        return "fill"
    return "copy" if all(map(_only_moves, nests)) else "work"


def _read(nest: Nest) -> list[int]:
    """The nodes whose elements a nest loads."""
    starts = [value.access.start for value in nest.values if value.op == "load" and value.access]
    pointers = [start for start in starts if isinstance(start, Pointer)]
    return [pointer.region[1] for pointer in pointers if pointer.region[0] == "buffer"]


def _only_moves(nest: Nest) -> bool:
    """Whether a nest stores what it loads from where sizes say, not data as in a gather.

    A border's choice between two values moves, too.
    """
    data: set[int] = set()  # values that were loaded, or made of such
    for number, value in enumerate(nest.values):
        if value.access and data.intersection(source for source, _ in value.access.extras):
            return False
        if value.op == "load" or data.intersection(value.operands):
            data.add(number)
        if value.op == "select":
            if nest.values[value.operands[0]].op not in ("inside", "and"):
                return False
        elif value.op not in _MOVES:
            return False
    return nest.values[nest.result].op != "position"
