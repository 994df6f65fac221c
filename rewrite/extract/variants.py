"""Variants of a fragment: one class that it reads, or computes, is computed or read otherwise."""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import inf
from typing import TypeAlias

from satura.rewrite.extract.enumeration import Enumeration
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.templates import Instance

Change: TypeAlias = tuple[int, int]
"""The place of a class in a fragment, and which of its options computes it: -1 where it is read,
and less where it is one of its e-nodes over what is computed there already."""


def variants(
    found: Enumeration,
    fragment: Instance,
    shared: int,
    stored: int,
    among: Container[Change] | None = None,
) -> Iterator[tuple[Change, Instance]]:
    """The fragments that differ from `fragment` in one class: they compute what it reads, or read
    what it computes where that is `shared`, since else nobody but it gains from a store; or that
    compute it otherwise, from what is `stored` or from what is computed beside it.

    Where changes are given, no others are made.
    """
    if fragment.template.form is Fused.HOST:
        return
    changes: list[tuple[Change, Instance | None]] = [
        ((place, -1), None) for place in _shared_places(fragment, shared)
    ]
    for place in fragment.template.reads:
        changes += [((place, k), each) for k, each in enumerate(_options(found, fragment, place))]
    for place in filter(None, fragment.template.computed):
        others = enumerate(_options(found, fragment, place))
        changes += [((place, k), each) for k, each in others if _reads_only(each, stored)]
    changes += _otherwise(found, fragment)
    for change, part in changes:
        cls = fragment.classes[change[0]]
        if (among is None or change in among) and (part or found.is_computable(cls)):
            changed = found.instances.with_part(fragment, cls, part)
            if changed is not None and changed.seconds < inf:
                yield change, changed


def _otherwise(found: Enumeration, fragment: Instance) -> Iterator[tuple[Change, Instance]]:
    """Other e-nodes of what is computed in a fragment, over what it reads or computes already."""
    seen = fragment.inner | fragment.outer
    inside = {part.cls: part for part in _parts(fragment)}
    for place in filter(None, fragment.template.computed):
        cls = fragment.classes[place]
        for position, node in enumerate(found.classes.nodes[cls]):
            is_other = cls in inside and position != inside[cls].position
            if is_other and all(seen >> each & 1 for each in node.operands):
                over = tuple(map(inside.get, node.operands))
                other = found.instances.combined(cls, position, over)
                if other is not None:
                    yield (place, -2 - position), other


def _parts(fragment: Instance) -> Iterator[Instance]:
    """A fragment and its parts, one of each class."""
    stack, found = [fragment], {fragment.cls}
    while stack:
        part = stack.pop()
        yield part
        for each in part.parts:
            if each is not None and each.cls not in found:
                found.add(each.cls)
                stack.append(each)


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


def _reads_only(option: Instance, stored: int) -> bool:
    """Whether all that an option reads is `stored`, inputs and constants apart."""
    return bool(option.leaves) and not option.leaves & ~stored


def _options(found: Enumeration, fragment: Instance, place: int) -> list[Instance]:
    """What could be computed in place of reading a class."""
    leaf = fragment.classes[place]
    if found.given[leaf] is not None:
        return []
    return [option for _, option in found.options[leaf].values()]
