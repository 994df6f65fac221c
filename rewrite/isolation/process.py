"""A call that can be stopped: in a forked child, which is killed when its time is over.

A fork, because what is called is mostly a closure over rules, which no other process could be
given. Where there is no safe fork (anywhere but on Linux) the call runs in this process, and
nothing stops it but what it checks itself.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import io
import mmap
import os
import pickle
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NoReturn, TypeVar, cast

from satura.rewrite.errors import SaturaError

T = TypeVar("T")

FORKS = sys.platform.startswith("linux")

_LOOK_SECONDS = 0.005
_DEADLINE = struct.Struct("d")
_PAGE = 4096
_RESULT = "satura-result"  # the name of files for results
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class KilledError(SaturaError):
    """A call that was stopped or ended without an answer.

    `doing` is what it said last, `reason` is "seconds", "memory" or "crash", `what` says it in
    words.
    """

    def __init__(self, doing: str, reason: str, what: str) -> None:
        super().__init__(doing, reason, what)
        self.doing = doing
        self.reason = reason
        self.what = what

    def __str__(self) -> str:
        return f"{self.doing or 'a computation'} {self.what}"


class Doing:
    """Says what the call does at the moment: told by the child, read by its parent.

    `doing(text)` costs about a microsecond. `doing(text, seconds)` also gives the call that many
    seconds from now on, whatever it had before.
    """

    def __init__(self, seconds: float) -> None:
        self._page = mmap.mmap(-1, _PAGE)  # shared with the child
        self("", seconds)

    def __call__(self, text: str, seconds: float | None = None) -> None:
        room = _PAGE - _DEADLINE.size - 1
        if seconds is not None:
            # The monotonic clock is the same one in all processes of a Linux system.
            _DEADLINE.pack_into(self._page, 0, time.monotonic() + seconds)
        data = text.encode(errors="replace")[:room] + b"\0"
        self._page[_DEADLINE.size : _DEADLINE.size + len(data)] = data

    @property
    def text(self) -> str:
        """What was said last."""
        return self._page[_DEADLINE.size :].split(b"\0", 1)[0].decode(errors="replace")

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        (deadline,) = _DEADLINE.unpack_from(self._page)
        return bool(time.monotonic() > deadline)

    def close(self) -> None:
        self._page.close()


def call(
    function: Callable[[Doing], T],
    seconds: float,
    memory: int | None = None,
    shared: Sequence[object] = (),
) -> T:
    """`function(doing)`, computed in a child that is killed after `seconds`.

    `memory` is how many bytes the child may have beyond those of this process. The result is
    pickled; objects in `shared` come back as themselves. What `function` raises is raised here,
    with the child's traceback as its cause. Raises KilledError, with what the child was doing,
    where it took too long or too much memory, or ended without an answer: by a signal, by an exit,
    or with an exception that cannot be pickled. The child is gone when this returns or raises.
    """
    doing = Doing(seconds)
    try:
        if not FORKS:
            return function(doing)
        with (
            _unnamed_file() as result,
            TemporaryDirectory(prefix="satura-call-", ignore_cleanup_errors=True) as folder,
        ):
            child = _Child(function, memory, shared, folder)
            status = _run(child, doing, result)
            if status is None:
                raise KilledError(doing.text, "seconds", "took too long")
            result.seek(0)
            return cast(T, _outcome(result, status, doing.text, memory, shared))
    finally:
        doing.close()


def _unnamed_file() -> BinaryIO:
    """A file in memory that the child inherits; never one of the standard streams."""
    number = os.memfd_create(_RESULT)
    try:
        return os.fdopen(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3), "w+b")
    finally:
        os.close(number)


@dataclass(frozen=True)
class _Outcome:
    """A "value", an "error" with its traceback, or, in words, how the call came to an "end"."""

    kind: str
    value: object
    traceback: str = ""


class _ChildError(Exception):
    """The traceback of an exception, as text, in the child that it comes from."""


@dataclass(frozen=True)
class _Child:
    """What a child computes, and what it may use."""

    function: Callable[[Doing], object]
    memory: int | None
    shared: Sequence[object]
    folder: str

    def live(self, doing: Doing, result: BinaryIO) -> NoReturn:
        """Compute, write the outcome, and end without any of the parent's clean-up."""
        status = 1
        try:
            _isolate(self.memory)
            mine = os.fstat(result.fileno()).st_ino
            for other in list(_results(Path("/proc/self"), mine, same=False)):
                os.close(other)  # of calls in other threads: by these files strays are known
            tempfile.tempdir = self.folder  # what a killed child leaves there, its parent removes
            outcome: _Outcome
            try:
                outcome = _Outcome("value", self.function(doing))
            except Exception as error:
                outcome = _Outcome("error", error, "".join(traceback.format_exception(error)))
            except BaseException as error:  # an exit or an interrupt must not end the parent
                outcome = _Outcome("end", f"raised {type(error).__name__}({error})")
            result.write(_packed(outcome, self.shared))
            result.flush()
            status = 0
        finally:
            with suppress(Exception):
                sys.stderr.flush()
            os._exit(status)


