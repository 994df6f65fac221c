"""Dims: the normal form is unique, and arithmetic agrees with that of the sizes."""

from __future__ import annotations

import pickle
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    product,
    static,
    symbol,
)
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.typical import allowed_sizes, representative

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


@given(dims(), st.sampled_from([*DIVISORS, -3, 6, 2 * BATCH, SEQ - 1]), dims(), st.integers(1, 6))
def test_quotients_are_equal_after_shifts_and_scaling(
    above: Dim, below: Dim, shift: Dim, scale: int
) -> None:
    quotient = above // below
    assert (above + shift * below) // below == quotient + shift
    assert (above * scale) // (below * scale) == quotient
    assert (above * -scale) // (below * -scale) == quotient


@given(
    st.sampled_from([SEQ, SEQ + 1, 3 * SEQ - 2, BATCH * SEQ + 5]),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_quotients_of_quotients_are_quotients(above: Dim, below: int, divisor: int) -> None:
    once = (above // below) // divisor
    assert once == above // (below * divisor)
    assert evaluate(once, SIZES) == evaluate(above, SIZES) // below // divisor


@given(dims(), st.integers(1, 12), st.integers(1, 6), st.data())
def test_what_never_reaches_a_fixed_divisor_is_dropped(
    above: Dim, below: int, scale: int, data: st.DataObject
) -> None:
    less = data.draw(st.integers(0, scale - 1))
    assert (above * scale + less) // (below * scale) == above // below


@given(dims(), dims(), st.integers(1, 40), st.integers(1, 40))
def test_floor_divisions_agree_with_integers(above: Dim, below: Dim, batch: int, seq: int) -> None:
    sizes = {"batch": batch, "seq": seq}
    divisor = evaluate(below, sizes)
    if divisor:
        assert evaluate(above // below, sizes) == evaluate(above, sizes) // divisor


def test_a_rest_is_kept_over_a_divisor_of_any_sign() -> None:
    quotient = (2 * SEQ + 1) // (4 * BATCH - 8)
    assert evaluate(quotient, {"seq": 0, "batch": 1}) == -1


def test_quotients_have_one_form() -> None:
    assert ((SEQ + 1) // 2 + 1) // 2 == (SEQ + 3) // 4
    assert ((SEQ // 2 + BATCH) // 3) // 5 == (SEQ + 2 * BATCH) // 30
    assert (3 * SEQ - 2) // 3 == (6 * SEQ - 4) // 6 == SEQ - 1
    assert str((6 * SEQ + 8) // 4) == "(seq)//2+seq+2"
    assert -(-SEQ // 2) == SEQ - SEQ // 2
    assert (2 * SEQ + 1) // 4 == SEQ // 2
    assert SEQ // -BATCH == -SEQ // BATCH
    assert (SEQ + BATCH) // BATCH == SEQ // BATCH + 1
    with pytest.raises(ProgramError, match="divides by zero"):
        evaluate(SEQ // 0, SIZES)


def test_what_divides_by_zero_at_the_usual_size_counts_as_that() -> None:
    assert representative(SEQ // (SEQ - 64)) == 64
    assert representative(SEQ // (SEQ - 64), sizes={"seq": 66}) == 33


def test_what_divides_by_zero_wherever_it_is_looked_at_is_looked_at() -> None:
    never = SEQ // (1 // (SEQ + 2))
    sizes = allowed_sizes([SizeCondition(never, 1, ">=", "here")], {"seq"}, 64)
    assert sizes == {"seq": 64}


def test_quotients_come_out_even_where_they_can() -> None:
    assert (2 * SEQ + SEQ) // SEQ == 3
    assert (BATCH * SEQ + BATCH) // (SEQ + 1) == BATCH
    assert (SEQ * SEQ - 1) // (SEQ + 1) == SEQ - 1
    assert str((SEQ + 1) // 2) == "(seq+1)//2"
    assert product([BATCH, 12, SEQ]) == SEQ * BATCH * 12


def test_undecidable_comparisons_are_not_known() -> None:
    assert known_at_least(SEQ + 1, 1)
    assert not known_at_least(SEQ, 1)
    assert not known_at_least(SEQ - BATCH, 0)


def test_unknown_size_is_an_error() -> None:
    with pytest.raises(ProgramError, match="size 'seq' is not known"):
        evaluate(SEQ * 2, {"batch": 1})


def test_only_numbers_are_static() -> None:
    assert static(SEQ - SEQ + 3) == 3
    with pytest.raises(ValueError, match=r"2\*seq depends on sizes"):
        static(SEQ * 2)


def test_sizes_of_nested_divisions_are_bounded() -> None:
    """Each holds the one before twice: sixty of them would be a tree of 2^60 atoms."""
    size, divisor = symbol("n"), symbol("m")
    with pytest.raises(ProgramError, match="more than 4096 atoms"):
        for number in range(60):
            found = size % divisor if number % 2 else size // divisor
            size = cast(SymbolicDim, found + size)


def test_a_hash_stays_in_its_process() -> None:
    dim = cast(SymbolicDim, symbol("n") * 2 + symbol("m") // 3)
    assert hash(dim) == hash(cast(SymbolicDim, symbol("m") // 3 + symbol("n") * 2))
    again = pickle.loads(pickle.dumps(dim))
    assert again == dim and "_hash" not in vars(again)
