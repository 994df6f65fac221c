"""Sizes that remember where they come from.

A `Size` stands where code expects an int. Arithmetic on it gives a Size again, whose expression is
a dim in normal form; a comparison gives the answer for the sizes at hand, and its `Trace` notes it
as a fact. Code that needs the number itself (as a position, a text or a key) gets it, and the fact
that is noted says that the size has this very number. So code that ran once on Sizes would do the
same, number for number, on all sizes for which these facts hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from operator import add, floordiv, index, mod, mul, sub
from typing import ParamSpec, cast

from satura.backend.sizes.bounds import Bounds
from satura.rewrite.types.at_sizes import probe
from satura.rewrite.types.dims import Dim, Monomial, SymbolicDim, TracedSize, symbol, symbols_of

Parameters = ParamSpec("Parameters")
MARK = "\N{WHITE SQUARE}"  # stands in texts that Sizes are part of


Terms = tuple[tuple[Monomial, int], ...]

LARGE = 2**20

DEFERRED: dict[str, Callable[..., int]] = {}
"""What `defer` has made a part of expressions, by module and name."""


class Relation(Enum):
    """What a fact compares with 0."""

    ZERO = "=="
    NEGATIVE = "<"


@dataclass(frozen=True)
class Fact:
    """Whether `dim` is in `relation` to 0."""

    dim: SymbolicDim
    relation: Relation
    holds: bool

    def __str__(self) -> str:
        """For people: what depends on sizes on the left, a number on the right."""
        terms = self.dim.terms
        number = sum(factor for monomial, factor in terms if not monomial)
        left, right = self.dim - number, -number
        signs = ("==", "!=") if self.relation is Relation.ZERO else ("<", ">=")
        return f"{left} {signs[not self.holds]} {right}"


def is_equal(dim: Dim, other: Dim) -> Fact:
    """The fact that two extents, which are not the same at all sizes, are equal."""
    difference = dim - other
    assert isinstance(difference, SymbolicDim)
    return Fact(difference, Relation.ZERO, True)


@dataclass(frozen=True)
class Call:
    """A function of numbers that is not computed while tracing: an atom of expressions."""

    function: Callable[..., int]
    arguments: tuple[Dim, ...]


class Trace:
    """Facts and calls, in the order in which they were met, of code that runs on `sizes`."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.facts: dict[tuple[Relation, Terms], Fact] = {}
        self.calls: dict[str, Call] = {}
        self._asked: set[tuple[Relation, Terms]] = set()
        self._bounds = Bounds(self.calls)
        self._known: dict[tuple[str, Terms | int, Terms | int], Dim] = {}

    @property
    def symbols(self) -> dict[str, int]:
        """A Size for each symbol, in the place of its number."""
        return {name: self._size(symbol(name), value) for name, value in self.sizes.items()}

    def arithmetic(self, operator: str, left: Dim, right: Dim, value: int) -> int:
        """`left` and `right` by `operator`; `value` is what that is for the sizes at hand."""
        key = (operator, _key(left), _key(right))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _ARITHMETIC[operator](left, right)
        return self._size(found, value)

    def decide(self, relation: Relation, dim: Dim, holds: bool) -> bool:
        """`holds`, which says whether `dim` is in `relation` to 0, noted where it could differ."""
        if not isinstance(dim, SymbolicDim):
            return holds
        is_zero = relation is Relation.ZERO
        if (relation, dim.terms) in self._asked or self._bounds.decide(is_zero, dim):
            return holds
        self._asked.add((relation, dim.terms))
        reduced, turns = self._bounds.reduced(is_zero, dim)
        if isinstance(reduced, SymbolicDim) and not self._bounds.decide(is_zero, reduced):
            found = Fact(reduced, relation, holds is not turns)
            if self.facts.setdefault((relation, reduced.terms), found) is found:
                self._bounds.learn(is_zero, reduced, found.holds)
        return holds

    def call(self, function: Callable[..., int], arguments: tuple[int, ...]) -> int:
        """What `function` gives for numbers of which some are Sizes."""
        dims = tuple(expression_of(argument) for argument in arguments)
        name = f"{function.__name__.lstrip('_')}({', '.join(map(str, dims))})"
        call = Call(function, dims)
        while name in self.sizes or self.calls.get(name, call) != call:
            name += ")"  # a model's symbol may have any name
        self.calls[name] = call
        return self._size(symbol(name), function(*map(number_of, arguments)))

    def _size(self, dim: Dim, value: int) -> int:
        if isinstance(dim, int):
            return dim
        return cast(int, Size(self, dim, value))


