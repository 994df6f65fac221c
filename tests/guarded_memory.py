"""Programs whose tensors each lie at the edge of memory, run step by step and thread by thread.

    python -m tests.guarded_memory SEED... part0

Every input, output, constant and intermediate tensor has pages of its own, between pages that must
not be touched: it ends where one begins, and in a second run starts where one ends. A kernel that
reads or writes outside its operands ends the process, after the program was printed. Of every step
each thread runs alone, and what it writes no other thread of the step may write.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Mapping, Sequence
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from satura.backend.cache_lines import CACHE_LINE
from satura.backend.constants import ConstantStore, fold_constants
from satura.backend.plan import plan as planning
from satura.backend.plan.buffers import Arena, Lifetime
from satura.backend.run.routine import Instance
from satura.backend.run.workspace import Workspace
from satura.experiments.training import programs
from satura.pipeline.api import rewritten
from satura.pipeline.inputs import random_inputs
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.interpreter import bind_sizes, interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array
from tests.random_programs import compare, random_program

PAGE = mmap.PAGESIZE
THREADS = 3
PARTS = 4  # of the training programs
_NOT_TO_BE_TOUCHED = 0  # PROT_NONE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """Memory in which `sizes` bytes each lie between pages that must not be touched.

    Where `at_end`, each ends at such a page, else it starts at one.
    """

    def __init__(self, sizes: Sequence[int], at_end: bool) -> None:
        pages = [max(1, -(-size // PAGE)) for size in sizes]
        self.size = PAGE * (1 + sum(pages) + len(pages))
        self.offsets: list[int] = []
        self.bytes = np.frombuffer(mmap.mmap(-1, self.size), np.uint8)
        self.bytes[:] = 0xFF  # NaN, if it is read before it is written
        start = 0
        for size, count in zip(sizes, pages, strict=True):
            self._forbid(start)
            start += PAGE
            self.offsets.append(start + (PAGE * count - size if at_end else 0))
            start += PAGE * count
        self._forbid(start)

    def _forbid(self, offset: int) -> None:
        address = int(self.bytes.ctypes.data) + offset
        assert _libc.mprotect(address, PAGE, _NOT_TO_BE_TOUCHED) == 0, ctypes.get_errno()


def guarded(array: Array, at_end: bool) -> Array:
    """A copy of `array` between pages that must not be touched."""
    memory = Guarded([array.nbytes], at_end)
    (start,) = memory.offsets
    copy = memory.bytes[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class GuardedWorkspace(Workspace):
    """An arena whose buffers lie apart, as `arena` places them, and scratch memory at an edge."""

    def __init__(self, memory: Guarded) -> None:
        super().__init__()
        self.arena = memory.bytes

    def fit(self, arena: int, scratch: int) -> None:
        edge = Guarded([-(-scratch // CACHE_LINE) * CACHE_LINE], at_end=True)
        self._edge = edge.bytes[edge.offsets[0] :]
        self.addresses = int(self.arena.ctypes.data), int(self._edge.ctypes.data)


class GuardedInstance(Instance):
    """Runs each thread of a step alone, all from the same memory."""

    def launch(self, tensors: Mapping[int, Array]) -> None:
        written = [*self.buffers, *map(_bytes, tensors.values())]
        for step in range(len(self.executor)):
            before = [each.copy() for each in written]
            changed = [np.zeros(each.size, np.uint8) for each in written]  # by how many threads
            after = [each.copy() for each in written]
            threads = min(self.executor.width(step), THREADS)
            for thread in range(threads):
                self.executor.run_share(step, thread, threads)
                for now, old, count, new in zip(written, before, changed, after, strict=True):
                    differs = now != old
                    count += differs
                    np.copyto(new, now, where=differs)
                    now[:] = old
            assert all(count.max(initial=0) <= 1 for count in changed), "threads write one byte"
            for now, new in zip(written, after, strict=True):
                now[:] = new

    buffers: Sequence[NDArray[np.uint8]] = ()


def _bytes(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def run_guarded(
    schedule: Schedule, arguments: Mapping[str, Array], at_end: bool
) -> dict[str, Array]:
    """Outputs by name. Raises AssertionError where two threads of a step write one byte."""
    apart: list[tuple[Guarded, Sequence[Lifetime]]] = []

    def plan_apart(buffers: Sequence[Lifetime]) -> Arena:
        memory = Guarded([buffer.size for buffer in buffers], at_end)
        apart.append((memory, buffers))
        offsets = zip((buffer.buffer for buffer in buffers), memory.offsets, strict=True)
        return Arena(dict(offsets), memory.size)

    sizes = bind_sizes(schedule.program, arguments)
    concrete = fold_constants(schedule.concrete(sizes))
    with patch.object(planning, "plan_arena", plan_apart):
        plan = planning.make_plan(concrete, ConstantStore(), THREADS, any_sizes=False)
    assert not any(map(plan.is_host, plan.order))
    constants = tuple(guarded(array, at_end) for array in plan.routine.constants)
    ((memory, buffers),) = apart
    instance = GuardedInstance(plan.routine._replace(constants=constants), GuardedWorkspace(memory))
    instance.buffers = [
        memory.bytes[at : at + buffer.size]
        for buffer, at in zip(buffers, memory.offsets, strict=True)
    ]
    out = {}
    for output in plan.routine.outputs:
        array = np.empty(tuple(map(static, output.type.shape)), output.type.dtype.numpy)
        _bytes(array)[:] = 0xFF
        out[output.name] = guarded(array, at_end)
    given = {name: guarded(np.ascontiguousarray(a), at_end) for name, a in arguments.items()}
    instance.bind(given, out)
    return instance.execute()


def check(program: Program, arguments: Mapping[str, Array], exact: Mapping[str, bool]) -> None:
    """Raise AssertionError, or ends the process, where a kernel leaves its operands."""
    expected = interpret(program, arguments)
    schedule = rewritten(program).schedule
    for at_end in (True, False):
        got = run_guarded(schedule, arguments, at_end)
        for name in expected:
            difference = compare(expected[name], got[name], exact[name])
            assert difference is None, f"{name}: {difference}"


def check_training(part: int) -> None:
    """Check one part in `PARTS` of the training programs, which are of one op and larger."""
    for name, program in list(programs(seed=7))[part::PARTS]:
        print(f"{name}: of satura.experiments.training.programs(seed=7)", flush=True)
        exact = {
            output: not program.nodes[at].type.dtype.is_float for output, at in program.outputs
        }
        check(program, random_inputs(program), exact)
        print(f"{name} stays inside", flush=True)


def check_seed(seed: int) -> None:
    """Check a random program, which is printed before."""
    program, arguments, exact = random_program(seed)
    print(program.python(), flush=True)
    check(program, arguments, exact)
    print(f"seed {seed} stays inside", flush=True)


if __name__ == "__main__":
    for word in sys.argv[1:]:
        if word.startswith("part"):
            check_training(int(word.removeprefix("part")))
        else:
            check_seed(int(word))
