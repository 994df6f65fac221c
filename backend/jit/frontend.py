"""Kernels through Numba: its front end, cut down to what they need, makes an LLVM module.

Serves text that `lowering.py` refuses, and tests, which compare the two. The module is optimised
and turned into object code by us; few of Numba's passes do, and the types of calls are remembered.
"""

from __future__ import annotations

import linecache
from functools import lru_cache
from types import FunctionType

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompilerBase, Flags, StateDict, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.errors import NumbaError, TypingError
from numba.core.registry import cpu_target
from numba.core.typed_passes import (
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

from satura.backend.helpers.vector import prefer_wide
from satura.backend.jit.kernel import KernelError, KernelSource
from satura.backend.jit.numba_names import namespace_of
from satura.rewrite.system.garbage import without_collections

_INT64 = ir.IntType(64)


def numba_module(source: KernelSource) -> llvm.ModuleRef:
    """The module of a kernel: `void symbol(i64…)` for a function of int64 arguments.

    Raises KernelError where the text does not type or lower.
    """
    with global_compiler_lock, without_collections():
        try:
            function = _define(source.text, source.symbol)
            try:
                module = _module(function, source.symbol, _Passes)
            except NumbaError:
                module = _module(function, source.symbol, _PassesWithSSA)
        except (NumbaError, SyntaxError) as error:
            raise KernelError(f"kernel {source.name} does not compile: {error}") from error
    for value in (*module.functions, *module.global_variables):
        if value.name != source.symbol and not value.is_declaration:
            value.linkage = "internal"
    return module


def _define(text: str, symbol: str) -> FunctionType:
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


def _module(function: FunctionType, symbol: str, passes: type[_Passes]) -> llvm.ModuleRef:
    arguments = (types.int64,) * function.__code__.co_argcount
    context = cpu_target.target_context
    library = _Library(symbol)
    compiled = compile_extra(
        _typing(), context, function, arguments, types.void, _flags(), {}, library, passes
    )
    return library.linked(_export(context, compiled.fndesc, symbol))


@register_pass(mutates_CFG=False, analysis_only=True)
class _OneTypeEach(AnalysisPass):
    """Raise TypingError where a variable gets values of several types.

    Numba would give such a variable a type that holds them all, if not exactly: 64-bit integers
    with and without sign become floats.
    """

    _name = "one_type_each"

    def __init__(self) -> None:
        """Nothing to prepare; Numba's own is abstract."""

    def run_pass(self, state: StateDict) -> bool:
        for block in state.func_ir.blocks.values():
            for assignment in block.find_insts(numba_ir.Assign):
                name, value = assignment.target.name, assignment.value
                kind = state.typemap[name]
                if isinstance(value, numba_ir.Var):
                    given = state.typemap[value.name]
                else:
                    call = state.calltypes.get(value)
                    given = kind if call is None else call.return_type
                if types.unliteral(given) != types.unliteral(kind):
                    raise TypingError(f"'{name}' is {kind} and {given}")
        return False


class _Passes(CompilerBase):
    """Numba's pipeline without rewrites, SSA form, reference counts and annotations."""

    chosen: tuple[type, ...] = (
        TranslateByteCode, FixupArgs, IRProcessing, NopythonTypeInference, _OneTypeEach,
        NativeLowering, NoPythonBackend,
    )  # fmt: skip

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for one in self.chosen:
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]


class _PassesWithSSA(_Passes):
    """For the few kernels that use one name for values of several types: a quarter slower."""

    chosen = (
        TranslateByteCode, FixupArgs, IRProcessing, ReconstructSSA, NopythonTypeInference,
        PreLowerStripPhis, _OneTypeEach, NativeLowering, NoPythonBackend,
    )  # fmt: skip


class _Typing:
    """Numba's typing context, with the types of calls remembered.

    Operators and helpers have one type for the same types of operands, always.
    """

    def __init__(self) -> None:
        self._context = cpu_target.typing_context
        self._signatures: dict[tuple[object, tuple[types.Type, ...]], object] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._context, name)

    def resolve_function_type(
        self, function: object, operands: tuple[types.Type, ...], named: dict[str, types.Type]
    ) -> object:
        """The signature of a call. Raises TypingError where it has none."""
        key = function, tuple(operands)
        if named or not isinstance(function, types.Function):
            return self._context.resolve_function_type(function, operands, named)
        if key not in self._signatures:
            self._signatures[key] = self._context.resolve_function_type(function, operands, named)
        return self._signatures[key]


_typing = lru_cache(maxsize=1)(_Typing)


class _Library(CPUCodeLibrary):
    """Collects a function and what it calls in one module, without optimising it."""

    def __init__(self, name: str) -> None:
        codegen = cpu_target.target_context.codegen()
        super().__init__(codegen, name)  # type: ignore[no-untyped-call]  # Numba has no types

    def add_llvm_module(self, module: llvm.ModuleRef) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def _finalize_specific(self) -> None:
        raise NotImplementedError("kernels do not run in Numba's engine")

    def linked(self, more: ir.Module) -> llvm.ModuleRef:
        """The module, `more`, and everything that they call."""
        super().add_ir_module(more)  # type: ignore[no-untyped-call]  # Numba has no types
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        return self._final_module


def _flags() -> Flags:
    """No allocation, no wrappers, no bounds checks, division as NumPy does it."""
    flags = Flags()
    options = {
        "nrt": False, "no_compile": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
        "error_model": "numpy",
    }  # fmt: skip
    for option, value in options.items():
        setattr(flags, option, value)
    return flags


def _export(context: object, descriptor: object, symbol: str) -> ir.Module:
    """A module whose function `symbol` calls the lowered one by its plain C signature."""
    # Importing Numba's classes would only name them.
    convention = context.call_conv  # type: ignore[attr-defined]  # Numba has no types
    restype, argtypes = descriptor.restype, descriptor.argtypes  # type: ignore[attr-defined]  # same
    module = ir.Module(symbol)
    inner = ir.Function(
        module,
        convention.get_function_type(restype, argtypes),
        descriptor.llvm_func_name,  # type: ignore[attr-defined]  # Numba has no types
    )
    kind = ir.FunctionType(ir.VoidType(), [_INT64] * len(argtypes))
    outer = ir.Function(module, kind, symbol)
    prefer_wide(outer)
    builder = ir.IRBuilder(outer.append_basic_block())
    convention.call_function(builder, inner, restype, argtypes, outer.args)
    builder.ret_void()
    return module
