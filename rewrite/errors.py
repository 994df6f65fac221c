"""Every error that satura raises on purpose.

A message says what is wrong, where (node, rule or argument) and what to do about it.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

_is_command_line = ContextVar("_is_command_line", default=False)
_MOST_SHOWN = 120  # characters of a wrong argument


_LONG_WORD = re.compile(r"(\S{100})\S{150,}(\S{50})")


def shown(message: str, others: str = "") -> str:
    """A message in which names may be anything: characters that are not printable, nor among
    `others`, are escaped, and in a single line the middle of long words is left out."""
    if not message.isprintable():
        message = "".join(c if c.isprintable() or c in others else repr(c)[1:-1] for c in message)
    return message if "\n" in message else _LONG_WORD.sub(r"\1…\2", message)


class SaturaError(Exception):
    """Base class: catch this to catch everything that satura reports."""

    _has_lines: ClassVar[bool] = True

    def __str__(self) -> str:
        return shown(super().__str__(), "\n\t" if self._has_lines else "")


class ProgramError(SaturaError):
    """A program that is not well typed or not well formed."""


class ModelError(SaturaError):
    """A model file that cannot be read: truncated, cyclic, inconsistent, or outside its folder."""

    _has_lines = False


class RefusedSizesError(ModelError):
    """A model that does not run at the sizes of a call: its program is for others, as chosen."""


class UnsupportedError(SaturaError):
    """A valid model that uses something satura has no way to run."""

    _has_lines = False


class RuleError(SaturaError):
    """A rewrite rule that is wrong at its definition or refuted by a check."""


class ExpressionError(RuleError):
    """An expression of a rule that has no meaning, such as a shape at an Axis, not at its index."""


class OpError(SaturaError):
    """An op declaration that is not well formed, or whose formula differs from its reference."""


class ArtifactError(SaturaError):
    """A saved program that is damaged, of another version, or not one at all."""


class FileError(SaturaError, OSError):
    """A file that cannot be opened or written."""

    _has_lines = False


class CallError(SaturaError):
    """A call that cannot be: of a program with names, dtypes, shapes or indices that it does not
    take, or of any verb with an argument or option of no meaning."""


class VerificationError(SaturaError):
    """A stage whose results differ from the interpreter's: a fault of satura or of a rule."""


class RuleWarning(UserWarning):
    """A rule that is not satura's own does something that its author should know."""


class RuleDroppedWarning(RuleWarning):
    """A rule that is not satura's own failed while a program was rewritten, and was left out."""


class StruckWarning(UserWarning):
    """A fragment that was chosen cannot be lowered, and another took its place."""


class LimitWarning(UserWarning):
    """A search was cut short by one of its limits, and may have missed a cheaper program."""


class HostFallbackWarning(UserWarning):
    """An ONNX node has no lowering and runs on the slow reference implementation."""


class EqualSizesWarning(UserWarning):
    """A program is for calls alone where sizes are equal that have different names in its model,
    or are what one of several programs of the model has fixed."""


def brief(value: object) -> str:
    """A wrong argument as errors show it: of a long one the start, and its type."""
    text = repr(value)
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}… (of type {type(value).__name__})"


@contextmanager
def on_command_line() -> Iterator[None]:
    """Give advice in the words of the command line."""
    token = _is_command_line.set(True)
    try:
        yield
    finally:
        _is_command_line.reset(token)


def advice(python: str, command_line: str) -> str:
    """What to do, in the words of whom it is for: a caller in Python or on the command line."""
    return command_line if _is_command_line.get() else python


@contextmanager
def file_errors(doing: str, path: object) -> Iterator[None]:
    """Raise FileError for what the system says while `path` is opened or written."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot {doing} '{path}': {error.strerror or error}") from error


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside satura that called it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "satura":
        level, frame = level + 1, frame.f_back
    others = "\n\t" if issubclass(category, RuleWarning) else ""
    warnings.warn(shown(message, others), category, stacklevel=level)


def warn_of_former_place(module: str) -> None:
    """Warn whoever imports `module`, which stays until the next minor version only."""
    warn_caller(
        f"{module} goes with the next minor version of satura: import from satura.language",
        DeprecationWarning,
    )
