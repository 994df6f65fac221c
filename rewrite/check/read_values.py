"""What the functions of a rule read beside their arguments: globals, defaults, outer variables.

A number may stand in a module or a class as well as in the code that compares with it. Functions of
the same files that are named there are looked into likewise; nothing is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dis import get_instructions
from pathlib import Path
from types import CodeType, FunctionType

from satura.rewrite.language.ours import is_ours

MISSING = object()
METHODS = (staticmethod, classmethod)
NAMES = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def functions_reached(functions: Iterable[object]) -> list[FunctionType]:
    """Those of `functions` that are written in Python, and all that they name of the same files or
    package; of satura's own ones only themselves."""
    found: dict[FunctionType, None] = {}
    pending = [each for each in functions if isinstance(each, FunctionType)]
    while pending:
        function = pending.pop(0)
        if function not in found:
            found[function] = None
            pending += [
                inner
                for value in values_read(function)
                if isinstance(inner := _inner(value), FunctionType) and _is_beside(inner, function)
            ]
    return list(found)


def values_read(function: FunctionType) -> Iterator[object]:
    """The values of what `function` reads by name, its own functions included, and its defaults."""
    if is_ours(function):
        return
    outer = inspect.getclosurevars(function).nonlocals
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from _values_named(function.__code__, {**function.__globals__, **outer})


def _values_named(code: CodeType, scope: dict[str, object]) -> Iterator[object]:
    """The values of names in `code`, and of what follows a dot behind one."""
    value = MISSING
    for instruction in get_instructions(code):
        name = instruction.argval
        if instruction.opname in NAMES:
            value = scope.get(name, MISSING)
        elif instruction.opname in ATTRIBUTES and value is not MISSING:
            value = inspect.getattr_static(value, name, MISSING)
        else:
            value = MISSING
            if isinstance(name, CodeType):
                yield from _values_named(name, scope)
        if value is not MISSING:
            yield value


def _inner(value: object) -> object:
    """The function that a method or a decorated function is written as."""
    method = getattr(value, "__func__", value) if isinstance(value, METHODS) else value
    return inspect.unwrap(method) if callable(method) else method


def _is_beside(function: FunctionType, other: FunctionType) -> bool:
    """Whether a function is of the same package or folder as another one, and not of satura's."""
    if is_ours(function):
        return False
    packages = {str(each.__module__).partition(".")[0] for each in (function, other)}
    folders = {Path(each.__code__.co_filename).parent for each in (function, other)}
    return len(packages) == 1 or len(folders) == 1
