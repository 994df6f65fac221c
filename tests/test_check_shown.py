"""What a refutation shows: small counterexamples, and a program to paste that shows both sides."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    binary,
    cast,
    gather,
    reduce,
    reshape,
    scalar,
    slice_,
    unary,
)
from satura.rewrite.types.attributes import Axes, Axis, Shape, Slices, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.mistaken_laws import (
    QUICK,
    WRONG,
    drop_a_term,
    drop_slice_that_seems_whole,
    name_of,
    report_of,
    swell,
    widen,
)
from tests.museum import minus_itself
from tests.tiers import deep_but

SMALLEST = {
    "swap": {"x": "f32[1, 1, 2]", "p": "", "q": ""},
    "minus_itself": {"x": "f32[]"},
    "drop_slice_that_seems_whole": {"x": "", "s": ""},
    "widen": {"x": "f32[1]", "v": "f32(0.0)", "b": "[0:0]"},
    "drop_a_term": {"x": "f32[]", "y": "f32[]"},
}


@pytest.mark.parametrize("wrong", deep_but(QUICK, WRONG), ids=name_of)
def test_counterexamples_are_small(wrong: Rule) -> None:
    found = report_of(wrong).counterexample
    assert found is not None
    for name, smallest in SMALLEST.get(wrong.name, {}).items():
        assert sorted(found.bindings[name]) == sorted(smallest or found.bindings[name])
    larger = check(wrong, shrink=False).counterexample
    assert larger is not None and length(found.program) <= length(larger.program) + len("-")


@rule
def to_bool(x: Tensor) -> Law:
    """bool(x) = not (x == 0): not where nothing computes with x"""
    return rewrites(cast(x, DType.BOOL), unary("not", binary("eq", x, 0)))


@pytest.mark.deep
def test_what_only_rare_types_refute_is_small_too() -> None:
    found = report_of(to_bool).counterexample
    assert found is not None and found.bindings["x"].endswith("[]")


@pytest.mark.deep
def test_integers_that_are_seldom_drawn_are_few() -> None:
    found = report_of(compare_as_floats).counterexample
    assert found is not None and found.bindings["x"].endswith("[]")


@rule
def compare_as_floats(x: Tensor, y: Tensor) -> Law:
    """f32(x) < f32(y) = x < y: not for two large neighbours"""
    left = binary("lt", cast(x, DType.F32), cast(y, DType.F32))
    same = x.type.dtype == y.type.dtype
    return rewrites(left, binary("lt", x, y), x.type.dtype.is_integer & same)


def length(program: str) -> int:
    """Letters of a program and its arguments, whatever its element types are called."""
    made = program.partition("results = ")[0]  # how it is shown depends on what is wrong
    return len(re.sub(r"[a-zA-Z]+\d+\b|\.0\b", "", made))


def test_values_are_simple() -> None:
    found = report_of(minus_itself).counterexample
    assert found is not None and (found.left, found.right) == ("nan", "0.0")
    added = report_of(drop_a_term).counterexample
    assert added is not None and (added.left, added.right) == ("2.0", "1.0")


@pytest.mark.deep
def test_symbolic_counterexamples_name_their_sizes() -> None:
    found = report_of(drop_slice_that_seems_whole).counterexample
    assert found is not None and set(found.sizes) <= {"n", "m"} and found.sizes


@rule
def negated(x: Tensor, y: Tensor, d: DType) -> Law:
    """-d(x) * y = d(x) * y of bf16: both the type of y and that of x are not NumPy's"""
    cast_x = cast(x, d)
    of_bf16 = (d == DType.BF16) & (x.type.dtype == DType.U4)
    return rewrites(binary("mul", unary("neg", cast_x), y), binary("mul", cast_x, y), of_bf16)


PASTED = deep_but([drop_a_term, negated], [*WRONG, swell, negated])


@pytest.mark.parametrize("wrong", PASTED, ids=name_of)
def test_a_pasted_counterexample_shows_both_sides(wrong: Rule, tmp_path: Path) -> None:
    found = report_of(wrong).counterexample
    assert found is not None
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = run.stdout.splitlines()
    assert left.split(maxsplit=1) == ["left", found.left]
    assert right.split(maxsplit=1) == ["right", found.right or found.reason]
    assert left.split()[1:] != right.split()[1:]


@attribute_function
def one_past_the_end(x: TensorType) -> Scalar:
    refuse_unless(x.rank == 1 and isinstance(x.shape[0], int) and x.shape[0] > 0)
    return Scalar.of(static(x.shape[0]), DType.I64)


@attribute_function
def has_one(s: Slices) -> bool:
    return s.sizes == (1,)


@rule
def first_is_past_the_end(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = gather(x, n), of one element: there is none at n"""
    left = slice_(x, s)
    at = scalar(one_past_the_end(x.type))
    return rewrites(left, reshape(gather(x, at, Axis(0)), Shape(left.type.shape)), has_one(s))


def test_what_cannot_be_computed_is_pasted_whole(tmp_path: Path) -> None:
    """The left side is printed, and why there is no right one."""
    found = check(first_is_past_the_end).counterexample
    assert found is not None and found.left and not found.right
    assert "the right side cannot be computed: gather: an index lies outside" in found.reason
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = done.stdout.splitlines()
    assert left.split(maxsplit=1) == ["left", found.left]
    assert right.startswith("right cannot be computed:") and "an index lies outside" in right


@attribute_function
def is_nothing(x: TensorType) -> bool:
    return x.rank == 2 and x.shape[0] == 0 and x.shape[1] not in (0, 1)


@rule
def nothing_is_one_wide(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = max(slice(x, s), 1) where there are no rows"""
    left = slice_(x, s)
    return rewrites(left, reduce("max", left, Axes((1,))), is_nothing(left.type))


@pytest.mark.deep
def test_sides_that_print_alike_have_shapes(tmp_path: Path) -> None:
    found = check(nothing_is_one_wide).counterexample
    assert found is not None and found.left != found.right
    script = tmp_path / "pasted.py"
    script.write_text(found.program)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    left, right = done.stdout.splitlines()
    assert left == f"left  {found.left}" and right == f"right {found.right}"


def test_a_refuted_rule_names_the_first_differing_element() -> None:
    assert report_of(minus_itself).reason == "at [] the left side is nan, the right side 0.0"
    assert report_of(widen).reason == "the left side is f32[1], the right side f32[2]"
