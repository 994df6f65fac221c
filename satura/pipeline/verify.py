"""Verification: every stage of a compiled program against the NumPy interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import DEFAULT_SIZE, random_arguments, random_inputs
from satura.pipeline.rule_sets import rule_set
from satura.rewrite.errors import CallError, VerificationError
from satura.rewrite.onnx.load import load_fitting
from satura.rewrite.program.interpreter import bind_sizes, interpret
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.tensor_type import Array

if TYPE_CHECKING:
    from satura.artifact.opened import Opened
    from satura.artifact.ready import ReadyProgram
    from satura.rewrite.onnx.files import ModelApart
    from satura.rewrite.program.program import Program

TOLERANCE = 1e-4


def verify(
    compiled: Compiled, arguments: Mapping[str, Array] | None = None,
    model: ModelApart | None = None, values: Mapping[str, Array] | None = None,
) -> None:  # fmt: skip
    """Compare each stage with the interpreter on `arguments`: by default seeded random ones, of the
    sizes that the program is made for, and else of DEFAULT_SIZE or others at which it runs.

    At sizes that the program excludes, what runs is another one of its `model` for these `values`.
    Raises VerificationError that names the first stage whose results are further than TOLERANCE
    of the largest value from what the loaded program means.
    """
    source, dims = compiled.source, compiled.rewritten.dims
    if arguments is None:
        named = {name: size for name, size in dims.items() if name in source.symbols}
        arguments = random_inputs(source, source.typical_beside(named, DEFAULT_SIZE))
    if model is None or _runs(source, arguments):
        expected = interpret(source, arguments)
        _check("the rules", interpret(compiled.program, arguments), expected, _theirs(compiled))
    else:
        expected = interpret(load_fitting(model, arguments, values)[0], arguments)
    _check("the kernels", compiled.run(arguments), expected)


def _runs(program: Program, arguments: Mapping[str, Array]) -> bool:
    """Whether a program runs at the sizes of these arguments."""
    try:
        return program.runs_at(bind_sizes(program, arguments))
    except CallError:
        return False


def verify_opened(opened: Opened) -> None:
    """Compare each program of a saved file with the interpreter, on seeded random inputs of all
    sizes that it is ready for, or else of some that it runs at.

    Sizes that a program excludes are compared with the model at these sizes, where the file has it.
    Raises VerificationError as `verify` does, ArtifactError for damage.
    """
    from satura.artifact.again import schedule_of

    for each in opened.programs:
        program = schedule_of(each).program
        usual = program.typical_beside({}, DEFAULT_SIZE)
        for sizes in each.every_size or [usual]:
            source = _source_at(each, program, sizes)
            if source is None:
                continue
            given = random_arguments(each.types_at(sizes), sizes)
            try:
                expected = interpret(source, given)
            except CallError:
                continue  # an index that was drawn is outside of a short axis, say
            found = each.planned(tuple(sorted(sizes.items()))).run(given, None)
            _check("it was saved", found, expected)


def _source_at(opened: ReadyProgram, program: Program, sizes: Mapping[str, int]) -> Program | None:
    """What a file means at sizes: its `program`, or the model; None where it does not say."""
    from satura.artifact.elsewhere import program_at

    if sizes.keys() == program.symbols and program.runs_at(sizes):
        return program
    return program_at(opened, sizes)


def _theirs(compiled: Compiled) -> list[str]:
    """The rules that fired and are not of the book."""
    if compiled.is_remembered:  # only results of the book are
        return []
    book = {direction.label for rule in rule_set("default") for direction in rule.directions}
    fired = [entry.name for entry in compiled.report.rules if entry.matches]
    return [name for name in fired if name not in book]


def _check(
    stage: str,
    results: Mapping[str, Array],
    expected: Mapping[str, Array],
    theirs: Sequence[str] = (),
) -> None:
    advice = "please report the model"
    if theirs:
        advice = f"rules of yours fired: try {', '.join(theirs)} with `satura check`"
    for name, reference in expected.items():
        error = relative_error({name: results[name]}, {name: reference})
        if error > TOLERANCE:
            raise VerificationError(
                f"output {name!r} is wrong after {stage}: its largest error is {error:.2g} of its "
                f"largest value, more than {TOLERANCE:g}; {advice}"
            )
