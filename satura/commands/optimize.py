"""`satura optimize`: rewrite a model and write it as ONNX again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from satura.commands.terminal import print_line, progress
from satura.commands.values import with_values
from satura.pipeline.stages import rewrite
from satura.rewrite.egraph.saturate import Limits
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.onnx.write.save import save
from satura.rewrite.program.program import Program


def optimize(
    model: Path, output: Path, values: list[str], rules: RuleSet, limits: Limits, text: bool
) -> None:
    """Write the cheapest program found for `model` to `output`."""
    with progress(f"optimizing {model.name}") as phase:
        rewritten = rewrite(with_values(model, values), rules, limits, phase)
    program = rewritten.schedule.program
    save(program, output)
    if text:
        print_line(str(program))
    print_line(f"{output}: {change(rewritten.source, program)}")


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
