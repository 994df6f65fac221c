"""Lowerings of sequences of tensors whose number is known: at load they are lists.

A sequence is a negative number where a tensor is the index of its node. So is an optional without
an element; another one is its element. Of inputs and outputs the tensors have names: `x[0]`, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.movement import parts
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.sequence_type import SequenceType, is_absent, member
from satura.rewrite.types.tensor_type import Array, DType, TensorType

_TAKE_SEQUENCES = {
    "ConcatFromSequence", "Identity", "Optional", "OptionalGetElement", "OptionalHasElement",
    "SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength",
}  # fmt: skip


def check_operands(node: Context) -> None:
    """Raise UnsupportedError for a sequence where the op takes a tensor."""
    op_type = node.proto.op_type
    last = len(node.operands)
    bodies = {"Loop": range(2, last), "SequenceMap": range(last)}
    taken = bodies.get(op_type, range(op_type in _TAKE_SEQUENCES))
    for position, operand in enumerate(node.operands):
        if operand is not None and operand < 0 and position not in taken:
            raise node.unsupported(f"input {position} is a sequence; only tensors are supported")


def named_tensors(build: Tensors, name: str, value: int) -> dict[str, int]:
    """A result by its name, or the tensors of a sequence by theirs; an absent optional has none."""
    if value >= 0:
        return {name: value}
    return {member(name, at): x for at, x in enumerate(build.sequences[value] or ())}


def bound_input(
    build: Tensors, name: str, type_: TensorType, value: Array, scope: Mapping[str, int]
) -> int:
    """What an input of this value is: a constant, or a sequence of tensors that `scope` has."""
    if not isinstance(type_, SequenceType):
        return build.constant(value)
    if is_absent(value):
        return build.sequence(None)
    tensors = [scope[member(name, at)] for at in range(value.size)]
    return build.sequence(tensors) if type_.is_list else tensors[0]


def tensors_of(node: Context, position: int = 0) -> tuple[int, ...]:
    """The tensors of the sequence that an operand is."""
    if node[position] >= 0:
        raise node.wrong(f"input {position} is a tensor, not a sequence")
    tensors = node.build.sequences[node[position]]
    if tensors is None:
        raise node.wrong(f"input {position} is an optional without an element")
    return tensors


def _place(node: Context, operand: int, count: int) -> int:
    """A position in [-count, count), counted from 0."""
    values = node.fixed(operand)
    if len(values) != 1 or not -count <= values[0] < count:
        raise node.wrong(f"position {list(values)} is out of range for {count} tensors")
    return values[0] % count


def _is_of_data(node: Context, operand: int, tensors: Sequence[int]) -> bool:
    """Whether data say a position, a single element, among tensors that are of one type."""
    is_open = node.values.needed(node[operand]) is None
    is_position = is_open and node.build.type(node[operand]).size == 1
    return is_position and len({node.build.type(x) for x in tensors}) == 1


def _stack(build: Tensors, tensors: Sequence[int]) -> int:
    return build.concat([build.insert(x, 0) for x in tensors], 0)


def _in_order(
    build: Tensors, tensors: Sequence[int], orders: Sequence[Sequence[int]], which: int
) -> int:
    """The sequence of those tensors that one of the orders has, chosen by a single element."""
    table = build.constant(np.array(orders, np.int64))
    order = build.gather(table, build.reshape(which, ()), 0)
    rows = build.gather(_stack(build, tensors), order, 0)
    found = (build.one_axis_slice(rows, 0, at, 1) for at in range(len(orders[0])))
    return build.sequence([build.drop(row, [0]) for row in found])


@lowering("Optional")
def optional(node: Context) -> int:
    """An optional: its element, which stands for itself, or none."""
    return node.build.sequence(None) if node.optional(0) is None else node[0]


@lowering("OptionalHasElement")
def optional_has_element(node: Context) -> int:
    """Whether there is an element."""
    given = node.optional(0)
    has_element = given is not None and (given >= 0 or node.build.sequences[given] is not None)
    return node.build.constant(has_element, DType.BOOL)


@lowering("OptionalGetElement")
def optional_get_element(node: Context) -> int:
    """The element of an optional."""
    return node[0] if node[0] >= 0 else node.build.sequence(tensors_of(node))


@lowering("SequenceConstruct", "SequenceEmpty")
def sequence_construct(node: Context) -> int:
    """The operands as a sequence."""
    return node.build.sequence(node.given)


@lowering("SequenceAt")
def sequence_at(node: Context) -> int:
    """One tensor of a sequence; where data say which one, all of one type are a stack of them."""
    build, tensors = node.build, tensors_of(node)
    if _is_of_data(node, 1, tensors):
        return build.gather(_stack(build, tensors), build.reshape(node[1], ()), 0)
    return tensors[_place(node, 1, len(tensors))]


@lowering("SequenceLength")
def sequence_length(node: Context) -> int:
    """The number of tensors."""
    return node.build.constant(len(tensors_of(node)), DType.I64)


@lowering("SequenceInsert")
def sequence_insert(node: Context) -> int:
    """A sequence with one more tensor, at its end where no position is given."""
    tensors = tensors_of(node)
    count = len(tensors)
    at = count
    if node.optional(2) is not None and _is_of_data(node, 2, (*tensors, node[1])):
        orders = [[*range(at), count, *range(at, count)] for at in range(count + 1)]
        place = node.tensor(2)
        place = (place - 1).where(place < 0, place)  # -1 is one before the end
        return _in_order(node.build, (*tensors, node[1]), orders, place.index)
    if node.optional(2) is not None and node.fixed(2) != (count,):
        at = _place(node, 2, count)
    return node.build.sequence((*tensors[:at], node[1], *tensors[at:]))


@lowering("SequenceErase")
def sequence_erase(node: Context) -> int:
    """A sequence without one tensor, the last where no position is given."""
    tensors = tensors_of(node)
    if node.optional(1) is not None and _is_of_data(node, 1, tensors):
        every = range(len(tensors))
        orders = [[each for each in every if each != at] for at in every]
        return _in_order(node.build, tensors, orders, node[1])
    at = len(tensors) - 1 if node.optional(1) is None else _place(node, 1, len(tensors))
    return node.build.sequence((*tensors[:at], *tensors[at + 1 :]))


@lowering("SplitToSequence")
def split_to_sequence(node: Context) -> int:
    """Slices along an axis: of one element, of as many as a number says, or of given extents."""
    build, x = node.build, node[0]
    axis = node.axis(node.integer("axis"), build.rank(x))
    extent = build.shape(x)[axis]
    sizes: tuple[Dim, ...]
    if node.optional(1) is not None and build.rank(node[1]) == 1:
        sizes = node.dims(1)
    else:
        (size,) = (1,) if node.optional(1) is None else node.fixed(1)
        (whole,) = node.static([extent], "the extent that is split")
        if size < 1:
            raise node.wrong(f"parts of {size} elements")
        sizes = tuple(min(size, whole - start) for start in range(0, whole, size))
    found = parts(node, axis, sizes)
    if node.optional(1) is None and not node.integer("keepdims", 1):
        found = [build.drop(part, [axis]) for part in found]
    return build.sequence(found)


@lowering("ConcatFromSequence")
def concat_from_sequence(node: Context) -> int:
    """The tensors one after another along an axis, which may be a new one."""
    build, tensors = node.build, tensors_of(node)
    if not tensors:
        raise node.wrong("its sequence has no tensors")
    node.common_dtype(*tensors)
    is_new = node.integer("new_axis")
    axis = node.axis(node.integer("axis"), build.rank(tensors[0]) + is_new)
    return build.concat([build.insert(x, axis) for x in tensors] if is_new else tensors, axis)
