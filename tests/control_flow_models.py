"""Models of If and Loop that data decide, and their comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

import satura
from satura.errors import HostFallbackWarning
from satura.rewrite.types.tensor_type import Array
from tests.onnxruntime_reference import assert_close, run

HEAD = '<ir_version: 8, opset_import: ["": 17, "own": 1]>'
CHOICE = """r = If (c) <then_branch = t () => (float[n] a) { a = Mul(x, x) },
                        else_branch = e () => (float[m] o) { o = Concat<axis=0>(x, x) }>"""
MODELS: dict[str, str] = {
    "a branch of another shape": f"""
        g (float[n] x, float[1,1] d) => (float[k] y, float z) {{
        s = ReduceSum<keepdims=0>(d) zero = Constant<value_float=0.0>() c = Greater(s, zero)
        {CHOICE} y = Relu(r) z = ReduceSum<keepdims=0>(r) }}""",
    "as many turns as data say": """
        g (float[n] x, float[1,1] d) => (float[k] y) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        r = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) t = Concat<axis=0>(h, x) }> y = Neg(r) }""",
    "turns until a condition fails": """
        g (float[n] x, float[1,1] d) => (float[n] y, float[k,n] z) {
        y, z = Loop (, , x) <body = b (int64 i, bool go, float[n] h) => (bool on, float[n] t,
                                               float[n] u)
            { half = Constant<value_float=0.5>() one = Constant<value_float=1.0>() t = Mul(h, half)
              top = ReduceMax<keepdims=0>(t) on = Greater(top, one) u = Identity(t) }> }""",
    "a weight that only the body reads": """
        g (float[n] x, float[1,1] d) => (float[n] y, float[k,n,2] z)
        <float[2] w = {3.0, -1.0}> { s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y, z = Loop (m, , x) <body = b (int64 i, bool go, float[n] h) => (bool on, float[n] t,
                                               float[n,2] u)
            { on = Identity(go) f = Cast<to=1>(i) t = Add(h, f) one = Constant<value_ints=[1]>()
              c = Unsqueeze(t, one) u = Mul(c, w) }> }""",
    "more turns than are unrolled": """
        g (float[n] x, float[1,1] d) => (float[n] y, float[300,n] z)
        <int64 m = {300}, float f = {0.99}> {
        y, z = Loop (m, , x) <body = b (int64 i, bool go, float[n] h) => (bool on, float[n] t,
                                               float[n] u)
            { on = Identity(go) t = Mul(h, f) u = Identity(h) }> }""",
    "a loop in a function": """
        g (float[n] x, float[1,1] d) => (float[k] y) { r = own.F(x, d) y = Neg(r) }
        <domain: "own", opset_import: ["": 17]> F (x, d) => (r) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        r = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) t = Concat<axis=0>(h, h) }> }""",
    "a function in a loop": """
        g (float[n] x, float[1,1] d) => (float[k] y) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        r = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) t = own.F(h) }> y = Neg(r) }
        <domain: "own", opset_import: ["": 17]> F (x) => (r) { r = Concat<axis=0>(x, x) }""",
    "a choice in a loop": """
        g (float[n] x, float[1,1] d) => (float[k] y) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) z = ReduceMax<keepdims=0>(h) two = Constant<value_float=5.0>()
               c = Greater(two, z) t = If (c) <
                    then_branch = t () => (float[v] a) { a = Concat<axis=0>(h, x) },
                    else_branch = e () => (float[w] o) { o = Mul(h, h) }> }> }""",
    "what depends on data in a body": """
        g (float[n] x, float[1,1] d) => (float[k] y) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) zero = Constant<value_float=0.0>() c = Greater(h, zero)
              l = Compress<axis=0>(h, c) t = Concat<axis=0>(l, x) }> }""",
    "slices at the number of a turn": """
        g (float[n] x, float[1,1] d) => (float[n] y, float[k,2] z) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y, z = Loop (m, , x) <body = b (int64 i, bool go, float[n] h) => (bool on, float[n] t,
                                               float[2] u)
            { on = Identity(go) t = Identity(h) one = Constant<value_ints=[1]>()
              two = Constant<value_ints=[2]>() w = Concat<axis=0>(x, x, x, x, x)
              first = Reshape(i, one) end = Add(first, two) u = Slice(w, first, end) }> }""",
}  # fmt: skip
ARGUMENTS = ([1.0, 2.0], [3.0], [0.0, 0.0, 0.0], [-1.0, -2.0], [0.5, 0.0, 0.5, 1.0])


def of(values: list[float]) -> dict[str, Array]:
    """Data, and their sum as what decides: of rank 2, as other inputs may be asked for."""
    x = np.array(values, np.float32)
    return {"x": x, "d": x.sum(keepdims=True).reshape(1, 1)}


def compiled_of(text: str) -> tuple[onnx.ModelProto, satura.Compiled]:
    model = onnx.parser.parse_model(HEAD + text)
    with pytest.warns(HostFallbackWarning):
        return model, satura.compile(model, threads=1)


def check(model: onnx.ModelProto, compiled: satura.Compiled, given: Mapping[str, Array]) -> None:
    expected = run(model, given)
    for value, result in zip(compiled.run(dict(given)).values(), expected, strict=True):
        # Of a result without rows onnxruntime says that sizes are 0, too.
        assert value.dtype == result.dtype and value.ndim == result.ndim
        assert value.shape == result.shape or value.size == result.size == 0
        assert_close(value.reshape(result.shape), result)
