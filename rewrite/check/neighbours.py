"""Firings of which one attribute is moved by one step, or made like another one of its sort.

Conditions are often wrong by one field: two windows that must be the same but for the size, a
border on the other side, one tap too many. Fresh draws seldom come so near to what fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

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
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import TensorType

DRAWS = 1000
WANTED = 150  # that fire
LATE = 0.5  # share of those that are neighbours of neighbours
COPIED = 0.4  # where there is another attribute of that sort
UNMOVED = 0.3  # of those that are copied
SECOND_STEP = 0.4


def neighbours(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Matches like the firings but for one or two steps; their extents may have moved, too.

    Those that fire have neighbours in turn, so that many steps lead away from what was drawn.
    """
    random = Random(seed)
    found = [each for each in firings if _movable(each)]
    known = {(), *map(_movable, found)}
    first = len(found)
    for _ in range(DRAWS * scale if found else 0):
        if len(found) - first == WANTED * scale:
            return
        is_late = len(found) > first and random.random() < LATE
        instance = _neighbour(random.choice(found[first:] if is_late else found), random)
        if instance is None or _movable(instance) in known or not fires(instance):
            continue
        known.add(_movable(instance))
        found.append(instance)
        yield instance


def _neighbour(instance: Instance, random: Random) -> Instance | None:
    """An instance with one or two steps; None where it is ill typed.

    The types of the variables stay, or the type of the left side, or only its rank and the dtypes.
    """
    stays = random.choice(("variables", "root", "rank"))
    moved = _with_steps(instance, random)
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


def _with_steps(instance: Instance, random: Random) -> dict[str, Attribute]:
    """All attributes, of which one or two have moved: often two of a sort, which have to agree."""
    values: dict[str, Attribute] = {
        name: value for name, value in instance.values if not isinstance(value, TensorType)
    }
    movable = [name for name, value in values.items() if _is_movable(value)]
    name = random.choice(movable)
    values[name] = _moved(name, values, random)
    if random.random() < SECOND_STEP:
        alike = [each for each in movable if type(values[each]) is type(values[name])]
        name = random.choice(alike if random.random() < 0.5 else movable)
        values[name] = _moved(name, values, random)
    return values


def _moved(name: str, values: Mapping[str, Attribute], random: Random) -> Attribute:
    """Another value for the attribute of that name."""
    value = values[name]
    others = [each for key, each in values.items() if key != name and type(each) is type(value)]
    if others and random.random() < COPIED:
        value = random.choice(others)
        if random.random() < UNMOVED:
            return value
    return _STEPS[type(value)](value, random)


def _movable(instance: Instance) -> tuple[Attribute, ...]:
    """The attributes that have neighbours."""
    values = (value for _, value in instance.values if not isinstance(value, TensorType))
    return tuple(filter(_is_movable, values))


def _is_movable(value: object) -> bool:
    """Whether there is another value of its sort and rank."""
    is_bare = isinstance(value, Window) and not value.rank
    return type(value) in _STEPS and not is_bare and value not in _SINGLE


def _with_step(dims: Sequence[Dim], random: Random, least: int = 0) -> tuple[Dim, ...]:
    """The dims with one of them larger or smaller by 1; those that it cannot change stay."""
    moved = list(dims)
    if moved:
        at = random.randrange(len(moved))
        step = random.choice((-1, 1))
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
    assert isinstance(value, Slices)
    if random.random() < 0.5:
        return replace(value, starts=_with_step(value.starts, random))
    return replace(value, steps=_numbers(value.steps, random, 1))


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


def _groups(value: Attribute, random: Random) -> Attribute:
    assert isinstance(value, Groups)
    return Groups(random.choice((value.count + 1, 2 * value.count, max(1, value.count // 2))))


_STEPS: dict[type, Callable[[Attribute, Random], Attribute]] = {
    Window: _window,
    Padding: _padding,
    Slices: _slices,
    Perm: _perm,
    Axes: _axes,
    Axis: _axis,
    Count: _count,
    Groups: _groups,
}
_SINGLE = (Perm(()), Perm((0,)), Axes(()), Padding((), ()), Slices((), (), ()))
