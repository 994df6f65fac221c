"""The backend: from a schedule to compiled kernels.

Everything below is imported when it is first needed, so that a program whose kernels are cached
starts without a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from satura.rewrite.extract.schedule import Schedule

if TYPE_CHECKING:
    from satura.backend.plan.compiled import CompiledSchedule


def compile(
    schedule: Schedule,
    threads: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> CompiledSchedule:
    """Compile `schedule` for `threads` threads (default: all cores)."""
    from satura.backend.plan.compiled import compile_schedule

    return compile_schedule(schedule, threads, progress)
