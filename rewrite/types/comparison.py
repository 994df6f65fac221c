"""Whether two arrays agree: bit for bit, within a bound, or by their largest relative error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.types.tensor_type import Array, DType

Index = tuple[int, ...]


def agreement(
    left: Array, right: Array, allowed: float | NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    """Where elements are the same bits, but for the payload of a NaN.

    Floats that are finite also agree where they differ by at most `allowed`. Raises ValueError for
    unlike dtypes or shapes.
    """
    if left.dtype != right.dtype or left.shape != right.shape:
        raise ValueError(f"{left.dtype}{left.shape} against {right.dtype}{right.shape}")
    if not DType.of(left.dtype).is_float:
        return np.asarray(left == right)
    a, b = left.astype(np.float64), right.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    if allowed is not None:
        with np.errstate(all="ignore"):
            same |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
    return np.asarray(same)


def first_difference(agree: NDArray[np.bool_]) -> Index | None:
    """The index of the first element that does not agree; None where all do."""
    wrong = np.argwhere(~agree)
    return tuple(map(int, wrong[0])) if len(wrong) else None


def relative_error(results: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
    """Largest error over all outputs, relative to the largest magnitude of the output.

    NaN and infinity must stand where they are expected, or the error is infinite. Raises ValueError
    for unlike shapes.
    """
    worst = 0.0
    for name, reference in expected.items():
        a, b = results[name].astype(np.float64), reference.astype(np.float64)
        if a.shape != b.shape:
            raise ValueError(f"output {name!r} is of shape {a.shape}, not {b.shape}")
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        if not np.isfinite(a[finite]).all():
            return float("inf")
        scale = np.abs(b[finite]).max(initial=0.0)
        error = np.abs(a[finite] - b[finite]).max(initial=0.0)
        worst = max(worst, float(error / scale) if scale else float(error > 0))
    return worst
