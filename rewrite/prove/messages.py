"""Where a text goes: into the message of a refusal, which nobody reads, or anywhere else."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType

from satura.rewrite.types.attributes import Refuse, refuse_unless

SPELLING = ("__str__", "__repr__", "__format__")
MEANT: dict[str, object] = {"Refuse": Refuse, "refuse_unless": refuse_unless}
EFFECTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)

Place = tuple[int, int]  # line and column


def in_message(frame: FrameType | None) -> bool:
    """Whether what is spelled out in `frame` is only what a refusal says.

    That is so directly in `raise Refuse(f"…")` and in `refuse_unless(…, f"…")`; functions called
    there may do anything with it.
    """
    while frame is not None and _spells(frame):
        frame = frame.f_back
    if frame is None:
        return False
    code = frame.f_code
    first, last, left, right = list(code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None or left is None or right is None:
        return False
    for name, start, end in _messages(code):
        if start <= (first, left) and (last, right) <= end:
            return _is_global(name, code) and frame.f_globals.get(name) is MEANT[name]
    return False


def _spells(frame: FrameType) -> bool:
    """Whether it is a method of satura's own that spells out a part of what it is called for."""
    own = str(frame.f_globals.get("__name__")).startswith("satura.rewrite.")
    return own and any(name in frame.f_code.co_qualname.split(".") for name in SPELLING)


def _is_global(name: str, code: CodeType) -> bool:
    return name not in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)


@cache
def _messages(code: CodeType) -> list[tuple[str, Place, Place]]:
    """Every message of a refusal in a file: what it is given to, and from where to where it is."""
    linecache.checkcache(code.co_filename)
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return []
    return list(_found(tree))


def _found(tree: ast.Module) -> Iterator[tuple[str, Place, Place]]:
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = call.func.id
        if name == "Refuse" and isinstance(node, ast.Raise):
            texts = call.args
        elif name == "refuse_unless":
            texts = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        else:
            continue
        for text in texts:
            harmless = not any(isinstance(part, EFFECTS) for part in ast.walk(text))
            if isinstance(text, ast.JoinedStr) and harmless and text.end_lineno is not None:
                end = (text.end_lineno, text.end_col_offset or 0)
                yield name, (text.lineno, text.col_offset), end
