"""Verification: every stage of a compiled program against the NumPy interpreter."""

from __future__ import annotations

from collections.abc import Mapping

from satura.pipeline.compiled import Compiled
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import VerificationError
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.tensor_type import Array

TOLERANCE = 1e-4


def verify(compiled: Compiled, arguments: Mapping[str, Array] | None = None) -> None:
    """Compare each stage with the interpreter on `arguments` (seeded random ones by default).

    Raises VerificationError that names the first stage whose results are further than TOLERANCE
    of the largest value from what the loaded program means.
    """
    given = random_inputs(compiled.source) if arguments is None else dict(arguments)
    expected = interpret(compiled.source, given)
    _check("the rules", interpret(compiled.program, given), expected)
    _check("the kernels", compiled.run(given), expected)


def _check(stage: str, results: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    for name, reference in expected.items():
        error = relative_error({name: results[name]}, {name: reference})
        if error > TOLERANCE:
            raise VerificationError(
                f"output {name!r} is wrong after {stage}: its largest error is {error:.2g} of its "
                f"largest value, more than {TOLERANCE:g}; please report the model"
            )
