"""The public verbs. Each imports its stages when it is called, so that `import satura` is quick.

An interrupt does not cut these imports in two: half of NumPy's would break all later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, overload

from satura.rewrite.errors import CallError, brief, file_errors
from satura.rewrite.system.interrupts import import_whole

if TYPE_CHECKING:
    from pathlib import Path

    from satura.artifact.opened import Opened
    from satura.backend.plan.compiled import CompiledSchedule
    from satura.pipeline.compiled import Compiled
    from satura.pipeline.models import Model
    from satura.pipeline.phases import Progress
    from satura.pipeline.rewritten import Rewritten
    from satura.pipeline.rule_sets import Rules
    from satura.pipeline.sizes import Dims
    from satura.pipeline.stages import Searched
    from satura.rewrite.egraph.limits import Limits
    from satura.rewrite.explain.findings import Why
    from satura.rewrite.extract.cost import CostModel
    from satura.rewrite.extract.schedule import Refusals
    from satura.rewrite.language.dsl import Rule
    from satura.rewrite.onnx.parts import Parts
    from satura.rewrite.program.program import Program
    from satura.rewrite.types.tensor_type import Array

PRECISIONS = ("exact", "fp32")


def _check(limits: Limits | None, progress: Progress | None = None, **flags: bool) -> None:
    """Raise CallError for what are not limits, no function, or neither True nor False."""
    import_whole("satura.rewrite.program.arguments")
    from satura.rewrite.program.arguments import check_flags

    check_flags(**flags)
    if progress is not None and not callable(progress):
        raise CallError(f"progress is a function of a phase and its share, not {brief(progress)}")
    if limits is not None:
        from satura.rewrite.egraph.limits import Limits

        if not isinstance(limits, Limits):
            raise CallError(f"limits are satura.Limits(rounds=..., nodes=...), not {brief(limits)}")


def load(
    model: Model, values: Mapping[str, object] | None = None, inputs: Iterable[str] = ()
) -> Program:
    """The program of an ONNX model.

    Inputs whose `values` are given become constants of it: those that decide shapes, such as axes
    and sizes, must be given unless the model declares the shapes that follow from them. Inputs that
    have an initializer in the model are constants, too, but for those named in `inputs`. A program
    takes for equal what mostly is, as open extents of operands that may broadcast, and for numbers
    what must be known and only sizes decide, as the steps of a loop: other sizes are run by what
    `compile` makes of the model, and by `interpret` of the model itself. Raises ModelError for a
    file that cannot be read, UnsupportedError for what cannot be run.
    """
    import_whole("satura.pipeline.models")
    from satura.pipeline.models import load as load_model
    from satura.pipeline.models import open_inputs

    return load_model(open_inputs(model, inputs), values)


def save(program: Program | Parts, path: str | Path) -> None:
    """Write what `load` or `optimize` gave as an ONNX model; the file appears complete or not at
    all.

    It may replace a model, also the one that the program was made of. Raises CallError where the
    file is there and is not a model: the weights of one, say, or a saved program. An
    EqualSizesWarning says where it is not for all sizes of the model that it was made of: see
    `optimize`.
    """
    import_whole("satura.rewrite.onnx.write.save")
    from satura.rewrite.onnx.write.save import save as save_onnx
    from satura.rewrite.program.arguments import as_path
    from satura.rewrite.program.equal_sizes import warn_of_equal_sizes

    with file_errors("write", path):
        save_onnx(program, as_path(path))
    warn_of_equal_sizes(program.taken, "the saved model")


def open(path: str | Path, trust: bool = False, verify: bool = False) -> Opened:
    """The program that `Compiled.save` has written to `path`, ready to run; weights are mapped.

    Machine code in the file is used only where nobody but this user can have written it, or where
    `trust` says that it is safe, and on a CPU like that on which it was saved; elsewhere the
    program is compiled again, with a warning. It computes ops of your own by the formulas that they
    had when it was saved, and warns where these are others now; for sizes that are not in its file
    they must be declared, as they were. Replace the file, and do not write to it, as long as
    its program is in use: a mapped file that is cut ends the process. `verify` compares what it
    computes with the interpreter, and raises VerificationError where it differs. Raises
    ArtifactError for a file that is damaged, of another version, or not a saved program, FileError
    where there is none.
    """
    for module in ("artifact.opened", "pipeline.again", "rewrite.program.arguments"):
        import_whole(f"satura.{module}")
    from satura.artifact.opened import open_artifact
    from satura.pipeline.again import search_again
    from satura.rewrite.program.arguments import check_flags, path_text

    check_flags(trust=trust, verify=verify)
    with file_errors("open", path):
        opened = open_artifact(path_text(path), trust, search_again)
    if verify:
        import_whole("satura.pipeline.verify")
        from satura.pipeline.verify import verify_opened

        verify_opened(opened)
    return opened


def interpret(program: Model, arguments: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs of a program or model by name, computed op by op with NumPy: slow, and the reference.

    A model is loaded for the sizes of the arguments; a program that was loaded before may exclude
    some, see `load`. Raises CallError when the arguments do not fit the inputs, and for sizes at
    which the program does not run.
    """
    import_whole("satura.rewrite.program.interpreter")
    import_whole("satura.pipeline.models")
    from satura.pipeline.models import load_fitting
    from satura.rewrite.program.interpreter import interpret as interpret_program

    loaded, names = load_fitting(program, arguments)
    return interpret_program(loaded, arguments, names)


