"""Operands of a kind that an op takes in no opset are refused, those of a newer opset are not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from satura.errors import ModelError
from satura.rewrite.onnx.load import load
from tests.onnx_models import Typed, make_model, node

FLOATS = {"s": np.array([6], np.float32)}
INTEGERS = Typed((1, 1, 3, 3), TensorProto.INT64)
WRONG: dict[str, tuple[ModelProto, str]] = {
    "a shape": (make_model([node("Reshape", "x s")], {"x": (2, 3)}, FLOATS), "1 is f32.* integers"),
    "repeats": (make_model([node("Tile", "x s")], {"x": (2,)}, FLOATS), "1 is f32.* integers"),
    "indices": (make_model([node("Gather", "x s")], {"x": (2,)}, FLOATS), "1 is f32.* integers"),
    "numbers for truths": (
        make_model([node("And", "x x")], {"x": INTEGERS}), "0 is i64, where the op takes bools"
    ),
    "integers for floats": (
        make_model([node("Conv", "x x")], {"x": INTEGERS}), "0 is i64, where the op takes floats"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_other_kinds_of_elements_are_refused(name: str) -> None:
    model, reason = WRONG[name]
    with pytest.raises(ModelError, match=f"input {reason}$"):
        load(model)


def test_types_of_newer_opsets_are_taken() -> None:
    for op_type, code in (("Softmax", TensorProto.BFLOAT16), ("Relu", TensorProto.INT32)):
        load(make_model([node(op_type)], {"x": Typed((2, 3), code)}, opset=12))
