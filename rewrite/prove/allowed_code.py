"""Which Python a rule's functions may use in a proof.

A proof runs an author's functions on stand-ins for numbers. A stand-in answers for every number or
ends the proof. It cannot do so where a function catches errors, asks for a class or an identity, or
decides by a text. So only what is listed here is allowed; a rule that uses more is tested, not
proved.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import textwrap
import tokenize
import typing
from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, UnionType

from satura.rewrite.language.dsl import Rule
from satura.rewrite.types.attributes import Refuse, refuse_unless
from satura.rewrite.types.tensor_type import DType

BUILTINS = (
    "abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "frozenset", "int",
    "isinstance", "iter", "len", "list", "map", "max", "min", "next", "object", "range", "reversed",
    "round", "set", "slice", "sorted", "sum", "tuple", "zip",
)  # fmt: skip
MODULES = ("collections", "_collections", "_functools", "itertools", "math")
SINGLE = (typing.cast, dataclasses.replace)  # of modules whose other names look at classes
BOOK = "satura.rules"  # read like any author's
RECORDED = ("_operator", "builtins")  # operators and accesses in the text of a rule itself
PLAIN = (bool, int, float, type(None), type(...), UnionType)
FORBIDDEN: dict[str, tuple[type[ast.AST], ...]] = {
    "catches errors, which unknown sizes may raise": (
        ast.Try, ast.TryStar, ast.With, ast.AsyncWith,
    ),
    "imports or binds names of its module": (
        ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom,
    ),
    "turns values into text": (ast.JoinedStr,),
    "compares identities; use == or isinstance": (ast.Is, ast.IsNot),
}  # fmt: skip
MEANT = {"Refuse": Refuse, "refuse_unless": refuse_unless, "DType": DType}


class NotAllowedError(Exception):
    """A function uses what is not allowed; the message says what that is."""


def objection(rule: Rule) -> str:
    """Why a proof of `rule` does not count; empty where it counts."""
    pending = list(_functions(rule))
    seen: dict[int, object] = {}  # kept, so that no other value takes an id
    try:
        while pending:
            value = pending.pop()
            if id(value) not in seen:
                seen[id(value)] = value
                pending += _values_used_by(value)
    except NotAllowedError as error:
        return str(error)
    return ""


def _functions(rule: Rule) -> Iterator[object]:
    for direction in rule.directions:
        for function in direction.functions():
            if getattr(function, "__module__", None) not in RECORDED:
                yield function


def _values_used_by(value: object) -> Iterator[object]:
    """The values that must be allowed for `value` to be. Raises NotAllowedError."""
    if isinstance(value, ModuleType) or any(value is single for single in SINGLE):
        return  # what is taken from a module is looked at by itself
    if isinstance(value, FunctionType):
        if not _is_trusted(value.__globals__.get("__name__")):
            yield from _in_function(value)
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        yield getattr(value, "__wrapped__", None)
    elif isinstance(value, tuple | frozenset):
        yield from value
    elif isinstance(value, list | set | dict):
        kind = type(value).__name__
        raise NotAllowedError(f"its function uses a {kind} from outside, which may change")
    elif not _is_allowed(value):
        name = getattr(value, "__name__", repr(value))
        raise NotAllowedError(f"its function uses {name}" + "; use isinstance" * (value is type))


def _is_allowed(value: object) -> bool:
    if isinstance(value, str):  # not what makes text of values
        return not any(sign in value for sign in ("%", "{", "__"))
    module = getattr(value, "__module__", None)
    if isinstance(value, type | BuiltinFunctionType):
        return _is_trusted(module) or any(value is vars(builtins)[name] for name in BUILTINS)
    return isinstance(value, PLAIN) or (_is_trusted(module) and str(module).startswith("satura."))


def _is_trusted(module: object) -> bool:
    """Whether code of `module` asks of a number only what a stand-in answers or refuses."""
    name = f"{module}."
    ours = name.startswith("satura.") and not name.startswith((f"{BOOK}.", "satura.rewrite.prove."))
    return module in MODULES or ours


def _in_function(function: FunctionType) -> Iterator[object]:
    """The values that a function names. Raises NotAllowedError where its text is not allowed."""
    code, where = function.__code__, f"its function {function.__name__}"
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    held = {name: cell.cell_contents for name, cell in cells}
    names = {**vars(builtins), **function.__globals__, **held}
    codes = list(_codes(code))
    loaded = {*code.co_freevars, *(name for each in codes for name in each.co_names)}
    local = {name for each in codes for name in (*each.co_varnames, *each.co_cellvars)}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, tokenize.TokenError):
        raise NotAllowedError(f"{where} has no source") from None
    meant = [name for name in MEANT if name not in local and names.get(name) is MEANT[name]]
    quiet = {id(part) for node in ast.walk(tree) for part in _harmless_parts(node, meant)}
    for node in ast.walk(tree):
        for what, kinds in FORBIDDEN.items():
            if isinstance(node, kinds) and id(node) not in quiet:
                raise NotAllowedError(f"{where} {what}")
        match node:
            case ast.Name(id=name) if name in loaded and name in names:
                yield names[name]
            case ast.Constant(value=value) if id(node) not in quiet:
                yield value
            case ast.Attribute(attr=name) if name.startswith("__"):
                raise NotAllowedError(f"{where} uses {name}; use isinstance")
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                raise NotAllowedError(f"{where} changes an attribute")
            case ast.Attribute(value=owner, attr=attribute):
                if isinstance(module := _module(owner, names), ModuleType):
                    yield getattr(module, attribute, None)


def _module(node: ast.expr, names: Mapping[str, object]) -> object:
    """The value of a name or of a module's attribute; None for any other expression."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=owner, attr=attribute):
            module = _module(owner, names)
            return getattr(module, attribute, None) if isinstance(module, ModuleType) else None
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _harmless_parts(node: ast.AST, meant: Sequence[str]) -> Iterator[ast.AST]:
    """The parts of `node` that decide nothing: docstrings, messages, `is` with a singleton."""
    match node:
        case ast.Expr(value=ast.Constant() as text):
            yield text
        case ast.Raise(exc=ast.Call(func=ast.Name(id="Refuse"), args=[text])) if "Refuse" in meant:
            yield from _literal_pieces(text)
        case ast.Call(func=ast.Name(id="refuse_unless")) if "refuse_unless" in meant:
            for text in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
                yield from _literal_pieces(text)
        case ast.Compare(ops=[operator], comparators=[ast.Constant(value=None)]):
            yield operator
        case ast.Compare(ops=[operator], comparators=[ast.Attribute(value=ast.Name(id="DType"))]):
            if "DType" in meant:
                yield operator


def _literal_pieces(text: ast.expr) -> Iterator[ast.AST]:
    """A text and its literal pieces, without the values that it formats."""
    yield text
    for piece in text.values if isinstance(text, ast.JoinedStr) else ():
        if isinstance(piece, ast.Constant):
            yield piece
        elif isinstance(piece, ast.FormattedValue) and piece.format_spec is not None:
            yield from _literal_pieces(piece.format_spec)