@overload
def optimize(
    model: Program, rules: Rules = "default", limits: Limits | None = None, strict: bool = False,
    dims: Dims | None = None, cost: CostModel | str | None = None, inputs: Iterable[str] = (),
) -> Program: ...  # fmt: skip


@overload
def optimize(
    model: Model, rules: Rules = "default", limits: Limits | None = None, strict: bool = False,
    dims: Dims | None = None, cost: CostModel | str | None = None, inputs: Iterable[str] = (),
) -> Program | Parts: ...  # fmt: skip


def optimize(
    model: Model, rules: Rules = "default", limits: Limits | None = None, strict: bool = False,
    dims: Dims | None = None, cost: CostModel | str | None = None, inputs: Iterable[str] = (),
) -> Program | Parts:  # fmt: skip
    """The cheapest program that the rules can make of `model` within `limits`.

    Of a model with nodes whose result sizes depend on data, such as NonZero, these are Parts: the
    cheapest `programs`, and between them such nodes as they are, `kept`. `save` writes
    them as one model.

    A limit that cuts the search short is a warning: the best program found so far is returned.
    `save` writes nodes of `model` where nothing is cheaper for a runtime. `dims`, `cost`, `inputs`
    and rules of your own are as for `compile`; without `cost` the result is alike on all machines.

    Where axes whose sizes have different names meet in an op that broadcasts, the program is for
    equal sizes only, and may compute something else where one of them is 1: an EqualSizesWarning
    names both and the node. Give equal sizes equal names in the model; `compile` runs others, too.
    """
    import_whole("satura.pipeline.optimized")
    _check(limits, strict=strict)
    from satura.pipeline.models import open_inputs
    from satura.pipeline.optimized import optimized
    from satura.rewrite.program.equal_sizes import warn_of_equal_sizes

    source = open_inputs(model, inputs)
    made = optimized(source, rules, limits, strict=strict, cost=cost, dims=dims).made
    warn_of_equal_sizes(made.taken, "the program, also when it is saved,")
    return made


