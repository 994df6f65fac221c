"""Inputs with defaults: a model may have an initializer for an input, which then is a constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from onnx import ModelProto

from satura.rewrite.errors import CallError
from satura.rewrite.onnx.files import ModelApart


def defaults_among(model: ModelApart, names: Iterable[str]) -> list[str]:
    """Those of `names` that are inputs with an initializer."""
    graph = model.proto.graph
    inputs = {value.name for value in graph.input}
    defaults = inputs & {tensor.name for tensor in graph.initializer}
    return [name for name in names if name in defaults]


def with_inputs(model: ModelApart, names: Collection[str]) -> ModelApart:
    """The model where inputs of these names are given by each call, also those with an initializer.

    Raises CallError for a name of no input.
    """
    graph = model.proto.graph
    known = [value.name for value in graph.input]
    for name in names:
        if name not in known:
            is_constant = any(tensor.name == name for tensor in graph.initializer)
            what = "an initializer alone: list it among the graph's inputs" if is_constant else ""
            raise CallError(
                f"{name!r} cannot stay an input: it is {what or f'none of the inputs {known}'}"
            )
    return without_defaults(model, names)


def without_defaults(model: ModelApart, names: Collection[str]) -> ModelApart:
    """The model where inputs of these names have no initializer; it is itself where none has."""
    graph = model.proto.graph
    inputs = {value.name for value in graph.input} & set(names)
    kept = [tensor for tensor in graph.initializer if tensor.name not in inputs]
    if len(kept) == len(graph.initializer):
        return model
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    weights = {name: stored for name, stored in model.weights.items() if name not in inputs}
    return replace(model, proto=proto, weights=weights)
