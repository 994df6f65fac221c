"""What the builder of a program was asked for last that an op does not take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from satura.rewrite.errors import ProgramError
from satura.rewrite.ops import Op
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Attribute


class NumbersDifferError(ProgramError):
    """Extents that do not fit each other are numbers, whatever the sizes of other axes are."""


@dataclass(frozen=True)
class Refused:
    """An op that is not applied to operands with attributes, and the error that says why."""

    error: ProgramError
    op: str | Op
    operands: tuple[int, ...]
    attributes: tuple[Attribute, ...]


class Refusing(Builder):
    """A builder that knows what was `refused` last."""

    refused: Refused | None = None

    def add(self, op: str | Op, operands: Iterable[int] = (), *attributes: Attribute) -> int:
        """Index of the node, as of every builder. Raises ProgramError."""
        given = tuple(operands)
        try:
            return super().add(op, given, *attributes)
        except ProgramError as error:
            self.refused = Refused(error, op, given, attributes)
            raise
