"""If, Loop and Scan that data decide: Python takes each turn, and the bodies are programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import satura
from satura.errors import CallError, HostFallbackWarning, ModelError, UnsupportedError
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but

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


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_a_branch_has_a_shape_by_values_and_sizes() -> None:
    """At no size is it that of the other branch."""
    model = onnx.parser.parse_model(HEAD + """
        g (float[n] x, float[1,1] d, int64[1] k) => (float[m] y) {
        s = ReduceSum<keepdims=0>(d) zero = Constant<value_float=0.0>() c = Greater(s, zero)
        y = If (c) <
            then_branch = t () => (float[v] a)
                { l = Shape(x) most = Min(k, l) a, places = TopK<axis=0>(x, most) },
            else_branch = e () => (float[w] o) { o = Neg(x) }> }""")  # fmt: skip
    compiled = satura.compile(model, threads=1)
    for count in (1, 2, 9):
        for values in ARGUMENTS[1:]:
            check(model, compiled, {**of(values), "k": np.array([count])})


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")  # of bodies for new types
@pytest.mark.parametrize(
    "name",
    deep_but(
        [
            "a branch of another shape", "turns until a condition fails",
            "more turns than are unrolled", "a loop in a function",
            "what depends on data in a body",
        ],
        MODELS,
    ),
)  # fmt: skip
def test_data_decide(name: str) -> None:
    model, compiled = compiled_of(MODELS[name])
    for values in ARGUMENTS:
        check(model, compiled, of(values))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("back", [0, 1])
def test_scans_of_more_elements_than_are_unrolled(axis: int, back: int) -> None:
    shapes = ("300,2", "2,300")
    text = f"""g (float[{shapes[axis]}] x, float[2] h) => (float[2] y, float[2,300] z)
        <float f = {{0.9}}> {{ y, z = Scan<num_scan_inputs=1, scan_input_axes=[{axis}],
        scan_input_directions=[{back}], scan_output_axes=[1], scan_output_directions=[{1 - back}],
        body = b (float[2] s, float[2] e) => (float[2] t, float[2] u)
        {{ a = Mul(s, f) t = Add(a, e) u = Tanh(t) }}> (h, x) }}"""
    model, compiled = compiled_of(text)
    x = np.random.default_rng(axis).standard_normal((2, 300)).astype(np.float32)
    h = np.array([1, -2], np.float32)
    check(model, compiled, {"x": x if axis else np.ascontiguousarray(x.T), "h": h})


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("loop", [False, True])
def test_bodies_without_shapes_take_turns_where_constants_from_outside_decide_ranks(
    loop: bool,
) -> None:
    body = "{ a = Unsqueeze(s, axis) t = Squeeze(a, axis) u = Neg(a) }"
    if loop:
        call = f"""r = ReduceMax<keepdims=0>(x) m = Cast<to=7>(r) y, z = Loop(m, , h)
            <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2,1] u)
            {{ on = Identity(go) {body[1:]}>"""
    else:
        call = f"""y, z = Scan<num_scan_inputs=1, body = b (float[2] s, float e) =>
            (float[2] t, float[2,1] u) {body}>(h, x)"""
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[300] x, float[2] h) => (float[2] y, float[s,2,1] z)
        <int64[1] axis = {{1}}> {{ {call} }}"""
    )
    (inner,) = (a.g for node in model.graph.node for a in node.attribute if a.name == "body")
    for value in [*inner.input, *inner.output]:
        if value.name in "stu":
            value.type.tensor_type.ClearField("shape")
    x = np.full(300, 3, np.float32)
    check(model, satura.compile(model, threads=1), {"x": x, "h": np.array([1, -2], np.float32)})


def test_long_scans_of_vectors() -> None:
    text = """g (float h, float[300] x) => (float y, float[300] z) <float f = {0.9}> {
        y, z = Scan<num_scan_inputs=1, body = b (float s, float e) => (float t, float u)
        { a = Mul(s, f) t = Add(a, e) u = Tanh(t) }> (h, x) }"""
    model, compiled = compiled_of(text)
    check(model, compiled, {"h": np.array(1, np.float32), "x": np.arange(300, dtype=np.float32)})


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize(
    ("before", "lengths"),
    [
        ("w = Slice(v, first, end)", (3, 0, 1)),
        ("q = SplitToSequence<axis=0>(v) w = SequenceAt(q, zero)", (3, 1)),
    ],
)
def test_scans_of_open_length_have_results_of_that_length(
    before: str, lengths: tuple[int, ...]
) -> None:
    """What is taken for it, to see whether the steps can be one program, is not that of calls."""
    text = f"""g (float[n,c] x, float[m,3] v) => (float[n,c] y, float[1,3] w)
        <int64 zero = {{0}}> {{ {before}
        first = Constant<value_ints=[0]>()
        end = Constant<value_ints=[1]>() z = Scan<num_scan_inputs=1, body = b (float[c] e)
        => (float[c] u) {{ a = NonZero(e) f = Cast<to=1>(a) t = ReduceSum<keepdims=0>(f)
        u = Add(e, t) }}>(x) s = Add(z, x) y = Sub(x, s) }}"""
    _, compiled = compiled_of(text)
    for n in lengths:
        x = np.array([[0, 1, 2], [0, 0, 3], [4, 0, 0]], np.float32)[:n]
        found = compiled.run({"x": x, "v": np.ones((2, 3), np.float32)})
        expected = -(x + np.array([[3], [2], [0]], np.float32)[:n])
        np.testing.assert_array_equal(found["y"], expected)


CHOSEN = """g (float[n] x, int64 at) => (float y) <float least = {{4.0}}, int64 far = {{4}}> {{
    s = ReduceSum<keepdims=0>(x) c = Greater(s, least) y = If(c)
        <then_branch = t () => (float a) {{ {0} }}, else_branch = e () => (float b) {{ {1} }}> }}"""
READ, SUMMED = "{0} = Gather(x, {1})", "{0} = ReduceSum<keepdims=0>(x)"
REPEATED = """g (float[{0}] x, int64 at) => (float y) <int64 most = {{10}}, float zero = {{0.0}}> {{
    y, last = Loop(most, , zero, at) <body = b (int64 i, bool go, float h, int64 p)
        => (bool on, float s, int64 q) {{ two = Constant<value_int=2>() e = Gather(x, {1})
        s = Add(h, e) q = Add(p, two) on = Greater(e, zero) }}> }}"""


OUTSIDE: list[tuple[str, list[tuple[list[float], int]]]] = [
    (CHOSEN.format(READ.format("a", "at"), SUMMED.format("b")), [([1, 2], 9), ([3, 4], 1)]),
    (CHOSEN.format(SUMMED.format("a"), READ.format("b", "at")), [([4, 2], 9), ([1, 2], -1)]),
    (CHOSEN.format(READ.format("a", "far"), SUMMED.format("b")), [([1, 2], 0), ([2] * 5, 0)]),
    (REPEATED.format("n", "i"), [([1, 2, 0], 0), ([0], 0), ([1] * 12, 0)]),
    (REPEATED.format(3, "i"), [([1, 2, 0], 0), ([0, 1, 2], 0)]),
    (REPEATED.format("n", "p"), [([1, 7, 2, 7, 0], 0), ([0], 0)]),
]
"""Models that read outside of x where a branch or a turn is that is not taken."""


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("case", deep_but(OUTSIDE[:-1], OUTSIDE))
def test_what_is_not_taken_may_read_outside(
    case: tuple[str, list[tuple[list[float], int]]],
) -> None:
    text, calls = case
    model = onnx.parser.parse_model(HEAD + text)
    compiled = satura.compile(model, threads=1)
    for values, at in calls:
        check(model, compiled, {"x": np.array(values, np.float32), "at": np.array(at)})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (CHOSEN.format(READ.format("a", "at"), SUMMED.format("b")), [3, 4]),
        (REPEATED.format("n", "p"), [1, 7, 2, 7]),
    ],
)
def test_what_is_taken_may_not_read_outside(text: str, values: list[float]) -> None:
    compiled = satura.compile(onnx.parser.parse_model(HEAD + text), threads=1)
    with pytest.raises(CallError, match="an index"):
        compiled.run({"x": np.array(values, np.float32), "at": np.array(2)})


