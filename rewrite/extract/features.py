"""Features: what a dispatch does, in amounts that a cost model knows rates for.

A rate is named by what is done and, after a dot, by the element type that it is done on:

    contraction   multiply-adds of register tiles, idle lanes and rows counted
    tile          visits of a register tile: what small depths and few columns pay
    octets        multiply-adds of integers that come from 8 bits, in fours; `paired` are those with
                  weights that need more bits
    parted        those of f32 in parts, where the CPU multiplies matrices of bf16
    transformed   elements of the tiles and results that a winograd transforms
    product       multiply-adds of contractions that plain loops compute
    depthwise     multiply-adds of convolutions with one channel per group; planar are those along
                  the contiguous axis, idle lanes counted
    pool, hop     instructions of pools that vectorise, and operations of those over a strided
                  innermost axis
    reduction     elements that a row's reductions read; `row` counts the rows
    run           runs between which the addresses of a copy jump, or a part of a pad or concat ends
    cheap, dear   elementwise work: a few instructions each, or a polynomial as exp has
    masked        elements of pads and concats along the innermost axis in rows and epilogues, each
                  of which is compared, and chosen from all parts
    turned        bytes whose innermost axis is another one where plain loops read them, in blocks
    scattered     such bytes where others read them, one by one, and where data says
    gathered      bytes that are read where data says, in runs
    picked        elements that are read one by one: where data says, or at a distance
    ordered       comparisons whose outcome nobody can guess
    packed        bytes of a varying operand that are copied to panels, or of what is split in parts
    near, far     bytes read and stored, of tensors that caches hold and the rest of larger ones
    stored        those of them that are stored: what this takes longer than reading
    constant      bytes of constants: other dispatches have displaced them since the last run

A new kind of kernel needs a name here, its amounts where fragments are made, and its rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from satura.rewrite.types.tensor_type import DType

Amount = tuple[str, float]
"""The name of a rate, and how often it is to be paid."""

TYPED = (
    "contraction", "tile", "product", "depthwise", "planar", "pool", "hop", "reduction", "cheap",
    "dear",
)  # fmt: skip
UNTYPED = (
    "octets", "paired", "parted", "transformed", "row", "run", "masked", "turned", "scattered",
    "gathered", "picked", "ordered", "packed",
)  # fmt: skip
MEMORY = ("near", "far", "stored", "constant")
NEAR_BYTES = 2.0**18  # of one tensor: as much as the second cache holds of several
UNIT_BYTES = 16384.0  # stored by one thread at a time
_COUNTED = {*TYPED, "octets", "paired", "parted"} - {"tile"}
OVERHEADS = ("launch", "host", "barrier")


def rate(kind: str, dtype: DType) -> str:
    """The name of the rate of `kind` for elements of `dtype`."""
    return _NAMES[kind, dtype]


_NAMES = {(kind, dtype): f"{kind}.{dtype.value}" for kind in TYPED for dtype in DType}
RATES = tuple(dict.fromkeys((*OVERHEADS, *MEMORY, *UNTYPED, *_NAMES.values())))
"""All names of rates."""


@dataclass(frozen=True, slots=True)
class Features:
    """What one dispatch does.

    `work` is what it computes and `constants` the bytes of constants that it reads; `near` and
    `far` are all other bytes that it reads and stores, `stored` those that it stores. It falls into
    at most `units` parts for threads. Tensors are near or far one by one: so fusion makes none of
    them slower.
    """

    form: str
    dtype: str
    work: Iterable[Amount] = ()
    near: float = 0.0
    far: float = 0.0
    constants: float = 0.0
    units: float = 1.0
    stored: float = 0.0

    @property
    def moved(self) -> tuple[Amount, ...]:
        """The amounts that the rates of `MEMORY` are paid for."""
        return tuple(zip(MEMORY, (self.near, self.far, self.stored, self.constants), strict=True))

    @property
    def working_set(self) -> float:
        """The bytes that it touches."""
        return self.near + self.far + self.constants

    @property
    def summed(self) -> dict[str, float]:
        """The amounts of its work by rate, those of one rate added up."""
        total: dict[str, float] = {}
        for name, amount in self.work:
            if amount:
                total[name] = total.get(name, 0.0) + amount
        return total

    @property
    def settled(self) -> Features:
        """The same, its work added up by rate."""
        return replace(self, work=tuple(self.summed.items()))

    @property
    def flops(self) -> float:
        """What it computes, in operations; idle lanes of tiles are counted, too."""
        kinds = {name: name.partition(".")[0] for name in self.summed}
        return sum(amount for name, amount in self.summed.items() if kinds[name] in _COUNTED)


def copy_features(dtype: str, size: float) -> Features:
    """What a dispatch does that only copies a tensor of so many bytes."""
    near = min(size, NEAR_BYTES)
    units = max(1.0, size / UNIT_BYTES)
    return Features("loop", dtype, (), 2 * near, 2 * (size - near), 0.0, units, size)
