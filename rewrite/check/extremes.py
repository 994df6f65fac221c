"""What draws leave out: high ranks, extents large, equal or symbolic, rare dtypes and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, permutations, product
from math import prod
from random import Random
from typing import TypeGuard

import ml_dtypes
import numpy as np

from satura.rewrite.check.compare import is_finite
from satura.rewrite.check.instances import (
    Instance,
    Wish,
    can_be_narrow,
    draw_instance,
    fires,
    high_ranks_of,
    like,
    ops_of,
)
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import Application, subterms
from satura.rewrite.ops.draw import SYMBOLS
from satura.rewrite.ops.reductions import SELECTIONS
from satura.rewrite.types.attributes import (
    Axes,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import COMPUTED, NARROW, DType

DRAWS = 30  # at each of these ranks
SQUARE_DRAWS = 600  # of tensors of which all extents are equal, or all symbolic
SQUARE_RANKS = (2, 3, 4, 4, 5)
SQUARE_EXTENTS = ((2,), (3,), (2,), (3,), (2,), SYMBOLS)
MANY = 100  # elements; and as many firings have their turn
SMALL_DRAWS = 300
SMALL_EXTENTS: tuple[tuple[Dim, ...], ...] = ((0, 1, 2), (0, 1, 2), (1, 2, 6))
FEW_EXTENTS: tuple[tuple[Dim, ...], ...] = ((1, 2), (2, 3), (1, 2, 3, 4))
CHOOSING = {"reduce", "arg_reduce", "pool"}
GIANT_EXTENTS = ((1 << 24) + 1, 1 << 31)  # of no tensor: the product of two is an i64
OF_EXTENTS = {"extent", "unary", "binary", "select", "cast"}
WINDOWED = {"pool", "conv"}
SUMMING = {"reduce", "pool", "matmul", "conv"}
SUM_DRAWS = 400
SUM_WANTED = 80  # that fire
SUM_EXTENTS: tuple[Dim, ...] = (1, 2, 5, 6, 7, 9)
SUM_DTYPES = (DType.F32, DType.F32, DType.F16)
MOST_SUMMED = 20_000  # elements
MOVING = (Axes, Perm, Slices, Shape, Padding)  # attributes that are drawn afresh for these extents
WINDOW_DRAWS = 120
LONG_TAPS = (8, 11, 12, 12)  # two of these are a window of more elements than i8 can count
REVERSED_DRAWS = 200
REVERSED_EXTENTS: tuple[Dim, ...] = (1, 2, 2, 3, 4, 4)
NARROW_DRAWS = 3  # for each dtype that computes, and each that does not
REMADE = 30  # firings with other numbers
MOST_ZEROS = 6  # pairs of these in one firing
# Powers of ten far from 1 whose square is still finite, and whose inverse is not subnormal.
EXPONENTS = {DType.F64: 150, DType.F32: 18, DType.BF16: 18, DType.F16: 2}


def of_high_rank(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches at ranks that other draws leave out; none where the left side cannot have them."""
    random = Random(seed)
    for rank in high_ranks_of(direction):
        for _ in range(DRAWS * scale):
            instance = draw_instance(direction, random, Wish(rank))
            if instance is not None:
                yield instance


def of_equal_extents(direction: Direction, seed: int, draws: int) -> Iterator[Instance]:
    """Matches with equal extents, so that swapping axes keeps the shape; some without integers."""
    random = Random(seed)
    for _ in range(draws):
        rank, extents = random.choice(SQUARE_RANKS), random.choice(SQUARE_EXTENTS)
        instance = draw_instance(direction, random, Wish(rank, extents))
        if instance is not None:
            yield instance


def of_choices(firings: Sequence[Instance], scale: int) -> Iterator[Instance]:
    """Firings that choose among floats, or add them up: of equal ones, or of few."""
    for instance in islice(firings, MANY * scale):
        if ops_of(instance.direction) & CHOOSING and _has_floats(instance):
            yield instance


def element_count(instance: Instance) -> int:
    """How many the largest tensor of the left side has; unknown extents count as 1."""
    shapes = (node.type.shape for node in instance.left_side.nodes)
    return max(prod(dim for dim in shape if isinstance(dim, int)) for shape in shapes)


def of_small_extents(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int, *, empty: bool = True
) -> Iterator[Instance]:
    """Matches like those that fired, of few elements, where ops move any of them.

    They may be `empty`; others are like those that have floats, and their constants are finite.
    """
    random = Random(seed)
    chosen = firings if empty else [each for each in firings if _has_floats(each)]
    choices = SMALL_EXTENTS if empty else FEW_EXTENTS
    is_moving = ops_of(direction) - OF_EXTENTS
    for number in range(SMALL_DRAWS * scale if chosen and is_moving else 0):
        extents = choices[number % len(choices)]
        wish = like(chosen[number % len(chosen)], random, extents)
        instance = draw_instance(direction, random, wish)
        if instance is not None and (empty or _has_finite_constants(instance)):
            yield instance


