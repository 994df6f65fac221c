"""Whether what a file says of launches stays inside its argument tables, whose words become
addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING

from satura.backend.run.routine import FIRST_TENSOR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def are_below(numbers: NDArray[np.int64], most: int) -> bool:
    """Whether all numbers are in range(most)."""
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < most)


def are_inside(
    words: int, regions: NDArray[np.int64], last: int, outputs: Iterable[int],
    launches: Sequence[Sequence[int]], kernels: Set[int],
) -> bool:  # fmt: skip
    """Whether a table of so many `words` fits `regions` before `last`, where outputs are, too.

    Launches are pairs of one of the `kernels` and the first word of its arguments.
    """
    return (
        len(regions) == words
        and are_below(regions, last)
        and all(FIRST_TENSOR <= region < last for region in outputs)
        and all(kernel in kernels and first < words for kernel, first in launches)
        and all(one < two for (_, one), (_, two) in pairwise(launches))
    )
