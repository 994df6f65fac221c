"""The first layers of a quantised image model, which see three channels and a border."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import satura
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import make_model, node
from tests.tiers import deep_but


def stem(kernel: int, channels: int, zero_point: int, pool_border: int) -> onnx.ModelProto:
    """A convolution and a maximum, before each of which and behind it everything is quantised."""
    random = np.random.default_rng(3)
    constants: dict[str, object] = {
        "s": np.float32(0.03), "z": np.uint8(zero_point), "t": np.float32(0.05), "o": np.uint8(0),
        "w": random.integers(-127, 128, (32, channels, kernel, kernel)).astype(np.int8),
        "u": np.linspace(0.004, 0.009, 32, dtype=np.float32), "v": np.zeros(32, np.int8),
        "b": random.normal(size=32).astype(np.float32),
    }  # fmt: skip
    pads, borders = [kernel // 2] * 4, [pool_border] * 4
    nodes = [
        node("QuantizeLinear", "x s z", "a"), node("DequantizeLinear", "a s z", "c"),
        node("DequantizeLinear", "w u v", "f", axis=0),
        node("Conv", "c f b", "d", strides=[2, 2], pads=pads), node("Relu", "d", "e"),
        node("QuantizeLinear", "e t o", "g"), node("DequantizeLinear", "g t o", "h"),
        node("MaxPool", "h", "m", kernel_shape=[3, 3], strides=[2, 2], pads=borders),
        node("QuantizeLinear", "m t o", "n"), node("DequantizeLinear", "n t o", "y"),
    ]  # fmt: skip
    return make_model(nodes, {"x": (1, channels, 21, 26)}, constants, 13)


@pytest.mark.parametrize("pool_border", [0, 1])
@pytest.mark.parametrize("zero_point", deep_but([124], [0, 124, 255]))
@pytest.mark.parametrize("layer", deep_but([(7, 3)], [(7, 3), (3, 3), (3, 1), (5, 6)]))
def test_a_quantised_stem_stores_octets(
    layer: tuple[int, int], zero_point: int, pool_border: int
) -> None:
    """Of a kernel and channels: as inputs of its convolution and of its maximum."""
    kernel, channels = layer
    model = stem(kernel, channels, zero_point, pool_border)
    compiled = satura.compile(model, threads=1)
    schedule = compiled.rewritten.schedule
    stored = [schedule.program.nodes[each.root].type.dtype for each in schedule.dispatches]
    assert stored[:-1] == [DType.U8] * (len(stored) - 1), stored
    x = np.random.default_rng(1).normal(0, 2, (1, channels, 21, 26)).astype(np.float32)
    x[0, 0, 0, :2] = np.inf, -np.inf
    found, meant = compiled.run({"x": x})["y"], interpret(satura.load(model), {"x": x})["y"]
    differences = np.abs(np.float64(found) - np.float64(meant))
    assert meant.any() and differences.max() <= 0.0501  # a step
    assert np.mean(differences > 1e-3) <= 0.02  # at ties
