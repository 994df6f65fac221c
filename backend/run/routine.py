"""Routines: a program at given sizes as data, ready to run but for addresses.

Word i of the argument table is `numbers[i]` plus the address of region `regions[i]`. Regions are
numbered: nothing, the arena, scratch memory, the status words, then a region for each tensor: the
inputs, the outputs that are computed, and the constants.

What is read from a saved program is made of named tuples here: to declare a dataclass takes eight
times as long, and would be a part of the time to open one.
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from satura.backend.cache_lines import aligned_empty
from satura.backend.run.out import refuse_unfit
from satura.backend.run.runtime import Executor, Status, Step
from satura.backend.run.workspace import Workspace
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    numbers: NDArray[np.int64]
    regions: NDArray[np.int64]
    arena: int
    scratch: int
    threads: int

    @property
    def first_constant(self) -> int:
        """The region of the first constant."""
        return FIRST_TENSOR + len(self.inputs) + self.computed


class Instance:
    """Argument tables of a routine, for one call at a time, and the memory that it works in."""

    def __init__(self, routine: Routine, workspace: Workspace) -> None:
        self.routine = routine
        self._fit(workspace)
        self._status = Status(_describe)
        first_constant = routine.first_constant
        self._bases = np.zeros(first_constant + len(routine.constants), np.int64)
        self._bases[ARENA], self._bases[SCRATCH] = workspace.addresses
        self._bases[STATUS] = self._status.address
        self._bases[first_constant:] = [_address(array) for array in routine.constants]
        self._table = routine.numbers + self._bases[routine.regions]
        regions = routine.regions
        moving = np.flatnonzero((regions >= FIRST_TENSOR) & (regions < first_constant))
        self._moving = moving
        self._moving_numbers = routine.numbers[moving]
        self._moving_regions = regions[moving]
        first = int(self._table.ctypes.data)
        steps = [
            Step(launch.kernel, first + 8 * launch.arguments, launch.width)
            for launch in routine.launches
        ]
        self.executor = Executor(steps, routine.threads, self._status)
        self._outputs = [
            (output.name, tuple(map(static, output.type.shape)), output.type.dtype.numpy,
             output.region)
            for output in routine.outputs
        ]  # fmt: skip
        self._addresses: list[int] = []
        self._results: dict[str, Array] = {}
        self._copies: list[tuple[Array, Array]] = []
        self._tensors: dict[int, Array] = {}

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The arena."""
        return self._workspace.arena

    def _fit(self, workspace: Workspace) -> None:
        workspace.fit(self.routine.arena, self.routine.scratch * self.routine.threads)
        self._workspace = workspace

    def work_in(self, workspace: Workspace) -> None:
        """Use other memory from now on; it is made to fit."""
        self._fit(workspace)
        arena, scratch = workspace.addresses
        if arena != self._bases[ARENA] or scratch != self._bases[SCRATCH]:
            self._bases[ARENA], self._bases[SCRATCH] = arena, scratch
            np.add(self.routine.numbers, self._bases[self.routine.regions], out=self._table)

    def run(
        self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Outputs by name, in the arrays of `out` where there are such.

        The arguments fit the inputs. Raises CallError for arrays that cannot be written to.
        """
        self.bind({name: _readable(array) for name, array in arguments.items()}, out or {})
        return self.execute()

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array]) -> None:
        """Set the arrays that `execute` reads and writes; those that `out` lacks are made."""
        routine = self.routine
        given: list[Array] = [arguments[name] for name in routine.inputs]
        if out:
            types = {output.name: output.type for output in routine.outputs}
            refuse_unfit(types, out, given)
        self.release()
        tensors = dict(enumerate(given, start=FIRST_TENSOR))
        first_constant = routine.first_constant
        for name, shape, dtype, region in self._outputs:
            array = out.get(name)
            if array is None:
                array = aligned_empty(shape, dtype)
            self._results[name] = array
            if region >= first_constant:
                self._copies.append((array, routine.constants[region - first_constant]))
            elif region in tensors:
                self._copies.append((array, tensors[region]))
            else:
                tensors[region] = array
        addresses = [_address(tensor) for tensor in tensors.values()]  # of the same regions always
        if addresses != self._addresses:
            self._addresses = []  # an interrupt may come between the next lines
            self._bases[list(tensors)] = addresses
            self._table[self._moving] = self._moving_numbers + self._bases[self._moving_regions]
            self._addresses = addresses
        self._tensors = tensors

    def execute(self) -> dict[str, Array]:
        """Run on the arrays of `bind`: what they hold then counts."""
        self.launch(self._tensors)
        for target, source in self._copies:
            np.copyto(target, source)
        return self._results

    def launch(self, tensors: Mapping[int, Array]) -> None:
        """Run the kernels; `tensors` are the inputs and the computed outputs by region."""
        self.executor.run()

    def release(self) -> None:
        """Forget the arrays of `bind`."""
        self._results, self._copies, self._tensors = {}, [], {}


def _readable(array: Array) -> Array:
    """The array as kernels need it: C-contiguous, native and aligned."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=("C", "A"))


def _address(array: Array) -> int:
    """Where the array starts. The second way takes four times as long, and always works."""
    try:
        return addressof(c_char.from_buffer(array.data))
    except (TypeError, ValueError):  # read-only, empty, or of a type that buffers lack
        return int(array.__array_interface__["data"][0])


def _describe(code: int, detail: int) -> str:
    if code == 2:  # as `emit/scatter.py` says
        return f"scatter: an index lies outside [0, {detail})"
    return f"gather: an index lies outside [-{detail}, {detail})"
