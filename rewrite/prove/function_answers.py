"""What a function answers for every dtype and function name that it may read.

The dtypes and names of a match are open. A function that reads them is run once for each that is
possible, and only its different answers become paths: `is_float` has two, not thirteen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import z3

from satura.rewrite.prove.paths import Dead, Fact, Path, Undecided
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Perm,
    ReduceFn,
    Refuse,
    UnaryFn,
)
from satura.rewrite.types.tensor_type import DType

PLAIN = (bool, DType, Perm, Axis, Axes, UnaryFn, BinaryFn, ReduceFn)  # answers that compare


@dataclass
class Readings:
    """What one run of a function has read, and which runs are left."""

    trace: list[tuple[str, list[object], list[Fact | None]]] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    position: int = 0

    def read(self, key: str, options: list[object], facts: list[Fact | None]) -> object:
        """The answer for `key` in this run: one of `options`."""
        for (known, values, _), number in zip(self.trace, self.chosen, strict=False):
            if known == key:
                return values[number]
        self.trace.append((key, options, facts))
        self.chosen.append(0)
        return options[0]

    def facts(self) -> list[Fact]:
        found = [facts[n] for (_, _, facts), n in zip(self.trace, self.chosen, strict=True)]
        return [fact for fact in found if fact is not None]

    def advance(self) -> bool:
        """Go to the next run; False where there is none."""
        while self.chosen and self.chosen[-1] + 1 == len(self.trace[-1][1]):
            self.chosen.pop()
            self.trace.pop()
        if not self.chosen:
            return False
        self.chosen[-1] += 1
        return True


def answer(path: Path, key: str, function: Callable[[], object]) -> object:
    """The answer of `function` on this path. Raises Dead where it refuses."""
    readings = Readings()
    groups: dict[object, tuple[object, list[Fact]]] = {}
    while True:
        path.budget.spend(1)
        path.readings, path.refused = readings, None
        failed: Exception | None = None
        value: object = None
        try:
            value = function()
        except (Refuse, Dead):
            value = Dead()
        except Undecided as reason:
            value = reason
        except Exception as error:
            failed = error
        finally:
            path.readings = None
        if path.refused is not None:
            value = path.refused
        elif failed is not None:
            what = f"{type(failed).__name__}: {failed}"
            value = Undecided(f"{key} does not run on unknown sizes: {what}")
        facts = readings.facts()
        mark = _key_of(value)
        groups.setdefault(mark, (value, []))[1].append(z3.And(*facts))
        if not readings.advance():
            break
    options = [value for value, _ in groups.values()]
    value = options[0]
    if len(options) > 1:
        value = path.choose(key, options, [z3.Or(*facts) for _, facts in groups.values()])
    if isinstance(value, BaseException):
        raise value
    return value


def _key_of(value: object) -> object:
    """A key that answers share where the proof need not tell them apart."""
    if type(value) in PLAIN:
        return (type(value), value)
    if isinstance(value, Dead):
        return Dead
    if isinstance(value, Undecided):
        return (Undecided, str(value))
    return id(value)
