"""A function run in a forked child, which is killed when it hangs.

A fork, because the function is mostly a closure over rules, which cannot be sent to another
process. Where there is no safe fork (anywhere but on Linux) it runs here, and nothing stops it.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic, sleep
from types import FrameType
from typing import NoReturn, TypeAlias, TypeVar, cast

from satura.rewrite.errors import SaturaError

T = TypeVar("T")

Doing: TypeAlias = Callable[[str, float], None]
"""Says what comes next, and how many seconds that may take."""

FORKS = sys.platform.startswith("linux")

_HUGE = 1 << 30  # bytes; a child that takes more is probably mistaken
_TICK = 0.01  # seconds between two looks at a child's clock, at least
_LATE = "took too long"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_ASKED = signal.SIGUSR2  # tells a late child to say where it is
_SAID = "where"  # the file in which it says so
_ANSWERING = 10.0  # seconds that it has, on a host that is busy itself
_STEAL = 7  # its place among the times of proc_stat(5)
_FORKING = Lock()  # or a child would hold the pipes of other threads' children open


class KilledError(SaturaError):
    """A call that was stopped or ended without an answer.

    `doing` is what it said last, `what` is how it ended, in words. `is_late`: its time was over
    outside of any function of a rule, so that more might help.
    """

    def __init__(self, doing: str, what: str) -> None:
        super().__init__(doing, what)
        self.doing, self.what = doing, what

    @property
    def is_late(self) -> bool:
        return self.what.startswith(f"{_LATE} (")

    def __str__(self) -> str:
        return f"{self.doing or 'a computation'} {self.what}"


def call(
    function: Callable[[Doing], T],
    seconds: float,
    memory: int | None = None,
    shared: Sequence[object] = (),
) -> T:
    """`function(doing)`, computed in a child that is killed when its `seconds` are over.

    They are seconds of CPU time, or of sleeping: a busy machine does not use them up.
    `doing` gives it other seconds from then on. `memory` is how many bytes the child may have
    beyond those of this process, by default half of the machine's. The result is pickled; objects
    in `shared` come back as themselves. What `function` raises is raised here, with the child's
    traceback as its cause; anything else that keeps it from answering is a KilledError. The child
    is gone when this returns or raises.
    """
    if not FORKS:
        return function(lambda text, seconds: None)
    limit = memory or _half_of_memory()
    with TemporaryDirectory(prefix="satura-call-", ignore_cleanup_errors=True) as folder:
        # Python loses the exceptions of signals that come during a fork.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            child, reader = _start_child(function, limit, shared, folder)
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                with reader:
                    doing, answer = _listen(reader, child, seconds, shared, Path(folder))
            finally:
                end = _end_child(child, limit)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    answer = answer or end
    if answer.kind == "value":
        return cast(T, answer.value)
    if isinstance(answer.value, Exception):
        raise answer.value from _ChildError(answer.traceback)
    raise KilledError(doing, str(answer.value))


@dataclass(frozen=True)
class _Answer:
    """What a child sends: a "value", an "error" with its traceback, or an "end" in words."""

    kind: str
    value: object
    traceback: str = ""


class _ChildError(Exception):
    """The traceback of an exception, as text, in the child that it comes from."""


def _start_child(
    function: Callable[[Doing], object], memory: int, shared: Sequence[object], folder: str
) -> tuple[int, Connection]:
    """Start a child that computes `function`. Returns its number and the pipe to read from."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()  # or the child would print what waits there once more
    with _FORKING, warnings.catch_warnings():
        # Python warns of locks that other threads hold: the child runs none of their code.
        warnings.simplefilter("ignore", DeprecationWarning)
        reader, writer = Pipe(duplex=False)
        child = os.fork()
        if child:
            writer.close()
    if child == 0:
        try:
            reader.close()
            _isolate(memory)
            tempfile.tempdir = folder  # what a killed child leaves there, its parent removes
            _answer_when_late(Path(folder))
            _send_answer(function, writer, shared, memory)
        finally:
            os._exit(1)
    return child, reader


def _send_answer(
    function: Callable[[Doing], object], writer: Connection, shared: Sequence[object], memory: int
) -> NoReturn:
    """Send what `function` gives or raises, and end without any of the parent's clean-up."""
    try:
        answer = _Answer("value", function(lambda *message: writer.send_bytes(_pack(message))))
    except MemoryError as error:
        answer = _Answer("end", f"{_out_of_memory(memory)}{f': {error}' if str(error) else ''}")
    except Exception as error:
        answer = _Answer("error", error, "".join(traceback.format_exception(error)))
    except BaseException as error:  # an exit or an interrupt must not end the parent
        answer = _Answer("end", f"raised {type(error).__name__}({error})")
    try:
        data = _pack(answer, shared)
        if answer.kind == "error":
            _unpack(data, shared)  # many exceptions can be written but not read
    except Exception as error:
        failed = answer.value if answer.kind == "error" else error
        data = _pack(_Answer("end", f"raised {type(failed).__name__}: {failed}"))
    writer.send_bytes(data)
    with suppress(Exception):
        sys.stderr.flush()
    os._exit(0)


