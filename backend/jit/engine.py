"""Object code into this process by LLVM, where it is not linked by `linking.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm

from satura.backend.jit.kernel import CompiledKernel, KernelError
from satura.backend.target import host_target

_MATH_LIBRARIES = ("libm.so.6", "libm.so", "libSystem.dylib")
_objects: list[llvm.ObjectFileRef] = []


def loaded_by_llvm(kernels: Sequence[CompiledKernel], known: Mapping[str, int]) -> dict[str, int]:
    """The addresses of kernels. Raises KernelError where they call what this process lacks."""
    engine = _engine()
    defined = {kernel.symbol for kernel in kernels} | known.keys()
    names = {name for kernel in kernels for name in kernel.externals}
    missing = sorted(name for name in names - defined if not llvm.address_of_symbol(name))
    if missing:  # LLVM would end the process
        raise KernelError(f"a kernel calls {', '.join(missing)}, which no library here has")
    for name in names & known.keys():
        llvm.add_symbol(name, known[name])
    for kernel in kernels:
        compiled = llvm.ObjectFileRef.from_data(kernel.code)
        engine.add_object_file(compiled)
        _objects.append(compiled)
    engine.finalize_object()
    addresses = {kernel.symbol: engine.get_function_address(kernel.symbol) for kernel in kernels}
    undefined = [symbol for symbol, address in addresses.items() if not address]
    if undefined:
        raise KernelError(f"the object code does not define {', '.join(undefined)}")
    return addresses


@cache
def _engine() -> llvm.ExecutionEngine:
    machine = host_target().machine()
    for name in _MATH_LIBRARIES:
        try:
            llvm.load_library_permanently(name)
            break
        except RuntimeError:
            continue  # another platform's name
    module = llvm.parse_assembly("")
    module.triple = machine.triple
    return llvm.create_mcjit_compiler(module, machine)
