"""Conditions that hold of a symbol, and not of all of its sizes."""

from __future__ import annotations

from satura.language import (
    Axes,
    Law,
    Padding,
    Tensor,
    TensorType,
    attribute_function,
    pad,
    reduce,
    rewrites,
    rule,
    unary,
)
from satura.rewrite.check.instances import Instance
from satura.rewrite.check.open_extents import with_open_extents
from satura.rewrite.check.refute import first_failure
from satura.rewrite.check.report import RuleReport
from satura.rewrite.check.testing import add_proof
from satura.rewrite.types.tensor_type import DType


@attribute_function
def pads_only(p: Padding, a: Axes) -> bool:
    """Whether all axes that are padded are among these."""
    return all(i in a.indices or p.lo[i] == p.hi[i] == 0 for i in range(len(p.lo)))


@attribute_function
def has_elements(t: TensorType, a: Axes) -> bool:
    """True of a symbol, which may be 0 in a call."""
    return all(t.shape[i] != 0 for i in a.indices)


@rule
def unpadded_max(x: Tensor, p: Padding, a: Axes) -> Law:
    """max(pad(relu(x), 0)) = max(relu(x)), wrong of no elements"""
    y = unary("relu", x)
    padded = reduce("max", pad(y, 0, p), a)
    return rewrites(padded, reduce("max", y, a), pads_only(p, a), has_elements(x.type, a))


def test_extents_of_firings_are_opened() -> None:
    (direction,) = unpadded_max.directions
    values = (
        ("x", TensorType(DType.F32, (3, 2))), ("p", Padding((0, 1), (0, 0))), ("a", Axes((0, 1)))
    )  # fmt: skip
    fired = Instance(direction, values, 0)
    assert first_failure([fired], exact=True) is None
    (opened,) = with_open_extents(direction, [fired], 1)
    assert str(opened.types["x"]) == "f32[3, n]"
    failure = first_failure([opened], exact=True)
    assert failure is not None and failure.sizes == {"n": 0}


def test_what_the_prover_suspects_is_tried() -> None:
    report = add_proof(unpadded_max, RuleReport("unpadded_max", "", "tested"), steps=1500)
    assert report.verdict == "refuted" and report.counterexample is not None
    assert report.counterexample.sizes == {"n": 0}
