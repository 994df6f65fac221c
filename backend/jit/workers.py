"""Compiling many kernels: by this process and, where that pays, by helpers beside it.

Compilation holds the interpreter lock and takes about a tenth of a second per kernel, so threads do
not help. Helpers are fresh interpreters, not forks: a fork would inherit locks of other threads.
They read sources from their standard input and write object code to their standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from satura.backend.cores import usable_threads
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource
from satura.rewrite.system.interrupts import to_the_end

_KERNELS_PER_HELPER = 4  # a helper first spends the time of about two on its imports
# A helper imports from where this process does, but for the current folder, which `-c` and
# interactive sessions put first: code beside a model must not run.
_COMMAND = (
    "import sys; sys.path[:] = sys.argv[1:]; from satura.backend.jit.workers import serve; serve()"
)
_LENGTH_BYTES = 8
_LONGEST_ANSWER = 1 << 26

Result = tuple[KernelSource, CompiledKernel]


def compiled_by_all(sources: Sequence[KernelSource]) -> Iterator[Result]:
    """Every source with its object code, as they get ready. KernelError where one is wrong."""
    waiting = deque(sources)
    results: SimpleQueue[Result] = SimpleQueue()
    count = min(_most_helpers(), len(sources) // _KERNELS_PER_HELPER)
    helpers = [
        threading.Thread(target=_drive, args=(waiting, results), daemon=True)
        for _ in range(count if sys.executable else 0)
    ]
    for helper in helpers:
        helper.start()
    try:
        while True:
            while (source := _take(waiting)) is not None:
                yield source, compiled_here(source)
                while not results.empty():
                    yield results.get()
            for helper in helpers:
                helper.join()
            while not results.empty():
                yield results.get()
            if not waiting:  # a helper that failed has put its source back
                return
    finally:
        waiting.clear()  # nobody asks for the rest after an interrupt


def compiled_here(source: KernelSource) -> CompiledKernel:
    """The kernel's object code, compiled by this process. KernelError where its text is wrong."""

    def work() -> CompiledKernel:
        from satura.backend.jit.translate import compile_kernel

        return compile_kernel(source)

    return to_the_end(work)


def _most_helpers() -> int:
    """One per further core, or what SATURA_COMPILERS says."""
    return int(os.environ.get("SATURA_COMPILERS", usable_threads() - 1))


def serve() -> None:
    """What a helper does: answers each source with its length and its object code.

    An answer of length 0 means failure, which the asking process meets again, with its message.
    """
    from satura.backend.jit.translate import compile_kernel

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not get between the answers
    for line in sys.stdin.buffer:
        name, text = json.loads(line)
        try:
            answer = compile_kernel(KernelSource(name, text)).packed()
        except KernelError:
            answer = b""
        answers.write(len(answer).to_bytes(_LENGTH_BYTES, "little") + answer)
        answers.flush()


def _drive(waiting: deque[KernelSource], results: SimpleQueue[Result]) -> None:
    """Feeds one helper until nothing waits or the helper fails."""
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *filter(None, sys.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as helper:  # fmt: skip
        while (source := _take(waiting)) is not None:
            answer = _ask(helper, source)
            if answer is None:
                waiting.append(source)
                helper.kill()
                return
            results.put((source, answer))


def _ask(helper: subprocess.Popen[bytes], source: KernelSource) -> CompiledKernel | None:
    """The helper's answer; None if it failed or died."""
    if helper.stdin is None or helper.stdout is None:
        return None
    try:
        helper.stdin.write(json.dumps([source.name, source.text]).encode() + b"\n")
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
