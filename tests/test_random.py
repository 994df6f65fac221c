"""Random whole programs through the full pipeline, against the interpreter and onnxruntime."""

from __future__ import annotations

import warnings

import onnxruntime
import pytest
from tests.random_programs import compare, random_program

import satura
from satura.rewrite.interpreter import interpret
from satura.rewrite.ir import Program
from satura.rewrite.onnx.save import to_model
from satura.rewrite.types import Array


def report(seed: int, program: Program, found: dict[str, str | None]) -> None:
    """Fail with a program that can be pasted where an output differs."""
    wrong = {name: text for name, text in found.items() if text}
    assert not wrong, f"seed {seed}: {wrong}\n{program.python()}"


def check(seed: int) -> None:
    """Compile and run random program `seed`, rewritten and not, and compare every output."""
    program, arguments, exact = random_program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NaN and inf are normal inputs
        expected = interpret(program, arguments)
        got = satura.compile(program, threads=2).run(arguments)
    report(seed, program, {n: compare(expected[n], got[n], exact[n]) for n in expected})


def check_saved(seed: int) -> None:
    """Rewrite random program `seed`, save it, run it in onnxruntime, and compare every output."""
    program, arguments, exact = random_program(seed)
    optimised = satura.optimize(program)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        to_model(optimised).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = list(exact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = interpret(program, arguments)
        results: list[Array] = session.run(names, arguments)
    got = dict(zip(names, results, strict=True))
    report(seed, program, {n: compare(expected[n], got[n], exact[n]) for n in names})


@pytest.mark.parametrize("seed", range(60))
def test_compiled_programs_equal_the_interpreter(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(60))
def test_saved_programs_equal_the_interpreter(seed: int) -> None:
    check_saved(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_a_thousand_programs(seed: int) -> None:
    check(seed)
    check_saved(seed)
