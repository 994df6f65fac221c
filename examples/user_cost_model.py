"""A cost model of one's own: only bytes count, so that programs move little and compute much.

The same program is scheduled by it and by satura's. Run with `python examples/user_cost_model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from satura.experiments import CostModel, Features, trials
from satura.language import Builder, DType, Program


@dataclass(frozen=True)
class Bytes(CostModel):
    """Seconds that a memory of 1 GB/s takes; launches and work are free."""

    def seconds(self, features: Features) -> float:
        """How long a dispatch takes."""
        return (features.near + features.far) / 1e9


def shared() -> Program:
    """Sums over rows and over columns of one tensor that is dear to compute."""
    build = Builder()
    dear = build.input("x", DType.F32, [512, 512])
    for _ in range(8):
        dear = build.unary("erf", dear)
    rows, columns = (build.reduce("sum", dear, [axis]) for axis in (1, 0))
    return build.program({"rows": rows, "columns": columns})


def main() -> None:
    """Print a line per cost model."""
    costs = {"satura's": CostModel(), "bytes": Bytes()}
    for trial in trials({"shared": shared()}, costs=costs):
        print(f"{trial.cost_model:9} {trial.cost * 1e6:7.2f} µs, {trial.dispatches} dispatches")


if __name__ == "__main__":
    main()
