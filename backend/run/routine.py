"""Routines: a program at given sizes as data, ready to run but for addresses.

Word i of the argument table is `numbers()[i]` plus the address of region `regions[i]`. Regions are
numbered: nothing, the arena, scratch memory, the status words, then a region for each tensor: the
inputs, the outputs that are computed, and the constants.

What is read from a saved program is made of named tuples here: to declare a dataclass takes eight
times as long, and would be a part of the time to open one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from sys import maxsize
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from satura.backend.cache_lines import SMALL, address
from satura.backend.run.out import Fit, refuse_unfit
from satura.backend.run.runtime import Executor, Reported, Status, Step
from satura.backend.run.workspace import Workspace
from satura.rewrite.errors import CallError
from satura.rewrite.program.memory import (
    refuse_beyond_memory,
    refuse_copy_beyond_memory,
    tensor_bytes,
)
from satura.rewrite.types.dims import static
from satura.rewrite.types.outside import outside
from satura.rewrite.types.tensor_type import Array, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SCATTER = 2  # the code of what scatters report
_INSTANCE = 6144  # bytes of an instance, without its tables
SMALL_WORK = 16384  # innermost iterations that one thread does as fast as two
NOTHING, ARENA, SCRATCH, STATUS, FIRST_TENSOR = range(5)


class Launch(NamedTuple):
    """A kernel's address, where its arguments start, in words, and how many threads it may use."""

    kernel: int
    arguments: int
    width: int


class Output(NamedTuple):
    """An output and the region that holds it: an input's, a constant's, or one that is computed.

    Where several outputs have one region, the first is computed and the others are copies.
    """

    name: str
    type: TensorType
    region: int


class Routine(NamedTuple):
    """What a call does. `inputs` are types by name, in the order of their regions; `computed`
    outputs have the regions behind them. `arena` and `scratch` are bytes, `scratch` per thread."""

    inputs: Mapping[str, TensorType]
    outputs: tuple[Output, ...]
    computed: int
    constants: tuple[Array, ...]
    launches: tuple[Launch, ...]
    numbers: Callable[[], NDArray[np.int64]]
    regions: NDArray[np.int64]
    arena: int
    scratch: int
    threads: int

    @property
    def first_constant(self) -> int:
        """The region of the first constant."""
        return FIRST_TENSOR + len(self.inputs) + self.computed

    @property
    def table_bytes(self) -> int:
        """About the bytes of an instance with its argument table."""
        return self.regions.nbytes + 8 * (self.first_constant + len(self.constants)) + _INSTANCE


Placed = tuple[dict[int, Array], dict[str, Array]]
"""What a call reads and writes by region, and its outputs by name."""


