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
from satura.pipeline.written import rewrite_for_file
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.write.program import write_program
from satura.rewrite.onnx.write.save import refuse_other, save
from satura.rewrite.program.equal_sizes import warn_of_equal_sizes
from satura.rewrite.program.interpreter import bind_sizes
from satura.rewrite.types.tensor_type import Array


def optimize(
    name: str, model: Path | ModelProto, output: Path, values: list[str], rules: RuleSet,
    limits: Limits, text: bool, timing: Timing | None,
) -> None:  # fmt: skip
    """Write the cheapest program found for `model`, which is called so, to `output`, and time both
    where asked to."""
    refuse_other(output)
    source = with_values(model, values)
    with progress(f"optimizing {Path(name).name}") as phase:
        rewritten = rewrite_for_file(source, rules, limits, phase)
    program = rewritten.schedule.program
    arguments = random_inputs_of(source, rewritten.source, timing.sizes) if timing else {}
    before = read_apart(source).proto.graph.node  # `output` may be the same file
    runners = {"before": timing.runner(source, arguments)} if timing else {}
    save(program, output)
    warn_of_equal_sizes(program, str(output))
    if text:
        print_line(str(program))
    written, _ = write_program(program)
    changed = change(before, written.graph.node)
    is_cheaper = str(rewritten.source) != str(program)
    print_line(f"{output}: {changed}{'' if is_cheaper else '; no rule made the program cheaper'}")
    if timing is not None:
        if sizes := bind_sizes(rewritten.source, arguments):
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
