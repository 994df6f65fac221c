"""Reading ONNX files: bytes to ModelProto, external data, tensors to arrays.

Nothing is trusted: sizes are checked against the bytes that are there before memory is asked for,
and external data is only read from regular files inside the model's own folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, TensorProto

from satura.rewrite.errors import ModelError
from satura.rewrite.onnx.narrow import BITS
from satura.rewrite.onnx.normal import normal
from satura.rewrite.onnx.order import inner_graphs, label, nodes_of
from satura.rewrite.onnx.outline import outline
from satura.rewrite.onnx.sparse import dense
from satura.rewrite.onnx.tensors import element_count
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.program.arguments import as_path
from satura.rewrite.system.files import ARTIFACT
from satura.rewrite.types.remade import SMALLEST_REMADE
from satura.rewrite.types.stored import Stored, StoredFile

_LONGEST_FILE = 2**31 - 1  # bytes; protobuf reads no more
_UNREAD = frozenset({"doc_string", "metadata_props"})  # texts that mean nothing


@dataclass(frozen=True)
class ModelApart:
    """A model, and by name the content of initializers that was left in files or bytes.

    Values of the inputs that are called `data` are not asked for, though they may decide shapes.
    """

    proto: ModelProto
    weights: Mapping[str, Stored]
    data: frozenset[str] = frozenset()

    def whole(self) -> ModelProto:
        """The model with its weights in it."""
        for tensor in self.proto.graph.initializer if self.weights else ():
            if tensor.name in self.weights:
                tensor.raw_data = self.weights[tensor.name].bytes().tobytes()
        return self.proto


def read_model(model: str | Path | bytes | ModelProto) -> ModelProto:
    """`model` as a ModelProto without external data. Raises ModelError as `read_apart` does."""
    return read_apart(model).whole()


_LIGHT = "; a light model of the onnx package is satura.light.light({})"


def read_apart(model: str | Path | bytes | ModelProto | ModelApart | StoredFile) -> ModelApart:
    """`model` and its larger weights, which are not read.

    Raises ModelError for a missing, empty, truncated or foreign file, and for external data that is
    missing, too short or outside the model's folder.
    """
    if isinstance(model, ModelApart):
        return model
    if isinstance(model, ModelProto):
        if any(map(_is_external, _tensors(model))):
            raise ModelError("the model has external data: load it by its path, not as an object")
        if not model.opset_import:
            raise ModelError(
                "the model has no opset import: give onnx.helper.make_model its opset_imports"
            )
        _refuse_odd_texts("the model", model)
        return ModelApart(normal(dense(model)), {})
    folders: tuple[Path, ...] = ()
    source: StoredFile | bytes
    if isinstance(model, bytearray | memoryview):
        model = bytes(model)
    if isinstance(model, bytes):
        source, name, size = model, "the model", len(model)
    elif not isinstance(model, str | Path | StoredFile):
        kind = type(model).__name__
        raise ModelError(
            f"a model is a path, its bytes, an onnx.ModelProto or a Program, not {kind}"
        )
    else:
        path = model.path if isinstance(model, StoredFile) else as_path(model)
        name = repr(str(path))
        try:
            source = model if isinstance(model, StoredFile) else StoredFile(path)
        except OSError as error:
            hint = _LIGHT.format(name) if str(path).startswith("light_") and not path.suffix else ""
            raise ModelError(f"cannot read {name}: {error.strerror or error}{hint}") from None
        size, folders = source.size, (path.parent, path.resolve().parent)
        if size > _LONGEST_FILE:
            raise ModelError(f"{name} is longer than 2 GiB; save its tensors beside it")
    if not size:
        raise ModelError(f"{name} is empty; expected an ONNX model")
    whole = Stored(source, 0, size)
    try:
        with whole.opened() as file:
            if file.read(len(ARTIFACT)) == ARTIFACT:
                raise ModelError(
                    f"{name} is a compiled program, not a model: use satura.open or `satura run`"
                )
            found = outline(file, size)
    except OSError as error:
        raise ModelError(f"cannot read {name}: {error.strerror or error}") from None
    proto = ModelProto()
    try:
        proto.ParseFromString(whole.bytes().tobytes() if found is None else found.content)
    except DecodeError:
        raise ModelError(f"{name} is not an ONNX model, or it is truncated") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise ModelError(f"{name} is not an ONNX model: it has no graph or no opset import")
    _refuse_odd_texts(name, proto)
    proto = normal(proto)
    outside = _outside(proto, folders)
    if found is not None:
        initializers = proto.graph.initializer
        for position, (start, length) in found.places.items():
            tensor = initializers[position]
            stored = Stored(source, start, length)
            if tensor.data_type in BITS or tensor.name in outside:
                tensor.raw_data = stored.bytes().tobytes()
            else:
                outside[tensor.name] = stored
    return ModelApart(dense(proto), outside)


def has_external_data(model: StoredFile | bytes) -> bool:
    """Whether a model that was read before has some of its data in other files. Raises ModelError
    where its file is not what it was."""
    return any(map(_is_external, _tensors(_without_weights(model))))


def is_model(path: Path) -> bool:
    """Whether the file at a path is an ONNX model, though its weights may be missing. Raises
    OSError where it cannot be read."""
    file = StoredFile(path)
    if file.size > _LONGEST_FILE:
        return False
    try:
        proto = _without_weights(file)
    except (DecodeError, ModelError):
        return False
    return proto.HasField("graph") and bool(proto.opset_import)


def weight_files(model: Path) -> list[Path]:
    """The files that the model in a file names for its weights, whether they are there or not; none
    where it is no model."""
    try:
        tensors = [*_tensors(_without_weights(StoredFile(model)))]
    except (OSError, DecodeError, ModelError):
        return []
    fields = [field for tensor in tensors for field in tensor.external_data]
    names = {field.value for field in fields if field.key == "location"}
    folders = dict.fromkeys((model.parent, model.resolve().parent))
    return [folder / name for folder in folders for name in sorted(names)]


def _without_weights(model: StoredFile | bytes) -> ModelProto:
    """A model that may lack its larger weights."""
    whole = Stored(model, 0, len(model) if isinstance(model, bytes) else model.size)
    with whole.opened() as file:
        found = outline(file, whole.length)
    proto = ModelProto()
    proto.ParseFromString(whole.bytes().tobytes() if found is None else found.content)
    return proto


def _is_external(tensor: TensorProto) -> bool:
    return bool(tensor.external_data) or tensor.data_location == TensorProto.EXTERNAL


def _refuse_odd_texts(name: str, proto: ModelProto) -> None:
    if not all(isinstance(text, str) for text in _texts(proto)):
        raise ModelError(f"{name} is damaged: it has names that are not valid UTF-8")


def _outside(proto: ModelProto, folders: Sequence[Path]) -> dict[str, Stored]:
    """External data of the larger initializers; that of other tensors is put into the model."""
    files: dict[Path, StoredFile] = {}
    stored = {
        place: _external_data(name, tensor, folders, files)
        for place, (name, tensor) in enumerate(_named_tensors(proto))
        if _is_external(tensor)
    }
    result: dict[str, Stored] = {}
    for place, tensor in enumerate(_tensors(proto)):
        found = stored.get(place)
        if found is None:
            continue
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DEFAULT
        is_initializer = place < len(proto.graph.initializer)  # they are the first
        is_apart = is_initializer and found.length >= SMALLEST_REMADE
        if is_apart and tensor.data_type not in BITS and tensor.name not in result:
            tensor.ClearField("raw_data")
            result[tensor.name] = found
        else:
            tensor.raw_data = found.bytes().tobytes()
    return result


def _external_data(
    what: str, tensor: TensorProto, folders: Sequence[Path], files: dict[Path, StoredFile]
) -> Stored:
    """Where the external data of a tensor is; `files` are those that were found before.

    Its location leads from the first of `folders`, that of the model's name, into one of them: a
    link may lead to where the model is a link to, as in stores of files by their content.
    """
    name = f"external data of {what}"
    if not folders:
        raise ModelError(f"{name}: bytes have no folder, load the model by its path")
    fields = {entry.key: entry.value for entry in tensor.external_data}
    location = fields.get("location", "")
    try:
        homes = [folder.resolve() for folder in folders]
        path = (homes[0] / location).resolve()
        is_there = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a circle of links, NUL
        raise ModelError(f"{name}: '{location}' does not name a file: {error}") from None
    inside = Path(os.path.normpath(location))
    leaves = inside.is_absolute() or inside.parts[:1] == (os.pardir,)
    if not location or leaves or not set(homes) & set(path.parents):
        raise ModelError(f"{name}: '{location}' is outside the model's folder '{folders[0]}'")
    if not is_there:
        raise ModelError(f"{name}: there is no file '{location}' in '{folders[0]}'")
    try:
        offset = int(fields.get("offset") or 0)
        stated = int(fields["length"]) if fields.get("length") else None
    except ValueError:
        raise ModelError(f"{name}: offset and length must be integers") from None
    if min(offset, stated or 0) < 0:
        raise ModelError(f"{name}: offset and length must not be negative")
    bits = (
        BITS[tensor.data_type]
        if tensor.data_type in BITS
        else 8 * dtype_of(tensor.data_type).itemsize
    )
    expected = -(-element_count(tensor) * bits // 8)
    length = expected if stated is None else stated
    try:
        if path not in files:
            files[path] = StoredFile(path)
    except OSError as error:
        raise ModelError(f"{name}: cannot read '{location}': {error.strerror or error}") from None
    available = files[path].size - offset
    if length != expected or length > available:
        raise ModelError(
            f"{name}: {expected} bytes are needed, the model names {length} at offset"
            f" {offset} of '{location}', which has {max(0, available)} there"
        )
    return Stored(files[path], offset, length)


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    return (tensor for _, tensor in _named_tensors(model))


def _named_tensors(model: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Every tensor that the model stores, and how messages call it."""
    yield from ((f"tensor '{each.name}'", each) for each in model.graph.initializer)
    for node in nodes_of(model):
        for attribute in node.attribute:
            found = [attribute.t] if attribute.HasField("t") else attribute.tensors
            yield from ((f"attribute '{attribute.name}' of {label(node)}", each) for each in found)
        for graph in inner_graphs(node):
            yield from ((f"tensor '{each.name}'", each) for each in graph.initializer)


def _texts(message: Message) -> Iterator[object]:
    """Names in a model; protobuf gives bytes for those that are not valid UTF-8."""
    for field, value in message.ListFields():
        single = isinstance(value, str | bytes | Message)
        if field.type == field.TYPE_STRING and field.name not in _UNREAD:
            yield from [value] if single else value
        elif field.type == field.TYPE_MESSAGE and field.name not in _UNREAD:
            for each in [value] if single else value:
                yield from _texts(each)
