"""The public verbs. Each imports its stages when it is called, so that `import satura` is quick."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from satura.rewrite.errors import CallError

if TYPE_CHECKING:
    from satura.compiled import Compiled
    from satura.models import Model
    from satura.phases import Progress
    from satura.pipeline import Searched
    from satura.rewrite.egraph.saturate import Limits
    from satura.rewrite.explain.findings import Why
    from satura.rewrite.language.dsl import Rule
    from satura.rewrite.program.program import Program
    from satura.rewrite.types.tensor_type import Array
    from satura.rule_sets import Rules

PRECISIONS = ("exact", "fp32")


def load(model: Model) -> Program:
    """The program of an ONNX model.

    Raises ModelError for a file that cannot be read, UnsupportedError for what cannot be run.
    """
    from satura.models import load as load_model

    return load_model(model)


def save(program: Program, path: str | Path) -> None:
    """Write `program` as an ONNX model; the file appears complete or not at all."""
    from satura.rewrite.onnx.write.save import save as save_onnx

    save_onnx(program, path)


def interpret(program: Program, arguments: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs of `program` by name, computed op by op with NumPy: slow, and the reference.

    Raises CallError when the arguments do not fit the program's inputs.
    """
    from satura.rewrite.program.interpreter import interpret as interpret_program

    return interpret_program(program, arguments)


def optimize(
    model: Model, rules: Rules = "default", limits: Limits | None = None, strict: bool = False
) -> Program:
    """The cheapest program that the rules can make of `model` within `limits`.

    Hitting a limit is not an error: the best program found so far is returned. Rules of your own
    are tried in a process that is stopped when they do not end: see `compile`.
    """
    return rewritten(model, rules, limits, strict=strict).schedule.program


def why(
    rule: Rule | str, model: Model, rules: Rules = "default", limits: Limits | None = None
) -> Why:
    """Why a rule (or the rule of that name in `rules`) fires on `model` beside `rules`, or not.

    Raises RuleError where there is no such rule, or where it fails in a computation. Rules of your
    own that do not end are stopped, as by `compile`.
    """
    from satura.pipeline import rules_for, saturate_beside
    from satura.rewrite.explain.why import why as explain_rule
    from satura.rewrite.onnx.load import load_with_names
    from satura.rewrite.program.program import Program
    from satura.rule_sets import rule_set

    chosen = rule_set(rules)
    program, names = (model, {}) if isinstance(model, Program) else load_with_names(model)
    asked = rules_for(program, chosen)[rule] if isinstance(rule, str) else rule
    return explain_rule(asked, program, saturate_beside(asked, program, chosen, limits), names)


def compile(
    model: Model,
    threads: int | None = None,
    precision: str = "fp32",
    rules: Rules = "default",
    verify: bool = False,
    progress: Progress | None = None,
    strict: bool = False,
) -> Compiled:
    """Rewrite `model` and compile it to kernels that run on `threads` threads (None: all cores).

    `precision` "fp32" may reorder sums; "exact" leaves out every rule that does not hold bit for
    bit. `verify` runs seeded inputs through every stage and raises VerificationError where a stage
    differs from the interpreter.

    What satura's own rules make of a model is kept on disk beside the kernels, and not searched for
    again: see `Compiled.is_remembered`.

    A rule of your own that hangs, fails, or floods the e-graph by itself does not stop the
    compiler: it is dropped, with a RuleDroppedWarning that names it and says why, and listed in
    `Compiled.report`. `strict` raises RuleError instead.
    """
    from satura.compiled import Compiled
    from satura.remembered import rewrite_once
    from satura.rule_sets import exact

    if precision not in PRECISIONS:
        raise CallError(f"there is no precision {precision!r}; choose from {list(PRECISIONS)}")
    if threads is not None and threads < 1:
        raise CallError(f"threads must be at least 1, not {threads}")
    chosen = exact(rules) if precision == "exact" else rules
    rewritten = rewrite_once(model, chosen, None, progress, strict)
    compiled = Compiled(rewritten, threads, progress)
    if verify:
        from satura.verify import verify as verify_stages

        verify_stages(compiled)
    return compiled


def rewritten(
    model: Model,
    rules: Rules = "default",
    limits: Limits | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> Searched:
    """`model` after load, saturation and extraction, with the report and the phases' seconds."""
    from satura.pipeline import rewrite

    return rewrite(model, rules, limits, progress, strict)
