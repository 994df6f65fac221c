"""Random whole programs through the full pipeline, against the interpreter and onnxruntime."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

import satura
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType
from tests.onnxruntime_reference import kept_by_pools, with_casts_in_two_steps
from tests.onnxruntime_reference import run as run_onnxruntime
from tests.random_programs import compare, random_program
from tests.tiers import deep_but, seeds


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
    drawn, arguments, exact = random_program(seed)
    program, optimised = with_casts_in_two_steps(drawn), satura.optimize(drawn)
    names = list(exact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = interpret(program, arguments)
        kept = kept_by_pools(program, arguments, expected)
        results = run_onnxruntime(to_model(optimised), arguments)
    got = {
        n: np.where(kept[n], as_type(result, expected[n]), expected[n])
        for n, result in zip(names, results, strict=True)
    }
    # ONNX leaves the sign of a zero open for relu, max, min and max pooling.
    found = {n: compare(unsigned(expected[n]), unsigned(got[n]), exact[n]) for n in names}
    report(seed, drawn, found)


def as_type(result: Array, wanted: Array) -> Array:
    """onnxruntime gives bf16 as f32."""
    return result.astype(wanted.dtype) if wanted.dtype == DType.BF16.numpy else result


def unsigned(values: Array) -> Array:
    """The values with every zero positive."""
    return np.where(values == 0, np.zeros_like(values), values)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_satura_rounds_a_cast_once_and_onnxruntime_twice(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", DType.F64, (2,))
    program = build.program({"y": build.cast(x, dtype)})
    middle = 1 + float(ml_dtypes.finfo(dtype.numpy).eps) / 2
    arguments = {"x": np.array([middle - 1e-12, middle + 1e-12])}
    once = interpret(program, arguments)["y"]
    twice = interpret(with_casts_in_two_steps(program), arguments)["y"]
    assert once[0] < once[1] and twice[0] == twice[1]
    np.testing.assert_array_equal(satura.compile(program).run(arguments)["y"], once)
    (saved,) = run_onnxruntime(to_model(program), arguments)
    np.testing.assert_array_equal(as_type(saved, twice), twice)


@pytest.mark.parametrize("seed", deep_but([2], range(120), range(12)))
def test_compiled_programs_equal_the_interpreter(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", deep_but(range(4, 6), range(240), range(20)))
def test_saved_programs_equal_the_interpreter(seed: int) -> None:
    check_saved(seed)


@pytest.mark.parametrize("part", deep_but((), range(200), ()))
def test_ten_thousand_programs(part: int) -> None:
    for seed in seeds(50, 1000 + 50 * part):
        check(seed)
        check_saved(seed)
