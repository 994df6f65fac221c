"""Arguments at which an answer changes: a comparison from false to true, a rounding by one, or to
the next number of fewer digits.

Both sides of a law of such answers have to change them at the same float. It is found by halving:
between two floats with different answers, until these are next to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from satura.rewrite.check.compare import apply_op, eps
from satura.rewrite.check.indices import behind
from satura.rewrite.check.instances import Instance, fires
from satura.rewrite.ops.draw import Draw
from satura.rewrite.ops.next_floats import next_floats
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Attribute, UnaryFn
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import FLOATS, Array, DType, TensorType

WANTED = 150  # firings
MOST_ELEMENTS = 1000
ROUNDINGS = tuple(map(UnaryFn, ("round", "floor", "ceil", "sign")))
BESIDE = 0.3  # of arguments: a float further away

Ordinals = NDArray[np.int64]


def with_answers(firings: Sequence[Instance], seed: int, scale: int) -> Iterator[Instance]:
    """Firings that compare or round floats, with constants whose last digits are not all 0 where
    these fire, too: what is done to them rounds."""
    random = Random(seed)
    by_dtypes: dict[tuple[DType, ...], list[Instance]] = {}
    for each in firings:
        nodes = each.left_side.nodes
        if any(_answers(nodes)):
            by_dtypes.setdefault(tuple(node.type.dtype for node in nodes), []).append(each)
    groups = list(by_dtypes.values())
    for number in range(WANTED * scale if groups else 0):
        instance = random.choice(groups[number % len(groups)])
        values = tuple((name, _with_digits(value, random)) for name, value in instance.values)
        other = replace(instance, values=values)
        yield other if other != instance and fires(other) else instance


def _with_digits(value: TensorType | Attribute, random: Random) -> TensorType | Attribute:
    """A float near that of a constant, of about the same magnitude; other attributes stay."""
    if not isinstance(value, Scalar) or not value.dtype.is_float:
        return value
    return Scalar.of(float(value.array) * random.uniform(0.7, 1.4), value.dtype)


def at_steps(nodes: Sequence[Node], arguments: dict[str, Array], draw: Draw) -> dict[str, Array]:
    """The arguments, of which one is where the answer of some node changes, or next to that."""
    answers = list(_answers(nodes))
    if not answers:
        return arguments
    index = draw.one_of(answers)
    part = {each: nodes[each] for each in behind(nodes, index)}
    names = [
        node.input_name
        for node in part.values()
        if node.op.name == "input"
        and node.type.dtype in FLOATS
        and arguments[node.input_name].shape == nodes[index].type.shape
        and 0 < arguments[node.input_name].size <= MOST_ELEMENTS
    ]
    if not names:
        return arguments
    name = draw.one_of(names)

    def answer(array: Array) -> Array:
        values: dict[int, Array] = {}
        for place, node in part.items():
            if node.op.name == "input":
                is_it = node.input_name == name
                values[place] = array if is_it else arguments[node.input_name]
            else:
                operands = [values[operand] for operand in node.operands]
                values[place] = apply_op(node.op, operands, node.attributes)
        return values[index]

    return arguments | {name: _at_step(answer, arguments[name], draw)}


def _answers(nodes: Sequence[Node]) -> Iterator[int]:
    """The nodes that make bools or integers of floats, round them to integers, or to fewer
    digits."""
    for index, node in enumerate(nodes):
        given = [nodes[each].type.dtype for each in node.operands]
        of_floats = any(dtype.is_float for dtype in given)
        if not of_floats or node.op.name not in ("unary", "binary", "cast"):
            continue
        is_cast = node.op.name == "cast" and node.type.dtype.is_float
        if (
            not node.type.dtype.is_float
            or node.attributes[0] in ROUNDINGS
            or (is_cast and eps(given[0]) < eps(node.type.dtype))
        ):
            yield index


def _at_step(answer: Callable[[Array], Array], array: Array, draw: Draw) -> Array:
    """Floats of which each is one of two neighbours with different answers, as far as there are
    floats with another answer; some are the next ones."""
    random = np.random.default_rng(draw.random.getrandbits(64))
    dtype = array.dtype
    start = np.where(np.isfinite(array.astype(np.float64)), array, np.ones_like(array))
    low, high = _ordinals(start), _ordinals(_unlike(answer, start))
    first = answer(start)
    for _ in range(8 * dtype.itemsize):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        is_same = _agree(answer(_floats(middle, dtype)), first)
        low, high = np.where(is_same, middle, low), np.where(is_same, high, middle)
    found = _floats(np.where(random.random(array.shape) < 0.5, low, high), dtype)
    steps = random.choice((-1, 1), array.shape) * (random.random(array.shape) < BESIDE)
    return np.asarray(next_floats(found, steps))


def _unlike(answer: Callable[[Array], Array], start: Array) -> Array:
    """Floats whose answers are not those of `start`, where one of some has another."""
    first, most = answer(start), float(ml_dtypes.finfo(start.dtype).max)
    found = start
    with np.errstate(all="ignore"):
        scaled = [(start * number).astype(start.dtype) for number in (4, -1, -4)]
    for other in (*scaled, *(np.full_like(start, number) for number in (0, most, -most))):
        is_open = _agree(answer(found), first)
        found = np.where(is_open & np.isfinite(other.astype(np.float64)), other, found)
    return found


def _agree(one: Array, other: Array) -> NDArray[np.bool_]:
    """Where two answers are equal, or both are no number."""
    return np.asarray((one == other) | ((one != one) & (other != other)))


def _ordinals(floats: Array) -> Ordinals:
    """The places of floats among all of their type, in order; that of 0 is 0."""
    bits = floats.view(f"i{floats.dtype.itemsize}").astype(np.int64)
    most = (1 << 8 * floats.dtype.itemsize - 1) - 1
    return np.where(bits < 0, -(bits & most), bits)


def _floats(ordinals: Ordinals, dtype: np.dtype[np.generic]) -> Array:
    """The floats at these places."""
    size = dtype.itemsize
    sign = -(1 << 8 * size - 1)
    bits = np.where(ordinals < 0, -ordinals | sign, ordinals)
    floats: Array = bits.astype(f"i{size}").view(dtype)
    return floats
