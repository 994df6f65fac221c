"""Mistakes in the functions that rules compute with: side conditions dropped, bounds off by one.

Most side conditions of the rule book are decided in its attribute functions. A mutant of such a
function is its text with one mistake, made in the syntax tree; `plant` lets every rule that calls
the function run with the mistake, without loading any module again.
"""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import cast

from satura.rewrite.language.dsl import Rule
from satura.rewrite.language.expressions import Apply, AttributeVariable, Literal
from satura.rewrite.language.families import AnyOp
from satura.rewrite.types.attributes import Padding, Perm, Shape, Slices, Window
from satura.rules import DEFAULT
from tests.mistakes import mistakes

# Methods that say what a rule may do; the others belong to the ops that rules are checked against.
METHODS = (
    (Perm, "__getitem__"),
    (Perm, "is_identity"),
    (AnyOp, "element"),
    (Padding, "is_zero"),
    (Padding, "permuted"),
    (Shape, "permuted"),
    (Slices, "permuted"),
    (Window, "has_border"),
    (Window, "padded"),
    (Window, "permuted"),
)


@dataclass(frozen=True)
class FunctionMutant:
    """A function with one mistake. `kind` is the sort of mistake, `what` shows it."""

    function: FunctionType
    kind: str
    what: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.function.__qualname__}, {self.what}"


@contextmanager
def plant(mutant: FunctionMutant) -> Iterator[None]:
    """A block in which everything that calls the function meets the mistake."""
    original = mutant.function.__code__
    mutant.function.__code__ = mutant.code
    try:
        yield
    finally:
        mutant.function.__code__ = original


def functions_of(rule: Rule) -> tuple[FunctionType, ...]:
    """The functions of the rule book that decide where `rule` holds and what it computes."""
    found: dict[FunctionType, None] = {}
    for direction in rule.directions:
        for expression in direction.expressions:
            for part in _applications(expression):
                for function in _functions_called(part):
                    _collect(function, found)
    return tuple(found)


def _applications(expression: object) -> Iterator[Apply]:
    if isinstance(expression, Apply):
        yield expression
        for argument in expression.arguments:
            yield from _applications(argument)


def _functions_called(part: Apply) -> Iterator[FunctionType]:
    function = inspect.unwrap(part.function)
    if isinstance(function, FunctionType) and _is_ours(function):
        yield function
    name = part.arguments[1] if part.function is getattr else None
    owner = part.arguments[0]
    sort = owner.sort if isinstance(owner, AttributeVariable) else object
    yield from _methods(str(name.value) if isinstance(name, Literal) else _operator(part), sort)


def _operator(part: Apply) -> str:
    indexes = getattr(part.function, "__name__", "") == "getitem"
    return "__getitem__" if indexes and isinstance(part.arguments[0], AttributeVariable) else ""


def _methods(name: str, sort: type = object) -> Iterator[FunctionType]:
    """Methods of this name, of the class `sort` where that is one of their owners."""
    for owner, method in METHODS:
        if method == name and sort in (owner, object):
            member = vars(owner)[name]
            function = member.fget if isinstance(member, property) else member
            yield cast(FunctionType, inspect.unwrap(cast(FunctionType, function)))


def _is_ours(function: FunctionType) -> bool:
    return function.__module__.startswith(("satura.rules.", AnyOp.__module__))


def _collect(function: FunctionType, found: dict[FunctionType, None]) -> None:
    if function in found:
        return
    found[function] = None
    for name in _names(function.__code__):
        member = (
            inspect.unwrap(function.__globals__[name]) if name in function.__globals__ else None
        )
        if isinstance(member, FunctionType) and (_is_ours(member) or name == "_static"):
            _collect(member, found)
        for method in _methods(name):
            _collect(method, found)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@cache
def function_mutants(
    function: FunctionType, kinds: tuple[str, ...] = ()
) -> tuple[FunctionMutant, ...]:
    """All mutants of `function`, or those of some kinds, each with another text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    seen = {ast.unparse(tree)}
    mutants: list[FunctionMutant] = []
    for place, node in enumerate(ast.walk(tree)):
        for kind, wrong in mistakes(node, function.__globals__):
            if kinds and kind not in kinds:
                continue
            changed = _with_node(tree, place, wrong)
            text = ast.unparse(changed)
            if text not in seen:
                seen.add(text)
                what = f"{kind}: {ast.unparse(node)} -> {ast.unparse(wrong)}"
                mutants.append(FunctionMutant(function, kind, what, _compile(text, function)))
    return tuple(mutants)


def _with_node(tree: ast.FunctionDef, place: int, new: ast.AST) -> ast.FunctionDef:
    """A copy of `tree` where the node at `place`, in the order of `ast.walk`, is `new`."""
    copied = copy.deepcopy(tree)
    old = list(ast.walk(copied))[place]
    for parent in ast.walk(copied):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if entry is old else entry for entry in value]
    return copied


def _compile(text: str, function: FunctionType) -> CodeType:
    flags = __future__.annotations.compiler_flag
    code = compile(text, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    return next(part for part in code.co_consts if isinstance(part, CodeType))


DECIDED = [entry.name for entry in DEFAULT if functions_of(entry)]  # names of rules