def _key(dim: Dim) -> Terms | int:
    """What finds a dim of plain numbers sooner than the dim itself, whose hash leaves them out."""
    return dim if isinstance(dim, int) else dim.terms


_ARITHMETIC: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a - (a // b) * b,
}


# The ignores below: to `isinstance` a Size is an int, to `type` it is not, and mypy takes the two
# for one.
def expression_of(number: int) -> Dim:
    """The expression of a Size; a number is its own."""
    return number.dim if type(number) is Size else index(number)  # type: ignore[comparison-overlap]


def number_of(number: int) -> int:
    """What a Size is for the sizes at hand, without a fact: for what decides nothing."""
    return number.value if type(number) is Size else index(number)  # type: ignore[comparison-overlap]


def is_fixed(number: int) -> bool:
    """Whether it is the same number for all sizes."""
    return type(number) is not Size  # type: ignore[comparison-overlap]


def where_large(number: int) -> int:
    """What it is where all sizes are large: for an order that is as good for others."""
    dim = expression_of(number)
    return probe(dim, dict.fromkeys(symbols_of([dim]), LARGE), LARGE)


def defer(function: Callable[Parameters, int]) -> Callable[Parameters, int]:
    """`function` of numbers, which for Sizes becomes a part of the result's expression.

    It notes no facts, whatever it decides: good for what is a number in the end. That number must
    be at least 1.
    """

    DEFERRED[f"{function.__module__} {function.__name__}"] = function

    @wraps(function)
    def deferring(*args: Parameters.args, **more: Parameters.kwargs) -> int:
        for argument in args:
            if type(argument) is Size:
                return argument.trace.call(function, cast(tuple[int, ...], args))
        return function(*args, **more)

    return deferring


@defer
def _one_above_all(*numbers: int) -> int:
    return max(numbers) + 1


@defer
def _one_above_least(*numbers: int) -> int:
    return min(numbers) + 1


def largest(*numbers: int) -> int:
    """The largest of some numbers that is at least 0; which one it is makes no class of sizes."""
    return _one_above_all(*numbers) - 1


def smallest(*numbers: int) -> int:
    """The smallest of some numbers of at least 0; which one it is makes no class of sizes."""
    return _one_above_least(*numbers) - 1


class UntraceableError(Exception):
    """Code made a text of a Size that it had not read with `int`, so that no fact tells of it."""


def refuse_traced(text: str) -> None:
    """Raise UntraceableError for a text that would not serve other sizes."""
    if MARK in text:
        raise UntraceableError(text)


