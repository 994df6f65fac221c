"""From the source text of a kernel to machine code.

A kernel is a Python function `kernel(args, thread, threads)` over helpers of `namespace.py`, which
is translated to LLVM's language and optimised by LLVM. The object code is kept on disk under the
hash of all that determines it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from satura.backend.jit.cache import default_cache
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource
from satura.backend.jit.loading import loader

Progress = Callable[[int, int], None]


def is_compiled(source: KernelSource) -> bool:
    """Whether `kernel_address` would answer without compiling anything."""
    return loader().known(source.symbol) is not None or _read_cache(source) is not None


def kernel_address(source: KernelSource) -> int:
    """The address of the kernel as `void(int64 args, int64 thread, int64 threads)`.

    Taken from this process, else from the disk cache, else compiled (and cached).
    """
    address = loader().known(source.symbol)
    if address is not None:
        return address
    kernel = _read_cache(source)
    if kernel is None:
        kernel = _compile(source)
    return _load(kernel)


def compile_all(sources: Sequence[KernelSource], progress: Progress | None = None) -> list[int]:
    """The addresses of distinct kernels, in order; `progress(done, all)` tells how many are ready.

    What is in no cache is compiled, by several processes where that pays.
    """
    missing = []
    for source in sources:
        if loader().known(source.symbol) is None:
            kernel = _read_cache(source)
            if kernel is None:
                missing.append(source)
            else:
                _load(kernel)
    ready = len(sources) - len(missing)
    if progress is not None:
        progress(ready, len(sources))
    if missing:
        from satura.backend.jit.workers import compiled_by_all

        for source, kernel in compiled_by_all(missing):
            default_cache().store(source.key, kernel.packed())
            _load(kernel)
            ready += 1
            if progress is not None:
                progress(ready, len(sources))
    return [kernel_address(source) for source in sources]


def objects_of(sources: Sequence[KernelSource]) -> list[CompiledKernel]:
    """The object code of kernels, each behind the microkernels that it calls."""
    found: dict[str, CompiledKernel] = {}
    for source in sources:
        kernel = _read_cache(source) or _compile(source)
        found |= {part.symbol: part for part in objects_of(kernel.microkernels)}
        found[kernel.symbol] = kernel
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


def _load(kernel: CompiledKernel) -> int:
    """The address of the kernel, for which the microkernels that it calls are loaded, too."""
    for part in kernel.microkernels:
        kernel_address(part)
    return loader().load([kernel])[0]


def _read_cache(source: KernelSource) -> CompiledKernel | None:
    data = default_cache().load(source.key)
    return None if data is None else CompiledKernel.unpacked(data)


def _compile(source: KernelSource) -> CompiledKernel:
    from satura.backend.jit.workers import compiled_here

    kernel = compiled_here(source)
    default_cache().store(source.key, kernel.packed())
    return kernel


__all__ = [
    "CompiledKernel", "KernelError", "KernelSource", "Progress", "compile_all", "is_compiled",
    "kernel_address", "kernel_function", "load_all", "objects_of",
]  # fmt: skip
