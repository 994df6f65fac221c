"""Machine code into this process: images by copying them, all other object code by LLVM.

What is loaded stays for ever, as a thread may be in it until the process ends. Memory is filled
first and made executable then: it is never writable and executable at once.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby

from satura.backend.jit.kernel import ADDRESS_BYTES, CompiledKernel, KernelError
from satura.rewrite.system.forks import renew_after_fork
from satura.rewrite.system.interrupts import to_the_end

_MATH_LIBRARY = "libm.so.6"
_NO_MEMORY = ctypes.c_void_p(-1).value

Addresses = Mapping[str, int]


class Loader:
    """Code in, addresses out. Addresses stay valid for ever."""

    def __init__(self) -> None:
        self._addresses: dict[str, int] = {}
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Take a new lock, which nobody holds."""
        self._lock = threading.Lock()

    def known(self, symbol: str) -> int | None:
        """The address of a symbol loaded before."""
        return self._addresses.get(symbol)

    def load(self, kernels: Sequence[CompiledKernel]) -> list[int]:
        """The addresses of kernels, which come behind what they call.

        Raises KernelError where they call what this process lacks, or start outside their code.
        """
        return to_the_end(lambda: self._load(kernels))

    def _load(self, kernels: Sequence[CompiledKernel]) -> list[int]:
        with self._lock:
            new = {k.symbol: k for k in kernels if k.symbol not in self._addresses}
            for is_image, group in groupby(new.values(), lambda kernel: kernel.entry is not None):
                self._addresses |= _loading(is_image)(list(group), self._addresses)
            return [self._addresses[kernel.symbol] for kernel in kernels]


loader = cache(Loader)
"""The process's loader, made when first needed."""


def _loading(is_image: bool) -> Callable[[Sequence[CompiledKernel], Addresses], dict[str, int]]:
    if is_image:
        return copied
    from satura.backend.jit.engine import loaded_by_llvm

    return loaded_by_llvm


def copied(images: Sequence[CompiledKernel], known: Addresses) -> dict[str, int]:
    """The addresses of images, copied to pages of their own. Raises KernelError as `load` does."""
    starts, size = [], 0
    for kernel in images:
        starts.append(size)
        size += -(-len(kernel.code) // mmap.PAGESIZE) * mmap.PAGESIZE
        if not ADDRESS_BYTES * len(kernel.externals) <= _entry(kernel) < len(kernel.code):
            raise KernelError(f"the kernel {kernel.symbol} does not start inside its code")
    places = {k.symbol: start + _entry(k) for start, k in zip(starts, images, strict=True)}
    others = {name for kernel in images for name in kernel.externals} - places.keys() - known.keys()
    found = {**known, **{name: address_of_function(name) for name in others}}
    missing = [name for name in sorted(others) if not found[name]]
    if missing:
        raise KernelError(f"a kernel calls {', '.join(missing)}, which no library here has")
    base = _pages(size)
    addresses = {name: base + place for name, place in places.items()}
    found |= addresses
    for start, kernel in zip(starts, images, strict=True):
        table = struct.pack(f"{len(kernel.externals)}Q", *map(found.__getitem__, kernel.externals))
        content = table + kernel.code[len(table) :]
        ctypes.memmove(base + start, content, len(content))
    if _system().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise KernelError("this system does not let a process run code that it has made")
    return addresses


def _entry(kernel: CompiledKernel) -> int:
    return -1 if kernel.entry is None else kernel.entry


def _pages(size: int) -> int:
    """The address of that many new bytes, to be written."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _system().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base == _NO_MEMORY:
        raise KernelError(f"there is no memory for {size} bytes of code")
    return int(base)


@cache
def _system() -> ctypes.CDLL:
    """The C library's functions for pages. Python's own `mmap` would take them back at exit."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    ]  # fmt: skip
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def address_of_function(name: str) -> int | None:
    """The address of a function of this process's C or mathematical library, None for no such."""
    for library in (None, _MATH_LIBRARY):
        try:
            function = ctypes.CDLL(library)[name]
        except (OSError, AttributeError, ValueError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None
