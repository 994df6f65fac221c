"""A number that a node cannot have is said as the model has it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper

from satura.errors import ModelError
from satura.rewrite.onnx.load import load
from tests.onnx_models import Shape, make_model, node

IMAGE: dict[str, Shape] = {"x": (1, 3, 8, 8)}
KERNEL = {"w": np.ones((4, 3, 3, 3), np.float32)}


def importing_twice() -> ModelProto:
    model = make_model([node("Relu")], {"x": (2,)}, opset=17)
    model.opset_import.append(helper.make_opsetid("", 13))
    return model


def importing_nothing() -> ModelProto:
    model = make_model([node("Relu")], {"x": (2,)})
    del model.opset_import[:]
    return model


WRONG = {
    "groups": (
        make_model([node("Conv", "x w", group=0)], IMAGE, KERNEL),
        "attribute 'group' must be at least 1, not 0",
    ),
    "pads": (
        make_model([node("Conv", "x w", pads=[-9, 0, -9, 0])], IMAGE, KERNEL),
        "pads of -9 and -9 take more than the 8 elements there are",
    ),
    "an index": (
        make_model([node("Gather", "x i")], {"x": (2, 3)}, {"i": 7}),
        r"index 7 lies outside \[-2, 2\)",
    ),
    "a negative index": (
        make_model([node("Gather", "x i")], {"x": (2, 3)}, {"i": [1, -3]}),
        r"index -3 lies outside \[-2, 2\)",
    ),
    "a count": (
        make_model([node("Range", "a b c")], {}, {"a": 0, "b": 2**63 - 1, "c": 1}),
        "would have 9223372036854775807 elements",
    ),
    "opsets": (importing_twice(), "versions 17 and 13 of domain '' are imported: keep one"),
    "no opset": (importing_nothing(), "the model has no opset import"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_number_is_named(name: str) -> None:
    model, reason = WRONG[name]
    with pytest.raises(ModelError, match=reason):
        load(model)
