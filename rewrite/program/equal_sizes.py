"""Warnings of sizes that a program takes for equal, and its model does not."""

from __future__ import annotations

from collections.abc import Iterable

from satura.rewrite.errors import EqualSizesWarning, warn_caller
from satura.rewrite.types.dims import Dim, symbol, symbols_of
from satura.rewrite.types.size_condition import SizeCondition, sizes_text
from satura.rewrite.types.typical import representative

_LONGEST = 40  # characters of a formula that people read


def warn_of_equal_sizes(taken: Iterable[SizeCondition], what: str) -> None:
    """Warn of the sizes that are `taken` for equal in `what`, and name the nodes."""
    for each in taken:
        warn_caller(
            f"{each.place}: the sizes {in_words(each.left)} and {in_words(each.right)} are taken"
            f" for equal, and {what} is for equal sizes only: where the model would broadcast, it"
            " may compute something else. Give equal sizes equal names; satura.compile runs"
            " others, too",
            EqualSizesWarning,
        )


def in_words(dim: Dim) -> str:
    """A size as messages show it: of a long formula what it is computed from, and an example."""
    if len(str(dim)) <= _LONGEST:
        return str(dim)
    names = sorted(symbols_of([dim]))
    example = sizes_text(dict.fromkeys(names, representative(symbol("usual"))))
    return f"computed from {' and '.join(names)} ({representative(dim)} where {example})"
