"""Matches that meet the comparisons inside the functions which conditions call.

A function such as `w.sizes == (n,) and w.lo == (n - 1,)` holds for few of the windows that are
drawn, and `x.shape[0] >= 1000` for no tensor. Comparisons are written down while a function runs:
a field that is compared with something is given that value, until all conditions hold. Fuzzers do
the same with what a program reads and compares: C. Aschermann et al., REDQUEEN, NDSS 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import fields, is_dataclass, replace
from random import Random

from satura.rewrite.check.comparisons import Comparing, Pair
from satura.rewrite.check.disagreement import padded_size
from satura.rewrite.check.every_choice import FUNCTIONS
from satura.rewrite.check.from_operands import draw_from_operands
from satura.rewrite.check.instances import Instance, Wish, draw_instance, is_trivial, is_well_typed
from satura.rewrite.check.neighbours import stepped
from satura.rewrite.check.retyped import converted
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.terms import type_of
from satura.rewrite.ops.registry import size_of
from satura.rewrite.types.attributes import Attribute, Padding, Shape, Slices, Window
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import SymbolicDim
from satura.rewrite.types.tensor_type import COMPUTED, DType, TensorType

BASES = 2400  # matches that are changed
LIKE_OTHERS = 0.7  # of these, once there are some
OTHER_DTYPE = 0.3
EXTENTS = (1, 9)
AS_A_WHOLE = 0.7  # of changes, where a field as a whole is one side
FITTING_DRAWS = 3  # of types for attributes that were solved
ROUNDS = 15  # changes of one match
MOST_ASKED = 16_000  # times that conditions are asked in all
MOST_NUMBER = 1 << 12  # of elements, places, steps: more is no match that can be computed often
MOST_WORK = 1 << 22  # operations and elements of a left side, for the same reason
OF_DIMS = (TensorType, Shape, Slices, Padding)  # whose extents may be open


def solved_within(direction: Direction, random: Random) -> Iterator[Instance]:
    """Well-typed matches for which the conditions hold, as far as equations decide that; many are
    like earlier ones with another extent or dtype, to which the other values are fitted anew."""
    comparing = Comparing(direction)
    found: list[Instance] = []
    for number in range(BASES if comparing.has_functions else 0):
        if comparing.times > MOST_ASKED:
            return
        if found and random.random() < LIKE_OTHERS:
            name, like = random.choice([*direction.variables]), random.choice(found)
            base = _moved(like, name, random)
        else:
            name, drawn = "", draw_from_operands if number % 2 else draw_instance
            fresh = drawn(direction, random)
            if fresh is None:
                continue
            base = like = fresh
        if is_trivial(base):
            continue
        instance = _changed_until_it_holds(base, name, comparing, random)
        if instance is not None and not is_well_typed(instance):
            instance = _of_other_types(instance, like, comparing, random)
        if instance is not None and not is_trivial(instance) and says_enough(instance):
            found.append(instance)
            yield instance


def says_enough(instance: Instance) -> bool:
    """Whether the left side has elements to compare, and can be computed often."""
    nodes = instance.left_side.nodes
    work = 0.0
    for node in nodes:
        operands = tuple(nodes[operand].type for operand in node.operands)
        work += padded_size(node, operands) + node.op.flops(operands, node.attributes, node.type)
    return size_of(nodes[-1].type) > 0 and work <= MOST_WORK


def _of_other_types(
    instance: Instance, like: Instance, comparing: Comparing, random: Random
) -> Instance | None:
    """A match with all attributes of an instance, of types that these fit and for which conditions
    hold; its result has the rank of that of another match."""
    given = [(name, each) for name, each in instance.values if not isinstance(each, TensorType)]
    rank = type_of(like.direction.left, like.bindings).rank
    dtypes = tuple(dict.fromkeys(each.dtype for each in instance.types.values()))
    wish = Wish(rank, dtypes=dtypes, given=tuple(given))
    for _ in range(FITTING_DRAWS):
        try:
            drawn = draw_instance(instance.direction, random, wish)
        except Exception:  # an equation may ask for what no op takes
            return None
        if drawn is not None and not comparing.asked(drawn.bindings).read:
            return drawn
    return None


def _moved(instance: Instance, name: str, random: Random) -> Instance:
    """The instance with another extent of the tensor of that name, or another attribute; and now
    and then with another dtype in the place of one."""
    dtypes = [*dict.fromkeys(type_.dtype for type_ in instance.types.values())]
    changes = dtypes and random.random() < OTHER_DTYPE
    old, new = (random.choice(dtypes), random.choice(COMPUTED)) if changes else (None, None)
    values: list[tuple[str, TensorType | Attribute]] = []
    for key, value in instance.values:
        if key == name and isinstance(value, TensorType):
            shape = list(value.shape)
            if shape:
                shape[random.randrange(len(shape))] = random.randint(*EXTENTS)
            value = value.with_shape(tuple(shape))
        elif key == name and not isinstance(value, TensorType):
            value = stepped(value, random)
        if old is not None and new is not None:
            value = _retyped(value, old, new)
        values.append((key, value))
    return replace(instance, values=tuple(values))


def _retyped(value: TensorType | Attribute, old: DType, new: DType) -> TensorType | Attribute:
    """A tensor, number or border of a dtype, of another one."""
    if isinstance(value, TensorType) and value.dtype is old:
        return value.with_dtype(new)
    if isinstance(value, Scalar) and value.dtype is old:
        return converted(value, new)
    if isinstance(value, Window) and value.fill.dtype is old:
        return replace(value, fill=converted(value.fill, new))
    return value


def _changed_until_it_holds(
    instance: Instance, kept: str, comparing: Comparing, random: Random
) -> Instance | None:
    """The instance with fields changed one after the other, but for the variable that is `kept`;
    None where conditions still fail."""
    answer = comparing.asked(instance.bindings)
    for _ in range(ROUNDS):
        if not answer.read:
            return instance
        if not answer.pairs:
            return None
        changes = equated(instance, answer.read - {kept}, random.choice(answer.pairs))
        if not changes:
            continue
        whole = [each for each, is_whole in changes if is_whole]
        chosen = whole if whole and random.random() < AS_A_WHOLE else [each for each, _ in changes]
        other = random.choice(chosen)
        after = comparing.asked(other.bindings)
        if after.met >= answer.met:
            instance, answer = other, after
    return None


def equated(instance: Instance, names: Set[str], pair: Pair) -> list[tuple[Instance, bool]]:
    """The instance with one side of a pair wherever the other side is the value of one of some
    variables, a field of it or a part of such a field; and whether it is no part. An extent is
    changed in all tensors, too: they may have to agree in it."""
    found = []
    for old, new in (pair, pair[::-1]):
        if type(old) is int and type(new) is int and 0 < new <= MOST_NUMBER:
            resized = with_extent(instance, old, new)
            if resized.values != instance.values:
                found.append((resized, True))
        sides = [(old, new)]
        if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
            sides += [each for each in zip(old, new, strict=True) if not _is_same(*each)]
        for one, other in sides:
            for number, (name, value) in enumerate(instance.values):
                changes = _with_other(value, one, other) if name in names else ()
                for changed, is_whole in changes:
                    values = list(instance.values)
                    values[number] = (name, changed)
                    found.append((replace(instance, values=tuple(values)), is_whole))
    return found


def with_extent(instance: Instance, old: int, new: int) -> Instance:
    """The instance with `new` in the place of each extent of a tensor that is `old`."""
    values = tuple((name, _with_extent(value, old, new)) for name, value in instance.values)
    return replace(instance, values=values)


def _with_extent(
    value: TensorType | Attribute, old: int, new: int
) -> TensorType | Attribute:  # fmt: skip
    """A tensor whose extents are `new` where they are `old`; any other value as it is."""
    if not isinstance(value, TensorType) or old not in value.shape:
        return value
    return value.with_shape(tuple(new if dim == old else dim for dim in value.shape))


def _with_other(
    value: TensorType | Attribute, old: object, new: object
) -> Iterator[tuple[TensorType | Attribute, bool]]:
    """The value with `new` in the place of `old`, once for each place where that is."""
    if isinstance(value, Constant | Scalar) or not is_dataclass(value):
        return
    if _is_same(value, old) and isinstance(new, type(value)):
        yield new, True
    for part in fields(value):
        found = getattr(value, part.name)
        choices = [(new, True)] if _is_same(found, old) else []
        if isinstance(found, tuple):
            places = [at for at, each in enumerate(found) if _is_same(each, old)]
            choices += [((*found[:at], new, *found[at + 1 :]), False) for at in places]
        for choice, is_whole in choices:
            if not _can_stand(choice, found, value, part.name):
                continue
            try:
                changed = replace(value, **{part.name: choice})  # type: ignore[arg-type]
            except Exception:  # what the value refuses: its constructor may ask anything
                continue
            yield changed, is_whole


def _can_stand(choice: object, found: object, value: object, name: str) -> bool:
    """Whether a field of a value may be `choice`, where it is `found`: it has that type, and its
    numbers, which may be open where they are extents, are such as can be computed with."""
    if type(choice) is not type(found):
        return False
    if isinstance(choice, str):
        return any(choice == each.name for each in FUNCTIONS.get(type(value), ()))
    if not isinstance(choice, tuple | int):
        return True
    parts = choice if isinstance(choice, tuple) else (choice,)
    is_step = isinstance(value, Slices) and name == "steps"
    least = -MOST_NUMBER if is_step else 0
    may_be_open = isinstance(value, OF_DIMS) and not is_step
    return all(
        (type(each) is int and least <= each <= MOST_NUMBER)
        or (may_be_open and isinstance(each, SymbolicDim))
        for each in parts
    )


def _is_same(value: object, old: object) -> bool:
    """Whether two values have one type and are equal; no where that cannot be said."""
    try:
        return type(value) is type(old) and bool(value == old)
    except Exception:  # arrays, and whatever an author compares with
        return False
