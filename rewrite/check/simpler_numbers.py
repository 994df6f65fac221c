"""Instances like another one, of which a number in an attribute is simpler.

Numbers that are alike change together first: a condition may ask that they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from satura.rewrite.check.instances import Instance, is_well_typed
from satura.rewrite.types.attributes import Attribute, Padding, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import DType, TensorType

SIMPLE = (0, 1, 2, -1, 3)

Value = TensorType | Attribute


def with_simpler_numbers(instance: Instance) -> Iterator[Instance]:
    """Well-typed instances of which a scalar, a window or a padding is simpler."""
    for changed in _changed(instance):
        if is_well_typed(changed):
            yield changed


def _changed(instance: Instance) -> Iterator[Instance]:
    fills = (_scalar_of(value) for _, value in instance.values)
    for scalar in dict.fromkeys(each for each in fills if each is not None):
        places = [name for name, value in instance.values if _scalar_of(value) == scalar]
        for simpler in _simpler_scalars(scalar):
            for chosen in _choices(places):
                yield _replaced(
                    instance,
                    {name: _with_scalar(instance.bindings[name], simpler) for name in chosen},
                )
    for value in dict.fromkeys(each for _, each in instance.values if _has_counts(each)):
        places = [name for name, each in instance.values if each == value]
        for other in _simpler_counts(value):
            for chosen in _choices(places):
                yield _replaced(instance, dict.fromkeys(chosen, other))


def _choices(places: list[str]) -> list[list[str]]:
    """All of the places, then each of several."""
    return [places, *([each] for each in places if len(places) > 1)]


def _replaced(instance: Instance, changes: dict[str, Value]) -> Instance:
    values = tuple((name, changes.get(name, value)) for name, value in instance.values)
    return replace(instance, values=values)


def _scalar_of(value: object) -> Scalar | None:
    return value.fill if isinstance(value, Window) else value if isinstance(value, Scalar) else None


def _with_scalar(value: object, scalar: Scalar) -> Value:
    return replace(value, fill=scalar) if isinstance(value, Window) else scalar


def _simpler_scalars(scalar: Scalar) -> Iterator[Scalar]:
    """Small integers of its type, down to the one that it is."""
    for number in SIMPLE[:2] if scalar.dtype is DType.BOOL else SIMPLE:
        if number < 0 and not scalar.dtype.is_signed:
            continue
        simple = Scalar.of(number, scalar.dtype)
        if simple == scalar:
            return
        yield simple


def _has_counts(value: object) -> bool:
    return isinstance(value, Padding | Window)


def _simpler_counts(value: Value) -> Iterator[Value]:
    """The value with one of its counts at its least, or one less."""
    least = {"lo": 0, "hi": 0} if isinstance(value, Padding) else LEAST_OF_WINDOWS
    for part, lowest in least.items():
        counts = getattr(value, part)
        for axis, count in enumerate(counts):
            lower = (lowest, count - 1) if isinstance(count, int) else ()
            for other in dict.fromkeys(each for each in lower if lowest <= each < count):
                yield replace(value, **{part: (*counts[:axis], other, *counts[axis + 1 :])})  # type: ignore[type-var]


LEAST_OF_WINDOWS = {"sizes": 1, "strides": 1, "dilations": 1, "lo": 0, "hi": 0}
