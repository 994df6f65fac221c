"""Random arguments of programs without symbols: of ordinary size, special, huge or tiny."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.check.answer_steps import at_steps
from satura.rewrite.check.chosen_elements import with_chosen_elements
from satura.rewrite.check.compare import eps, is_finite, magnitude
from satura.rewrite.check.indices import gather_extents, places_in, with_computed_indices
from satura.rewrite.ops.draw import MOST_NEXT, Draw
from satura.rewrite.ops.next_floats import next_floats
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType

FAR = {DType.F64: (200, 200, 130), DType.F32: (25, 25, 16), DType.BF16: (25, 25, 16)}
"""Powers of ten far from 1. Their own square or cube overflows by far, so that a sum of a few such
numbers, or one that nearly cancels, is as finite as they are."""
FAR_DRAWS = 0.2
SAME = ((0.0, -0.0), (0.0, -0.0), (-np.inf,), (np.inf, np.nan))
SAME_DRAWS = 0.18  # of floats of which many are these, so that whole rows are, too
SAME_SHARES = (0.5, 0.5, 0.9)
TIED = tuple(each.numpy for each in (DType.F64, DType.I64, DType.U64, DType.I32, DType.U32))
TIE_DRAWS = 0.1  # of numbers beside those half way between two of a narrow float
MANY = 100  # elements of which no random sum is near their number,
ALIKE_DRAWS = 0.5  # so that all of them are alike in as many draws
MET_DRAWS = 0.15  # of integers whose ends meet, as the least one divided by -1
NEAR_DRAWS = 0.1  # of arguments with elements near a constant,
NEXT_SHARE = 0.5  # of which so many are at most a few floats from it
MADE_DRAWS = 0.15  # of arguments with what two constants make,
MADE_BY = (np.add, np.subtract, np.multiply, np.true_divide)
MOST_PAIRS = 6  # of which there are seldom more
HALF_DRAWS = 0.1  # of floats beside whole numbers and halves
STEP_DRAWS = 0.1  # of moderate arguments that are multiples of half a constant
MOST_STEPS = (9, 80)
DECIMAL_DRAWS = 0.1  # of moderate arguments that are all tenths
CLOSE_DRAWS = 0.1  # of moderate arguments that are next to those of another input,
BORDER_DRAWS = 0.1  # or to the numbers at which domains of functions end
BORDERS = (1.0, -1.0, 0.5, -0.5)
MOST_STEPS_AWAY = 3
LEAST_FAR = 1e10
BEYOND_F16 = 6  # power of ten of which f16 has none, though it has many a difference


def are_far(values: Sequence[Array]) -> bool:
    """Whether the largest float is huge for its type, or tiny."""
    largest = magnitude(values)
    return largest > LEAST_FAR or 0 < largest < 1 / LEAST_FAR


def random_arguments(program: Program, draw: Draw, moderate: bool) -> dict[str, Array]:
    """A random value for every input of a program without symbols; indices lie in range.

    If the program has an output `left`, the range is that of the left side. Now and then inputs
    that are all `moderate` floats become huge, or tiny, by one magnitude; other inputs often hold
    zeros of either sign, infinities or NaN. `draw.values` may ask for chosen elements.
    """
    moderate = moderate or draw.values in ("edge", "steps")
    sides = dict(program.outputs)
    compared = program.nodes[: sides.get("left", len(program.nodes)) + 1]
    extents = gather_extents(compared)
    arguments: dict[str, Array] = {}
    constants = [node.constant.array for node in program.nodes if node.op.name == "constant"]
    types = [program.nodes[index].type for index in program.inputs]
    can_be_far = moderate and draw.values == "any" and not are_far(constants)
    can_be_far &= all(type_.dtype in FAR for type_ in types)
    far = can_be_far and draw.chance(FAR_DRAWS)
    place, sign = (draw.up_to(2), draw.one_of((1, -1))) if far else (0, 1)
    is_narrowed = any(node.type.dtype is DType.F16 for node in program.nodes)
    beyond = far and is_narrowed and draw.chance(0.5)
    for index in program.inputs:
        node = program.nodes[index]
        array = draw.array(node.type, moderate)
        if far:
            exponent = BEYOND_F16 if beyond else sign * FAR[node.type.dtype][place]
            array = _far(array, 10.0**exponent, draw)
        if index in extents and node.type.dtype.is_integer:
            array = places_in(extents[index], array, draw)
        arguments[node.input_name] = array
    if extents:
        arguments = with_computed_indices(compared, arguments, draw)
    index_names = {program.nodes[index].input_name for index in extents if index in program.inputs}
    if not moderate and draw.specials > 0 and draw.chance(SAME_DRAWS):
        sames = draw.one_of(SAME)
        are_floats = {name for name, array in arguments.items() if DType.of(array.dtype).is_float}
        arguments |= {name: _with_same(arguments[name], sames, draw) for name in sorted(are_floats)}
    if draw.values == "steps":
        return at_steps(program.nodes, arguments, draw)
    if draw.values != "any":
        return with_chosen_elements(arguments, draw, index_names)
    finite = [each for each in constants if each.size and is_finite(each)]
    near, made = ([], []) if moderate else (finite, _made_of_two(finite))
    is_usual = moderate and not far
    steps = [each for each in finite if is_usual and not are_far([each])]
    if is_usual and draw.chance(DECIMAL_DRAWS):
        arguments = {name: _in_tenths(array, draw) for name, array in arguments.items()}
    if is_usual and draw.chance(CLOSE_DRAWS):
        arguments = _close_to_each_other(arguments, draw)
    elif is_usual and draw.chance(BORDER_DRAWS):
        arguments = {name: _beside_borders(array, draw) for name, array in arguments.items()}
    for name, array in arguments.items():
        if steps and DType.of(array.dtype).is_float and draw.chance(STEP_DRAWS):
            arguments[name] = array = _in_steps(array, draw.one_of(steps), draw)
        if near and array.size and draw.chance(NEAR_DRAWS):
            arguments[name] = array = _beside_constant(array, draw.one_of(near), draw)
        if made and array.size and draw.chance(MADE_DRAWS):
            arguments[name] = array = _with_some(array, made, draw)
        if not moderate and DType.of(array.dtype).is_float and draw.chance(HALF_DRAWS):
            arguments[name] = array = _in_steps(array, np.ones(1), draw)
        if not moderate and array.dtype in TIED and draw.chance(TIE_DRAWS):
            arguments[name] = array = _beside_ties(array, draw)
        are_many = not moderate and array.size > MANY and array.dtype.kind in "biu"
        if are_many and draw.chance(ALIKE_DRAWS):
            arguments[name] = np.full_like(array, array.flat[:8].max())
    integers = [name for name, each in arguments.items() if each.dtype.kind in "iu"]
    if len(integers) > 1 and not index_names.intersection(integers) and draw.chance(MET_DRAWS):
        arguments |= {name: _with_ends(arguments[name], draw) for name in integers}
    return arguments


def with_specials(arguments: dict[str, Array], draw: Draw, are_few: bool) -> dict[str, Array]:
    """The arguments, now and then with a few NaN or a few infinities among the floats.

    Unless they `are_few`, all floats are NaN: a NaN beside others hides what an infinite constant
    makes of these.
    """
    specials = draw.one_of(((np.nan,), (np.inf, -np.inf)))
    if not draw.chance(draw.specials / 2):
        return arguments
    random = np.random.default_rng(draw.random.getrandbits(64))
    everywhere = not are_few and specials == (np.nan,)
    return {
        name: np.where(
            random.random(array.shape) < (1.0 if everywhere else min(0.4, 2 / max(1, array.size))),
            random.choice(specials, array.shape),
            array,
        ).astype(array.dtype)
        if DType.of(array.dtype).is_float
        else array
        for name, array in arguments.items()
    }


def _made_of_two(constants: Sequence[Array]) -> list[Array]:
    """Sums, differences, products, quotients and roots of numbers among some constants: an element
    may be such a one where a computation with one of them gives the other."""
    numbers: list[Array] = [
        each.reshape(1) for each in constants if each.size == 1 and each.dtype.kind in "iuf"
    ]
    pairs = [(a, b) for a in numbers for b in numbers if a.dtype == b.dtype and a is not b]
    found: list[Array] = []
    with np.errstate(all="ignore"):
        for a, b in pairs[:MOST_PAIRS]:
            found += [made(a, b).astype(a.dtype) for made in MADE_BY]
        found += [np.sqrt(np.abs(a)).astype(a.dtype) for a in numbers]
    return [each.reshape(()) for each in found if is_finite(each)]


def _with_some(array: Array, numbers: Sequence[Array], draw: Draw) -> Array:
    """The array with those of some numbers that are of its type at about half of its places."""
    own = [each for each in numbers if each.dtype == array.dtype]
    if not own:
        return array
    random = np.random.default_rng(draw.random.getrandbits(64))
    chosen = np.array(own)[random.integers(len(own), size=array.shape)]
    some: Array = np.where(random.random(array.shape) < 0.5, chosen, array)
    return some


def _beside_constant(array: Array, constant: Array, draw: Draw) -> Array:
    """The array with a number near an element of a constant at about half of its places: some are
    next to it among the floats of its type, or of the array's."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    centre = float(constant.flat[random.integers(constant.size)])
    near: Array = centre + random.choice((-1.0, -0.5, 0.0, 0.5, 1.0), array.shape)
    dtype = DType.of(array.dtype)
    if dtype.is_float and random.random() < NEXT_SHARE:
        is_of_constant = DType.of(constant.dtype).is_float and random.random() < 0.5
        grid = constant.dtype if is_of_constant else array.dtype
        steps = random.integers(-MOST_NEXT, MOST_NEXT + 1, array.shape)
        with np.errstate(all="ignore"):
            near = next_floats(np.full(array.shape, centre).astype(grid), steps)
    if dtype is DType.BOOL or (dtype.is_integer and not _holds(dtype, centre)):
        return array
    with np.errstate(all="ignore"):
        return np.where(random.random(array.shape) < 0.5, near.astype(array.dtype), array)