def _run(child: _Child, doing: Doing, result: BinaryIO) -> int | None:
    """Let a child fill `result`; its exit code, negative for a signal, None if it was late."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()  # or the child would print what waits there once more
    number = 0
    try:
        with warnings.catch_warnings():
            # Python warns of locks that other threads hold: the child runs none of their code.
            warnings.simplefilter("ignore", DeprecationWarning)
            number = os.fork()
        if number == 0:
            child.live(doing, result)
        with suppress(OSError):
            os.setpgid(number, number)  # the child does so too: whoever comes first
        while True:
            try:
                ended, status = os.waitpid(number, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                ended, status = number, 0
            if ended:
                return os.waitstatus_to_exitcode(status)
            if doing.is_late:
                return None
            time.sleep(_LOOK_SECONDS)
    finally:
        if number:
            _kill(number)
            _kill_strays(number, os.fstat(result.fileno()).st_ino)


def _kill_strays(child: int, inode: int) -> None:
    """End what left the child's group, as far as it still holds the file for the result."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) > child and _strayed(process, inode):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(process.name), signal.SIGKILL)


def _strayed(process: Path, inode: int) -> bool:
    """Whether a process holds the file, and is no child of ours that another thread has forked."""
    with suppress(OSError, IndexError):
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return int(parent) != os.getpid() and any(_results(process, inode, same=True))
    return False


def _results(process: Path, inode: int, same: bool) -> Iterator[int]:
    """File descriptors of a process for files of results: of the one with `inode`, or others."""
    for entry in (process / "fd").iterdir():
        with suppress(OSError):
            is_result = _RESULT in str(entry.readlink())
            if is_result and (entry.stat().st_ino == inode) is same:
                yield int(entry.name)


def _kill(child: int) -> None:
    """End the child, where it lives, and the processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        if os.waitpid(child, os.WNOHANG)[0] == 0:
            os.kill(child, signal.SIGKILL)  # it may have left its group
            os.waitpid(child, 0)


def _isolate(memory: int | None) -> None:
    """Cut the child off from the parent's terminal, and bound what it may take."""
    os.setpgid(0, 0)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    with suppress(OSError):
        os.dup2(2, 1)  # what rules print must not get into a command's output
    # A stream of its own: another thread may have held the lock of the old one at the fork.
    sys.stdout = sys.stderr = os.fdopen(
        2, "w", buffering=1, closefd=False, errors="backslashreplace"
    )
    import resource  # only where there is a fork

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        limit = _address_space() + memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    gc.freeze()  # a collection would only copy the parent's pages


def _address_space() -> int:
    """Bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE


def _packed(outcome: _Outcome, shared: Sequence[object]) -> bytes:
    """The pickled outcome; what does not survive pickling becomes text."""
    try:
        data = _dumps(outcome, shared)
        if outcome.kind == "error":
            _loads(io.BytesIO(data), shared)  # many exceptions can be written but not read
        return data
    except Exception as error:
        failed = outcome.value if outcome.kind == "error" else error
        return _dumps(_Outcome("end", f"raised {type(failed).__name__}: {failed}"), ())


def _outcome(
    result: BinaryIO, status: int, doing: str, memory: int | None, shared: Sequence[object]
) -> object:
    """The value that the child wrote; raises what it raised, or why there is nothing."""
    try:
        outcome = _loads(result, shared) if status == 0 else None
    except Exception:  # whatever stands there if the child has written to all its files
        outcome = None
    if isinstance(outcome, _Outcome):
        value = outcome.value
        if outcome.kind == "value":
            return value
        if isinstance(value, MemoryError):
            raise KilledError(doing, "memory", "ran out of memory") from value
        if isinstance(value, Exception):
            raise value from _ChildError(outcome.traceback)
        raise KilledError(doing, "crash", str(value))
    if status == -signal.SIGKILL:  # by the kernel, mostly, as what takes all memory
        raise KilledError(doing, "memory", "was killed (SIGKILL): it ran out of memory, perhaps")
    if status == -signal.SIGABRT and memory is not None:  # native code that gets no more
        raise KilledError(doing, "memory", "ran out of memory")
    if status == 0 and os.fstat(result.fileno()).st_size:
        raise KilledError(doing, "crash", "left no answer that can be read")
    end = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    raise KilledError(doing, "crash", f"ended its process ({end})")


# Pickle is fine here, and nowhere else in satura: what is read was written a moment ago by a fork
# of this very process, to a file that has no name.


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO, shared: Sequence[object]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {id(entry): place for place, entry in enumerate(shared)}

    def persistent_id(self, entry: object) -> int | None:
        return self._places.get(id(entry))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, place: int) -> object:
        return self._shared[place]


def _dumps(value: object, shared: Sequence[object]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, shared).dump(value)
    return file.getvalue()


def _loads(file: BinaryIO, shared: Sequence[object]) -> object:
    return _Unpickler(file, shared).load()
