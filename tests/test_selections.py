"""The first place in the order of a row is that of its largest element."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.extract.schedule import Form
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT


@pytest.mark.parametrize(("count", "is_largest", "form"), [
    (1, True, Form.ROW), (1, False, Form.ALONE), (2, True, Form.ALONE),
])  # fmt: skip
def test_only_the_first_of_the_largest_is_a_reduction(
    count: int, is_largest: bool, form: Form
) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (7, 33))
    program = build.program({"y": build.first_places(x, count, is_largest)})
    (dispatch,) = best_schedule(saturate(program, DEFAULT)).dispatches
    assert dispatch.form is form
    given = np.random.default_rng(0).integers(-3, 3, (7, 33)).astype(np.float32)
    given[2:5, ::7] = np.nan
    given[5] = -0.0
    given[5, 1::2] = 0.0
    given[6] = -np.inf
    found = satura.compile(program, threads=1).run({"x": given})["y"]
    assert np.array_equal(found, interpret(program, {"x": given})["y"])
