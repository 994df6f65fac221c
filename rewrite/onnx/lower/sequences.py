"""Lowerings of sequences of tensors whose number is known: at load they are lists.

A sequence is a negative number where a tensor is the index of its node.
"""

from __future__ import annotations

from satura.rewrite.errors import UnsupportedError
from satura.rewrite.onnx.lower.context import Context, lowering
from satura.rewrite.onnx.lower.movement import parts
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

_TAKE_SEQUENCES = {
    "ConcatFromSequence", "Identity", "SequenceAt", "SequenceErase", "SequenceInsert",
    "SequenceLength",
}  # fmt: skip


def check_operands(node: Context) -> None:
    """Raises UnsupportedError for a sequence where the op takes a tensor."""
    op_type = node.proto.op_type
    taken = {"Loop": range(2, len(node.operands))}.get(op_type, range(op_type in _TAKE_SEQUENCES))
    for position, operand in enumerate(node.operands):
        if operand is not None and operand < 0 and position not in taken:
            raise node.unsupported(f"input {position} is a sequence; only tensors are supported")


def check_output(name: str, value: int) -> None:
    """Raises UnsupportedError for a sequence as the model's output."""
    if value < 0:
        raise UnsupportedError(f"output '{name}' is a sequence; only tensors are supported")


def _tensors(node: Context) -> tuple[int, ...]:
    if node[0] >= 0:
        raise node.wrong("input 0 is a tensor, not a sequence")
    return node.build.sequences[node[0]]


def _place(node: Context, operand: int, count: int) -> int:
    """A position in [-count, count), counted from 0."""
    values = node.fixed(operand)
    if len(values) != 1 or not -count <= values[0] < count:
        raise node.wrong(f"position {list(values)} is out of range for {count} tensors")
    return values[0] % count


@lowering("SequenceConstruct", "SequenceEmpty")
def sequence_construct(node: Context) -> int:
    """The operands as a sequence."""
    return node.build.sequence(node.given)


@lowering("SequenceAt")
def sequence_at(node: Context) -> int:
    """One tensor of a sequence."""
    tensors = _tensors(node)
    return tensors[_place(node, 1, len(tensors))]


@lowering("SequenceLength")
def sequence_length(node: Context) -> int:
    """The number of tensors."""
    return node.build.constant(len(_tensors(node)), DType.I64)


@lowering("SequenceInsert")
def sequence_insert(node: Context) -> int:
    """A sequence with one more tensor, at its end where no position is given."""
    tensors = _tensors(node)
    count = len(tensors)
    at = count
    if node.optional(2) is not None and node.fixed(2) != (count,):
        at = _place(node, 2, count)
    return node.build.sequence((*tensors[:at], node[1], *tensors[at:]))


@lowering("SequenceErase")
def sequence_erase(node: Context) -> int:
    """A sequence without one tensor, the last where no position is given."""
    tensors = _tensors(node)
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
    build, tensors = node.build, _tensors(node)
    if not tensors:
        raise node.wrong("its sequence has no tensors")
    node.common_dtype(*tensors)
    is_new = node.integer("new_axis")
    axis = node.axis(node.integer("axis"), build.rank(tensors[0]) + is_new)
    return build.concat([build.insert(x, axis) for x in tensors] if is_new else tensors, axis)
