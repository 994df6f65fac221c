"""If, Loop and Scan that data decide: Python takes each turn, and the bodies are programs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import satura
from satura.errors import CallError, UnsupportedError
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.parts import Parts
from tests.control_flow_models import ARGUMENTS, HEAD, MODELS, check, compiled_of, of
from tests.onnxruntime_reference import run
from tests.tiers import deep_but


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
