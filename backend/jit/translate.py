"""Compilation proper: the text of a kernel to object code."""

from __future__ import annotations

import logging

import llvmlite.binding as llvm
from llvmlite import ir

from satura.backend.helpers.kinds import Helper
from satura.backend.helpers.namespace import meaning
from satura.backend.jit.kernel import (
    CompiledKernel,
    KernelError,
    KernelSource,
    Microkernel,
    microkernels_of,
)
from satura.backend.jit.linking import Unlinkable, linked
from satura.backend.jit.lowering import translate_kernel
from satura.backend.jit.operators import Untranslatable
from satura.backend.target import host_target

_LOGGER = logging.getLogger("satura.jit")


def compile_kernel(source: KernelSource) -> CompiledKernel:
    """The kernel's object code. KernelError where the text does not type or lower."""
    module = optimised_module(source)
    code = host_target().machine().emit_object(module)
    try:
        image = linked(code, source.symbol)
    except Unlinkable as reason:
        _LOGGER.info("LLVM loads kernel %s: %s", source.name, reason)
        return CompiledKernel(source.symbol, _externals(module), None, code)
    return CompiledKernel(source.symbol, image.externals, image.entry, image.content)


def optimised_module(source: KernelSource) -> llvm.ModuleRef:
    """The kernel's optimised module.

    Raises KernelError where the text does not type or lower.
    """
    module = plain_module(source)
    interleave = "short_loops()" not in source.text
    # What calls microkernels spends its time there: its own loops are not worth their repetition.
    unroll = not microkernels_of(_externals(module))
    _optimise(module, host_target().machine(), interleave, unroll)
    return module


def assembly(source: KernelSource) -> str:
    """The machine code for this CPU as text, that of microkernels included.

    Raises KernelError as `optimised_module` does.
    """
    module = optimised_module(source)
    text = str(host_target().machine().emit_assembly(module))
    return "\n".join([text, *map(assembly, microkernels_of(_externals(module)))])


def plain_module(source: KernelSource) -> llvm.ModuleRef:
    """The kernel's module as it is written down. Raises KernelError as `optimised_module` does.

    Numba compiles what is not translated directly, twenty times as slowly.
    """
    if isinstance(source, Microkernel):
        return llvm.parse_assembly(str(_microkernel(source)))
    try:
        return llvm.parse_assembly(str(translate_kernel(source.text, source.symbol, meaning)))
    except Untranslatable as reason:
        from satura.backend.jit.frontend import numba_module

        _LOGGER.info("Numba compiles kernel %s: %s", source.name, reason)
        return numba_module(source)


def _microkernel(source: Microkernel) -> ir.Module:
    helper = meaning(source.name)
    if not isinstance(helper, Helper) or helper.body is None:
        raise KernelError(f"there is no microkernel {source.name}")
    module = ir.Module(source.symbol)
    helper.body(module)
    return module


def _externals(module: llvm.ModuleRef) -> tuple[str, ...]:
    """The functions that the module calls and does not have."""
    declared = (function.name for function in module.functions if function.is_declaration)
    return tuple(sorted(name for name in declared if not name.startswith("llvm.")))


def _optimise(
    module: llvm.ModuleRef, machine: llvm.TargetMachine, interleave: bool = True,
    unroll: bool = True,
) -> None:  # fmt: skip
    """With `interleave`, loops take several vectors at a time: too many for short ones. With
    `unroll`, loops repeat what they do, which is half of the time that large kernels take here."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    options.loop_interleaving = interleave
    options.loop_unrolling = unroll
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
