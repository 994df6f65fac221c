"""Programs back to ONNX: a ModelProto, or a file that is never half written."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from satura.rewrite.errors import CallError
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.onnx.write.program import write_program
from satura.rewrite.program.program import Program
from satura.rewrite.system.files import atomic_file, is_special, output_file
from satura.rewrite.types.tensor_type import Array, DType

LARGEST_FILE = 2**31 - 2**24  # protobuf refuses messages of 2 GiB; nodes and names take the rest
SMALLEST_OUTSIDE = 1024  # bytes; smaller constants stay in the model
ALIGNMENT = 64


def to_model(program: Program) -> ModelProto:
    """`program` as an ONNX model with the same inputs and outputs; a constant is stored once.

    Raises UnsupportedError for a host node whose op means something else in the model's opset.
    """
    model, constants = write_program(program)
    for name, array in constants.items():
        _initializer(model.graph, name, array).raw_data = array.tobytes()
    return model


def save(program: Program, path: str | Path, largest_file: int = LARGEST_FILE) -> None:
    """Write `program` as ONNX to `path`.

    With more than `largest_file` bytes of constants, these go to one file next to it, named after
    the model and the file's content. The model is written last: whatever happens, `path` holds the
    old model or the new one. Links are followed, and a device or a FIFO at `path` is written into.
    """
    path = Path(path)
    model, constants = write_program(program)
    inside, outside = constants, dict[str, Array]()
    if sum(array.nbytes for array in constants.values()) > largest_file:
        if is_special(path):
            raise CallError(f"'{path}' is not a file beside which the model's constants can be put")
        inside = {name: x for name, x in constants.items() if x.nbytes < SMALLEST_OUTSIDE}
        outside = {name: x for name, x in constants.items() if name not in inside}
    for name, array in inside.items():
        _initializer(model.graph, name, array).raw_data = array.tobytes()
    if outside:
        _write_outside(model.graph, path, outside)
    with output_file(path) as file:
        file.write(model.SerializeToString())


def _initializer(graph: GraphProto, name: str, array: Array) -> TensorProto:
    """A new initializer, still without its data."""
    tensor: TensorProto = graph.initializer.add()
    tensor.name = name
    tensor.data_type = ELEMENT_CODES[DType.of(array.dtype)]
    tensor.dims.extend(array.shape)
    return tensor


def _write_outside(graph: GraphProto, path: Path, arrays: Mapping[str, Array]) -> None:
    """Write `arrays` to one data file next to `path`, and initializers that refer to it."""
    pieces: list[Array] = []
    offsets: dict[str, int] = {}
    end = 0
    for name, array in arrays.items():
        gap = -end % ALIGNMENT
        pieces += [np.zeros(gap, np.uint8), array.reshape(-1).view("u1")]
        offsets[name] = end + gap
        end += gap + array.nbytes
    hasher = blake2b(digest_size=8)
    for piece in pieces:
        hasher.update(piece.data)
    location = f"{path.name}.{hasher.hexdigest()}.data"
    for name, array in arrays.items():
        tensor = _initializer(graph, name, array)
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": location, "offset": offsets[name], "length": array.nbytes}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
    with atomic_file(path.with_name(location)) as file:
        file.writelines(piece.data for piece in pieces)
