"""Firings of which one attribute is moved by one step, or made like another one of its sort.

Conditions are often wrong by one field: two windows that must be the same but for the size, a
border on the other side, one tap too many, an infinite scale beside a border of 0. Fresh draws
seldom come so near to what fires: nor to a number near which a condition holds, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from satura.rewrite.check.instances import (
    SHAPED,
    Instance,
    Wish,
    draw_instance,
    fires,
    is_well_typed,
)
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.ops.draw import MOST_NEXT
from satura.rewrite.ops.draw_elements import FLOAT_SPECIALS
from satura.rewrite.ops.next_floats import next_floats
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    Count,
    Groups,
    Padding,
    Perm,
    Slices,
    Window,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import Array, TensorType

Steps = Mapping[type, Callable[[Attribute, Random], Attribute]]

DRAWS = 1500
WANTED = 150  # that fire
COPIED = 0.4  # where there is another attribute of that sort
UNMOVED = 0.3  # of those that are copied
SECOND_STEP = 0.4
ALL_AXES = 0.25  # of steps: conditions often ask for the same along all axes
SPECIAL = 0.75  # of the floats that take the place of others
NEAR_PARTS = (3, 12)  # powers of ten: a float is changed by so small a part of it


def neighbours(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches like the firings but for one or two steps; their extents may have moved, too.

    First what lays out elements moves, then floats become special, those of neighbours included.
    """
    random = Random(seed)
    found = list(_walk(direction, firings, _LAYOUTS, random, scale))
    yield from found
    yield from _walk(direction, [*firings, *found], _FLOATS, random, scale)


def stepped(value: Attribute, random: Random) -> Attribute:
    """An attribute by which elements are laid out, moved by one step; others stay."""
    return _LAYOUTS[type(value)](value, random) if _is_movable(value, _LAYOUTS) else value


def _walk(
    direction: Direction, firings: Sequence[Instance], steps: Steps, random: Random, scale: int
) -> Iterator[Instance]:
    """Neighbours that fire, and neighbours of these: many steps lead away from what was drawn."""
    found = [each for each in firings if _movable(each, steps)]
    known = {(), *(_movable(each, steps) for each in found)}
    moving = [each for each in found if not pads_nothing(each)]
    first = len(found)
    for _ in range(DRAWS * scale if found else 0):
        if len(found) - first == WANTED * scale:
            return
        pool = random.choice((found, found[first:], moving)) or found
        instance = _neighbour(random.choice(pool), steps, random)
        if instance is None or _movable(instance, steps) in known or not fires(instance):
            continue
        known.add(_movable(instance, steps))
        found.append(instance)
        moving += [] if pads_nothing(instance) else [instance]
        yield instance


def pads_nothing(instance: Instance) -> bool:
    """Whether a padding adds nothing: many firings have none that does."""
    return any(isinstance(value, Padding) and value.is_zero for _, value in instance.values)


def _neighbour(instance: Instance, steps: Steps, random: Random) -> Instance | None:
    """An instance with one or two steps; None where it is ill typed.

    The types of the variables stay, or the type of the left side, or only its rank and the dtypes.
    """
    stays = random.choice(("variables", "root", "rank"))
    moved = _with_steps(instance, steps, random)
    root = type_of(instance.direction.left, instance.bindings)
    if stays == "variables":
        values = tuple((name, moved.get(name, value)) for name, value in instance.values)
        beside = replace(instance, values=values)
        return beside if is_well_typed(beside) else None
    if stays == "rank":
        root = root.with_shape(_with_step(root.shape, random))
        moved = {name: each for name, each in moved.items() if not isinstance(each, SHAPED)}
    dtypes = dict.fromkeys((root.dtype, *(type_.dtype for type_ in instance.types.values())))
    wish = Wish(root.rank, dtypes=tuple(dtypes), given=tuple(moved.items()), root=root)
    return draw_instance(instance.direction, random, wish)


def _with_steps(instance: Instance, steps: Steps, random: Random) -> dict[str, Attribute]:
    """All attributes, of which one or two have moved: often two of a sort, which have to agree."""
    values: dict[str, Attribute] = {
        name: value for name, value in instance.values if not isinstance(value, TensorType)
    }
    movable = [name for name, value in values.items() if _is_movable(value, steps)]
    name = random.choice(movable)
    values[name] = _moved(name, values, steps, random)
    if random.random() < SECOND_STEP:
        alike = [each for each in movable if type(values[each]) is type(values[name])]
        name = random.choice(alike if random.random() < 0.5 else movable)
        values[name] = _moved(name, values, steps, random)
    return values


def _moved(name: str, values: Mapping[str, Attribute], steps: Steps, random: Random) -> Attribute:
    """Another value for the attribute of that name."""
    value = values[name]
    others = [
        each
        for key, each in values.items()
        if key != name and type(each) is type(value) and _is_movable(each, steps)
    ]
    if others and random.random() < COPIED:
        value = random.choice(others)
        if random.random() < UNMOVED:
            return value
    return steps[type(value)](value, random)


def _movable(instance: Instance, steps: Steps) -> tuple[Attribute, ...]:
    """The attributes that have neighbours."""
    values = (value for _, value in instance.values if not isinstance(value, TensorType))
    return tuple(value for value in values if _is_movable(value, steps))


