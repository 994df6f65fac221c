"""A normalisation followed by x · ½ · (1 + erf(x / √2)), which reads it twice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx import ModelProto

import satura
from tests.onnx_models import make_model, node, random_input
from tests.onnxruntime_reference import assert_close
from tests.tiers import deep_but

NORMALISATIONS = {
    "instance": node("InstanceNormalization", "x scale shift", "n"),
    "group": node("GroupNormalization", "x scale shift", "n", num_groups=2),
    "layer": node("LayerNormalization", "x scale shift", "n"),
}
GELU = (
    node("Mul", "n root", "scaled"),
    node("Erf", "scaled", "erf"),
    node("Add", "erf one", "raised"),
    node("Mul", "half raised", "gate"),
    node("Mul", "n gate", "g"),
)


def normalised_gelu(normalisation: str, reader: str, shape: tuple[int, ...]) -> ModelProto:
    """A model of a normalisation over `shape`, GELU, and what reads it."""
    rank = len(shape) - 2
    weights = {"convolution": (3, shape[1], *(3,) * rank), "matmul": (shape[-1], 3)}
    readers = {
        "nothing": node("Identity", "g"),
        "convolution": node("Conv", "g w", pads=[1] * (2 * rank)),
        "pool": node("MaxPool", "g", kernel_shape=[2] * rank),
        "matmul": node("MatMul", "g w"),
    }
    width = shape[-1] if normalisation == "layer" else shape[1]
    constants = {
        "scale": np.linspace(0.5, 1.5, width, dtype=np.float32),
        "shift": np.linspace(-1.0, 1.0, width, dtype=np.float32),
        "root": np.float32(0.5**0.5),
        "one": np.float32(1.0),
        "half": np.float32(0.5),
        "w": random_input(*weights.get(reader, ())),
    }
    nodes = [NORMALISATIONS[normalisation], *GELU, readers[reader]]
    return make_model(nodes, {"x": shape}, constants, opset=21)


SHAPES = ((2, 4, 5), (2, 4, 5, 6))
READERS = ("nothing", "convolution", "pool", "matmul")
SAMPLE = [("layer", "matmul"), ("group", "pool")]


@pytest.mark.parametrize("shape", deep_but(SHAPES[1:], SHAPES), ids=str)
@pytest.mark.parametrize(
    ("normalisation", "reader"),
    [
        pytest.param(*pair, marks=() if pair in SAMPLE else pytest.mark.deep)
        for pair in product(NORMALISATIONS, READERS)
    ],
)
def test_it_equals_the_interpreter(normalisation: str, reader: str, shape: tuple[int, ...]) -> None:
    model = normalised_gelu(normalisation, reader, shape)
    arguments = {"x": random_input(*shape, seed=1)}
    expected = satura.interpret(satura.load(model), arguments)
    assert_close(satura.compile(model, threads=1).run(arguments)["y"], expected["y"], 1e-5)
