"""The cost of a dispatch, in seconds: a launch + max(bytes, work), both at the machine's rates.

The lesser of the two hides behind the other, but not wholly: so of two dispatches that would take
equally long the one with less to do is cheaper. By the rates that were measured only constants
hide, which kernels read while they compute; of all else sums predict best, for most kernels read in
one loop and compute in the next.

A cost model is additive over dispatches. `seconds` is the only place where features become time:
for candidates, for the copies that a placement needs, and for what is reported as predicted. The
default rates are those of one core of a current server CPU with AVX-512, and no machine is asked
for them; `of_vectors` has those of CPUs with narrower vectors, as far as they were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from math import nan
from types import MappingProxyType
from typing import Self, SupportsFloat

from satura.rewrite.errors import CallError, brief
from satura.rewrite.extract.asked import asked
from satura.rewrite.extract.checked import DEAREST
from satura.rewrite.extract.features import RATES, Amount, Features, copy_features

REFERENCE_LANES = 16
_HIDDEN = 1 / 16  # what a second costs that hides: less than any prediction is exact to
_BEHIND = 0.75  # the share of the lesser of computing and reading constants that was seen to hide

_OF_F32: Mapping[str, float] = {
    "contraction": 1 / 110e9, "tile": 13e-9, "product": 1 / 22e9, "depthwise": 1 / 24e9,
    "planar": 1 / 60e9, "pool": 1 / 20e9, "hop": 1 / 2e9, "reduction": 1 / 36e9,
    "cheap": 1 / 40e9, "dear": 1 / 36e9,
}  # fmt: skip
"""Seconds of one operation in f32. A `dear` operation is one of the ten or so of an exp."""

_SLOWER: Mapping[str, float] = {
    "f64": 2.0, "f16": 3.0, "bf16": 3.0, "i64": 2.5, "u64": 2.5, "bool": 0.4, "i8": 0.4, "u8": 0.4,
    "i16": 0.6, "u16": 0.6,
}  # fmt: skip
"""How much longer an operation of another type takes than one in f32."""

_OTHERS: Mapping[str, float] = {
    "launch": 2.5e-6, "host": 100e-6, "barrier": 3e-6, "row": 1.8e-9,
    "run": 1.8e-9, "masked": 1 / 1e9, "turned": 1 / 16e9, "scattered": 1 / 1.4e9,
    "gathered": 1 / 40e9, "picked": 1 / 2e9, "ordered": 1 / 0.9e9, "packed": 1 / 16e9,
    "octets": 1 / 330e9, "paired": 1 / 165e9, "parted": 1 / 270e9, "transformed": 1 / 5e9,
    "near": 1 / 12e9, "far": 1 / 12e9, "stored": 1 / 1000e9, "constant": 1 / 12e9,
}  # fmt: skip
"""Bytes are as slow as where all cores share the memory: a tensor that is stored may displace what
others need, and a default that errs on this side fuses. Storing takes next to nothing beyond."""


_OF_8_LANES: Mapping[str, float] = {
    "launch": 1.3e-6, "contraction.f32": 1 / 80e9, "contraction.f16": 1 / 80e9,
    "contraction.bf16": 1 / 80e9, "tile.f32": 10e-9, "depthwise.f32": 1 / 48e9,
    "planar.f32": 1 / 52e9, "pool.f32": 1 / 33e9, "reduction.f32": 1 / 50e9,
    "cheap.f32": 1 / 30e9, "dear.f32": 1 / 20e9, "turned": 1 / 12e9, "packed": 1 / 6e9,
    "near": 1 / 40e9, "far": 1 / 20e9, "constant": 1 / 16e9,
}  # fmt: skip
"""What was measured on a CPU with AVX2; all else takes twice as long as with vectors of twice the
width."""

_OF_MATRICES: Mapping[str, float] = {"octets": 1 / 1000e9}
"""What was measured on a CPU with AMX, whatever its vectors hold."""


def _is_widened(kind: str, dtype: str) -> bool:
    """Whether elements become f32 before they are computed with, once for many uses."""
    return dtype in ("f16", "bf16") and kind in ("contraction", "tile")


def _is_vectorised(name: str) -> bool:
    """Whether narrower vectors take longer for it."""
    return name in ("octets", "paired") or ("." in name and "hop" not in name)


def _reference_rates() -> dict[str, float]:
    rates: dict[str, float] = {}
    for name in RATES:
        kind, _, dtype = name.partition(".")
        slower = 1.0 if _is_widened(kind, dtype) else _SLOWER.get(dtype, 1.0)
        if (kind, dtype) == ("dear", "f64"):  # a scalar call per element
            slower = 15.0
        rates[name] = _OF_F32[kind] * slower if dtype else _OTHERS[kind]
    return rates


REFERENCE_RATES: Mapping[str, float] = MappingProxyType(_reference_rates())


@dataclass(frozen=True)
class CostModel:
    """Rates of the machine, in seconds per amount; `features.py` says what each is paid for.

    Vectors hold `lanes` elements of f32, which are multiplied `in_parts` where that is faster.
    `threads` run a dispatch, but no more than `streams` of them share the bandwidth of the memory.
    `sizes` are typical sizes of symbols; others count as 64. A second that hides behind others
    costs `hidden` of one, and the share `behind` of reading constants hides behind the computing in
    any case.
    """

    rates: Mapping[str, float] = field(default_factory=lambda: REFERENCE_RATES)
    lanes: int = REFERENCE_LANES
    threads: int = 1
    streams: int = 4
    sizes: Mapping[str, int] = field(default_factory=dict)
    hidden: float = _HIDDEN
    behind: float = 0.0
    in_parts: bool = False
    # A constant stored costs little at run time, but not nothing.
    constant_byte: float = 1e-13
    constant: float = 1e-9

    def __post_init__(self) -> None:
        """Raise CallError for fields that no machine has."""
        for name in ("lanes", "threads", "streams"):
            number = getattr(self, name)
            if not isinstance(number, int) or number < 1:
                raise CallError(
                    f"{name} of a cost model must be an int of at least 1, not {number!r}"
                )
        for name in ("hidden", "behind"):
            share = getattr(self, name)
            if not isinstance(share, int | float) or not 0 <= share <= 1:
                raise CallError(f"{name} of a cost model is a share from 0 to 1, not {share!r}")
        _refuse_unknown(self.rates)
        if missing := [name for name in RATES if name not in self.rates]:
            raise CallError(
                f"a cost model has all rates, and {brief(missing)} are missing: see with_rates"
            )

    @staticmethod
    def of_vectors(
        lanes: int, threads: int = 1, has_matrices: bool = False, in_parts: bool = False
    ) -> CostModel:
        """The default for a CPU whose vectors hold `lanes` elements of f32, and which may have
        instructions that multiply matrices of octets, and those of bf16."""
        slower = REFERENCE_LANES / lanes
        rates = {
            name: seconds * slower if _is_vectorised(name) else seconds
            for name, seconds in REFERENCE_RATES.items()
        }
        if lanes == 8:
            rates |= _OF_8_LANES
        if has_matrices:
            rates |= _OF_MATRICES
        return CostModel(rates, lanes, threads=threads, in_parts=in_parts)

    def with_rates(self, rates: Mapping[str, float]) -> Self:
        """This model with some rates changed. Raises CallError for a name that no rate has."""
        _refuse_unknown(rates)
        return self._with(rates={**self.rates, **rates})

    def with_measured(self, rates: Mapping[str, float]) -> Self:
        """This model with rates that a machine was asked for, by which only constants hide."""
        return self.with_rates(rates)._with(hidden=1.0, behind=_BEHIND)

    def with_sizes(self, sizes: Mapping[str, int]) -> Self:
        """This model for other typical sizes of symbols."""
        return self._with(sizes=dict(sizes))

    def _with(self, **changes: object) -> Self:
        """This model with some fields changed, also where a subclass is made from other ones."""
        changed = copy(self)
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        return changed

    @property
    def identity(self) -> str:
        """All that its costs depend on, as one line."""
        rates = " ".join(f"{name}={seconds!r}" for name, seconds in sorted(self.rates.items()))
        sizes = " ".join(f"{name}={size}" for name, size in sorted(self.sizes.items()))
        others = (
            self.lanes, self.threads, self.streams, self.hidden, self.behind, self.in_parts,
            self.constant_byte,
        )  # fmt: skip
        return f"{rates}; {sizes}; {others} {self.constant!r}"

    def seconds(self, features: Features) -> float:
        """How long a dispatch takes."""
        if features.form == "host":
            return self.rates["host"] + self.memory(features)
        constants = self.moving(0.0, 0.0, features.constants)
        memory = self.memory(features)
        return self.together(self.work(features), memory, constants, features.units)

    def together(self, work: float, memory: float, constants: float, units: float) -> float:
        """How long a dispatch of kernels takes, of so many seconds of one thread for computing and
        for memory, of which so many are for `constants`."""
        alone = self._overlapped(work, memory, constants)
        if self.threads > 1 and units > 1:
            shared = min(self.threads, units)
            streams = min(shared, self.streams)
            together = self._overlapped(work / shared, memory / streams, constants / streams)
            alone = min(alone, together + self.rates["barrier"])
        return self.rates["launch"] + alone

    def _overlapped(self, work: float, memory: float, constants: float) -> float:
        """How long both take at the same time. It grows with each, and is subadditive: what is
        fused takes no longer."""
        read = memory - self.behind * min(work, constants)
        return max(work, read) + self.hidden * min(work, read)

    def terms(self, features: Features) -> dict[str, float]:
        """The seconds of a dispatch by rate; of what hides, as much as it costs."""
        start = "host" if features.form == "host" else "launch"
        memory = {name: self.rates[name] * amount for name, amount in features.moved if amount}
        done = features.summed if start == "launch" else {}
        work = {name: self.rates[name] * amount for name, amount in done.items()}
        if "constant" in memory:
            memory["constant"] -= self.behind * min(sum(work.values()), memory["constant"])
        lesser, greater = sorted((memory, work), key=lambda side: sum(side.values()))
        alone = {**greater, **{name: seconds * self.hidden for name, seconds in lesser.items()}}
        seconds, total = self.seconds(features), sum(alone.values())
        begun = min(self.rates[start], seconds) if total else seconds  # a user's may be less
        shares = {name: each * (seconds - begun) / total for name, each in alone.items() if total}
        return {start: begun, **shares}  # threads share all but the start

    def work(self, features: Features) -> float:
        """The part of one thread's time that is spent computing."""
        return self.working(features.work)

    def memory(self, features: Features) -> float:
        """The part of one thread's time that reading and storing take."""
        moving = self.moving(features.near, features.far, features.constants)
        return moving + features.stored * self.rates["stored"]

    def working(self, work: Iterable[Amount]) -> float:
        """How long one thread computes so much."""
        rates = self.rates
        return sum([rates[name] * amount for name, amount in work if amount])

    def moving(self, near: float, far: float, constants: float) -> float:
        """How long one thread takes for so many bytes, as if it read all of them."""
        rates = self.rates
        return near * rates["near"] + far * rates["far"] + constants * rates["constant"]


