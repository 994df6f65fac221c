"""ConvTranspose: all phases of a result, whether each is a convolution or all are one."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import satura
from satura.rewrite.onnx.lower import transposed_conv
from satura.rewrite.program.interpreter import interpret
from tests.onnx_models import make_model, node
from tests.tiers import deep_but, seeds


def drawn(random: np.random.Generator) -> onnx.ModelProto:
    """A transposed convolution of whole numbers, which are summed without rounding."""
    rank, groups = int(random.integers(1, 4)), int(random.choice([1, 1, 2, 3]))
    channels, width = groups * int(random.integers(1, 4)), int(random.integers(1, 4))
    strides, extents, kernel = (random.integers(1, most, rank).tolist() for most in (7, 6, 6))
    dilations = random.choice([1, 1, 1, 2, 3], rank).tolist()
    more = [int(random.integers(stride)) for stride in strides]
    attributes: dict[str, object] = {
        "strides": strides, "dilations": dilations, "group": groups, "output_padding": more,
    }  # fmt: skip
    if min(extents) > 2:  # else maybe nothing is left
        attributes["pads"] = random.integers(0, 3, 2 * rank).tolist()
    weights = {
        "w": random.integers(-3, 4, (channels, width, *kernel)).astype(np.float32),
        "b": random.integers(-3, 4, width * groups).astype(np.float32),
    }
    nodes = [node("ConvTranspose", "x w b", "y", **attributes)]
    return make_model(nodes, {"x": (2, channels, *extents)}, weights, 17)


@pytest.mark.parametrize("seed", deep_but(seeds(12), seeds(150)))
@pytest.mark.parametrize("most", [0, transposed_conv.MOST_PHASES])
def test_results_are_onnxruntimes(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transposed_conv, "MOST_PHASES", most)
    random = np.random.default_rng(seed)
    model = drawn(random)
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    x = random.integers(-3, 4, shape).astype(np.float32)
    (theirs,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(interpret(satura.load(model), {"x": x})["y"], theirs)


@pytest.mark.parametrize(
    ("strides", "kernel", "taps"),
    [((8, 8), (16, 16), 4), ((16, 16), (16, 16), 1), ((3, 3, 3), (3, 3, 3), 1), ((40,), (160,), 4)],
)
def test_nothing_between_the_elements_is_multiplied(
    strides: tuple[int, ...], kernel: tuple[int, ...], taps: int
) -> None:
    """Kernels of whole strides: each result sees as many taps as strides fit in the kernel."""
    random = np.random.default_rng(0)
    weights = {"w": random.normal(size=(6, 4, *kernel)).astype(np.float32)}
    extents = (5,) * len(strides)
    nodes = [node("ConvTranspose", "x w", "y", strides=strides)]
    model = make_model(nodes, {"x": (1, 6, *extents)}, weights, 17)
    compiled = satura.compile(model, threads=1)
    x = random.normal(size=(1, 6, *extents)).astype(np.float32)
    found, meant = compiled.run({"x": x})["y"], interpret(satura.load(model), {"x": x})["y"]
    assert np.allclose(found, meant, rtol=1e-4, atol=1e-5)
    assert compiled.statistics["flops"] <= 2.1 * 6 * taps * found.size
    assert compiled.statistics["dispatch-count"] <= 3
