"""The element types and ranks that the sides of a law can have at all.

Each variable starts with every dtype and every rank; each op it stands under takes away those that
the op never takes. A law for which nothing is left can never hold: its definition is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from satura.rewrite.language.expressions import AttributeVariable, Literal
from satura.rewrite.language.mistakes import MistakeError
from satura.rewrite.language.terms import Application, Approximate, ScalarTerm, Tensor, Term
from satura.rewrite.ops.elementwise import BINARY, BOOL, INTEGERS, UNARY
from satura.rewrite.types.attributes import BinaryFn, Padding, Perm, Shape, Slices, UnaryFn
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import COMPUTED, FLOATS, DType

ANY_DTYPE = frozenset(DType)
_COMPUTED = frozenset(COMPUTED)  # others are stored, moved and cast alone
ANY_RANK = frozenset(range(9))
_SCALAR = frozenset({0})
_ROWS = frozenset({2})

T = TypeVar("T", DType, int)

# Ops whose tensor operands and result all have one dtype, and those that also have one rank.
_MOVES = ("transpose", "slice", "broadcast", "reduce", "pool")
_ALIKE = ("concat", "matmul", "conv", "winograd", "attention")
_COMPUTING = ("reduce", "pool", "matmul", "conv", "winograd", "attention")


@dataclass
class PossibleTypes:
    """The dtypes and ranks that are left for each variable, by its name."""

    dtypes: dict[str, frozenset[DType]] = field(default_factory=dict)
    ranks: dict[str, frozenset[int]] = field(default_factory=dict)

    def dtype(self, term: Term, allowed: frozenset[DType]) -> frozenset[DType]:
        """The dtypes among `allowed` that `term` can have; takes the others from its variables."""
        if isinstance(term, ScalarTerm) and isinstance(term.value, Literal):
            value = term.value.value
            return allowed & {value.dtype} if isinstance(value, Scalar) else allowed
        if not isinstance(term, Application):
            some = FLOATS if isinstance(term, Approximate) else ANY_DTYPE
            return _narrow(self.dtypes, term, some, allowed)
        name, operands = term.op.name, term.operands
        function = _literal(term)
        if isinstance(function, UnaryFn | BinaryFn):
            row = (UNARY if isinstance(function, UnaryFn) else BINARY)[function.name]
            return self._elementwise_dtypes(term, allowed, row.dtypes, row.to_bool)
        if name in ("unary", "binary"):  # of a function that is not known: as its operands, or bool
            found = self._common(operands, _COMPUTED, self.dtype)
            return allowed & (found | BOOL) if found else found
        if name == "cast":
            self.dtype(operands[0], ANY_DTYPE)
            return allowed & {function} if isinstance(function, DType) else allowed
        if name == "select":
            self.dtype(operands[0], BOOL)
            return self._common(operands[1:], allowed, self.dtype)
        if name == "gather":
            self.dtype(operands[1], INTEGERS)
            return self.dtype(operands[0], allowed)
        if name in ("arg_reduce", "first_places"):
            return allowed & {DType.I64}
        if name in _COMPUTING:
            allowed &= _COMPUTED
        if name in (*_MOVES, *_ALIKE, "reshape", "pad"):
            return self._common(operands, allowed, self.dtype)
        for operand in operands:
            self.dtype(operand, ANY_DTYPE)
        return allowed & _COMPUTED

    def _elementwise_dtypes(
        self,
        term: Application,
        allowed: frozenset[DType],
        taken: frozenset[DType],
        to_bool: bool,
    ) -> frozenset[DType]:
        """The dtypes of an elementwise op that takes those of `taken` and gives them or bool."""
        operands = taken if to_bool else taken & allowed
        found = self._common(term.operands, operands, self.dtype)
        return (allowed & BOOL if found else frozenset()) if to_bool else found

    def rank(self, term: Term, allowed: frozenset[int]) -> frozenset[int]:
        """The ranks among `allowed` that `term` can have; takes the others from its variables."""
        if isinstance(term, ScalarTerm):
            return allowed & _SCALAR
        if not isinstance(term, Application):
            return _narrow(self.ranks, term, ANY_RANK, allowed)
        name, operands = term.op.name, term.operands
        given = _rank_of_literal(_literal(term))
        fixed = allowed if given is None else allowed & {given}
        if name == "pad":
            self.rank(operands[1], _SCALAR)
            return self.rank(operands[0], fixed)
        if name in (*_MOVES, *_ALIKE, "unary", "binary", "select", "cast", "arg_reduce"):
            return self._common(operands, fixed, self.rank)
        if name == "first_places":
            return self._common(operands, fixed & _ROWS, self.rank)
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
        """Why no type is left, where these are left for the whole term; None where one is."""
        for name, left in (*self.dtypes.items(), *self.ranks.items()):
            if not left:
                what = "element type" if left is self.dtypes.get(name) else "rank"
                return f"no {what} of '{name}' suits all ops that it stands in"
        if not dtypes:
            return "no element type suits all its ops"
        return None if ranks else "no rank suits all its ops"

    def _common(
        self,
        operands: tuple[Term, ...],
        allowed: frozenset[T],
        narrow: Callable[[Term, frozenset[T]], frozenset[T]],
    ) -> frozenset[T]:
        """The dtypes or ranks that all operands can have at once."""
        for operand in (*operands, *operands):  # a later one may exclude what earlier ones allow
            allowed = narrow(operand, allowed)
        return allowed


def _narrow(
    known: dict[str, frozenset[T]], term: Term, everything: frozenset[T], allowed: frozenset[T]
) -> frozenset[T]:
    """Allow a variable only `allowed`. Returns what is left; a computed scalar may be anything."""
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
    return value.type.rank if isinstance(value, Constant) else None


def check_types(left: Term, right: Term) -> None:
    """Raise MistakeError where no type suits the left side, or none of these the right side."""
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
