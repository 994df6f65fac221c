"""Saved models in which nodes stay that data decide: what is around them is rewritten."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_errors

import satura
from satura.errors import EqualSizesWarning, SaturaError, UnsupportedError
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.load import load_with_calls
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.emitter import OPSET
from satura.rewrite.onnx.write.save import save, to_model
from satura.rewrite.types.tensor_type import Array
from tests import control_flow_models as flow
from tests import test_data_extents as extents
from tests import test_data_in_a_row as in_a_row
from tests.command_line import cli
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but
from tests.user_ops import UserOps

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


@pytest.mark.parametrize(
    "name",
    deep_but(
        ["found_and_multiplied", "names", *(each.__name__ for each in NO_RANKS)],
        [*CASES, *OTHERS],
    ),
)  # fmt: skip
def test_saved_models_compute_what_the_model_does(name: str, tmp_path: Path) -> None:
    model, calls = {**CASES, **OTHERS}[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = satura.optimize(model)
    assert isinstance(parts, Parts) and parts.kept
    satura.save(parts, tmp_path / "saved.onnx")
    saved = onnx.load(tmp_path / "saved.onnx")
    onnx.checker.check_model(saved, full_check=True)
    compare(model, saved, calls)
    for one, other in ((model.graph.input, saved.graph.input),
                       (model.graph.output, saved.graph.output)):  # fmt: skip
        assert [each.name for each in one] == [each.name for each in other]
    made = {name for each in saved.graph.node for name in each.output}
    read = {name for each in model.graph.node for name in each.input}
    read |= {each.name for each in model.graph.output}  # what nobody reads is not written
    assert made >= {name for each in parts.kept for name in each.output if name in read - {""}}
    assert made >= {each.name for each in saved.graph.output}, "no result is an initializer"


UNABLE = (
    onnxruntime_errors.Fail, onnxruntime_errors.InvalidArgument, onnxruntime_errors.InvalidGraph,
    onnxruntime_errors.NotImplemented, onnxruntime_errors.RuntimeException,
)  # fmt: skip


def _has_open_extents(model: ModelProto) -> bool:
    try:
        load_with_calls(model, OPSET)
    except SaturaError as error:
        return isinstance(error, OpenExtents)
    return False


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
def test_nodes_of_every_kind_stay_where_no_shape_is_declared() -> None:
    """The onnx package's own cases in which results have extents of data or of inputs' values."""
    kept: set[str] = set()
    for case in collect_testcases(None):
        model = ModelProto()
        model.CopyFrom(case.model or model)
        for output in model.graph.output:
            for dim in output.type.tensor_type.shape.dim:
                dim.Clear()
        names = (value.name for value in model.graph.input)
        call = dict(zip(names, (case.data_sets or [])[0][0], strict=False))
        if not _has_open_extents(model):
            continue
        try:
            parts = satura.optimize(model)
            saved = to_model(parts)
            run(model, call)
        except (SaturaError, *UNABLE):
            continue  # not only because of the nodes that would stay
        compare(model, saved, [call])
        assert isinstance(parts, Parts)
        kept |= {each.op_type for each in parts.kept}
    assert len(kept) > 20 and kept >= {"NonZero", "Compress", "Slice", "Resize", "Pad"}


@pytest.mark.filterwarnings("ignore::satura.errors.HostFallbackWarning")
@pytest.mark.parametrize("make", NO_RANKS)
def test_nodes_of_which_onnx_says_no_rank_are_compiled_too(make: Callable[[], Case]) -> None:
    model, calls = make()
    compiled = satura.compile(model, threads=1)
    for call in calls:
        for value, expected in zip(compiled.run(call).values(), run(model, call), strict=True):
            assert_close(value, expected)


def test_what_is_around_the_nodes_is_rewritten_and_typed_as_before() -> None:
    model, _ = found_and_multiplied()
    saved = to_model(satura.optimize(model))
    assert next(each for each in model.graph.node if each.op_type == "NonZero") in saved.graph.node
    assert "Transpose" not in {each.op_type for each in saved.graph.node}
    (weight,) = (each for each in saved.graph.initializer if len(each.dims) == 2)
    assert sum(weight.name in each.input for each in saved.graph.node) == 2, "it is stored once"
    assert list(saved.graph.input) == list(model.graph.input)
    assert list(saved.graph.output) == list(model.graph.output)
    saved = to_model(satura.optimize(names()[0]))
    dims = {x.name: x.type.tensor_type.shape.dim for x in saved.graph.output}
    assert dims["turned"][1].dim_param == "n", "not 5, as declared: calls may have others"


@pytest.mark.parametrize("opset", deep_but([11], [11, 13, 17, 18, 19, 20, 21, 22]))
@pytest.mark.parametrize("make", deep_but([turns], [found_and_multiplied, turns, boxes, alone]))
def test_nodes_that_stay_are_written_in_the_opset_of_the_others(
    make: Callable[[int], Case], opset: int
) -> None:
    model, calls = make(opset)
    saved = to_model(satura.optimize(model))
    assert 18 <= saved.opset_import[0].version <= max(opset, 21)
    onnx.checker.check_model(saved, full_check=True)
    compare(model, saved, calls)


CONVERTED = {
    "BatchNormalization": (8, "BatchNormalization(h, both, both, both, both)"),
    "Clip": (9, "Clip<min=0.1, max=0.5>(h)"),
    "Dropout": (9, "Dropout<ratio=0.4>(h)"),
    "LogSoftmax": (11, "LogSoftmax(h)"),
    "Pad": (9, "Pad<pads=[0,0,1,1,0,0,1,0], value=2.0>(h)"),
    "RoiAlign": (11, "RoiAlign<output_height=2, output_width=2, spatial_scale=0.5>(h, rois, b)"),
    "Scatter": (9, "Scatter<axis=3>(h, places, h)"),
    "Slice": (9, "Slice<axes=[2], starts=[1], ends=[3]>(h)"),
    "Softmax": (11, "Softmax(h)"),
    "TopK": (9, "TopK<k=2, axis=3>(h)"),
}


def repeated(step: str, opset: int) -> ModelProto:
    """As many times as data say, what a step makes of images."""
    results = "o, other" if step.startswith("TopK") else "o"
    return parsed(
        f"""g (float[1,2,4,4] x) => (float[k,a,b,c,d] y) <float[2] both = {{0.5,2}},
        float[1,4] rois = {{0,0,6,5}}, int64[1] b = {{0}}>
        {{ s = ReduceMax<keepdims=0>(x) m = Cast<to=7>(s) places = Cast<to=7>(x)
        r, y = Loop(m, , x) <body = g (int64 i, bool go, float[1,2,4,4] h) =>
            (bool on, float[1,2,4,4] n, float[e,f,g,j] o)
            {{ on = Identity(go) n = Neg(h) {results} = {step} }}> }}""",
        opset,
    )


@pytest.mark.parametrize("op_type", deep_but(["Softmax"], CONVERTED))
def test_what_is_another_op_in_newer_opsets_is_converted(op_type: str) -> None:
    opset, step = CONVERTED[op_type]
    model = repeated(step, opset)
    saved = to_model(satura.optimize(model))
    assert "Loop" in {each.op_type for each in saved.graph.node}
    images = 3 * np.random.default_rng(0).random((1, 2, 4, 4)).astype(np.float32)
    compare(model, saved, [{"x": images}])


REFUSED = {
    "Hardmax": (11, "Hardmax<axis=2>(h)"), "Upsample": (9, 'Upsample<mode="linear">(h, four)'),
}  # fmt: skip


@pytest.mark.parametrize("op_type", deep_but(["Hardmax"], REFUSED))
def test_what_the_onnx_package_converts_wrongly_is_refused(op_type: str) -> None:
    opset, step = REFUSED[op_type]
    model = repeated(step, opset)
    ones = np.array([1, 1, 2, 2], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(ones, "four"))
    parts = satura.optimize(model)
    with pytest.raises(UnsupportedError, match=rf"\({op_type}\) .*cannot be saved: it is another"):
        to_model(parts)


def _body(step: NodeProto, shape: Sequence[str | int]) -> GraphProto:
    """The body of a loop that passes on what a node makes of `h`."""
    info = helper.make_tensor_value_info
    return helper.make_graph(
        [node("Identity", "go", "on"), step], "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []),
         info("h", TensorProto.FLOAT, shape)],
        [info("on", TensorProto.BOOL, []), info("o", TensorProto.FLOAT, shape)],
    )  # fmt: skip


def test_weights_are_stored_beside_the_model_once(tmp_path: Path) -> None:
    """Those that only a body reads, too."""
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((64, 64)).astype("f4") for name in ("v", "w")}
    body = _body(node("MatMul", "h v", "o"), ("n", 64))
    nodes = [
        node("MatMul", "x w", "a"), node("ReduceMax", "d", "e", keepdims=0),
        node("Cast", "e", "m", to=7), node("Loop", "m - a", "r", body=body),
        node("MatMul", "r w", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n", 64), "d": (1, 1)}, weights)
    own = ModelProto.FromString(model.SerializeToString())
    onnx.save(
        own, tmp_path / "model.onnx", save_as_external_data=True, location="w", size_threshold=0
    )
    save(satura.optimize(tmp_path / "model.onnx"), tmp_path / "saved.onnx", largest_file=0)
    (data,) = tmp_path.glob("saved.onnx.*.data")
    assert data.stat().st_size == 2 * 64 * 64 * 4
    session = onnxruntime.InferenceSession(
        tmp_path / "saved.onnx", providers=["CPUExecutionProvider"]
    )
    for turns in (0, 2):
        call = {"x": random_input(3, 64), "d": np.full((1, 1), turns, np.float32)}
        for one, other in zip(session.run(None, call), run(model, call), strict=True):
            assert_close(one, other, 1e-4)


def _swapped(nodes: Sequence[NodeProto], names: tuple[str, str]) -> None:
    """Let each node read one of two tensors where it reads the other."""
    other = dict(zip(names, reversed(names), strict=True))
    for each in nodes:
        each.input[:] = [other.get(name, name) for name in each.input]


def test_names_in_another_order_are_found_by_the_comparison() -> None:
    model, calls = extents.written()
    saved = to_model(satura.optimize(model))
    compare(model, saved, calls)
    faults = 0
    for names in permutations(("x", "u", "w", "places"), 2):
        if names[0] < names[1]:
            broken = ModelProto.FromString(saved.SerializeToString())
            _swapped(broken.graph.node, names)
            with pytest.raises(Exception):  # noqa: B017  # wrong, or refused by onnxruntime
                compare(model, broken, calls)
            faults += 1
    assert faults == 6


def test_open_axes_without_names_are_the_same_in_each_part() -> None:
    """Else those of two parts would meet, and be taken for equal with a warning."""
    nodes = [
        node("Relu", "x", "r"), node("NonZero", "r", "p"), node("ReduceMax", "p", "m", keepdims=0),
        node("Cast", "m", "f", to=1), node("Add", "r x", "s"), node("Mul", "s f", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (None, None)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved = to_model(satura.optimize(model))
    compare(model, saved, [{"x": random_input(*shape)} for shape in ((2, 3), (1, 4))])


@pytest.mark.deep
def test_sizes_that_data_decide_may_be_taken_for_equal() -> None:
    nodes = [node("NonZero", "x", "p"), node("NonZero", "z", "q"), node("Add", "p q")]
    model = make_model(nodes, {"x": ("n",), "z": ("m",)})
    with pytest.warns(EqualSizesWarning, match=r'the sizes "q\[1\]" and "p\[1\]" are taken'):
        parts = satura.optimize(model)
    x, z = np.array([0, 2, 1], np.float32), np.array([3, 4], np.float32)
    compare(model, to_model(parts), [{"x": x, "z": z}])


@pytest.mark.deep
def test_a_size_of_data_that_is_taken_for_one_is_said() -> None:
    nodes = [
        node("NonZero", "x", "p"), node("Add", "p five", "a"), node("Add", "p three", "b"),
        node("Concat", "a b", axis=1),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n",)}, {"five": np.arange(5), "three": np.arange(3)})
    with pytest.warns(EqualSizesWarning, match=r'behind \'p\': the sizes "p\[1\]" and 1 are taken'):
        parts = satura.optimize(model)
    compare(model, to_model(parts), [{"x": np.array([0, 2], np.float32)}])


@pytest.mark.deep
def test_functions_of_declared_ops_stay_with_the_nodes_that_call_them(ops: UserOps) -> None:
    assert ops.elu.user is not None
    domain, name = ops.elu.user.domain, ops.elu.user.op_type
    body = _body(helper.make_node(name, ["h"], ["o"], domain=domain), ("n",))
    function = helper.make_function(
        domain, name, ["h"], ["o"], [node("Elu", "h", "o")], [helper.make_opsetid("", 18)]
    )
    nodes = [
        node("ReduceMax", "x", "e", keepdims=0), node("Cast", "e", "m", to=7),
        node("Loop", "m - x", "y", body=body),
    ]  # fmt: skip
    model = make_model(nodes, {"x": ("n",)}, opset=18, functions=[function])
    saved = to_model(satura.optimize(model))
    assert [each.name for each in saved.functions] == [name]
    compare(model, saved, [{"x": np.array([2, -1], np.float32)}])


def test_the_command_says_which_nodes_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    model, calls = found_and_multiplied()
    onnx.save(model, path)
    assert cli("optimize", path, path, "--text") == 0
    out = capsys.readouterr().out
    assert "places = NonZero (a)" in out and 'input() "places" : i64[2, "places[1]"]' in out
    assert "; 2 parts rewritten, 1 node stays as it is: NonZero 'places'" in out
    compare(model, onnx.load(path), calls)
    refused = make_model([node("NonZero", "x", "p"), node("Reshape", "x p")], {"x": ("n",)})
    onnx.save(refused, path)
    assert cli("optimize", path, tmp_path / "out.onnx") == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.deep
def test_the_command_times_models_in_which_nodes_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(boxes()[0], path)
    timed = ["--time", "--threads", "1", "--size", "n=7"]
    assert cli("optimize", path, tmp_path / "out.onnx", *timed) == 0
    out = capsys.readouterr().out
    assert (
        "; 3 parts rewritten, 2 nodes stay as they are: NonMaxSuppression 'kept', TopK 'z'" in out
    )
    assert "timed at n=7 (see --size)" in out and "run against run" in out
    assert cli("optimize", path, tmp_path / "out.onnx", "--time", "--size", "found=7") == 2
    assert "there is no size 'found' in the model; its sizes are ['n']" in capsys.readouterr().err