EITHER = """g (bool c, {0}) => (float y) {{ y = If(c)
    <then_branch = t () => (float a) {{ {1} a = ReduceMean<keepdims=0>(v) }},
     else_branch = e () => (float b) {{ {2} b = ReduceSum<keepdims=0>(x) }}> }}"""
FIRST = """u = If(c) <then_branch = t () => (float a) { zero = Constant<value_int=0>()
    a = Gather(x, zero) }, else_branch = e () => (float b) { b = Constant<value_float=-1.0>() }>"""
THREE = "k = Constant<value_ints=[3]>() v, i = TopK(x, k)"


BRANCHES = [
    ("g (bool c, float[n] x) => (float u) {" + FIRST + "}", "3 0", "0"),
    (EITHER.format("float[n] x", THREE, ""), "3 2", "2"),
    (EITHER.format("float[n] x", "k = Constant<value_ints=[3, 2]>() v, w = Split(x, k)", ""),
     "5 2", "2"),
    (EITHER.format("float[n,m] x", "k = Constant<value_ints=[0]>() v = Squeeze(x, k)", ""),
     "1,2 2,2", "2,2"),
    (EITHER.format("float[n] x", "k = Constant<value_ints=[-1, 2]>() v = Reshape(x, k)", ""),
     "4 3", "3"),
    (EITHER.format("float[n,m] x", "q = Transpose(x) v = Concat<axis=0>(x, q)", ""),
     "2,2 2,3", "2,3"),
    (EITHER.format("1,1,n", "v = MaxPool<kernel_shape=[5]>(x)", "")
     .replace("1,1,n", "float[1,1,n] x"), "1,1,6 1,1,2", "1,1,2"),
    (EITHER.format("float[n] x", "k = Constant<value_ints=[3, 3]>()"
     ' v = Pad<mode="reflect">(x, k)', ""), "4 2", "2"),
    (EITHER.format("float[n] x", "i = ArgMax<axis=0>(x) v = Cast<to=1>(i)", ""), "3 0", "0"),
    # Each branch needs what the other one excludes.
    (EITHER.format("float[n] x", "k = Constant<value_ints=[3, 2]>() v, w = Split(x, k)",
                   "l = Constant<value_ints=[4, 3]>() p, q = Split(x, l)"), "5 7 2", "5 7 2"),
    (EITHER.format("float[n,m] x", "k = Constant<value_ints=[2, 3]>() v = Reshape(x, k)",
                   "l = Constant<value_ints=[2, 4]>() p = Reshape(x, l)"),
     "2,3 1,8 1,1", "2,3 1,8 1,1"),
    # What the model needs in all calls.
    (EITHER.format("float[n] x", THREE, "").replace("(float y)", "(float y, float[3] z)")
     .replace("{ y =", "{ k0 = Constant<value_ints=[3]>() z, j = TopK(x, k0) y ="), "3 2", "2"),
    ("""g (bool c, float[n] x) => (float y) <int64 m = {3}, float none = {0}> {
     y = Loop(m, , none) <body = b (int64 i, bool go, float h) => (bool on, float s)
        { on = Identity(go) """ + FIRST + " s = Add(h, u) }> }", "3 0", "0"),
    ("""g (bool c, float[n] x) => (float[2] y) <float[2] rows = {1, 2}> {
     y = Scan<num_scan_inputs=1, body = b (float r) => (float s)
        { """ + FIRST + " s = Add(r, u) }>(rows) }", "3 0", "0"),
    ("g (bool c, float[n] x) => (float y) { y = own.F(c, x) }"
     '<domain: "own", opset_import: ["": 17]> F (c, x) => (u) { ' + FIRST + " }", "3 0", "0"),
]  # fmt: skip
"""Models, shapes of their x, and those of them at which the first branch, or each, does not run."""


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("case", deep_but([*BRANCHES[:2], *BRANCHES[9::2]], BRANCHES))
def test_a_branch_that_is_not_taken_excludes_no_sizes(case: tuple[str, str, str]) -> None:
    """Where the one that is taken does not run, calls are refused; onnxruntime says which."""
    text, shapes, fails = case
    model = onnx.parser.parse_model(HEAD + text)
    compiled = satura.compile(model, threads=1)
    for shape in shapes.split():
        for c in (True, False):
            x = np.ones([*map(int, shape.split(","))], np.float32)
            given = {"c": np.array(c), "x": x}
            try:
                run(model, given)
            except Exception:
                assert shape in fails.split()
                with pytest.raises(CallError):
                    compiled.run(given)
            else:
                check(model, compiled, given)


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_sizes_that_one_branch_alone_needs_to_be_equal_may_differ() -> None:
    text = """g (bool c, float[n] x, float[m] z) => (float[k] y, float[k] s) { y = If(c)
        <then_branch = t () => (float[k] a) { a = Add(x, z) },
         else_branch = e () => (float[k] b) { b = Neg(x) }> s = Mul(y, y) }"""
    model = onnx.parser.parse_model(HEAD + text)
    compiled = satura.compile(model, threads=1)
    for n, m in [(3, 3), (3, 1), (1, 3), (3, 2), (0, 2), (2, 2)]:
        given = {"x": np.ones(n, np.float32), "z": np.ones(m, np.float32)}
        check(model, compiled, {**given, "c": np.array(False)})
        if n == m or 1 in (n, m):
            check(model, compiled, {**given, "c": np.array(True)})
        else:
            with pytest.raises(CallError, match=r"If 'y'.*axis 0"):
                compiled.run({**given, "c": np.array(True)})


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_branches_that_run_at_different_sizes_each_run_at_theirs() -> None:
    text = """g (bool c, float[n,k] x) => (float[n,1] y)
        <float[4,1] v = {1.0, 2.0, 3.0, 4.0}, float[2,1] w = {5.0, 6.0}> { y = If(c)
        <then_branch = t () => (float[n,1] a) { a = MatMul(x, v) },
         else_branch = e () => (float[n,1] b) { b = MatMul(x, w) }> }"""
    model = onnx.parser.parse_model(HEAD + text)
    compiled = satura.compile(model, threads=1)
    for k, c in [(4, True), (2, False)]:
        given = {"x": np.ones((3, k), np.float32), "c": np.array(c)}
        check(model, compiled, given)
        with pytest.raises(CallError, match=r"If 'y'.*axis 1 must be"):
            compiled.run({**given, "c": np.array(not c)})
    optimized = satura.optimize(model)
    assert isinstance(optimized, Parts) and optimized.inputs["x"].shape[1] == symbol("k")
    (kept,) = optimized.kept
    assert kept.op_type == "If"
    with pytest.raises(ModelError, match=r"\(If\) .*computes 'b'.*; k is 4 here, as .*\(If\)"):
        load(model)


