"""What a Loop or a Scan of any number of steps computes, by lowering one step.

ONNX's shape inference knows less: it sees no constants outside of a body, and no ops of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TypeProto

from satura.rewrite.errors import ModelError, ProgramError, UnsupportedError
from satura.rewrite.onnx.control_flow import Body, body_of, per_tensor
from satura.rewrite.onnx.cut import with_open_sizes
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.lower.tensors import SameSize
from satura.rewrite.onnx.types import shown_dim, type_proto
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType, TensorType

_COUNTED = (TensorType(DType.I64, ()), TensorType(DType.BOOL, ()))  # a loop's number and condition
_SOME = symbol("?")  # an extent that has no name outside


def types_of_steps(
    node: Context, body: Body, outside: Sequence[int]
) -> dict[str, TypeProto] | None:
    """The types of the results, with a size of its own for each extent that is not known.

    None where a step changes the type of what it passes on, where types depend on values, and where
    something is not a tensor.
    """
    read = [x for x in (*node.operands, *outside) if x is not None]
    if node.proto.op_type not in ("Loop", "Scan") or min(read, default=0) < 0:
        return None
    try:
        types = _of_loop(node, body) if node.proto.op_type == "Loop" else _of_scan(node, body)
    except (ModelError, ProgramError, UnsupportedError):
        return None
    except SameSize as same:
        if same.may_broadcast:  # the node broadcasts where it stays
            return None
        raise
    sizes = {str(shown_dim(dim)) for x in read for dim in node.build.shape(x)}
    return {
        name: with_open_sizes(name, type_proto(type_), sizes)
        for name, type_ in zip(node.proto.output, types, strict=False)
        if name
    }


def _of_loop(node: Context, body: Body) -> list[TensorType]:
    state = [node.build.type(node[at]) for at in range(2, len(node.operands))]
    rows = _step(node, body, state, _COUNTED, ())
    return [*state, *(_stacked(row, 0, _SOME) for row in rows)]


def _of_scan(node: Context, body: Body) -> list[TensorType]:
    types = [node.build.type(x) for x in node.given]
    count = node.integer("num_scan_inputs")
    state, sources = types[:-count], types[-count:]
    axes = [
        node.axis(axis, type_.rank)
        for axis, type_ in zip(per_tensor(node, "scan_input_axes", count), sources, strict=True)
    ]
    elements = [
        type_.with_shape((*type_.shape[:axis], *type_.shape[axis + 1 :]))
        for axis, type_ in zip(axes, sources, strict=True)
    ]
    rows = _step(node, body, state, (), elements)
    places = per_tensor(node, "scan_output_axes", len(rows))
    steps = sources[0].shape[axes[0]]
    return [
        *state,
        *(
            _stacked(row, node.axis(axis, row.rank + 1), steps)
            for row, axis in zip(rows, places, strict=True)
        ),
    ]


def _step(
    node: Context, body: Body, state: Sequence[TensorType], before: Sequence[TensorType],
    behind: Sequence[TensorType],
) -> list[TensorType]:  # fmt: skip
    """The types of the rows that a step gives of a state, of which no values are known.

    Raises UnsupportedError where it passes on another state, or gives a sequence.
    """
    build = node.build
    operands = [_unknown(node, type_, at) for at, type_ in enumerate((*before, *state, *behind))]
    with build.only_typed():
        results = body(body_of(node, "body"), operands)[1 if before else 0 :]
    types = [build.type(x) for x in results if x >= 0]
    if len(types) < len(results) or types[: len(state)] != [*state]:
        raise node.unsupported("a step does not pass on what it was given")
    return types[len(state) :]


def _unknown(node: Context, type_: TensorType, number: int) -> int:
    """A tensor of which nothing but its type is known."""
    return node.build.host((), HostCall("Unknown", "", node.opset, b"", (type_,), number))


def _stacked(row: TensorType, axis: int, steps: Dim) -> TensorType:
    return row.with_shape((*row.shape[:axis], steps, *row.shape[axis:]))
