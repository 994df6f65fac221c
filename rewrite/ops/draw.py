"""Random dims, types, attributes and values: what tests of rules and programs draw from.

Everything is drawn from one `random.Random`, so a seed decides all (Hypothesis' `randoms()` fits).
Small and awkward things are likely: extents 0 and 1, equal and coprime extents, every dtype,
identity permutations, empty paddings, NaN, infinities and both zeros. Where all random numbers are
0, the simplest is drawn: shrinking relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from random import Random
from typing import TypeVar

import numpy as np

from satura.rewrite.ops.draw_elements import FLOAT_SPECIALS, DrawnElements
from satura.rewrite.ops.next_floats import next_floats
from satura.rewrite.types.attributes import Attribute, Padding, Perm, Slices, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import (
    Dim,
    SymbolicDim,
    exact_quotient,
    known_at_least,
    product,
    symbol,
)
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType, TensorType

T = TypeVar("T")
Given = tuple[Attribute | None, ...]
Types = tuple[TensorType | None, ...]
Drawn = tuple[tuple[TensorType, ...], tuple[Attribute, ...]]

EXTENTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 6, 8)
MOST_NAMED_TAPS = 12
MOST_ELEMENTS = 300
SYMBOLS: tuple[Dim, ...] = (symbol("n"), symbol("m"))
SIZES: tuple[Dim, ...] = (*SYMBOLS, *SYMBOLS, 2 * symbol("n"), symbol("n") + 2, 3 * symbol("m"))
PADS: tuple[tuple[Dim, Dim], ...] = ((1, 1), (0, 1), (1, 0), (2, 1), (0, 2), (5, 0), (1, 3))
DILATIONS = (1, 1, 1, 2, 2, 3)
BORDERS = (0, 0, 0, 1, 1, 1, 2, 2, 4)
BESIDE = (1, 1, 1, 2, 0.5)  # a law may hold at a number that it names, and not beyond
NEXT_SCALARS = 0.3  # nor at the floats that come next to it: so many of those at it are such
MOST_NEXT = 4


class DrawError(Exception):
    """What was drawn so far cannot be completed; draw again."""


def reject_unless(condition: bool) -> None:
    """Raise `DrawError` where `condition` does not hold."""
    if not condition:
        raise DrawError


class Draw:
    """One draw: remembers what it drew, so that later parts can repeat earlier ones."""

    def __init__(
        self, random: Random, symbolic: bool = False, specials: float = 0.3,
        extents: tuple[Dim, ...] = EXTENTS,
    ) -> None:  # fmt: skip
        self.random = random
        self.specials = specials
        self.drawn = DrawnElements(random, specials)
        self.symbolic = symbolic
        self.extents = extents
        self.zeros = 0.25 if self.chance(0.08) else 0.01  # how likely an extent is 0
        self.named: tuple[int | float, ...] = ()  # numbers likely to expose a mistake
        self.near: tuple[int, ...] = ()  # extents likely to expose a mistake, drawn seldom
        self.functions: frozenset[str] = frozenset()  # elementwise ones to prefer
        self.most = max(MOST_ELEMENTS, *(each for each in extents if isinstance(each, int)), 0)
        self.starts: tuple[int, ...] = ()  # of slices, in the place of small ones
        self.reverses = False  # whether extents, or what slices read, are often in reverse order
        self.scalars: list[Scalar] = []
        self.slices: list[Slices] = []
        self.casts: list[DType] = []
        self.dtypes: tuple[DType, ...] = (DType.F32, *COMPUTED)  # f32 more often than others
        self.taken = frozenset(COMPUTED)  # what the operands of the op being drawn may have
        self.regrouped: dict[tuple[Dim, ...], tuple[Dim, ...]] = {}
        self.values = "any"  # of arguments; see check.arguments for others
        self.turn = 0  # the number of the instance that arguments are drawn for
        self.filled: dict[str, Array] = {}  # elements for all places of an argument

    def chance(self, probability: float) -> bool:
        """True with this probability; False for the least random number."""
        return self.random.random() >= 1 - probability

    def one_of(self, choices: Sequence[T]) -> T:
        reject_unless(bool(choices))
        return choices[self.random.randrange(len(choices))]

    def up_to(self, limit: int) -> int:
        """An int from 0 to `limit`."""
        return self.random.randint(0, limit)

    def dim(self) -> Dim:
        """An extent: 0 now and then, often 1, symbolic now and then where this draw is symbolic."""
        if self.symbolic and self.chance(0.4):
            return self.one_of(SIZES)
        if self.near and self.chance(0.25):
            return self.one_of(self.near)
        return 0 if self.chance(self.zeros) else self.one_of(self.extents)

    def shape(self, rank: int | None = None) -> tuple[Dim, ...]:
        """A shape of the given rank, else of rank 0 to 4, with not too many elements."""
        rank = self.one_of((0, 1, 2, 2, 3, 3, 3, 4, 4)) if rank is None else rank
        dims: list[Dim] = []
        for _ in range(rank):
            dim = self.dim()
            counted = [d for d in (*dims, dim) if isinstance(d, int) and d]
            dims.append(dim if prod(counted) <= self.most else 1)
        return tuple(dims)

    def dtype(self, choices: frozenset[DType] | None = None) -> DType:
        """A dtype among `choices` and those of this draw, where there are any."""
        wanted = [dtype for dtype in self.dtypes if choices is None or dtype in choices]
        return self.one_of(wanted or [dtype for dtype in DType if dtype in (choices or ())])

    def type(self) -> TensorType:
        return TensorType(self.dtype(), self.shape())

    def perm(self, rank: int) -> Perm:
        """A permutation; often the identity, or with axis 0 in place."""
        order = list(range(rank))
        kept = 1 if rank and self.chance(0.3) else 0
        if not self.chance(0.12):
            rest = order[kept:]
            self.random.shuffle(rest)
            order[kept:] = rest
        return Perm(tuple(order))

    def scalar(self, dtype: DType) -> Scalar:
        """One element, often one that was drawn before.

        Floats are neither very large nor very small: products of several would soon be 0.
        """
        before = [scalar for scalar in self.scalars if scalar.dtype is dtype]
        if before and self.chance(0.5):
            found = self.one_of(before)
            if dtype.is_float and float(found.array) == 0.0 and self.chance(0.5):
                return Scalar.of(-float(found.array), dtype)  # equal, and not the same
            return found
        value: float | int = self.drawn.element(dtype, moderate=False, specials=0.0)
        named = [each for each in self.named if _fits(each, dtype)]
        cast_to = [each for each in self.casts if each.is_integer and not each.is_narrow]
        if named and self.chance(0.4):
            value = self.one_of(named)
            if dtype.is_float:
                value = float(value) * self.one_of(BESIDE)
                if self.chance(NEXT_SCALARS):
                    steps = self.one_of(range(-MOST_NEXT, MOST_NEXT + 1))
                    with np.errstate(all="ignore"):
                        value = float(next_floats(np.array(value).astype(dtype.numpy), steps))
        elif dtype.is_float and cast_to and self.chance(0.3):
            least, most = self.one_of(cast_to).bounds
            value = self.one_of((least, least + 1, most - 1, most))
        elif dtype.is_float and self.random.random() < self.specials:
            value = self.one_of(FLOAT_SPECIALS)
        elif dtype.is_integer and self.random.random() < 0.9:
            value = self.one_of(self.drawn.special_elements(dtype, moderate=False))
        with np.errstate(all="ignore"):
            scalar = Scalar(dtype, np.array(value).astype(dtype.numpy).tobytes())
        self.scalars.append(scalar)
        return scalar

    def shrunk(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """A shape that broadcasts to `shape`: some, all, or all axes but the last with extent 1."""
        if self.chance(0.2):
            return (1,) * len(shape)
        if shape and self.chance(0.2):
            return (*((1,) * (len(shape) - 1)), shape[-1])
        return tuple(1 if self.chance(0.4) else dim for dim in shape)

    def regroup(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """Another shape of as many elements: axes split, merged and moved, units in and out."""
        if shape in self.regrouped and self.chance(0.6):
            return self.regrouped[shape]
        if self.reverses and self.chance(0.5):
            return shape[::-1]
        dims = list(shape)
        for _ in range(self.one_of((0, 1, 1, 1, 2, 2, 3))):
            dims = self._regrouped_once(dims)
        if self.symbolic and self.chance(0.3):  # the same shape, but for some sizes
            sizes = [dim for dim in shape if isinstance(dim, SymbolicDim)]
            self.random.shuffle(sizes)
            dims = [sizes.pop() if isinstance(dim, SymbolicDim) else dim for dim in shape]
        if len(dims) > 2 and self.chance(0.08):
            dims = [dims[0], product(dims[1:])]
        if 0 in dims and self.chance(0.5):  # an empty tensor may have any other extents
            dims = [0, *(self.dim() for _ in dims[1:])]
            self.random.shuffle(dims)
        result = tuple(dims)
        self.regrouped[shape] = result
        return result

    def _regrouped_once(self, dims: list[Dim]) -> list[Dim]:
        at = self.up_to(len(dims))
        action = self.up_to(4)
        if action == 0 and len(dims) < 5:
            return [*dims[:at], 1, *dims[at:]]
        if action == 1 and at < len(dims) and dims[at] == 1:
            return [*dims[:at], *dims[at + 1 :]]
        if action == 2 and at + 1 < len(dims):
            return [*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]]
        if action == 3 and len(dims) < 5:
            return self._split(dims, range(len(dims)))
        if action == 4 and len(dims) > 1:  # [4, 6] as [12, 2]: neither has all of their ends
            at = min(at, len(dims) - 2)
            return self._split([*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]], (at,))
        return dims

    def _split(self, dims: list[Dim], axes: Iterable[int]) -> list[Dim]:
        """`dims` with one of these axes split in two, if one can be."""
        pairs = [(axis, inner) for axis in axes for inner in (2, 3)]
        splits = [(axis, exact_quotient(dims[axis], inner), inner) for axis, inner in pairs]
        found = [(axis, outer, inner) for axis, outer, inner in splits if outer not in (None, 1)]
        if not found:
            return dims
        at, outer, inner = self.one_of(found)
        assert outer is not None
        parts = [outer, inner] if self.chance(0.5) else [inner, outer]
        return [*dims[:at], *parts, *dims[at + 1 :]]

    def padding(self, shape: tuple[Dim, ...]) -> Padding:
        """A padding whose result may have `shape`."""
        rank = len(shape)
        if self.chance(0.12):
            return Padding((0,) * rank, (0,) * rank)
        inner_only = self.chance(0.4)
        lo: list[Dim] = [0] * rank
        hi: list[Dim] = [0] * rank
        for axis, dim in enumerate(shape):
            if (inner_only and axis in (0, rank - 1)) or self.chance(0.3):
                continue
            amounts: tuple[Dim, Dim] = self.one_of(PADS)
            if isinstance(dim, SymbolicDim) and self.chance(0.5):
                amounts = self.one_of(((SYMBOLS[0], 0), (0, SYMBOLS[0]), (0, SYMBOLS[1])))
            if known_at_least(dim - amounts[0] - amounts[1], 0):
                lo[axis], hi[axis] = amounts
        return Padding(tuple(lo), tuple(hi))

    def window(self, rank: int, dtype: DType) -> Window:
        """A window over `rank` axes, trivial along some."""
        axes = [self._window_axis() for _ in range(rank)]
        if not self.chance(0.4):
            axes = [(size, stride, dilation, 0, 0) for size, stride, dilation, _, _ in axes]
        columns = [tuple(axis[part] for axis in axes) for part in range(5)]
        fill = Scalar.of(0, dtype) if self.chance(0.2) else self.scalar(dtype)
        return Window(columns[0], columns[1], columns[2], columns[3], columns[4], fill)

    def _window_axis(self) -> tuple[int, int, int, int, int]:
        """Size, stride, dilation and border."""
        near = [each for each in self.near if each <= MOST_NAMED_TAPS]
        stride, dilation = self.one_of((1, 1, 1, 2, 2, 3, *near)), self.one_of(DILATIONS)
        if self.chance(0.35):
            lo, hi = self.one_of(((0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 1)))
            return 1, stride, dilation, lo, hi
        return (
            self.one_of((2, 2, 2, 3, 3, 4, *near)),
            stride,
            dilation,
            self.one_of(BORDERS),
            self.one_of(BORDERS),
        )

    def array(self, type_: TensorType, moderate: bool) -> Array:
        """Elements of a concrete type; `moderate`: finite floats and small ints."""
        return self.drawn.array(type_, moderate)


def _fits(number: int | float, dtype: DType) -> bool:
    """Whether the dtype has this number, or for floats one near it."""
    if not dtype.is_integer:
        return dtype.is_float
    return number == number // 1 and dtype.bounds[0] <= number <= dtype.bounds[1]


def is_concrete(shape: Sequence[Dim]) -> bool:
    """Whether no dim is symbolic."""
    return not any(isinstance(dim, SymbolicDim) for dim in shape)
