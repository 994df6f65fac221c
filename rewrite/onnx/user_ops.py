"""Ops of users in ONNX: nodes of other domains, whose attributes are the op's by name."""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, TensorProto, helper

from satura.rewrite.errors import ProgramError, SaturaError, UnsupportedError
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.tensors import array_of
from satura.rewrite.onnx.types import ELEMENT_CODES, dtype_of
from satura.rewrite.onnx.write.emitter import Emitter, Site
from satura.rewrite.ops import Kind, Op
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    Perm,
    ReduceFn,
    Shape,
    UnaryFn,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import SymbolicDim, static
from satura.rewrite.types.tensor_type import Array, DType

# Reading


def custom(node: Context, op: Op) -> int:
    """The node as the op that a user declared for it; elementwise operands broadcast.

    Raises ModelError where inputs or attributes are missing or too many.
    """
    if len(node.operands) != op.arity:
        raise node.wrong(f"{_title(op)} takes {op.arity} inputs, not {len(node.operands)}")
    if node.wanted != (True,):
        raise node.wrong(f"{_title(op)} has one output")
    found = {attribute.name: attribute for attribute in node.proto.attribute}
    for name in found:
        if name not in op.attribute_names:
            raise node.wrong(f"{_title(op)} has no attribute '{name}'")
    attributes: list[Attribute] = []
    for name, sort in zip(op.attribute_names, op.attributes, strict=True):
        if name not in found:
            raise node.wrong(f"{_title(op)} needs the attribute '{name}', a {sort.__name__}")
        attributes.append(_read(node, op, found[name], sort))
    operands = node.given
    if op.kind is Kind.ELEMENTWISE:
        operands = node.build.aligned(*operands)
    return node.build.add(op, operands, *attributes)


def _title(op: Op) -> str:
    assert op.user is not None
    return f"op '{op.name}' ({op.user.place})"


Reader = Callable[[AttributeProto], Attribute]

_READERS: dict[tuple[type, int], Reader] = {
    (Scalar, AttributeProto.FLOAT): lambda proto: Scalar.of(proto.f, DType.F32),
    (Scalar, AttributeProto.INT): lambda proto: Scalar.of(proto.i, DType.I64),
    (Scalar, AttributeProto.TENSOR): lambda proto: _scalar(array_of(proto.t)),
    (Constant, AttributeProto.TENSOR): lambda proto: Constant(array_of(proto.t)),
    (Count, AttributeProto.INT): lambda proto: Count(proto.i),
    (Axis, AttributeProto.INT): lambda proto: Axis(proto.i),
    (Groups, AttributeProto.INT): lambda proto: Groups(proto.i),
    (DType, AttributeProto.INT): lambda proto: dtype_of(proto.i),
    (Perm, AttributeProto.INTS): lambda proto: Perm(tuple(proto.ints)),
    (Axes, AttributeProto.INTS): lambda proto: Axes(tuple(proto.ints)),
    (Shape, AttributeProto.INTS): lambda proto: Shape(tuple(proto.ints)),
    (UnaryFn, AttributeProto.STRING): lambda proto: UnaryFn(proto.s.decode()),
    (BinaryFn, AttributeProto.STRING): lambda proto: BinaryFn(proto.s.decode()),
    (ReduceFn, AttributeProto.STRING): lambda proto: ReduceFn(proto.s.decode()),
}


def _read(node: Context, op: Op, proto: AttributeProto, sort: type) -> Attribute:
    reader = _READERS.get((sort, proto.type))
    if reader is None:
        given = AttributeProto.AttributeType.Name(proto.type)
        forms = [AttributeProto.AttributeType.Name(form) for kind, form in _READERS if kind is sort]
        accepted = f"is of type {' or '.join(forms)}" if forms else "has no form in ONNX"
        raise node.wrong(
            f"attribute '{proto.name}' is of type {given}, but a {sort.__name__}, which"
            f" {_title(op)} takes, {accepted}"
        )
    try:
        return reader(proto)
    except SaturaError as error:
        raise node.wrong(f"attribute '{proto.name}': {error}") from None


def _scalar(array: Array) -> Scalar:
    if array.size != 1:
        raise ProgramError(f"it has {array.size} elements, not one")
    return Scalar(DType.of(array.dtype), array.tobytes())


# Writing


def write_user_op(emit: Emitter, op: Op, site: Site) -> str:
    """A node of the op's own domain; the result's name."""
    assert op.user is not None
    result = emit.fresh()
    operands = [emit.ready(site.operand(position)) for position in range(len(site.reads))]
    node = helper.make_node(op.user.op_type, operands, [result], domain=op.user.domain)
    for name, value in zip(op.attribute_names, attributes_of(op, site), strict=True):
        node.attribute.append(_attribute_proto(op, name, value))
    emit.nodes.append(node)
    return result


def attributes_of(op: Op, site: Site) -> tuple[Attribute, ...]:
    """The op's own attributes: a function of `unary` or `binary` has none."""
    return site.node.attributes if site.node.op is op else ()


def _attribute_proto(op: Op, name: str, value: Attribute) -> AttributeProto:
    form = _form(value)
    if form is None:
        raise UnsupportedError(
            f"{_title(op)}: its attribute {name} = {value} has no form in ONNX, so that the program"
            " cannot be saved"
        )
    kind = AttributeProto.INTS if isinstance(form, list) else None
    return helper.make_attribute(name, form, attr_type=kind)


def _form(value: Attribute) -> float | int | str | TensorProto | list[int] | None:
    """What stands for a value in ONNX; None where nothing does."""
    match value:
        case Scalar(dtype=DType.F32):
            return float(value.value)
        case Scalar(dtype=DType.I64):
            return int(value.value)
        case Scalar() | Constant():
            return _tensor(value.array)
        case DType():
            return ELEMENT_CODES[value]
        case Count(value=number) | Axis(index=number) | Groups(count=number):
            return number
        case UnaryFn(name=name) | BinaryFn(name=name) | ReduceFn(name=name):
            return name
        case Perm(order=numbers) | Axes(indices=numbers):
            return list(numbers)
        case Shape(dims=dims) if not any(isinstance(dim, SymbolicDim) for dim in dims):
            return list(map(static, dims))
    return None


def _tensor(array: Array) -> TensorProto:
    dtype = ELEMENT_CODES[DType.of(array.dtype)]
    return TensorProto(data_type=dtype, dims=array.shape, raw_data=array.tobytes())
