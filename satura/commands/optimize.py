"""`satura optimize`: rewrite a model and write it as ONNX again."""

from __future__ import annotations

from pathlib import Path

from satura.commands.terminal import print_line, progress
from satura.pipeline import rewrite
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.onnx.write.save import save


def optimize(model: Path, output: Path, rules: RuleSet, text: bool) -> None:
    """Write the cheapest program found for `model` to `output`."""
    with progress(f"optimizing {model.name}") as phase:
        rewritten = rewrite(model, rules, None, phase)
    program = rewritten.schedule.program
    save(program, output)
    if text:
        print_line(str(program))
    print_line(f"{output}: {len(rewritten.source.nodes)} nodes became {len(program.nodes)}")
