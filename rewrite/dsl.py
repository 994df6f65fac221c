"""The rule language: a rule is one short function, its docstring is the law.

    @rule
    def compose_transposes(x: Tensor, p: Perm, q: Perm) -> Law:
        \"\"\"transpose(transpose(x, p), q) = transpose(x, p then q)\"\"\"
        return rewrites(transpose(transpose(x, p), q), transpose(x, p[q]))

Parameters are pattern variables. `Tensor` matches any tensor, `Known` one that is computed from
constants alone, `Varying` one that depends on an input (use it in laws of movement: constants are
computed at compile time, moving them about is lost work). `Scalar` matches a 0-d constant: among tensors it stands for that tensor, in an
attribute expression for its value. Any other attribute class matches an attribute of that class.

- `rewrites(left, right, *conditions)` goes one way, `equates(left, right, *conditions)` both ways.
- An attribute on the right may be computed: by methods and fields (`p.inverse`), by operators, by a
  constructor (`Shape(x.type.shape)`), or by any `@attribute_function`. `t.type` is the type of a
  term. A condition is a bool computed likewise; conditions may also be joined by `&` and `|`.
- An attribute on the left may be computed too, when all its variables are bound elsewhere on the
  left: `transpose(transpose(x, p), p.inverse)` matches where the attribute has that value. So
  `equates(a, b)` works as long as each side names every variable somewhere outside computations.
  Where the two directions bind different variables, write `both(rewrites(…), rewrites(…))`.
- Where a computation raises `Refuse`, the rule does not fire for these values.
- `@rule(reassociates=True)` marks a law that holds up to rounding; all others hold bit for bit.

Rules are collected by `RuleSet(rule_a, rule_b)` or, a whole module, `RuleSet.of_module(__name__)`.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

from satura.rewrite.attributes import Attribute, Refuse, Scalar
from satura.rewrite.errors import RuleError
from satura.rewrite.recorder import (
    Apply,
    AttributeVariable,
    Expression,
    Literal,
    MistakeError,
    Recorder,
    Values,
    attribute_function,
    expression_of,
    hint_of,
)  # fmt: skip
from satura.rewrite.terms import (
    Application,
    Known,
    ScalarTerm,
    Tensor,
    Term,
    TypeOf,
    Varying,
    subterms,
    term_variables,
)  # fmt: skip

Sort = type
SORTS: tuple[Sort, ...] = (Tensor, Known, Varying, *typing.get_args(Attribute))


@dataclass(frozen=True)
class Law:
    """What a rule function returns: one or two directions, each (left, right, conditions)."""

    directions: tuple[tuple[Term, Term, tuple[Expression, ...]], ...]


def rewrites(left: Term, right: Term | Scalar, *conditions: bool) -> Law:
    """The law that replaces `left` by `right` where all conditions hold."""
    checked = tuple(_condition(condition) for condition in conditions)
    return Law(((_side(left, "left"), _side(right, "right"), checked),))


def equates(left: Term | Scalar, right: Term | Scalar, *conditions: bool) -> Law:
    """The law that replaces either side by the other where all conditions hold."""
    first, second = _side(left, "left"), _side(right, "right")
    return both(rewrites(first, second, *conditions), rewrites(second, first, *conditions))


def both(forward: Law, backward: Law) -> Law:
    """One law of two directions that bind different variables."""
    return Law(forward.directions + backward.directions)


def _side(value: object, name: str) -> Term:
    if isinstance(value, Term):
        return value
    expression = expression_of(value)
    if hint_of(value) is Scalar:
        return ScalarTerm(expression)
    raise MistakeError(f"the {name} side is no tensor term but {expression}")


def _condition(value: object) -> Expression:
    if isinstance(value, Term):
        raise MistakeError(f"the tensor '{value}' is no condition")
    if not isinstance(value, Recorder):
        raise MistakeError(f"a condition is always {value!r}: it does not depend on any attribute")
    return expression_of(value)


@dataclass(frozen=True)
class Computed:
    """An attribute expression to be evaluated for each match, and the class of its value."""

    expression: Expression
    sort: Sort

    def value(self, values: Values) -> Attribute:
        """Raises Refuse where there is none, TypeError where it is of another class."""
        result = self.expression.evaluate(values)
        if not isinstance(result, self.sort):
            raise TypeError(f"{self.expression} must be a {self.sort.__name__}, not {result!r}")
        return typing.cast(Attribute, result)


@dataclass(frozen=True)
class Direction:
    """One way of reading a law: where `left` matches and all conditions hold, it equals `right`.

    `variables` are those that the left side binds, with their sorts.
    """

    label: str
    left: Application
    right: Term
    conditions: tuple[Expression, ...]
    variables: Mapping[str, Sort]
    place: str

    @cached_property
    def outputs(self) -> tuple[Computed, ...]:
        """What the right side computes, operands first; a `Scalar` becomes a constant."""
        return tuple(dict.fromkeys(_computed(self.right)))

    @cached_property
    def guards(self) -> tuple[Computed, ...]:
        """What the left side's attributes must be equal to, operands first."""
        return tuple(dict.fromkeys(_computed(self.left)))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Variables that `compute` reads: values of attributes and types of tensors."""
        expressions = [computed.expression for computed in (*self.outputs, *self.guards)]
        return tuple(
            dict.fromkeys(
                name
                for expression in (*self.conditions, *expressions)
                for name in expression.variables()
            )
        )

    @property
    def computes(self) -> bool:
        """Whether matches depend on anything but the pattern."""
        return bool(self.conditions or self.outputs or self.guards)

    def compute(
        self, values: Values, found: tuple[object, ...] | None = None
    ) -> tuple[Attribute, ...]:
        """Values of `outputs`; `values` has a TensorType per tensor and a value per attribute.

        `found` are the attributes that stand where `guards` are. Raises Refuse where the rule does
        not fire, RuleError where a computation fails.
        """
        try:
            for condition in self.conditions:
                if not self.holds(condition, values):
                    raise Refuse(f"{condition} is false")
            for guard, actual in zip(self.guards, found or (), strict=found is not None):
                if guard.value(values) != actual:
                    raise Refuse(f"the attribute is {actual}, not {guard.expression}")
            return tuple(output.value(values) for output in self.outputs)
        except (Refuse, RuleError):
            raise
        except Exception as error:
            raise self.failure(error, values) from error

    def holds(self, condition: Expression, values: Values) -> bool:
        """Whether one condition holds. Raises TypeError where it is no bool."""
        result = condition.evaluate(values)
        if not isinstance(result, bool) and type(result).__name__ not in ("bool_", "bool"):
            raise TypeError(f"the condition {condition} is {result!r}, not a bool")
        return bool(result)

    def failure(self, error: Exception, values: Values) -> RuleError:
        """The RuleError for an exception that came out of a computation."""
        shown = ", ".join(f"{name} = {values[name]}" for name in self.inputs if name in values)
        return RuleError(
            f"rule '{self.label}' ({self.place}): {type(error).__name__}: {error} for {shown};"
            " an attribute function must answer or raise Refuse"
        )

    def __str__(self) -> str:
        conditions = f" if {', '.join(map(str, self.conditions))}" if self.conditions else ""
        return f"{self.left} -> {self.right}{conditions}"


def _computed(side: Term) -> Iterator[Computed]:
    for term in subterms(side):
        if isinstance(term, ScalarTerm):
            if not isinstance(term.value, AttributeVariable | Literal):
                yield Computed(term.value, Scalar)
        elif isinstance(term, Application):
            for attribute, sort in zip(term.attributes, term.op.attributes, strict=True):
                if not isinstance(attribute, AttributeVariable | Literal):
                    yield Computed(attribute, sort)


@dataclass(frozen=True)
class Rule:
    """A law with its name, text and place. `exact`: it holds bit for bit."""

    name: str
    law: str
    directions: tuple[Direction, ...]
    variables: Mapping[str, Sort]
    exact: bool
    file: Path
    line: int
    source: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @cached_property
    def digest(self) -> str:
        """Hash of the rule's text and of the functions it computes with; not of its place."""
        texts = [self.name, self.source]
        for direction in self.directions:
            texts.append(str(direction))
            computed = [entry.expression for entry in (*direction.outputs, *direction.guards)]
            for expression in (*direction.conditions, *computed):
                if isinstance(expression, Apply):
                    texts += map(_source, expression.functions())
        return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()

    def __hash__(self) -> int:
        return hash((self.name, self.line))

    def __str__(self) -> str:
        return f"{self.name}: {self.law}"


