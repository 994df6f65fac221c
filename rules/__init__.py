"""The rule book: laws by concern, and the named sets `NONE`, `EXACT` and `DEFAULT`."""

from satura.rewrite.language.dsl import RuleSet
from satura.rules import (
    algebra,
    attention,
    broadcast,
    contraction,
    folding,
    pad,
    parts,
    power,
    quantised,
    reshape,
    round_trips,
    selections,
    slice_concat,
    transpose,
    winograd,
)

BOOK = {
    module.__name__.rpartition(".")[2]: RuleSet.of_module(module.__name__)
    for module in (
        transpose,
        reshape,
        broadcast,
        pad,
        slice_concat,
        folding,
        algebra,
        power,
        contraction,
        parts,
        winograd,
        attention,
        quantised,
        round_trips,
        selections,
    )
}

NONE = RuleSet()
DEFAULT = sum(BOOK.values(), NONE)
EXACT = DEFAULT.exact

__all__ = ["BOOK", "DEFAULT", "EXACT", "NONE"]