def _in_steps(array: Array, constant: Array, draw: Draw) -> Array:
    """Floats that are multiples of half an element of a constant, or next to one: a quotient is a
    whole number or half way between two, where its last digit decides how it is rounded."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    step = float(constant.flat[random.integers(constant.size)]) / 2
    most = random.choice(MOST_STEPS)
    with np.errstate(all="ignore"):
        exact = np.asarray(step * random.integers(-most, most + 1, array.shape)).astype(array.dtype)
        below = np.nextafter(exact, np.zeros_like(exact))
    return np.where(random.random(array.shape) < 1 / 3, below, exact)


def _in_tenths(array: Array, draw: Draw) -> Array:
    """Small multiples of a tenth in place of floats: many sums of two are a third but for the last
    digit, which decides which is less."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    if not DType.of(array.dtype).is_float:
        return array
    return np.asarray(random.integers(-9, 10, array.shape) / 10).astype(array.dtype)


def _close_to_each_other(arguments: dict[str, Array], draw: Draw) -> dict[str, Array]:
    """The arguments, where floats lie a few steps from those of an earlier argument of equal size:
    their differences are as small as their roundings."""
    close: dict[tuple[np.dtype[np.generic], int], Array] = {}
    found = dict(arguments)
    for name, array in arguments.items():
        if DType.of(array.dtype).is_float:
            first = close.setdefault((array.dtype, array.size), array)
            if first is not array:
                found[name] = _steps_away(first.reshape(array.shape), draw)
    return found


