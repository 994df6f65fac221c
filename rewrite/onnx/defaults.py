"""Inputs with defaults: a model may have an initializer for an input, which then is a constant."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from onnx import ModelProto

from satura.rewrite.onnx.files import ModelApart


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
