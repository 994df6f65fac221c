"""Loops that run in Python, as those in the bodies of others do, take onnxruntime's turns."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from satura.rewrite.program.reference import evaluator
from tests.onnxruntime_reference import run

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3
TEXT = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[2,4] x, float limit, int64 count, bool first)
        => (float[2,4] y, float[k,2,4] a, float[k] b) <float half = {{0.5}}> {{
        y, a, b = Loop<body = turn (int64 i, bool c, float[2,4] s)
            => (bool more, float[2,4] t, float[2,4] whole, float least) {{
            t = Mul(s, half)
            whole = Neg(t)
            least = ReduceMin<keepdims=0>(t)
            most = ReduceMax<keepdims=0>(t)
            more = Greater(most, limit)
        }}>({given}, x)
    }}"""


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("given", ['count, ""', "count, first", '"", first'])
@pytest.mark.parametrize("first", [True, False])
def test_turns_are_those_of_onnxruntime(given: str, count: int, first: bool) -> None:
    """Without a condition, too, and without any turn; what they collect are tensors and numbers."""
    model = parser.parse_model(TEXT.format(given=given))
    arguments = {
        "x": X, "limit": np.array(0.3, np.float32),
        "count": np.array(count), "first": np.array(first),
    }  # fmt: skip
    for found, expected in zip(
        evaluator(model).run(None, arguments), run(model, arguments), strict=True
    ):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
