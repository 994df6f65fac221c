"""What the backend refuses is struck out, and the next best is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.backend.lower.walk import LoweringError
from satura.backend.plan import kernels
from satura.errors import LimitWarning, StruckWarning
from satura.pipeline.inputs import random_inputs
from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType

Refused = Callable[[Schedule, Dispatch], bool]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))


def refuse(monkeypatch: pytest.MonkeyPatch, is_refused: Refused) -> None:
    """Plant a fault: some dispatches are of no form that the backend knows."""
    lowered = kernels.kernel_code

    def planted(schedule: Schedule, dispatch: Dispatch, *others: object) -> object:
        if is_refused(schedule, dispatch):
            raise LoweringError(f"no {dispatch.form.value} of {len(dispatch.nodes)}")
        return lowered(schedule, dispatch, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(kernels, "kernel_code", planted)


def attention(rows: Dim = 6) -> Program:
    """Two layers of softmax(relu(x · w)), with a residual sum; relu(x · w)."""
    build = Builder()
    x = build.input("x", DType.F32, (rows, 8))
    for layer in range(2):
        weights = np.random.default_rng(layer).standard_normal((8, 8)).astype(np.float32)
        product = build.matmul(x, build.constant(weights))
        scores = build.unary("relu", product)
        highest = build.broadcast(build.reduce("max", scores, (1,)), (rows, 8))
        powers = build.unary("exp", build.binary("sub", scores, highest))
        total = build.broadcast(build.reduce("sum", powers, (1,)), (rows, 8))
        x = build.binary("add", x, build.binary("div", powers, total))
    return build.program({"y": build.unary("relu", build.matmul(x, build.constant(weights)))})


def is_long_row(schedule: Schedule, dispatch: Dispatch) -> bool:
    return dispatch.form is Form.ROW and len(dispatch.nodes) > 3


def is_fused_product(schedule: Schedule, dispatch: Dispatch) -> bool:
    return dispatch.form is Form.CONTRACTION and len(dispatch.nodes) > 1


def error_of(compiled: satura.Compiled, program: Program, rows: int = 6) -> float:
    arguments = random_inputs(program, {"n": rows} if program.symbols else None)
    return relative_error(compiled.run(arguments), satura.interpret(program, arguments))


@pytest.mark.parametrize("is_refused", [is_long_row, is_fused_product])
def test_another_choice_is_compiled(monkeypatch: pytest.MonkeyPatch, is_refused: Refused) -> None:
    program = attention()
    whole = satura.compile(program, threads=1)
    assert not whole.report.struck
    schedule = whole.rewritten.schedule
    assert any(is_refused(schedule, each) for each in schedule.dispatches)
    refuse(monkeypatch, is_refused)
    with pytest.warns(StruckWarning, match="please report"):  # also what is remembered is refused
        compiled = satura.compile(program, threads=1)
    assert not compiled.is_remembered
    assert compiled.report.struck and all(": no " in each for each in compiled.report.struck)
    assert "struck out: " in str(compiled.report)
    schedule = compiled.rewritten.schedule
    assert not any(is_refused(schedule, each) for each in schedule.dispatches)
    assert error_of(compiled, program) < 1e-5
    with pytest.warns(StruckWarning):
        again = satura.compile(program, threads=1)
    assert again.is_remembered and again.report == compiled.report


def test_a_search_made_again_warns_of_its_limit_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, is_long_row)
    with pytest.warns(StruckWarning), pytest.warns(LimitWarning) as seen:
        satura.compile(attention(), threads=1, limits=satura.Limits(rounds=0))
    assert [each.category for each in seen] == [LimitWarning, StruckWarning]


def test_what_is_refused_at_some_sizes_is_replaced_when_they_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = attention(symbol("n"))

    def is_refused(schedule: Schedule, dispatch: Dispatch) -> bool:
        rows = schedule.program.nodes[dispatch.root].type.shape[0]
        return is_long_row(schedule, dispatch) and bool(rows == 1)  # a fact of the class

    refuse(monkeypatch, is_refused)
    compiled = satura.compile(program, threads=1)
    assert error_of(compiled, program) < 1e-5
    assert not compiled.report.struck
    with pytest.warns(StruckWarning):
        assert error_of(compiled, program, 1) < 1e-5
    assert compiled.report.struck
    assert error_of(compiled, program) < 1e-5
    assert [report.sizes for report in compiled.cache] == [{"n": 1}]  # of the other program


def test_where_everything_is_refused_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, lambda schedule, dispatch: dispatch.form is Form.CONTRACTION)
    with pytest.raises(LoweringError, match=r"report the model: contraction of .*: no contraction"):
        satura.compile(attention(), threads=1)
