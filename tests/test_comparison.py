"""What the comparisons of arrays call equal, near and wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from satura.rewrite.types.comparison import agreement, first_difference, relative_error
from satura.rewrite.types.tensor_type import Array

NAN, INF = float("nan"), float("inf")
PAIRS = [  # left, right, whether they are the same bits, whether they agree within 0.5
    (1.0, 1.0, True, True), (1.0, 1.5, False, True), (1.0, 1.75, False, False),
    (0.0, -0.0, False, True), (NAN, NAN, True, True), (NAN, 0.0, False, False),
    (INF, INF, True, True), (INF, -INF, False, False), (INF, 1.0, False, False),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_floats_agree_by_their_bits_or_within_a_bound(dtype: type) -> None:
    left: Array = np.array([pair[0] for pair in PAIRS]).astype(dtype)
    right: Array = np.array([pair[1] for pair in PAIRS]).astype(dtype)
    assert agreement(left, right).tolist() == [pair[2] for pair in PAIRS]
    assert agreement(left, right, 0.5).tolist() == [pair[3] for pair in PAIRS]
    assert not agreement(left, right, INF)[-1]


def test_whole_numbers_agree_exactly() -> None:
    left, right = np.array([2**62, 1]), np.array([2**62 + 1, 1])
    assert agreement(left, right, 10.0).tolist() == [False, True]
    assert first_difference(agreement(left, right)) == (0,)
    assert first_difference(agreement(left, left)) is None


def test_unlike_arrays_are_not_compared() -> None:
    one = np.ones((2, 1), np.float32)
    for other in (one.astype(np.float64), one.reshape(1, 2), one[:1]):
        with pytest.raises(ValueError, match="against"):
            agreement(one, other)
    with pytest.raises(ValueError, match="output 'y' is of shape"):
        relative_error({"y": one}, {"y": one[:1]})


def test_relative_error_is_that_of_the_worst_output() -> None:
    expected = {"a": np.array([4.0, 0.0]), "b": np.array([1.0, INF])}
    assert relative_error(expected, expected) == 0
    assert relative_error({**expected, "a": np.array([4.0, 1.0])}, expected) == 0.25
    assert relative_error({**expected, "b": np.array([1.0, 9.0])}, expected) == INF
    assert relative_error({**expected, "b": np.array([NAN, INF])}, expected) == INF