def _is_movable(value: object, steps: Steps) -> bool:
    """Whether there is another value of its sort and rank."""
    is_bare = isinstance(value, Window) and not value.rank
    is_integer = isinstance(value, Scalar) and not value.dtype.is_float
    return type(value) in steps and not is_bare and not is_integer and value not in _SINGLE


def _with_step(dims: Sequence[Dim], random: Random, least: int = 0) -> tuple[Dim, ...]:
    """The dims with one of them, or all, larger or smaller by 1; those that it cannot change
    stay."""
    moved = list(dims)
    if not moved:
        return ()
    step = random.choice((-1, 1))
    places = range(len(moved)) if random.random() < ALL_AXES else [random.randrange(len(moved))]
    for at in places:
        dim = moved[at]
        if not isinstance(dim, int) or dim + step >= least:
            moved[at] = dim + step
    return tuple(moved)


def _numbers(numbers: tuple[int, ...], random: Random, least: int) -> tuple[int, ...]:
    return tuple(dim for dim in _with_step(numbers, random, least) if isinstance(dim, int))


def _window(value: Attribute, random: Random) -> Attribute:
    """A field of one axis by a step, or the border of an axis from one side to the other."""
    assert isinstance(value, Window)
    match random.randrange(6):
        case 0:
            return replace(value, sizes=_numbers(value.sizes, random, 1))
        case 1:
            return replace(value, strides=_numbers(value.strides, random, 1))
        case 2:
            return replace(value, dilations=_numbers(value.dilations, random, 1))
        case 3:
            return replace(value, lo=_numbers(value.lo, random, 0))
        case 4:
            return replace(value, hi=_numbers(value.hi, random, 0))
        case _:
            return replace(value, lo=value.hi, hi=value.lo)


def _padding(value: Attribute, random: Random) -> Attribute:
    """The amount at one end of an axis by a step, or both ends changed with each other."""
    assert isinstance(value, Padding)
    match random.randrange(3):
        case 0:
            return Padding(_with_step(value.lo, random), value.hi)
        case 1:
            return Padding(value.lo, _with_step(value.hi, random))
        case _:
            return Padding(value.hi, value.lo)


def _slices(value: Attribute, random: Random) -> Attribute:
    """A start or a step by one, or the same elements of an axis in reverse."""
    assert isinstance(value, Slices)
    match random.randrange(5):
        case 0 | 1:
            return replace(value, starts=_with_step(value.starts, random))
        case 2 | 3:
            return replace(value, steps=_numbers(value.steps, random, 1))
        case _:
            at = random.randrange(len(value.steps))
            starts, steps = list(value.starts), list(value.steps)
            starts[at] += (value.sizes[at] - 1) * steps[at]
            steps[at] = -steps[at]
            return replace(value, starts=tuple(starts), steps=tuple(steps))


def _perm(value: Attribute, random: Random) -> Attribute:
    """Two axes changed with each other."""
    assert isinstance(value, Perm)
    order = list(value.order)
    if len(order) < 2:
        return value
    first, second = random.sample(range(len(order)), 2)
    order[first], order[second] = order[second], order[first]
    return Perm(tuple(order))


def _axes(value: Attribute, random: Random) -> Attribute:
    """One axis fewer."""
    assert isinstance(value, Axes)
    if not value.indices:
        return value
    dropped = random.randrange(len(value.indices))
    return Axes(value.indices[:dropped] + value.indices[dropped + 1 :])


def _axis(value: Attribute, random: Random) -> Attribute:
    assert isinstance(value, Axis)
    return Axis(*_numbers((value.index,), random, 0))


def _count(value: Attribute, random: Random) -> Attribute:
    assert isinstance(value, Count)
    return Count(*_numbers((value.value,), random, 0))


def _float(value: Attribute, random: Random) -> Attribute:
    """A special float, or one that is nearly the same: a condition may hold near a number, too."""
    assert isinstance(value, Scalar)
    if random.random() < SPECIAL:
        return Scalar.of(random.choice(FLOAT_SPECIALS), value.dtype)
    return Scalar.of(beside(value.array, random), value.dtype)


def beside(number: Array, random: Random) -> Array:
    """A float of the same type that is a few floats away, or a small part of it; or tiny, for 0."""
    if random.random() < 0.5:
        return next_floats(number, random.choice((-1, 1)) * random.randint(1, MOST_NEXT))
    part = random.choice((-1, 1)) * 10.0 ** -random.randint(*NEAR_PARTS)
    wide = float(number)
    with np.errstate(all="ignore"):
        return np.asarray(wide + part * (wide or 1.0)).astype(number.dtype)


def _groups(value: Attribute, random: Random) -> Attribute:
    assert isinstance(value, Groups)
    return Groups(random.choice((value.count + 1, 2 * value.count, max(1, value.count // 2))))


_LAYOUTS: Steps = {
    Window: _window,
    Padding: _padding,
    Slices: _slices,
    Perm: _perm,
    Axes: _axes,
    Axis: _axis,
    Count: _count,
    Groups: _groups,
}
_FLOATS: Steps = {Scalar: _float}
_SINGLE = (Perm(()), Perm((0,)), Axes(()), Padding((), ()), Slices((), (), ()))
