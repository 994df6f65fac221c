"""`python -m benchmarks executables`: what it saves and costs that dispatches share kernels.

Seconds are those of a processor that compiles each kernel, none of it cached. The slowdown is that
against the call of the level `none` in the same round, the median with its interval of 95 %.
"""

from __future__ import annotations

from functools import partial
from time import process_time

import satura
from benchmarks.models import build, example_inputs, example_sizes
from benchmarks.statistics import time_in_turns
from satura.backend.jit.kernel import KernelSource
from satura.backend.plan.compiled import CompiledSchedule, compile_schedule
from satura.backend.plan.merging import MERGING
from satura.commands.terminal import print_table, progress
from satura.commands.timing import ratio


def executables(names: list[str], threads: int, rounds: int) -> None:
    """Print a line per model and level."""
    header = ["model", "level", "kernels", "code bytes", "compile s", "slowdown", "low", "high"]
    rows: list[list[str]] = []
    with progress("executables") as phase:
        for at, name in enumerate(names):
            phase(name, at / len(names))
            rows += _of_levels(name, threads, rounds)
    print_table("kernels that dispatches share", header, rows)


def _of_levels(name: str, threads: int, rounds: int) -> list[list[str]]:
    schedule = satura.compile(build(name), threads).rewritten.schedule
    levels = {level: compile_schedule(schedule, threads, merging=level) for level in MERGING}
    symbols = schedule.program.symbols
    sizes = example_sizes(name)
    arguments = example_inputs(name, sizes)
    runs = {level: partial(found.run, arguments) for level, found in levels.items()}
    samples = time_in_turns(runs, rounds)
    known: dict[str, tuple[float, int]] = {}
    rows = []
    for level, found in levels.items():
        costs = _costs(found, {symbol: sizes.get(symbol, 32) for symbol in symbols}, known)
        slowdown = [each - 1 for each in ratio(samples["none"], samples[level])]
        seconds, size = (sum(each) for each in zip(*costs, strict=True))
        shown = [f"{each:+.1%}" for each in slowdown]
        rows.append([name, level, str(len(costs)), f"{size:,}", f"{seconds:.2f}", *shown])
    return rows


def _costs(
    found: CompiledSchedule, sizes: dict[str, int], known: dict[str, tuple[float, int]]
) -> list[tuple[float, int]]:
    """Seconds to compile each kernel, and bytes of its code; `known` are those met before."""
    # Not imported above: `memory`, beside it, measures processes that have not loaded LLVM.
    from satura.backend.jit.translate import compile_kernel

    costs = []
    for kernel in found.executables(sizes):
        text = kernel.source.partition("    # dispatch")[0]  # without what makes it a copy
        if text not in known:
            started = process_time()
            made = compile_kernel(KernelSource(kernel.name, text))
            known[text] = process_time() - started, len(made.code)
        costs.append(known[text])
    return costs
