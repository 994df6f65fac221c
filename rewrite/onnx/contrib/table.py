"""All definitions: each of these modules registers those of its family in DEFINITIONS."""

from satura.rewrite.onnx.contrib import (  # noqa: F401  # imported for what they register
    activations,
    attention,
    blocks,
    movement,
    normalization,
    products,
    quantized,
    rotary,
)
from satura.rewrite.onnx.contrib.definition import DEFINITIONS

__all__ = ["DEFINITIONS"]
