"""Models in which nodes stay when they are saved, as data decide, and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import ModelProto

from satura.rewrite.types.tensor_type import Array
from tests import control_flow_models as flow
from tests import test_data_extents as extents
from tests import test_data_in_a_row as in_a_row
from tests.onnx_models import random_input
from tests.onnxruntime_reference import assert_close, run

Calls = Sequence[Mapping[str, Array]]
Case = tuple[ModelProto, Calls]
TURNED = "t = Transpose<perm=[1,0]>(x) u = Relu(t) a = Transpose<perm=[1,0]>(u)"
WEIGHT = "<float[4,4] w = {1,2,0,-1,0,1,3,0,2,0,1,1,-2,1,0,2}>"


def parsed(text: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> {text}')


def rows(*counts: int) -> Calls:
    """So many rows, of which data keep some, and of the last call none."""
    given = [{"x": random_input(count, 4, seed=count)} for count in counts]
    return [*given, {"x": -np.ones((3, 4), np.float32)}]


def found_and_multiplied(opset: int = 18) -> Case:
    """Rows where data say so, by a weight that is read before the node, too."""
    text = f"""g (float[n,4] x) => (float[found,4] y, float[n,4] s, int64[2,found] places) {WEIGHT}
        {{ {TURNED} s = MatMul(a, w) places = NonZero(a) none = Constant<value=int64 {{0}}>()
        at = Gather(places, none) rows = Gather(s, at) m = MatMul(rows, w) y = Neg(m) }}"""
    return parsed(text, opset), rows(5, 1, 9)


def boxes(opset: int = 18) -> Case:
    """A detector's head: boxes and scores are turned before the node and chosen behind it, at most
    three of all that are kept."""
    least = "few = Min(sizes, three)"
    if opset < 12:
        least = "are = Less(sizes, three) few = Where(are, sizes, three)"
    text = f"""g (float[1,4,n] x, float[1,n,2] c) => (float[found,4] y, float[best] z)
        <int64[1] most = {{20}}, float[1] overlap = {{0.4}}, float[1] least = {{0.3}},
         int64[1] three = {{3}}>
        {{ b = Transpose<perm=[0,2,1]>(x) t = Transpose<perm=[0,2,1]>(c) s = Sigmoid(t)
        kept = NonMaxSuppression<center_point_box=1>(b, s, most, overlap, least)
        two = Constant<value=int64 {{2}}>() at = Gather<axis=1>(kept, two)
        f = Gather<axis=1>(b, at) none = Constant<value=int64 {{0}}>() y = Gather(f, none)
        chosen = Gather<axis=2>(s, at) first = Gather(chosen, none) one = Gather(first, none)
        sizes = Shape(one) {least} z, places = TopK(one, few) }}"""
    calls = [
        {"x": np.abs(random_input(1, 4, n, seed=n)), "c": random_input(1, n, 2)} for n in (30, 3, 1)
    ]
    return parsed(text, opset), calls


def turns(opset: int = 18) -> Case:
    """As many turns as data say, which read what is before, a weight and an input."""
    longer, shorter = "Unsqueeze<axes=[0]>(q)", "Squeeze<axes=[0]>(f)"
    if opset >= 13:
        longer, shorter = "Unsqueeze(q, first)", "Squeeze(f, first)"
    text = f"""g (float[n,4] x) => (float[n,4] y, int64[2,found] p) {WEIGHT}
        {{ {TURNED} e = ReduceMax<keepdims=0>(x) m = Cast<to=7>(e) first = Constant<value=int64[1]
        {{0}}>() r = Loop(m, , a) <body = b (int64 i, bool go, float[n,4] h) =>
            (bool on, float[n,4] o)
            {{ on = Identity(go) q = MatMul(a, w) f = {longer} g = {shorter} k = Add(h, g)
            o = Sub(k, x) }}>
        v = Transpose<perm=[1,0]>(r) z = Neg(v) y = Transpose<perm=[1,0]>(z) p = NonZero(r) }}"""
    return parsed(text, opset), rows(5, 1)


def alone(opset: int = 18) -> Case:
    """Nothing is before the node or behind it."""
    text = """g (float[n,4] x) => (float[n,4] y) { y = Loop(, , x) <body = b (int64 i, bool go,
        float[n,4] h) => (bool on, float[n,4] o) { m = ReduceMax<keepdims=0>(h)
        one = Constant<value=float {1}>() on = Greater(m, one) o = Sub(h, one) }> }"""
    return parsed(text, opset), rows(5, 1)


def names() -> Case:
    """Nodes that stay read one value under two names, a constant that is a result and an axis as
    well, and values whose names are like new ones."""
    text = """g (float[n] x) => (float[n] y, float[n] z, int64[1] first, float[1,5] turned, float s)
        <int64[1] first = {0}, int64[1] zero = {0}>
        { v0 = Neg(x) c = Abs(v0) b = Identity(c) m = ReduceMax<keepdims=0>(b) i = Cast<to=7>(m)
        y, v1 = Loop(i, , b) <body = b (int64 v2, bool v3, float[n] v4) => (bool v5, float[n] v6,
            float v7)
            { v5 = Identity(v3) v8 = Unsqueeze<axes=[0]>(c) v9 = Add(v8, b)
            v10 = Gather(v9, zero) v11 = Squeeze<axes=[0]>(v10) v6 = Add(v11, v4)
            v7 = ReduceSum<axes=[0],keepdims=0>(v6) }>
        z = Add(y, c) s = ReduceSum<axes=[0],keepdims=0>(v1) turned = Unsqueeze<axes=[0]>(x) }"""
    model = parsed(text, 11)
    return model, [{"x": np.array(values, np.float32)} for values in ([1, -2, 3], [0.5], [4, 1])]


def two_in_a_row() -> Case:
    """The distinct ones among what data choose, and where they are."""
    text = """g (float[n,4] x) => (float[k] y, int64[k] first, int64[k] times)
        { none = Constant<value=float {0}>() c = Greater(x, none) d = Compress(x, f)
        flat = Constant<value=int64[1] {-1}>() f = Reshape(c, flat) r = Round(d)
        y, first, back, times = Unique<sorted=1>(r) }"""
    return parsed(text), rows(5, 1)


def counted() -> Case:
    """A range up to a number that is computed, and its sum by a choice of data."""
    text = """g (float[n,4] x) => (int64 y) <int64 zero = {0}, int64 one = {1}>
        { m = ReduceMax<keepdims=0>(x) i = Cast<to=7>(m) r = Range(zero, i, one)
        c = Greater(i, one) y = If(c) <then_branch = t () => (int64 s)
            { s = ReduceSum<keepdims=0>(r) }, else_branch = e () => (int64 o) { o = Neg(i) }> }"""
    return parsed(text), rows(5, 1)


def asked() -> Case:
    """An input decides how much is left out of a long list, as it may without data."""
    text = """g (float[n,4] x, int64[1] k) => (float[m,4] y) <int64[1] most = {99}>
        { t = Neg(x) s = Slice(t, k, most) y = Relu(s) }"""
    return parsed(text), [{**rows(5)[0], "k": np.array([k])} for k in (0, 2, 9)]


def half_as_many() -> Case:
    """A shape that is computed in f16, which holds no size for sure."""
    text = """g (float[n,8] x) => (float[h,2,8] y) <float below = {2}, int64[2] last = {2,8}>
        { t = Neg(x) two = Cast<to=10>(below) s = Shape<start=0,end=1>(x)
        f = Cast<to=10>(s) q = Div(f, two) c = Ceil(q) h = Cast<to=7>(c) d = Concat<axis=0>(h, last)
        r = Reshape(t, d) y = Relu(r) }"""
    return parsed(text), [{"x": random_input(n, 8)} for n in (2, 10)]


def masked(opset: int = 10) -> Case:
    """What an input chooses in an opset of which ONNX does not say the type of the result."""
    text = """g (float[3,n] x, bool[5] c) => (float[3,k] y, float[m] z) { t = Neg(x)
        chosen = Compress<axis=1>(t, c) flat = Compress(t, c) y = Relu(chosen) z = Relu(flat) }"""
    mask = np.array([True, False, True, True, False])
    return parsed(text, opset), [{"x": random_input(3, 5), "c": mask}]


def unpooled() -> Case:
    """The sizes of a result are an operand, of which ONNX does not say how many there are."""
    text = """g (float[n,1,4,4] x) => (float[n,1,4,4] y)
        { p, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) s = Shape(x)
        u = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(p, i, s) y = Relu(u) }"""
    return parsed(text), [{"x": random_input(n, 1, 4, 4)} for n in (1, 3)]


NO_RANKS = (half_as_many, masked, unpooled)
CASES: dict[str, Callable[[], Case]] = {
    each.__name__: each
    for each in (
        found_and_multiplied, boxes, turns, alone, names, two_in_a_row, counted, asked, *NO_RANKS,
    )
}  # fmt: skip
OTHERS: dict[str, Callable[[], Case]] = {
    **{each.__name__: each for each in (
        extents.detector, extents.twice, extents.beside, extents.written, extents.ramp,
        extents.best, extents.rest,
    )},
    **{
        name: lambda text=text: (  # type: ignore[misc]
            onnx.parser.parse_model(flow.HEAD + text), [*map(flow.of, flow.ARGUMENTS)],
        ) for name, text in flow.MODELS.items()
    },
    **{
        name: lambda name=name: (  # type: ignore[misc]
            in_a_row.model_of(name),
            [{"x": in_a_row.counted(count, least)} for count in (4, 70) for least in (0, 2)],
        ) for name in in_a_row.IN_A_ROW if name != "extents of a shape"  # data say its rank
    },
}  # fmt: skip


def compare(model: ModelProto, saved: ModelProto, calls: Calls) -> None:
    """Raise AssertionError where onnxruntime computes something else with the saved model."""
    for call in calls:
        for expected, result in zip(run(model, call), run(saved, call), strict=True):
            assert result.dtype == expected.dtype and result.shape == expected.shape
            assert_close(result, expected, 1e-5)
