"""The attribute function in which a computation of a rule is, or in which it failed."""

from __future__ import annotations

import sys
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType

from satura.rewrite.errors import brief
from satura.rewrite.language.expressions import Apply
from satura.rewrite.language.ours import is_ours


def file_of(code: CodeType) -> Path:
    """The file that `code` stands in; for a cell of a notebook its label, such as `In[3]`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    format_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    labelled = format_name(code.co_filename) if format_name is not None else None
    return Path(labelled[1] if labelled else code.co_filename)


def failed_function(error: BaseException) -> str:
    """The author's function that raised, with file and line; empty where there is none."""
    steps = [*walk_tb(error.__traceback__)]
    frames = [frame for frame, _ in steps]
    called = _called(frames)
    if called is None:
        return ""
    own = [step for step in steps[called:] if step[0].f_code.co_filename == _file(frames[called])]
    frame, line = own[-1]
    return f"{frame.f_code.co_name}, {file_of(frame.f_code)}:{line}"


def running_function(frame: FrameType | None) -> str:
    """The author's function that runs in some frame, with file, line and arguments; empty where
    there is none."""
    frames: list[FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    called = _called(frames)
    if called is None:
        return ""
    function = frames[called]
    code = function.f_code
    place = f"{code.co_name}, {file_of(code)}:{function.f_lineno}"
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = [f"{name} = {brief(_Shown(function.f_locals[name]))}" for name in names]
    return f"{place}, for {', '.join(values)}" if values else place


class _Shown:
    """A value whose `repr` is the text that it has in messages about rules."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value)


def _called(frames: list[FrameType]) -> int | None:
    """Where an author's function that an expression calls stands among frames, the outermost
    first; None where none does."""
    last = max((at for at, each in enumerate(frames) if each.f_code is _CALLER), default=-1)
    if last < 0 or last + 1 == len(frames):
        return None
    return None if is_ours(frames[last + 1]) else last + 1


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


_CALLER = Apply.evaluate.__code__
