"""Recorders: stand-ins for attribute values that write down what a rule does with them.

While a rule is being defined, its attribute variables are recorders. `p[q]`, `window.rank + 1`,
`x.type.shape` or a call of an `@attribute_function` on a recorder gives another recorder; what was
done is kept as an `Expression`, which the e-graph and the property tests evaluate on real values.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from traceback import walk_tb
from types import FunctionType
from typing import NoReturn, ParamSpec, TypeVar, cast

from satura.rewrite.language.annotations import (
    Class,
    class_of_field,
    has_members_of_its_own,
    method_of,
    returned_class,
    shows_its_members,
)
from satura.rewrite.language.mistakes import MistakeError, NoValueError, suggestion

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

    @property
    def answers(self) -> Class:
        """The class of its values, as far as annotations tell; None where they do not."""
        return None


@dataclass(frozen=True)
class AttributeVariable(Expression):
    """An attribute that the left side of a law binds."""

    name: str
    sort: type

    def evaluate(self, values: Values) -> object:
        return values[self.name]

    def variables(self) -> Iterator[str]:
        yield self.name

    @property
    def answers(self) -> Class:
        return self.sort

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

    @property
    def answers(self) -> Class:
        return type(self.value)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Apply(Expression):
    """`function(*arguments, **keywords)`."""

    function: Callable[..., object]
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()

    def evaluate(self, values: Values) -> object:
        arguments = [argument.evaluate(values) for argument in self.arguments]
        if not self.keywords:
            return self.function(*arguments)
        keywords = {name: argument.evaluate(values) for name, argument in self.keywords}
        return self.function(*arguments, **keywords)

    def variables(self) -> Iterator[str]:
        for argument in self.all_arguments:
            yield from argument.variables()

    def functions(self) -> Iterator[Callable[..., object]]:
        """Every function that evaluation calls."""
        yield self.function
        for argument in self.all_arguments:
            if isinstance(argument, Apply):
                yield from argument.functions()

    @property
    def all_arguments(self) -> tuple[Expression, ...]:
        """Those by position and those by name."""
        return (*self.arguments, *(argument for _, argument in self.keywords))

    @property
    def is_of_author(self) -> bool:
        """Whether it calls a function by its name, and no operator, method or class."""
        return isinstance(self.function, FunctionType) and self.function is not _tuple

    @functools.cached_property
    def called(self) -> Callable[..., object] | None:
        """The function that it calls, which may be a method; None for operators and fields."""
        first = self.arguments[0] if self.arguments else None
        if self.function is operator.call:
            if isinstance(first, Apply) and first.function is getattr:
                return method_of(*first._owner_and_name)
            return None
        if self.function is operator.getitem and first is not None:
            return method_of(first.answers, "__getitem__")
        is_class = isinstance(self.function, type)
        return self.function if is_class or self.is_of_author else None

    @functools.cached_property
    def answers(self) -> Class:
        if self.function is getattr:
            return class_of_field(*self._owner_and_name)
        if self.function is _tuple:
            return tuple
        if self.function is operator.not_:
            return bool
        if self.function in _INFIX:
            return self._class_of_comparison
        return returned_class(self.called) if self.called is not None else None

    @property
    def _owner_and_name(self) -> tuple[Class, str]:
        """Of an access to a field: the class that has it, and its name."""
        return self.arguments[0].answers, str(self.arguments[1])

    @property
    def _class_of_comparison(self) -> Class:
        """bool for comparisons of what is no array, and for bools that are combined."""
        found = [argument.answers for argument in self.arguments]
        if self.function in _COMBINING:
            return bool if all(each is bool for each in found) else None
        are_plain = all(each and not has_members_of_its_own(each) for each in found)
        return bool if self.function in _COMPARING and are_plain else None

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


def is_of_expression(error: BaseException) -> bool:
    """Whether an operator or a field of an expression raised it, and no function below."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_code is Apply.evaluate.__code__


_INFIX: dict[Callable[..., object], str] = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=", operator.add: "+", operator.sub: "-", operator.mul: "*",
    operator.floordiv: "//", operator.truediv: "/", operator.mod: "%", operator.and_: "&",
    operator.or_: "|", operator.xor: "^",
}  # fmt: skip
_COMPARING = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_COMBINING = (operator.and_, operator.or_, operator.xor)
_PREFIX: dict[Callable[..., object], str] = {
    operator.not_: "~", operator.invert: "~", operator.neg: "-",
}  # fmt: skip


def _in_parentheses(operand: Expression) -> str:
    infix = isinstance(operand, Apply) and operand.function in _INFIX
    return f"({operand})" if infix else str(operand)


def _tuple(*items: object) -> tuple[object, ...]:
    return items