def test_what_sizes_decide_the_rank_of_stays_with_what_reads_it() -> None:
    text = """g (float[n,k] x) => (float y) { s = Shape<start=1>(x)
        five = Constant<value_ints=[5]>() c = Equal(s, five)
        zero = Constant<value_ints=[0]>() r = If(c)
        <then_branch = t () => (float[i,n,k] a) { a = Unsqueeze(x, zero) },
         else_branch = e () => (float[n,k] b) { b = Neg(x) }> y = ReduceSum<keepdims=0>(r) }"""
    model = onnx.parser.parse_model(HEAD + text)
    made = satura.optimize(model)
    assert isinstance(made, Parts) and [x.op_type for x in made.kept] == ["If", "ReduceSum"]
    for k in (4, 5):
        arguments = {"x": np.ones((3, k), np.float32)}
        expected = [3 * k if k == 5 else -3 * k]
        assert run(to_model(made), arguments) == run(model, arguments) == expected


@pytest.mark.filterwarnings("error::satura.errors.HostFallbackWarning")
def test_branches_that_run_at_the_sizes_of_calls_are_one_program() -> None:
    model = onnx.parser.parse_model(HEAD + EITHER.format("float[n] x", THREE, ""))
    compiled = satura.compile(model, threads=1)
    for n in (3, 4, 30):
        for c in (True, False):
            check(model, compiled, {"c": np.array(c), "x": np.ones(n, np.float32)})


