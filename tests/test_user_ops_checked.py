"""Ops of users whose generator or type rule is mistaken: checks of rules about them say so."""

from __future__ import annotations

import numpy as np
import pytest

from satura.errors import OpError
from satura.ops import Draw, DType, TensorType, local_ops, op
from satura.rewrite.language.dsl import Law, Tensor, rewrites, rule
from satura.testing import check

HANDED: list[object] = []


def _hand_over(draw: Draw, result: TensorType) -> object:
    (made,) = HANDED
    if isinstance(made, Exception):
        raise made
    return made


def _type() -> TensorType:
    return TensorType(DType.F32, (2,))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (7, "its generator gave 7 for "), (((_type(),), (3,)), "its generator gave "),
        ((([1],), ()), r"a tuple of 1 TensorType and a tuple of the attributes \(\)"),
        (((_type(),) * 2, ()), "its generator gave "), (KeyError("k"), "failed for .*KeyError"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_generator_names_the_op(made: object, message: str) -> None:
    def drawing(x: TensorType) -> TensorType:
        """x"""
        return x

    HANDED[:] = [made]
    with local_ops():
        same = op(reference=np.copy, generator=_hand_over)(drawing)  # type: ignore[arg-type]

        @rule
        def law(x: Tensor) -> Law:
            """drawing(drawing(x)) = drawing(x)"""
            return rewrites(same(same(x)), same(x))

        with pytest.raises(OpError, match=rf"op 'drawing' \(.*checked.py:\d+\): .*{message}"):
            check(law)


def test_a_mistake_of_a_type_rule_is_no_refusal() -> None:
    def pair(x: TensorType) -> TensorType:
        """x"""
        return x, x  # type: ignore[return-value]

    def first(x: TensorType) -> TensorType:
        """x"""
        return x.with_shape((x.shape[0],))

    for type_rule, message in (
        (pair, "gave .*not a TensorType"),
        (first, "failed on .*IndexError"),
    ):
        with local_ops():
            declared = op(reference=np.copy)(type_rule)

            @rule
            def law(x: Tensor) -> Law:
                """f(f(x)) = f(x)"""
                return rewrites(declared(declared(x)), declared(x))  # noqa: B023

            with pytest.raises(
                OpError, match=rf"op '{type_rule.__name__}' \(.*its type rule {message}"
            ):
                check(law)
