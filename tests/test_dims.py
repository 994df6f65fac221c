"""Dims: the normal form is unique, and arithmetic agrees with that of the sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satura.rewrite.dims import Dim, evaluate, exact_quotient, known_at_least, product, symbol
from satura.rewrite.errors import ProgramError

SIZES = {"batch": 3, "seq": 7}
BATCH, SEQ = symbol("batch"), symbol("seq")
LEAVES: list[Dim] = [0, 1, 2, 5, BATCH, SEQ]
DIVISORS: list[Dim] = [2, 3, BATCH]


@st.composite
def dims(draw: st.DrawFn, depth: int = 3) -> Dim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    left, right = draw(dims(depth - 1)), draw(dims(depth - 1))
    kind = draw(st.sampled_from(["add", "sub", "mul", "div"]))
    if kind == "add":
        return left + right
    if kind == "sub":
        return left - right
    if kind == "mul":
        return left * right
    return left // draw(st.sampled_from(DIVISORS))


@given(dims(), dims())
def test_arithmetic_agrees_with_integers(left: Dim, right: Dim) -> None:
    a, b = evaluate(left, SIZES), evaluate(right, SIZES)
    assert evaluate(left + right, SIZES) == a + b
    assert evaluate(left - right, SIZES) == a - b
    assert evaluate(left * right, SIZES) == a * b
    assert evaluate(left // 2, SIZES) == a // 2
    assert evaluate(left % 4, SIZES) == a % 4
    if left == right:
        assert a == b


@given(dims(), dims())
def test_normal_form_is_unique(left: Dim, right: Dim) -> None:
    assert left + right == right + left
    assert left * right == right * left
    assert left + right - right == left
    assert (left + right) * 2 == left + right + right + left


@given(dims(), dims())
def test_exact_quotient_is_exact(left: Dim, right: Dim) -> None:
    quotient = exact_quotient(left * right, right)
    if quotient is not None and right != 0:
        assert quotient * right == left * right


def test_quotients_come_out_even_where_they_can() -> None:
    assert (2 * SEQ + SEQ) // SEQ == 3
    assert (BATCH * SEQ + BATCH) // (SEQ + 1) == BATCH
    assert str((SEQ + 1) // 2) == "(seq+1)//2"
    assert product([BATCH, 12, SEQ]) == SEQ * BATCH * 12


def test_undecidable_comparisons_are_not_known() -> None:
    assert known_at_least(SEQ + 1, 1)
    assert not known_at_least(SEQ, 1)
    assert not known_at_least(SEQ - BATCH, 0)


def test_unknown_size_is_an_error() -> None:
    with pytest.raises(ProgramError, match="size 'seq' is not known"):
        evaluate(SEQ * 2, {"batch": 1})
