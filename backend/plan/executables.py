"""Executables: the distinct kernels of a program. Dispatches with equal text share one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from satura.backend.emit.body import Code
from satura.backend.jit.machine_code import KernelSource


@dataclass(frozen=True)
class Executable:
    """Compiled code of one body, named after the first dispatch that uses it."""

    name: str
    source: str
    dispatches: int


def executables(codes: Iterable[Code]) -> tuple[Executable, ...]:
    """Exact twins merged, in order of first use."""
    found: dict[str, tuple[str, int]] = {}
    for code in codes:
        name, count = found.get(code.text, (code.name, 0))
        found[code.text] = (name, count + 1)
    return tuple(Executable(name, text, count) for text, (name, count) in found.items())


def source_of(code: Code) -> KernelSource:
    """What the JIT compiles for `code`."""
    return KernelSource(code.name, code.text)
