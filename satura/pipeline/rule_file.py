"""Rules in files of their own: from a path to the rules that are defined there."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType

from satura.rewrite.errors import RuleError, SaturaError
from satura.rewrite.language.definition import name_advice, rules_module
from satura.rewrite.language.dsl import DECLARED, RuleSet
from satura.rewrite.ops import USER_OPS, Op
from satura.rewrite.system.stopped import Stopped


def load_rules(path: str | Path) -> RuleSet:
    """The rules that are written in the Python file at `path`, in order; not those that it imports.

    The file is run as a module. It can import its neighbours, as a script can; ops that it declares
    are known from then on, and rules count wherever it keeps them. Raises RuleError, with file and
    line, where it cannot be run, where it declares neither rules nor ops, and where it has two
    rules of one name.
    """
    try:
        file = Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, NUL, too long
        raise RuleError(f"{str(path)!r} cannot be read: {error}") from None
    module = _run(file, path)
    rules = RuleSet(*vars(module).get(DECLARED, ()))
    if not rules and not _has_ops(module, file):
        raise RuleError(f"{file} defines no rules; declare them with @rule of satura.language")
    return rules


def _has_ops(module: ModuleType, file: Path) -> bool:
    """Whether the file declares ops, wherever it keeps them, or imports some."""
    places = (op.user.place for op in USER_OPS.values() if op.user)
    return any(isinstance(value, Op) for value in vars(module).values()) or any(
        place.rpartition(":")[0] == str(file) for place in places
    )


def _run(file: Path, path: str | Path) -> ModuleType:
    """The module that the file makes; compiled here, it may have any suffix and has no cache."""
    try:
        source = file.read_bytes()
    except OSError as error:
        raise RuleError(f"{path} cannot be read: {error.strerror}") from error
    module = ModuleType(rules_module(file))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses and type hints look there
    sys.path.insert(0, str(file.parent))
    try:
        exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    except (SaturaError, KeyboardInterrupt, Stopped):
        raise
    except BaseException as error:  # an exit, too, is the file's mistake
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, NameError):
            reason += name_advice(error.name or "", vars(module), source.decode(errors="ignore"))
        raise RuleError(f"{_place(error, file)} cannot be run: {reason}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _place(error: BaseException, file: Path) -> str:
    """The file, with the line of it that `error` comes from where there is one."""
    lines = [
        at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(file)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        lines = [error.lineno]
    return f"{file}:{lines[-1]}" if lines and lines[-1] else str(file)
