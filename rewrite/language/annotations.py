"""Annotations: what a rule's computations may be called with, and what they give.

A hint is the annotation of a value that is not there yet: a class, a generic alias, a function (a
method that has not been called), or None where nothing is known. Nothing known fits everything.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType


class MistakeError(Exception):
    """What is wrong in a rule; `rule` adds the rule's name, file and line."""


@functools.cache
def hints(owner: object) -> Mapping[str, object]:
    """Annotations of a class or function by name; none where they cannot be resolved."""
    try:
        return typing.get_type_hints(owner)
    except (NameError, TypeError):
        return {}


def result_hint(function: object) -> object:
    """What a call of `function` gives."""
    if isinstance(function, type):
        return function
    return hints(function).get("return") if isinstance(function, FunctionType) else None


def attribute_hint(owner: object, name: str) -> object:
    """The annotation of `owner.name`; a method stands for itself.

    Raises MistakeError where instances of the class `owner` have no such attribute.
    """
    plain = typing.get_origin(owner) or owner
    if isinstance(plain, FunctionType):
        raise MistakeError(f"{plain.__name__} is a method: call it, {plain.__name__}(…).{name}")
    if not isinstance(plain, type) or not known(plain):
        return None
    if hasattr(plain, name):
        member = getattr(plain, name)
        if isinstance(member, property):
            return result_hint(member.fget)
        if isinstance(member, functools.cached_property):
            return result_hint(member.func)
        if isinstance(member, FunctionType):
            static = isinstance(inspect.getattr_static(plain, name), staticmethod)
            return None if static else member
    elif name not in hints(plain):
        members = {**hints(plain), **vars(plain)}
        public = sorted(member for member in members if not member.startswith("_"))
        advice = suggestion(name, public) or f"; it has {', '.join(public)}"
        raise MistakeError(f"{plain.__name__} has no attribute '{name}'{advice}")
    return hints(plain).get(name)


def suggestion(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where no choice is close."""
    close = difflib.get_close_matches(name, list(choices), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def known(hint: object) -> bool:
    """Whether `hint` is a class that says something about a value."""
    return isinstance(hint, type) and hint is not object and hint is not type(None)


def shown(hint: object) -> str:
    """How messages write a hint."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def article(hint: object) -> str:
    """`a Perm`, `an Axis`."""
    text = shown(hint)
    return f"{'an' if text[:1] in 'AEIOaeio' else 'a'} {text}"


def fits(hint: object, annotation: object) -> bool:
    """Whether a value of `hint` may be given where `annotation` stands; True where unclear."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return any(fits(hint, choice) for choice in typing.get_args(annotation))
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(fits(choice, annotation) for choice in typing.get_args(hint))
    given = typing.get_origin(hint) or hint
    wanted = typing.get_origin(annotation) or annotation
    if isinstance(given, FunctionType):  # a method that has not been called
        return not known(wanted)
    if not known(given) or not known(wanted):
        return True
    if typing.is_typeddict(wanted) or getattr(wanted, "_is_protocol", False):
        return True
    assert isinstance(given, type) and isinstance(wanted, type)
    return _numeric(given, wanted) or issubclass(given, wanted)


def _numeric(given: type, wanted: type) -> bool:
    """Whether Python's numeric tower lets `given` stand for `wanted`."""
    tower = (bool, int, float, complex)
    return given in tower and wanted in tower and tower.index(given) <= tower.index(wanted)


def check_call(
    name: str,
    function: Callable[..., object],
    arguments: tuple[tuple[str, object], ...],
    keywords: Mapping[str, tuple[str, object]],
    method: bool,
) -> None:
    """Raise MistakeError where `function` cannot be called so.

    Arguments are pairs of text and hint; a `method` has its first parameter already.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    if method:
        rest = list(signature.parameters.values())[1:]
        signature = signature.replace(parameters=rest)
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise MistakeError(f"{name}: {error}; it is {name}{_parameters(signature)}") from None
    annotations = hints(function)
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            given = list(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            given = list(value.values())
        else:
            given = [value]
        for text, hint in given:
            check_value(text, hint, annotations.get(parameter), f"{name} takes", parameter)


def check_value(text: str, hint: object, annotation: object, taker: str, parameter: str) -> None:
    """Raise MistakeError where a value of `hint` does not fit `annotation`."""
    if annotation is None or fits(hint, annotation):
        return
    wanted = f"{taker} {article(annotation)} as '{parameter}'"
    if isinstance(hint, FunctionType):
        raise MistakeError(f"{wanted}, not the method {text}; call it: {text}(…)")
    raise MistakeError(f"{wanted}, not the {shown(hint)} {text}")


def _parameters(signature: inspect.Signature) -> str:
    return str(signature.replace(return_annotation=inspect.Signature.empty)).replace("'", "")
