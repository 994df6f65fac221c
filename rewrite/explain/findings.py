"""Why a rule fires or does not, as data and as text: what `satura why` shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

MOST_FIRINGS = 5  # that the text lists


@dataclass(frozen=True)
class StepCount:
    """How many matches pass a step of the pattern: in the program, and in its e-graph.

    `places` are the distinct e-classes of the pattern's root among them in the e-graph. `lost` says
    why others ended here, most frequent first; `exact` is False where not all were followed.
    """

    text: str
    program: int
    egraph: int
    places: int
    lost: tuple[tuple[str, int], ...]
    exact: bool


@dataclass(frozen=True)
class Miss:
    """A match that ended at the furthest step: `reason` says why, `count` how many ended alike.

    `matched` pairs each op that did match with its node, `bound` each variable with its value.
    """

    step: str
    reason: str
    count: int
    node: str
    matched: tuple[tuple[str, str], ...]
    bound: tuple[tuple[str, str], ...]
    hint: str


@dataclass(frozen=True)
class Firing:
    """A node that the rule fired on, and the e-nodes that it was the first to make there.

    `round` is when it made the first of them, `after` names the rules that it had to wait for. It
    makes no e-node where its right side was there already, or is a part of its left side.
    """

    node: str
    made: tuple[str, ...]
    round: int | None
    after: tuple[str, ...]


@dataclass(frozen=True)
class DirectionReport:
    """One direction of the rule. `matches` counts those in the e-graph that nothing refuses."""

    label: str
    law: str
    steps: tuple[StepCount, ...]
    matches: int
    places: int
    new_nodes: int
    firings: tuple[Firing, ...]
    misses: tuple[Miss, ...]


@dataclass(frozen=True)
class Why:
    """Why a rule fires on a program or does not. `stopped` is the limit that ended saturation."""

    rule: str
    law: str
    place: str
    nodes: int
    enodes: int
    stopped: str
    directions: tuple[DirectionReport, ...]

    @property
    def fires(self) -> bool:
        return any(direction.matches for direction in self.directions)

    def as_json(self) -> dict[str, object]:
        return {"fires": self.fires, **dataclasses.asdict(self)}

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(answer: Why) -> Iterator[str]:
    yield f"{answer.rule}  {answer.place}"
    yield f"  {' '.join(answer.law.split())}"
    yield (
        f"{'fires' if answer.fires else 'does not fire'}; the program has {answer.nodes:,} nodes,"
        f" {answer.enodes:,} e-nodes in use after all rules"
    )
    if answer.stopped != "saturated":
        yield f"  saturation stopped at its limit of {answer.stopped}: more may match"
    for direction in answer.directions:
        yield ""
        yield from _direction_lines(direction)


def _direction_lines(direction: DirectionReport) -> Iterator[str]:
    yield direction.law
    yield "   program    e-graph  matches of"
    for step in direction.steps:
        more = " " if step.exact else "+"
        yield f"{step.program:10,} {step.egraph:10,}{more} {step.text}"
        if step.lost:
            ends = ", ".join(f"{reason} ({count:,})" for reason, count in step.lost)
            yield f"{'':23}  others: {ends}"
    if direction.matches:
        yield (
            f"fires: {_count_text(direction.matches, 'match', 'matches')} at"
            f" {_count_text(direction.places, 'place')},"
            f" {_count_text(direction.new_nodes, 'new e-node')}"
        )
        for firing in direction.firings[:MOST_FIRINGS]:
            yield from _firing_lines(firing)
        more_firings = len(direction.firings) - MOST_FIRINGS
        if more_firings > 0:
            yield f"  … and at {more_firings:,} more"
    for miss in direction.misses:
        yield from _miss_lines(miss)


def _firing_lines(firing: Firing) -> Iterator[str]:
    yield f"  at {firing.node}"
    for text in firing.made:
        yield f"    made in round {firing.round}: {text}"
    if not firing.made:
        yield "    made no new e-node: its right side was there already, or is a part of it"
    if firing.after:
        yield f"    after {', '.join(firing.after)} had made what it matches"


def _miss_lines(miss: Miss) -> Iterator[str]:
    yield f"nearest miss, {miss.count:,} of them: {miss.step}"
    yield f"  {miss.reason}" + (f"; {miss.hint}" if miss.hint else "")
    for term, node in miss.matched:
        yield f"  {term}"
        yield f"    is {node}"
    for name, value in miss.bound:
        yield f"  {name} = {value}"


def _count_text(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
