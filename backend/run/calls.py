"""Calls of a program that is ready to run: arguments by name or position, outputs by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, NoReturn, cast

import numpy as np

from satura.backend.run.bound import Bound
from satura.backend.run.part import Part
from satura.rewrite.errors import CallError, ModelError, ProgramError, UnsupportedError, brief
from satura.rewrite.program.arguments import (
    as_arrays,
    check_named,
    refuse_masked,
    unknown_size,
    with_members,
)
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import Array, TensorType, open_sizes

if TYPE_CHECKING:
    from satura.backend.run.class_report import ClassReport

REFUSALS = (ProgramError, ModelError, UnsupportedError)
"""What making the program for a call may raise."""
_HOW_TO_CALL = (
    "a call takes arrays by position or by keyword; `run` takes a dict or a list of them, as in"
    " compiled.run({'x': x})"
)


def refused(error: Exception) -> CallError:
    """The error of a call for which there is no program, for one of the `REFUSALS`."""
    if isinstance(error, ProgramError):
        return CallError(f"the program does not run at these sizes: {error}")
    return CallError(f"no program can be made for this call: {error}")


class Runnable:
    """What can be called. It may be called from several threads at once."""

    _part: Part
    _elsewhere = "compiled.save(path), and satura.open(path)"
    """What to do in order to have it in another process."""

    @cached_property
    def inputs(self) -> dict[str, TensorType]:
        """Types of the inputs by name, in call order."""
        return dict(self._part.inputs if self.deciding else self._part.shown[0])

    @cached_property
    def outputs(self) -> dict[str, TensorType]:
        """Types of the outputs by name. Raises CallError where there are some for each value of an
        input."""
        return dict(self._part.shown[1])

    @cached_property
    def _has_sequences(self) -> bool:
        return any(isinstance(each, SequenceType) for each in self.inputs.values())

    @property
    def deciding(self) -> tuple[str, ...]:
        """The inputs that are known to decide shapes by their values, in call order."""
        return self._part.deciding

    @property
    def cache(self) -> tuple[ClassReport, ...]:
        """The classes of sizes that calls came with so far, the one last met by new sizes first.

        For all sizes of a class the same kernels serve, and nothing is compiled. Each says which
        facts make a class, how often it was met, and what kept its first sizes from another one.
        """
        return self._part.classes

    @property
    def symbols(self) -> tuple[frozenset[str], ...]:
        """The names of the sizes that `prepare` takes: those of the program, and where the model
        declares further ones, all of these. Raises CallError as `outputs` does."""
        return tuple(self._part.program.sizes)

    @property
    def threads(self) -> int:
        """How many threads a call runs on."""
        return self._part.threads

    def __repr__(self) -> str:
        names = ", ".join(self.deciding)
        result = f"for each value of {names}" if names else f"-> ({_shown(self.outputs)})"
        kind = type(self).__name__
        return f"<satura.{kind} ({_shown(self.inputs)}) {result}, threads={self.threads}>"

    def run(
        self, arguments: Mapping[str, object] | Sequence[object] | Array = (), *more: object,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Outputs by name, for a dict of arguments by name, or for arguments in the order of
        `inputs`, one by one or in a list; arguments are left as they are.

        Outputs that `out` names are written to its arrays, the others to new ones. Raises CallError
        for a missing or unknown name, a wrong dtype, rank or extent, for sizes that the program is
        not made for, such as a sequence longer than its table, for values that decide shapes and do
        not fit the model, and for arrays of `out` that do not fit, are not contiguous, or share
        memory with an input or another output.
        """
        if more or type(arguments) is not dict:
            arguments = self._named(arguments, more)
        if out is not None:
            check_named(out, "arrays of out")
        if self._has_sequences:
            arguments = with_members(arguments, self.inputs)
        try:
            return self._part.run(as_arrays(arguments), out)
        except REFUSALS as error:
            raise refused(error) from error

    async def run_async(
        self, arguments: Mapping[str, object] | Sequence[object] | Array = (), *more: object,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """As `run`, in a thread: the event loop does other work until the outputs are there.

        The arguments, and the arrays of `out`, must be left alone until then. A task that is
        cancelled does not wait, but the call runs to its end.
        """
        import asyncio  # with it come sockets and ssl: other programs start without them

        return await asyncio.to_thread(self.run, arguments, *more, out=out)

    def bind(self, arguments: Mapping[str, Array], out: Mapping[str, Array] | None = None) -> Bound:
        """A call on these arrays, checked once: `bound()` reads what they hold at that moment and
        gives the outputs by name, always in the same arrays, those of `out` where it names them.

        Calls of it cost microseconds. It is for the values that inputs that decide shapes have now:
        `bound()` raises CallError once they hold others. Raises CallError as `run` does, and for
        what is not a contiguous NumPy array.
        """
        check_named(arguments, "arguments to bind")
        if out is not None:
            check_named(out, "arrays of out")
        for name, array in arguments.items():
            if not isinstance(array, np.ndarray):
                raise CallError(f"input {name!r} must be a NumPy array to be bound")
            refuse_masked(name, array)
        try:
            return self._part.bind(arguments, out)
        except REFUSALS as error:
            raise refused(error) from error

    def __call__(self, /, *arguments: object, **named: object) -> Array | tuple[Array, ...]:
        """Call by position, by keyword, or mixed: the output's array, or a tuple of several.

        `out=` is that of `run`, unless an input has this name.
        """
        out = None if "out" in self.inputs else named.pop("out", None)
        room = cast("Mapping[str, Array] | None", out)  # `run` looks
        try:
            found = self.run(self._mixed(arguments, named), out=room)
        except CallError as error:
            if self._has_collected(arguments):
                error.args = (f"{error}; {_HOW_TO_CALL}",)
            raise
        arrays = list(found.values())  # in their order
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def prepare(self, sizes: Mapping[str, int] | Iterable[Mapping[str, int]]) -> None:
        """Make ready for calls of these sizes, each a size for every symbol: their first calls
        then wait for no kernel. Raises CallError for sizes that the program is not made for.
        """
        several = [sizes] if isinstance(sizes, Mapping) else sizes
        if not isinstance(several, Iterable):
            raise CallError(f"sizes are a dict by name, or several, not {type(sizes).__name__}")
        for each in several:
            check_named(each, "sizes")
            program = self._part.program
            names = sorted(open_sizes(program.inputs.values()))
            unknown = [name for name in each if all(name not in some for some in program.sizes)]
            if unknown:
                raise unknown_size(unknown[0], names)
            if set(each) not in program.sizes:
                raise CallError(f"prepare needs a size for each of {names}, got {brief(each)}")
            if not all(_is_size(size) for size in each.values()):
                raise CallError(
                    f"prepare: sizes are whole numbers and not negative, got {brief(each)}"
                )
            try:
                program.prepare(tuple((name, index(each[name])) for name in sorted(each)))
            except REFUSALS as error:
                raise CallError(f"the program does not run at {each}: {error}") from error

    def release(self) -> None:
        """Give back memory that no call uses at the moment; later calls take what they need."""
        self._part.release()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: kernels are machine code of this process."""
        kind = type(self).__name__
        raise CallError(
            f"a satura.{kind} cannot be pickled or copied: {self._elsewhere} in the other process;"
            f" threads can share one {kind}"
        )

    def _has_collected(self, arguments: Sequence[object]) -> bool:
        """Whether a dict or a list of arrays is given for an input that is one array."""
        return any(
            isinstance(given, Mapping)
            or (isinstance(given, list | tuple) and any(hasattr(x, "shape") for x in given))
            for given, type_ in zip(arguments, self.inputs.values(), strict=False)
            if not isinstance(type_, SequenceType)
        )

    def _mixed(
        self, arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> dict[str, object]:
        """What a call was given by position and by name, all by name."""
        given = self._in_order(arguments)
        if not named:
            return given
        twice = [name for name in named if name in given]
        if twice:
            raise CallError(f"input {twice[0]!r} is given by position and by name")
        return {**given, **named}

    def _named(self, arguments: object, more: tuple[object, ...]) -> Mapping[str, object]:
        """What `run` was given, by name."""
        if more and isinstance(more[0], Mapping):  # as other runtimes are called
            raise CallError("run takes the dict of arguments alone, and gives all outputs by name")
        if isinstance(arguments, Mapping):
            if more:
                raise CallError("run takes one dict of arguments, or arguments by position")
            return arguments
        if isinstance(arguments, list | tuple) and not more:
            return self._in_order(arguments)
        return self._in_order((arguments, *more))

    def _in_order(self, arguments: Sequence[object]) -> dict[str, object]:
        names = self.inputs
        if len(arguments) > len(names):
            raise CallError(f"{len(arguments)} arguments for the {len(names)} inputs {list(names)}")
        return dict(zip(names, arguments, strict=False))


def _is_size(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and bool(size >= 0)


def _shown(types: Mapping[str, TensorType]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in types.items())
