"""A digest of code: it tells whether a function or a class is still the one of a stored trial."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType

_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = tuple(sysconfig.get_paths()[each] for each in _PATHS)
_LENGTH = 16  # hexadecimal digits, as many as a reader compares


def digest_of_code(value: object) -> str:
    """A digest of a value's code, and of all that it uses but what is installed.

    A function of satura or of an installed package counts by its name, and so does what comes from
    one by an attribute. Any other value counts by its `repr`.
    """
    texts = "\0".join(_texts(value, (), set()))
    return hashlib.sha256(texts.encode(errors="surrogatepass")).hexdigest()[:_LENGTH]


def _texts(value: object, names: tuple[str, ...], seen: set[int]) -> Iterator[str]:
    """What identifies a value, of which code uses attributes of some names."""
    if id(value) in seen:
        return
    match value:
        case FunctionType() if not _is_installed(value.__module__, value.__code__.co_filename):
            seen.add(id(value))
            yield from _of_function(value, seen)
        case MethodType():
            yield from _of_all((value.__func__, value.__self__), seen)
        case partial():
            yield from _of_all((value.func, value.args, value.keywords), seen)
        case staticmethod() | classmethod():
            yield from _texts(value.__func__, (), seen)
        case property():
            yield from _of_all((value.fget, value.fset), seen)
        case cached_property():
            yield from _texts(value.func, (), seen)
        case type() if not _is_installed(value.__module__):
            seen.add(id(value))
            yield from _of_class(value, seen)
        case ModuleType():
            yield value.__name__
            if not _is_installed(value.__name__, getattr(value, "__file__", None)):
                yield from _of_all((vars(value).get(name) for name in names), seen)
        case list() | tuple() | dict():
            yield f"{type(value).__name__} of {len(value)}"
            seen.add(id(value))
            items = [*value.items()] if isinstance(value, dict) else value
            yield from _of_all(items, seen)
            seen.discard(id(value))  # an equal one may be the same, or not
        case set() | frozenset():
            yield repr(sorted(map(repr, value)))
        case _ if hasattr(value, "__qualname__"):
            yield f"{getattr(value, '__module__', '')}.{value.__qualname__}"
        case _ if hasattr(value, "__dict__") and not _is_installed(type(value).__module__):
            seen.add(id(value))
            yield from _of_all((type(value), vars(value)), seen)
        case _:
            yield repr(value)


def _of_all(values: Iterable[object], seen: set[int]) -> Iterator[str]:
    for value in values:
        yield from _texts(value, (), seen)


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    codes = [*_codes(function.__code__)]
    names = tuple(dict.fromkeys(name for code in codes for name in code.co_names))
    for code in codes:
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
        yield from _of_all(
            (each for each in code.co_consts if not isinstance(each, CodeType)), seen
        )
    yield from _of_all((function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        try:
            inside = cell.cell_contents
        except ValueError:
            continue  # it is not bound yet
        yield from _texts(inside, names, seen)
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


def _of_class(kind: type, seen: set[int]) -> Iterator[str]:
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
