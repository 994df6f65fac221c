"""Rules as data: what the DSL makes and what the e-graph, the checker and the documents read."""

from __future__ import annotations

import hashlib
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from satura.rewrite.errors import ExpressionError, RuleError, brief
from satura.rewrite.language.answers import attribute_value, undeclared
from satura.rewrite.language.called import failed_function
from satura.rewrite.language.expressions import (
    Apply,
    AttributeVariable,
    Expression,
    Literal,
    Values,
    is_of_expression,
)
from satura.rewrite.language.mistakes import suggestion
from satura.rewrite.language.modules import imported_module
from satura.rewrite.language.terms import Application, ScalarTerm, Term, subterms
from satura.rewrite.ops.registry import Op
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import SymbolicDim
from satura.rewrite.types.plain import KindError

Sort = type
Entry = TypeVar("Entry", "Rule", "Family")

_SHOWN = 4  # names of rules in the text of a set


@dataclass(frozen=True)
class Law:
    """What a rule function returns: one or two directions, each (left, right, conditions).

    `lines` are the lines of the rule's file that state them; `hides` as for a direction.
    """

    directions: tuple[tuple[Term, Term, tuple[Expression, ...]], ...]
    lines: tuple[int, ...] = ()
    hides: bool = False


@dataclass(frozen=True)
class Computed:
    """An attribute expression to be evaluated for each match, and the class of its value.

    `is_element`: a scalar that is a tensor of the term, not an attribute of an op.
    """

    expression: Expression
    sort: Sort
    is_element: bool = False

    def value(self, values: Values) -> Attribute:
        """The value, made plain. Raises Refuse where there is none, TypeError for another class."""
        return attribute_value(self.expression, self.sort, values)


class _Unmet(Refuse):
    """A law does not hold for what was matched; the reason is written where somebody reads it."""

    def __str__(self) -> str:
        text, *shown = self.args
        return str(text).format(*shown)


@dataclass(frozen=True)
class Direction:
    """One way of reading a law: where `left` matches and all conditions hold, it equals `right`.

    `variables` are those that the left side binds, with their sorts. `varies`: the left side has to
    depend on an input or a symbolic size. `hides`: what the left side matched is not used again.
    """

    label: str
    left: Application
    right: Term
    conditions: tuple[Expression, ...]
    variables: Mapping[str, Sort]
    place: str
    varies: bool = False
    hides: bool = False

    @cached_property
    def outputs(self) -> tuple[Computed, ...]:
        """What the right side computes, operands first."""
        return tuple(dict.fromkeys(_computations(self.right, self.left)))

    @cached_property
    def guards(self) -> tuple[Computed, ...]:
        """What the left side's attributes must be equal to, operands first."""
        return tuple(dict.fromkeys(_computations(self.left, self.left)))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Variables that `compute` reads: values of attributes and types of tensors."""
        names = (name for expression in self.expressions for name in expression.variables())
        return tuple(dict.fromkeys(names))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What `compute` evaluates: the conditions, then what either side computes."""
        computed = (entry.expression for entry in (*self.outputs, *self.guards))
        return (*self.conditions, *computed)

    def functions(self) -> Iterator[Callable[..., object]]:
        """Every function that `compute` calls."""
        for expression in self.expressions:
            if isinstance(expression, Apply):
                yield from expression.functions()

    @cached_property
    def ops(self) -> frozenset[str]:
        """Names of the ops on both sides; a scalar is a constant."""
        terms = (*subterms(self.left), *subterms(self.right))
        names = {term.op.name for term in terms if isinstance(term, Application)}
        scalars = any(isinstance(term, ScalarTerm) for term in terms)
        return frozenset({*names, "constant"} if scalars else names)

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
                    raise _Unmet("{} is false", condition)
            for guard, actual in zip(self.guards, found or (), strict=found is not None):
                if guard.value(values) != actual:
                    raise _Unmet("the attribute is {}, not {}", actual, guard.expression)
            return tuple(output.value(values) for output in self.outputs)
        except (Refuse, RuleError):
            raise
        except (Exception, SystemExit) as error:
            raise self.failure(error, values) from error

    def holds(self, condition: Expression, values: Values) -> bool:
        """Whether one condition holds. Raises TypeError where it is not a bool."""
        result = condition.evaluate(values)
        if not isinstance(result, bool) and type(result).__name__ not in ("bool_", "bool"):
            raise KindError(
                undeclared(condition, result)
                or f"the condition {condition} is {brief(result)}, not a bool"
            )
        return bool(result)

    def failure(self, error: BaseException, values: Values) -> RuleError:
        """The RuleError for an exception that came out of a computation."""
        shown = ", ".join(f"{name} = {values[name]}" for name in self.inputs if name in values)
        raised = str(error) if isinstance(error, KindError) else f"{type(error).__name__}: {error}"
        function = failed_function(error)
        where = f", raised in {function}," if function else ""
        text = f"rule '{self.label}' ({self.place}): {raised}{where} for {shown};"
        if isinstance(error, KindError):
            return RuleError(f"{text} where there is no answer, raise Refuse")
        if isinstance(error, TypeError | AttributeError) and is_of_expression(error):
            return ExpressionError(f"{text} an attribute has no such operator or field")
        if isinstance(error, TypeError) and f"'{SymbolicDim.__name__}'" in str(error):
            return RuleError(f"{text} of a size that is open, ask known_at_least(size, bound)")
        if not function:
            return RuleError(f"{text} let a condition before it leave such operands out")
        return RuleError(f"{text} an attribute function must answer or raise Refuse")

    def __str__(self) -> str:
        conditions = f" if {', '.join(map(str, self.conditions))}" if self.conditions else ""
        return f"{self.left} -> {self.right}{conditions}"


