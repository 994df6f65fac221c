"""Variants of a fragment: it reads what it computes, or computes what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from satura.rewrite.extract.enumeration import Enumeration
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.templates import Instance


def variants(found: Enumeration, fragment: Instance) -> Iterator[Instance]:
    """The fragments that differ from `fragment` in one class, read or computed in its place."""
    if fragment.template.form is Fused.HOST:
        return
    changes: list[tuple[int, Instance | None]] = [
        (cls, None) for cls in fragment.computed if cls != fragment.cls and found.is_computable(cls)
    ]
    for leaf in fragment.reads:
        if found.given[leaf] is None:
            changes += [(leaf, option) for _, option in found.options[leaf].values()]
    for cls, part in changes:
        changed = with_part(found, fragment, cls, part)
        if changed is not None:
            yield changed


def with_part(
    found: Enumeration, fragment: Instance, cls: int, part: Instance | None
) -> Instance | None:
    """`fragment` with `part` where it reads or computes `cls`; where that is None it reads `cls`.

    Parts that it shares stay shared: they have one anchor. None where this does not fuse.
    """
    made: dict[Instance, Instance | None] = {}

    def rebuild(old: Instance) -> Instance | None:
        if old not in made:
            parts: list[Instance | None] = []
            for operand, below in zip(old.node.operands, old.parts, strict=True):
                if operand == cls:
                    parts.append(part)
                elif below is None or cls not in below.classes:
                    parts.append(below)
                else:
                    changed = rebuild(below)
                    if changed is None:
                        break
                    parts.append(changed)
            else:
                made[old] = found.instances.combined(old.cls, old.position, tuple(parts))
        return made.setdefault(old, None)

    return rebuild(fragment)
