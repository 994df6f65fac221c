"""How far results are from what they should be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from satura.rewrite.types.tensor_type import Array


def relative_error(results: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
    """Largest error over all outputs, relative to the largest magnitude of the output.

    NaN and infinity must stand where they are expected, or the error is infinite.
    """
    worst = 0.0
    for name, reference in expected.items():
        a, b = results[name].astype(np.float64), reference.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        if not np.isfinite(a[finite]).all():
            return float("inf")
        scale = np.abs(b[finite]).max(initial=0.0)
        error = np.abs(a[finite] - b[finite]).max(initial=0.0)
        worst = max(worst, float(error / scale) if scale else float(error > 0))
    return worst