class Size(TracedSize):
    """A number that depends on sizes: `dim`, which is `value` for the sizes at hand.

    `isinstance(size, int)` holds, but it is not a subclass: what reads an int's digits without
    asking (`range`, NumPy, a list's position) must ask for them here.
    """

    __slots__ = ("dim", "trace", "value")

    def __init__(self, trace: Trace, dim: SymbolicDim, value: int) -> None:
        self.trace, self.dim, self.value = trace, dim, value

    # What is an int for the code that is traced says so here; mypy knows no other use of a class.
    @property  # type: ignore[misc]
    def __class__(self) -> type[int]:  # type: ignore[override]
        return int

    def _read(self) -> int:
        """The number itself, from now on a fact."""
        self.trace.decide(Relation.ZERO, self.dim - self.value, True)
        return self.value

    __index__ = __int__ = _read

    def __hash__(self) -> int:
        return hash(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __str__(self) -> str:
        """For messages and for an order of terms; `refuse_traced` keeps it from all other texts."""
        return f"{MARK}{self.dim}{MARK}"

    __repr__ = __str__

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __getattr__(self, name: str) -> object:
        return getattr(self._read(), name)

    def _with(self, operator: str, other: object, is_right: bool = False) -> int:
        """Arithmetic with a Size or a number; what it is not made for is left to `other`."""
        if isinstance(other, float):
            pair = (other, self._read()) if is_right else (self._read(), other)
            return _NUMBERS[operator](*pair)
        if not isinstance(other, int):
            return cast(int, NotImplemented)
        dim, value = expression_of(other), number_of(other)
        mine: tuple[Dim, int] = (self.dim, self.value)
        (left, a), (right, b) = ((dim, value), mine) if is_right else (mine, (dim, value))
        if operator in ("//", "%"):
            self.trace.decide(Relation.ZERO, right, b == 0)
        return self.trace.arithmetic(operator, left, right, _NUMBERS[operator](a, b))

    def __add__(self, other: object) -> int:
        return self._with("+", other)

    def __radd__(self, other: object) -> int:
        return self._with("+", other, True)

    def __sub__(self, other: object) -> int:
        return self._with("-", other)

    def __rsub__(self, other: object) -> int:
        return self._with("-", other, True)

    def __mul__(self, other: object) -> int:
        return self._with("*", other)

    def __rmul__(self, other: object) -> int:
        return self._with("*", other, True)

    def __floordiv__(self, other: object) -> int:
        return self._with("//", other)

    def __rfloordiv__(self, other: object) -> int:
        return self._with("//", other, True)

    def __mod__(self, other: object) -> int:
        return self._with("%", other)

    def __rmod__(self, other: object) -> int:
        return self._with("%", other, True)

    def __neg__(self) -> int:
        return self._with("-", 0, True)

    def __pos__(self) -> int:
        return cast(int, self)

    def __abs__(self) -> int:
        return -self if self < 0 else +self

    def __bool__(self) -> bool:
        return not self.trace.decide(Relation.ZERO, self.dim, self.value == 0)

    def _minus(self, other: object) -> tuple[Dim, float] | None:
        """This less a Size or a number, as an expression and a number; None for anything else."""
        if isinstance(other, float):
            return 0, self._read() - other
        if not isinstance(other, int):
            return None
        return self.dim - expression_of(other), self.value - number_of(other)

    def __eq__(self, other: object) -> bool:
        found = self._minus(other)
        if found is None:
            return NotImplemented
        return self.trace.decide(Relation.ZERO, found[0], found[1] == 0)

    def __lt__(self, other: object) -> bool:
        found = self._minus(other)
        if found is None:
            return NotImplemented
        return self.trace.decide(Relation.NEGATIVE, found[0], found[1] < 0)

    def __gt__(self, other: object) -> bool:
        found = self._minus(other)
        if found is None:
            return NotImplemented
        return self.trace.decide(Relation.NEGATIVE, -found[0], found[1] > 0)

    def __le__(self, other: object) -> bool:
        above = self.__gt__(other)
        return above if above is NotImplemented else not above

    def __ge__(self, other: object) -> bool:
        below = self.__lt__(other)
        return below if below is NotImplemented else not below


_NUMBERS: Mapping[str, Callable[..., int]] = {
    "+": add, "-": sub, "*": mul, "//": floordiv, "%": mod,
}  # fmt: skip


def _reading(name: str) -> Callable[..., object]:
    """An operator of ints that has no expression: of the number itself."""

    def operate(size: Size, *others: object) -> object:
        return getattr(index(size), name)(*others)

    return operate


for _name in (
    "truediv", "rtruediv", "pow", "rpow", "divmod", "rdivmod", "lshift", "rlshift", "rshift",
    "rrshift", "and", "rand", "or", "ror", "xor", "rxor", "invert", "round", "trunc", "floor",
    "ceil",
):  # fmt: skip
    setattr(Size, f"__{_name}__", _reading(f"__{_name}__"))
