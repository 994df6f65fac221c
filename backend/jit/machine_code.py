"""From the source text of a kernel to machine code.

A kernel is a Python function `kernel(args, thread, threads)` over helpers of `namespace.py`, which
is translated to LLVM's language and optimised by LLVM. The object code is kept on disk under the
hash of all that determines it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource
from satura.backend.jit.loading import loader
from satura.rewrite.system.turns import lock_of, taking_turn

Progress = Callable[[int, int], None]


def is_compiled(source: KernelSource) -> bool:
    """Whether `kernel_address` would answer without compiling anything."""
    return loader().known(source.symbol) is not None or _read_cache(source) is not None


def kernel_address(source: KernelSource) -> int:
    """The address of the kernel as `void(int64 args, int64 thread, int64 threads)`.

    Taken from this process, else from the disk cache, else compiled (and cached).
    """
    return compile_all([source])[0]


def compile_all(sources: Sequence[KernelSource], progress: Progress | None = None) -> list[int]:
    """The addresses of distinct kernels, in order; `progress(done, all)` tells how many are ready.

    What is in no cache is compiled, by several processes where that pays. Of threads that lack the
    same kernels one does it, and the others wait for them.
    """
    known = loader().known

    def lacking() -> list[KernelSource]:
        return [source for source in sources if known(source.symbol) is None]

    def report(left: int) -> None:
        if progress is not None:
            progress(len(sources) - left, len(sources))

    if missing := lacking():
        with lock_of(" ".join(source.symbol for source in missing)), taking_turn():
            missing = lacking()
            loader().load(_gathered(missing, lambda symbol: known(symbol) is not None, report))
    if not missing:
        report(0)
    addresses = (known(source.symbol) for source in sources)
    return [address for address in addresses if address is not None]


def objects_of(sources: Sequence[KernelSource]) -> list[CompiledKernel]:
    """The machine code of kernels, each behind the microkernels that it calls."""
    return _gathered(sources, lambda symbol: False, lambda left: None)


def _gathered(
    sources: Sequence[KernelSource], is_known: Callable[[str], bool],
    report: Callable[[int], None],
) -> list[CompiledKernel]:  # fmt: skip
    """Kernels and the microkernels that they call, but for known ones, from the cache or compiled.

    What is called comes before what calls it. `report` is told how many sources are not ready.
    """
    from satura.backend.jit.cache import default_cache  # what opens a saved program needs neither
    from satura.backend.jit.workers import Compilers

    found: dict[str, CompiledKernel] = {}
    wanted = list(sources)
    with Compilers() as compilers:
        while wanted:
            cached = {source: _read_cache(source) for source in wanted}
            missing = [source for source, kernel in cached.items() if kernel is None]
            batch = {kernel.symbol: kernel for kernel in cached.values() if kernel is not None}
            report(left := len(missing))
            for source, kernel in compilers.compiled(missing):
                default_cache().store(source.key, kernel.packed())
                batch[kernel.symbol] = kernel
                report(left := left - 1)
            found = batch | found
            called = (each for kernel in batch.values() for each in kernel.microkernels)
            wanted = [
                each
                for each in dict.fromkeys(called)
                if each.symbol not in found and not is_known(each.symbol)
            ]
            report = _nothing
    return list(found.values())


def load_all(kernels: Sequence[CompiledKernel]) -> list[int]:
    """The addresses of kernels, which come behind what they call.

    Raises KernelError as `Loader.load` does.
    """
    return loader().load(kernels)


def kernel_function(address: int) -> Callable[[int, int, int], None]:
    """The kernel as something Python can call; the call releases the interpreter lock."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    function: Callable[[int, int, int], None] = prototype(address)
    return function


def _nothing(left: int) -> None:
    """Tells nobody."""


def _read_cache(source: KernelSource) -> CompiledKernel | None:
    from satura.backend.jit.cache import default_cache

    data = default_cache().load(source.key)
    return None if data is None else CompiledKernel.unpacked(data)


__all__ = [
    "CompiledKernel", "KernelError", "KernelSource", "Progress", "compile_all", "is_compiled",
    "kernel_address", "kernel_function", "load_all", "objects_of",
]  # fmt: skip
