"""What class of values fields and functions give, as far as their annotations say."""

from __future__ import annotations

import builtins
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import FunctionType, NoneType, UnionType

from satura.rewrite.language.ours import is_ours
from satura.rewrite.types.attributes import UserAttribute

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
    return _declared_class(function, "return")


@functools.lru_cache(maxsize=1024)
def parameter_class(function: Callable[..., object], name: str) -> Class:
    """The class that `function` is declared to take as its parameter `name`."""
    return _declared_class(function, name)


def can_be(found: type, sort: type) -> bool:
    """Whether what is declared as `found` may be a `sort`: one is the other, or above it."""
    return issubclass(found, sort) or issubclass(sort, found)


def has_members_of_its_own(owner: type) -> bool:
    """Whether instances of `owner` may have members that the class does not show."""
    is_open = any("__getattr__" in vars(each) for each in owner.__mro__)
    return is_open or owner.__module__.startswith("numpy")


def shows_its_members(owner: type) -> bool:
    """Whether instances of `owner` certainly have no members but those that the class shows: a
    plain class may give them others when they are made."""
    if has_members_of_its_own(owner) or owner is UserAttribute:
        return False
    is_slotted = is_dataclass(owner) and not owner.__dictoffset__
    is_known = owner.__module__ == "builtins" or is_ours(owner)
    return is_known or is_slotted or issubclass(owner, UserAttribute)


def resolved(annotation: object, scope: Mapping[str, object]) -> object:
    """What an annotation says, without quotes and without what `Annotated` adds.

    Raises what its text raises where that has no value.
    """
    if isinstance(annotation, typing.ForwardRef):
        return resolved(annotation.__forward_arg__, scope)
    if isinstance(annotation, str):
        return resolved(eval(annotation, {}, scope), scope)
    if typing.get_origin(annotation) is typing.Annotated:
        return resolved(typing.get_args(annotation)[0], scope)
    return annotation


def _declared_class(function: Callable[..., object], name: str) -> Class:
    """The class that an annotation of `function` tells; a wrapper that has those of what it wraps
    may take and answer anything else."""
    if not isinstance(function, FunctionType) or name not in function.__annotations__:
        return None
    wrapped: object = getattr(function, "__wrapped__", None)
    if getattr(wrapped, "__annotations__", None) == function.__annotations__:
        return None
    outer = inspect.getclosurevars(function).nonlocals
    return _class_of(function.__annotations__[name], {**function.__globals__, **outer})


def _class_of(annotation: object, scope: Mapping[str, object]) -> Class:
    """The one class of the values that an annotation allows; None for any other annotation, such as
    a union, or a protocol, which any class may follow."""
    try:
        annotation = resolved(annotation, scope)
    except Exception:  # whatever it says, it tells us nothing
        return None
    if annotation is None:
        return NoneType
    origin = typing.get_origin(annotation) or annotation
    if not isinstance(origin, type) or origin in (object, typing.Any, UnionType):
        return None
    return None if getattr(origin, "_is_protocol", False) else origin
