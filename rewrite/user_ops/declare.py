"""Ops of users: declared in a file of their own, with the decorator of `registry.py`.

    @op(formula="x + (y - x) * t")
    def lerp(x: TensorType, y: TensorType, t: TensorType) -> TensorType:
        \"\"\"From x, where t is 0, to y, where t is 1.\"\"\"
        return x

With a formula an op is elementwise: its operands have one shape, which is that of the result; the
type rule says the element type, or refuses. The formula is the reference too unless one is given;
then both are tried on every element type at the declaration. One or two operands of one element
type and no attributes make it a function of `unary` or `binary`, so that every law about these
holds for it; any other is an op in the e-graph. Without a formula the op runs on the host, by its
reference.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import FunctionType
from typing import cast

import numpy as np

from satura.rewrite.errors import OpError, brief
from satura.rewrite.language.terms import Term, application
from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction
from satura.rewrite.ops.expression import Formula
from satura.rewrite.ops.formula import evaluate_formula, formula_flops
from satura.rewrite.ops.formula_parser import FormulaError, parse
from satura.rewrite.ops.registry import (
    REGISTRY,
    USER_DOMAIN,
    USER_OPS,
    Generator,
    Kind,
    Op,
    Types,
    UserDeclaration,
    no_flops,
    size_of,
)
from satura.rewrite.types.attributes import Attribute, BinaryFn, Count, UnaryFn, UserAttribute
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rewrite.user_ops import guard
from satura.rewrite.user_ops.formula_check import Signature, signatures, try_formula

MOST_OPERANDS = 3  # of an op with a formula
NUMBERS = (Scalar, Count)  # attributes that a formula can name
_RESERVED = ("known", "varying", "host")  # the e-graph has tables for these
_PLAIN = (int, float, str, bytes, np.generic)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOMAIN = re.compile(r"\w[\w-]*(\.\w[\w-]*)*", re.ASCII)


@dataclass(frozen=True)
class Declaration:
    """What the decorator was given, and the type rule under it."""

    type_rule: Callable[..., Types]
    kind: Kind | None
    reference: Callable[..., object] | None
    flops: Callable[..., float] | None
    formula: str | None
    generator: Generator | None
    domain: str
    op_type: str

    @property
    def name(self) -> str:
        return self.type_rule.__name__

    @property
    def place(self) -> str:
        code = inspect.unwrap(self.type_rule).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def label(self) -> str:
        return f"op '{self.name}' ({self.place})"

    def error(self, reason: str) -> OpError:
        return OpError(f"{self.label}: {reason}")


_DECLARED: dict[str, Declaration] = {}  # what made the ops in USER_OPS
_TABLES: tuple[dict[str, Op] | dict[str, ScalarFunction] | dict[str, Declaration], ...] = (
    REGISTRY, USER_OPS, UNARY, BINARY, _DECLARED,
)  # fmt: skip


@dataclass(frozen=True)
class _Signature:
    operands: tuple[str, ...]
    attributes: dict[str, type]


@dataclass(frozen=True, eq=False)
class UserOp(Op):
    """An op of a user: rules call it by its name."""

    def __call__(self, *arguments: object) -> Term:
        """The op applied in a rule: to tensors, then attributes."""
        return application(self, arguments)


def op(
    kind: Kind | None = None,
    reference: Callable[..., object] | None = None,
    flops: Callable[..., float] | None = None,
    *,
    formula: str | None = None,
    generator: Generator | None = None,
    domain: str = USER_DOMAIN,
    op_type: str = "",
) -> Callable[[Callable[..., Types]], UserOp]:
    """Declare an op by its type rule, see `satura/ops.py`.

    Raises OpError, which names the op and its place, for a declaration that is not well formed.
    """
    if kind is not None and not isinstance(kind, Kind):
        if isinstance(kind, FunctionType):
            bare = Declaration(kind, None, None, None, None, None, domain, op_type)
            raise bare.error("write @op(…) with a formula or a reference above it, not @op")
        frame = sys._getframe(1)
        raise OpError(
            f"{frame.f_code.co_filename}:{frame.f_lineno}: the kind of an op is a Kind, not"
            f" {brief(kind)}: write @op(formula=…) or @op(reference=…) above a type rule"
        )
    return lambda type_rule: declare(
        Declaration(type_rule, kind, reference, flops, formula, generator, domain, op_type)
    )


def declare(declaration: Declaration) -> UserOp:
    """Make the declared op known everywhere, and return it. Raises OpError."""
    _check_function(declaration.type_rule)
    _check_name(declaration)
    _check_onnx(declaration)
    signature = _signature(declaration)
    user = UserDeclaration(
        declaration.domain, declaration.op_type or declaration.name, declaration.place,
        declaration.generator,
    )  # fmt: skip
    if declaration.formula is None:
        made, function = _on_host(declaration, signature, user), None
    else:
        made, function = _elementwise(declaration, signature, user)
    if function is None:
        home: dict[str, Op] | dict[str, ScalarFunction] = REGISTRY
        REGISTRY[made.name] = made
    else:
        home = UNARY if made.arity == 1 else BINARY
        home[made.name] = function
    for table in (REGISTRY, UNARY, BINARY):
        if table is not home:
            table.pop(made.name, None)  # where this declaration was before it was run again
    USER_OPS[made.name], _DECLARED[made.name] = made, declaration
    return made


def find(domain: str, op_type: str) -> Op | None:
    """The op that ONNX models have under this name."""
    for op in USER_OPS.values():
        if op.user and (op.user.domain, op.user.op_type) == (domain, op_type):
            return op
    return None


@contextmanager
def local_ops() -> Iterator[None]:
    """A block at whose end the ops that were declared in it are forgotten."""
    before = [set(table) for table in _TABLES]
    try:
        yield
    finally:
        for table, names in zip(_TABLES, before, strict=True):
            for name in set(table) - names:
                del table[name]


def _check_function(type_rule: object) -> None:
    inner = inspect.unwrap(type_rule) if callable(type_rule) else None
    if not isinstance(inner, FunctionType):
        caller = inspect.stack()[3]
        what = type_rule.__name__ if isinstance(type_rule, type) else repr(type_rule)
        raise OpError(
            f"{caller.filename}:{caller.lineno}: @op(…) stands directly above a function,"
            f" the op's type rule, not above {what}"
        )


def _check_name(declaration: Declaration) -> None:
    """Raise OpError for a name that is taken, unless by this declaration when it was run before."""
    name = declaration.name
    if not (name.isascii() and name.isidentifier()):
        raise declaration.error("its name must be a word of ASCII letters: write it as a function")
    if not inspect.getdoc(declaration.type_rule):
        raise declaration.error("the docstring is missing: say there what the op computes")
    other = USER_OPS[name].user if name in USER_OPS else None
    if other is not None:
        if not _same_place(other.place, declaration):
            raise declaration.error(f"an op of this name is declared at {other.place}; rename one")
        if _repeats(_DECLARED[name], declaration):
            raise declaration.error(
                "this line has declared another op of this name, in a loop or a function that is"
                " called again: give each a name of its own, by `function.__name__ = …` before"
                " `op(…)(function)`"
            )
    elif name in REGISTRY or name in UNARY or name in BINARY or name in DType._value2member_map_:
        raise declaration.error(
            "satura has an op, a function or an element type of this name; choose another"
        )
    elif name in _RESERVED or name.startswith("host_"):
        raise declaration.error("this name has a meaning in the e-graph; choose another")


def _check_onnx(declaration: Declaration) -> None:
    """Raise OpError where ONNX models cannot have the op under its domain and name there."""
    domain, op_type = declaration.domain, declaration.op_type or declaration.name
    if not domain or domain == "ai.onnx":
        raise declaration.error("its domain is that of ONNX's own ops; choose another")
    if not _DOMAIN.fullmatch(domain):
        raise declaration.error(f"'{domain}' is not a domain in ONNX: write one like com.example")
    if not _WORD.fullmatch(op_type):
        raise declaration.error(
            f"its op_type '{op_type}' is not a name in ONNX: write a word of ASCII letters, digits"
            " and underscores"
        )
    twin = find(domain, op_type)
    if twin is not None and twin.name != declaration.name:
        raise declaration.error(f"{twin.name} has the same name and domain in ONNX models")


def _repeats(before: Declaration, declaration: Declaration) -> bool:
    """Whether the same code declares another op; code that was loaded again may be edited."""
    first, second = inspect.unwrap(before.type_rule), inspect.unwrap(declaration.type_rule)
    return first.__code__ is second.__code__ and _meaning_of(before) != _meaning_of(declaration)


def _meaning_of(declaration: Declaration) -> list[object]:
    """What tells apart the ops that one line declares: their code, numbers and texts."""
    functions = (declaration.reference, declaration.flops, declaration.generator)
    said = [declaration.formula, declaration.domain, declaration.op_type]
    return [*said, *(part for each in (declaration.type_rule, *functions) for part in _parts(each))]


def _parts(function: object) -> Iterator[object]:
    """The code of a function, and the numbers and texts in its defaults and its closure."""
    inner = inspect.unwrap(function) if callable(function) else None
    if isinstance(inner, FunctionType):
        yield inner.__code__
        yield [value for value in inner.__defaults__ or () if isinstance(value, _PLAIN)]
        for cell in inner.__closure__ or ():
            with suppress(ValueError):  # nothing was assigned yet
                yield cell.cell_contents if isinstance(cell.cell_contents, _PLAIN) else None


def _same_place(place: str, declaration: Declaration) -> bool:
    """Whether a declaration at `place` is this one; the cells of a notebook are one file."""
    (file, _, line), (other, _, at) = place.rpartition(":"), declaration.place.rpartition(":")
    return line == at and (file == other or (_is_cell(file) and _is_cell(other)))


def _is_cell(file: str) -> bool:
    return file.startswith("<") or "ipykernel" in file


def _signature(declaration: Declaration) -> _Signature:
    """Names of the operands, and names and classes of the attributes. Raises OpError."""
    try:
        hints = typing.get_type_hints(declaration.type_rule)
    except (NameError, TypeError) as error:
        raise declaration.error(f"its annotations cannot be read: {error}") from None
    operands: list[str] = []
    attributes: dict[str, type] = {}
    known = typing.get_args(Attribute)
    for name, parameter in inspect.signature(declaration.type_rule).parameters.items():
        hint = hints.get(name)
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise declaration.error(f"'{parameter}': give every operand a parameter of its own")
        if hint is TensorType and not attributes:
            operands.append(name)
        elif hint is TensorType:
            raise declaration.error(f"the operand '{name}' must come before the attributes")
        elif isinstance(hint, type) and issubclass(hint, UserAttribute) and not _is_plain(hint):
            raise declaration.error(f"{hint.__name__} must be a dataclass, and frozen")
        elif isinstance(hint, type) and issubclass(hint, known):
            attributes[name] = hint
        else:
            raise declaration.error(
                f"'{name}: {getattr(hint, '__name__', hint)}' is neither an operand (TensorType)"
                " nor an attribute; classes of attributes are"
                f" {', '.join(c.__name__ for c in known)}, and frozen dataclasses of yours"
                " that inherit from UserAttribute"
            )
    if not operands:
        raise declaration.error("it needs an operand: a parameter annotated TensorType")
    if hints.get("return") is not TensorType:
        raise declaration.error("its type rule must be annotated to return a TensorType")
    return _Signature(tuple(operands), attributes)


def _is_plain(sort: type) -> bool:
    """Whether the class is a frozen dataclass, so that its values stay what they are."""
    parameters = getattr(sort, "__dataclass_params__", None)
    return bool(getattr(parameters, "frozen", False))


def _on_host(declaration: Declaration, signature: _Signature, user: UserDeclaration) -> UserOp:
    if declaration.reference is None:
        raise declaration.error("it needs a formula, or a reference that computes it in NumPy")
    arity, label = len(signature.operands), declaration.label
    rule = guard.type_rule(declaration.type_rule, arity, label, None)
    reference = guard.host_reference(declaration.reference, rule, arity, label)
    return _op(declaration, signature, Kind.HOST, rule, reference, no_flops, user)


def _elementwise(
    declaration: Declaration, signature: _Signature, user: UserDeclaration
) -> tuple[UserOp, ScalarFunction | None]:
    """The op, and its scalar function where `unary` or `binary` can lift it."""
    formula = _formula(declaration, signature)
    arity, label = len(signature.operands), declaration.label
    rule = guard.type_rule(declaration.type_rule, arity, label, formula)

    def formula_reference(*arguments: object) -> Array:
        arrays = cast(tuple[Array, ...], arguments[:arity])
        return evaluate_formula(formula, arrays, cast(tuple[Attribute, ...], arguments[arity:]))

    def flops(result: TensorType, *_: object) -> float:
        return formula_flops(formula) * size_of(result)

    elements = guard.elements(declaration.reference or formula_reference, label)
    reference = guard.wide_reference(elements, rule, arity)
    draft = _op(declaration, signature, Kind.ELEMENTWISE, rule, reference, flops, user)
    taken = signatures(draft, declaration.error)
    if declaration.reference is not None:
        try_formula(draft, formula, taken, declaration.error)
    user = replace(user, formula=formula, signatures=taken)
    to_bool = taken[0][1] is DType.BOOL and taken[0][0] != (DType.BOOL,) * arity
    if not _is_scalar_function(draft, taken, to_bool):
        return replace(draft, user=user), None
    dtypes = frozenset(dtypes[0] for dtypes, _ in taken)
    one = tuple(TensorType(dtype, ()) for dtype in taken[0][0])
    weight = draft.flops(one, (), TensorType(taken[0][1], ()))
    function = ScalarFunction(
        draft.name, elements, dtypes, formula.text, weight, to_bool, expansion=formula
    )
    user = replace(user, function=UnaryFn(draft.name) if arity == 1 else BinaryFn(draft.name))
    return replace(draft, user=user), function


def _formula(declaration: Declaration, signature: _Signature) -> Formula:
    if declaration.kind not in (None, Kind.ELEMENTWISE):
        raise declaration.error("an op with a formula is elementwise; leave out its kind")
    if len(signature.operands) > MOST_OPERANDS:
        raise declaration.error(f"an op with a formula takes at most {MOST_OPERANDS} operands")
    for name, sort in signature.attributes.items():
        if sort not in (*NUMBERS, DType):
            raise declaration.error(
                f"'{name}' is a {sort.__name__}; attributes of an op with a formula are numbers"
                " (Scalar, Count) or a DType"
            )
    numbers = [name if sort in NUMBERS else None for name, sort in signature.attributes.items()]
    try:
        root = parse(str(declaration.formula), signature.operands, numbers)
        return Formula(str(declaration.formula), root)
    except FormulaError as error:
        raise declaration.error(f"in its formula '{declaration.formula}': {error}") from None


def _op(
    declaration: Declaration, signature: _Signature, kind: Kind, rule: guard.TypeRule,
    reference: guard.Reference, flops: Callable[..., float], user: UserDeclaration,
) -> UserOp:  # fmt: skip
    attributes = signature.attributes
    return UserOp(
        declaration.name, kind, len(signature.operands), tuple(attributes.values()),
        tuple(attributes), rule, reference, declaration.flops or flops,
        inspect.getdoc(declaration.type_rule) or "", user,
    )  # fmt: skip


def _is_scalar_function(op: Op, taken: Sequence[Signature], to_bool: bool) -> bool:
    """Whether `unary` or `binary` can lift the op: one element type in, that or bool out."""
    return (
        not op.attributes
        and op.arity in (1, 2)
        and all(len(set(dtypes)) == 1 for dtypes, _ in taken)
        and all(result is (DType.BOOL if to_bool else dtypes[0]) for dtypes, result in taken)
    )
