"""The search for a saved program at sizes that it excludes. Opening loads none of its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from satura.rewrite.extract.schedule import Schedule
    from satura.rewrite.program.program import Program


def search_again(
    program: Program, names: Sequence[str], is_exact: bool, threads: int, sizes: Mapping[str, int]
) -> Schedule:
    """The schedule of a program by rules of these names, which so many threads run at `sizes`, with
    kernels that are exact or not."""
    import_whole("satura.pipeline.remembered")
    from satura.backend.plan.kernels import refused_dispatches
    from satura.pipeline.rates import cost_model
    from satura.pipeline.remembered import rewrite_once
    from satura.pipeline.rule_sets import of_the_book

    cost = cost_model(threads=threads, is_exact=is_exact)
    return rewrite_once(
        program, of_the_book(names), is_exact=is_exact, cost=lambda _: cost,
        refusals=lambda made: refused_dispatches(made, threads, sizes),
    ).schedule  # fmt: skip
