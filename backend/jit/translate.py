"""Compilation proper, which needs Numba: the text of a kernel to object code."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

import llvmlite.binding as llvm
from numba.core.errors import NumbaError

from satura.backend.helpers.namespace import namespace_of
from satura.backend.jit.frontend import lowered
from satura.backend.jit.kernel import CompiledKernel, KernelError, KernelSource
from satura.backend.target import host_target


def compiled(source: KernelSource) -> CompiledKernel:
    """The kernel's object code. KernelError where the text does not type or lower."""
    module = optimised(source)
    externals = tuple(
        sorted(
            function.name
            for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        )
    )
    return CompiledKernel(source.symbol, externals, host_target().machine().emit_object(module))


def optimised(source: KernelSource) -> llvm.ModuleRef:
    """The kernel's optimised module, in which nothing else is visible from outside.

    Raises KernelError where the text does not type or lower.
    """
    try:
        with _without_collections():
            module = lowered(_defined(source.text, source.symbol), source.symbol)
    except NumbaError as error:
        raise KernelError(f"kernel {source.name} does not compile: {error}") from error
    for value in (*module.functions, *module.global_variables):
        if value.name != source.symbol and not value.is_declaration:
            value.linkage = "internal"
    _optimise(module, host_target().machine())
    return module


def assembly(source: KernelSource) -> str:
    """The kernel's machine code for this CPU as text. Raises KernelError as `optimised` does."""
    return str(host_target().machine().emit_assembly(optimised(source)))


@contextmanager
def _without_collections() -> Iterator[None]:
    """No search for cycles: Numba makes many objects, and the search a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _defined(text: str, symbol: str) -> FunctionType:
    """The function `kernel` that the text defines, with a file name that tracebacks can show."""
    file = f"<{symbol}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    code = compile(text, file, "exec")
    namespace = namespace_of(code)
    exec(code, namespace)
    function = namespace["kernel"]
    if not isinstance(function, FunctionType):
        raise TypeError(f"{symbol} does not define a function 'kernel'")
    return function


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
