"""What a check found out about a rule, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Literal

Verdict = Literal["proved", "tested", "vacuous", "refuted", "failed"]


@dataclass(frozen=True)
class Counterexample:
    """Values for which a direction of a rule goes wrong.

    `bindings` are the pattern's variables, `sizes` its symbols. `left` and `right` are the results
    as text; `right` is empty where there is none. `program` is Python to paste: it prints both.
    """

    direction: str
    place: str
    law: str
    bindings: Mapping[str, str]
    sizes: Mapping[str, int]
    reason: str
    left: str
    right: str
    program: str

    def __str__(self) -> str:
        values = [
            f"{name} = {value}" for name, value in chain(self.bindings.items(), self.sizes.items())
        ]
        lines = [f"{self.direction} ({self.place}): {self.law}", f"for {', '.join(values)}:"]
        lines += [self.reason, f"left:  {self.left}"] + [f"right: {self.right}"] * bool(self.right)
        return "\n".join([*lines, "", self.program])


@dataclass(frozen=True)
class DirectionReport:
    """What was tried of one direction of a rule.

    `instances` are well-typed matches of its left side, `firings` the distinct ones among them for
    which it fired. `conditions` counts what each condition said of the instances. `refusals` counts
    how often an attribute function refused, per place and reason.
    """

    label: str
    instances: int
    firings: int
    conditions: Mapping[str, Mapping[bool, int]]
    refusals: Mapping[str, int]

    @property
    def constant_conditions(self) -> list[str]:
        """Conditions that gave one answer only."""
        return [text for text, counts in self.conditions.items() if not all(counts.values())]


@dataclass(frozen=True)
class RuleReport:
    """The verdict on a rule, and what it rests on.

    - proved: it passed the property test and holds for all sizes at the ranks `proved`;
    - tested: it passed the property test;
    - vacuous: nothing spoke against it, but it fires too rarely, or a condition never changes;
    - refuted: it is wrong, see `counterexample`;
    - failed: its check did not come to an end, as where a function of the rule raises.

    `proof` says what is proved, or why nothing is, `proved` at which ranks, and `hint` what may be
    meant instead.
    `dtypes`, `ranks` and `dims` are what the tensors of its firings had: `dims` counts the firings
    with a dim 0, a dim 1, two equal, two coprime and with symbolic dims.
    """

    rule: str
    place: str
    verdict: Verdict
    directions: tuple[DirectionReport, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    proof: str = ""
    proved: tuple[int, ...] = ()
    reason: str = ""
    hint: str = ""
    counterexample: Counterexample | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the rule may be used, as far as one can tell."""
        return self.verdict in ("proved", "tested")

    @property
    def said(self) -> str:
        """The verdict; that of a proof with the ranks that it covers."""
        if self.verdict != "proved":
            return self.verdict
        last = self.proved[-1]
        return f"proved {f'up to rank {last}' if self.proved[0] < last else f'at rank {last}'}"

    def as_json(self) -> dict[str, object]:
        """Values for `json.dumps`, in the order of the fields."""
        return {**asdict(self), "directions": [_json_fields(each) for each in self.directions]}

    def __str__(self) -> str:
        counts = ", ".join(f"{d.label}: {d.firings} of {d.instances}" for d in self.directions)
        said = "could not be checked" if self.verdict == "failed" else f"is {self.said}"
        lines = [f"{self.rule} ({self.place}) {said}" + f" ({counts})" * bool(counts)]
        if self.counterexample is not None:
            lines.append(str(self.counterexample))
        elif self.reason:
            lines.append(self.reason)
        lines += [self.hint] * bool(self.hint)
        return "\n".join(lines)


def _json_fields(direction: DirectionReport) -> dict[str, object]:
    conditions = {
        text: {str(answer).lower(): count for answer, count in counts.items()}
        for text, counts in direction.conditions.items()
    }
    return {**asdict(direction), "conditions": conditions}
