"""DeformConv against the onnx package's reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import satura
from satura.rewrite.errors import ModelError
from satura.rewrite.types.tensor_type import Array
from tests.tiers import deep_but


def random_model(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A node of any strides, dilations, borders and groups, and what it reads."""
    random = np.random.default_rng(seed)
    groups, shares = random.choice([1, 2], 2).tolist()
    kernel, pads = random.integers(1, 4, 2).tolist(), random.integers(0, 3, 4).tolist()
    strides, dilations = random.integers(1, 3, (2, 2)).tolist()
    image = (9, 8)
    outer = [
        (image[at] + pads[at] + pads[at + 2] - (kernel[at] - 1) * dilations[at] - 1) // strides[at]
        + 1
        for at in range(2)
    ]
    batch, taps = int(random.integers(1, 3)), kernel[0] * kernel[1]
    shapes = {
        "x": (batch, 4, *image), "w": (6, 4 // groups, *kernel),
        "offset": (batch, shares * taps * 2, *outer), "b": (6,),
        "mask": (batch, shares * taps, *outer),
    }  # fmt: skip
    has_bias, has_mask = random.random(2) < 0.5
    names = ["x", "w", "offset", "b" if has_bias else "", "mask" if has_mask else ""]
    node = helper.make_node(
        "DeformConv", names, ["y"], kernel_shape=kernel, strides=strides, dilations=dilations,
        pads=pads, group=groups, offset_group=shares,
    )  # fmt: skip
    given = {name: shapes[name] for name in names if name}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in given.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "deformed", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    scale = {"offset": 2.0}
    return model, {
        name: np.asarray(random.standard_normal(shape) * scale.get(name, 1), np.float32)
        for name, shape in given.items()
    }


@pytest.mark.parametrize("seed", deep_but(range(4), range(60)))
def test_results_are_those_of_the_reference(seed: int) -> None:
    model, arguments = random_model(seed)
    (expected,) = ReferenceEvaluator(model).run(None, arguments)
    compiled = satura.compile(model, threads=1)
    assert compiled.statistics["host-count"] == 0
    assert compiled.run(arguments)["y"] == pytest.approx(expected, abs=1e-4, rel=1e-4)


def test_numbers_of_channels_that_do_not_fit_are_an_error() -> None:
    model, _ = random_model(0)
    (group,) = (each for each in model.graph.node[0].attribute if each.name == "group")
    group.i = 3
    with pytest.raises(ModelError, match="4 channels and 6 results do not fit weights"):
        satura.load(model)


def test_what_is_sampled_takes_few_dispatches() -> None:
    """Most of what finds the places is computed where these are read, and not stored before."""
    model, _ = random_model(7)
    assert satura.compile(model, threads=1).statistics["dispatch-count"] <= 10
