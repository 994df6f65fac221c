"""Random elements of a tensor: what tests of rules and programs compute with.

Special ones are likely: NaN, infinities, both zeros, ends of ranges, neighbours of other elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import ml_dtypes
import numpy as np

from satura.rewrite.types.dims import product, static
from satura.rewrite.types.tensor_type import Array, DType, TensorType

FEW_ELEMENTS = 12  # are drawn one by one: they can be shrunk
FLOAT_SPECIALS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 0.5, -0.25, 3.0)
SPECIAL_FLOATS = 32
SCALES = {  # magnitude of floats that inexact laws must survive, too: exp of some is infinite
    DType.F64: (0.0, 0.25, 3.0, 100.0, 500.0), DType.F32: (0.0, 0.25, 3.0, 100.0),
    DType.BF16: (0.0, 0.25, 3.0, 100.0), DType.F16: (0.0, 0.25, 3.0),
}  # fmt: skip


class DrawnElements:
    """Draws elements: remembers what it drew, so that later ones can be next to earlier ones.

    `specials` is the share of NaN, infinities, zeros and the like.
    """

    def __init__(self, random: Random, specials: float) -> None:
        self.random = random
        self.specials = specials
        self.wide = False  # whether the moderate floats drawn last were far from 1
        self.before: dict[tuple[DType, int], Array] = {}

    def array(self, type_: TensorType, moderate: bool) -> Array:
        """Elements of a concrete type; `moderate`: finite floats and small ints.

        Most moderate floats are near 1, a quarter of the arrays has zeros, halves and up to
        hundreds. Half of the larger arrays have hardly any special float: a sum with NaN shows
        nothing. A few have hardly any other: -0.0 is rare elsewhere. Some have neighbours of what
        was drawn before.
        """
        dtype = type_.dtype
        shape = tuple(map(static, type_.shape))
        count = static(product(shape))
        specials = 0.2
        if dtype.is_float and moderate:
            self.wide = self._chance(0.6 if self.wide else 0.15)
            specials = 1.0 if self.wide else 0.0
        elif dtype.is_float:
            specials = self.specials
            if count > 3:
                specials *= 3.0 if self._chance(0.1) else 0.05 if self._chance(0.5) else 1.0
        result = self._elements(dtype, count, moderate, specials)
        if count and not moderate and self._chance(0.15):
            result = self._beside(dtype, result)
        self.before[dtype, count] = result
        return result.reshape(shape)

    def _beside(self, dtype: DType, values: Array) -> Array:
        """`values`, where about half are what comes next after other elements drawn before."""
        if dtype is DType.BOOL:
            return values
        random = np.random.default_rng(self.random.getrandbits(64))
        before = random.permutation(values)
        if self._chance(0.5):
            before = self.before.get((dtype, values.size), before)
        bits = before.view(f"u{dtype.itemsize}")
        following = (bits + np.ones_like(bits)).view(dtype.numpy)
        chosen = random.random(values.size) < 0.5
        if dtype.is_float:
            chosen &= np.isfinite(before)
        beside: Array = np.where(chosen, following, values)
        return beside

    def _elements(self, dtype: DType, count: int, moderate: bool, specials: float) -> Array:
        """Elements of which this share is special; many are not drawn one by one."""
        with np.errstate(all="ignore"):
            if count <= FEW_ELEMENTS:
                drawn = [self.element(dtype, moderate, specials) for _ in range(count)]
                few = np.array(drawn, np.float64 if dtype.is_float else object)
                return few.astype(dtype.numpy)
            random = np.random.default_rng(self.random.getrandbits(64))
            values: Array
            if dtype is DType.BOOL:
                return random.integers(2, size=count).astype(np.bool_)
            if not dtype.is_float:
                values = random.integers(-9 if dtype.is_signed else 0, 10, count)
            elif moderate:
                values = random.choice((-1, 1), count) * random.uniform(0.8, 1.25, count)
            else:
                values = random.choice((1.0, 1.0, 100.0), count) * random.standard_normal(count)
            special = np.array(self.special_elements(dtype, moderate)).astype(dtype.numpy)
            chosen = random.random(count) < specials
            result: Array = np.where(
                chosen, random.choice(special, count), values.astype(dtype.numpy)
            )
            return result

    def element(self, dtype: DType, moderate: bool, specials: float) -> float | int:
        """One element, drawn as `array` draws many."""
        random = self.random
        if dtype is DType.BOOL:
            return random.randrange(2)
        if random.random() < specials:
            if dtype.is_float:
                return self._special_float(dtype, moderate)
            return random.choice(self.special_elements(dtype, moderate))
        if not dtype.is_float:
            return random.randint(-9 if dtype.is_signed else 0, 9)
        if moderate:
            return random.choice((-1, 1)) * random.uniform(0.8, 1.25)
        return random.choice((1.0, 1.0, 100.0)) * random.gauss(0, 1)

    def special_elements(self, dtype: DType, moderate: bool) -> Sequence[float | int]:
        """Elements at which something changes, or that are larger or smaller than others."""
        if not dtype.is_float:
            least, most = dtype.bounds
            bits = 8 * dtype.itemsize - dtype.is_signed
            power = 1 << (bits - 1 if self._chance(0.5) else self.random.randrange(bits))
            ends = (least, least + 1, most - 1, most, most // 2 + 1)
            any_one = self.random.randint(least, most)
            beside = [_beside_tie(self.random)] if dtype.itemsize == 8 else []
            shifted = 8 * dtype.itemsize - self.random.randrange(2)
            return 0, 1, *ends, power - 1, power, power, power + 1, any_one, shifted, *beside
        return [self._special_float(dtype, moderate) for _ in range(SPECIAL_FLOATS)]

    def _special_float(self, dtype: DType, moderate: bool) -> float:
        """0 or a float that differs from most in its size; halves now and then, as they are ties.

        One that is not `moderate` is often infinite, NaN, -0.0 or near an end of its range.
        """
        if self._chance(0.2 if moderate else 0.1):
            return self.random.randint(-9, 9) / 2
        if moderate:
            return self.random.choice(SCALES.get(dtype, SCALES[DType.F16])) * self.random.gauss(
                0, 1
            )
        if self._chance(0.1):
            largest, normal, _ = _limits(dtype)
            size = self.random.choice((largest**0.25, largest**0.8, largest**-0.25, normal))
            return float(size * self.random.gauss(0, 1))
        return self.random.choice(_ends(dtype))

    def _chance(self, probability: float) -> bool:
        return self.random.random() >= 1 - probability


def _beside_tie(random: Random) -> int:
    """A neighbour of an integer half way between two f32; rounded to f64 first, it is that one."""
    middle = (1 << 24) + 2 * random.getrandbits(23) + 1
    return (middle << 38) + random.choice((-1, 1))


@cache
def _limits(dtype: DType) -> tuple[float, float, float]:
    """The largest finite, the smallest normal and the smallest float above 0."""
    info = ml_dtypes.finfo(dtype.numpy)
    return float(info.max), float(info.tiny), float(info.smallest_subnormal)


@cache
def _ends(dtype: DType) -> tuple[float, ...]:
    """0, infinities, NaN and the like, often, and what is at the ends of a float's range."""
    largest, *smallest = _limits(dtype)
    last = (largest, largest, *smallest, -largest, -largest, *(-each for each in smallest))
    return *FLOAT_SPECIALS, *FLOAT_SPECIALS, *last
