"""`satura optimize`: rewrite a model and write it as ONNX again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from satura.backend.target import threads_for
from satura.commands.bench import onnxruntime_runner
from satura.commands.terminal import print_line, progress
from satura.commands.timing import medians
from satura.commands.values import with_values
from satura.pipeline.inputs import random_inputs
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.saturate import Limits
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.onnx.write.save import save
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array


def optimize(
    model: Path, output: Path, values: list[str], rules: RuleSet, limits: Limits, text: bool,
    timing: Timing | None,
) -> None:  # fmt: skip
    """Write the cheapest program found for `model` to `output`, and time both where asked to."""
    source = with_values(model, values)
    with progress(f"optimizing {model.name}") as phase:
        rewritten = rewrite(source, rules, limits, phase)
    program = rewritten.schedule.program
    arguments = random_inputs(rewritten.source, dict(timing.sizes)) if timing is not None else {}
    save(program, output)
    if text:
        print_line(str(program))
    print_line(f"{output}: {change(rewritten.source, program)}")
    if timing is not None:
        print_line(timing.compared(source, output, arguments))


@dataclass(frozen=True)
class Timing:
    """How a model and what was made of it are timed in onnxruntime."""

    sizes: Mapping[str, int]
    threads: int | None
    rounds: int = 15

    def compared(self, before: Path | ModelProto, after: Path, arguments: dict[str, Array]) -> str:
        """Milliseconds of both, and which share of the time the second takes."""
        threads = threads_for(self.threads)
        models = {"before": before, "after": after}
        with progress("timing"):
            runners = {
                name: onnxruntime_runner(each, threads, arguments) for name, each in models.items()
            }
            seconds = medians(runners, self.rounds)
        share = seconds["after"] / seconds["before"]
        return (
            f"in onnxruntime, {threads} threads, median of {self.rounds} rounds in turn:"
            f" {seconds['before'] * 1e3:.3g} ms before, {seconds['after'] * 1e3:.3g} ms after,"
            f" {share:.2f} of the time"
        )


def change(before: Program, after: Program) -> str:
    """What became of a program, by the ops that it has more and fewer of."""
    if str(before) == str(after):
        return f"the {len(before.nodes)} nodes stay as they are: no rule made them cheaper"
    counts = [Counter(node.op.name for node in program.nodes) for program in (before, after)]
    removed, added = counts[0] - counts[1], counts[1] - counts[0]
    changes = [f"-{count} {name}" for name, count in sorted(removed.items())]
    changes += [f"+{count} {name}" for name, count in sorted(added.items())]
    detail = ", ".join(changes) or "the same ops, applied otherwise"
    return f"{len(before.nodes)} nodes became {len(after.nodes)} ({detail})"