def _computations(side: Term, left: Term) -> Iterator[Computed]:
    """What `side` computes where `left` has matched; scalars that `left` binds are not computed."""
    matched = frozenset(subterms(left))
    for term in subterms(side):
        if isinstance(term, ScalarTerm):
            is_there = isinstance(term.value, AttributeVariable) and term in matched
            if not is_there and not isinstance(term.value, Literal):
                yield Computed(term.value, Scalar, is_element=True)
        elif isinstance(term, Application):
            for attribute, sort in zip(term.attributes, term.op.attributes, strict=True):
                if not isinstance(attribute, AttributeVariable | Literal):
                    yield Computed(attribute, sort)


@dataclass(frozen=True, repr=False)
class Rule:
    """A law with its name, text and place. `exact`: it holds bit for bit.

    `family` is the name of the law above many ops that it is a reading of, if so.
    """

    name: str
    law: str
    directions: tuple[Direction, ...]
    variables: Mapping[str, Sort]
    exact: bool
    file: Path
    line: int
    source: str
    family: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @cached_property
    def digest(self) -> str:
        """Hash of the rule's text and of the functions it computes with; not of its place."""
        texts = [self.name, self.source]
        for direction in self.directions:
            texts.append(str(direction))
            texts += map(source_of, direction.functions())
        return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()

    def __hash__(self) -> int:
        return hash((self.name, self.line))

    def __repr__(self) -> str:
        return f"<rule '{self.name}' ({self.place}): {self.law}>"

    def __str__(self) -> str:
        return f"{self.name}: {self.law}"


@dataclass(frozen=True, repr=False)
class Family:
    """A law above many ops: `about` gives the rules for each op that it `has`.

    `rules` are those about the ops of satura.
    """

    name: str
    law: str
    exact: bool
    file: Path
    line: int
    has: Callable[[Op], bool]
    about: Callable[[Op], tuple[Rule, ...]]
    rules: tuple[Rule, ...]

    def __repr__(self) -> str:
        return f"<family '{self.name}' ({self.place}) of {len(self.rules)} rules: {self.law}>"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.name}: {self.law}"


def source_of(function: object) -> str:
    """Source text of a function or class, or its name and code where there is none."""
    try:
        # Any callable may stand in a rule; what has no source raises TypeError.
        return inspect.getsource(typing.cast(typing.Any, inspect.unwrap(function)))  # type: ignore
    except (OSError, TypeError):
        name: str = getattr(function, "__qualname__", str(function))
        code = getattr(function, "__code__", None)
        return name if code is None else f"{name} {code.co_code.hex()} {code.co_names}"


