"""Recorders: stand-ins for attribute values that write down what a rule does with them.

While a rule is being defined, its attribute variables are recorders. `p[q]`, `window.rank + 1`,
`x.type.shape` or a call of an `@attribute_function` on a recorder gives another recorder; what was
done is kept as an `Expression`, which the e-graph and the property tests evaluate on real values.
"""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import ParamSpec, TypeVar, cast

from satura.rewrite.language.annotations import (
    MistakeError,
    article,
    attribute_hint,
    check_call,
    check_value,
    fits,
    hints,
    known,
    result_hint,
    shown,
)
from satura.rewrite.language.literals import check_literal, comparison_advice

P = ParamSpec("P")
R = TypeVar("R")

Values = Mapping[str, object]


class Placeholder:
    """What stands for something in a rule under definition: an attribute or a tensor."""

    __slots__ = ()


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
        if self.function is _tuple:
            return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
        if self.function in _INFIX:
            return f" {_INFIX[self.function]} ".join(map(_in_parentheses, self.arguments))
        if self.function in _PREFIX:
            return _PREFIX[self.function] + _in_parentheses(self.arguments[0])
        name = getattr(self.function, "__name__", str(self.function))
        return f"{name}({', '.join(texts)})"


_INFIX: dict[Callable[..., object], str] = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=", operator.add: "+", operator.sub: "-", operator.mul: "*",
    operator.floordiv: "//", operator.truediv: "/", operator.mod: "%", operator.and_: "&",
    operator.or_: "|", operator.xor: "^",
}  # fmt: skip
_PREFIX: dict[Callable[..., object], str] = {
    operator.not_: "~", operator.invert: "~", operator.neg: "-",
}  # fmt: skip


def _in_parentheses(operand: Expression) -> str:
    infix = isinstance(operand, Apply) and operand.function in _INFIX
    return f"({operand})" if infix else str(operand)


def _tuple(*items: object) -> tuple[object, ...]:
    return items