def test_bodies_are_programs() -> None:
    _, compiled = compiled_of(MODELS["a choice in a loop"])
    assert [len(nodes) for nodes in compiled.hosts] == [1]
    assert "Loop" in compiled.hosts[0][0]


def test_several_threads_may_take_turns_at_once() -> None:
    model, compiled = compiled_of(MODELS["as many turns as data say"])
    given = [of(values) for values in ARGUMENTS] * 8
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(compiled.run, given))
    for arguments, result in zip(given, results, strict=True):
        np.testing.assert_array_equal(result["y"], run(model, arguments)[0])


def test_a_body_that_fails_names_its_node() -> None:
    text = """g (float[n] x, float[1,1] d, int64 j) => (float[k] y) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y = Loop (m, , x) <body = b (int64 i, bool go, float[p] h) => (bool on, float[q] t)
            { on = Identity(go) e = Gather(x, j) t = Add(h, e) }> }"""
    model, compiled = compiled_of(text)
    arguments = {**of([1.0, 1.0]), "j": np.array(1)}
    check(model, compiled, arguments)
    with pytest.raises(CallError, match=r"Loop 'y'.*index 7.*\[-2, 2\)|Loop 'y'.*\[-2, 2\)"):
        compiled.run({**arguments, "j": np.array(7)})


