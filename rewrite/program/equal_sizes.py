"""Warnings of sizes that a program takes for equal, or for a number, and its model does not."""

from __future__ import annotations

from collections.abc import Iterable

from satura.rewrite.errors import EqualSizesWarning, warn_caller
from satura.rewrite.types.dims import Dim, symbol, symbols_of
from satura.rewrite.types.size_condition import FixedSize, SizeCondition, sizes_text
from satura.rewrite.types.typical import representative

_LONGEST = 40  # characters of a formula that people read


def warn_of_equal_sizes(taken: Iterable[SizeCondition], what: str) -> None:
    """Warn of the sizes that are `taken` for equal in `what`, or fixed, and name the nodes."""
    for each in taken:
        first, second = in_words(each.left), in_words(each.right)
        if isinstance(each, FixedSize):
            limit = (
                f"the size {first} is fixed at {second}, and {what} is for this size only: the"
                " model may run at others, as satura.compile does"
            )
        else:
            limit = (
                f"the sizes {first} and {second} are taken for equal, and {what} is for equal sizes"
                " only: where the model would broadcast, it may compute something else. Give equal"
                " sizes equal names; satura.compile runs others, too"
            )
        warn_caller(f"{each.place}: {limit}", EqualSizesWarning)


def in_words(dim: Dim) -> str:
    """A size as messages show it: of a long formula what it is computed from, and an example."""
    if len(str(dim)) <= _LONGEST:
        return str(dim)
    names = sorted(symbols_of([dim]))
    example = sizes_text(dict.fromkeys(names, representative(symbol("usual"))))
    return f"computed from {' and '.join(names)} ({representative(dim)} where {example})"
