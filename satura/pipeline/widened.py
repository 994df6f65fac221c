"""Types for arrays of other extents than those that were met before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import symbol, symbols_of
from satura.rewrite.types.tensor_type import TensorType


def widened(
    type_: TensorType, shape: tuple[int, ...], name: str, sizes: Mapping[str, int]
) -> TensorType:
    """A type that arrays of this shape have, too: with sizes of their own for other extents."""
    dims = [
        dim if not symbols_of([dim]) <= sizes.keys() or evaluate(dim, sizes) == size
        else symbol(f"{name}[{axis}]")
        for axis, (dim, size) in enumerate(zip(type_.shape, shape, strict=True))
    ]  # fmt: skip
    return replace(type_, shape=tuple(dims))