@pytest.mark.parametrize(
    ("step", "shapes"),
    [("t = Tanh(s) u = Neg(w)", {"p": "[n, 4]", "q": "[n, 4]"}),
     ("t = Tanh(s) u = Concat<axis=0>(w, s)", {"p": "[n, 4]", "q": '["q[0]", "q[1]"]'}),
     ("t = Identity(w) u = Concat<axis=0>(w, s)",
      {"p": '["p[0]", "p[1]"]', "q": '["q[0]", "q[1]"]'})],
)  # fmt: skip
def test_what_each_step_keeps_has_the_extents_that_it_had(
    step: str, shapes: dict[str, str]
) -> None:
    text = f"""g (float[n,4] x, float[1,1] d) => (float[m,4] p, float[k,4] q) {{
        s = ReduceSum<keepdims=0>(d) c = Cast<to=7>(s)
        p, q = Loop (c, , x, x) <body = b (int64 i, bool go, float[j,4] s, float[j,4] w) =>
            (bool on, float[h,4] t, float[l,4] u) {{ on = Identity(go) {step} }}> }}"""
    with pytest.raises(OpenExtents) as found:
        load(onnx.parser.parse_model(HEAD + text))
    assert {name: str(type_) for name, type_ in found.value.types.items()} == {
        name: f"f32{shape}" for name, shape in shapes.items()
    }


def test_results_of_no_turn_are_arrays_of_their_own() -> None:
    text = """g (float[n] x, float[1,1] d) => (float[n] y, float[n] z) {
        s = ReduceSum<keepdims=0>(d) m = Cast<to=7>(s)
        y, z = Loop (m, , x, x) <body = b (int64 i, bool go, float[n] h, float[n] k) =>
            (bool on, float[n] t, float[n] u) { on = Identity(go) t = Neg(h) u = Neg(k) }> }"""
    _, compiled = compiled_of(text)
    arguments = of([0.0, 0.0])
    results = compiled.run(arguments)
    assert not np.shares_memory(results["y"], results["z"])
    for result in results.values():
        assert not np.shares_memory(result, arguments["x"])
        np.testing.assert_array_equal(result, arguments["x"])


def while_loop(most: int, body: str, state: str = "float[4] t") -> onnx.ModelProto:
    """A loop that ends when no element changes much, and after so many steps."""
    return onnx.parser.parse_model(
        HEAD
        + f"""g (float[4] x) => (float[4] y) <int64 m = {{{most}}}, float[1] e = {{0.01}}> {{
        y = Loop (m, , x) <body = b (int64 i, bool go, float[4] s) => (bool on, {state}) {{
            {body} d = Sub(t, s) f = Abs(d) h = ReduceMax<keepdims=0>(f)
            on = Greater(h, e) }}> }}"""
    )


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
def test_python_takes_the_steps_of_a_loop_that_data_may_end_and_that_has_many_nodes() -> None:
    """As many copies of the body as there may be steps were searched for a minute."""
    model = while_loop(250, "t = Cos(s)")
    compiled = satura.compile(model, threads=1)
    assert compiled.hosts == (("Loop 'y'",),)
    check(model, compiled, {"x": np.array([0, 1, 2, 3], np.float32)})
    made = satura.optimize(model)
    assert isinstance(made, Parts) and [x.op_type for x in made.kept] == ["Loop"]


