"""Firings of other dtypes and functions, for laws that name these: few of them may be wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from operator import itemgetter
from random import Random

from satura.rewrite.check.instances import Instance, fires, is_well_typed
from satura.rewrite.check.retyped import Dtypes, fitting_dtypes, with_dtypes
from satura.rewrite.language.dsl import Direction
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import REDUCTIONS
from satura.rewrite.types.attributes import Attribute, BinaryFn, ReduceFn, UnaryFn
from satura.rewrite.types.tensor_type import DType, TensorType

FEW = 6  # elements, of which some are special
MOST_TURNS = 500  # of choices of dtypes
MOST_FUNCTIONS = 60  # choices of functions, where a law has several
OF_A_FUNCTION = 8  # choices of dtypes that each of them fires for
MOST_BASES = 4  # that dtypes are sought for
MOST_FITTING = 100  # choices of dtypes for each of them
TRIED = 40  # of these for a function

FUNCTION = (UnaryFn, BinaryFn, ReduceFn)
NAMED = (DType, *FUNCTION)
FUNCTIONS: Mapping[type, Sequence[UnaryFn | BinaryFn | ReduceFn]] = {
    UnaryFn: tuple(map(UnaryFn, UNARY)),
    BinaryFn: tuple(map(BinaryFn, BINARY)),
    ReduceFn: tuple(map(ReduceFn, REDUCTIONS)),
}


def of_every_choice(
    direction: Direction, firings: Sequence[Instance], seed: int, scale: int
) -> Iterator[Instance]:
    """Firings of a law that names its functions or dtypes, where each choice of them has its
    turn."""
    random = Random(seed)
    sorts = direction.variables
    tables = {name: FUNCTIONS[sort] for name, sort in sorts.items() if sort in FUNCTIONS}
    bases = [each for each in firings if sum(map(_elements, each.types.values())) >= FEW]
    if bases and tables:
        yield from _of_every_function(tables, bases, random, scale)
    elif bases and any(issubclass(sort, DType) for sort in sorts.values()):
        fitting = fitting_dtypes(random.choice(bases), random)
        for number, dtypes in enumerate(islice(fitting, MOST_TURNS * scale)):
            instance = with_dtypes(bases[number % len(bases)], dtypes)
            if is_well_typed(instance):
                yield instance


def _of_every_function(
    tables: Mapping[str, Sequence[Attribute]],
    bases: Sequence[Instance],
    random: Random,
    scale: int,
) -> Iterator[Instance]:
    """Firings with every function of the `tables`, each with a few of the dtypes that fit."""
    fitting = _fitting_of_many(tables, bases, random)
    choices = list(product(*tables.values()))
    for choice in random.sample(choices, min(len(choices), MOST_FUNCTIONS * scale)):
        functions = dict(zip(tables, choice, strict=True))
        left = OF_A_FUNCTION * scale
        for dtypes in random.sample(fitting, min(len(fitting), TRIED * scale)):
            base = random.choice(bases)
            values = tuple((name, functions.get(name, value)) for name, value in base.values)
            instance = with_dtypes(replace(base, values=values), dtypes)
            if left and is_well_typed(instance) and fires(instance):
                left -= 1
                yield instance


def _fitting_of_many(
    tables: Mapping[str, object], bases: Sequence[Instance], random: Random
) -> list[Dtypes]:
    """Dtypes for which instances of several functions fire."""
    by_functions = {
        tuple(each.bindings[name] for name in tables): each
        for each in random.sample(bases, len(bases))
    }
    chosen = list(by_functions.values())[:MOST_BASES]
    found = [each for base in chosen for each in islice(fitting_dtypes(base, random), MOST_FITTING)]
    return list({tuple(each.items()): each for each in found}.values())


def functions_of(instance: Instance) -> tuple[Attribute, ...]:
    """The functions among its attributes."""
    return tuple(value for _, value in instance.values if isinstance(value, FUNCTION))


def in_turns(firings: Sequence[Instance]) -> list[Instance]:
    """The firings in another order: first one of each choice of dtypes and functions that they
    name, then another one of each, and so on."""
    turns: Counter[object] = Counter()
    placed = []
    for instance in firings:
        named = tuple(value for _, value in instance.values if isinstance(value, NAMED))
        placed.append((turns[named], instance))
        turns[named] += 1
    return [instance for _, instance in sorted(placed, key=itemgetter(0))]


def _elements(type_: TensorType) -> int:
    """The number of its elements; 0 if that is open."""
    return type_.size if isinstance(type_.size, int) else 0