class Recorder(Placeholder):
    """Records attribute accesses, calls, indexing, comparisons and arithmetic."""

    __slots__ = ("_satura_expression",)

    def __init__(self, expression: Expression) -> None:
        self._satura_expression = expression

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__"):
            raise AttributeError(name)
        owner = self._satura_expression.answers
        if owner is not None and shows_its_members(owner):
            _check_attribute(owner, name)
        return _record(getattr, self, name)

    def __call__(self, /, *arguments: object, **keywords: object) -> Recorder:
        return _record(operator.call, self, *arguments, **keywords)

    def __getitem__(self, index: object) -> Recorder:
        return _record(operator.getitem, self, index)

    def __bool__(self) -> bool:
        raise NoValueError(
            "an attribute has no value while the rule is defined: `if`, `and`, `or`, `not`, chained"
            " comparisons and `==` of two attributes that are made here cannot be recorded; combine"
            " conditions with `&`, `|` and `~`, give several, compare fields as in"
            " `s.dims == x.type.shape`, or move the decision into an @attribute_function"
        )

    def _refuse(self, *arguments: object) -> NoReturn:
        raise NoValueError(
            "iterating over an attribute, unpacking it, len(), `in` and using it as a plain number"
            " cannot be recorded; do it inside an @attribute_function"
        )

    __iter__ = __len__ = __contains__ = __index__ = _refuse

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<recorded {self._satura_expression}>"

    def __eq__(self, other: object) -> bool:
        return cast(bool, _record(operator.eq, self, other))

    def __ne__(self, other: object) -> bool:
        return cast(bool, _record(operator.ne, self, other))

    def __invert__(self) -> Recorder:
        return _record(operator.not_, self)


def _check_attribute(sort: type, name: str) -> None:
    """Raise MistakeError where attributes of class `sort` have no attribute `name`."""
    names = [*dir(sort), *getattr(sort, "__dataclass_fields__", ())]
    if name not in names and inspect.getattr_static(sort, name, None) is None:
        raise MistakeError(f"{sort.__name__} has no attribute '{name}'{suggestion(name, names)}")


def _install(names: str, reflected: bool) -> None:
    """Give Recorder the operators `names` of the module `operator`."""
    for name in names.split():
        function: Callable[..., object] = getattr(operator, name)

        def forward(
            self: Recorder, *others: object, call: Callable[..., object] = function
        ) -> Recorder:
            return _record(call, self, *others)

        def backward(
            self: Recorder, other: object, call: Callable[..., object] = function
        ) -> Recorder:
            return _record(call, other, self)

        plain = name.rstrip("_")
        setattr(Recorder, f"__{plain}__", forward)
        if reflected:
            setattr(Recorder, f"__r{plain}__", backward)


_install("lt le gt ge neg", reflected=False)
_install("add sub mul floordiv truediv mod and_ or_ xor", reflected=True)


def _record(function: Callable[..., object], /, *arguments: object, **keywords: object) -> Recorder:
    named = tuple((name, expression_of(value)) for name, value in keywords.items())
    return Recorder(Apply(function, tuple(map(expression_of, arguments)), named))


def expression_of(value: object) -> Expression:
    """What `value`, or what it is made of, records; a literal where it holds no recorder."""
    if isinstance(value, Recorder):
        return value._satura_expression
    if isinstance(value, Placeholder):
        raise MistakeError(
            f"the tensor '{value}' is not an attribute: computations see its type, {value}.type"
        )
    if not _holds_recorder(value):
        return Literal(value)
    if isinstance(value, tuple | list):
        return Apply(_tuple, tuple(map(expression_of, value)))
    assert is_dataclass(value) and not isinstance(value, type)
    parts = (getattr(value, field.name) for field in fields(value))
    return Apply(type(value), tuple(map(expression_of, parts)))


_SEQUENCES = (tuple, list)


def _holds_recorder(value: object) -> bool:
    kind: type = type(value)
    if kind is int:  # most are: numbers and tuples of them
        return False
    if kind is not tuple and hasattr(kind, "stands_in"):
        return False  # an unknown of a proof: looking at it decides something
    if isinstance(value, Placeholder):
        return True
    if isinstance(value, _SEQUENCES):
        parts: Iterable[object] = value
    else:
        parts = [getattr(value, name, None) for name in _part_names(kind)]
    return any(_holds_recorder(part) for part in parts if type(part) is not int)


@functools.cache
def _part_names(kind: type) -> tuple[str, ...]:
    """Names of the fields in which recorders may stand; none for what is not a dataclass."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def attribute_function(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` (pure, on attribute values) be called in rules.

    On plain values it runs; on recorders the call is recorded. It may raise `Refuse`.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if not any(map(_holds_recorder, (*arguments, *keywords.values()))):
            return function(*arguments, **keywords)
        _check_arity(function, arguments, keywords)
        return cast(R, _record(function, *arguments, **keywords))

    return call


def _check_arity(
    function: Callable[..., object], arguments: tuple[object, ...], keywords: Mapping[str, object]
) -> None:
    """Raise MistakeError where `function` does not take so many arguments."""
    with suppress(ValueError):  # some functions that are written in C have no signature
        signature = inspect.signature(function, follow_wrapped=False)
        try:
            signature.bind(*arguments, **keywords)
        except TypeError as error:
            name = function.__name__
            takes = f"{name}({', '.join(signature.parameters)})"
            raise MistakeError(f"{name}: {error}; it is {takes}") from None
