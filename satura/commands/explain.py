"""`satura explain`: which rules a node of the rewritten program comes from."""

from __future__ import annotations

from pathlib import Path

from satura.commands.terminal import print_json, print_line, progress
from satura.light import NAMES, light
from satura.pipeline import rule_set
from satura.rewrite.errors import CallError
from satura.rewrite.explain import Explainer, Explanation
from satura.rewrite.extract import extract
from satura.rewrite.onnx.load import load_with_names
from satura.rewrite.saturate import saturate


def explain(model: str, nodes: list[str], rules: str, json: bool) -> None:
    """Explain `nodes` (all by default) of what `model` is rewritten to."""
    if not Path(model).is_file() and model not in NAMES:
        raise CallError(f"{model} is neither an ONNX file nor one of {', '.join(NAMES)}")
    chosen = rule_set(rules)
    with progress(f"explaining {model}") as phase:
        phase("load", 0.0)
        program, names = load_with_names(model if Path(model).is_file() else light(model))
        phase("saturate", 0.0)
        saturation = saturate(program, chosen)
        phase("extract", 0.0)
        rewritten = extract(saturation.classes).program
        explainer = Explainer(program, saturation, chosen, names)
        asked = list(map(_number, nodes)) or list(range(len(rewritten.nodes)))
        found = [explainer.explain(rewritten, index) for index in asked]
    if json:
        print_json([explanation.as_json() for explanation in found])
    else:
        for explanation in found:
            print_line(str(explanation) if nodes else _summary(explanation))


def _number(node: str) -> int:
    try:
        return int(node.removeprefix("%"))
    except ValueError:
        raise CallError(f"{node} is no number of a node, such as %12 or 12") from None


def _summary(explanation: Explanation) -> str:
    """One line: the node, and the rules that led to it."""
    steps = ", ".join(f"{step.rule} (round {step.round})" for step in explanation.steps)
    return f"{explanation.node}  # {steps}" if steps else explanation.node