class Recorder(Placeholder):
    """Records attribute accesses, calls, indexing, comparisons and arithmetic.

    `hint` is the type annotation of the value it stands for, where one is known: with it a
    misspelt attribute, a wrong argument or a comparison that is always false is an error at the
    rule's definition.
    """

    __slots__ = ("_satura_expression", "_satura_hint")

    def __init__(self, expression: Expression, hint: object = None) -> None:
        self._satura_expression = expression
        self._satura_hint = hint

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = attribute_hint(self._satura_hint, name)
        return Recorder(Apply(getattr, (self._satura_expression, Literal(name))), hint)

    def __call__(self, *arguments: object, **keywords: object) -> Recorder:
        hint, name = self._satura_hint, str(self._satura_expression)
        if isinstance(hint, FunctionType):
            _check_call(name, hint, arguments, keywords, method=True)
        elif known(typing.get_origin(hint) or hint):
            raise MistakeError(f"{name} is {article(hint)}, no method: leave the call out")
        return _record(operator.call, (self, *arguments), keywords, result_hint(hint))

    def __getitem__(self, index: object) -> Recorder:
        hint, name = self._satura_hint, str(self._satura_expression)
        if known(hint):
            method = getattr(hint, "__getitem__", None)
            if method is None:
                raise MistakeError(f"{shown(hint)} cannot be indexed")
            if isinstance(method, FunctionType):
                _check_call(f"{name}[…]", method, (index,), {}, method=True)
            result = result_hint(method)
        else:
            parts = typing.get_args(hint)
            element = len(parts) == 2 and parts[1] is Ellipsis and not isinstance(index, slice)
            result = parts[0] if element else None
        return _record(operator.getitem, (self, index), {}, result)

    def __bool__(self) -> bool:
        raise MistakeError(
            "an attribute has no value while the rule is defined: `if`, `and`, `or`, `not` and"
            " chained comparisons cannot be recorded; combine conditions with `&`, `|` and `~`,"
            " give several, or move the decision into an @attribute_function"
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
        _check_comparison(self, other, "==")
        return cast(bool, _record(operator.eq, (self, other), {}, bool))

    def __ne__(self, other: object) -> bool:
        _check_comparison(self, other, "!=")
        return cast(bool, _record(operator.ne, (self, other), {}, bool))

    def __invert__(self) -> Recorder:
        negate = operator.not_ if self._satura_hint is bool else operator.invert
        return _record(negate, (self,), {}, self._satura_hint)


def _check_comparison(mine: Recorder, other: object, sign: str) -> None:
    """Raise MistakeError where two values can never be equal, being of unlike classes."""
    first, second = hint_of(mine), hint_of(other)
    if fits(first, second) or fits(second, first):
        return
    always = "false" if sign == "==" else "true"
    raise MistakeError(
        f"{mine._satura_expression} {sign} {expression_of(other)} is always {always}:"
        f" {article(first)} is no {shown(second)}{comparison_advice(first, other)}"
    )


_NOT_RECORDED = "{} cannot be recorded; do it inside an @attribute_function"


def _install(names: str, hint: object, reflected: bool) -> None:
    """Give Recorder the operators `names` of the module `operator`."""
    for name in names.split():
        function: Callable[..., object] = getattr(operator, name)

        plain = name.rstrip("_")

        def forward(
            self: Recorder,
            *others: object,
            call: Callable[..., object] = function,
            method: str = f"__{plain}__",
        ) -> Recorder:
            _check_operator(self, method)
            return _record(call, (self, *others), {}, hint or _common(call, self, *others))

        def backward(
            self: Recorder, other: object, call: Callable[..., object] = function
        ) -> Recorder:
            return _record(call, (other, self), {}, hint or _common(call, self, other))

        setattr(Recorder, f"__{plain}__", forward)
        if reflected:
            setattr(Recorder, f"__r{plain}__", backward)


_install("lt le gt ge", bool, reflected=False)
_install("neg", None, reflected=False)
_install("add sub mul floordiv truediv mod and_ or_ xor", None, reflected=True)


def _common(function: Callable[..., object], *operands: object) -> object:
    """The hint of an operator's result: conditions combine to a condition."""
    joins = function in (operator.and_, operator.or_, operator.xor)
    return bool if joins and all(hint_of(operand) is bool for operand in operands) else None


def _check_operator(operand: Recorder, method: str) -> None:
    """Raise MistakeError where an attribute's class does not have the operator `method`."""
    hint = operand._satura_hint
    if isinstance(hint, type) and is_dataclass(hint) and not _defines(hint, method):
        named = ", ".join(field.name for field in fields(hint))
        raise MistakeError(
            f"{article(hint)} has no {method}: compute with its fields ({named})"
            " or in an @attribute_function"
        )


def _defines(owner: type, method: str) -> bool:
    return getattr(owner, method, None) is not getattr(object, method, None)


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
    if _is_tensor(value):
        raise MistakeError(
            f"the tensor '{value}' is no attribute: computations see its type, {value}.type"
        )
    if not _holds_recorder(value):
        check_literal(value)
        return Literal(value)
    if isinstance(value, tuple | list):
        return Apply(_tuple, tuple(map(expression_of, value)))
    assert is_dataclass(value) and not isinstance(value, type)
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    expressions = tuple(map(expression_of, parts.values()))
    name = type(value).__name__
    for (field, part), expression in zip(parts.items(), expressions, strict=True):
        annotation = hints(type(value)).get(field)
        check_value(str(expression), hint_of(part), annotation, f"{name} takes", field)
    return Apply(type(value), expressions)


def hint_of(value: object) -> object:
    """The annotation of what `value` stands for, or None where it is not known."""
    return value._satura_hint if isinstance(value, Recorder) else type(value)


def _holds_recorder(value: object) -> bool:
    if hasattr(type(value), "stands_in"):  # an unknown of a proof: looking at it decides something
        return False
    if isinstance(value, Placeholder):
        return True
    if isinstance(value, tuple | list):
        return any(map(_holds_recorder, value))
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds_recorder(getattr(value, field.name, None)) for field in fields(value))
    return False


def _check_call(
    name: str,
    function: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: Mapping[str, object],
    method: bool,
) -> None:
    for value in (*arguments, *keywords.values()):
        if _is_tensor(value):
            raise MistakeError(
                f"{name} takes attributes, not the tensor '{value}'; its type is {value}.type"
            )
    pairs = tuple((str(expression_of(value)), hint_of(value)) for value in arguments)
    named = {key: (str(expression_of(value)), hint_of(value)) for key, value in keywords.items()}
    check_call(name, function, pairs, named, method)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Placeholder) and not isinstance(value, Recorder)


def attribute_function(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` (pure, on attribute values) be called in rules.

    On plain values it runs; on recorders the call is recorded. It may raise `Refuse`.
    """
    hint = result_hint(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if any(map(_holds_recorder, (*arguments, *keywords.values()))):
            _check_call(function.__name__, function, arguments, keywords, method=False)
            return cast(R, _record(function, arguments, keywords, hint))
        return function(*arguments, **keywords)

    return call
