"""Resizes by sizes of other tensors, as feature pyramids have them, are saved as one node."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import satura
from satura.rewrite.onnx.write.save import to_model
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but

_MODES = (
    'mode = "linear", coordinate_transformation_mode = "align_corners"',
    'mode = "linear", coordinate_transformation_mode = "half_pixel"',
    'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
    'mode = "nearest"',
    'mode = "cubic", coordinate_transformation_mode = "half_pixel"',
)
_WANTED = {
    "as another": "wide = Slice (all, two, four)",
    "as a half of another": "whole = Slice (all, two, four) wide = Div (whole, two)",
    "with one more": "own = Slice (of, two, four) wide = Add (own, one)",
    "by a fraction": """
        own = Slice (of, two, four)
        real = Cast <to = 1> (own)
        more = Mul (real, half)
        down = Floor (more)
        wide = Cast <to = 7> (down)
    """,
}


def _model(mode: str, wanted: str) -> ModelProto:
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]>
        top_down (float[b, 2, p, q] x, float[b, 2, h, w] skip) => (float[b, 2, r, s] y) <
            int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
            int64[1] four = {{4}}, float half = {{1.5}}
        > {{
            of = Shape (x)
            all = Shape (skip)
            {wanted}
            first = Slice (of, zero, two)
            sizes = Concat <axis = 0> (first, wide)
            up = Resize <{mode}> (x, "", "", sizes)
            y = Relu (up)
        }}
    """)


_PAIRS = [*product(_MODES, _WANTED)]


@pytest.mark.parametrize("pair", deep_but(_PAIRS[0::5], _PAIRS), ids=": ".join)
def test_a_resize_by_sizes_of_tensors_stays_one_node(pair: tuple[str, str]) -> None:
    mode, wanted = pair
    model = _model(mode, _WANTED[wanted])
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    written = Counter(node.op_type for node in saved.graph.node)
    assert written["Resize"] == 1
    assert written.total() <= len(model.graph.node)
    random = np.random.default_rng(0)
    for b, p, q, h, w in ((1, 4, 4, 8, 8), (2, 3, 5, 7, 11), (1, 6, 5, 4, 2)):
        x, skip = random.random((b, 2, p, q), "f4"), random.random((b, 2, h, w), "f4")
        arguments = {"x": x, "skip": skip}
        for found, expected in zip(run(saved, arguments), run(model, arguments), strict=True):
            assert_close(found, expected, 2e-6)


@pytest.mark.parametrize(
    "resize",
    [
        'sizes = Add (given, one) y = Resize <mode = "nearest"> (x, roi, none, sizes)',
        "h = ReduceMax (given) s = Slice (x, first, h, axis, step) y = Relu (s)",
    ],
    ids=["Resize", "Slice"],
)
def test_equal_constants_of_a_node_that_stays_are_all_initializers(resize: str) -> None:
    """Whether a Resize has scales or sizes, runtimes see by the former being an empty one."""
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]>
        kept (float[p, q] x, int64[2] given) => (float[r, s] y) <
            int64[1] one = {{1}}, float[0] roi = {{}}, float[0] none = {{}},
            int64[1] first = {{1}}, int64[1] axis = {{1}}, int64[1] step = {{1}}
        > {{ {resize} }}
    """)
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(4, 6), "given": np.array([5, 3])}
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    assert "Identity" not in {node.op_type for node in saved.graph.node}
    for got, expected in zip(run(saved, feeds), run(model, feeds), strict=True):
        assert_close(got, expected)
