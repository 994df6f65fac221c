"""From the source text of a kernel to machine code.

A kernel is a Python function `kernel(args, thread, threads)` over helpers of `namespace.py`, which
is translated to LLVM's language and optimised by LLVM. The object code is kept on disk under the
hash of all that determines it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from satura.backend.jit.cache import default_cache
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource
from satura.backend.target import host_target
from satura.rewrite.system.interrupts import to_the_end

_MATH_LIBRARIES = ("libm.so.6", "libm.so", "libSystem.dylib")

Progress = Callable[[int, int], None]


class _Loader:
    """The process's engine: object code in, addresses out. Addresses stay valid for ever."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._addresses: dict[str, int] = {}
        self._objects: list[llvm.ObjectFileRef] = []
        target = host_target()
        for name in _MATH_LIBRARIES:
            try:
                llvm.load_library_permanently(name)
                break
            except RuntimeError:
                continue  # another platform's name
        module = llvm.parse_assembly("")
        module.triple = target.triple
        self._engine = llvm.create_mcjit_compiler(module, target.machine())

    def known(self, symbol: str) -> int | None:
        """The address of a symbol loaded before."""
        return self._addresses.get(symbol)

    def load(self, kernels: Sequence[CompiledKernel]) -> list[int]:
        """The addresses of kernels, which come behind what they call.

        Raises KernelError where they call what this process lacks.
        """
        return to_the_end(lambda: self._load(kernels))

    def _load(self, kernels: Sequence[CompiledKernel]) -> list[int]:
        defined = {kernel.symbol for kernel in kernels} | self._addresses.keys()
        missing = [
            name
            for kernel in kernels
            for name in kernel.externals
            if name not in defined and not llvm.address_of_symbol(name)
        ]
        if missing:  # LLVM would end the process
            raise KernelError(f"a kernel calls {', '.join(missing)}, which no library here has")
        with self.lock:
            new = {k.symbol: k for k in kernels if k.symbol not in self._addresses}
            for kernel in new.values():
                compiled = llvm.ObjectFileRef.from_data(kernel.code)
                self._engine.add_object_file(compiled)
                self._objects.append(compiled)
            if new:
                self._engine.finalize_object()
            for symbol in new:
                address = self._engine.get_function_address(symbol)
                if not address:
                    raise KernelError(f"the object code does not define {symbol}")
                self._addresses[symbol] = int(address)
            return [self._addresses[kernel.symbol] for kernel in kernels]


class _Singleton:
    """The process's loader, made when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loader: _Loader | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_locks)

    def get(self) -> _Loader:
        with self._lock:
            if self._loader is None:
                self._loader = to_the_end(_Loader)
            return self._loader

    def _renew_locks(self) -> None:
        """Another thread of the parent may have held them, and that thread is gone."""
        self._lock = threading.Lock()
        if self._loader is not None:
            self._loader.lock = threading.Lock()


_loader = _Singleton().get


def is_compiled(source: KernelSource) -> bool:
    """Whether `kernel_address` would answer without compiling anything."""
    return _loader().known(source.symbol) is not None or _read_cache(source) is not None


def kernel_address(source: KernelSource) -> int:
    """The address of the kernel as `void(int64 args, int64 thread, int64 threads)`.

    Taken from this process, else from the disk cache, else compiled (and cached).
    """
    loader = _loader()
    address = loader.known(source.symbol)
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
    loader = _loader()
    missing = []
    for source in sources:
        if loader.known(source.symbol) is None:
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

    Raises KernelError where they call what this process lacks.
    """
    return _loader().load(kernels)


def kernel_function(address: int) -> Callable[[int, int, int], None]:
    """The kernel as something Python can call; the call releases the interpreter lock."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    function: Callable[[int, int, int], None] = prototype(address)
    return function


def _load(kernel: CompiledKernel) -> int:
    """The address of the kernel, for which the microkernels that it calls are loaded, too."""
    for part in kernel.microkernels:
        kernel_address(part)
    return _loader().load([kernel])[0]


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
