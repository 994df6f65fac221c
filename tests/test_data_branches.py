"""Branches that data choose: one that is not taken excludes no sizes and reads no place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

import satura
from satura.errors import CallError, ModelError, UnsupportedError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.types.dims import symbol
from tests.control_flow_models import ARGUMENTS, HEAD, check, of
from tests.onnxruntime_reference import run
from tests.tiers import deep_but


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
