"""`satura optimize`: rewrite a model and write it as ONNX again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto

from satura.backend.target import threads_for
from satura.commands.bench import Runner, onnxruntime_runner
from satura.commands.terminal import counted, measured, print_line, progress
from satura.commands.timing import ratio, sampled
from satura.commands.values import with_values
from satura.pipeline.inputs import random_inputs_of, sizes_text
from satura.pipeline.optimized import optimized
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.order import short_label
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.parts import write_model
from satura.rewrite.onnx.write.save import refuse_other, save
from satura.rewrite.program.arguments import sizes_of
from satura.rewrite.program.equal_sizes import warn_of_equal_sizes
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array

_SHOWN = 5  # nodes that stay as they are


def optimize(
    name: str, model: Path | ModelProto, output: Path, values: list[str], rules: RuleSet,
    limits: Limits, text: bool, timing: Timing | None,
) -> None:  # fmt: skip
    """Write the cheapest program found for `model`, which is called so, to `output`, and time both
    where asked to; nodes of which only data say how long their results are stay as they are."""
    refuse_other(output)
    source = with_values(model, values)
    with progress(f"optimizing {Path(name).name}") as phase:
        found = optimized(source, rules, limits, phase)
    made = found.made
    arguments, sizes = random_inputs_of(source, found.inputs, timing.sizes) if timing else ({}, {})
    if timing is not None:
        sizes_of(found.inputs, arguments)  # which may be of no others than the made model's
    before = read_apart(source).proto.graph.node  # `output` may be the same file
    runners = {"before": timing.runner(source, arguments)} if timing else {}
    save(made, output)
    warn_of_equal_sizes(made.taken, str(output))
    if text:
        print_line(str(made))
    written, _ = write_model(made)
    changed = change(before, written.graph.node) + stayed(made)
    ending = "" if found.is_cheaper else "; no rule made the program cheaper"
    print_line(f"{output}: {changed}{ending}")
    if timing is not None:
        if sizes:
            print_line(f"timed at {sizes_text(sizes)} (see --size)")
        runners["after"] = timing.runner(output, arguments)
        print_line(timing.compared(runners))


@dataclass(frozen=True)
class Timing:
    """How a model and what was made of it are timed in onnxruntime: in pairs of runs."""

    sizes: Mapping[str, int]
    threads: int | None
    rounds: int = 15

    def runner(self, model: Path | ModelProto, arguments: dict[str, Array]) -> Runner:
        """The model as onnxruntime runs it, whatever becomes of its file."""
        return onnxruntime_runner(model, threads_for(self.threads), arguments)

    def compared(self, runners: Mapping[str, Runner]) -> str:
        """Medians of what is before and after, and the median share of a run's time over its
        pair's, as an interval."""
        threads = threads_for(self.threads)
        with progress("timing"):
            seconds = {name: np.array(x) for name, x in sampled(runners, self.rounds).items()}
        share, low, high = ratio(seconds["before"], seconds["after"])
        first, second = (measured(float(np.median(each)) * 1e3) for each in seconds.values())
        is_settled = not low <= 1 <= high
        return (
            f"in onnxruntime, {counted(threads, 'thread')}, {self.rounds} rounds in turn: medians"
            f" {first} ms before, {second} ms after; run against run,"
            f" {share:.2f} of the time"
            f" ({low:.2f} to {high:.2f}{'' if is_settled else ': not settled which is faster'})"
        )


def stayed(made: Program | Parts) -> str:
    """Which nodes of a model stay as they are, if any, and that programs are around them."""
    if isinstance(made, Program):
        return ""
    names = [short_label(each) for each in made.kept[:_SHOWN]]
    more = [f"{len(made.kept) - _SHOWN} more"] if len(made.kept) > _SHOWN else []
    parts, nodes = counted(len(made.programs), "part"), counted(len(made.kept), "node")
    return f"; {parts}, and as the model has them {nodes}: {', '.join([*names, *more])}"


def change(before: Sequence[NodeProto], after: Sequence[NodeProto]) -> str:
    """What became of a model's nodes, by the ops that it has more and fewer of; a constant is not
    one."""
    counts = [
        Counter(node.op_type for node in nodes if node.op_type != "Constant")
        for nodes in (before, after)
    ]
    removed, added = counts[0] - counts[1], counts[1] - counts[0]
    changes = [f"-{count} {name}" for name, count in sorted(removed.items())]
    changes += [f"+{count} {name}" for name, count in sorted(added.items())]
    detail = ", ".join(changes) or "the same ops"
    return f"{counts[0].total()} nodes became {counts[1].total()} ({detail})"
