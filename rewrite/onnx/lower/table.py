"""All lowerings: each of these modules registers those of its family in LOWERINGS."""

from satura.rewrite.onnx.lower import (  # noqa: F401  # imported for what they register
    activations,
    affine_grid,
    contraction,
    deformable,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    padding,
    quantize,
    recurrent,
    reductions,
    regions,
    resize,
    sampling,
    scatter,
    sequences,
    shapes,
    sorting,
    spectra,
    transposed_conv,
    windows,
)
from satura.rewrite.onnx.lower.context import LOWERINGS

__all__ = ["LOWERINGS"]
