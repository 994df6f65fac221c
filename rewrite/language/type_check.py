"""Which element types and ranks the sides of a law can have at all, whatever their variables are.

Each variable starts with every dtype and every rank; each op it stands under takes away those that
the op never takes. Where nothing is left the law can never hold, which is found at its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from satura.rewrite.language.expressions import AttributeVariable, Literal
from satura.rewrite.language.mistakes import MistakeError
from satura.rewrite.language.terms import Application, ScalarTerm, Tensor, Term
from satura.rewrite.ops.elementwise import BINARY, BOOL, INTEGERS, UNARY
from satura.rewrite.types.attributes import (
    BinaryFn,
    Constant,
    Padding,
    Perm,
    Scalar,
    Shape,
    Slices,
    UnaryFn,
)  # fmt: skip
from satura.rewrite.types.tensor_type import DType

ANY_DTYPE = frozenset(DType)
ANY_RANK = frozenset(range(9))
_SCALAR = frozenset({0})

T = TypeVar("T", DType, int)

# Ops whose tensor operands and result all have one dtype, and those that also have one rank.
_MOVES = ("transpose", "slice", "broadcast", "reduce", "pool")
_ALIKE = ("concat", "matmul", "conv")


@dataclass
class PossibleTypes:
    """What is left for each variable, by its name."""

    dtypes: dict[str, frozenset[DType]] = field(default_factory=dict)
    ranks: dict[str, frozenset[int]] = field(default_factory=dict)

    def dtype(self, term: Term, allowed: frozenset[DType]) -> frozenset[DType]:
        """The dtypes among `allowed` that `term` can have; takes the others from its variables."""
        if isinstance(term, ScalarTerm) and isinstance(term.value, Literal):
            value = term.value.value
            return allowed & {value.dtype} if isinstance(value, Scalar) else allowed
        if not isinstance(term, Application):
            return _narrowed(self.dtypes, term, ANY_DTYPE, allowed)
        name, operands = term.op.name, term.operands
        function = _literal(term)
        if name == "unary" and isinstance(function, UnaryFn):
            row = UNARY[function.name]
            return self._mapped(term, allowed, row.dtypes, row.to_bool)
        if name == "binary" and isinstance(function, BinaryFn):
            row = BINARY[function.name]
            return self._mapped(term, allowed, row.dtypes, row.to_bool)
        if name == "cast":
            self.dtype(operands[0], ANY_DTYPE)
            return allowed & {function} if isinstance(function, DType) else allowed
        if name == "select":
            self.dtype(operands[0], BOOL)
            return self._same(operands[1:], allowed, self.dtype)
        if name == "gather":
            self.dtype(operands[1], INTEGERS)
            return self.dtype(operands[0], allowed)
        if name == "arg_reduce":
            return allowed & {DType.I64}
        if name in (*_MOVES, *_ALIKE, "reshape", "pad"):
            return self._same(operands, allowed, self.dtype)
        for operand in operands:
            self.dtype(operand, ANY_DTYPE)
        return allowed

    def _mapped(
        self,
        term: Application,
        allowed: frozenset[DType],
        taken: frozenset[DType],
        to_bool: bool,
    ) -> frozenset[DType]:
        """An elementwise op that takes some dtypes, and gives the same or bool."""
        operands = taken if to_bool else taken & allowed
        found = self._same(term.operands, operands, self.dtype)
        return (allowed & BOOL if found else frozenset()) if to_bool else found

    def rank(self, term: Term, allowed: frozenset[int]) -> frozenset[int]:
        """The ranks among `allowed` that `term` can have; takes the others from its variables."""
        if isinstance(term, ScalarTerm):
            return allowed & _SCALAR
        if not isinstance(term, Application):
            return _narrowed(self.ranks, term, ANY_RANK, allowed)
        name, operands = term.op.name, term.operands
        given = _rank_of_literal(_literal(term))
        fixed = allowed if given is None else allowed & {given}
        if name == "pad":
            self.rank(operands[1], _SCALAR)
            return self.rank(operands[0], fixed)
        if name in (*_MOVES, *_ALIKE, "unary", "binary", "select", "cast", "arg_reduce"):
            return self._same(operands, fixed, self.rank)
        for operand in operands:
            self.rank(operand, ANY_RANK)
        return fixed if name in ("reshape", "constant", "iota") else allowed

    def of(
        self, term: Term, dtypes: frozenset[DType], ranks: frozenset[int]
    ) -> tuple[frozenset[DType], frozenset[int]]:
        """The dtypes and ranks of `term` among these."""
        for _ in range(2):  # what one part excludes holds for parts that were looked at before
            dtypes, ranks = self.dtype(term, dtypes), self.rank(term, ranks)
        return dtypes, ranks

    def fault(self, dtypes: frozenset[DType], ranks: frozenset[int]) -> str | None:
        """What nothing is left for, given what is left for the whole term."""
        for name, left in (*self.dtypes.items(), *self.ranks.items()):
            if not left:
                what = "element type" if left is self.dtypes.get(name) else "rank"
                return f"no {what} of '{name}' suits all ops that it stands in"
        if not dtypes:
            return "no element type suits all its ops"
        return None if ranks else "no rank suits all its ops"

    def _same(
        self,
        operands: tuple[Term, ...],
        allowed: frozenset[T],
        narrow: Callable[[Term, frozenset[T]], frozenset[T]],
    ) -> frozenset[T]:
        """What all operands can be at once."""
        for operand in (*operands, *operands):  # a later one may exclude what earlier ones allow
            allowed = narrow(operand, allowed)
        return allowed


def _narrowed(
    known: dict[str, frozenset[T]], term: Term, everything: frozenset[T], allowed: frozenset[T]
) -> frozenset[T]:
    """What is left for a variable, of which only `allowed` is; a computed scalar is anything."""
    if isinstance(term, Tensor):
        name = term.name
    elif isinstance(term, ScalarTerm) and isinstance(term.value, AttributeVariable):
        name = term.value.name
    else:
        return allowed
    known[name] = known.get(name, everything) & allowed
    return known[name]


def _literal(term: Application) -> object:
    """The first attribute of an application, where it is a literal."""
    first = term.attributes[0] if term.attributes else None
    return first.value if isinstance(first, Literal) else None


def _rank_of_literal(value: object) -> int | None:
    """The rank of the tensors that an attribute belongs to."""
    if isinstance(value, Perm):
        return len(value.order)
    if isinstance(value, Shape):
        return len(value.dims)
    if isinstance(value, Padding):
        return len(value.lo)
    if isinstance(value, Slices):
        return len(value.sizes)
    return value.array.ndim if isinstance(value, Constant) else None


def check_types(left: Term, right: Term) -> None:
    """Raise MistakeError where the left side has no type, or the right side never its type."""
    possible = PossibleTypes()
    dtypes, ranks = possible.of(left, ANY_DTYPE, ANY_RANK)
    if fault := possible.fault(dtypes, ranks):
        raise MistakeError(f"the left side {left} can never match: {fault}")
    found = possible.of(right, dtypes, ranks)
    if fault := possible.fault(*found):
        kind = ", ".join(sorted(dtype.value for dtype in dtypes))
        shown = f" ({kind})" if len(dtypes) <= 4 and not found[0] else ""
        raise MistakeError(
            f"the right side {right} can never have the type of the left side{shown}: {fault}"
        )
