"""`satura why`: how far a rule matches on a model, and what stops it."""

from __future__ import annotations

from pathlib import Path

from satura.commands.terminal import print_json, print_line, progress
from satura.light import NAMES, light
from satura.pipeline import rule_set
from satura.rewrite.errors import CallError
from satura.rewrite.explanation import Why
from satura.rewrite.killable import Doing, call
from satura.rewrite.onnx.load import load_with_names
from satura.rewrite.why import why as ask
from satura.rulefile import load_rules


def why(rule: str, model: str, files: list[Path], rules: str, seconds: float, json: bool) -> None:
    """Explain `rule`, of the set `rules` or of one of `files`, on `model`.

    Where there are files, whose rules may not end, it is given up after `seconds`.
    """
    everything = rule_set(rules)
    for file in files:
        everything = everything + load_rules(file)
    chosen = everything[rule]
    if not Path(model).is_file() and model not in NAMES:
        raise CallError(f"{model} is neither an ONNX file nor one of {', '.join(NAMES)}")

    with progress(f"asking {rule}") as phase:
        phase("load", 0.0)
        program, names = load_with_names(model if Path(model).is_file() else light(model))
        phase("saturate", 0.0)

        def answered(doing: Doing) -> Why:
            doing(f"asking for {rule} beside all rules of {', '.join(map(str, files)) or rules}")
            return ask(chosen, program, everything, names=names)

        answer = call(answered, seconds)
    if json:
        print_json(answer.as_json())
    else:
        print_line(str(answer))
