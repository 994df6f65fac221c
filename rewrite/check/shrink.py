"""Smaller counterexamples: the same failure with fewer axes, elements and simpler values.

An instance is drawn from a sequence of random numbers. Leaving some out, or lowering some, gives
another instance, often a smaller one: this works for every op without knowing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, starmap
from random import Random

import numpy as np

from satura.rewrite.check.both_sides import Failure, examine
from satura.rewrite.check.compare import is_finite, node_values
from satura.rewrite.check.disagreement import UncomputableError, disagreement, elements_where_unlike
from satura.rewrite.check.fewer_axes import with_fewer_axes
from satura.rewrite.check.instances import NO_WISH, Instance, Wish, draw_from
from satura.rewrite.check.plain_dtypes import with_plain_dtypes
from satura.rewrite.check.simpler_numbers import SIMPLE, with_simpler_numbers
from satura.rewrite.check.smaller_extents import with_smaller_extents
from satura.rewrite.ops.draw import Draw
from satura.rewrite.ops.registry import size_of
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType

REDRAWS = 400  # instances to draw afresh
TRIES = 1600  # instances to compare, at most, to find a smaller one
AT_SIZES = 4  # how many of these an open one counts for: it is compared at several sizes
TRIES_OF_PARTS = 400  # more, of one axis, extent or number each
SPECIALS = (0.3, 0.9) * 3  # how many elements are special, for each of the values to try
COMPUTED = 4000  # times that a program is computed to find simpler arguments, at most,
COMPUTED_AGAIN = 2000  # of a smaller instance,
COMPUTED_ELEMENTS = 2e9  # and with so many elements in all
LEAST_PART = 16  # elements that are made simple at once
TINY = 12.0  # weight of an instance of so few elements that a special value is seldom among them
MOST_MIXED = 5  # different elements of an argument to draw smaller ones from,
MIXED_DRAWS = 24  # so many times


class Numbers(Random):
    """Random numbers that record what they give, or replay a record and give zeros after it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.given: Sequence[float] | None = None
        self.taken: list[float] = []

    @staticmethod
    def replay(given: Sequence[float]) -> Numbers:
        """Numbers that give `given`, then zeros."""
        numbers = Numbers(0)
        numbers.given = given
        return numbers

    def random(self) -> float:
        return self._take(super().random)

    def getrandbits(self, k: int, /) -> int:
        fraction = self._take(lambda: (super(Numbers, self).getrandbits(k) + 0.5) / (1 << k))
        return int(fraction * (1 << k))

    def _take(self, new: Callable[[], float]) -> float:
        at = len(self.taken)
        value = new() if self.given is None else self.given[at] if at < len(self.given) else 0.0
        self.taken.append(value)
        return value


def smallest(failure: Failure, exact: bool) -> Failure:
    """A failure of the same rule that is as small as a bounded search finds."""
    if failure.instance is not None:
        failure = _Search(failure, failure.instance, exact).run()
    failure = _simplified(failure, exact, COMPUTED)
    mixed = _mixed(failure)
    if failure.instance is not None and mixed:
        search = _Search(failure, failure.instance, exact)
        search.fillings = [mixed] * MIXED_DRAWS
        smaller = search.with_less()
        if smaller is not failure:
            return _simplified(smaller, exact, COMPUTED_AGAIN)
    return failure


def _simplified(failure: Failure, exact: bool, most: int) -> Failure:
    """The failure with simpler arguments, for which its program is computed at most so often."""
    if not failure.is_difference:
        return failure
    arguments = _simpler_arguments(failure, exact, most)
    reason = disagreement(failure.program, arguments, exact)
    return replace(failure, arguments=arguments, reason=reason or failure.reason)


class _Search:
    """A search for a smaller instance that fails as well."""

    def __init__(self, failure: Failure, instance: Instance, exact: bool) -> None:
        self.best = failure
        self.instance = instance
        self.exact = exact
        self.left = TRIES
        self.fillings = [each for each in (_elements(failure), _extremes(failure)) if each]

    def run(self) -> Failure:
        direction = self.instance.direction
        dtypes = tuple(dict.fromkeys(type_.dtype for type_ in self.instance.types.values()))
        alike = [Wish(dtypes=dtypes)] * any(dtype.is_narrow for dtype in dtypes)
        self.with_less()
        self.left = TRIES
        for wish in (NO_WISH, *alike):
            for seed in range(REDRAWS):
                drawn = draw_from(direction, Random(seed), seed, wish)
                if drawn is not None and drawn.weight < self.instance.weight:
                    self.accept(drawn)
        source = Numbers(self.instance.seed)
        draw_from(direction, source, self.instance.seed, self.wish)
        numbers: list[float] | None = source.taken
        while numbers is not None:
            numbers = self.step(numbers)
        return self.with_less()

    def with_less(self) -> Failure:
        """The best failure of instances with fewer axes, smaller extents, simpler numbers and
        plain dtypes."""
        self.left = TRIES_OF_PARTS
        ways = (with_fewer_axes, with_smaller_extents, with_simpler_numbers, with_plain_dtypes)
        while self.left > 0 and any(
            self.left > 0 and self.accept(each) for way in ways for each in way(self.instance)
        ):
            pass
        return self.best

    @property
    def wish(self) -> Wish:
        """What the best instance was drawn by."""
        return self.instance.wish or NO_WISH

    def step(self, numbers: list[float]) -> list[float] | None:
        """Simpler numbers whose instance fails as well; None where none are found."""
        size = (self.instance.weight, len(numbers), sum(numbers))
        for candidate in _simpler_numbers(numbers):
            source = Numbers.replay(candidate)
            drawn = draw_from(self.instance.direction, source, self.instance.seed, self.wish)
            if drawn is None or (drawn.weight, len(source.taken), sum(source.taken)) >= size:
                continue
            if self.accept(drawn):
                return source.taken
            if self.left <= 0:
                return None
        return None

    def accept(self, drawn: Instance) -> bool:
        """Whether the rule fails for `drawn`; small tensors need several values to show it."""
        floats = any(type_.dtype.is_float for type_ in drawn.types.values())
        tries: Sequence[float] = SPECIALS if floats else SPECIALS[:2]
        if not self.best.is_of_values:
            tries = SPECIALS[:1]
        elif drawn.weight <= TINY:
            tries = SPECIALS * 4
        self.left -= AT_SIZES if drawn.symbols else 1
        special = (Draw(Random(seed), specials=share) for seed, share in enumerate(tries))
        for draw in chain(starmap(_filled, enumerate(self.fillings)), special):
            found = examine(drawn, self.exact, draw)
            if found is not None and found.is_raised == self.best.is_raised:
                self.best, self.instance = found, drawn
                return True
        return False