def _beside_borders(array: Array, draw: Draw) -> Array:
    """Floats that are a few steps from numbers at which the domain of a function ends."""
    if not DType.of(array.dtype).is_float:
        return array
    random = np.random.default_rng(draw.random.getrandbits(64))
    return _steps_away(random.choice(BORDERS, array.shape).astype(array.dtype), draw)


def _steps_away(array: Array, draw: Draw) -> Array:
    """Floats at most a few steps from those of `array`."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    steps = random.integers(-MOST_STEPS_AWAY, MOST_STEPS_AWAY + 1, array.shape)
    wide = array.astype(np.float64) * (1 + steps * eps(DType.of(array.dtype)))
    return np.asarray(wide).astype(array.dtype)


def _with_ends(array: Array, draw: Draw) -> Array:
    """Integers of which half are at the ends of their type or beside 0, as -1 is."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    least, most = DType.of(array.dtype).bounds
    ends = np.array([least, most, 0, 1, -1 if least else most - 1], array.dtype)
    return np.where(random.random(array.shape) < 0.5, random.choice(ends, array.shape), array)


def _holds(dtype: DType, centre: float) -> bool:
    """Whether an integer dtype has all numbers near `centre`."""
    least, most = dtype.bounds
    return least + 2 <= centre <= most - 2


def _far(array: Array, size: float, draw: Draw) -> Array:
    """Floats near `size` or its negative, of which no two are likely to cancel."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    values = size * random.uniform(0.8, 1.25, array.shape)
    return np.asarray(random.choice((-1.0, 1.0), array.shape) * values).astype(array.dtype)


def _with_same(array: Array, sames: Sequence[float], draw: Draw) -> Array:
    """The array with one of `sames` at half of its places or more."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    chosen = random.choice(sames, array.shape).astype(array.dtype)
    return np.asarray(
        np.where(random.random(array.shape) < random.choice(SAME_SHARES), chosen, array)
    )


def _beside_ties(array: Array, draw: Draw) -> Array:
    """Numbers half way between two floats of some narrow type, or next to that."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    digits = random.choice((3, 4, 8, 11), array.shape)
    middle = 2 * random.integers(1 << digits - 1, 1 << digits) + 1
    beside = random.integers(-1, 2, array.shape)
    if array.dtype.kind == "f":
        scale = np.exp2(random.integers(-9, 9, array.shape) - digits)
        return np.asarray(scale * middle * (1 + beside * 2.0**-40))
    room = 8 * array.dtype.itemsize - 2 - digits
    return np.asarray((middle << random.integers(0, room)) + beside).astype(array.dtype)
