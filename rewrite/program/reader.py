"""Reader: one line of a program's text, read from left to right: names, numbers, dims, types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache
from math import inf
from typing import TypeVar

from satura.rewrite.errors import ProgramError
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType, TensorType

T = TypeVar("T")

_STRING = r'"(?:[^"\\]|\\.)*"'
_DTYPES = {dtype.value: dtype for dtype in DType}
_DEEPEST = 100  # parentheses in a dim


class Reader:
    """A line, and how far it is read; blanks between tokens do not count.

    Every method reads one thing, and raises ProgramError where something else stands.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.depth = 0

    def mismatch(self, expected: str) -> ProgramError:
        """The error that something other than `expected` stands here."""
        rest = self.line[self.at :].strip()
        shown = f"'{rest[:20]}{'…' * (len(rest) > 20)}'" if rest else "the end of the line"
        return ProgramError(f"expected {expected}, not {shown}")

    def take_match(self, pattern: str) -> str | None:
        """The text that `pattern` matches here, which is then read; None where it does not."""
        found = _pattern_of(pattern).match(self.line, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def token(self, pattern: str, what: str) -> str:
        found = self.take_match(pattern)
        if found is None:
            raise self.mismatch(what)
        return found

    def accepts(self, literal: str) -> bool:
        line, at = self.line, self.at
        if not line.startswith(literal, at):
            while at < len(line) and line[at].isspace():
                at += 1
            if at == self.at or not line.startswith(literal, at):
                return False
        self.at = at + len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.accepts(literal):
            raise self.mismatch(f"'{literal}'")

    def after(self, literal: str, item: Callable[[], T]) -> T:
        """The item behind `literal`."""
        self.expect(literal)
        return item()

    def expect_end(self) -> None:
        if self.line[self.at :].strip():
            raise self.mismatch("the end of the line")

    def word(self, what: str) -> str:
        return self.token(r"[^\W\d]\w*", what)

    def integer(self) -> int:
        return int(self.token(r"-?[0-9]{1,30}(?!\w)", "an integer"))

    def number(self) -> float:
        """A finite number that is not below 0, as `repr` writes it."""
        text = self.token(r"[0-9][0-9.e+-]*", "a number")
        try:
            value = float(text)
        except ValueError:
            value = inf
        if value == inf:
            raise ProgramError(f"{text} is not a number")
        return value

    def node_number(self) -> int:
        return int(self.token(r"%[0-9]{1,18}(?!\w)", "a node such as %12")[1:])

    def string(self) -> str:
        return _unquote(self.token(_STRING, "a name in quotes"))

    def items(self, item: Callable[[], T], end: str) -> list[T]:
        """Items between commas up to `end`, whose opening bracket is read."""
        found: list[T] = []
        while not self.accepts(end):
            if found:
                self.expect(",")
            found.append(item())
        return found

    def items_in_brackets(self, item: Callable[[], T]) -> tuple[T, ...]:
        self.expect("[")
        return tuple(self.items(item, "]"))

    def dtype(self) -> DType:
        name = self.word("an element type")
        if name not in _DTYPES:
            raise ProgramError(f"there is no element type '{name}'")
        return _DTYPES[name]

    def type(self) -> TensorType:
        return TensorType(self.dtype(), self.dims())

    def stated_type(self) -> TensorType:
        """The type behind the colon that comes next; both stay unread."""
        before = self.at
        self.expect(":")
        found = self.type()
        self.at = before
        return found

    def dims(self) -> tuple[Dim, ...]:
        """Dims in brackets; most texts of them come often, and are read once."""
        before = self.at
        text = self.take_match(r'\[[^]["]*\]')
        if text is None:
            return self.items_in_brackets(self.dim)
        try:
            return _dims_of(text)
        except ProgramError:
            self.at = before
            return self.items_in_brackets(self.dim)  # raises it for the whole line

    def dim(self) -> Dim:
        total = -self._product() if self.accepts("-") else self._product()
        while (sign := self.take_match("[-+]")) is not None:
            total = total + self._product() if sign == "+" else total - self._product()
        return total

    def _product(self) -> Dim:
        result = self._quotient()
        while self.accepts("*"):
            result = result * self._quotient()
        return result

    def _quotient(self) -> Dim:
        above = self.operand()
        if not self.accepts("//"):
            return above
        below = self.operand()
        if isinstance(above, int) and below == 0:
            raise ProgramError("a size is divided by zero")
        return above // below

    def operand(self) -> Dim:
        """A dim beside an operator: a number, a size, or any dim in parentheses."""
        if self.accepts("("):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise ProgramError(f"more than {_DEEPEST} parentheses are open")
            found = self.dim()
            self.expect(")")
            self.depth -= 1
            return found
        name = self.take_match(rf"{_STRING}|[^\W\d]\w*")
        if name is None:
            return self.integer()
        return symbol(_unquote(name) if name.startswith('"') else name)


@lru_cache(4096)
def _dims_of(text: str) -> tuple[Dim, ...]:
    """The dims of such a text, which has no name in quotes."""
    line = Reader(text)
    return line.items_in_brackets(line.dim)


@cache
def _pattern_of(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*({pattern})")


def _unquote(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        raise ProgramError(f"{text} is not a name in quotes") from None
