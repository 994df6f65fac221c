"""A direction of a rule while a saturation runs: its code, its demand and what it has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.egraph.attribute_tables import Demand
from satura.rewrite.egraph.report import RuleStatistics
from satura.rewrite.egraph.rule_compiler import RuleCode
from satura.rewrite.language.dsl import Direction


@dataclass
class Runner:
    """One direction of a rule, ready to run."""

    direction: Direction
    code: RuleCode
    demand: Demand | None
    statistics: RuleStatistics
    watched: bool
    rows: int = 0
    growth: int = 0  # e-nodes that it makes at most when it fires next

    def measure(self, sizes: Mapping[str, int]) -> None:
        """Set `growth` by the rows that are new since it was measured, and fired, last."""
        before, self.rows = self.rows, sizes.get(self.code.rows, 0)
        self.growth = max(0, self.rows - before) * self.code.makes

    def finish(self, made: Mapping[str | None, int]) -> None:
        """Add to the statistics what the demand counted and which e-nodes were made."""
        self.statistics.new_nodes = made.get(self.direction.label, 0)
        if self.demand is not None:
            self.statistics.demand_calls = self.demand.calls
            self.statistics.refusals = self.demand.refusals
            self.statistics.seconds += self.demand.seconds


def number_in(name: str) -> int:
    """The number in the name of a direction's table, ruleset or rule."""
    return int(name.split("_")[1])
