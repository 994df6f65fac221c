"""Operands that do not fit: whether other sizes might mend it."""

from __future__ import annotations

import pytest
from onnx import parser

from satura.rewrite.errors import ModelError, ProgramError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.onnx.misfit import misfit
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType

SHAPES: dict[str, tuple[Dim, ...]] = {"x": (symbol("n"), symbol("k")), "y": (8, 8)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[n, 7] x, float[8, 8] w) => (float[n, 8] y) { y = MatMul(x, w) }", "inner extents"),
        ("(float[b, n, 7] x, float[8] w) => (float[b, n, 7] y) { y = Add(x, w) }", "7 against 8"),
        (
            "(float[n, 6] x, float[m, 5] w) => (float[k, 6] y) { y = Concat<axis=0>(x, w) }",
            "axis 1",
        ),
        (
            "(float[n, 6, h] x, float[4, 5, 3] w) => (float[n, 4, k] y) { y = Conv(x, w) }",
            "channels",
        ),
    ],
)
def test_numbers_that_do_not_fit_are_not_said_to_depend_on_sizes(text: str, reason: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    with pytest.raises(ModelError, match=reason) as caught:
        load(model)
    assert "symbolic" not in str(caught.value)


def test_a_misfit_that_may_depend_on_sizes_says_so() -> None:
    build = Tensors()
    x, y = (build.input(name, DType.F32, shape) for name, shape in SHAPES.items())
    with pytest.raises(ProgramError) as caught:
        build.add("matmul", (x, y))
    error = misfit("node 'm'", caught.value, build, [x, y])
    assert isinstance(error, UnsupportedError) and "it may depend on symbolic sizes" in str(error)


def test_a_misfit_at_a_size_that_another_node_needs_names_both() -> None:
    text = """(float[n, k] x, float[4, 3] v, float[8, 3] w) => (float[n, 3] y) {
        a = MatMul(x, v) b = MatMul(x, w) y = Add(a, b) }"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    with pytest.raises(ModelError, match=r"computes 'b'.*; k is 4 here, as .*'a' needs"):
        load(model)