class Instance:
    """Argument tables of a routine, for one call at a time, and the memory that it works in."""

    def __init__(self, routine: Routine, workspace: Workspace) -> None:
        _refuse_beyond_memory(routine)
        self.routine = routine
        self._status = Status(_describe)
        first_constant, regions = routine.first_constant, routine.regions
        self._bases = np.zeros(first_constant + len(routine.constants), np.int64)
        self._bases[STATUS] = self._status.address
        self._bases[first_constant:] = [address(array) for array in routine.constants]
        self._table = np.empty(regions.shape, np.int64)
        self._words = self._table.data
        self._addresses: tuple[int, int] | None = None
        self.work_in(workspace)
        first = address(self._table)
        steps = [
            Step(launch.kernel, first + 8 * launch.arguments, launch.width)
            for launch in routine.launches
        ]
        self.executor = Executor(steps, routine.threads, self._status)
        words: dict[int, list[tuple[int, int]]] = {}  # of the table, by region, with their numbers
        moving = np.flatnonzero((regions >= FIRST_TENSOR) & (regions < first_constant))
        for word, region in zip(moving.tolist(), regions[moving].tolist(), strict=True):
            words.setdefault(region, []).append((word, self._words[word]))  # no address yet
        self._inputs: list[tuple[str, int, Sequence[tuple[int, int]]]] = [
            (name, region, words.pop(region, ()))
            for region, name in enumerate(routine.inputs, FIRST_TENSOR)
        ]
        self._outputs: list[tuple[str, Fit, int, int, Sequence[tuple[int, int]]]] = []
        self._constants: dict[int, Array] = {}  # that are outputs
        self._copied: list[tuple[str, int]] = []
        computed = set(range(FIRST_TENSOR + len(routine.inputs), first_constant))
        for name, type_, region in routine.outputs:
            fit = type_.dtype.numpy, tuple(map(static, type_.shape))
            self._outputs.append(
                (name, fit, prod(fit[1]) * fit[0].itemsize, region, words.pop(region, ()))
            )
            if region not in computed:
                self._copied.append((name, region))
                if region >= first_constant:
                    self._constants[region] = routine.constants[region - first_constant]
            computed.discard(region)
        self._fits = {name: fit for name, fit, *_ in self._outputs}
        self._placed: Placed = {}, {}

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The arena."""
        return self._workspace.arena

    def work_in(self, workspace: Workspace) -> None:
        """Use this memory from now on; it is made to fit."""
        workspace.fit(self.routine.arena, self.routine.scratch * self.routine.threads)
        self._workspace = workspace
        if workspace.addresses is not self._addresses:
            self._bases[ARENA], self._bases[SCRATCH] = workspace.addresses
            bases = self._bases[self.routine.regions]
            np.add(self.routine.numbers(), bases, out=self._table)
            self._addresses = workspace.addresses

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` where there are such.

        The arguments fit the inputs. Raises CallError for arrays that cannot be written to.
        """
        return self._execute(self._place(arguments, out))

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None) -> None:
        """Set the arrays that `execute` reads and writes; those that `out` lacks are made."""
        self._placed = self._place(arguments, out)

    def execute(self) -> dict[str, Array]:
        """Run on the arrays of `bind`: what they hold then counts."""
        return self._execute(self._placed)

    def _place(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None) -> Placed:
        """Write addresses of what is read and written to the table."""
        table = self._words
        tensors: dict[int, Array] = {}
        results: dict[str, Array] = {}
        for name, region, words in self._inputs:
            array = arguments[name]
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):  # as kernels need it
                refuse_copy_beyond_memory(name, array)
                array = np.require(array, requirements=("C", "A"))
            tensors[region] = array
            start = address(array)
            for word, number in words:
                table[word] = number + start
        if out:
            refuse_unfit(self._fits, out, list(tensors.values()))
        tensors |= self._constants
        for name, fit, size, region, words in self._outputs:
            if out and name in out:
                array = out[name]
            elif size < SMALL:
                array = np.empty(fit[1], fit[0])
            else:
                array = self._workspace.result(name, size, *fit)
            results[name] = array
            if region not in tensors:
                tensors[region] = array
                start = address(array)
                for word, number in words:
                    table[word] = number + start
        return tensors, results

    def _execute(self, placed: Placed) -> dict[str, Array]:
        tensors, results = placed
        try:
            self.launch(tensors)
        except Reported as error:
            raise CallError(f"{error}{self._source(tensors, error.index)}") from None
        for name, region in self._copied:
            np.copyto(results[name], tensors[region])
        return results

    def _source(self, tensors: Mapping[int, Array], index: int) -> str:
        """Which integer inputs hold the index that was reported."""
        found = [
            f"input {name!r} holds {index}"
            for name, region, _ in self._inputs
            if tensors[region].dtype.kind in "iu" and (tensors[region] == index).any()
        ]
        if found:
            return f": {', '.join(found)}"
        return (
            f": it is {index}, and not one of an input's: satura.interpret(model, arguments) says"
            " which node it is of"
        )

    def launch(self, tensors: Mapping[int, Array]) -> None:
        """Run the kernels; `tensors` are the inputs and the computed outputs by region."""
        self.executor.run()


def _refuse_beyond_memory(routine: Routine) -> None:
    """Raise CallError where no array can be an output, or memory cannot hold what a call takes: the
    sizes may be those of another machine, or be in a file that is not as it was written."""
    for name, type_, _ in routine.outputs:
        extents = map(static, type_.shape)
        if prod(extent or 1 for extent in extents) * type_.dtype.itemsize > maxsize:
            raise CallError(f"output {name!r} of type {type_} is too large for an array")
    total = sum(tensor_bytes(type_) for _, type_, _ in routine.outputs)
    total += routine.arena + routine.scratch * routine.threads
    named = ((f"output {name!r}", type_) for name, type_, _ in routine.outputs)
    refuse_beyond_memory(total, named, CallError)


def _describe(code: int, extent: int, index: int) -> tuple[str, int]:
    least = 0 if code == _SCATTER else -extent  # as `emit/scatter.py` says
    return outside(index, least, extent)
