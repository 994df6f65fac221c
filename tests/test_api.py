"""The public verbs on small programs: calls, checks of arguments, rules, verification, threads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import satura
from satura.ops import local_ops, op
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import CallError, VerificationError
from satura.rewrite.language.dsl import Law, RuleSet, Tensor, rewrites, rule
from satura.rewrite.language.terms import unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType, TensorType

X = np.array([[1, -2, 3], [-4, 5, np.nan]], np.float32)
Y = np.array([[0.5, np.inf, -0.0], [1, 2, 3]], np.float32)


@pytest.fixture(scope="module")
def program() -> Program:
    """sum = x + y and clipped = relu(x), both [rows, 3]."""
    build = Builder()
    shape = (symbol("rows"), 3)
    x, y = build.input("x", DType.F32, shape), build.input("y", DType.F32, shape)
    return build.program({"sum": build.binary("add", x, y), "clipped": build.unary("relu", x)})


@pytest.fixture(scope="module")
def compiled(program: Program) -> satura.Compiled:
    return satura.compile(program, threads=2)


def test_inputs_and_outputs_have_names_and_types(compiled: satura.Compiled) -> None:
    assert {name: str(type_) for name, type_ in compiled.inputs.items()} == {
        "x": "f32[rows, 3]",
        "y": "f32[rows, 3]",
    }
    assert list(compiled.outputs) == ["sum", "clipped"]


def test_run_takes_and_gives_arrays_by_name(compiled: satura.Compiled) -> None:
    results = compiled.run({"y": Y, "x": X})
    np.testing.assert_array_equal(results["sum"], X + Y)
    np.testing.assert_array_equal(results["clipped"], np.maximum(X, 0))


@pytest.mark.parametrize(
    "call",
    [lambda f: f(X, Y), lambda f: f(X, y=Y), lambda f: f(y=Y, x=X)],
    ids=["by position", "mixed", "by keyword"],
)
def test_calls(
    compiled: satura.Compiled, call: Callable[[satura.Compiled], tuple[np.ndarray, np.ndarray]]
) -> None:
    total, clipped = call(compiled)
    np.testing.assert_array_equal(total, X + Y)
    np.testing.assert_array_equal(clipped, np.maximum(X, 0))


def test_one_output_is_returned_as_it_is() -> None:
    build = Builder()
    program = build.program({"y": build.unary("neg", build.input("x", DType.F32, (3,)))})
    result = satura.compile(program, threads=1)(np.array([1, 2, 3], np.float32))
    np.testing.assert_array_equal(result, np.array([-1, -2, -3], np.float32))


def test_arguments_may_have_any_layout_and_stay_as_they_are(compiled: satura.Compiled) -> None:
    wide = np.zeros((4, 9), np.float32)
    strided, reversed_ = wide[::2, ::3], X[::-1]
    strided[:] = Y
    strided.flags.writeable = False
    copies = strided.copy(), reversed_.copy()
    results = compiled.run({"x": reversed_, "y": strided})
    np.testing.assert_array_equal(results["sum"], copies[0] + copies[1])
    np.testing.assert_array_equal(strided, copies[0])
    np.testing.assert_array_equal(reversed_, copies[1])


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
def test_one_program_serves_every_size(compiled: satura.Compiled, rows: int) -> None:
    arguments = random_inputs(compiled.source, {"rows": rows})
    expected = satura.interpret(compiled.source, arguments)
    assert relative_error(compiled.run(arguments), expected) == 0


WRONG_CALLS: dict[str, tuple[dict[str, object], str]] = {
    "unknown name": ({"x": X, "y": Y, "z": Y}, "'z'"),
    "missing": ({"x": X}, "'y'"),
    "wrong dtype": ({"x": X, "y": Y.astype(np.float64)}, "float64"),
    "wrong rank": ({"x": X, "y": Y[0]}, "'y'"),
    "wrong extent": ({"x": X[:, :2], "y": Y[:, :2]}, "axis 1"),
    "sizes that contradict": ({"x": X, "y": Y[:1]}, "rows"),
    "sizes that contradict upwards": ({"x": X[:1], "y": Y}, "rows"),
    "a list": ({"x": X.tolist(), "y": Y}, "'x'"),
    "a number": ({"x": 2.0, "y": Y}, "'x' must be f32"),
    "a list of lists of several lengths": ({"x": [[1.0], []], "y": Y}, "'x' is not an array"),
    "masked": ({"x": np.ma.masked_array(X, True), "y": Y}, "input 'x' is masked"),
    "nothing": ({"x": None, "y": Y}, "input 'x' is missing: it is None"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_arguments_are_named(compiled: satura.Compiled, program: Program, case: str) -> None:
    arguments, expected = WRONG_CALLS[case]
    with pytest.raises(CallError, match=expected):
        compiled.run(arguments)
    with pytest.raises(CallError, match=expected):
        satura.interpret(program, arguments)  # type: ignore[arg-type]


def test_scalars_of_numpy_are_arrays() -> None:
    def chosen(x: TensorType, y: TensorType, t: TensorType) -> TensorType:
        """x where t, else y"""
        return x

    build = Builder()
    operands = [build.input(name, DType.BOOL, ()) for name in "xyt"]
    with local_ops():
        pick = op(reference=lambda x, y, t: np.where(t, x, y))(chosen)
        program = build.program({"z": build.add(pick, tuple(operands))})
        arguments = {"x": np.True_, "y": np.False_, "t": np.True_}
        found = satura.interpret(program, arguments)["z"]  # type: ignore[arg-type]
        assert found.shape == () and bool(found)


def test_sizes_that_the_program_is_not_made_for() -> None:
    build = Builder()
    rows = symbol("rows")
    x, table = build.input("x", DType.F32, (rows,)), build.constant(np.zeros(4, np.float32))
    y = build.binary("add", x, build.slice(table, (0,), (rows,)))
    compiled = satura.compile(build.program({"y": y}), threads=1)
    np.testing.assert_array_equal(compiled(np.ones(4, np.float32)), np.ones(4))
    with pytest.raises(CallError, match=r"these sizes: slice"):
        compiled(np.ones(5, np.float32))


MISTAKES: list[tuple[str, Callable[[satura.Compiled, Program], object]]] = [
    ("dims are a dict by name, not int", lambda c, p: satura.compile(p, dims=5)),  # type: ignore[arg-type]
    ("arrays of out are a dict", lambda c, p: c.run(X, Y, out=[X])),  # type: ignore[arg-type]
    ("arrays of out are a dict", lambda c, p: c(X, Y, out=X)),
    ("to bind are a dict by name", lambda c, p: c.bind(None)),  # type: ignore[arg-type]
    ("sizes are a dict by name, or several", lambda c, p: c.prepare(None)),  # type: ignore[arg-type]
    ("sizes are a dict by name, not int", lambda c, p: c.prepare([5])),  # type: ignore[list-item]
    ("rounds is 0", lambda c, p: c.measure({"x": X, "y": Y}, rounds=0)),
    ("a path is text or a Path, not int", lambda c, p: c.save(5)),  # type: ignore[arg-type]
    ("a path is text or a Path, not bytes", lambda c, p: satura.open(b"x")),  # type: ignore[arg-type]
    ("a path is text", lambda c, p: satura.save(p, None)),  # type: ignore[arg-type]
    ("'x' is masked", lambda c, p: c.bind({"x": np.ma.masked_array(X, True), "y": Y})),
    ("not MaskedArray", lambda c, p: c.run(X, Y, out={"sum": np.ma.masked_array(X)})),
    ("why takes a rule", lambda c, p: satura.why(5, p)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("message", "mistake"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_mistakes_of_kind_are_one_error(
    compiled: satura.Compiled, program: Program, message: str,
    mistake: Callable[[satura.Compiled, Program], object],
) -> None:  # fmt: skip
    with pytest.raises(CallError, match=message):
        mistake(compiled, program)


def test_a_long_argument_is_not_shown_whole(compiled: satura.Compiled, program: Program) -> None:
    long: Any = [0] * 1000
    names = ("threads", "precision", "rules", "progress", "strict", "cost", "limits")
    options = [{name: long} for name in names] + [{"dims": {"rows": long}}]
    mistakes: list[Callable[[], object]] = [
        *(partial(satura.compile, program, **each) for each in options),
        partial(compiled.measure, {"x": X, "y": Y}, long),
        partial(compiled.prepare, {"rows": long}),
        partial(satura.Limits, nodes=long),
    ]
    for mistake in mistakes:
        with pytest.raises(CallError, match=r"0, 0, .*… \(of type (list|dict)\)") as caught:
            mistake()
        assert len(str(caught.value)) < 300


def test_wrong_calls_are_named(compiled: satura.Compiled) -> None:
    with pytest.raises(CallError, match="3 arguments for the 2 inputs"):
        compiled(X, Y, X)
    with pytest.raises(CallError, match="'x' is given by position and by name"):
        compiled(X, x=X)
    how = "a call takes arrays by position or by keyword; `run` takes a dict or a list of them"
    with pytest.raises(CallError, match=f"input 'x' is a dict, and not an array; {how}"):
        compiled({"x": X, "y": Y}, Y)
    for collected in ([X, Y], (X, Y)):
        with pytest.raises(CallError, match=how):
            compiled(collected)
    with pytest.raises(CallError, match=r"not float64\[\]$"):
        compiled(1.0, Y)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"threads": 0}, "threads"),
        ({"precision": "fast"}, "'fast'"),
        ({"rules": "all"}, "'all'"),
    ],
)
def test_wrong_options_are_named(
    program: Program, options: dict[str, object], expected: str
) -> None:
    with pytest.raises(CallError, match=expected):
        satura.compile(program, **options)  # type: ignore[arg-type]


@rule
def forget_abs(x: Tensor) -> Law:
    """abs(x) = x, which is wrong"""
    return rewrites(unary("abs", x), x)


@rule(reassociates=True)
def forget_neg(x: Tensor) -> Law:
    """-x = x, which is wrong, but claims to be rounding"""
    return rewrites(unary("neg", x), x)


@pytest.fixture
def magnitude() -> Program:
    build = Builder()
    x = build.input("x", DType.F32, (5,))
    return build.program({"y": build.unary("abs", x), "z": build.unary("neg", x)})


def test_verification_finds_a_wrong_rule(magnitude: Program) -> None:
    satura.compile(magnitude, verify=True)
    wrong = "'y' is wrong after the rules.* try forget_abs with `satura check`"
    with pytest.raises(VerificationError, match=wrong):
        satura.compile(magnitude, rules=RuleSet(forget_abs), verify=True)


def test_exact_leaves_out_what_reassociates(magnitude: Program) -> None:
    rules = RuleSet(forget_neg)
    satura.compile(magnitude, precision="exact", rules=rules, verify=True)
    with pytest.raises(VerificationError, match="'z'"):
        satura.compile(magnitude, rules=rules, verify=True)


def test_phases_are_reported_as_they_start(
    magnitude: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "cache"))
    seen: dict[str, float] = {}
    compiled = satura.compile(magnitude, progress=seen.__setitem__)
    assert list(seen) == list(compiled.phases) == [
        "load", "recall", "saturate", "extract", "kernels",
    ]  # fmt: skip
    assert seen["kernels"] == 1.0


def test_a_limit_that_cuts_the_search_short_is_a_warning(
    magnitude: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path))
    for is_remembered in (False, True):
        with pytest.warns(satura.errors.LimitWarning, match="limit of 0 rounds"):
            short = satura.compile(magnitude, limits=satura.Limits(rounds=0))
        assert (short.is_remembered, short.report.stopped) == (is_remembered, "rounds")
    with pytest.warns(satura.errors.LimitWarning, match="stopped at its limit of 1 e-nodes"):
        satura.optimize(magnitude, limits=satura.Limits(nodes=1))
    with warnings.catch_warnings(action="error"):
        satura.compile(magnitude, limits=satura.Limits(rounds=50))
    for wrong in ({"rounds": -1}, {"nodes": 1.5}):
        with pytest.raises(CallError, match="a whole number from 0 on"):
            satura.Limits(**wrong)
    with pytest.raises(CallError, match=r"limits are satura.Limits\(rounds="):
        satura.compile(magnitude, limits="rounds=0")  # type: ignore[arg-type]


def test_eight_threads_share_one_compiled_program(compiled: satura.Compiled) -> None:
    def hundred_calls(seed: int) -> None:
        arguments = random_inputs(compiled.source, {"rows": 1 + seed % 3 * 40}, seed)
        expected = satura.interpret(compiled.source, arguments)
        for _ in range(100):
            assert relative_error(compiled.run(arguments), expected) == 0

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(hundred_calls, range(8)))


def test_save_is_the_inverse_of_load(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    satura.save(program, path)
    loaded = satura.load(path)
    arguments = {"x": X, "y": Y}
    expected = satura.interpret(program, arguments)
    assert relative_error(satura.interpret(loaded, arguments), expected) == 0
    assert str(satura.load(path)) == str(loaded)
