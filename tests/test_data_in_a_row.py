"""What data decide decides extents behind it: one part of a model more."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import satura
from satura.rewrite.types.tensor_type import Array
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import run

pytestmark = pytest.mark.filterwarnings(
    "ignore::satura.rewrite.program.host_call.HostFallbackWarning"
)
IN_A_ROW = {
    "the k of a top-k": "u = Unique(x) k = Slice(u, one, two) i = Cast<to=7>(k) y, q = TopK(x, i)",
    "a slice": """m = ReduceMax<keepdims=0>(x) a = Add(x, m) b = NonZero(a) c = Transpose(b)
        d = Cast<to=7>(m) k = Reshape(d, one) y = Slice(c, k, last)""",
    "a range up to the end of a range": """m = ReduceMax<keepdims=0>(x) n = Cast<to=7>(m)
        r = Range(zero, n, step) s = ReduceSum<keepdims=0>(r) y = Range(zero, s, step)""",
    "classes": """u = Unique(x) k = Slice(u, none, one) i = Cast<to=7>(x) d = Cast<to=7>(k)
        e = Add(d, one) v = Constant<value_floats=[0.5,2.0]>() y = OneHot<axis=0>(i, e, v)""",
    "a shape of as many numbers": """u = Unique(x) k = Gather(u, one) i = Cast<to=7>(k)
        j = Concat<axis=0>(i, i) t = ConstantOfShape(j) p = Concat<axis=0>(one, one, i)
        e = Expand(t, p) y = Add(e, e)""",
    "extents of a shape": """u = NonZero(x) v = Squeeze(u, none) k = Slice(v, none, one)
        i = Add(k, one) t = Expand(x, i) j = Concat<axis=0>(i, rest) y = Reshape(t, j)""",
}  # fmt: skip


def model_of(name: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[n] x) => (y)
            <int64 zero = {{0}}, int64 step = {{1}}, int64[1] none = {{0}}, int64[1] one = {{1}},
             int64[1] two = {{2}}, int64[1] last = {{99}}, int64[1] rest = {{-1}}>
            {{ {IN_A_ROW[name]} }}"""
    )
    del model.graph.output[0]
    model.graph.output.append(onnx.ValueInfoProto(name="y"))
    return model


def counted(count: int, least: int) -> Array:
    """So many numbers, four different ones."""
    return np.arange(count, dtype=np.float32)[::-1].copy() % 4 + least


@pytest.mark.parametrize("name", IN_A_ROW)
@pytest.mark.parametrize("count", [4, 70])
def test_data_decide_shapes_behind_what_data_decide(name: str, count: int) -> None:
    """Vectors are no axes or sizes because they are short, nor are floats of open length."""
    model = model_of(name)
    compiled = satura.compile(model, threads=1)
    assert not compiled.deciding
    for least in (0, 2):
        x = counted(count, least)
        np.testing.assert_array_equal(compiled(x), run(model, {"x": x})[0])


def test_sizes_that_are_taken_for_equal_may_differ_in_what_data_decide() -> None:
    nodes = [
        node("Add", "x z", "a"), node("ReduceMax", "a", "b", keepdims=0, axes=[0]),
        node("Greater", "b three", "c"), node("Compress", "a c", "d", axis=1),
        node("ReduceMax", "x", "e", keepdims=0), node("Mul", "d e", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 4), "z": ("m", 4)}, {"three": np.float32(3)}, opset=17)
    compiled = satura.compile(model, threads=1)
    for n, m in ((2, 2), (1, 3), (3, 1)):
        x, z = 4 * random_input(n, 4), 4 * random_input(m, 4)
        np.testing.assert_array_equal(compiled(x, z), run(model, {"x": x, "z": z})[0])


@pytest.mark.deep
def test_numbers_that_are_taken_for_sizes_before_a_node_need_not_fit_behind_it() -> None:
    """The steps of a Scan are taken to be 16, which an Expand behind the node does not take."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[5, n] x) => (float[a, b, c] y, int64[2, d] z)
        <int64[3] s = {2, 5, 4}, float[5] zero = {0, 0, 0, 0, 0}> {
            t = Abs(x)
            q, r = Scan<num_scan_inputs = 1, scan_input_axes = [1],
                body = b (float[k] s0, float[k] u) => (float[k] v, float[k] w) {
                    v = Add(s0, u) w = Neg(v) }>(zero, t)
            y = Expand(t, s)
            z = NonZero(r)
        }"""
    )
    compiled = satura.compile(model, threads=1)
    x = random_input(5, 4)
    for found, expected in zip(compiled.run({"x": x}).values(), run(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(found, expected)