@overload
def rule(function: Callable[..., Law], /) -> Rule: ...
@overload
def rule(*, reassociates: bool = False) -> Callable[[Callable[..., Law]], Rule]: ...
def rule(
    function: Callable[..., Law] | None = None, /, *, reassociates: bool = False
) -> Rule | Callable[[Callable[..., Law]], Rule]:
    """Declare a rule, see the module's docstring. Raises RuleError where it is not well formed."""

    def declare(function: Callable[..., Law]) -> Rule:
        return _declare(function, exact=not reassociates)

    return declare if function is None else declare(function)


def _declare(function: Callable[..., Law], exact: bool) -> Rule:
    name, code = function.__name__, function.__code__
    file, line = Path(code.co_filename), code.co_firstlineno
    law = inspect.cleandoc(function.__doc__ or "")
    try:
        if name == "<lambda>":
            raise MistakeError("a rule needs a name: write it as a function")
        if not law:
            raise MistakeError("the docstring is missing: state the law there")
        variables = _sorts(function)
        result = function(**{key: _variable(key, sort) for key, sort in variables.items()})
        if not isinstance(result, Law):
            raise MistakeError(f"it must return rewrites(…) or equates(…), not {result!r}")
        place = f"{file}:{line}"
        directions = tuple(
            _direction(name, number, side, variables, place, len(result.directions))
            for number, side in enumerate(result.directions)
        )
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [f.lineno for f in frames if f.filename == str(file) and f.name == name]
        where = f"{file}:{inside[-1] if inside and inside[-1] else line}"
        if isinstance(error, MistakeError):
            raise RuleError(f"rule '{name}' ({where}): {error}") from None
        raise RuleError(f"rule '{name}' ({where}): {type(error).__name__}: {error}") from error
    return Rule(name, law, directions, variables, exact, file, line, _source(function))


