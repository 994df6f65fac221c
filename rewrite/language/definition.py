"""A rule's definition as Python: its place, the sorts of its parameters, and what a mistake means.

A rule may stand in a module, in a cell of a notebook, or have been typed into an interpreter.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, GenericAlias

from satura.rewrite.errors import RuleError
from satura.rewrite.language import terms
from satura.rewrite.language.annotations import resolved
from satura.rewrite.language.called import file_of
from satura.rewrite.language.families import FAMILY_SORTS, Operands, Others, Some
from satura.rewrite.language.mistakes import MistakeError, NoValueError, suggestion, with_article
from satura.rewrite.language.ours import is_ours
from satura.rewrite.language.rule import Rule
from satura.rewrite.language.terms import (
    Approximate,
    Known,
    Movable,
    Tensor,
    Unpadded,
    Untransposed,
    Varying,
)
from satura.rewrite.ops import REGISTRY
from satura.rewrite.types.attributes import Attribute, HostCall, Parameter, UserAttribute
from satura.rewrite.types.tensor_type import TensorType

Sort = type
SORTS: tuple[Sort, ...] = (
    Tensor, Known, Varying, Movable, Untransposed, Unpadded, Approximate,
    *typing.get_args(Attribute),
)  # fmt: skip
_UNUSUAL = (Parameter, HostCall, UserAttribute)  # no rule matches these by their class
_SORT_NAMES = {sort.__name__: sort for sort in SORTS if sort not in _UNUSUAL}
IMPORTED = (
    *_SORT_NAMES, *(name for name in vars(terms) if name.rstrip("_") in REGISTRY), "scalar",
    "attribute_function", "rule", "rewrites", "replaces", "equates", "both", "Law", "Refuse",
    "refuse_unless", "family", "has_value", *(sort.__name__ for sort in FAMILY_SORTS),
)  # fmt: skip
"""Names of `satura.language` that a rule may need."""


def rules_module(file: Path) -> str:
    """The name of the module that a file of rules is run as."""
    return f"satura_rules_{blake2b(bytes(file), digest_size=8).hexdigest()}"


def inner_function(function: Callable[..., object]) -> FunctionType:
    """The function that was written above which `rule` stands: `function` without its wrappers.

    Raises RuleError for what is not a function, at the line that calls `rule`.
    """
    inner: object = inspect.unwrap(function)
    if isinstance(inner, FunctionType) and callable(function):
        return inner
    frame = sys._getframe(3)
    what = "a class" if isinstance(function, type) else with_article(type(function))
    raise RuleError(
        f"{file_of(frame.f_code)}:{frame.f_lineno}: @rule stands directly above a function, not"
        f" above {what}"
    )


def sorts_of(function: Callable[..., object]) -> dict[str, Sort]:
    """The sorts of the parameters. Raises MistakeError for a parameter without a sort."""
    sorts: dict[str, Sort] = {}
    inner = inspect.unwrap(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise MistakeError(f"'{parameter}': a law has a fixed number of variables")
        if parameter.annotation is parameter.empty:
            raise MistakeError(f"the variable '{name}' has no sort: write {name}: Tensor; {_ALL}")
        sorts[name] = _sort(name, parameter.annotation, inner)
    return sorts


def called_by_name(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """What `function` returns for arguments by name, also where it takes them by position alone."""
    code = inner_function(function).__code__
    first = code.co_varnames[: code.co_posonlyargcount]
    others = {name: value for name, value in arguments.items() if name not in first}
    return function(*(arguments[name] for name in first), **others)


def sorts_of_rule(function: Callable[..., object]) -> dict[str, Sort]:
    """The sorts of the parameters of a law about one op. Raises MistakeError for those of laws
    about many ops, too."""
    sorts = sorts_of(function)
    for name, sort in sorts.items():
        if (typing.get_origin(sort) or sort) in FAMILY_SORTS:
            raise MistakeError(
                f"'{name}: {sort.__name__}' stands in laws about many ops: declare it by @family,"
                " not by @rule"
            )
    return sorts


def _sort(name: str, annotation: object, function: Callable[..., object]) -> Sort:
    sort = _annotation_value(annotation, function)
    if sort in _OF_MANY:
        kind = typing.cast(type, sort).__name__
        raise MistakeError(f"'{name}: {kind}' has to say of what sort: write {kind}[Tensor]")
    of_many = typing.get_origin(sort)
    if of_many in _OF_MANY:
        (given,) = typing.get_args(sort)
        return typing.cast(Sort, GenericAlias(of_many, (_sort(name, given, function),)))
    if (of_many or sort) in FAMILY_SORTS:
        return typing.cast(Sort, sort)
    if isinstance(sort, type) and issubclass(sort, SORTS):
        return sort
    shown = sort.__name__ if isinstance(sort, type) else str(sort)
    advice = suggestion(shown, _SORT_NAMES)
    raise MistakeError(f"'{name}: {shown}' is not a sort of variable{advice or '; ' + _ALL}")


_OF_MANY = (Operands, Some, Others)
_ALL = f"sorts are {', '.join(_SORT_NAMES)}"


def _annotation_value(annotation: object, function: Callable[..., object]) -> object:
    """What an annotation says; its text where names in that are unknown."""
    outer = inspect.getclosurevars(function).nonlocals
    try:
        return resolved(annotation, {**_globals(function), **outer})
    except (NameError, AttributeError, SyntaxError, TypeError):
        # A sort that is imported inside of an enclosing function cannot be seen from here.
        text = str(annotation).strip("'\"")
        return _SORT_NAMES.get(text.rpartition(".")[2], text)


def _globals(function: Callable[..., object]) -> dict[str, object]:
    found = getattr(function, "__globals__", {})
    assert isinstance(found, dict)
    return found


def mistake_line(error: BaseException, function: Callable[..., object], line: int) -> int:
    """The line of `function` at which `error` was raised, or else `line`."""
    frames = traceback.walk_tb(error.__traceback__)
    inside = [at for frame, at in frames if frame.f_code is function.__code__]
    return inside[-1] if inside else line


_OF_TYPES = (*TensorType.__dataclass_fields__, *vars(TensorType))
_OPS = {
    "+": 'binary("add", x, y)', "-": 'binary("sub", x, y), unary("neg", x)',
    "*": 'binary("mul", x, y)', "/": 'binary("div", x, y)', "**": 'binary("pow", x, y)',
    "@": "matmul(x, y)",
}  # fmt: skip


def reason_of(error: BaseException, function: Callable[..., object]) -> str:
    """What an exception in a rule's definition means, with advice where there is some."""
    if isinstance(error, NoValueError):
        return f"{error}{_undecorated(error, function)}"
    if isinstance(error, MistakeError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, NameError):
        known = [*_globals(function), *function.__code__.co_varnames]
        lines = "".join(linecache.getlines(function.__code__.co_filename))
        return text + name_advice(error.name or "", known, lines)
    pattern = r"(?:unsupported|bad) operand type\S* for (?:unary )?(\S+): '(\w+)"
    operator = re.match(pattern, str(error))
    if operator and operator[1] in _OPS and hasattr(terms, operator[2]):
        return f"{text}; a law names its ops: {_OPS[operator[1]]}"
    called = re.match(r"(?:\w+\.)*(\w+)\(\)", str(error))
    target = _globals(function).get(called[1]) if called else None
    if isinstance(error, TypeError) and called and callable(target):
        parameters = inspect.signature(target).parameters.values()
        named = ("*" * (each.kind is each.VAR_POSITIONAL) + each.name for each in parameters)
        return f"{text}; it is {called[1]}({', '.join(named)})"
    wanted = error.name if isinstance(error, AttributeError) else None
    if isinstance(error, AttributeError) and isinstance(error.obj, Tensor) and wanted in _OF_TYPES:
        return f"{text}; its type has it: {error.obj.name}.type.{wanted}"
    if "<recorded " in text:
        return (
            f"{text}; an attribute has no value while the rule is defined: compute this inside an"
            f" @attribute_function{_undecorated(error, function)}"
        )
    return text


