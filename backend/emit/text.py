"""Lines of kernel text."""

from __future__ import annotations

from collections.abc import Iterable

INDENT = "    "


def indent(depth: int, lines: Iterable[str]) -> list[str]:
    """The lines, `depth` levels deeper."""
    return [INDENT * depth + line for line in lines]
