"""One match of a left side in a proof: its open variables, and what a rule computes from them.

The rank of every tensor and shape is given. Permutations and axes are tried one by one; whatever
else a variable holds (sizes, amounts, steps, a function, a dtype) stays open.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import cast

import z3

from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, AttributeVariable, Expression, Literal
from satura.rewrite.language.terms import Application, ScalarTerm, Tensor, Term, TypeOf
from satura.rewrite.prove.function_answers import answer
from satura.rewrite.prove.meaning import meaning
from satura.rewrite.prove.open_values import (
    OPEN_NAMES,
    OpenConstant,
    OpenDType,
    OpenScalar,
    OpenType,
    scalar_parts,
)
from satura.rewrite.prove.paths import Dead, Fact, Path, Undecided
from satura.rewrite.prove.size import dim_of
from satura.rewrite.prove.stand_in import unknown
from satura.rewrite.prove.tensors import Elements, Index
from satura.rewrite.prove.z3_terms import (
    ELEMENT,
    FIXED,
    INT,
    at_least,
    equal,
    formula,
    generic,
    is_static,
)
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    Count,
    Groups,
    Padding,
    Perm,
    Shape,
    Slices,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, SymbolicDim
from satura.rewrite.types.tensor_type import COMPUTED, DType


class FailedError(BaseException):
    """The right side cannot be well typed; the message says why."""


@dataclass
class _Judge:
    """What judges do with a demand that does not hold, and with a lemma, unless they say so."""

    path: Path

    def fail(self, reason: str) -> None:
        raise Dead

    def hint(self, lemma: Callable[[], object]) -> None:
        pass


@dataclass
class Assumed(_Judge):
    """The judge of left sides: they are well typed, so that each demand is a fact."""

    facts: list[Fact] = field(default_factory=list)  # on actual sizes
    hints: list[Callable[[], object]] = field(default_factory=list)

    def always(self, fact: Fact, reason: str) -> None:
        self.path.assume(fact)

    def same(self, left: Dim, right: Dim, reason: str) -> None:
        self.path.assume(equal(left, right))
        self.path.zeros.append(left - right)

    def natural(self, dim: Dim, reason: str) -> None:
        self.path.assume(at_least(dim, 0, generic))
        if isinstance(dim, SymbolicDim) and len(dim.symbols) == 1 and dim == unknown(*dim.symbols):
            self.path.natural |= dim.symbols
        self.at_run_time(at_least(dim, 0), [dim], reason)

    def at_run_time(self, fact: Fact, dims: Sequence[Dim], reason: str) -> None:
        self.path.assume(z3.Implies(is_static(*dims), fact))
        self.facts.append(fact)

    def hint(self, lemma: Callable[[], object]) -> None:
        self.hints.append(lemma)


class Asked(_Judge):
    """The judge of terms whose type a rule reads: it does not fire where one is ill typed."""

    def always(self, fact: Fact, reason: str) -> None:
        if not self.path.decide(str(fact), fact, z3.BoolVal(True)):
            raise Dead

    def same(self, left: Dim, right: Dim, reason: str) -> None:
        if not dim_of(self.path, left) == dim_of(self.path, right):
            raise Dead

    def natural(self, dim: Dim, reason: str) -> None:
        self.at_run_time(at_least(dim, 0), [dim], reason)

    def at_run_time(self, fact: Fact, dims: Sequence[Dim], reason: str) -> None:
        self.path.assume(z3.Implies(is_static(*dims), fact))


@dataclass
class Required(_Judge):
    """The judge of right sides: each demand is a goal, for they have to be well typed."""

    goals: list[tuple[Fact | Dim, str]] = field(default_factory=list)

    def always(self, fact: Fact, reason: str) -> None:
        self.goals.append((fact, reason))

    def same(self, left: Dim, right: Dim, reason: str) -> None:
        self.goals.append((left - right, reason))

    def natural(self, dim: Dim, reason: str) -> None:
        self.goals.append((at_least(dim, 0), reason))

    def at_run_time(self, fact: Fact, dims: Sequence[Dim], reason: str) -> None:
        self.goals.append((fact, reason))

    def fail(self, reason: str) -> None:
        raise FailedError(reason)


class Match:
    """A match of `direction`, for given ranks, on one path."""

    def __init__(self, path: Path, direction: Direction, ranks: Mapping[str, int]) -> None:
        self.path, self.direction, self.ranks = path, direction, ranks
        self.values: dict[str, object] = {}
        self.tensors: dict[str, Elements] = {}
        self.known: dict[Term, Elements] = {}
        self.assumed = Assumed(path)

    def bind_left(self) -> Elements:
        """Bind every variable to a stand-in. Returns the left side."""
        return self._bind(self.direction.left)

    def _bind(self, term: Term) -> Elements:
        if isinstance(term, Tensor):
            return self._tensor(term.name)
        if isinstance(term, ScalarTerm):
            value = self._attribute(term.value, Scalar, ())
            return constant_of(cast(Scalar, value))
        assert isinstance(term, Application)
        operands = [self._bind(operand) for operand in term.operands]
        attributes = [
            self._attribute(expression, sort, operands, term.op.name)
            for expression, sort in zip(term.attributes, term.op.attributes, strict=True)
        ]
        if term.op.name == "constant":
            result = self._tensor_of(term.attributes[0])
        else:
            result = meaning(self.assumed, term.op, operands, attributes)
        self.known[term] = result
        return result

    def _tensor(self, name: str) -> Elements:
        if name not in self.tensors:
            shape = self._dims(name, self.ranks[name])
            dtype = OpenDType(self.path, z3.Int(f"dtype of {name}"))
            sorts = [INT] * len(shape)
            function = z3.Function(name, *sorts, ELEMENT)
            self.tensors[name] = Elements(
                shape, dtype.term, lambda index: function(*map(formula, index))
            )
            self.values[name] = self._type(self.tensors[name])
            self.path.assume(dtype.term >= 0, dtype.term < len(COMPUTED))
        return self.tensors[name]

    def _dims(self, name: str, rank: int, least: int | None = 0, static: bool = False) -> Index:
        """`rank` unknown numbers, none below `least` (at run time)."""
        dims = tuple(unknown(f"{FIXED * static}{name}.{axis}") for axis in range(rank))
        for dim in dims:
            if not static:
                self.path.assume(z3.Implies(is_static(dim), formula(dim) == generic(dim)))
            if least is not None and static:
                self.path.assume(at_least(dim, least))
            elif least is not None:
                self.assumed.natural(dim, "")
        return dims

    def _sizes(self, name: str, rank: int) -> tuple[Dim, ...]:
        return tuple(dim_of(self.path, dim) for dim in self._dims(name, rank, None))

    def _numbers(self, name: str, rank: int, least: int | None = None) -> tuple[int, ...]:
        """Sizes that are never symbolic."""
        dims = self._dims(name, rank, least, static=True)
        return tuple(cast(int, dim_of(self.path, dim)) for dim in dims)

    def _type(self, tensor: Elements) -> OpenType:
        shape = tuple(dim_of(self.path, dim) for dim in tensor.shape)
        return OpenType(shape, OpenDType(self.path, tensor.dtype))

    def _attribute(
        self, expression: Expression, sort: type, operands: Sequence[Elements], op: str = ""
    ) -> object:
        if not isinstance(expression, AttributeVariable):
            if all(name in self.values for name in expression.variables()):
                return self.evaluate(expression)
            raise Undecided("its left side computes with what is bound later")
        if expression.name not in self.values:
            rank = operands[0].rank if operands else 0
            self.values[expression.name] = self._fresh_value(expression.name, sort, rank, op)
        return self.values[expression.name]

    def _fresh_value(self, name: str, sort: type, rank: int, op: str) -> object:
        path = self.path
        if sort is Perm:
            orders = list(permutations(range(rank)))
            return Perm(path.choose(name, orders))
        if sort is Axis:
            if not rank:
                raise Dead
            return Axis(path.choose(name, list(range(rank))))
        if sort is Axes:
            subsets = [s for size in range(rank + 1) for s in combinations(range(rank), size)]
            return Axes(path.choose(name, subsets))
        if sort is Shape:
            return Shape(self._sizes(name, self.ranks[name] if op == "reshape" else rank))
        if sort is Padding:
            return Padding(self._sizes(f"{name}.lo", rank), self._sizes(f"{name}.hi", rank))
        if sort is Slices:
            return Slices(
                self._sizes(f"{name}.start", rank),
                self._sizes(f"{name}.size", rank),
                self._numbers(f"{name}.step", rank),
            )
        if sort is Window:
            return self._window(name, rank - 2 if op == "conv" else rank)
        if sort in (Groups, Count):
            (number,) = self._numbers(name, 1, 1 if sort is Groups else 0)
            return Groups(number) if sort is Groups else Count(number)
        if sort is DType:
            term = z3.Int(f"dtype {name}")
            path.assume(term >= 0, term < len(COMPUTED))
            return OpenDType(path, term)
        if sort is Scalar:
            return self._scalar(name)
        if sort is Constant:
            return OpenConstant(self._type(self._tensor(name)))
        if sort in OPEN_NAMES:
            term = z3.Int(f"function {name}")
            return OPEN_NAMES[sort](path, sort, term)
        raise Undecided(f"{sort.__name__} is not a sort that the prover knows")

    def _scalar(self, name: str) -> OpenScalar:
        term = z3.Int(f"dtype of {name}")
        self.path.assume(term >= 0, term < len(COMPUTED))
        return OpenScalar(self.path, z3.Const(name, ELEMENT), OpenDType(self.path, term))

    def _window(self, name: str, rank: int) -> Window:
        if rank < 0:
            raise Dead
        sizes, strides, dilations, lo, hi = (
            self._numbers(f"{name}.{part}", rank, least)
            for part, least in (("size", 1), ("stride", 1), ("dilation", 1), ("lo", 0), ("hi", 0))
        )
        return Window(sizes, strides, dilations, lo, hi, self._scalar(f"{name}.fill"))

    # What the rule computes

    def require_conditions(self) -> None:
        """Evaluate the conditions. Raises Dead where one is false."""
        for condition in self.direction.conditions:
            holds = self.evaluate(condition)
            if not isinstance(holds, bool):
                raise Undecided(f"the condition {condition} is not a bool")
            if not holds:
                raise Dead

    def evaluate(self, expression: Expression) -> object:
        """The value of an attribute expression. Raises Dead where the rule refuses."""
        if isinstance(expression, AttributeVariable):
            return self.values[expression.name]
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, TypeOf):
            return self._type(self._meaning_of_term(expression.term))
        assert isinstance(expression, Apply)
        arguments = [self.evaluate(argument) for argument in expression.arguments]
        keywords = {name: self.evaluate(value) for name, value in expression.keywords}
        function = expression.function
        first = arguments[0] if arguments else None
        if function is getattr and type(first) is OpenType and arguments[1] == "dtype":
            return first.open_dtype
        if function in (operator.eq, operator.ne):
            same = _same_dtypes(arguments)
            if same is not None:
                return same is (function is operator.eq)

        def run() -> object:
            named = {name: _for_python(value) for name, value in keywords.items()}
            return function(*map(_for_python, arguments), **named)

        return answer(self.path, str(expression), run)

    def _meaning_of_term(self, term: Term) -> Elements:
        """The meaning of a term that the rule takes the type of."""
        if isinstance(term, Tensor):
            return self.tensors[term.name]
        if isinstance(term, ScalarTerm):
            return constant_of(cast(Scalar, self.evaluate(term.value)))
        assert isinstance(term, Application)
        if term not in self.known:
            operands = [self._meaning_of_term(operand) for operand in term.operands]
            attributes = [self.evaluate(value) for value in term.attributes]
            self.known[term] = meaning(Asked(self.path), term.op, operands, attributes)
        return self.known[term]

    def build_right(self, required: Required) -> Elements:
        """Build the right side, whose demands go to `required`."""
        return self._build(self.direction.right, required)

    def _build(self, term: Term, required: Required) -> Elements:
        if isinstance(term, Tensor):
            return self.tensors[term.name]
        if isinstance(term, ScalarTerm):
            return constant_of(cast(Scalar, self.evaluate(term.value)))
        assert isinstance(term, Application)
        operands = [self._build(operand, required) for operand in term.operands]
        attributes = [self.evaluate(value) for value in term.attributes]
        for value, sort in zip(attributes, term.op.attributes, strict=True):
            if not isinstance(value, sort) and not (sort is DType and isinstance(value, OpenDType)):
                raise Undecided(f"{value!r} is not a {sort.__name__}")
        if term.op.name == "constant":
            return self._tensor_of(term.attributes[0])
        return meaning(required, term.op, operands, attributes)

    def _tensor_of(self, expression: Expression) -> Elements:
        if isinstance(expression, AttributeVariable):
            return self.tensors[expression.name]
        raise Undecided("it computes element values")


def constant_of(value: Scalar) -> Elements:
    """The 0-d constant of this value."""
    if not isinstance(value, Scalar):
        raise Undecided(f"{value!r} is not a Scalar")
    element, dtype = scalar_parts(value)
    return Elements((), dtype, lambda index: element)


def _same_dtypes(arguments: Sequence[object]) -> bool | None:
    """Whether two dtypes are the same; None where neither is open."""
    for mine, theirs in (arguments, arguments[::-1]):
        if type(mine) is OpenDType and type(theirs) in (OpenDType, DType):
            return mine.equals(theirs)
    return None


def _for_python(value: object) -> object:
    """`value` for Python code: open dtypes are chosen, sizes stay (isinstance would ask them)."""
    if type(value) is OpenDType:
        return value.choose()
    if type(value) is tuple:
        return tuple(map(_for_python, value))
    return value
