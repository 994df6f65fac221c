"""Sparse tensors, made dense: as initializers, and as values of Constant nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    SparseTensorProto,
    TensorProto,
    numpy_helper,
)

from satura.rewrite.errors import ModelError, UnsupportedError
from satura.rewrite.onnx.order import inner_graphs, label, nodes_of
from satura.rewrite.onnx.tensors import array_of, element_count, known_dtype
from satura.rewrite.program.memory import refuse_beyond_memory, tensor_bytes
from satura.rewrite.types.tensor_type import Array, TensorType

_Holder: TypeAlias = GraphProto | AttributeProto
_MOST_BYTES = 2**31 - 1  # of all that become dense: a message of protobuf holds no more


def dense(model: ModelProto) -> ModelProto:
    """The model with dense tensors only; it is itself where it has no others.

    Raises ModelError for a sparse tensor whose indices do not fit, UnsupportedError where all are
    too large to be dense.
    """
    if not any(_found(model)):
        return model
    result = ModelProto()
    result.CopyFrom(model)
    found = [*_found(result)]
    _refuse_large([(what, sparse) for what, sparse, _ in found])
    for what, sparse, holder in found:
        tensor = numpy_helper.from_array(_dense(what, sparse), sparse.values.name)
        if isinstance(holder, GraphProto):
            holder.initializer.append(tensor)
        else:
            holder.CopyFrom(AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor))
    for _, _, holder in found:
        if isinstance(holder, GraphProto):
            holder.ClearField("sparse_initializer")
    return result


def _found(model: ModelProto) -> Iterator[tuple[str, SparseTensorProto, _Holder]]:
    """The sparse tensors, how messages call each, and the graph or the attribute that has it."""
    yield from _initializers(model.graph)
    for node in nodes_of(model):
        for graph in inner_graphs(node):
            yield from _initializers(graph)
        for each in node.attribute if node.op_type == "Constant" else ():
            if each.name == "sparse_value" and each.type == AttributeProto.SPARSE_TENSOR:
                yield label(node), each.sparse_tensor, each


def _initializers(graph: GraphProto) -> Iterator[tuple[str, SparseTensorProto, _Holder]]:
    for each in graph.sparse_initializer:
        yield f"initializer '{each.values.name}'", each, graph


def _refuse_large(found: Sequence[tuple[str, SparseTensorProto]]) -> None:
    """Raise UnsupportedError where all dense tensors together are too large."""
    types = [(f"{what}, which is sparse,", _type(each)) for what, each in found]
    total = sum(tensor_bytes(type_) for _, type_ in types)
    refuse_beyond_memory(total, types, UnsupportedError)
    if total > _MOST_BYTES:
        what, _ = max(types, key=lambda each: tensor_bytes(each[1]))
        raise UnsupportedError(
            f"{what} and others like it take {total:,} bytes where they are dense; up to"
            f" {_MOST_BYTES:,} are supported"
        )


def _type(sparse: SparseTensorProto) -> TensorType:
    element_count(TensorProto(name=sparse.values.name, dims=sparse.dims))
    return TensorType(known_dtype(sparse.values), tuple(sparse.dims))


def _dense(what: str, sparse: SparseTensorProto) -> Array:
    """All elements of `sparse`: those it names, and zeros."""
    values = array_of(sparse.values)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    places = _places(what, sparse, values.shape)
    if len(np.unique(places)) != len(places):
        raise ModelError(f"{what}: two of its values have the same index")
    result.reshape(-1)[places] = values
    return result


def _places(what: str, sparse: SparseTensorProto, values: tuple[int, ...]) -> NDArray[np.int64]:
    """Where in the flat tensor the values are, which have the shape `values`."""
    shape = tuple(sparse.dims)
    stated = tuple(sparse.indices.dims)
    is_flat = stated == values
    if (
        sparse.indices.data_type != TensorProto.INT64
        or len(values) != 1
        or not (is_flat or stated == (*values, len(shape)))
    ):
        raise ModelError(
            f"{what}: a sparse tensor of {len(shape)} axes needs as many i64 indices as values,"
            f" or {len(shape)} for each; they are {list(stated)} for values of {list(values)}"
        )
    indices: NDArray[np.int64] = array_of(sparse.indices).astype(np.int64, copy=False)
    extents = [prod(shape)] if is_flat else [*shape]
    rows = indices.reshape(values[0], len(extents))
    fit = ((rows >= 0) & (rows < np.array(extents))).all(1)
    if not fit.all():
        wrong = indices[~fit][0].tolist()
        raise ModelError(f"{what}: the index {wrong} is outside of its shape {list(shape)}")
    steps = [prod(extents[axis + 1 :]) for axis in range(len(extents))] if len(rows) else []
    return rows @ np.array(steps, np.int64) if steps else np.zeros(len(rows), np.int64)
