"""Compiling kernels: by helpers, and by this process where it has loaded LLVM anyway.

Compilation holds the interpreter lock and takes about a tenth of a second per kernel, so threads do
not help; and LLVM would stay in this process with some 80 MB. Helpers are fresh interpreters, not
forks: a fork would inherit locks of other threads. They read sources from their standard input and
write machine code to their standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from queue import SimpleQueue

from satura.backend.cores import usable_threads
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource, microkernels_of
from satura.rewrite.system.interrupts import to_the_end
from satura.rewrite.system.threads import started

_KERNELS_PER_HELPER = 4  # a helper first spends the time of about two on its imports
# A helper imports from where this process does, but for the current folder, which `-c` and
# interactive sessions put first: code beside a model must not run.
_COMMAND = (
    "import sys; sys.path[:] = sys.argv[1:]; from satura.backend.jit.workers import serve; serve()"
)
_LENGTH_BYTES = 8
_LONGEST_ANSWER = 1 << 26

Result = tuple[KernelSource, CompiledKernel]


class Compilers:
    """Helpers, started when first needed, which serve until the context ends."""

    def __init__(self) -> None:
        self._helpers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for helper in self._helpers:
            if error is not None:  # it is at work, and nobody asks for that any more
                helper.kill()
            with helper:  # closes its input, which ends it, and waits
                pass

    def compiled(self, sources: Sequence[KernelSource]) -> Iterator[Result]:
        """Every source with its machine code, as they get ready. KernelError where one is wrong."""
        waiting = deque(sources)
        results: SimpleQueue[Result | None] = SimpleQueue()
        is_here = "llvmlite.binding" in sys.modules
        count = _helpers_for(len(sources), is_here)
        busy = 0
        while busy < count:  # or as many as the system has processes and threads for
            if busy == len(self._helpers):
                helper = _started()
                if helper is None:
                    break
                self._helpers.append(helper)
            drive = partial(_drive, self._helpers[busy], waiting, results)
            if started(drive, "satura-compiler", daemon=True) is None:
                break
            busy += 1
        try:
            while is_here and (source := _take(waiting)) is not None:
                yield source, compiled_here(source)
            while busy:
                result = results.get()
                if result is None:
                    busy -= 1
                else:
                    yield result
            while (source := _take(waiting)) is not None:  # nobody took it, or a helper put it back
                yield source, compiled_here(source)
        finally:
            waiting.clear()  # nobody asks for the rest after an interrupt


def compiled_here(source: KernelSource) -> CompiledKernel:
    """The kernel's machine code, compiled by this process. KernelError where its text is wrong."""

    def work() -> CompiledKernel:
        from satura.backend.jit.translate import compile_kernel

        return compile_kernel(source)

    return to_the_end(work)


def _helpers_for(kernels: int, is_here: bool) -> int:
    """Of the cores, or of what SATURA_COMPILERS says, as many as that many kernels are worth.

    Where this process has LLVM it compiles, too.
    """
    if not kernels or not sys.executable:
        return 0
    least = 0 if is_here else 1
    most = int(os.environ.get("SATURA_COMPILERS", usable_threads() - 1 + least))
    return min(most, max(least, kernels // _KERNELS_PER_HELPER))


def serve() -> None:
    """What a helper does: answers each source with its length and its object code.

    An answer of length 0 means failure, which the asking process meets again, with its message.
    """
    from satura.backend.jit.translate import compile_kernel

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not get between the answers
    for line in sys.stdin.buffer:
        name, text, symbol = json.loads(line)
        source = next(iter(microkernels_of([symbol])), KernelSource(name, text))
        try:
            answer = compile_kernel(source).packed()
        except KernelError:
            answer = b""
        answers.write(len(answer).to_bytes(_LENGTH_BYTES, "little") + answer)
        answers.flush()


def _started() -> subprocess.Popen[bytes] | None:
    """A new helper; None where the system has no process, memory or file number for it."""
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *filter(None, sys.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, MemoryError):
        return None


def _drive(
    helper: subprocess.Popen[bytes], waiting: deque[KernelSource],
    results: SimpleQueue[Result | None],
) -> None:  # fmt: skip
    """Feeds one helper until nothing waits or the helper fails; the last result is None."""
    while (source := _take(waiting)) is not None:
        answer = _ask(helper, source)
        if answer is None:
            waiting.append(source)
            helper.kill()
            break
        results.put((source, answer))
    results.put(None)


def _ask(helper: subprocess.Popen[bytes], source: KernelSource) -> CompiledKernel | None:
    """The helper's answer; None if it failed or died."""
    if helper.stdin is None or helper.stdout is None:
        return None
    try:
        helper.stdin.write(json.dumps([source.name, source.text, source.symbol]).encode() + b"\n")
        helper.stdin.flush()
        length = int.from_bytes(helper.stdout.read(_LENGTH_BYTES), "little")
        if not 0 < length <= _LONGEST_ANSWER:
            return None
        answer = CompiledKernel.unpacked(helper.stdout.read(length))
    except (OSError, ValueError, TypeError):
        return None
    return answer if answer.symbol == source.symbol else None


def _take(waiting: deque[KernelSource]) -> KernelSource | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None
