"""What class of values fields and functions give, as far as their annotations say."""

from __future__ import annotations

import builtins
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import is_dataclass
from types import FunctionType

Class = type | None
"""A class; None where no annotation tells one."""

METHOD = FunctionType
"""The class of a method that is not called."""


def class_of_field(owner: Class, name: str) -> Class:
    """The class of the field, property or method `name` of the instances of `owner`."""
    if owner is None:
        return None
    member = inspect.getattr_static(owner, name, None)
    if isinstance(member, property):
        return returned_class(member.fget) if member.fget is not None else None
    if isinstance(member, FunctionType | staticmethod | classmethod):
        return METHOD
    if not is_dataclass(owner):
        return None
    for home in owner.__mro__:
        annotations = inspect.get_annotations(home)
        if name in annotations:
            return _class_of(annotations[name], vars(inspect.getmodule(home) or builtins))
    return None


def method_of(owner: Class, name: str) -> Callable[..., object] | None:
    """The function of the method `name` of the instances of `owner`; None where there is none."""
    member = inspect.getattr_static(owner, name, None) if owner is not None else None
    function = getattr(member, "__func__", member)
    return function if isinstance(function, FunctionType) else None


@functools.lru_cache(maxsize=1024)
def returned_class(function: Callable[..., object]) -> Class:
    """The class that `function` is declared to return; a class returns its instances."""
    if isinstance(function, type):
        return function
    inner: object = inspect.unwrap(function)
    if not isinstance(inner, FunctionType):
        return None
    outer = inspect.getclosurevars(inner).nonlocals
    return _class_of(inner.__annotations__.get("return"), {**inner.__globals__, **outer})


def has_members_of_its_own(owner: type) -> bool:
    """Whether instances of `owner` may have members that the class does not show."""
    is_open = any("__getattr__" in vars(each) for each in owner.__mro__)
    return is_open or owner.__module__.startswith("numpy")


def _class_of(annotation: object, scope: dict[str, object]) -> Class:
    """The one class of the values that an annotation allows; None for any other annotation."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(scope))
        except Exception:  # whatever it says, it tells us nothing
            return None
    origin = typing.get_origin(annotation) or annotation
    if not isinstance(origin, type) or origin is object or origin is typing.Any:
        return None
    return origin
