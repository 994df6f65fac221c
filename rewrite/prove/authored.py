"""What a rule's functions do that no unknown size can answer as a number would.

A proof runs an author's functions on stand-ins for numbers. Whatever such a function does with one
is answered for every number or stops the proof, but for two things that Python lets nobody answer:
what `type` and its like say of a stand-in, and that errors raised for want of a number are caught.
So a rule whose functions do that is not proved.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from satura.rewrite.language.dsl import Rule
from satura.rewrite.language.expressions import Apply
from satura.rewrite.types.attributes import Refuse

INSPECTING = ("type", "id", "vars", "dir", "locals", "globals", "eval", "exec", "compile",
              "__import__")  # fmt: skip

# Modules that ask a number for nothing but what a stand-in answers or refuses.
PLAIN = {
    "__future__", "builtins", "_operator", "abc", "collections", "dataclasses", "enum", "functools",
    "itertools", "math", "ml_dtypes", "numbers", "numpy", "operator", "satura", "typing",
    "_functools", "_collections",
}  # fmt: skip
BOOK = "satura.rules"  # read like any author's


def objection(rule: Rule) -> str:
    """Why what the functions of `rule` answer for unknown sizes counts for nothing, if so."""
    pending: list[object] = []
    for direction in rule.directions:
        computed = [entry.expression for entry in (*direction.outputs, *direction.guards)]
        for expression in (*direction.conditions, *computed):
            if isinstance(expression, Apply):
                pending += expression.functions()
    seen: dict[int, object] = {}  # kept, so that no other value takes an id
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        reason = _named(value)
        if reason:
            return reason
        if isinstance(value, FunctionType):
            pending.append(getattr(value, "__wrapped__", None))
            if not _is_plain(value.__globals__.get("__name__")):
                for code in _codes(value.__code__):
                    reason = _in_code(code, value.__globals__)
                    if reason:
                        return reason
                    pending += _read(code, value.__globals__)
                pending += _held(value)
        else:
            pending += _parts(value)
    return ""


def _named(value: object) -> str:
    """What speaks against a value by itself."""
    if any(value is getattr(builtins, name) for name in INSPECTING) or value is builtins:
        name = getattr(value, "__name__", "")
        return f"its function uses {name}, which tells unknown sizes from numbers; use isinstance"
    if isinstance(value, ModuleType | BuiltinFunctionType | type) and _is_foreign(value):
        return f"its function uses {value.__name__}: what that makes of unknown sizes is not known"
    return ""


def _is_plain(module: object) -> bool:
    name = str(module)
    return name.split(".")[0] in PLAIN and not f"{name}.".startswith(f"{BOOK}.")


def _module_of(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", None) or "builtins")


def _is_foreign(value: object) -> bool:
    """Whether it is of a library that may ask a number for anything."""
    module = _module_of(value)
    if _is_plain(module):
        return False
    compiled = not hasattr(sys.modules.get(module), "__file__")
    return compiled or module.split(".")[0] in sys.stdlib_module_names


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _in_code(code: CodeType, names: Mapping[str, object]) -> str:
    """What speaks against the code itself."""
    found = list(dis.get_instructions(code))
    for at, instruction in enumerate(found):
        if instruction.opname == "PUSH_EXC_INFO" and not _catches_refusals(found[at:], names):
            return f"its function {code.co_name} catches errors, which unknown sizes may raise"
        reads = instruction.opname.startswith("LOAD_") and isinstance(instruction.argval, str)
        if reads and instruction.opname not in ("LOAD_CONST", "LOAD_FAST"):
            name = instruction.argval
            if name.startswith("__") and name not in ("__name__", "__class__"):
                return f"its function {code.co_name} uses {name}"
            if name == "__class__" and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                return f"its function {code.co_name} uses {name}; use isinstance"
    return ""


def _catches_refusals(handler: list[dis.Instruction], names: Mapping[str, object]) -> bool:
    """Whether a handler is `except Refuse:`, and no more: others raise again what they get."""
    names_of = [instruction.opname for instruction in handler[:5]]
    return (
        names_of[1:3] == ["LOAD_GLOBAL", "CHECK_EXC_MATCH"]
        and names.get(handler[1].argval) is Refuse
        and names_of[3].startswith("POP_JUMP")
        and names_of[4] == "POP_TOP"
        and handler[_target(handler)].opname == "RERAISE"
    )


def _target(handler: list[dis.Instruction]) -> int:
    """Where the handler goes on for what it does not catch."""
    offsets = [instruction.offset for instruction in handler]
    target = handler[3].argval
    return offsets.index(target) if target in offsets else 0


def _read(code: CodeType, names: Mapping[str, object]) -> Iterator[object]:
    """The globals and the modules that the code names, and what it may read of modules."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            name = instruction.argval
            value = names.get(name, getattr(builtins, name, None))
            yield value
            if isinstance(value, ModuleType) and not _is_plain(value.__name__):
                yield from (getattr(value, other, None) for other in code.co_names)
        elif instruction.opname == "IMPORT_NAME":
            module = sys.modules.get(instruction.argval)
            yield module
            if module is None or not _is_plain(instruction.argval):
                yield from (getattr(module, other, None) for other in code.co_names)


def _held(function: FunctionType) -> Iterator[object]:
    """What a function keeps: defaults, and what its closure holds."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty: the function has not been made to its end
            continue


def _parts(value: object) -> Iterator[object]:
    """The functions inside a value."""
    if isinstance(value, tuple | list | set | frozenset):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, property):
        yield value.fget
    elif isinstance(value, type):
        if not _is_plain(value.__module__):
            yield from value.__bases__
            yield from (entry for entry in vars(value).values() if not _is_generated(entry))
    elif not isinstance(value, ModuleType | BuiltinFunctionType):
        yield from (getattr(value, "__func__", None), getattr(value, "func", None))
        yield from (getattr(value, "__wrapped__", None), type(value))


def _is_generated(entry: object) -> bool:
    """Whether a dataclass wrote the method itself."""
    entry = getattr(entry, "__wrapped__", entry)
    return isinstance(entry, FunctionType) and entry.__code__.co_filename == "<string>"
