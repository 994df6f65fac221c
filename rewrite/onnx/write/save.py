"""Programs back to ONNX: a ModelProto, or a file that is never half written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

from satura.rewrite.errors import CallError
from satura.rewrite.onnx.files import is_model
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.onnx.write.parts import write_model
from satura.rewrite.program.program import Program
from satura.rewrite.system.files import atomic_file, is_special, keep_mode, output_file
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import static

LARGEST_FILE = 2**31 - 2**24  # protobuf refuses messages of 2 GiB; nodes and names take the rest
SMALLEST_OUTSIDE = 1024  # bytes; smaller constants stay in the model
ALIGNMENT = 64


def to_model(program: Program | Parts) -> ModelProto:
    """`program` as an ONNX model with the same inputs and outputs; a constant is stored once,
    or by each name that nodes which stay have for it.

    Raises UnsupportedError for a node that means something else in the model's opset.
    """
    model, constants = write_model(program)
    for name, constant in constants.items():
        _initializer(model.graph, name, constant).raw_data = bytes(_content(constant))
    return model


def save(program: Program | Parts, path: str | Path, largest_file: int = LARGEST_FILE) -> None:
    """Write `program` as ONNX to `path`.

    With more than `largest_file` bytes of constants, these go to one file next to it, named after
    the model and the file's content. The model is written last: whatever happens, `path` holds the
    old model or the new one. Links are followed, and a device or a FIFO at `path` is written into.
    Raises CallError where another file than a model would be replaced.
    """
    if not isinstance(program, Program | Parts):
        raise CallError(
            f"what is saved as ONNX is a Program, not {type(program).__name__}: give"
            " compiled.program, or call compiled.save for a file that is ready to run"
        )
    path = Path(path)
    refuse_other(path)
    model, constants = write_model(program)
    inside, outside = constants, dict[str, Constant]()
    if sum(constant.nbytes for constant in constants.values()) > largest_file:
        if is_special(path):
            raise CallError(f"'{path}' is not a file beside which the model's constants can be put")
        inside = {name: x for name, x in constants.items() if x.nbytes < SMALLEST_OUTSIDE}
        outside = {name: x for name, x in constants.items() if name not in inside}
    for name, constant in inside.items():
        _initializer(model.graph, name, constant).raw_data = bytes(_content(constant))
    if outside:
        _write_outside(model.graph, path, outside)
    with output_file(path) as file:
        file.write(model.SerializeToString())


def refuse_other(path: Path) -> None:
    """Raise CallError for a file that is not an ONNX model: it may be the weights of one, or a
    saved program, and be all that there is of them."""
    if path.is_file() and path.stat().st_size and not is_model(path):
        raise CallError(
            f"'{path}' is there, and is not an ONNX model, so it is not replaced by one: name"
            " another file, or remove it first"
        )


def _initializer(graph: GraphProto, name: str, constant: Constant) -> TensorProto:
    """A new initializer, still without its data."""
    tensor: TensorProto = graph.initializer.add()
    tensor.name = name
    tensor.data_type = ELEMENT_CODES[constant.type.dtype]
    tensor.dims.extend(map(static, constant.type.shape))
    return tensor


def _write_outside(graph: GraphProto, path: Path, constants: Mapping[str, Constant]) -> None:
    """Write `constants` to one data file next to `path`, and initializers that refer to it."""
    hasher = blake2b(digest_size=8)
    for piece in _pieces(constants.values()):
        hasher.update(piece)
    location = f"{path.name}.{hasher.hexdigest()}.data"
    end = 0
    for name, constant in constants.items():
        tensor = _initializer(graph, name, constant)
        tensor.data_location = TensorProto.EXTERNAL
        offset = end + -end % ALIGNMENT
        length = _length(constant)
        place = {"location": location, "offset": offset, "length": length}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        end = offset + length
    with atomic_file(path.with_name(location)) as file:
        keep_mode(path, file)  # weights are as private as the model
        file.writelines(_pieces(constants.values()))


def _pieces(constants: Iterable[Constant]) -> Iterator[memoryview]:
    """The content of the data file; no more than one constant is in memory for it."""
    end = 0
    for constant in constants:
        gap = -end % ALIGNMENT
        yield memoryview(bytes(gap))
        content = _content(constant)
        yield content
        end += gap + len(content)


def _length(constant: Constant) -> int:
    """Bytes in a file; most constants need not be read for it."""
    return len(_content(constant)) if constant.type.dtype.is_narrow else constant.nbytes


def _content(constant: Constant) -> memoryview:
    """The bytes in a file, where elements of less than 8 bits are packed."""
    if constant.type.dtype.is_narrow:
        return memoryview(numpy_helper.from_array(constant.array).raw_data)
    return constant.array.reshape(-1).view(np.uint8).data
