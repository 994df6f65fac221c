"""The benchmark models are valid, run in onnxruntime, and depend on their inputs and weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import satura
from benchmarks.models import LIGHT, MODELS, QUANTIZED, TINY, build, example_inputs, original_light
from tests.onnxruntime_reference import run
from tests.tiers import deep_but

SMALL = (*TINY, "light_shufflenet", "light_squeezenet", "rope", "rope_attention")
TINY_QUANTIZED = tuple(name for name in QUANTIZED if name in TINY)
LARGE = ("light_vgg19", "light_zfnet512", "light_bvlc_alexnet", "bert_base")
LARGEST = 50.0  # of an output's absolute values, which are of order one


def rotate_channels(model: onnx.ModelProto) -> str | None:
    """Rotate the first axis of the middle large weight in place; None when there is no weight."""
    weights = [tensor for tensor in model.graph.initializer if len(tensor.dims) >= 2]
    if not weights:
        return None
    weight = weights[len(weights) // 2]
    rotated = np.roll(numpy_helper.to_array(weight), 1, axis=0)
    weight.CopyFrom(numpy_helper.from_array(rotated, weight.name))
    return str(weight.name)


@pytest.mark.parametrize(
    "name", deep_but(SMALL, MODELS, [name for name in MODELS if name not in LARGE])
)
def test_model_is_valid_runs_and_is_not_flat(name: str) -> None:
    model = build(name)
    onnx.checker.check_model(model)
    inputs = example_inputs(model, sizes={"batch": 2, "seq": 24})
    outputs = run(model, inputs)
    for output in outputs:
        assert np.isfinite(output).all()
        assert np.abs(output).max() <= LARGEST
        assert output.std() > 0.05 * np.abs(output).mean()
    if rotate_channels(model) is not None:
        changed = run(model, inputs)[0]
        assert np.abs(changed - outputs[0]).max() > 1e-3 * np.abs(outputs[0]).max()


def output_step(model: onnx.ModelProto) -> float:
    """The scale of a quantised model's output."""
    scale = [node.input[1] for node in model.graph.node if node.op_type == "DequantizeLinear"][-1]
    (value,) = (tensor for tensor in model.graph.initializer if tensor.name == scale)
    return float(numpy_helper.to_array(value))


@pytest.mark.parametrize("name", deep_but((), TINY_QUANTIZED, ["tiny_deeplab_qdq"]))
def test_a_quantised_model_is_within_a_step_of_onnxruntime(name: str) -> None:
    model = build(name)
    arguments = example_inputs(model)
    (expected,) = run(model, arguments)
    program = satura.load(model)
    compiled = satura.compile(program, threads=2)
    assert compiled.statistics["host-count"] == 0
    for results in satura.interpret(program, arguments), compiled.run(arguments):
        (got,) = results.values()
        assert got.shape == expected.shape and got.dtype == expected.dtype
        assert np.abs(got - expected).max() <= 1.001 * output_step(model)


@pytest.mark.parametrize("name", TINY_QUANTIZED)
def test_a_quantised_model_is_near_its_float_model(name: str) -> None:
    arguments = example_inputs(name)
    (quantised,) = run(build(name), arguments)
    (exact,) = run(build(name.removesuffix("_qdq")), arguments)
    assert np.abs(quantised - exact).max() <= 0.1 * np.abs(exact).max()


@pytest.mark.parametrize("name", TINY_QUANTIZED)
def test_a_quantised_model_computes_on_dequantised_tensors(name: str) -> None:
    graph = build(name).graph
    ops = {node.output[0]: node.op_type for node in graph.node}
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm", "Add", "Concat"):
            assert {ops[operand] for operand in node.input} == {"DequantizeLinear"}
        assert node.op_type not in ("BatchNormalization", "Relu", "Clip")


@pytest.mark.parametrize("name", TINY[::4])
def test_building_is_deterministic(name: str) -> None:
    assert build(name).SerializeToString() == build(name).SerializeToString()


@pytest.mark.parametrize("name", deep_but(SMALL, LIGHT))
def test_original_light_models_give_their_shipped_outputs(name: str) -> None:
    model, inputs, expected = original_light(name)
    (output,) = run(model, inputs)
    shipped = np.asarray(next(iter(expected.values())), np.float32)
    np.testing.assert_allclose(output, shipped, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("prefix", deep_but(["tiny_resnet"], ["resnet50", "tiny_resnet"]))
def test_the_spellings_of_resnet_are_one_function(prefix: str) -> None:
    inputs = example_inputs(f"{prefix}_pad")
    channels_last = {name: array.transpose(0, 2, 3, 1) for name, array in inputs.items()}
    (plain,) = run(build(prefix), inputs)
    (padded,) = run(build(f"{prefix}_pad"), inputs)
    (exported,) = run(build(f"{prefix}_tf"), channels_last)
    np.testing.assert_allclose(padded, plain, atol=1e-4)
    np.testing.assert_allclose(exported, plain, atol=1e-4)


def test_example_inputs_follow_sizes_and_seed() -> None:
    model = build("tiny_bert")
    first = example_inputs(model, sizes={"batch": 3, "seq": 8}, seed=1)
    assert first["input_ids"].shape == (3, 8)
    assert first["input_ids"].dtype == np.int64
    assert first["attention_mask"].tolist() == [[1] * 6 + [0] * 2] * 3
    other = example_inputs(model, sizes={"batch": 3, "seq": 8}, seed=2)
    assert not np.array_equal(first["input_ids"], other["input_ids"])


def test_an_unknown_name_is_an_error_that_lists_the_models() -> None:
    with pytest.raises(KeyError, match="tiny_bert"):
        build("no_such_model")