def of_long_windows(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches whose windows have 8 elements and more along an axis."""
    random = Random(seed)
    for number in range(WINDOW_DRAWS * scale if ops_of(direction) & WINDOWED else 0):
        wish = Wish(None, (1, 2, 3), dtypes_of_firing(firings, number), near=LONG_TAPS)
        instance = draw_instance(direction, random, wish)
        if instance is not None:
            yield instance


def dtypes_of_firing(firings: Sequence[Instance], number: int) -> tuple[DType, ...]:
    """The dtypes of the tensors of one of the firings: a condition may need them."""
    types = firings[number % len(firings)].types if firings else {}
    return tuple(dict.fromkeys(type_.dtype for type_ in types.values()))


def of_long_sums(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches that add or multiply several floats, often those of firings in another order."""
    random = Random(seed)
    chosen = [each for each in firings if _rounds(each)]
    left = SUM_WANTED * scale
    for number in range(SUM_DRAWS * scale if chosen and ops_of(direction) & SUMMING else 0):
        wish = like(chosen[number % len(chosen)], random, SUM_EXTENTS)
        dtypes = wish.dtypes if number % 3 else (random.choice(SUM_DTYPES),)
        given = tuple(each for each in wish.given if not isinstance(each[1], MOVING))
        wish = replace(wish, dtypes=dtypes, reverses=True, given=given)
        instance = draw_instance(direction, random, wish)
        if instance is not None and _rounds(instance) and element_count(instance) <= MOST_SUMMED:
            left -= fires(instance)
            yield instance
        if not left:
            return


def _rounds(instance: Instance) -> bool:
    """Whether it adds or multiplies floats along some axis, as far as its attributes say."""
    values = [value for _, value in instance.values]
    names = [value.name for value in values if isinstance(value, ReduceFn)]
    selects = bool(names) and all(name in SELECTIONS for name in names)
    return _has_floats(instance) and Axes(()) not in values and not selects


def of_reversed_shapes(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches where [2, 3, 4] often becomes [4, 3, 2]: one extent stays, and its elements move."""
    random = Random(seed)
    for _ in range(REVERSED_DRAWS * scale if "reshape" in ops_of(direction) else 0):
        wish = Wish(random.choice((3, 3, 4)), REVERSED_EXTENTS, reverses=True)
        instance = draw_instance(direction, random, wish)
        if instance is not None:
            yield instance


def of_narrow_dtypes(direction: Direction, seed: int, scale: int) -> Iterator[Instance]:
    """Matches that move, or cast from or by way of, a dtype that nothing computes with."""
    random = Random(seed)
    is_free = any(issubclass(sort, DType) for sort in direction.variables.values())
    casts = "cast" in ops_of(direction)
    moved = list(product(NARROW)) * NARROW_DRAWS if can_be_narrow(direction) else []
    dtypes = list(product(NARROW, COMPUTED)) if casts else moved
    for each in dtypes * (NARROW_DRAWS * scale if is_free else scale):
        instance = draw_instance(direction, random, Wish(dtypes=each))
        if instance is None:
            continue
        named = [value for _, value in instance.values if isinstance(value, DType)]
        if any(dtype.is_narrow for dtype in (*named, *(t.dtype for t in instance.types.values()))):
            yield instance


def with_other_zeros(instances: Iterable[Instance], scale: int) -> Iterator[Instance]:
    """Firings with zeros among their floats, each of these with the other sign."""
    with_zeros = (each for each in instances if any(_is_zero(value) for _, value in each.values))
    for instance in islice(with_zeros, REMADE * scale):
        values = tuple(
            (name, Scalar.of(-float(value.array), value.dtype) if _is_zero(value) else value)
            for name, value in instance.values
        )
        yield replace(instance, values=values)


def with_opposite_zeros(instances: Iterable[Instance], scale: int) -> Iterator[Instance]:
    """Firings with two floats of one type or more, of which one is 0.0 and one -0.0: these are
    equal, and not the same."""
    pairs = ((each, names) for each in instances if (names := _pairs_of_floats(each)))
    for instance, names in islice(pairs, REMADE * scale):
        for chosen in islice(names, MOST_ZEROS):
            zeros = dict(zip(chosen, (0.0, -0.0), strict=True))
            values = tuple(
                (
                    name,
                    Scalar.of(zeros[name], value.dtype)
                    if name in zeros and _is_float(value)
                    else value,
                )
                for name, value in instance.values
            )
            yield replace(instance, values=values)


def _pairs_of_floats(instance: Instance) -> list[tuple[str, str]]:
    """The names of two floats of one type, in each order."""
    floats = [(name, value.dtype) for name, value in instance.values if _is_float(value)]
    return [(a, b) for (a, x), (b, y) in permutations(floats, 2) if x is y]


def with_extreme_numbers(
    instances: Iterable[Instance], exact: bool, scale: int
) -> Iterator[Instance]:
    """The first `instances` with floats as attributes, once made huge and once made tiny.

    Those of an `exact` law become in turn the last powers of two, the last numbers, and those with
    reciprocals. Floats of all of them become infinite: that shows only where other things are rare,
    too.
    """
    with_floats = [each for each in instances if any(_is_float(value) for _, value in each.values)]
    for number, instance in enumerate(with_floats):
        yield _with_floats(instance, _infinite, 1 - number % 2 * 2)
    for number, instance in enumerate(with_floats[: REMADE * scale]):
        extreme = EXTREMES[number % len(EXTREMES) if exact else 0]
        for sign in (1, -1):
            yield _with_floats(instance, extreme, sign)


def _with_floats(
    instance: Instance, extreme: Callable[[Scalar, int], Scalar], sign: int
) -> Instance:
    """The instance with other floats among its attributes."""
    values = tuple(
        (name, extreme(value, sign) if _is_float(value) else value)
        for name, value in instance.values
    )
    return replace(instance, values=values)


def with_giant_extents(
    direction: Direction, instances: Iterable[Instance], scale: int
) -> Iterator[Instance]:
    """Instances of a law on extents alone, of which one is too large for any tensor."""
    terms = [each for side in (direction.left, direction.right) for each in subterms(side)]
    names = {term.op.name for term in terms if isinstance(term, Application)}
    if "extent" not in names or not names <= OF_EXTENTS:
        return
    for number, instance in enumerate(islice(instances, REMADE * scale)):
        shapes = [name for name, value in instance.values if isinstance(value, Shape)]
        if not shapes:
            return
        giant = Shape((GIANT_EXTENTS[number // 2 % 2],))
        chosen = shapes[number % len(shapes)]
        values = tuple((name, giant if name == chosen else old) for name, old in instance.values)
        yield replace(instance, values=values)


def _has_floats(instance: Instance) -> bool:
    return any(type_.dtype.is_float for type_ in instance.types.values())


def _has_finite_constants(instance: Instance) -> bool:
    nodes = instance.left_side.nodes
    return all(is_finite(node.constant.array) for node in nodes if node.op.name == "constant")


def _is_float(value: object) -> TypeGuard[Scalar]:
    return isinstance(value, Scalar) and value.dtype.is_float


def _is_zero(value: object) -> TypeGuard[Scalar]:
    return _is_float(value) and float(value.array) == 0.0


def _extreme_number(value: Scalar, sign: int) -> Scalar:
    """A number with the sign of `value` that is huge, or tiny where `sign` is negative."""
    return _like(value, 10.0 ** (sign * EXPONENTS[value.dtype]))


def _infinite(value: Scalar, sign: int) -> Scalar:
    """An infinity of the sign of `value`, or of the other one where `sign` is negative."""
    return _like(value, sign * np.inf)


def _last_power(value: Scalar, sign: int) -> Scalar:
    """The largest power of two, or the smallest, with the sign of `value`."""
    info = ml_dtypes.finfo(value.dtype.numpy)
    return _like(value, 2.0 ** (info.maxexp - 1) if sign > 0 else float(info.smallest_subnormal))


def _last_number(value: Scalar, sign: int) -> Scalar:
    """The largest finite number, or the smallest, with the sign of `value`."""
    info = ml_dtypes.finfo(value.dtype.numpy)
    return _like(value, float(info.max if sign > 0 else info.smallest_subnormal))


def _last_reciprocal(value: Scalar, sign: int) -> Scalar:
    """The smallest power of two that has a finite reciprocal, or the next, which has none."""
    info = ml_dtypes.finfo(value.dtype.numpy)
    return _like(value, 2.0 ** -(info.maxexp - 1 if sign > 0 else info.maxexp))


EXTREMES = (_extreme_number, _last_power, _last_number, _last_reciprocal)


def _like(value: Scalar, size: float) -> Scalar:
    return Scalar.of(-size if float(value.array) < 0 else size, value.dtype)
