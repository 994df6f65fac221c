"""From the source text of a kernel to machine code.

A kernel is a Python function `kernel(args, thread, threads)` over helpers of `namespace.py`. Numba
types it and lowers it, LLVM optimises it, and the object code is kept on disk under the hash of
all that determines it. Loading such an object needs llvmlite alone: a warm start never imports
Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from satura.backend.cache import default_cache
from satura.backend.target import host_target
from satura.rewrite.errors import SaturaError

_CODE_FILES = (
    "jit.py", "translate.py", "namespace.py", "vector.py", "microkernels", "emit/scalars.py",
    "emit/approximations.py",
)  # fmt: skip
_MATH_LIBRARIES = ("libm.so.6", "libm.so", "libSystem.dylib")

Progress = Callable[[int, int], None]


class KernelError(SaturaError):
    """A kernel that does not compile: a fault of satura, not of the model."""


@dataclass(frozen=True)
class KernelSource:
    """Text that defines `kernel(args, thread, threads)`; `name` is for people and messages.

    Sources with equal text share one piece of code, whatever their names.
    """

    name: str
    text: str

    @property
    def key(self) -> str:
        """The hash of everything that the object code depends on."""
        return hashlib.sha256(f"{_environment()}\n{self.text}".encode()).hexdigest()

    @property
    def symbol(self) -> str:
        """The kernel's name in its object code."""
        return f"satura_{self.key[:40]}"


@dataclass(frozen=True)
class CompiledKernel:
    """Object code that exports `symbol`, and the library functions that it calls."""

    symbol: str
    externals: tuple[str, ...]
    code: bytes

    def packed(self) -> bytes:
        """This kernel as bytes for the cache."""
        header = json.dumps({"symbol": self.symbol, "externals": list(self.externals)})
        return header.encode() + b"\n" + self.code

    @staticmethod
    def unpacked(data: bytes) -> CompiledKernel:
        """The kernel that `packed` wrote."""
        header, _, code = data.partition(b"\n")
        fields = json.loads(header)
        return CompiledKernel(fields["symbol"], tuple(fields["externals"]), code)


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

    def load(self, kernel: CompiledKernel) -> int:
        """The address of the kernel. KernelError where it calls what this process lacks."""
        missing = [name for name in kernel.externals if not llvm.address_of_symbol(name)]
        if missing:  # LLVM would end the process
            raise KernelError(f"a kernel calls {', '.join(missing)}, which no library here has")
        with self.lock:
            if kernel.symbol not in self._addresses:
                compiled = llvm.ObjectFileRef.from_data(kernel.code)
                self._engine.add_object_file(compiled)
                self._engine.finalize_object()
                self._objects.append(compiled)
                address = self._engine.get_function_address(kernel.symbol)
                if not address:
                    raise KernelError(f"the object code does not define {kernel.symbol}")
                self._addresses[kernel.symbol] = int(address)
            return self._addresses[kernel.symbol]


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
                self._loader = _Loader()
            return self._loader

    def _renew_locks(self) -> None:
        """Another thread of the parent may have held them, and that thread is gone."""
        self._lock = threading.Lock()
        if self._loader is not None:
            self._loader.lock = threading.Lock()


_loader = _Singleton().get


@lru_cache(maxsize=1)
def _environment() -> str:
    """Versions and target: everything but the text that object code depends on."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for name in _CODE_FILES:
        place = folder / name
        for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            if path.exists():
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    versions = f"numba {version('numba')} llvmlite {version('llvmlite')}"
    return f"{versions} code {digest.hexdigest()} target {host_target().identity}"


def is_compiled(source: KernelSource) -> bool:
    """Whether `kernel_address` would answer without compiling anything."""
    return _loader().known(source.symbol) is not None or _cached(source) is not None


def kernel_address(source: KernelSource) -> int:
    """The address of the kernel as `void(int64 args, int64 thread, int64 threads)`.

    Taken from this process, else from the disk cache, else compiled (and cached).
    """
    loader = _loader()
    address = loader.known(source.symbol)
    if address is not None:
        return address
    kernel = _cached(source)
    if kernel is None:
        kernel = _compiled(source)
    return loader.load(kernel)


def compile_all(sources: Sequence[KernelSource], progress: Progress | None = None) -> list[int]:
    """The addresses of all kernels, in order; `progress(done, all)` is called after each."""
    addresses = []
    for done, source in enumerate(sources, start=1):
        addresses.append(kernel_address(source))
        if progress is not None:
            progress(done, len(sources))
    return addresses


def kernel_function(address: int) -> Callable[[int, int, int], None]:
    """The kernel as something Python can call; the call releases the interpreter lock."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    function: Callable[[int, int, int], None] = prototype(address)
    return function


def _cached(source: KernelSource) -> CompiledKernel | None:
    data = default_cache().load(source.key)
    return None if data is None else CompiledKernel.unpacked(data)


def _compiled(source: KernelSource) -> CompiledKernel:
    from satura.backend.translate import translated

    module = llvm.parse_assembly(translated(source.name, source.text, source.symbol))
    kernel = _object_code(source.symbol, module)
    default_cache().store(source.key, kernel.packed())
    return kernel


def _object_code(symbol: str, module: llvm.ModuleRef) -> CompiledKernel:
    """Machine code of a module in which only `symbol` stays visible from outside."""
    for value in (*module.functions, *module.global_variables):
        if value.name != symbol and not value.is_declaration:
            value.linkage = "internal"
    machine = host_target().machine()
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    externals = tuple(
        sorted(
            function.name
            for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        )
    )
    return CompiledKernel(symbol, externals, machine.emit_object(module))
