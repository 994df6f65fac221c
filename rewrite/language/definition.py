"""A rule's definition as Python: its place, the sorts of its parameters, and what a mistake means.

A rule may stand in a module, in a cell of a notebook, or have been typed into an interpreter.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import textwrap
import traceback
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType

from satura.rewrite.errors import RuleError
from satura.rewrite.frames import caller
from satura.rewrite.language import expressions, terms
from satura.rewrite.language.annotations import MistakeError, article, suggestion
from satura.rewrite.language.families import FAMILY_SORTS
from satura.rewrite.language.rule import Rule
from satura.rewrite.language.terms import Known, Movable, Tensor, Varying
from satura.rewrite.types import attributes
from satura.rewrite.types.attributes import Attribute

Sort = type
SORTS: tuple[Sort, ...] = (Tensor, Known, Varying, Movable, *typing.get_args(Attribute))
_SORT_NAMES: Mapping[str, Sort] = {sort.__name__: sort for sort in SORTS}

# What a rule's author may have meant by a class that is no sort.
_MEANT = {
    "TensorType": "Tensor, whose type is x.type",
    "Term": "Tensor",
    "ndarray": "Tensor, Known or Constant",
    "int": "Axis, Groups or Count",
    "float": "Scalar",
    "bool": "a condition of the law",
    "str": "UnaryFn, BinaryFn or ReduceFn",
    "tuple": "Shape, Axes or Perm",
    "list": "Shape, Axes or Perm",
    "slice": "Slices",
    "SymbolicDim": "Shape",
}


class ParameterError(MistakeError):
    """A mistake in the declaration of one parameter."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(reason)
        self.parameter = parameter


def file_of(code: CodeType) -> Path:
    """The file that `code` stands in; for a cell of a notebook its label, such as `In[3]`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    format_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    labelled = format_name(code.co_filename) if format_name is not None else None
    return Path(labelled[1] if labelled else code.co_filename)


def law_line() -> int:
    """The line, in the innermost function outside of the rule language, that is being run."""
    return caller(_LANGUAGE).f_lineno


_LANGUAGE = (__name__, "satura.rewrite.language.dsl")


def inner_function(function: Callable[..., object]) -> FunctionType:
    """The function that was written where `function` is declared as a rule: without its wrappers.

    Raises RuleError for what is no function.
    """
    inner: object = inspect.unwrap(function)
    if isinstance(inner, FunctionType) and callable(function):
        return inner
    frame = caller(_LANGUAGE)
    what = "a class" if isinstance(function, type) else article(type(function))
    raise RuleError(
        f"{file_of(frame.f_code)}:{frame.f_lineno}: @rule stands directly above a function, not"
        f" above {what}"
    )


def sorts_of(function: Callable[..., object]) -> dict[str, Sort]:
    """The sorts of the parameters. Raises ParameterError where one has none."""
    sorts: dict[str, Sort] = {}
    inner = inspect.unwrap(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ParameterError(name, f"'{parameter}': a law has a fixed number of variables")
        sorts[name] = _sort(name, parameter.annotation, inner)
    return sorts


def _sort(name: str, annotation: object, function: Callable[..., object]) -> Sort:
    if annotation is inspect.Parameter.empty:
        raise ParameterError(
            name, f"the variable '{name}' has no sort: annotate it, as in {name}: Tensor; {_ALL}"
        )
    sort = _evaluated(annotation, function) if isinstance(annotation, str) else annotation
    if (typing.get_origin(sort) or sort) in FAMILY_SORTS:
        return typing.cast(Sort, sort)
    if isinstance(sort, type) and (sort in SORTS or issubclass(sort, Attribute)):
        return sort
    shown = sort.__name__ if isinstance(sort, type) else str(sort).rpartition(".")[2]
    meant = _MEANT.get(shown.partition("[")[0])
    advice = f"; use {meant}" if meant else suggestion(shown, _SORT_NAMES).replace("'", "")
    raise ParameterError(name, f"'{name}: {shown}' is no sort of variable{advice or '; ' + _ALL}")


_ALL = f"sorts are {', '.join(_SORT_NAMES)}"


def _evaluated(annotation: str, function: Callable[..., object]) -> object:
    """What an annotation's text stands for; the text itself where nothing is called so."""
    outer = inspect.getclosurevars(function).nonlocals
    try:
        found: object = eval(annotation, {**_globals(function), **outer})
    except (NameError, AttributeError, SyntaxError, TypeError):
        # A sort that is imported inside of an enclosing function cannot be seen from here.
        return _SORT_NAMES.get(annotation.rpartition(".")[2], annotation)
    return found


def _globals(function: Callable[..., object]) -> dict[str, object]:
    found = getattr(function, "__globals__", {})
    assert isinstance(found, dict)
    return found


def mistake_line(error: Exception, function: Callable[..., object], line: int) -> int:
    """The line of `function` at which `error` was raised, or else `line`."""
    code = function.__code__
    if isinstance(error, ParameterError):
        return _parameter_line(function, error.parameter)
    frames = traceback.walk_tb(error.__traceback__)
    inside = [at for frame, at in frames if frame.f_code is code]
    return inside[-1] if inside else line


def _parameter_line(function: Callable[..., object], name: str) -> int:
    first = function.__code__.co_firstlineno
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return first
    found = (node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.arg == name)
    return next((first + node.lineno - 1 for node in found), first)


def reason_of(error: Exception, function: Callable[..., object]) -> str:
    """What an exception out of a rule's definition means, with advice where there is some."""
    if isinstance(error, MistakeError):
        return str(error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, NameError):
        return text + _name_advice(error.name or "", function)
    called = re.match(r"(?:\w+\.)*(\w+)\(\)", str(error))
    if isinstance(error, TypeError) and called:
        target = {**_globals(function), **inspect.getclosurevars(function).nonlocals}.get(called[1])
        if callable(target):
            return f"{text}; it is {called[1]}{_plain_signature(target)}"
    return text


def _name_advice(name: str, function: Callable[..., object]) -> str:
    code = function.__code__
    return name_advice(name, code.co_filename, [*_globals(function), *code.co_varnames], "the rule")


def name_advice(name: str, file: str, known: Iterable[str], user: str) -> str:
    """What to do where `user`, in `file`, needs `name`, which is not among the `known`."""
    for module in (terms, attributes, expressions):
        if hasattr(module, name) and not name.startswith("_"):
            home = getattr(getattr(module, name), "__module__", module.__name__)
            return f"; add `from {home} import {name}`"
    for number, text in enumerate(linecache.getlines(file), 1):
        if re.match(rf"(def|class) {re.escape(name)}\b|{re.escape(name)}\b[^=(]*=", text):
            return f"; it is defined below, in line {number}: move it above {user}"
    choices = [*known, *vars(terms), *_SORT_NAMES]
    return suggestion(name, [entry for entry in choices if not entry.startswith("_")])


def _plain_signature(function: Callable[..., object]) -> str:
    return f"({', '.join(inspect.signature(function).parameters)})"


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
    """Whether the file defines `name` before `line`, too; not so where it was loaded again."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)[: line - 1]
    return any(text.startswith(f"def {name}(") for text in lines)
