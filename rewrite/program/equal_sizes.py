"""Warnings of sizes that a program takes for equal, and its model does not."""

from __future__ import annotations

from satura.rewrite.errors import EqualSizesWarning, warn_caller
from satura.rewrite.program.program import Program


def warn_of_equal_sizes(program: Program, what: str) -> None:
    """Warn of the sizes that `what`, made of the program, takes for equal, and name the nodes."""
    for each in program.taken:
        warn_caller(
            f"{each.place}: the sizes {each.left} and {each.right} are taken for equal, and {what}"
            " is for equal sizes only: where the model would broadcast, it may compute something"
            " else. Give equal sizes equal names; satura.compile runs others, too",
            EqualSizesWarning,
        )
