"""Rules in files of their own: from a path to the rules that are defined there."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from satura.rewrite.dsl import Rule, RuleSet
from satura.rewrite.errors import RuleError, SaturaError
from satura.rewrite.ops import Op


def load_rules(path: str | Path) -> RuleSet:
    """The rules that the Python file at `path` defines, in order; not those that it imports.

    The file is run. It can import its neighbours, as a script can; ops that it declares are known
    from then on. Raises RuleError, with file and line, where it cannot be run, where it defines
    neither rules nor ops, and where it has two rules of one name.
    """
    file = Path(path).resolve()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise RuleError(f"{path} cannot be read: {reason}") from error
    try:
        _refuse_duplicates(ast.parse(text), file)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise RuleError(f"{file}:{line} is no Python: {error}") from error
    found = vars(_run(file)).values()
    rules = [value for value in found if isinstance(value, Rule)]
    own = dict.fromkeys(rule for rule in rules if rule.file.resolve() == file)
    if not own and not any(isinstance(value, Op) for value in found):
        raise RuleError(f"{file} defines no rules; declare them with @rule of satura.rewrite.dsl")
    return RuleSet(*own)


def _run(file: Path) -> ModuleType:
    name = f"satura_rules_{blake2b(bytes(file), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and type hints look there
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except (SaturaError, KeyboardInterrupt):
        raise
    except BaseException as error:  # an exit, too, is the file's mistake
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        place = f"{file}:{lines[-1]}" if lines else str(file)
        raise RuleError(f"{place} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _refuse_duplicates(tree: ast.Module, file: Path) -> None:
    """A second rule of a name would silently replace the first."""
    lines: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(_declares_rule, node.decorator_list)):
            first = lines.setdefault(node.name, node.lineno)
            if first != node.lineno:
                raise RuleError(
                    f"{file}:{node.lineno} defines rule '{node.name}' again, which line {first}"
                    " defines: rename one"
                )


def _declares_rule(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
    return name == "rule"
