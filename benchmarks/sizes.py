"""`python -m benchmarks sizes`: what calls of ever new sizes cost, one compilation for all of them.

The classes of sizes are made first. Then calls come with different lengths in turn, of batches 1 to
4, each behind a call of another size. Counted are kernels that were compiled and dispatches that
were lowered meanwhile. "first" is the first call of a size to its second. All sizes come once more:
"in turn" is a call behind one of another size to a call behind one of the same size, with other
arrays both; caches are a part of it, as arrays and results of another size lie elsewhere. "static"
is a call to one of the model compiled for these sizes alone: calls take turns. "in turn static" has
no such part: calls of these sizes in turn by one program to those by a static program for each. All
ratios are medians, those to static with an interval of 95 %. MiB are resident ones after a call of
the largest size, after all, and after all again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from unittest.mock import patch

import numpy as np
import onnx

import satura
from benchmarks.footprint import resident
from benchmarks.models import build
from benchmarks.statistics import time_in_turns
from satura.backend.jit.machine_code import compile_all
from satura.backend.plan import kernels, lowered
from satura.commands.terminal import print_rows
from satura.commands.timing import Samples, ratio
from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import random_arguments
from satura.rewrite.types.tensor_type import Array

DEFAULT = ("bert_base", "minilm", "rope_attention")
SHORTEST, MOST_ROWS = 12, 512  # of a sequence, and of all sequences of a batch
FIXED = ({"batch": 1, "seq": 128}, {"batch": 3, "seq": 37})  # compared with static programs
Sizes = dict[str, int]
Run = Callable[[], object]


@dataclass(frozen=True)
class Turns:
    """Seconds of the calls of each size, by round and call, and what was made meanwhile."""

    seconds: Samples
    classes: int
    kernels: int
    dispatches: int
    mib: tuple[float, float, float]


def sizes(names: list[str], threads: int, rounds: int, lengths: int) -> None:
    """Print a table with a line per model, with `lengths` different lengths."""
    header = ["model", "lengths", "classes", "kernels", "dispatches", "first"]
    header += ["ms above", "in turn"]
    header += [" x ".join(map(str, each.values())) + " static" for each in FIXED]
    rows = ([name, *_of_model(build(name), threads, rounds, lengths)] for name in names)
    print_rows("calls of new sizes", [*header, "in turn static", "MiB"], rows)


def drawn(lengths: int) -> list[Sizes]:
    """Different lengths in no order, with batches that have not too many rows in all."""
    order = np.random.default_rng(0).permutation(lengths) + SHORTEST
    return [
        {"batch": 1 + number % min(4, max(1, MOST_ROWS // length)), "seq": length}
        for number, length in enumerate(order.tolist())
    ]


def _of_model(model: onnx.ModelProto, threads: int, rounds: int, lengths: int) -> list[str]:
    compiled = satura.compile(model, threads)
    turns = in_turns(compiled, drawn(lengths))
    (first, second), (other, again) = turns.seconds
    shown = [turns.classes, turns.kernels, turns.dispatches]
    row = [str(lengths), *map(str, shown), f"{np.median(first / second):.2f}"]
    row += [f"{np.median(first - second) * 1e3:+.2f}", f"{np.median(other / again):.3f}"]
    given = [random_arguments(compiled.inputs, each) for each in FIXED]
    opened = [partial(compiled.run, each) for each in given]
    programs = (satura.compile(fixed(model, each), threads) for each in FIXED)
    statics = [partial(static.run, each) for static, each in zip(programs, given, strict=True)]
    pairs: list[tuple[Run, Run]] = [*zip(opened, statics, strict=True)]
    for ours, theirs in (*pairs, (_each(opened), _each(statics))):
        samples = time_in_turns({"open": ours, "static": theirs}, rounds)
        middle, low, high = ratio(samples["static"], samples["open"])
        row.append(f"{middle:.3f} ({low:.3f} to {high:.3f})")
    return [*row, " ".join(f"{each:.0f}" for each in turns.mib)]


def in_turns(compiled: Compiled, every: list[Sizes]) -> Turns:
    """Calls of these sizes, twice each, in two rounds."""
    largest = max(every, key=lambda each: each["batch"] * each["seq"])
    compiled.prepare(every)
    compiled.release()  # plans of sizes, and no classes
    before = random_arguments(compiled.inputs, largest)
    compiled.run(before)
    mib = [resident("VmRSS")]
    seconds = np.empty((2, 2, len(every)))
    with (
        patch.object(kernels, "kernel_code", wraps=kernels.kernel_code) as lowering,
        patch.object(lowered, "compile_all", wraps=compile_all) as compiling,
    ):
        for turn in range(2):
            for at, each in enumerate(every):
                given, same = (random_arguments(compiled.inputs, each, seed) for seed in range(2))
                if turn:
                    compiled.run(given)  # both times the arguments were read two calls ago
                compiled.run(before)  # while arguments are drawn, threads go to sleep
                seconds[turn, 0, at] = _timed(compiled, given)
                if turn:
                    compiled.run(same)
                seconds[turn, 1, at] = _timed(compiled, given)
                before = given
            mib.append(resident("VmRSS"))
    made = sum(len(call.args[0]) for call in compiling.call_args_list)
    first, second, last = mib
    count = len(compiled.cache)
    return Turns(seconds, count, made, lowering.call_count, (first, second, last))


def _each(runners: Sequence[Run]) -> Run:
    """Runs one after another."""

    def run() -> object:
        return [runner() for runner in runners]

    return run


def _timed(compiled: Compiled, given: dict[str, Array]) -> float:
    started = perf_counter()
    compiled.run(given)
    return perf_counter() - started


def fixed(model: onnx.ModelProto, known: Sizes) -> onnx.ModelProto:
    """The model with these sizes in place of its symbols."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in (*made.graph.input, *made.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in known:
                dim.dim_value = known[dim.dim_param]
    return made