def _filled(seed: int, elements: dict[str, Array]) -> Draw:
    """A draw of arrays of these elements."""
    draw = Draw(Random(seed))
    draw.values, draw.filled = "filled", elements
    return draw


def _elements(failure: Failure) -> dict[str, Array]:
    """The elements that show a failure, where there are such."""
    if not failure.is_difference:
        return {}
    found = elements_where_unlike(failure.program, failure.arguments)
    return {name: np.array([element]) for name, element in found.items()}


def _extremes(failure: Failure) -> dict[str, Array]:
    """The element of each argument that is farthest from 0, where a failure is a difference."""
    if not failure.is_difference:
        return {}
    with_elements = {name: array for name, array in failure.arguments.items() if array.size}
    places = {
        name: int(np.argmax(np.abs(array.astype(np.float64))))
        for name, array in with_elements.items()
    }
    return {name: with_elements[name].flat[at : at + 1] for name, at in places.items()}


def _mixed(failure: Failure) -> dict[str, Array]:
    """The elements of each argument, where these are several and few; empty where none has any."""
    if not failure.is_of_values:
        return {}
    found = {}
    for name, array in failure.arguments.items():
        elements = {element.tobytes(): element for element in array.flat}
        if 0 < len(elements) <= MOST_MIXED:
            found[name] = np.array([*elements.values()])
    return found if any(len(each) > 1 for each in found.values()) else {}


def _simpler_numbers(numbers: Sequence[float]) -> Iterator[list[float]]:
    """Simpler sequences: some numbers are left out, set to zero, or lowered."""
    kept = list(numbers)
    for length in (8, 4, 2, 1):
        for start in range(0, len(kept), max(1, length // 2)):
            yield kept[:start] + kept[start + length :]
    for start, number in enumerate(kept):
        for lower in (0.0, number / 2, number * 0.75):
            if lower < number:
                yield [*kept[:start], lower, *kept[start + 1 :]]


def _simpler_arguments(failure: Failure, exact: bool, most: int) -> dict[str, Array]:
    """Zeros, small integers, and numbers of few digits for which the two sides still differ.

    Larger programs are computed fewer times for that.
    """
    arguments = dict(failure.arguments)
    elements = sum(size_of(node.type) for node in failure.program.nodes)
    left = min(most, COMPUTED_ELEMENTS / max(1.0, elements))

    def fails(name: str, array: Array) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            return False
        changed = arguments | {name: array}
        try:
            fails = bool(disagreement(failure.program, changed, exact))
        except UncomputableError:
            return False
        # A law up to rounding need not hold where a zero divides.
        return fails and (exact or bool(array.all()) or _is_finite(failure.program, changed))

    for name, array in arguments.items():
        for value in SIMPLE:
            filled = np.full_like(array, _in_dtype_of(value, array))
            if fails(name, filled):
                arguments[name] = filled
                break
    for name in arguments:
        for part in _parts(arguments[name].size):
            for value in SIMPLE[:2]:
                changed = arguments[name].copy()
                changed.flat[part] = _in_dtype_of(value, changed)
                if fails(name, changed):
                    arguments[name] = changed
                    break
        for position in range(arguments[name].size):
            if left <= 0:
                break
            array = arguments[name]
            for number in (*SIMPLE, *_shorter(array.flat[position])):
                if array.flat[position].tobytes() == _in_dtype_of(number, array).tobytes():
                    break
                changed = array.copy()
                changed.flat[position] = _in_dtype_of(number, array)
                if fails(name, changed):
                    arguments[name] = changed
                    break
    return arguments


def _parts(size: int) -> Iterator[slice]:
    """Parts of so many elements, the large ones first."""
    length = size // 4
    while length >= LEAST_PART:
        yield from (slice(start, start + length) for start in range(0, size, length))
        length //= 4


def _is_finite(program: Program, arguments: Mapping[str, Array]) -> bool:
    """Whether both sides have only finite elements."""
    values = node_values(program.nodes, arguments)
    return all(is_finite(values[index]) for index in program.output_nodes)


def _shorter(number: np.generic) -> Iterator[float | int]:
    """Numbers of one and of two digits near `number`, and half of it and less where it is whole."""
    if not np.isfinite(float(number)):
        return
    if DType.of(number.dtype).is_float:
        yield from (float(f"{float(number):.{digits}e}") for digits in (0, 1))
    else:
        yield from (int(number) >> bits for bits in range(64, 0, -1) if int(number) >> bits)


def _in_dtype_of(value: float | int, array: Array) -> Array:
    """`value` in the dtype of `array`, or the nearest value that the dtype has."""
    dtype = DType.of(array.dtype)
    near = value if dtype.is_signed else abs(value)
    return np.asarray(min(near, 1) if dtype is DType.BOOL else near).astype(array.dtype)
