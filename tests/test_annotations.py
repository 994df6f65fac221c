"""What annotations of attribute functions say of a law, and what they leave open."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any, Optional, Protocol, cast

import numpy as np
import pytest

from satura.rewrite.errors import RuleError
from satura.rewrite.language import expressions
from satura.rewrite.language.annotations import method_of
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import transpose
from satura.rewrite.types.attributes import Perm, Shape


class HasOrder(Protocol):
    """Whatever has an order."""

    @property
    def order(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Step:
    """A permutation that may be missing."""

    perm: Perm | None
    is_last: Annotated[bool, "of all"]


class Plan:
    """A plain class, whose instances get their attributes when they are made."""

    def __init__(self, perm: Perm) -> None:
        self.perm = perm


def made(annotation: str, sort: str = "Perm") -> Callable[[Perm], Any]:
    """An attribute function that is annotated so."""
    scope = {**globals(), "np": np, "Optional": Optional, "Hashable": Hashable}
    exec(f"def made(p: {sort}) -> {annotation}:\n    return p\n", scope)
    return attribute_function(cast(Callable[[Perm], Any], scope["made"]))


def law_of(right: Callable[[Perm], Perm], *conditions: Callable[[Perm], object]) -> Rule:
    """A law of a transpose whose right side and conditions these functions give."""

    @rule
    def law(x: Tensor, p: Perm) -> Law:
        """a law"""
        found = [cast(bool, condition(p)) for condition in conditions]
        return rewrites(transpose(transpose(x, p), p), transpose(x, right(p)), *found)

    return law


OF_PERMS = (
    "Perm | None", "Optional[Perm]", "Perm | Shape", "Annotated[Perm, 'moved']", "'Perm'",
    "Annotated['Perm | None', 1]", "HasOrder", "Hashable", "object", "Any",
)  # fmt: skip
OF_BOOLS = (
    "bool | None", "Optional[bool]", "bool | np.bool_", "Annotated[bool, 'known']", "HasOrder",
    "Hashable", "np.bool_", "np.generic",
)  # fmt: skip


@pytest.mark.parametrize("annotation", OF_PERMS)
def test_what_may_be_an_attribute_is_taken(annotation: str) -> None:
    law_of(made(annotation), lambda p: made(annotation)(p) == p)


@pytest.mark.parametrize("annotation", OF_BOOLS)
def test_what_may_be_a_bool_is_a_condition(annotation: str) -> None:
    law_of(lambda p: p, made(annotation))


@pytest.mark.parametrize("annotation", ["int", "Shape", "None", "Annotated[Perm, 'moved']"])
def test_what_is_no_bool_is_no_condition(annotation: str) -> None:
    with pytest.raises(RuleError, match=r"made is declared to return (int|Shape|None|Perm)"):
        law_of(lambda p: p, made(annotation))


def test_fields_and_attributes_that_a_class_does_not_show_are_taken() -> None:
    law_of(lambda p: made("Step")(p).perm, lambda p: made("Step")(p).is_last)
    law_of(lambda p: made("Plan")(p).perm)
    with pytest.raises(RuleError, match="Perm has no attribute 'prem'"):
        law_of(lambda p: made("Perm")(p).prem)


@pytest.mark.parametrize("annotation", OF_PERMS)
def test_what_may_be_an_attribute_is_given(annotation: str) -> None:
    law_of(made("Any", annotation))


PASSING: tuple[tuple[str, Callable[[Perm], object]], ...] = (
    ("float", lambda p: 1), ("complex", lambda p: np.float32(1)), ("list[Perm]", lambda p: [p, p]),
    ("Perm", lambda p: None), ("tuple[int, ...]", lambda p: p.order), ("float", lambda p: True),
)  # fmt: skip


@pytest.mark.parametrize(("sort", "argument"), PASSING)
def test_what_passes_for_what_is_declared_is_given(
    sort: str, argument: Callable[[Perm], object]
) -> None:
    scope = dict(globals())
    exec(f"def of_two(p: Perm, other: {sort} = None) -> Perm:\n    return p\n", scope)
    of_two = attribute_function(cast(Callable[..., Perm], scope["of_two"]))
    law_of(lambda p: of_two(p, argument(p)))
    law_of(lambda p: of_two(p, other=argument(p)))


def test_what_wraps_a_function_may_answer_anything_else() -> None:
    def is_least(function: Callable[[Perm], Perm]) -> Callable[[Perm], bool]:
        @functools.wraps(function)
        def call(p: Perm, most: int = 1) -> bool:
            return len(function(p).order) <= most

        return call

    def wrapped(p: Perm) -> Perm:
        return p

    law_of(lambda p: p, attribute_function(is_least(wrapped)))
    more = cast(Callable[[Perm, int], bool], attribute_function(is_least(wrapped)))
    law_of(lambda p: p, lambda p: more(p, 3))
    told = is_least(wrapped)
    told.__annotations__ = {"p": Perm, "return": Shape}
    with pytest.raises(RuleError, match="wrapped is declared to return Shape"):
        law_of(lambda p: p, attribute_function(told))


def test_the_classes_of_a_chain_are_found_out_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(owner: type | None, name: str) -> object:
        asked.append(name)
        return method_of(owner, name)

    monkeypatch.setattr(expressions, "method_of", counted)
    law_of(lambda p: functools.reduce(lambda chain, _: chain[p], range(12), p))
    assert len(asked) == 12
