"""Models without their weights: the parts of a file that are worth parsing.

A serialised ONNX model has its weights in initializers, as raw bytes. These need not go through
the parser, which would hold them twice: it is given the rest, and they are found by their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from onnx import GraphProto, ModelProto, TensorProto

from satura.rewrite.types.remade import SMALLEST_REMADE

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # wire types
_GRAPH = ModelProto.GRAPH_FIELD_NUMBER << 3 | _BYTES
_INITIALIZER = GraphProto.INITIALIZER_FIELD_NUMBER << 3 | _BYTES
_RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER << 3 | _BYTES
_LONGEST_VARINT = 10

Place = tuple[int, int]
"""First byte and number of bytes."""


class _OddError(Exception):
    """The bytes are not what a writer of models makes."""


@dataclass(frozen=True)
class Outline:
    """A serialised model without what lies at `places`: raw bytes of initializers by position."""

    content: bytes
    places: dict[int, Place]


def outline(content: BinaryIO, size: int) -> Outline | None:
    """The outline of a serialised model of `size` bytes; None where nothing can be left out."""
    places: dict[int, Place] = {}
    count = 0
    try:
        pieces: list[bytes] = []
        for key, start, body, end in _fields(content, 0, size):
            if key != _GRAPH:
                pieces.append(_read(content, start, end))
                continue
            graph: list[bytes] = []
            for inner, first, inside, last in _fields(content, body, end):
                if inner == _INITIALIZER:
                    tensor, place = _without_raw_data(content, inside, last)
                    if place is not None:
                        places[count] = place
                    count += 1
                    graph += [_varint(_INITIALIZER), _varint(len(tensor)), tensor]
                else:
                    graph.append(_read(content, first, last))
            whole = b"".join(graph)
            pieces += [_varint(_GRAPH), _varint(len(whole)), whole]
    except _OddError:
        return None
    return Outline(b"".join(pieces), places) if places else None


def _without_raw_data(content: BinaryIO, start: int, end: int) -> tuple[bytes, Place | None]:
    """A serialised tensor without its raw bytes, where they are many, and their place."""
    kept: list[bytes] = []
    places: list[Place] = []
    for key, first, body, last in _fields(content, start, end):
        if key == _RAW_DATA:
            places.append((body, last - body))
        else:
            kept.append(_read(content, first, last))
    if len(places) != 1 or places[0][1] < SMALLEST_REMADE:
        return _read(content, start, end), None
    return b"".join(kept), places[0]


def _fields(content: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number and wire type, the first byte, that of its content, and
    the end."""
    at = start
    while at < end:
        first = at
        key, at = _read_varint(content, at, end)
        wire, body = key & 7, at
        if wire == _VARINT:
            _, at = _read_varint(content, at, end)
        elif wire == _BYTES:
            length, body = _read_varint(content, at, end)
            at = body + length
        elif wire in (_EIGHT, _FOUR):
            at += 8 if wire == _EIGHT else 4
        else:
            raise _OddError
        if at > end:
            raise _OddError
        yield key, first, body, at


def _read_varint(content: BinaryIO, at: int, end: int) -> tuple[int, int]:
    """A number of seven bits per byte, and where it ends."""
    value = 0
    for place, byte in enumerate(_read(content, at, min(end, at + _LONGEST_VARINT))):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise _OddError


def _read(content: BinaryIO, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`; a file may have become shorter meanwhile."""
    content.seek(start)
    found = content.read(end - start)
    if len(found) < end - start:
        raise _OddError
    return found


def _varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])