def _advice_for(entry: object) -> str:
    """What to give a RuleSet instead of `entry`."""
    if isinstance(entry, RuleSet):
        return "; add sets with +"
    if isinstance(entry, list | tuple | set):
        return "; give them one by one, as in RuleSet(*rules)"
    return "; is @rule missing above it?" if callable(entry) else ""


class RuleSet:
    """Rules in order, each name once. Sets add with `+`.

    A family stands for its rules about the ops of satura; `for_ops` adds those about users' ops.
    """

    def __init__(self, *rules: Rule | Family) -> None:
        self._rules: dict[str, Rule] = {}
        self._families: dict[str, Family] = {}
        for entry in rules:
            if isinstance(entry, Family):
                self._add(entry, self._families)
            elif not isinstance(entry, Rule):
                raise RuleError(f"a RuleSet takes rules, not {brief(entry)}{_advice_for(entry)}")
            for each in entry.rules if isinstance(entry, Family) else (entry,):
                self._add(each, self._rules)

    def _add(self, entry: Entry, to: dict[str, Entry]) -> None:
        other = to.setdefault(entry.name, entry)
        if other is not entry:
            raise RuleError(
                f"two rules are called '{entry.name}': {other.place} and {entry.place}; "
                + (
                    "a file loaded twice is to be imported once, rules made in a loop are to be"
                    " given names (`function.__name__ = …` before `rule(function)`)"
                    if other.place == entry.place
                    else f"rename one, or leave one out: .without('{entry.name}')"
                )
            )

    @staticmethod
    def of_module(name: str) -> RuleSet:
        """All rules that the module `name` (usually `__name__`) defines so far, in order."""
        found = vars(imported_module(name)).values()
        return RuleSet(*(value for value in found if isinstance(value, Rule | Family)))

    def for_ops(self, ops: Iterable[Op]) -> RuleSet:
        """The set, with the rules of its families for those of `ops` that users declared."""
        result = self._subset(lambda entry: True)
        for op in dict.fromkeys(ops):
            for family in self._families.values() if op.user else ():
                for entry in family.about(op) if family.has(op) else ():
                    result._rules.setdefault(entry.name, entry)
        return result

    def __add__(self, other: RuleSet | Rule | Family) -> RuleSet:
        added = other if isinstance(other, RuleSet) else RuleSet(other)
        result = RuleSet(*self, *added)
        for family in (*self._families.values(), *added._families.values()):
            result._add(family, result._families)
        return result

    def __radd__(self, other: Rule | Family) -> RuleSet:
        return RuleSet(other) + self

    def without(self, *names: str) -> RuleSet:
        """The set without the rules and families of these names.

        Raises RuleError for an unknown name.
        """
        for name in names:
            if name not in self._families:
                self[name]
        return self._subset(
            lambda entry: (
                entry.name not in names and not (isinstance(entry, Rule) and entry.family in names)
            )
        )

    @property
    def laws(self) -> tuple[Rule | Family, ...]:
        """The rules in order, those of a family as the family."""
        entries = (self._families.get(rule.family, rule) for rule in self)
        return tuple(dict.fromkeys(entries))

    @property
    def exact(self) -> RuleSet:
        """Those rules that hold bit for bit."""
        return self._subset(lambda entry: entry.exact)

    def _subset(self, keeps: Callable[[Rule | Family], bool]) -> RuleSet:
        """The rules and families that `keeps` is true of."""
        result = RuleSet(*filter(keeps, self))
        result._families = {f.name: f for f in self._families.values() if keeps(f)}
        return result

    def __repr__(self) -> str:
        names = [*self._rules]
        shown = names if len(names) <= _SHOWN else [*names[: _SHOWN - 1], "…", names[-1]]
        counted = f"{len(names)} rule{'s' * (len(names) != 1)}"
        return f"<RuleSet of {counted}{': ' * bool(names)}{', '.join(shown)}>"

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def __getitem__(self, name: str) -> Rule:
        if name not in self._rules:
            like = suggestion(name, self._rules) or "; `satura rules` lists those of the rule book"
            raise RuleError(f"there is no rule '{name}'{like}")
        return self._rules[name]

    @cached_property
    def digest(self) -> str:
        """Hash of all rules in order; the same in every process."""
        texts = "".join(entry.digest for entry in self)
        return hashlib.blake2b(texts.encode(), digest_size=16).hexdigest()
