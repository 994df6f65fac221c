"""`satura explain`: which rules a node of the rewritten program comes from."""

from __future__ import annotations

from pathlib import Path

from satura.commands.models import file_or_light, node_number
from satura.commands.rule_files import with_files
from satura.commands.terminal import print_json, print_line, progress
from satura.commands.values import with_values
from satura.pipeline.stages import rewrite, rules_for
from satura.rewrite.explain.origins import Explainer, Explanation
from satura.rewrite.onnx.load import load_with_names


def explain(
    model: str, values: list[str], nodes: list[str], rules: str, files: list[Path], json: bool
) -> None:
    """Explain `nodes` (all by default) of what `model` is rewritten to."""
    source = with_values(file_or_light(model), values)
    chosen = with_files(rules, files)
    with progress(f"explaining {model}") as phase:
        phase("load", 0.0)
        program, names = load_with_names(source)
        made = rewrite(program, chosen, None, phase)
        rewritten = made.schedule.program
        explainer = Explainer(program, made.saturation, rules_for(program, chosen), names)
        asked = list(map(node_number, nodes)) or list(range(len(rewritten.nodes)))
        found = explainer.explain_all(rewritten, asked)
    if json:
        print_json([explanation.as_json() for explanation in found])
    else:
        for explanation in found:
            print_line(str(explanation) if nodes else _summary(explanation))


def _summary(explanation: Explanation) -> str:
    """One line: the node, and the rules that led to it."""
    steps = ", ".join(f"{step.rule} (round {step.round})" for step in explanation.steps)
    equal = ", ".join(dict.fromkeys(each.by for each in explanation.equal))
    told = steps or (equal and f"made equal by {equal}")
    return f"{explanation.node}  # {told}" if told else explanation.node