def test_a_loop_that_data_may_end_is_a_program_where_it_has_few_nodes() -> None:
    model = while_loop(4, "t = Cos(s)")
    compiled = satura.compile(model, threads=1)
    assert not compiled.hosts[0]
    check(model, compiled, {"x": np.array([0, 1, 2, 3], np.float32)})


def test_a_long_scan_of_a_batch_is_refused() -> None:
    """Up to opset 8 operand 0 says how long it is, and there is one for each of a batch."""
    text = """<ir_version: 8, opset_import: ["": 8]>
        g (float[1,2] h, float[1,300,2] x) => (float[1,2] y, float[1,300,2] z) {
        y, z = Scan<num_scan_inputs=1, body = b (float[2] s, float[2] e) =>
            (float[2] t, float[2] u) { t = Add(s, e) u = Tanh(t) }> (, h, x) }"""
    with pytest.raises(UnsupportedError, match="300 steps are more than 256"):
        satura.compile(onnx.parser.parse_model(text), threads=1)


def rows_of_steps(steps: str, inputs: str, is_declared: bool) -> onnx.ModelProto:
    """A loop of so many `steps`, each of which gives a row; its body may declare no shapes."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({inputs}) => (float[5, n] y, float[s, p, q] z)
        {{ {steps} y, z = Loop (m, , x) <body = b (int64 i, bool go, float[p, q] h) =>
            (bool on, float[p, q] t, float[p, q] o) {{
                on = Identity(go) u = Add(h, x) t = Tanh(u) o = Identity(t) }}> }}"""
    )
    (body,) = (each.g for node in model.graph.node for each in node.attribute if each.HasField("g"))
    for value in [*body.input[2:], *body.output[1:]] if not is_declared else []:
        value.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("is_declared", [True, False])
def test_rows_of_steps_have_one_shape_however_the_steps_are_known(is_declared: bool) -> None:
    """ONNX's shape inference drops what a body does not declare, also where there is no step."""
    given = rows_of_steps("", "float[5, n] x, int64 m", is_declared)
    of_data = rows_of_steps(
        "r = ReduceMin<keepdims=0>(x) m = Cast<to=7>(r)", "float[5, n] x", is_declared
    )
    for steps in (0, 2):
        x = np.full((5, 3), steps, np.float32)
        values = {"x": x, "m": np.array(steps)}
        found = satura.compile(given, threads=1).run(values)
        again = satura.compile(of_data, threads=1).run({"x": x})
        assert found["z"].shape == again["z"].shape == (steps, 5, 3)
        for name, array in found.items():
            np.testing.assert_array_equal(array, again[name])


def test_a_body_that_data_choose_is_named_once() -> None:
    inner = "g = Gone(x)"
    for name in "abc":
        inner = (
            f"{'g' if name != 'c' else 'y'} = If(c) <then_branch = t{name} () => (float g) {{"
            f" {inner} }}, else_branch = e{name} () => (float h) {{ h = Identity(x) }}>"
        )
    model = onnx.parser.parse_model(HEAD + f"g (bool c, float x) => (float y) {{ {inner} }}")
    with pytest.raises((ModelError, UnsupportedError)) as raised:
        satura.load(model)
    said = str(raised.value)
    assert said.count("in a body that runs only where") == 1 and "no op 'Gone'" in said, said


@pytest.mark.parametrize("does", [satura.load, satura.compile, satura.optimize])
@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("p = If(c) <then_branch = t () => (float q) { q = Exp(x) }>", "else_branch is missing"),
        ("i, p = Loop(, c, x)", "body is missing"),
        (
            "p, r = If(c) <then_branch = t () => (float q) { q = Exp(x) },"
            " else_branch = e () => (float s, float u) { s = Exp(x) u = Exp(s) }>",
            "then_branch has 1 results, not 2",
        ),
    ],
)
def test_nodes_in_bodies_have_their_bodies(
    inner: str, message: str, does: Callable[[onnx.ModelProto], object]
) -> None:
    """Without them the onnx package raised what it likes once data chose the body around them."""
    text = f"""g (bool c, float x) => (float y) {{ y = If(c) <
        then_branch = v () => (float p) {{ {inner} }},
        else_branch = w () => (float h) {{ h = Identity(x) }}> }}"""
    with pytest.raises(ModelError, match=message):
        does(onnx.parser.parse_model(HEAD + text))
