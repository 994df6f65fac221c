"""Host calls: ONNX nodes without a lowering, run by the onnx package's reference implementation."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from satura.rewrite.errors import CallError, UnsupportedError
from satura.rewrite.errors import HostFallbackWarning as HostFallbackWarning  # its former place
from satura.rewrite.types.attributes import HostCall
from satura.rewrite.types.dims import SymbolicDim
from satura.rewrite.types.shown import kind_of
from satura.rewrite.types.tensor_type import Array, TensorType

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

_NEEDED = {"ImageDecoder": ("PIL", "pillow")}


def run(call: HostCall, arguments: list[Array]) -> tuple[Array, ...]:
    """Results of the node that `call` describes.

    Raises CallError where the reference implementation fails, or returns other types than the
    program expects. Sizes of a type that are open may be any.
    """
    evaluator = _evaluator(call.domain, call.opset, call.proto)
    names = [name for name in evaluator.input_names if name]
    feeds = dict(
        zip(names, (np.ascontiguousarray(x).reshape(x.shape) for x in arguments), strict=True)
    )
    try:
        results = evaluator.run(None, feeds)
    except Exception as error:
        raise CallError(f"the reference implementation of {call} failed: {error}") from error
    arrays = []
    for result, expected in zip(results, call.outputs, strict=True):
        array = np.asarray(result)
        if not _is_of(array, expected):
            raise CallError(
                f"the reference implementation of {call} gave {kind_of(array)}, not {expected}"
            )
        arrays.append(array)
    return tuple(arrays)


def _is_of(array: Array, type_: TensorType) -> bool:
    pairs = zip(type_.shape, array.shape, strict=False)
    is_as_large = all(isinstance(dim, SymbolicDim) or dim == extent for dim, extent in pairs)
    return array.dtype == type_.dtype.numpy and array.ndim == type_.rank and is_as_large


def missing_package(op_type: str) -> str | None:
    """The package that the reference implementation of an op needs, where it is not installed."""
    module, package = _NEEDED.get(op_type, ("sys", ""))
    return package if find_spec(module) is None else None


def check(call: HostCall) -> None:
    """Raise UnsupportedError where there is no reference implementation that could run."""
    package = missing_package(call.op_type)
    if package is not None:
        raise UnsupportedError(
            f"{call} needs the package {package}, which is not installed: pip install {package}"
        )
    try:
        _evaluator(call.domain, call.opset, call.proto)
    except Exception:  # the evaluator says "not implemented" in many ways
        raise UnsupportedError(
            f"{call} has no lowering, and the onnx package has no reference implementation of it"
        ) from None


@lru_cache(maxsize=256)
def _evaluator(domain: str, opset: int, proto: bytes) -> ReferenceEvaluator:
    from satura.rewrite.program.reference import evaluator  # few models need it

    node = NodeProto.FromString(proto)
    inputs = [ValueInfoProto(name=name) for name in node.input if name]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "host", inputs, outputs)
    imports = [helper.make_opsetid(domain, opset)]
    model = helper.make_model(graph, opset_imports=imports)
    return evaluator(model)
