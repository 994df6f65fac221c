"""Phases: the stages of a compilation by name, and the seconds that each took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Called with the name of a phase and how much of it is done, from 0 when it starts to 1."""


@dataclass
class Phases:
    """Seconds that each phase took, in order; tells `progress` when a phase starts."""

    progress: Progress | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(name, 0.0)
        start = perf_counter()
        yield
        self.seconds[name] = perf_counter() - start