def _listen(
    reader: Connection, child: int, seconds: float, shared: Sequence[object], folder: Path
) -> tuple[str, _Answer | None]:
    """The last thing that the child said it does, and its answer; None where it gave none."""
    doing = ""
    try:
        start = _Clock.read(child)
        while (left := seconds - _Clock.read(child).since(start)) > 0:
            if not reader.poll(max(left, _TICK)):
                continue
            message = _unpack(reader.recv_bytes(), shared)
            if isinstance(message, _Answer):
                return doing, message
            doing, seconds = cast(tuple[str, float], message)
            start = _Clock.read(child)
    except EOFError:
        return doing, None
    except Exception:  # whatever the child may have written to all its files
        return doing, _Answer("end", "left no answer that can be read")
    note = f"(the limit is {seconds:g} s of CPU time){_memory_note(child)}"
    function = _function_of_late(child, folder)
    end = f"{_LATE} in {function} {note}" if function else f"{_LATE} {note}"
    return doing, _Answer("end", end)


def _answer_when_late(folder: Path) -> None:
    """Let this child write the function of a rule in which it is to a file, where it is asked."""

    def answer(number: int, frame: FrameType | None) -> None:
        from satura.rewrite.language.called import running_function

        with suppress(Exception):  # arguments may be anything
            (folder / "said").write_text(running_function(frame), errors="backslashreplace")
        (folder / "said").rename(folder / _SAID)

    with suppress(ValueError):  # the fork of a thread that may handle no signals
        signal.signal(_ASKED, answer)


def _function_of_late(child: int, folder: Path) -> str:
    """The function of a rule in which a child is; empty where it is in none or does not answer."""
    with suppress(OSError):
        os.kill(child, _ASKED)
    until = monotonic() + _ANSWERING
    while monotonic() < until:
        with suppress(OSError):
            return (folder / _SAID).read_text()
        sleep(_TICK)
    return ""


@dataclass(frozen=True)
class _Clock:
    """Seconds by the clock on the wall, those that a process computed or waited for a CPU, and
    those that another machine on the same host has `stolen` from all CPUs of this one."""

    wall: float
    computed: float = 0.0
    waited: float = 0.0
    stolen: float = 0.0

    @classmethod
    def read(cls, process: int) -> _Clock:
        """The clock of `process` now; the wall's alone where the system does not count."""
        wall = monotonic()
        with suppress(OSError, ValueError, IndexError):  # it has just ended
            computed, waited = Path(f"/proc/{process}/schedstat").read_text().split()[:2]
            return cls(wall, int(computed) / 1e9, int(waited) / 1e9, _stolen())
        return cls(wall)

    def since(self, start: _Clock) -> float:
        """The seconds of computing, or of sleeping where these are more.

        Neither depends on what else the machine does.
        """
        computed = self.computed - start.computed
        waited = self.waited - start.waited + self.stolen - start.stolen
        slept = self.wall - start.wall - computed - waited
        return max(computed, slept)


def _stolen() -> float:
    """The seconds in which a hypervisor ran other machines on this one's CPUs; 0 if none tells."""
    with suppress(OSError, ValueError, IndexError):
        _, *ticks = Path("/proc/stat").read_text().splitlines()[0].split()
        return int(ticks[_STEAL]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _memory_note(child: int) -> str:
    """A note on how much memory `child` has taken, where that may be why it is slow."""
    with suppress(OSError, ValueError, IndexError):  # it has just ended
        taken = _memory(child) - _memory(os.getpid())
        if taken >= _HUGE:
            return f" and {taken / (1 << 30):.1f} GiB of memory"
    return ""


def _memory(process: int) -> int:
    """The size in bytes of the address space of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _out_of_memory(memory: int) -> str:
    return f"ran out of memory (the limit is {memory / (1 << 30):.3g} GiB beyond what was loaded)"


def _half_of_memory() -> int:
    """Half of the bytes that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _end_child(child: int, memory: int) -> _Answer:
    """Kill the child and what it started. Returns how it ended."""
    for kill in (os.killpg, os.kill):  # it may not have its group yet, or no more
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    status = 0
    with suppress(ChildProcessError):  # somebody else has waited for it
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGKILL:  # by the kernel, mostly, as what takes all memory
        return _Answer("end", "was killed (SIGKILL): it ran out of memory, perhaps")
    if status == -signal.SIGABRT:  # native code that gets no more
        return _Answer("end", _out_of_memory(memory))
    end = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return _Answer("end", f"ended its process ({end})")


def _isolate(memory: int) -> None:
    """Cut the child off from the parent's terminal, and limit what it may take."""
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # what rules print must not get into a command's output
    # A stream of its own: another thread may have held the lock of the old one at the fork.
    sys.stdout = sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    import resource  # only where there is a fork

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _memory(os.getpid()) + memory
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError):  # it has a lower limit already
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    gc.freeze()  # a collection would only copy the parent's pages


# Pickle is fine here, and nowhere else in satura: what is read was written a moment ago by a fork
# of this very process, to a pipe that has no name.


class _Pickler(pickle.Pickler):
    places: Mapping[int, int]

    def persistent_id(self, entry: object) -> int | None:
        return self.places.get(id(entry))


class _Unpickler(pickle.Unpickler):
    shared: Sequence[object]

    def persistent_load(self, place: int) -> object:
        return self.shared[place]


def _pack(value: object, shared: Sequence[object] = ()) -> bytes:
    pickler = _Pickler(file := io.BytesIO(), pickle.HIGHEST_PROTOCOL)
    pickler.places = {id(entry): place for place, entry in enumerate(shared)}
    pickler.dump(value)
    return file.getvalue()


def _unpack(data: bytes, shared: Sequence[object]) -> object:
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.shared = shared
    return unpickler.load()
