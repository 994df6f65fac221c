"""What all kernels with reductions share: steps, starting values, and what depends on what."""

from __future__ import annotations

from satura.backend.emit.text import zero
from satura.backend.lower.body import Nest, Reduction, needed_values
from satura.rewrite.types.tensor_type import DType


def cost(nest: Nest, index: int) -> float:
    """Flops of computing a value from loads and finished reductions."""
    return nest.flops(needed_values(nest.values, [index]))


def step_text(function: str, held: str, value: str) -> str:
    """One step of a reduction."""
    names = {
        "sum": "add_any_order", "prod": "mul_any_order", "max": "maximum", "min": "minimum",
    }  # fmt: skip
    return f"{names[function]}({held}, {value})"


def is_better(reduction: Reduction, value: str) -> str:
    """Whether `value` replaces `best` in an index reduction; a NaN is better than any number."""
    sign = {"max": ">", "min": "<"}[reduction.function] + "=" * reduction.takes_last
    if reduction.dtype is DType.BOOL:
        return f"i8({value}) {sign} i8(best)"
    if not reduction.dtype.is_float:
        return f"{value} {sign} best"
    again = "" if reduction.takes_last else " and best == best"
    return f"{value} {sign} best or ({value} != {value}{again})"


def has_key(reduction: Reduction) -> bool:
    """Whether a running value is better kept as an integer that orders floats and NaN."""
    is_choice = reduction.function in ("max", "min") and reduction.position is None
    return is_choice and reduction.dtype.is_float


def as_key(reduction: Reduction, value: str) -> str:
    """The integer for a float value."""
    return f"{reduction.function}_key({value})"


def identity_text(reduction: Reduction) -> str:
    """The value that changes nothing. A literal: it belongs to the function."""
    bits = int.from_bytes(reduction.identity.bits, "little")
    if not bits:
        return zero(reduction.dtype)
    if reduction.dtype is DType.BOOL:
        return "True"
    return f"scalar_{reduction.dtype.value}({bits - (1 << 64) * (bits >> 63)})"


def reads_loops(nest: Nest, target: int, loops: range, store: bool = True) -> bool:
    """Whether value `target`, or the `store`, changes with one of these loops."""
    accesses = [nest.values[index].access for index in needed_values(nest.values, [target])]
    strides = [access.strides for access in accesses if access is not None]
    if store:
        strides.append(nest.target.strides)
    return any(any(s[loops.start : loops.stop]) for s in strides)
