"""Where the rules of the book fire: on how many of the first matches that are drawn for each.

Half of what a side condition can get wrong makes no rule unsound: it fires less often than it
should, or where it only makes work. So tests/reach.json records how often every rule fires, and a
test compares. `python -m tests.reach` prints the record anew; `make docs` keeps it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from satura.rewrite.check.instances import Instance
from satura.rewrite.check.refute import draws
from satura.rewrite.language.dsl import Direction, Rule
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rules import DEFAULT

RECORD = Path(__file__).with_suffix(".json")
MATCHES = 1000  # per direction
ATTEMPTS = 10_000  # draws for them, at most

Reach = Mapping[str, int]


def answer(direction: Direction, instance: Instance) -> tuple[Attribute, ...] | None:
    """The attributes that the direction computes for a match; None where it does not fire."""
    try:
        return direction.compute(instance.bindings)
    except Refuse:
        return None


def matches(direction: Direction) -> tuple[Instance, ...]:
    """The matches on which firings are counted."""
    return tuple(islice(draws(direction, 0, ATTEMPTS), MATCHES))


def reach(rule: Rule) -> Reach:
    """How often each direction of `rule` fires."""
    return {
        direction.label: sum(answer(direction, match) is not None for match in matches(direction))
        for direction in rule.directions
    }


def read_record() -> Mapping[str, Reach]:
    """How often the directions of every rule fired when the record was made."""
    return json.loads(RECORD.read_text("utf-8"))  # type: ignore[no-any-return]


def record() -> str:
    """The text of tests/reach.json, a line per rule."""
    lines = (f"  {json.dumps(rule.name)}: {json.dumps(reach(rule))}" for rule in DEFAULT)
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.write(record())
