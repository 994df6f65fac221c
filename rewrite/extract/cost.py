"""The cost of a dispatch, in seconds: launch + max(bytes / bandwidth, flops / peak).

A cost model is additive over dispatches. Symbolic dims count at a representative size. The default
rates are those of one core of a current server CPU; a measured model can be handed in instead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CostModel:
    """Rates of the machine: seconds per launch, bytes per second, flops per second."""

    launch: float = 1.5e-6
    bandwidth: float = 12e9
    elementwise_peak: float = 40e9
    contraction_peak: float = 120e9
    window_peak: float = 20e9
    # A constant stored costs little at run time, but not nothing.
    constant_byte: float = 1e-13
    constant: float = 1e-9

    def dispatch(self, bytes_: float, loop_flops: float, anchor_seconds: float) -> float:
        """Seconds of one dispatch that moves `bytes_` and computes around an anchor."""
        compute = loop_flops / self.elementwise_peak + anchor_seconds
        return self.launch + max(bytes_ / self.bandwidth, compute)
