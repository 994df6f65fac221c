"""Recorders: stand-ins for attribute values that write down what a rule does with them.

While a rule is being defined, its attribute variables are recorders. `p[q]`, `window.rank + 1`,
`x.type.shape` or a call of an `@attribute_function` on a recorder gives another recorder; what was
done is kept as an `Expression`, which the e-graph and the property tests evaluate on real values.
"""

from __future__ import annotations

import difflib
import functools
import operator
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

Values = Mapping[str, object]


class MistakeError(Exception):
    """What is wrong in a rule; `rule` adds the rule's name, file and line."""


class Expression:
    """A recorded computation on attributes."""

    def evaluate(self, values: Values) -> object:
        """The value, where every variable has its value from `values`."""
        raise NotImplementedError

    def variables(self) -> Iterator[str]:
        """Names of the variables it reads, in the order of reading, with repetitions."""
        raise NotImplementedError


@dataclass(frozen=True)
class AttributeVariable(Expression):
    """An attribute that the left side of a law binds."""

    name: str
    sort: type

    def evaluate(self, values: Values) -> object:
        return values[self.name]

    def variables(self) -> Iterator[str]:
        yield self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A value that stands in the rule's text; `0`, `False` and `0.0` differ."""

    value: object

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return False
        return self._key == other._key and self.value == other.value

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)

    def evaluate(self, values: Values) -> object:
        return self.value

    def variables(self) -> Iterator[str]:
        return iter(())

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Apply(Expression):
    """`function(*arguments, **keywords)`."""

    function: Callable[..., object]
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()

    def evaluate(self, values: Values) -> object:
        return self.function(
            *(argument.evaluate(values) for argument in self.arguments),
            **{name: argument.evaluate(values) for name, argument in self.keywords},
        )

    def variables(self) -> Iterator[str]:
        for argument in self.arguments:
            yield from argument.variables()
        for _, argument in self.keywords:
            yield from argument.variables()

    def functions(self) -> Iterator[Callable[..., object]]:
        """Every function that evaluation calls."""
        yield self.function
        for argument in (*self.arguments, *(value for _, value in self.keywords)):
            if isinstance(argument, Apply):
                yield from argument.functions()

    def __str__(self) -> str:
        texts = [str(argument) for argument in self.arguments]
        if self.function is getattr:
            return f"{texts[0]}.{texts[1]}"
        if self.function is operator.getitem:
            return f"{texts[0]}[{texts[1]}]"
        texts += [f"{name}={argument}" for name, argument in self.keywords]
        if self.function is operator.call:
            return f"{texts[0]}({', '.join(texts[1:])})"
        name = getattr(self.function, "__name__", str(self.function))
        return f"{_SYMBOLS.get(name, name)}({', '.join(texts)})"


_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _tuple(*items: object) -> tuple[object, ...]:
    return items


class Recorder:
    """Records attribute accesses, calls, indexing, comparisons and arithmetic.

    `hint` is the type annotation of the value it stands for, where one is known: with it a
    misspelt attribute is an error at the rule's definition.
    """

    __slots__ = ("_satura_expression", "_satura_hint")

    def __init__(self, expression: Expression, hint: object = None) -> None:
        self._satura_expression = expression
        self._satura_hint = hint

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = _attribute_hint(self._satura_hint, name)
        return Recorder(Apply(getattr, (self._satura_expression, Literal(name))), hint)

    def __call__(self, *arguments: object, **keywords: object) -> Recorder:
        return _record(operator.call, (self, *arguments), keywords, _result(self._satura_hint))

    def __getitem__(self, index: object) -> Recorder:
        hint = self._satura_hint
        if isinstance(hint, type):
            if not hasattr(hint, "__getitem__"):
                raise MistakeError(f"{hint.__name__} cannot be indexed")
            result = _result(hint.__getitem__)
        else:
            parts = typing.get_args(hint)
            element = len(parts) == 2 and parts[1] is Ellipsis and not isinstance(index, slice)
            result = parts[0] if element else None
        return _record(operator.getitem, (self, index), {}, result)

    def __bool__(self) -> bool:
        raise MistakeError(
            "an attribute has no value while the rule is defined: `if`, `and`, `or`, `not` and"
            " chained comparisons cannot be recorded; combine conditions with `&` and `|`, give"
            " several, or move the decision into an @attribute_function"
        )

    def __iter__(self) -> Iterator[object]:
        raise MistakeError(_NOT_RECORDED.format("iterating over or unpacking an attribute"))

    def __len__(self) -> int:
        raise MistakeError(_NOT_RECORDED.format("len() of an attribute"))

    def __contains__(self, item: object) -> bool:
        raise MistakeError(_NOT_RECORDED.format("`in`"))

    def __index__(self) -> int:
        raise MistakeError(_NOT_RECORDED.format("using an attribute as a plain number"))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<recorded {self._satura_expression}>"

    def __eq__(self, other: object) -> bool:
        return cast(bool, _record(operator.eq, (self, other), {}, bool))

    def __ne__(self, other: object) -> bool:
        return cast(bool, _record(operator.ne, (self, other), {}, bool))


