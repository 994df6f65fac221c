"""Numbers in laws stand for constants of the type of the tensor beside them."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.language import (
    Builder,
    Law,
    Padding,
    Rule,
    RuleError,
    RuleSet,
    Scalar,
    Tensor,
    binary,
    pad,
    rewrites,
    rule,
    select,
    unary,
)
from satura.rewrite.check.refute import refutation
from satura.rewrite.language.numbers import scalar_like
from satura.rewrite.types.attributes import Refuse
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.testing import check
from tests.onnx_models import make_model, node
from tests.tiers import deep_but


@rule
def double(x: Tensor) -> Law:
    """x · 2 = x + x"""
    return rewrites(binary("mul", x, 2), binary("add", x, x))


@rule
def reciprocal(c: Scalar) -> Law:
    """1.0 / (1.0 / c) = -(-1.0 / (1.0 / c))"""
    inverse = binary("div", 1.0, c)
    return rewrites(binary("div", 1.0, inverse), unary("neg", binary("div", -1.0, inverse)))


@rule
def choose_the_other(c: Tensor, x: Tensor) -> Law:
    """select(c, x, 0.0) = select(not c, 0.0, x)"""
    return rewrites(select(c, x, 0.0), select(unary("not", c), 0.0, x))


@rule
def relu_of_pad(x: Tensor, b: Padding) -> Law:
    """relu(pad(x, 0)) = pad(relu(x), 0)"""
    return rewrites(unary("relu", pad(x, 0, b)), pad(unary("relu", x), 0, b))


@rule
def triple_is_nothing(x: Tensor) -> Law:
    """x · 3.0 = x, which is wrong"""
    return rewrites(binary("mul", x, 3.0), x)


@pytest.mark.deep
def test_laws_with_numbers_are_tested() -> None:
    assert check(double, attempts=300).is_sound
    for law in (reciprocal, choose_the_other, relu_of_pad):
        assert refutation(law, attempts=150) is None, law.name
    assert "the left side is 3.0" in str(check(triple_is_nothing))


@pytest.mark.parametrize("shape", deep_but([["rows", 3]], [[2, 3], ["rows", 3]]), ids=str)
def test_a_number_matches_the_constant_of_a_model(shape: list[int | str | None]) -> None:
    model = make_model([node("Mul", "x two")], {"x": shape}, {"two": satura_float(2.0)})
    assert "made in round 1" in str(satura.why(double, model, rules="none"))
    other = make_model([node("Mul", "x two")], {"x": shape}, {"two": satura_float(2.5)})
    assert "made in round" not in str(satura.why(double, other, rules="none"))


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_where_all_extents_are_1_a_number_matches_a_broadcast_that_changes_nothing(
    is_broadcast: bool,
) -> None:
    build = Builder()
    x, three = build.input("x", DType.F32, []), build.constant(np.float32(3))
    other = build.broadcast(build.reshape(three, []), []) if is_broadcast else three
    program = build.program({"y": build.binary("mul", x, other)})
    nodes = satura.optimize(program, rules=RuleSet(triple_is_nothing)).nodes
    assert (len(nodes) == 1) == is_broadcast


def satura_float(value: float) -> object:
    return scalar_like(value, TensorType(DType.F32, ())).array


@pytest.mark.parametrize(
    ("number", "dtype", "is_one"),
    [
        (1, DType.F16, True), (1, DType.U8, True), (256, DType.U8, False), (-1, DType.U8, False),
        (1.0, DType.F64, True), (1.0, DType.I32, False), (True, DType.BOOL, True),
        (True, DType.F32, False), (1, DType.BOOL, False),
    ],
)  # fmt: skip
def test_a_number_is_an_element_where_its_kind_is(
    number: float, dtype: DType, is_one: bool
) -> None:
    type_ = TensorType(dtype, (2,))
    if is_one:
        assert scalar_like(number, type_) == Scalar.of(number, dtype)
    else:
        with pytest.raises(Refuse, match=f"{number!r} is not an element of {dtype}"):
            scalar_like(number, type_)


@pytest.mark.parametrize(
    "number", [np.float32(0.1), np.float64(0.1), np.float16(3), np.int64(3), np.uint8(3), np.True_]
)
def test_a_number_of_numpys_stands_for_pythons(number: np.generic) -> None:
    def law_of(value: float | np.generic) -> Rule:
        @rule
        def law(c: Tensor, x: Tensor, b: Padding) -> Law:
            """a law with a number in each place that takes one"""
            left = pad(select(c, x, value), value, b)
            return rewrites(left, binary("mul", value, binary("add", left, value)))

        return law

    assert law_of(number).directions == law_of(number.item()).directions


def test_two_numbers_have_no_type() -> None:
    with pytest.raises(RuleError, match="a tensor beside a number, not 1 and 2"):

        @rule
        def of_numbers(x: Tensor) -> Law:
            """-x = 1 + 2"""
            return rewrites(unary("neg", x), binary("add", 1, 2))
