"""Texts of attributes that ONNX does not know are refused, in one way for all ops."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, defs

from satura.errors import ModelError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.words import WORDS
from tests.onnx_models import make_model, node

IMAGE = {"x": (1, 4, 8, 8)}
KERNEL = {"w": np.ones((2, 4, 3, 3), np.float32)}
GRID = {"g": np.zeros((1, 2, 2, 2), np.float32)}
SCALES = {"s": np.ones(4, np.float32)}


def convolution(auto_pad: str) -> ModelProto:
    return make_model([node("Conv", "x w", auto_pad=auto_pad)], IMAGE, KERNEL)


WRONG = {
    "auto_pad": (convolution("FOO"), "NOTSET, SAME_UPPER, SAME_LOWER, VALID"),
    "mode": (make_model([node("DepthToSpace", blocksize=2, mode="foo")], IMAGE), "DCR, CRD"),
    "approximate": (
        make_model([node("Gelu", approximate="foo")], IMAGE, opset=20), "none, tanh"
    ),
    "padding_mode": (
        make_model([node("GridSample", "x g", padding_mode="foo")], IMAGE, GRID),
        "zeros, border, reflection",
    ),
    "nearest_mode": (
        make_model([node("Resize", "x - s", nearest_mode="foo")], IMAGE, SCALES),
        "round_prefer_floor, round_prefer_ceil, floor, ceil",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_other_words_are_refused_with_those_that_there_are(name: str) -> None:
    model, known = WRONG[name]
    with pytest.raises(
        ModelError, match=rf"attribute '{name}' is '(foo|FOO)', and not one of {known}$"
    ):
        load(model)


def test_an_auto_pad_that_is_empty_is_none() -> None:
    load(convolution(""))


def test_what_is_meant_by_default_is_a_word() -> None:
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version > 1:  # the first default is misspelt
            for name, attribute in schema.attributes.items():
                words = WORDS.get(schema.name, {}).get(name, ())
                assert not words or attribute.default_value.s.decode() in (*words, "")


def test_words_are_of_attributes_that_there_are() -> None:
    for op_type, words in WORDS.items():
        if defs.has(op_type):
            assert words.keys() <= defs.get_schema(op_type).attributes.keys()
