"""Compilation proper, which needs Numba: the text of a kernel to object code."""

from __future__ import annotations

import linecache
from types import FunctionType

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from satura.backend.kernel import CompiledKernel, KernelError, KernelSource
from satura.backend.namespace import namespace_of
from satura.backend.target import host_target

_INT64 = ir.IntType(64)


def compiled(source: KernelSource) -> CompiledKernel:
    """The kernel's object code. KernelError where the text does not type or lower."""
    text = _translated(source.name, source.text, source.symbol)
    return _object_code(source.symbol, llvm.parse_assembly(text))


def _translated(name: str, text: str, symbol: str) -> str:
    """LLVM text of a module that exports `void symbol(i64 args, i64 thread, i64 threads)`."""
    function = _defined(text, symbol)
    with global_compiler_lock:
        typing, context = cpu_target.typing_context, cpu_target.target_context
        library = context.codegen().create_library(symbol)
        try:
            compiled = compile_extra(
                typing, context, function, (types.int64,) * 3, types.void, _flags(), {}, library
            )
        except NumbaError as error:
            raise KernelError(f"kernel {name} does not compile: {error}") from error
        library.add_ir_module(_exported(context, compiled.fndesc, symbol))
        library.finalize()
        return str(library.get_llvm_str())


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


def _exported(context: object, descriptor: object, symbol: str) -> ir.Module:
    """A module whose function `symbol` calls the lowered one by its plain C signature."""
    # Numba has no types; importing its classes here would only name them.
    convention = context.call_conv  # type: ignore[attr-defined]
    restype, argtypes = descriptor.restype, descriptor.argtypes  # type: ignore[attr-defined]
    module = ir.Module(symbol)
    inner = ir.Function(
        module,
        convention.get_function_type(restype, argtypes),
        descriptor.llvm_func_name,  # type: ignore[attr-defined]
    )
    outer = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT64] * 3), symbol)
    builder = ir.IRBuilder(outer.append_basic_block())
    convention.call_function(builder, inner, restype, argtypes, outer.args)
    builder.ret_void()
    return module


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
