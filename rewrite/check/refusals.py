"""Where the attribute functions of a rule can refuse: its side conditions that have no name.

A report counts them like conditions, so that an author sees which were never exercised.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType

from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply
from satura.rewrite.types.attributes import Refuse


@dataclass(frozen=True)
class Site:
    """A `refuse_unless(…)` or `raise Refuse(…)` in the text of a function."""

    file: str
    first: int
    last: int
    text: str


def refusal_sites(direction: Direction) -> tuple[Site, ...]:
    """The sites in the functions that the direction computes with, and in those that they call.

    Only in what the rule's author wrote: not in satura's own methods of attributes.
    """
    pending = list(authored_functions(direction))
    seen: dict[FunctionType, None] = {}
    while pending:
        function = pending.pop(0)
        if function not in seen:
            seen[function] = None
            pending += _called(function)
    return tuple(dict.fromkeys(site for function in seen for site in _sites(function)))


def site_of(refusal: Refuse, sites: tuple[Site, ...]) -> str:
    """The text of the site that a refusal came from; else the name of the function."""
    frames = list(_frames(refusal.__traceback__))
    for code, line in reversed(frames):
        for site in sites:
            if site.file == code.co_filename and site.first <= line <= site.last:
                return site.text
    names = [code.co_qualname for code, _ in frames if code.co_name != "refuse_unless"]
    return names[-1] if names else "Refuse"


def _frames(traceback: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lineno
        traceback = traceback.tb_next


def authored_functions(direction: Direction) -> Iterator[FunctionType]:
    """Functions that the direction computes with and that are not satura's own."""
    computed = [entry.expression for entry in (*direction.outputs, *direction.guards)]
    for expression in (*direction.conditions, *computed):
        if isinstance(expression, Apply):
            yield from _authored(expression.functions())


def _authored(functions: Iterator[Callable[..., object]] | list[object]) -> Iterator[FunctionType]:
    for function in functions:
        plain = inspect.unwrap(function) if callable(function) else None
        if isinstance(plain, FunctionType) and not plain.__module__.startswith("satura.rewrite."):
            yield plain


def _called(function: FunctionType) -> Iterator[FunctionType]:
    """Functions among the globals that the code of `function` names."""
    return _authored(
        [function.__globals__.get(name) for name in _names(function.__code__)],
    )


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _sites(function: FunctionType) -> Iterator[Site]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # no file, or a lambda in the middle of an expression
        return
    code = function.__code__
    for node in ast.walk(tree):
        reason = _reason(node)
        if reason is not None and isinstance(node, ast.expr | ast.stmt):
            first = code.co_firstlineno + node.lineno - 1
            last = code.co_firstlineno + (node.end_lineno or node.lineno) - 1
            text = f"{function.__name__}, line {first}: {reason}"
            yield Site(code.co_filename, first, last, text)


def _reason(node: ast.AST) -> str | None:
    """Why the refusal at `node` happens, as the text says; None where there is none."""
    if isinstance(node, ast.Call) and _name(node.func) == "refuse_unless":
        reasons = [*node.args[1:2], *(keyword.value for keyword in node.keywords)]
        return _text(reasons[0]) if reasons else f"not ({ast.unparse(node.args[0])})"
    if isinstance(node, ast.Raise) and node.exc is not None:
        call = node.exc
        if isinstance(call, ast.Call) and _name(call.func) == "Refuse":
            return _text(call.args[0]) if call.args else "Refuse"
    return None


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)


def _text(reason: ast.expr) -> str:
    if isinstance(reason, ast.Constant):
        return str(reason.value)
    if isinstance(reason, ast.JoinedStr):
        return "".join(map(_text, reason.values))
    if isinstance(reason, ast.FormattedValue):
        return f"{{{ast.unparse(reason.value)}}}"
    return ast.unparse(reason)
