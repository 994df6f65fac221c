"""Short rows, a few at a time: each pass runs over all of them before the next one starts.

Of a short row most time would be spent on waiting: for its maximum, then for its sum. Rows that do
not wait for each other overlap.

    for each group of rows
        for each row   pass 1; its results go to scratch
        for each row   pass 2, which reads them; …
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.backend.emit.loops import step_odometer
from satura.backend.emit.text import indent

GROUP = 4  # rows
SHORT_ROW = 32  # vectors: in longer rows a processor sees no end of one and start of the next


def group_lines(
    names: Sequence[str], extents: Sequence[str], passes: Sequence[Sequence[str]]
) -> list[str]:
    """Lines that run `passes`, each of which does a row, over the rows from `lo` to `hi`."""
    kept = [f"first_{name}" for name in names]
    lines = [f"{first} = {name}" for first, name in zip(kept, names, strict=True)]
    for number, each in enumerate(passes):
        if number:
            lines += [f"{name} = {first}" for first, name in zip(kept, names, strict=True)]
        step = step_odometer(names, extents)
        lines += ["for member in range(members):", *indent(1, [*each, *step])]
    return [
        f"for group in range((hi - lo + {GROUP - 1}) // {GROUP}):",
        *indent(1, [f"members = min({GROUP}, hi - lo - group * {GROUP})", *lines]),
    ]


def vector_lines(count: str, lanes: int, inner: Sequence[str], again: Sequence[str]) -> list[str]:
    """A loop `i` over `count` columns, at least `lanes`, in whole vectors.

    The last vector may overlap the one before: `again` are the lines for it, which take notice
    of `is_new`.
    """
    place = [f"i = {count} - {lanes} + k", f"is_new = k + ({count} & {lanes - 1}) >= {lanes}"]
    last = [f"for k in range({lanes}):", *indent(1, [*place, *again])]
    return [
        f"for i in range({count} & -{lanes}):", *indent(1, inner),
        f"if ({count} & {lanes - 1}) > 0:", *indent(1, last),
    ]  # fmt: skip
