"""Rules in files of their own: from a path to the rules that are defined there."""

from __future__ import annotations

import ast
import re
import sys
import traceback
from hashlib import blake2b
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from satura.rewrite.errors import RuleError, SaturaError
from satura.rewrite.language.annotations import suggestion
from satura.rewrite.language.declared import declared_by
from satura.rewrite.language.definition import name_advice
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.ops import OWN, Op


def load_rules(path: str | Path) -> RuleSet:
    """The rules that the Python file at `path` declares, in order; not those that it imports.

    The file is run. It can import its neighbours, as a script can; ops that it declares are known
    from then on, and rules count wherever it keeps them. Raises RuleError, with file and line,
    where it cannot be run, where it declares neither rules nor ops, and where it has two rules of
    one name.
    """
    file = Path(path).resolve()
    code = _code(file, path)
    with declared_by(code) as own:
        module = _run(file, code)
    if not own.rules and not _has_ops(module, file):
        raise RuleError(
            f"{file} defines no rules; declare them with @rule of satura.rewrite.language.dsl"
        )
    return RuleSet(*own.rules.values())


def _has_ops(module: ModuleType, file: Path) -> bool:
    """Whether the file declares ops, wherever it keeps them, or imports some."""
    places = (op.own.place for op in OWN.values() if op.own)
    return any(isinstance(value, Op) for value in vars(module).values()) or any(
        place.rpartition(":")[0] == str(file) for place in places
    )


def _code(file: Path, path: str | Path) -> CodeType:
    try:
        text = decode_source(file.read_bytes())
    except OSError as error:
        raise RuleError(f"{path} cannot be read: {error.strerror}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise RuleError(
            f"{path} cannot be read: it is no UTF-8 text, nor what a coding line at its top says"
        ) from error
    try:
        tree = ast.parse(text)
        _refuse_duplicates(tree, file)
        return compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise RuleError(f"{file}:{line} is no Python: {getattr(error, 'msg', error)}") from error
    except (RecursionError, MemoryError) as error:  # so says the parser of too many brackets
        raise RuleError(f"{file} is nested too deeply to be compiled") from error


def _run(file: Path, code: CodeType) -> ModuleType:
    """The module that `code` makes; it is run here, so that any suffix and no cache will do."""
    name = f"satura_rules_{blake2b(bytes(file), digest_size=8).hexdigest()}"
    spec = spec_from_file_location(name, file, loader=SourceFileLoader(name, str(file)))
    assert spec is not None, "there is a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and type hints look there
    sys.path.insert(0, str(file.parent))
    try:
        exec(code, vars(module))
    except (SaturaError, KeyboardInterrupt):
        raise
    except BaseException as error:  # an exit, too, is the file's mistake
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        place = f"{file}:{lines[-1]}" if lines else str(file)
        reason = f"{type(error).__name__}: {error}{_advice(error, module)}"
        raise RuleError(f"{place} cannot be run: {reason}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _advice(error: BaseException, module: ModuleType) -> str:
    """What a name may have been meant to be that is not there."""
    if isinstance(error, NameError):
        return name_advice(error.name or "", str(module.__file__), vars(module), "this line")
    missing = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    if isinstance(error, ImportError) and missing:
        return suggestion(missing[1], dir(sys.modules.get(missing[2])))
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return suggestion(error.name or "", dir(error.obj))
    return ""


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
