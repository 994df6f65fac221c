"""Variants of a fragment: a class that it reads is computed in it, or all are; or one that it
computes is read."""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import inf
from typing import TypeAlias

from satura.rewrite.extract.enumeration import Enumeration
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.templates import Instance

Change: TypeAlias = tuple[int, int]
"""The place of a class in a fragment, and which of its options computes it: -1 where it is read."""
_ALL = -1, 0  # all that is read is computed, where that pays


def variants(
    found: Enumeration,
    fragment: Instance,
    shared: int,
    among: Container[Change] | None = None,
) -> Iterator[tuple[Change, Instance]]:
    """The fragments that differ from `fragment` in one class: they compute what it reads, or read
    what it computes where that is `shared`, since else nobody but it gains from a store; and the
    one that computes all that it reads.

    Where changes are given, no others are made.
    """
    if fragment.template.form is Fused.HOST:
        return
    changes: list[tuple[Change, Instance | None]] = [
        ((place, -1), None) for place in _shared_places(fragment, shared)
    ]
    for place in fragment.template.reads:
        changes += [((place, k), each) for k, each in enumerate(_options(found, fragment, place))]
    for change, part in changes:
        cls = fragment.classes[change[0]]
        if (among is None or change in among) and (part or found.is_computable(cls)):
            changed = found.instances.with_part(fragment, cls, part)
            if changed is not None and changed.seconds < inf:
                yield change, changed
    if among is None or _ALL in among:
        whole = _absorbing(found, fragment)
        if whole is not fragment:
            yield _ALL, whole


def _absorbing(found: Enumeration, fragment: Instance) -> Instance:
    """The fragment that computes all that it reads, where a dispatch of its own would be dearer:
    changes of one class at a time would take as many rounds."""
    whole = fragment
    for place in fragment.template.reads:
        cls = fragment.classes[place]
        alone = min((cost for _, (cost, _) in found.dispatchable(cls)), default=inf)
        changed = (
            found.instances.with_part(whole, cls, each) for each in _options(found, fragment, place)
        )
        best = min((each for each in changed if each is not None), key=_seconds, default=whole)
        if best is not whole and best.seconds < whole.seconds + alone:
            whole = best
    return whole


def _seconds(fragment: Instance) -> float:
    return fragment.seconds


def look(found: Enumeration, fragment: Instance, shared: int) -> tuple[object, ...]:
    """What fragments agree in that have the same changes, as those of equal layers do."""
    template = fragment.template
    options = [_options(found, fragment, place) for place in template.reads]
    numbers = [tuple([each.template.number for each in some]) for some in options]
    return (template.number, *_shared_places(fragment, shared), *numbers)


def _shared_places(fragment: Instance, shared: int) -> list[int]:
    """The places of the `shared` classes that are computed in it, but for its own."""
    places, classes = fragment.template.computed, fragment.classes
    return [place for place in places if place and shared >> classes[place] & 1]


def _options(found: Enumeration, fragment: Instance, place: int) -> list[Instance]:
    """What could be computed in place of reading a class."""
    leaf = fragment.classes[place]
    if found.given[leaf] is not None:
        return []
    return [option for _, option in found.options[leaf].values()]
