"""Saved models in which nodes stay that data decide: what is around them is rewritten."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_errors

import satura
from satura.errors import SaturaError, UnsupportedError
from satura.rewrite.onnx.cut import OpenExtents
from satura.rewrite.onnx.load import load_with_calls
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.write.emitter import OPSET
from satura.rewrite.onnx.write.save import to_model
from tests.command_line import cli
from tests.models_in_parts import (
    CASES,
    NO_RANKS,
    OTHERS,
    Case,
    alone,
    boxes,
    compare,
    found_and_multiplied,
    names,
    parsed,
    turns,
)
from tests.onnx_models import make_model, node
from tests.onnxruntime_reference import assert_close, run
from tests.tiers import deep_but


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
