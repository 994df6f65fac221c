"""Opening a saved program.

The file has two halves. One is ready to run: machine code, argument tables, packed constants. It is
used only where it can be trusted: from a file that nobody but the user can have written, or with
`trust`, and on the CPU and by the satura that it was made for. The other is data: the schedule and
the constants as they were before they were packed. It is checked like what is remembered of models,
and compiled anew where the first half is not used, and for sizes that the file is not ready for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from satura.artifact.container import Container, of
from satura.artifact.own_ops import changes
from satura.artifact.ready import ReadyProgram, load, part_of, programs_in
from satura.backend.jit.kernel import KernelError, running
from satura.backend.run.calls import Runnable
from satura.rewrite.errors import ArtifactError, CallError, ProgramError, warn_caller

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from satura.artifact.elsewhere import SearchAgain
    from satura.backend.plan.compiled import CompiledSchedule


class Opened(Runnable):
    """A saved program, ready to run. It may be called from several threads at once."""

    def __init__(self, file: Container, is_trusted: bool, search: SearchAgain) -> None:
        """Raise ArtifactError for a damaged file.

        Warn where its machine code is not used, or computes an op of a user as that was before.
        """
        self._elsewhere = f"satura.open({str(file.path)!r})"
        try:
            programs = programs_in(file, lambda program: _compiled_again(program, search))
            for program in programs:
                program.check()
            self.programs = tuple(programs)
            self._part = part_of(file, programs)
            reason = self._why_not(file, is_trusted)
            if reason is None:
                _load(file, programs)
                for change in changes(file):
                    warn_caller(change)
            else:
                warn_caller(f"{file.path} {reason}: its kernels are compiled again")
        except (ArtifactError, KernelError, ProgramError, ValueError, KeyError, TypeError) as error:
            if str(file.path) in str(error):
                raise
            raise ArtifactError(f"{file.path} is damaged: {error}; save it again") from error

    @property
    def first_sizes(self) -> dict[str, int]:
        """The sizes that the file was first made ready for; none where it was not for any."""
        return next(iter(self.programs[0].saved_sizes), {})

    @staticmethod
    def _why_not(file: Container, is_trusted: bool) -> str | None:
        """Why the machine code in a file is not to be used; None where it is."""
        if not (is_trusted or file.is_private):
            return "may have been written by somebody else (trust=True says that it is safe)"
        if of(str, file.header.get("environment")) != running():
            return "was made on another CPU or by another version of satura"
        return None


def _compiled_again(program: ReadyProgram, search: SearchAgain) -> CompiledSchedule:
    """What the other half of the file makes of a program, for sizes that are not ready.

    Raises ArtifactError where that half is not a schedule of these inputs and outputs.
    """
    from satura.artifact.again import schedule_of
    from satura.backend.plan.compiled import compile_schedule

    schedule = schedule_of(program)
    found = None
    if program.declared is not None and program.row["elsewhere"] is not None:
        from satura.artifact.elsewhere import elsewhere_in

        found = elsewhere_in(program, program.declared, schedule.is_exact, search)
    return compile_schedule(schedule, program.threads, elsewhere=found)


def _load(file: Container, programs: Sequence[ReadyProgram]) -> None:
    """Take the routines of a file. Raises CallError where LLVM loads some, and is not installed."""
    try:
        load(file, programs)
    except ImportError as error:
        raise CallError(
            f"{file.path} has kernels that '{error.name}' loads, which cannot be imported: install"
            " it"
        ) from None


def open_artifact(path: str | Path, is_trusted: bool, search: SearchAgain) -> Opened:
    """The program in the file at `path`; `search` is for sizes that it excludes.

    Raises ArtifactError, or OSError where there is none.
    """
    return Opened(Container(path), is_trusted, search)
