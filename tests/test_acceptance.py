"""Real models through every stage: right results, no host calls, and the statistics we promise."""

from __future__ import annotations

from functools import cache

import onnx
import pytest

import satura
from benchmarks.models import LIGHT, build, example_inputs, original_light
from satura.pipeline.stages import Searched, rewrite
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.statistics import statistics as count
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.types.comparison import relative_error
from satura.rewrite.types.tensor_type import Array
from tests.onnxruntime_reference import session
from tests.tiers import deep_but

RESNETS = ("resnet50", "resnet50_pad", "resnet50_tf")
STATIC = (*LIGHT, *RESNETS, "mobilenetv2_224", "deeplabv3_mobilenetv2_257", "esrgan_rrdb3")
SYMBOLIC = {
    "bert_base": {"batch": 2, "seq": 24},
    "minilm": {"batch": 1, "seq": 128},
    "rope_attention": {"batch": 1, "seq": 65},
}
MODELS = (*STATIC, *SYMBOLIC)
SMALL = ("rope_attention",)
DEEP = (
    "light_squeezenet", "light_inception_v1", "light_shufflenet", "resnet50_pad", "resnet50_tf",
    "mobilenetv2_224", "deeplabv3_mobilenetv2_257", "esrgan_rrdb3", "minilm",
)  # fmt: skip
ORIGINAL = ("light_inception_v1", "light_resnet50", "light_shufflenet", "light_squeezenet")
TOLERANCE = 1e-4  # of the largest magnitude of the reference


def onnxruntime_outputs(model: onnx.ModelProto, arguments: dict[str, Array]) -> dict[str, Array]:
    """Outputs of unoptimised onnxruntime, by name."""
    reference = session(model)
    names = [output.name for output in reference.get_outputs()]
    return dict(zip(names, reference.run(names, arguments), strict=True))


def assert_close(got: dict[str, Array], expected: dict[str, Array]) -> None:
    assert got.keys() == expected.keys()
    for name, reference in expected.items():
        assert got[name].shape == reference.shape and got[name].dtype == reference.dtype
    assert relative_error(got, expected) <= TOLERANCE


@cache
def rewritten(name: str, rules: str) -> Searched:
    return rewrite(build(name), rules, None, None)


def statistics(name: str, rules: str = "default") -> dict[str, int | float]:
    """Counts of what extraction chose."""
    return dict(count(rewritten(name, rules).schedule))


def seconds(name: str, rules: str = "default") -> float:
    """The predicted time of one run."""
    return rewritten(name, rules).schedule.seconds


@pytest.mark.parametrize("name", deep_but((), MODELS, (*SMALL, *DEEP)))
def test_model_equals_onnxruntime(name: str) -> None:
    """Results are right, and what saturation takes grows with the model."""
    model = build(name)
    compiled = satura.compile(model, threads=2)
    assert compiled.statistics["host-count"] == 0
    arguments = example_inputs(model, SYMBOLIC.get(name))
    expected = onnxruntime_outputs(model, arguments)
    assert_close(compiled.run(arguments), expected)
    assert_close(onnxruntime_outputs(to_model(compiled.program), arguments), expected)
    for sizes in ({"batch": 3, "seq": 7}, {"batch": 1, "seq": 1}) if name in SYMBOLIC else ():
        arguments = example_inputs(model, sizes)
        assert_close(compiled.run(arguments), onnxruntime_outputs(model, arguments))
    report = compiled.report
    assert report.stopped == "saturated"
    assert report.nodes <= 5 * report.rounds[0].nodes
    assert sum(rule.matches for rule in report.rules) <= 5 * report.nodes
    assert sum(rule.demand_calls for rule in report.rules) <= report.nodes


@pytest.mark.parametrize("name", deep_but((), LIGHT, ORIGINAL))
def test_original_light_model_gives_its_shipped_outputs(name: str) -> None:
    model, arguments, expected = original_light(name)
    assert_close(satura.compile(model, threads=2).run(arguments), expected)


@pytest.mark.deep
@pytest.mark.parametrize("name", RESNETS)
def test_resnet_is_one_dispatch_per_convolution(name: str) -> None:
    """53 convolutions, max pool, mean, classifier, and at most one copy for the input's layout."""
    counts = statistics(name)
    assert counts["fill-count"] == 0
    assert counts["copy-count"] <= 1
    assert counts["dispatch-count"] <= 53 + 3 + counts["copy-count"]
    assert counts["host-count"] == 0


def concat_copies(schedule: Schedule) -> int:
    """Dispatches that only move data into a concat or out of one."""
    nodes = schedule.program.nodes
    return sum(
        not dispatch.nodes
        or any(nodes[n].op.name == "concat" for n in (*dispatch.nodes, *dispatch.operands))
        for dispatch in schedule.dispatches
        if schedule.is_copy(dispatch)
    )


def concat_loops(schedule: Schedule) -> int:
    """Dispatches without an anchor that compute a concat: its parts are stored once more."""
    nodes = schedule.program.nodes
    return sum(
        any(nodes[n].op.name == "concat" for n in dispatch.nodes)
        for dispatch in schedule.dispatches
        if dispatch.form is Form.LOOP
    )


@pytest.mark.deep
def test_esrgan_has_no_fills_and_no_copies_of_concats() -> None:
    schedule = rewritten("esrgan_rrdb3", "default").schedule
    assert count(schedule)["fill-count"] == 0
    assert count(schedule)["host-count"] == 0
    assert concat_copies(schedule) == 0
    assert concat_loops(schedule) == 0
    plain = rewritten("esrgan_rrdb3", "none").schedule
    assert concat_loops(plain) > 0


@pytest.mark.deep
@pytest.mark.parametrize("name", [*RESNETS, "esrgan_rrdb3"])
def test_without_rules_the_goals_are_missed(name: str) -> None:
    without, with_rules = statistics(name, "none"), statistics(name)
    for kind in ("copy-count", "dispatch-count"):
        assert without[kind] > with_rules[kind]
