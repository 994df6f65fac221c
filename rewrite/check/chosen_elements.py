"""Arguments whose elements an instance is compared for: the largest of their type, every one of
few bits, one special among ordinary ones."""

from __future__ import annotations

from collections.abc import Set

import ml_dtypes
import numpy as np

from satura.rewrite.ops.draw import Draw
from satura.rewrite.types.tensor_type import Array, DType

ALIKE_TURNS = 5  # of which one has the least of all types, and two have the largest
MOST_TOGETHER = 4  # arguments of which all combinations of ends are met


def with_chosen_elements(
    arguments: dict[str, Array], draw: Draw, indices: Set[str]
) -> dict[str, Array]:
    """The arguments with the elements that `draw.values` asks for; `indices` are in range.

    "edge" asks for one special value among moderate ones, "alike" for nothing but the largest value
    of the type, "ends" for all combinations of ends of integer types and "all ends" for those of
    floats, too, "few" for two floats in random order, "unlike" for floats of many magnitudes,
    "every" for all values of 8 and 16 bits, and "filled" for given elements, in random order.
    """
    match draw.values:
        case "edge":
            return _with_special_at_edge(arguments, draw)
        case "alike":
            return {name: _alike(array, draw) for name, array in arguments.items()}
        case "ends" | "all ends":
            return _with_ends_together(arguments, draw, indices)
        case "few":
            return {name: _few(array, draw) for name, array in arguments.items()}
        case "unlike":
            return {name: _unlike(array, draw) for name, array in arguments.items()}
        case "every":
            return _with_every_value(arguments, draw)
        case _:
            return {
                name: _filled(array, draw.filled.get(name), draw)
                for name, array in arguments.items()
            }


def ends_of(dtype: DType) -> tuple[float, ...]:
    """Numbers of a type at which something changes: -1 and the least one first."""
    if dtype is DType.BOOL:
        return (1, 0)
    if dtype.is_float:
        most, least = float(ml_dtypes.finfo(dtype.numpy).max), _smallest(dtype)
        return (-1.0, 1.0, 0.0, 2.0, -0.0, 0.5, -2.0, most, -most, np.inf, -np.inf, np.nan, least)
    least, most = dtype.bounds
    return (-1 if least else most - 1, least, most, 0, 1, min(2, most), least + 1)


def _smallest(dtype: DType) -> float:
    """The smallest positive number of a float type."""
    return float(ml_dtypes.finfo(dtype.numpy).smallest_subnormal)


def _with_ends_together(
    arguments: dict[str, Array], draw: Draw, indices: Set[str]
) -> dict[str, Array]:
    """The arguments, of which integers and bools, or all, are at the ends of their types: where
    arrays have the elements for that, in all combinations of several of them."""
    found = dict(arguments)
    places = iter(range(len(found)))
    for name, array in arguments.items():
        dtype = DType.of(array.dtype)
        if (dtype.is_float and draw.values == "ends") or name in indices:
            continue
        ends = np.array(ends_of(dtype), object).astype(array.dtype)
        place, count = next(places) % MOST_TOGETHER, len(ends)
        numbers = draw.turn + np.arange(array.size)
        mixed = (numbers - count) // count**place % count
        found[name] = ends[np.where(numbers < count, numbers, mixed)].reshape(array.shape)
    return found


def _with_special_at_edge(arguments: dict[str, Array], draw: Draw) -> dict[str, Array]:
    """The arguments, but for a NaN or an infinity in one: first or last along an axis.

    Half the time its neighbours along the other axes are set to the same value.
    """
    floats = [name for name, a in arguments.items() if DType.of(a.dtype).is_float and a.size]
    if not floats:
        return arguments
    name = draw.one_of(floats)
    array = arguments[name].copy()
    whole = draw.chance(0.5)
    place = [slice(None) if whole else draw.up_to(extent - 1) for extent in array.shape]
    if place:
        axis = draw.up_to(array.ndim - 1)
        place[axis] = draw.one_of((0, array.shape[axis] - 1))
    array[tuple(place)] = draw.one_of((np.inf, -np.inf, np.nan))
    return arguments | {name: array}


def _alike(array: Array, draw: Draw) -> Array:
    """Integers or bools that are all the largest of their type, or the smallest: in some turns
    those of all arrays."""
    dtype = DType.of(array.dtype)
    if dtype.is_float:
        return array
    least, most = (0, 1) if dtype is DType.BOOL else dtype.bounds
    is_least = draw.turn % ALIKE_TURNS == 1 or (draw.turn % ALIKE_TURNS > 2 and draw.chance(0.2))
    return np.full_like(array, least if is_least else most)


def _few(array: Array, draw: Draw) -> Array:
    """Floats that are one of two: often the two zeros, which are equal and not the same."""
    dtype = DType.of(array.dtype)
    if not dtype.is_float:
        return array
    pair = (0.0, -0.0) if draw.chance(0.5) else draw.random.sample(ends_of(dtype), 2)
    random = np.random.default_rng(draw.random.getrandbits(64))
    return np.asarray(random.choice(pair, array.shape)).astype(array.dtype)


def _unlike(array: Array, draw: Draw) -> Array:
    """Floats of unlike magnitudes: each step of their sum or product rounds."""
    if not DType.of(array.dtype).is_float:
        return array
    random = np.random.default_rng(draw.random.getrandbits(64))
    most = 5 if draw.chance(0.5) else 1
    sizes = np.exp2(random.uniform(-most, most, array.shape))
    return np.asarray(random.choice((-1.0, 1.0), array.shape) * sizes).astype(array.dtype)


def _filled(array: Array, elements: Array | None, draw: Draw) -> Array:
    """The array with these elements at random places, where they are of that type."""
    if elements is None or elements.dtype != array.dtype:
        return array
    random = np.random.default_rng(draw.random.getrandbits(64))
    return elements[random.integers(len(elements), size=array.shape)]


def _with_every_value(arguments: dict[str, Array], draw: Draw) -> dict[str, Array]:
    """The arguments, where large enough arrays of 8 and 16 bits hold every value of their type.

    The first one has each value many times in a row: with the second one it has all pairs, if
    there is room. Others are in random order.
    """
    random = np.random.default_rng(draw.random.getrandbits(64))
    found = dict(arguments)
    small = [name for name, array in arguments.items() if _has_room(array)]
    in_a_row = 1
    for number, name in enumerate(small):
        array = arguments[name]
        values = all_values(DType.of(array.dtype))
        places = np.arange(array.size)
        if number == 0:
            in_a_row = array.size // len(values)
            places = places // in_a_row
        elif number > 1 or in_a_row < len(values):
            places = random.permutation(array.size)
        found[name] = values[places % len(values)].reshape(array.shape)
    return found


def _has_room(array: Array) -> bool:
    """Whether there is an element for every value of the dtype."""
    return array.dtype.itemsize <= 2 and array.size >= 1 << 8 * array.dtype.itemsize


def all_values(dtype: DType) -> Array:
    """All values of a dtype of at most 16 bits."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        least, most = dtype.bounds
        return np.arange(least, most + 1).astype(dtype.numpy)
    patterns = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}")
    if dtype is DType.F4E2M1:
        patterns %= 16
    values = patterns.view(dtype.numpy)
    with np.errstate(invalid="ignore"):
        is_nan = np.isnan(values.astype(np.float32))
    if is_nan.any():  # those of one kind alone: signalling ones warn wherever they go
        values[is_nan] = np.array(np.nan).astype(dtype.numpy)
    return values
