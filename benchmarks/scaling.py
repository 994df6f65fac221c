"""`python -m benchmarks scaling`: what a model would gain on machines of many cores, simulated.

A model is compiled for each number of threads. Every share of every step then runs alone on one
thread here; what the call from Python takes is taken off. On the simulated machine a step takes as
long as its longest share, and 2 microseconds for the threads to meet. A model that its caches do
not hold, with weights and arena, is read from memory in each call: there a step takes no less than
its constants and larger tensors do at the bandwidth that all cores share.
"""

from __future__ import annotations

from functools import partial
from math import inf
from time import perf_counter

from benchmarks.models import build, example_inputs
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.plan import Plan
from satura.backend.run.routine import Instance
from satura.backend.run.runtime import Executor
from satura.commands.terminal import print_table, progress
from satura.pipeline.rates import cost_model
from satura.pipeline.remembered import rewrite_once
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.interpreter import bind_sizes
from satura.rewrite.program.program import Program

COUNTS = (1, 2, 4, 8, 16, 32, 64)
BARRIER = 2e-6  # seconds
_NONE = 2**40  # shares of a step, of which the first has nothing to do
SIZES = {"batch": 1, "seq": 128}


def scaling(names: list[str], bandwidth: float, cache: float, rounds: int) -> None:
    """Print the speed-up of each model by the number of threads.

    All cores share a memory of `bandwidth` GB/s and caches of `cache` MiB.
    """
    rows = []
    with progress("scaling") as phase:
        for name in names:
            model = build(name)
            arguments = example_inputs(model, SIZES)
            seconds = []
            for at, threads in enumerate(COUNTS):
                phase(f"{name}, {threads} threads", at / len(COUNTS))
                found = rewrite_once(model, "default", cost=partial(_cost, threads))
                compiled = compile_schedule(found.schedule, threads)
                sizes = bind_sizes(found.schedule.program, arguments)
                plan = compiled.prepare(sizes)
                instance = plan.instance()
                instance.run(arguments)
                instance.bind(arguments, {})
                rate = inf if _footprint(plan) <= cache * 2**20 else bandwidth * 1e9
                seconds.append(simulate(plan, instance, threads, rate, rounds))
            rows.append([name, *(f"{seconds[0] / each:.1f}" for each in seconds)])
    header = ["model", *(str(count) for count in COUNTS)]
    machine = f"{bandwidth:.0f} GB/s and {cache:.0f} MiB of caches"
    print_table(f"speed-up by threads, simulated with {machine}", header, rows)


def _cost(threads: int, program: Program) -> CostModel:
    sizes = {name: SIZES[name] for name in SIZES if name in program.symbols}
    return cost_model(None, threads, sizes)


def _footprint(plan: Plan) -> int:
    """The bytes of the constants and of the arena."""
    return statistics(plan.concrete)["constant-size"] + plan.arena.size


def simulate(plan: Plan, instance: Instance, threads: int, bandwidth: float, rounds: int) -> float:
    """Seconds of a call on `threads` threads that meet after each step.

    What no cache holds is read at `bandwidth` bytes per second.
    """
    total = 0.0
    executor = instance.executor
    steps = range(len(plan.launched))
    idle = min(_fastest(executor, step, 0, _NONE, rounds) for step in steps)
    for step, number in enumerate(plan.launched):
        shares = min(executor.width(step), threads)
        slowest = max(_fastest(executor, step, share, shares, rounds) for share in range(shares))
        features = plan.schedule.dispatches[number].features
        size = 0.0 if features is None else features.far + features.constants
        total += max(slowest - idle, size / bandwidth) + (BARRIER if shares > 1 else 0.0)
    return total


def _fastest(executor: Executor, step: int, share: int, shares: int, rounds: int) -> float:
    """Seconds of one share of a step, the call from Python included."""
    best = inf
    for _ in range(rounds):
        start = perf_counter()
        executor.run_share(step, share, shares)
        best = min(best, perf_counter() - start)
    return best
