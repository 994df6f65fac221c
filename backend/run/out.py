"""Arrays that a call writes its outputs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from satura.rewrite.errors import CallError
from satura.rewrite.types.shown import refused_kind
from satura.rewrite.types.tensor_type import Array, DType, TensorType

Fit = tuple[np.dtype[np.generic], tuple[int, ...]]
"""What the array of an output must have: a dtype and a shape."""


def refuse_unfit(
    fits: Mapping[str, Fit], out: Mapping[str, Array], inputs: Sequence[Array]
) -> None:
    """CallError for an array that an output cannot go to.

    An array must have the output's dtype and shape, be C-contiguous, aligned and writable, and
    share no memory with an input or another output: kernels rely on that.
    """
    others = list(inputs)
    for name, array in out.items():
        if name not in fits:
            raise CallError(f"out: there is no output {name!r}; the outputs are {list(fits)}")
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            raise CallError(f"out: {name!r} must be a NumPy array, not {type(array).__name__}")
        dtype, shape = fits[name]
        if array.dtype != dtype or array.shape != shape:
            shown = refused_kind(array, "make it of dtype {!r}")
            expected = TensorType(DType.of(dtype), shape)
            raise CallError(f"out: {name!r} must be {expected}, not {shown}")
        if not array.flags.carray:
            raise CallError(f"out: {name!r} must be C-contiguous, aligned and writable")
        for number, other in enumerate(others):
            if np.may_share_memory(array, other):  # exact: both are contiguous
                before = number - len(inputs)
                what = "an input" if before < 0 else f"output {list(out)[before]!r}"
                raise CallError(f"out: {name!r} shares memory with {what}")
        others.append(array)