def _sorts(function: Callable[..., Law]) -> dict[str, Sort]:
    hints = typing.get_type_hints(function)
    sorts: dict[str, Sort] = {}
    for name in inspect.signature(function).parameters:
        sort = hints.get(name)
        if sort not in SORTS:
            shown = getattr(sort, "__name__", str(sort))
            known = [known.__name__ for known in SORTS]
            close = difflib.get_close_matches(shown, known, 1)
            advice = f"did you mean {close[0]}?" if close else f"sorts are {', '.join(known)}"
            raise MistakeError(f"'{name}: {shown}' is no sort of variable; {advice}")
        assert isinstance(sort, type)
        sorts[name] = sort
    return sorts


def _variable(name: str, sort: Sort) -> object:
    if issubclass(sort, Tensor):
        return sort(name)
    return Recorder(AttributeVariable(name, sort), sort)


def _direction(
    name: str,
    number: int,
    side: tuple[Term, Term, tuple[Expression, ...]],
    variables: Mapping[str, Sort],
    place: str,
    count: int,
) -> Direction:
    left, right, conditions = side
    label = name if count == 1 else f"{name}:{'forward' if number == 0 else 'backward'}"
    if not isinstance(left, Application):
        raise MistakeError(f"the left side '{left}' would match every tensor; it must apply an op")
    bound = dict.fromkeys(_bound(left))
    direction = Direction(
        label, left, right, conditions, {key: variables[key] for key in bound}, place
    )
    used = [*term_variables(left), *term_variables(right), *direction.inputs]
    for free in dict.fromkeys(used):
        if free not in bound:
            close = difflib.get_close_matches(free, list(bound), 1)
            advice = f"; did you mean '{close[0]}'?" if close else ""
            raise MistakeError(
                f"'{free}' is not bound by the left side {left}{advice}"
                if count == 1
                else f"'{free}' is not bound by {left} in direction {number + 1};"
                " write both(rewrites(…), rewrites(…)) or make it one way"
            )
    return direction


def _bound(left: Term) -> Iterator[str]:
    for term in subterms(left):
        if isinstance(term, Tensor):
            yield term.name
        elif isinstance(term, ScalarTerm):
            if isinstance(term.value, AttributeVariable):
                yield term.value.name
        elif isinstance(term, Application):
            for attribute in term.attributes:
                if isinstance(attribute, AttributeVariable):
                    yield attribute.name


def _source(function: object) -> str:
    try:
        return inspect.getsource(typing.cast(typing.Any, inspect.unwrap(function)))  # type: ignore
    except (OSError, TypeError):
        return getattr(function, "__qualname__", str(function))


class RuleSet:
    """Rules in order, each name once. Sets add with `+`."""

    def __init__(self, *rules: Rule) -> None:
        self._rules: dict[str, Rule] = {}
        for entry in rules:
            other = self._rules.setdefault(entry.name, entry)
            if other is not entry:
                raise RuleError(
                    f"two rules are called '{entry.name}': {other.place} and {entry.place};"
                    " rename one"
                )

    @staticmethod
    def of_module(name: str) -> RuleSet:
        """All rules that the module `name` (usually `__name__`) defines so far, in order."""
        found = vars(sys.modules[name]).values()
        return RuleSet(*(value for value in found if isinstance(value, Rule)))

    def __add__(self, other: RuleSet | Rule) -> RuleSet:
        return RuleSet(*self, *((other,) if isinstance(other, Rule) else other))

    def without(self, *names: str) -> RuleSet:
        """The set without the rules of these names. Raises RuleError for an unknown name."""
        for name in names:
            self[name]
        return RuleSet(*(entry for entry in self if entry.name not in names))

    @property
    def exact(self) -> RuleSet:
        """Those rules that hold bit for bit."""
        return RuleSet(*(entry for entry in self if entry.exact))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def __getitem__(self, name: str) -> Rule:
        if name not in self._rules:
            close = difflib.get_close_matches(name, list(self._rules), 1)
            advice = f"; did you mean '{close[0]}'?" if close else ""
            raise RuleError(f"there is no rule '{name}'{advice}")
        return self._rules[name]

    @cached_property
    def digest(self) -> str:
        """Hash of all rules in order; the same in every process."""
        texts = "".join(entry.digest for entry in self)
        return hashlib.blake2b(texts.encode(), digest_size=16).hexdigest()


__all__ = [
    "Computed", "Direction", "Known", "Law", "Rule", "RuleSet", "Tensor", "Term", "TypeOf",
    "Varying",    "attribute_function", "both", "equates", "rewrites", "rule",
]  # fmt: skip
