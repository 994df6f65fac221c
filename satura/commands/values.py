"""`--value NAME=VALUE`: values of inputs, which become constants of the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto

from satura.pipeline.inputs import read_input
from satura.rewrite.errors import CallError
from satura.rewrite.onnx.cut import with_values as with_constants
from satura.rewrite.onnx.defaults import without_defaults
from satura.rewrite.onnx.files import read_apart
from satura.rewrite.onnx.inputs import declared_inputs
from satura.rewrite.types.tensor_type import Array, TensorType


def with_values(
    model: Path | ModelProto, texts: Iterable[str], others: bool = False
) -> Path | ModelProto:
    """The model with the inputs that `texts` name as constants; without texts as it is.

    Raises CallError for what is no value of an input; with `others`, names of no input are those of
    another model's.
    """
    given = _texts_by_name(texts)
    if not given:
        return model
    apart = read_apart(model)
    types = declared_inputs(without_defaults(apart, given).proto.graph)
    if others:
        given = {name: text for name, text in given.items() if name in types}
    values = {name: _value(name, text, types) for name, text in given.items()}
    return with_constants(apart, values).whole()


def of_several(
    names: Sequence[str], model: Path | ModelProto, texts: Iterable[str]
) -> Path | ModelProto:
    """One of the models of these names with the values of its inputs among `texts`."""
    return with_values(model, texts, others=len(names) > 1)


def _texts_by_name(texts: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name and value):
            raise CallError(
                f"a value is written NAME=NUMBERS or NAME=FILE.npy, as in axes=0,2; got {text!r}"
            )
        if name in given:
            raise CallError(f"input {name!r} has two values: {given[name]} and {value}")
        given[name] = value
    return given


def _value(name: str, text: str, types: Mapping[str, TensorType]) -> Array:
    """The array that `text` writes or names, of the input's element type if it is written."""
    if name not in types:
        raise CallError(f"there is no input {name!r}; the inputs are {list(types)}")
    type_ = types[name]
    if text.endswith(".npy"):
        return read_input(Path(text))
    try:
        numbers = np.asarray(json.loads(text if type_.rank == 0 or text[0] == "[" else f"[{text}]"))
        if not np.can_cast(numbers.dtype, type_.dtype.numpy, "same_kind"):
            raise ValueError(f"{numbers.dtype.name} is not {type_.dtype.numpy.name}")
        return numbers.astype(type_.dtype.numpy)
    except (ValueError, OverflowError, TypeError) as error:
        raise CallError(
            f"input {name!r} is {type_}: its value is written as numbers, as in 0,2 or [[1, 2]], or"
            f" true and false, or is an .npy file; got {text!r} ({error})"
        ) from None
