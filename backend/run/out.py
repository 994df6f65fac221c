"""Arrays that a call writes its outputs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from satura.rewrite.errors import CallError
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, TensorType


def refuse_unfit(
    types: Mapping[str, TensorType], out: Mapping[str, Array], inputs: Sequence[Array]
) -> None:
    """CallError for an array that an output of these `types` cannot go to.

    An array must have the output's type, be C-contiguous, aligned and writable, and share no
    memory with an input or another output: kernels rely on that.
    """
    others = [("an input", array) for array in inputs]
    for name, array in out.items():
        if name not in types:
            raise CallError(f"out: there is no output {name!r}; the outputs are {list(types)}")
        expected = types[name]
        if not isinstance(array, np.ndarray):
            raise CallError(f"out: {name!r} must be a NumPy array, not {type(array).__name__}")
        shape = tuple(map(static, expected.shape))
        if array.dtype != expected.dtype.numpy or array.shape != shape:
            shown = f"{array.dtype.name}{list(array.shape)}"
            raise CallError(f"out: {name!r} must be {expected}, not {shown}")
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned and flags.writeable):
            raise CallError(f"out: {name!r} must be C-contiguous, aligned and writable")
        for what, other in others:
            if np.may_share_memory(array, other):  # exact: both are contiguous
                raise CallError(f"out: {name!r} shares memory with {what}")
        others.append((f"output {name!r}", array))
