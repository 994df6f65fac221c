"""Programs compiled as they are: what is measured is what was written."""

from __future__ import annotations

import warnings

from satura.pipeline.api import compile as compile_program
from satura.pipeline.compiled import Compiled
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.errors import LimitWarning
from satura.rewrite.program.program import Program


def compiled_unrewritten(program: Program, threads: int, is_exact: bool = False) -> Compiled:
    """The kernels of a program that no rule has changed.

    They multiply f32 in parts where that is faster, unless it `is_exact`, as a program is for which
    there are no rules but exact ones.
    """
    if is_exact:
        return compile_program(program, threads, rules="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitWarning)  # of no rounds: there shall be none
        return compile_program(program, threads, limits=Limits(rounds=0))