_NOT_RECORDED = "{} cannot be recorded; do it inside an @attribute_function"


def _install(names: str, hint: object, reflected: bool) -> None:
    """Give Recorder the operators `names` of the module `operator`."""
    for name in names.split():
        function: Callable[..., object] = getattr(operator, name)

        def forward(
            self: Recorder, *others: object, call: Callable[..., object] = function
        ) -> Recorder:
            return _record(call, (self, *others), {}, hint)

        def backward(
            self: Recorder, other: object, call: Callable[..., object] = function
        ) -> Recorder:
            return _record(call, (other, self), {}, hint)

        plain = name.rstrip("_")
        setattr(Recorder, f"__{plain}__", forward)
        if reflected:
            setattr(Recorder, f"__r{plain}__", backward)


_install("lt le gt ge", bool, reflected=False)
_install("neg invert", None, reflected=False)
_install("add sub mul floordiv truediv mod and_ or_ xor", None, reflected=True)


def _record(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: Mapping[str, object],
    hint: object,
) -> Recorder:
    named = tuple((name, expression_of(value)) for name, value in keywords.items())
    return Recorder(Apply(function, tuple(map(expression_of, arguments)), named), hint)


def expression_of(value: object) -> Expression:
    """What `value` records; a plain value is a literal, also where it holds recorders inside."""
    if isinstance(value, Recorder):
        return value._satura_expression
    if not _holds_recorder(value):
        return Literal(value)
    if isinstance(value, tuple | list):
        return Apply(_tuple, tuple(map(expression_of, value)))
    assert is_dataclass(value) and not isinstance(value, type)
    parts = tuple(expression_of(getattr(value, field.name)) for field in fields(value))
    return Apply(type(value), parts)


def hint_of(value: object) -> object:
    """The annotation of what `value` stands for, or None where it is not known."""
    return value._satura_hint if isinstance(value, Recorder) else type(value)


def _holds_recorder(value: object) -> bool:
    if isinstance(value, Recorder):
        return True
    if isinstance(value, tuple | list):
        return any(map(_holds_recorder, value))
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds_recorder(getattr(value, field.name, None)) for field in fields(value))
    return False


@functools.cache
def _hints(owner: object) -> Mapping[str, object]:
    try:
        return typing.get_type_hints(owner)
    except (NameError, TypeError):
        return {}


def _result(function: object) -> object:
    return _hints(function).get("return") if isinstance(function, FunctionType) else None


def _attribute_hint(owner: object, name: str) -> object:
    """The annotation of `owner.name`; a method stands for itself."""
    if not isinstance(owner, type):
        return None
    if hasattr(owner, name):
        member = getattr(owner, name)
        if isinstance(member, property):
            return _result(member.fget)
        if isinstance(member, functools.cached_property):
            return _result(member.func)
        if isinstance(member, FunctionType):
            return member
    elif name not in _hints(owner):
        known = [known for known in {**_hints(owner), **vars(owner)} if not known.startswith("_")]
        close = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(sorted(known))}"
        raise MistakeError(f"{owner.__name__} has no attribute '{name}'; {advice}")
    return _hints(owner).get(name)


def attribute_function(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` (pure, on attribute values) be called in rules.

    On plain values it runs; on recorders the call is recorded. It may raise `Refuse`.
    """
    hint = _result(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if any(map(_holds_recorder, (*arguments, *keywords.values()))):
            return cast(R, _record(function, arguments, keywords, hint))
        return function(*arguments, **keywords)

    return call
