"""Variants of a fragment: it reads what it computes, or computes what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from satura.rewrite.extract.enumeration import Enumeration
from satura.rewrite.extract.fragments import Fragment, Fused, combine


def variants(found: Enumeration, fragment: Fragment) -> Iterator[Fragment]:
    """The fragments that differ from `fragment` in one class, read or computed in its place."""
    if fragment.form in (Fused.PLACEMENT, Fused.HOST):
        return
    changes: list[tuple[int, Fragment | None]] = [
        (cls, None) for cls in fragment.computed if cls != fragment.cls and found.is_computable(cls)
    ]
    for leaf in fragment.reads:
        if found.given[leaf] is None:
            changes += [(leaf, found.fragment(part)) for _, part in found.options[leaf].values()]
    for cls, part in changes:
        changed = with_part(found, fragment, cls, part)
        if changed is not None:
            yield changed


def with_part(
    found: Enumeration, fragment: Fragment, cls: int, part: Fragment | None
) -> Fragment | None:
    """`fragment` with `part` where it reads or computes `cls`; where that is None it reads `cls`.

    Parts that it shares stay shared: they have one anchor. None where this does not fuse.
    """
    made: dict[int, Fragment | None] = {}

    def rebuild(old: Fragment) -> Fragment | None:
        if id(old) not in made:
            parts: list[Fragment | None] = []
            for operand, below in zip(old.node.operands, old.parts, strict=True):
                if operand == cls:
                    parts.append(part)
                elif below is None or not (cls in below.reads or cls in below.computed):
                    parts.append(below)
                else:
                    changed = rebuild(below)
                    if changed is None:
                        break
                    parts.append(changed)
            else:
                made[id(old)] = combine(found.classes, old.cls, old.node, tuple(parts), found.model)
        return made.setdefault(id(old), None)

    return rebuild(fragment)
