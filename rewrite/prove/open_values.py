"""Stand-ins for dtypes, function names and elements while a rule's own functions run in a proof.

A dtype or a function's name is left open until Python code reads it; then every possible one is
tried. An element's value is never known: code that reads it cannot be run.
"""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import z3

from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import REDUCTIONS
from satura.rewrite.prove.paths import Path, Undecided
from satura.rewrite.prove.stand_in import StandIn
from satura.rewrite.prove.z3_terms import DTYPES, ELEMENT, code, table
from satura.rewrite.types.attributes import BinaryFn, ReduceFn, UnaryFn
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType, TensorType

# Those of satura: what users declare may come and go while proofs run.
NAMES: dict[type, list[str]] = {
    UnaryFn: [name for name, function in UNARY.items() if function.expansion is None],
    BinaryFn: [name for name, function in BINARY.items() if function.expansion is None],
    ReduceFn: list(REDUCTIONS),
}
FAMILIES: dict[type, str] = {UnaryFn: "unary", BinaryFn: "binary"}


Facts = list[z3.BoolRef | None]


@cache
def _dtype_choice(term: z3.ArithRef) -> tuple[str, list[DType], Facts]:
    return f"dtype {term}", DTYPES, [term == code(dtype) for dtype in DTYPES]


@cache
def _name_choice(sort: type, term: z3.ArithRef) -> tuple[str, list[str], Facts]:
    facts: Facts = []
    for number in range(len(NAMES[sort])):
        rows = table(FAMILIES[sort], number) if sort in FAMILIES else ()
        facts.append(z3.And(term == number, *rows))
    return f"function {term}", NAMES[sort], facts


class OpenDType(StandIn):
    """A dtype that no code has read yet; `term` is its number."""

    def __init__(self, path: Path, term: z3.ArithRef) -> None:
        self.path, self.term = path, term

    def choose(self) -> DType:
        """One of the dtypes that it can be; the path tries all of them."""
        return self.path.choose(*_dtype_choice(self.term))

    def equals(self, other: object) -> bool:
        assert isinstance(other, OpenDType | DType)
        same = self.term == dtype_term(other)
        if self.term.eq(dtype_term(other)):
            return True
        return self.path.decide(f"{same}", same, z3.Not(same))


def dtype_term(value: object) -> z3.ArithRef:
    """The number of a dtype."""
    if isinstance(value, OpenDType):
        return value.term
    if value in DTYPES:
        return code(value)
    raise Undecided(f"{value!r} is not a dtype that ops compute with")


class OpenType(StandIn, TensorType):
    """A tensor type whose dims are sizes and whose dtype is open."""

    open_dtype: OpenDType

    def __init__(self, shape: tuple[Dim, ...], open_dtype: OpenDType) -> None:
        vars(self).update(shape=shape, open_dtype=open_dtype)

    @property
    def dtype(self) -> DType:
        return self.open_dtype.choose()

    def with_shape(self, shape: tuple[Dim, ...]) -> TensorType:
        return OpenType(shape, self.open_dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorType):
            return False
        theirs = other.open_dtype if isinstance(other, OpenType) else other.dtype
        return self.shape == other.shape and self.open_dtype.equals(theirs)

    def __hash__(self) -> int:
        self.open_dtype.path.refuse("it hashes an unknown type")


class _OpenName(StandIn):
    """A function's name that no code has read yet; `term` is its number."""

    path: Path
    sort: type
    term: z3.ArithRef

    def __init__(self, path: Path, sort: type, term: z3.ArithRef) -> None:
        vars(self).update(path=path, sort=sort, term=term)

    @property
    def name(self) -> str:
        return self.path.choose(*_name_choice(self.sort, self.term))

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, self.sort):
            return self is other
        return bool(self.name == getattr(other, "name", None))

    def __hash__(self) -> int:
        self.path.refuse("it hashes an unknown function")


class OpenUnary(_OpenName, UnaryFn):
    """An unknown function of one argument."""


class OpenBinary(_OpenName, BinaryFn):
    """An unknown function of two arguments."""


class OpenReduce(_OpenName, ReduceFn):
    """An unknown reduction."""


OPEN_NAMES: dict[type, type[_OpenName]] = {
    UnaryFn: OpenUnary,
    BinaryFn: OpenBinary,
    ReduceFn: OpenReduce,
}


def is_open_name(value: object) -> bool:
    """Whether `value` is a function whose name is open."""
    return isinstance(value, _OpenName)


def function_term(value: object) -> z3.ArithRef:
    """The number of a function in its family."""
    if isinstance(value, _OpenName):
        return value.term
    for sort, names in NAMES.items():
        if isinstance(value, sort):
            name = getattr(value, "name", "")
            if name in names:
                return z3.IntVal(names.index(name))
    raise Undecided(f"{value!r} is not a function that the prover knows")


class OpenScalar(StandIn, Scalar):
    """A scalar of which only equality is known; `element` is its value."""

    path: Path
    element: z3.ExprRef
    open_dtype: OpenDType

    def __init__(self, path: Path, element: z3.ExprRef, open_dtype: OpenDType) -> None:
        vars(self).update(path=path, element=element, open_dtype=open_dtype)

    @property
    def dtype(self) -> DType:
        return self.open_dtype.choose()

    def __getattr__(self, name: str) -> NoReturn:
        if name == "bits":
            self.path.refuse("it computes element values")
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, OpenScalar):
            self.path.refuse("it compares element values")
        mine, theirs = scalar_parts(self), scalar_parts(other)
        same = z3.And(mine[0] == theirs[0], mine[1] == theirs[1])
        return self.path.decide(str(same), same, z3.Not(same))

    def __hash__(self) -> int:
        self.path.refuse("it hashes an unknown element")


def scalar_parts(value: Scalar) -> tuple[z3.ExprRef, z3.ArithRef]:
    """The element and the dtype's number of a scalar."""
    if isinstance(value, OpenScalar):
        return value.element, value.open_dtype.term
    dtype = dtype_term(value.dtype)
    return z3.Const(f"element {value.dtype.value} {value.bits.hex()}", ELEMENT), dtype


class OpenConstant(StandIn, Constant):
    """A constant of which only the type is known."""

    __slots__ = ("open_type",)

    def __init__(self, type_: OpenType) -> None:
        self.open_type = type_

    @property
    def type(self) -> TensorType:
        return self.open_type

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("array", "digest"):
            self._path.refuse("it computes element values")
        raise AttributeError(name)

    @property
    def _path(self) -> Path:
        return self.open_type.open_dtype.path

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        self._path.refuse("it compares constants")

    def __hash__(self) -> int:
        self._path.refuse("it hashes an unknown constant")
