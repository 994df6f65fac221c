"""Counterexamples: small also where nothing small is drawn, in few steps, and run as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from satura.language import (
    Axes,
    DType,
    Law,
    Perm,
    Rule,
    Tensor,
    TensorType,
    attribute_function,
    cast,
    matmul,
    reduce,
    rewrites,
    rule,
    transpose,
    unary,
)
from satura.pipeline.rule_file import load_rules
from satura.rewrite.check import shrink
from satura.rewrite.check.both_sides import Failure, examine
from satura.rewrite.check.counterexample import counterexample
from satura.rewrite.check.disagreement import disagreement
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.shrink import smallest
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array
from satura.testing import check


@attribute_function
def keeps_four(p: Perm) -> bool:
    """Whether the first four of several axes stay."""
    return len(p.order) > 4 and p.order[:4] == (0, 1, 2, 3)


@rule
def drop_high_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x where the first four axes stay"""
    return rewrites(transpose(x, p), x, keeps_four(p))


@rule
def product_in_i16(x: Tensor, y: Tensor) -> Law:
    """i32(i16(x) y) = i32(x) y for bytes: not where the sum is no i16"""
    left = cast(matmul(cast(x, DType.I16), cast(y, DType.I16)), DType.I32)
    right = matmul(cast(x, DType.I32), cast(y, DType.I32))
    return rewrites(left, right, x.type.dtype == DType.I8, y.type.dtype == DType.I8)


@rule
def negate_nothing(x: Tensor) -> Law:
    """-x = x"""
    return rewrites(unary("neg", x), x)


def failure_at(law: Rule, **values: TensorType | Attribute) -> Failure:
    """How the law fails for an instance of these values."""
    (direction,) = law.directions
    instance = Instance(direction, tuple(values.items()), 0)
    drawn = (examine(instance, law.exact, Draw(Random(seed), specials=0.9)) for seed in range(99))
    return next(failure for failure in drawn if failure is not None)


def test_extents_shrink_where_none_are_drawn_so() -> None:
    x = TensorType(DType.F32, (symbol("n") + 2, 8, 1, 0, 8, 3))
    found = shrink.smallest(failure_at(drop_high_transpose, x=x, p=Perm((0, 1, 2, 3, 5, 4))), True)
    assert found.instance is not None
    assert found.instance.types["x"].shape[:4] == (1, 1, 1, 1)
    assert set(found.instance.types["x"].shape[4:]) == {1, 2}
    assert found.reason.startswith("the left side is f32[1, 1, 1, 1, ")


def test_a_sum_that_wraps_is_of_few_products() -> None:
    x, y = (TensorType(DType.I8, shape) for shape in ((8, 12), (12, 3)))
    found = shrink.smallest(failure_at(product_in_i16, x=x, y=y), True)
    assert found.instance is not None
    assert found.instance.types["x"].shape == (1, 2) and found.instance.types["y"].shape == (2, 1)


def test_long_arguments_are_simplified_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = failure_at(negate_nothing, x=TensorType(DType.I8, (100, 100)))
    times = 0

    def counted(*arguments: object) -> str:
        nonlocal times
        times += 1
        return "they always differ"

    monkeypatch.setattr(shrink, "disagreement", counted)
    monkeypatch.setattr(shrink, "SIMPLE", ())
    monkeypatch.setattr(shrink, "COMPUTED", 60)
    shrink.smallest(replace(failure, instance=None), exact=True)
    assert times <= 61


@rule
def multiply_transposed(x: Tensor, y: Tensor, p: Perm) -> Law:
    """(x y)^p = x^p y, which often has no type"""
    return rewrites(transpose(matmul(x, y), p), matmul(transpose(x, p), y))


def run(text: str, folder: Path) -> list[str]:
    """The lines that a pasted program prints."""
    script = folder / "pasted.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_an_op_that_does_not_fit_is_tried_again(tmp_path: Path) -> None:
    failure = failure_at(
        multiply_transposed,
        x=TensorType(DType.F32, (2, 3)),
        y=TensorType(DType.F32, (3, symbol("n"))),
        p=Perm((1, 0)),
    )
    found = counterexample(failure, multiply_transposed)
    assert "build.add('matmul', (v4, v1, ))" in found.program
    assert found.program.count("cannot be computed") == 1 and "f32[" not in found.program
    left, right = run(found.program, tmp_path)
    assert left == f"left  {found.left}"
    assert right.startswith("right the right side cannot be computed: matmul(f32[3, 2], f32[3, ")


FILE = '''
from satura.language import Law, Perm, Tensor, attribute_function, rewrites, rule, transpose


@attribute_function
def second(p: Perm) -> Perm:
    return Perm((p.order[0], p.order[1], *p.order[2:]))


@rule
def same_first_two(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, p with its first two axes as they are)"""
    return rewrites(transpose(x, p), transpose(x, second(p)))
'''


def test_a_function_that_raises_refutes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    (law,) = load_rules(file)
    report = check(law)
    assert report.verdict == "failed" and report.counterexample is None and not report.is_sound
    assert re.fullmatch(
        rf"rule 'same_first_two' \({file}:10\): IndexError: .*, raised in second, {file}:7, for p ="
        r" \[0?\]; an attribute function must answer or raise Refuse",
        report.reason,
    )


def test_a_condition_that_has_no_answer_is_told_to_come_after_another() -> None:
    @rule
    def stays(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = -transpose(-x, p) where axis 0 stays: there may be none"""
        negative = unary("neg", transpose(unary("neg", x), p))
        return rewrites(transpose(x, p), negative, p.order[0] == 0, x.type.dtype.is_float)

    report = check(stays)
    assert report.verdict == "failed"
    assert report.reason.endswith("let a condition before it leave such operands out")


def test_a_wrong_law_is_refuted_where_it_has_an_answer() -> None:
    """The search for a smaller instance keeps to those for which nothing is raised."""

    @attribute_function
    def second(p: Perm) -> Perm:
        return Perm((p.order[1], p.order[0], *p.order[2:]))

    @rule
    def swap(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = transpose(x, p with its first two axes exchanged)"""
        return rewrites(transpose(x, p), transpose(x, second(p)))

    failure = failure_at(swap, x=TensorType(DType.F32, (2, 3)), p=Perm((1, 0)))
    assert not failure.is_raised and not smallest(failure, exact=True).is_raised


@rule
def sum_in_f32(x: Tensor, axes: Axes) -> Law:
    """i32(sum(f32(x))) = sum(i32(x)) for bytes: not of more than 65,793 of them"""
    left = cast(reduce("sum", cast(x, DType.F32), axes), DType.I32)
    return rewrites(left, reduce("sum", cast(x, DType.I32), axes), x.type.dtype == DType.U8)


@pytest.mark.deep
def test_long_sums_are_shown_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0

    def counted(program: Program, arguments: dict[str, Array], exact: bool) -> str:
        nonlocal times
        times += 1
        return disagreement(program, arguments, exact)

    monkeypatch.setattr(shrink, "disagreement", counted)
    assert check(sum_in_f32).verdict == "refuted"
    assert 100 < times < 10_000
