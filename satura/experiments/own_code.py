"""A digest of code: it tells whether a function or a class is still the one of a stored trial."""

from __future__ import annotations

import copyreg
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from secrets import token_hex
from types import (
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
    NoneType,
    NotImplementedType,
)
from typing import TypeAlias

import numpy as np

_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = tuple(sysconfig.get_paths()[each] for each in _PATHS)
_LENGTH = 16  # hexadecimal digits, as many as a reader compares
_PLAIN = (
    NoneType, bool, int, float, complex, str, bytes, range, EllipsisType, NotImplementedType,
)  # fmt: skip
"""Types whose `repr` says all."""

_ITEMS, _SETS = (list, tuple, dict, MappingProxyType), (set, frozenset)  # and no subclasses

_Seen: TypeAlias = dict[int, tuple[int, object]]
"""By address when a value was met, and the value itself, so that no other one gets the address."""


def digest_of_code(value: object) -> str:
    """A digest of a value's code, and of all that it uses but what is installed.

    A function of satura or of an installed package counts by its name, and so does what comes from
    one by an attribute. Arrays count by their bytes, other values by their attributes and by what
    `pickle` would keep of them. What it cannot keep, as a lock, has another digest each time.
    """
    try:
        texts = "\0".join(_texts(value, (), {}))
    except RecursionError:  # it is nested too deep to be told from others
        texts = _like_no_other()
    return hashlib.sha256(texts.encode(errors="surrogatepass")).hexdigest()[:_LENGTH]


def attributes(value: object) -> dict[str, object]:
    """The attributes of an object, those in slots, too."""
    state = object.__getstate__(value)  # what a class makes of it may leave some out
    parts = state if isinstance(state, tuple) else (state,)
    return {name: each for part in parts for name, each in (part or {}).items()}


def _like_no_other() -> str:
    return token_hex()


def _texts(value: object, names: tuple[str, ...], seen: _Seen) -> Iterator[str]:
    """What identifies a value, of which code uses attributes of some names."""
    if id(value) in seen:
        yield f"number {seen[id(value)][0]} again"
        return
    match value:
        case _ if type(value) in _PLAIN:
            yield repr(value)
        case FunctionType() if not _is_installed(value.__module__, value.__code__.co_filename):
            _see(value, seen)
            yield from _of_function(value, seen)
        case MethodType():
            yield from _of_all((value.__func__, value.__self__), seen)
        case partial() if type(value) is partial:
            yield from _of_all((value.func, value.args, value.keywords), seen)
        case staticmethod() | classmethod():
            yield from _texts(value.__func__, (), seen)
        case property():
            yield from _of_all((value.fget, value.fset), seen)
        case cached_property():
            yield from _texts(value.func, (), seen)
        case type() if not _is_installed(value.__module__):
            _see(value, seen)
            yield from _of_class(value, seen)
        case ModuleType():
            yield value.__name__
            if not _is_installed(value.__name__, getattr(value, "__file__", None)):
                yield from _of_all((vars(value).get(name) for name in names), seen)
        case list() | tuple() | dict() | MappingProxyType() if type(value) in _ITEMS:
            yield from _of_items(value, seen)
        case set() | frozenset() if type(value) in _SETS:
            each_alone = ("\0".join(_texts(each, (), {**seen})) for each in value)
            yield f"{type(value).__name__} of {sorted(each_alone)}"
        case np.ndarray() | np.generic():
            yield from _of_array(value, seen)
        case _ if _is_named(value):
            _see(value, seen)
            yield from _of_named(value, seen)
        case _:
            _see(value, seen)
            yield from _of_object(value, seen)


def _see(value: object, seen: _Seen) -> None:
    seen[id(value)] = len(seen), value


def _of_all(values: Iterable[object], seen: _Seen) -> Iterator[str]:
    for value in values:
        yield from _texts(value, (), seen)


def _of_items(
    value: list[object]
    | tuple[object, ...]
    | dict[object, object]
    | MappingProxyType[object, object],
    seen: _Seen,
) -> Iterator[str]:
    yield f"{type(value).__name__} of {len(value)}"
    _see(value, seen)
    yield from _of_all(value if isinstance(value, list | tuple) else [*value.items()], seen)
    del seen[id(value)]  # an equal one may be the same, or not


def _of_array(value: np.ndarray | np.generic, seen: _Seen) -> Iterator[str]:
    yield f"{type(value).__name__} {value.dtype.descr} {value.shape}"
    if value.dtype.hasobject:
        yield from _texts(value.tolist(), (), seen)
    else:
        yield hashlib.sha256(value.tobytes()).hexdigest()
    if type(value) is not np.ndarray and isinstance(value, np.ndarray):  # as with a mask
        _see(value, seen)
        yield from _of_object(value, seen)


def _is_named(value: object) -> bool:
    """Whether a name says what a value is, which for an iterator is only where it is from."""
    is_installed = _is_installed(type(value).__module__)
    return is_installed and hasattr(value, "__qualname__") and not isinstance(value, Iterator)


def _of_named(value: object, seen: _Seen) -> Iterator[str]:
    """What has a name that stands for it, but for what it is bound to, wraps or closes over."""
    yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    bound = getattr(value, "__self__", None)
    if not isinstance(bound, ModuleType | NoneType):
        yield from _texts(bound, (), seen)
    if not isinstance(value, type):
        yield from _texts(getattr(value, "__wrapped__", None), (), seen)
    for cell in getattr(value, "__closure__", None) or ():
        yield from _of_cell(cell, (), seen)


def _of_object(value: object, seen: _Seen) -> Iterator[str]:
    """The type of a value, its attributes where that is one's own, and what `pickle` would keep."""
    yield from _texts(type(value), (), seen)
    if not _is_installed(type(value).__module__):
        yield from _texts(attributes(value), (), seen)
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        kept = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:
        yield _like_no_other()
        return
    parts = (kept,) if isinstance(kept, str) else kept
    yield from _of_all([[*each] if isinstance(each, Iterator) else each for each in parts], seen)


def _of_cell(cell: CellType, names: tuple[str, ...], seen: _Seen) -> Iterator[str]:
    try:
        inside = cell.cell_contents
    except ValueError:
        return  # it is not bound yet
    yield from _texts(inside, names, seen)


def _of_function(function: FunctionType, seen: _Seen) -> Iterator[str]:
    codes = [*_codes(function.__code__)]
    names = tuple(dict.fromkeys(name for code in codes for name in code.co_names))
    for code in codes:
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
        yield from _of_all(
            (each for each in code.co_consts if not isinstance(each, CodeType)), seen
        )
    yield from _of_all((function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        yield from _of_cell(cell, names, seen)
    for name in names:
        if name in function.__globals__:
            yield name
            yield from _texts(function.__globals__[name], names, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and those of functions inside of it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _of_class(kind: type, seen: _Seen) -> Iterator[str]:
    yield kind.__qualname__
    yield from _of_all(kind.__bases__, seen)
    for name, value in vars(kind).items():
        is_special = name.startswith(("__", "_abc_")) and not isinstance(value, FunctionType)
        if not is_special:
            yield name
            yield from _texts(value, (), seen)


def _is_installed(module: str | None, file: str | None = None) -> bool:
    """Whether a module is satura's or an installed one; `file` is its file, where that is known."""
    if module is not None and module.partition(".")[0] == "satura":
        return True
    if module == "__main__":
        return False
    if file is None and module is not None:
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            return module in sys.builtin_module_names
    return file is not None and file.startswith(_INSTALLED)