def _undecorated(error: BaseException, function: Callable[..., object]) -> str:
    """The question for `@attribute_function` above what `function` calls and does not record."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    called = codes[codes.index(function.__code__) + 1 :] if function.__code__ in codes else []
    name = called[0].co_name if called else ""
    found = _globals(function).get(name)
    if not isinstance(found, FunctionType) or is_ours(found):
        return ""
    return f"; is @attribute_function missing above '{name}'?"


def name_advice(name: str, known: Iterable[str], lines: str) -> str:
    """Advice for a `name` that is not among the `known` when a file of these lines asks for it."""
    if name and re.search(rf"^((async )?def|class) {name}\b|^{name}\b.*=", lines, re.M):
        return " yet: what a law uses must be defined above it"
    if name in IMPORTED:
        return f"; add `from satura.language import {name}`"
    return suggestion(name, [*known, *IMPORTED])


def check_kind(function: FunctionType) -> None:
    """Raise MistakeError for a function that does not return when it is called."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise MistakeError("a law is stated by a plain function: write `def`, not `async def`")
    if inspect.isgeneratorfunction(function):
        raise MistakeError("a law is returned: write `return`, not `yield`")


def check_options(decorator: str, others: Iterable[str]) -> None:
    """Raise RuleError for options that the decorator does not have, at the line that calls it."""
    for name in others:
        frame = sys._getframe(2)
        raise RuleError(
            f"{file_of(frame.f_code)}:{frame.f_lineno}: @{decorator} has no option '{name}'"
            f"{suggestion(name, _OPTIONS) or f'; it has {_OPTIONS[0]}'}"
        )


_OPTIONS = ("reassociates",)


def check_name(name: str, function: FunctionType) -> None:
    """Raise MistakeError where the rule's name already means something in its module."""
    code = function.__code__
    if name == "<lambda>":
        raise MistakeError("a rule needs a name: write it as a function")
    if function.__qualname__ != name:
        return
    if _globals(function).get(name) is getattr(terms, name, terms):
        raise MistakeError(
            f"it would hide the op '{name}' from the rules below it; rename the rule"
        )
    other = _globals(function).get(name)
    first, file = code.co_firstlineno, file_of(code)
    if isinstance(other, Rule) and other.file == file and _stands_between(code, name, first):
        raise MistakeError(
            f"another rule is called '{name}', at {other.place}, and this one would replace it;"
            " rename one of them"
        )


def _stands_between(code: CodeType, name: str, line: int) -> bool:
    """Whether the file also defines `name` above `line`; one that was only reloaded does not."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)[: line - 1]
    return any(text.startswith(f"def {name}(") for text in lines)