def why(
    rule: Rule | str, model: Model, rules: Rules = "default", limits: Limits | None = None
) -> Why:
    """Why a rule (or the rule of that name in `rules`) fires on `model` beside `rules`, or not.

    Raises RuleError where there is no such rule, or where it fails in a computation. Rules of your
    own that do not end are stopped, as by `compile`.
    """
    import_whole("satura.pipeline.stages")
    _check(limits)
    from satura.pipeline.rule_sets import rule_set
    from satura.pipeline.stages import rules_for, saturate_beside
    from satura.rewrite.explain.why import why as explain_rule
    from satura.rewrite.language.rule import Rule
    from satura.rewrite.onnx.load import load_with_names
    from satura.rewrite.program.program import Program

    if not isinstance(rule, str | Rule):
        raise CallError(f"why takes a rule or the name of one, not {type(rule).__name__}")
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
    dims: Dims | None = None,
    cost: CostModel | str | None = None,
    limits: Limits | None = None,
    executables: str = "cost",
    inputs: Iterable[str] = (),
) -> Compiled:
    """Rewrite `model` and compile it to kernels that run on `threads` threads (None: all cores;
    more than there are cores are not used).

    `precision` "fp32" may reorder sums, and multiply f32 in parts where the CPU has AMX; "exact"
    does not, and leaves out every rule that does not hold bit for bit. Of either, kernels add in an
    order that suits the layout. `verify` runs seeded inputs, of the sizes that `dims` say, through
    every stage and raises VerificationError where a stage differs from the interpreter.

    `dims` are typical sizes of symbols or ranges of them, such as {"batch": 1, "seq": (1, 512)},
    for which the program should be fast; other sizes give equally correct results. `cost` is a cost
    model, "default" for that of this CPU's kind and of `threads`, "calibrated" for the rates
    that `satura calibrate` has measured here, or "reference", which is alike on every machine. A
    search that is cut short by one of its `limits` (`satura.Limits`) warns of it, and what was
    found by then is used.

    `executables` says which dispatches share a kernel: "none", "exact" (those whose kernels are
    equal), "generic" (a kernel made for one also runs others, wherever it can), or "cost": where
    that loses less time than it takes to compile another.

    `inputs` names inputs for which the model has initializers, and which each call is to give:
    others of this kind are constants, as all weights are in models of old exporters.

    What satura's own rules make of a model is kept on disk beside the kernels, and not searched for
    again: see `Compiled.is_remembered`. A file that was compiled so before is opened, weights and
    all, as `open` does it: the next process imports no compiler until it asks for more than calls.

    A rule of your own that hangs, fails, or floods the e-graph by itself does not stop the
    compiler: it is dropped, with a RuleDroppedWarning that names it and says why, and listed in
    `Compiled.report`. `strict` raises RuleError instead.

    Where inputs decide shapes by their values, as axes and sizes do, the model is compiled for the
    values of each call, and the programs for the last few are kept.
    """
    import_whole("satura.pipeline.compiled")
    from satura.backend.plan.merging import MERGING
    from satura.backend.target import threads_for
    from satura.pipeline.compiled import Compiled
    from satura.pipeline.models import input_names, open_inputs
    from satura.pipeline.ready import keep, key_of, recalled
    from satura.pipeline.rule_sets import exact

    if precision not in PRECISIONS:
        raise CallError(f"there is no precision {brief(precision)}; choose from {list(PRECISIONS)}")
    if executables not in MERGING:
        raise CallError(f"executables is {brief(executables)}; choose from {list(MERGING)}")
    _check(limits, progress, verify=verify, strict=strict)
    count, names = threads_for(threads), input_names(inputs)
    is_exact = precision == "exact"
    chosen = exact(rules) if is_exact else rules

    def make(progress: Progress | None = None) -> CompiledSchedule:
        import_whole("satura.pipeline.parts")
        import_whole("satura.pipeline.remembered")
        from satura.pipeline.parts import Making
        from satura.pipeline.rates import cost_model
        from satura.pipeline.remembered import rewrite_once
        from satura.pipeline.sizes import middles, typical_sizes

        def search(model: Model, progress: Progress | None, refusals: Refusals | None) -> Rewritten:
            return rewrite_once(
                model, chosen, limits, progress, strict,
                lambda program: cost_model(cost, count, typical_sizes(program, dims), is_exact),
                refusals, middles(dims), is_exact,
            )  # fmt: skip

        return Making(
            lambda model, refusals: search(model, progress, refusals),
            lambda program, refusals: search(program, None, refusals).schedule, dims,
            chosen, count, progress, executables, verify,
        ).kernels(open_inputs(model if key is None else key.model, names))  # fmt: skip

    key, started = None, perf_counter()
    if not verify:
        key = key_of(model, chosen, is_exact, limits, cost, dims, count, executables, names)
    found = None if key is None else recalled(key, limits, make)
    if found is not None:
        found.phases["recall"] = perf_counter() - started
        return Compiled(found)
    kernels = make(progress)
    if key is not None:
        keep(key, kernels, limits)
    return Compiled(kernels)


def rewritten(
    model: Model,
    rules: Rules = "default",
    limits: Limits | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> Searched:
    """`model` after load, saturation and extraction, with the report and the phases' seconds."""
    import_whole("satura.pipeline.stages")
    _check(limits, progress, strict=strict)
    from satura.pipeline.stages import rewrite

    return rewrite(model, rules, limits, progress, strict)
