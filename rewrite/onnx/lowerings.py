"""All lowerings: each of these modules registers those of its family in LOWERINGS."""

from satura.rewrite.onnx import (  # noqa: F401  # imported for what they register
    activations,
    contraction,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    padding,
    quantize,
    reductions,
    resize,
    shapes,
    windows,
)
from satura.rewrite.onnx.context import LOWERINGS

__all__ = ["LOWERINGS"]