def _refuse_unknown(rates: Mapping[str, float]) -> None:
    """Raise CallError for a name that no rate has."""
    for name in rates:
        if name not in REFERENCE_RATES:
            raise CallError(f"there is no rate {brief(name)}; CostModel().rates has all names")


# A subclass whose __init__ does not call this one has all defaults, too.
CostModel.rates = REFERENCE_RATES
CostModel.sizes = MappingProxyType({})


def given_or_default(model: CostModel | None) -> CostModel:
    """A cost model, by default that of the reference rates.

    Raises CallError for what is not one, such as the class of one.
    """
    if model is None:
        return CostModel()
    if isinstance(model, CostModel):
        return model
    if isinstance(model, type):
        raise CallError(f"the cost model {model.__name__} is a class: give an object of it")
    raise CallError(f"a cost model is a name or an object of CostModel's kind, not {brief(model)}")


def asked_seconds(
    model: CostModel, function: Callable[..., float], *arguments: object, what: Callable[[], str]
) -> float:
    """What a `function` of a cost model says of a dispatch, as a float; `what` names the dispatch.

    Raises CallError for what is not a number that can be added up; what it raises names it.
    """
    seconds = asked(f"the cost model {type(model).__name__}", function, *arguments)
    return checked_seconds(model, seconds, what)


def checked_seconds(model: CostModel, seconds: object, what: Callable[[], str]) -> float:
    """What a cost model says of a dispatch, as a float; `what` names the dispatch.

    Raises CallError for what is not a number that can be added up.
    """
    if type(seconds) is float and 0 <= seconds <= DEAREST:
        return seconds
    if isinstance(seconds, SupportsFloat):
        try:
            found = float(seconds)
        except (TypeError, ValueError, OverflowError):
            found = nan
        if 0 <= found <= DEAREST:
            return found
    shown = f"{seconds} s" if isinstance(seconds, int | float) else repr(seconds)
    raise CallError(
        f"the cost model {type(model).__name__} says {shown} for a dispatch, {what()}: seconds are"
        f" a number from 0 to {DEAREST:g}"
    )


def copy_seconds(model: CostModel, dtype: str, size: float) -> float:
    """How long it takes to copy a tensor of so many bytes, as a dispatch."""
    features = copy_features(dtype, size)
    return asked_seconds(model, model.seconds, features, what=lambda: f"a copy of {size:g} bytes")
