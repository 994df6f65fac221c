"""Executables: the distinct kernels of a program, the one place where equal kernels are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from satura.backend.emit.body import Code


@dataclass(frozen=True)
class Executable:
    """The kernel of all dispatches with equal text, named after the first of them.

    Where kernels that differ have one name, the later ones have primes.
    """

    name: str
    source: str
    dispatches: int


def executables(codes: Sequence[Code]) -> tuple[Executable, ...]:
    """The kernels of `codes`, equal ones merged, in order of first use."""
    counts = Counter(code.text for code in codes)
    names = {code.text: code.name for code in reversed(codes)}
    found: dict[str, Executable] = {}
    for text, count in counts.items():
        name = names[text]
        while name in found:
            name += "'"
        found[name] = Executable(name, text, count)
    return tuple(found.values())
