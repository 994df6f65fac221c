"""Where the rules of the book fire: on how many of the first matches that are drawn for each.

Half of what a side condition can get wrong makes no rule unsound: it fires less often than it
should, or where it only makes work. So tests/reach.json records how often every rule fires, among
the first matches and among all, and tests compare. `python -m tests.reach` prints the record anew;
`make docs` keeps it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from satura.rewrite.check.instances import Instance
from satura.rewrite.check.refute import draws
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.language.terms import Application
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rules import DEFAULT

RECORD = Path(__file__).with_suffix(".json")
MATCHES = 1000  # per direction
QUICK = 200  # the first of them
COUNTS = (QUICK, MATCHES)
ATTEMPTS = 10  # draws for each, at most

Reach = Mapping[str, int]


def answer(direction: Direction, instance: Instance) -> tuple[Attribute, ...] | None:
    """The attributes that the direction computes for a match; None where it does not fire."""
    try:
        return direction.compute(instance.bindings)
    except Refuse:
        return None


_LATEST: list[tuple[Application, int, Sequence[Instance]]] = []


def matches(direction: Direction, count: int = MATCHES) -> Sequence[Instance]:
    """The first matches, on which firings are counted; drawn once for a left side in a row."""
    if not _LATEST or _LATEST[0][0] is not direction.left or _LATEST[0][1] != count:
        found = tuple(islice(draws(direction, 0, ATTEMPTS * count), count))
        _LATEST[:] = [(direction.left, count, found)]
    return _LATEST[0][2]


def reach(rule: Rule, count: int = MATCHES) -> Reach:
    """How often each direction of `rule` fires on the first `count` matches."""
    return {
        direction.label: sum(
            answer(direction, match) is not None for match in matches(direction, count)
        )
        for direction in rule.directions
    }


def read_record(count: int = MATCHES) -> Mapping[str, Reach]:
    """How often the directions of every rule fired when the record was made."""
    place = COUNTS.index(count)
    return {
        rule: {label: counts[place] for label, counts in directions.items()}
        for rule, directions in _read().items()
    }


@cache
def _read() -> Mapping[str, Mapping[str, Sequence[int]]]:
    return json.loads(RECORD.read_text("utf-8"))  # type: ignore[no-any-return]


def record() -> str:
    """The text of tests/reach.json, a line per rule."""
    lines = []
    for rule in DEFAULT:
        few, all_ = (reach(rule, count) for count in COUNTS)
        counts = {label: [few[label], all_[label]] for label in all_}
        lines.append(f"  {json.dumps(rule.name)}: {json.dumps(counts)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.write(record())
