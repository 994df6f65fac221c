"""The running value of a reduction: a variable, or an array over the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.backend.emit.reductions import as_key, has_key, is_better, step_text
from satura.backend.emit.text import indent
from satura.backend.lower.body import Reduction


@dataclass(frozen=True)
class Accumulator:
    """The names of the running value of `reduction`, and of its position where that is reduced.

    They are variables, or with `is_array` the addresses of scratch arrays with an element for each
    column `i` of `width`.
    """

    reduction: Reduction
    value: str
    position: str | None
    is_array: bool

    def initial_lines(self, start: str) -> list[str]:
        """Lines that set it to `start`."""
        if not self.is_array:
            first = as_key(self.reduction, start) if has_key(self.reduction) else start
            lines = [f"{self.value} = {first}"]
            return [*lines, *([f"{self.position} = 0"] if self.position else [])]
        puts = [f"put_{self.reduction.dtype.value}({self.value}, i, first)"]
        if self.position:
            puts.append(f"put_i64({self.position}, i, 0)")
        return [f"first = {start}", "for i in range(width):", *indent(1, puts)]

    def step_lines(self, names: Mapping[int, str]) -> list[str]:
        """Lines that take in one more element, of the values in `names`."""
        reduction = self.reduction
        value, kind = names[reduction.operand], reduction.dtype.value
        held = f"get_{kind}({self.value}, i)" if self.is_array else self.value
        if reduction.position is not None:
            keep = self._keep_lines(value, names[reduction.position])
            return [f"best = {held}", f"if {is_better(reduction, value)}:", *indent(1, keep)]
        text = step_text(reduction.function, held, value)
        if self.is_array:
            return [f"put_{kind}({self.value}, i, {text})"]
        if has_key(reduction):
            text = f"{reduction.function}({held}, {as_key(reduction, value)})"
        return [f"{held} = {text}"]

    def _keep_lines(self, value: str, position: str) -> list[str]:
        """Lines that keep the better element and its position; NaN is better than any number."""
        if not self.is_array:
            return [f"{self.value} = {value}", f"{self.position} = {position}"]
        return [
            f"put_{self.reduction.dtype.value}({self.value}, i, {value})",
            f"put_i64({self.position}, i, {position})",
        ]
