"""What a saturation did: per rule, per round, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RuleStatistics:
    """One direction of a rule: how often it matched, what that took, and what it computed.

    `new_nodes` are the e-nodes at the end that it was the first to make. Matches are counted again
    where classes have merged since.
    """

    name: str
    place: str
    matches: int = 0
    new_nodes: int = 0
    demand_calls: int = 0
    refusals: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Round:
    """The e-graph after a round (round 0: the program) and the seconds since the start."""

    nodes: int
    seconds: float


@dataclass(frozen=True)
class DroppedRule:
    """A rule that the program was rewritten without, and why: what it did, in words."""

    name: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"rule '{self.name}' ({self.place}) was dropped: {self.reason}"


@dataclass
class Report:
    """What a saturation did. `stopped` says what ended it: saturated, no gain, rounds or nodes.

    `stopped_before` names the direction of a rule whose matches would have broken the limit of
    nodes, if it was that. Of rules that are not ours, `growing` names those that still made e-nodes
    when a limit was met; `dropped` are those that failed and did not take part. `struck` are the
    fragments that were chosen and could not be lowered, with the reason: others took their places.
    """

    rules: list[RuleStatistics]
    rounds: list[Round] = field(default_factory=list)
    stopped: str = "saturated"
    stopped_before: str = ""
    growing: tuple[str, ...] = ()
    seconds: float = 0.0
    extraction_seconds: float = 0.0  # of these
    dropped: list[DroppedRule] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)

    @property
    def is_cut_short(self) -> bool:
        """Whether a limit ended it while something was left to do."""
        return self.stopped in ("nodes", "rounds")

    @property
    def nodes(self) -> int:
        """E-nodes at the end, also hidden ones and those that no output reaches."""
        return self.rounds[-1].nodes if self.rounds else 0

    def __str__(self) -> str:
        lines = [
            f"{self.stopped}{f' (before {self.stopped_before})' if self.stopped_before else ''}"
            f" after {len(self.rounds) - 1} rounds,"
            f" {self.rounds[0].nodes} -> {self.nodes} e-nodes, {self.seconds:.3f} s"
        ]
        if self.growing:
            lines.append(f"  still growing by {', '.join(self.growing)}")
        busy = [entry for entry in self.rules if entry.matches or entry.demand_calls]
        for entry in sorted(busy, key=lambda entry: -entry.seconds):
            lines.append(
                f"  {entry.name}: {entry.matches} matches, {entry.new_nodes} new nodes,"
                f" {entry.demand_calls} calls ({entry.refusals} refused),"
                f" {entry.seconds * 1000:.1f} ms  {entry.place}"
            )
        lines += [f"  {entry}" for entry in self.dropped]
        return "\n".join([*lines, *(f"  struck out: {entry}" for entry in self.struck)])
