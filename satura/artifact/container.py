"""The file of a saved program: a fixed head, a header in JSON, and sections of bytes.

    magic, version, bytes of the header, bytes of the file, SHA-256 of head and header
    header
    sections, each from a cache line on, with its checksum in the header

Nothing is believed before its digest is checked: that of the header when a file is opened, that of
a section when it is first taken. Digests find damage; they do not say who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from satura.artifact.sums import WORDS, Sums, by_numpy
from satura.rewrite.errors import ArtifactError
from satura.rewrite.system.files import ARTIFACT, is_private, open_regular

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from numpy.typing import NDArray

    from satura.rewrite.types.constant import Constant

    Bytes = NDArray[np.uint8]

T = TypeVar("T")

VERSION = 9
_HEAD = struct.Struct("<16sQQQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_START = _HEAD.size + _DIGEST_BYTES
_ALIGNMENT = 64
_ROW = 8 * WORDS  # bytes
_SMALL = 4 * _ROW
_LONGEST_HEADER = 1 << 26


class Writer:
    """Sections of a file to be written."""

    def __init__(self) -> None:
        self._sections: list[Callable[[], Bytes]] = []
        self._sizes: list[int] = []
        self._numbers: dict[bytes, int] = {}  # by what they hold

    def add(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | bytes) -> int:
        """The number of the section that holds these bytes; equal ones are written once."""
        if isinstance(array, bytes):
            array = np.frombuffer(array, np.uint8)
        content = _bytes(array)
        return self._number(content, lambda: content)

    def add_constant(self, constant: Constant) -> int:
        """The number of the section that holds a constant; what is not kept is read to write it."""
        return self._number(_bytes(constant.array), lambda: _bytes(constant.array))

    def _number(self, content: Bytes, again: Callable[[], Bytes]) -> int:
        digest = hashlib.sha256(content.data).digest()
        number = self._numbers.setdefault(digest, len(self._sections))
        if number == len(self._sections):
            self._sections.append(again)
            self._sizes.append(content.size)
        return number

    @property
    def size(self) -> int:
        """Bytes of all sections."""
        return sum(self._sizes)

    def write(self, file: BinaryIO, header: dict[str, object]) -> None:
        """Write all of it to `file`."""
        sizes = self._sizes
        sums = [checksum(section()) for section in self._sections]
        table = [[size, digest] for size, digest in zip(sizes, sums, strict=True)]
        text = json.dumps({**header, "sections": table}).encode()
        offsets = _offsets(len(text), sizes)
        head = _HEAD.pack(ARTIFACT, VERSION, len(text), offsets[-1])
        at = file.write(head + hashlib.sha256(head + text).digest() + text)
        for offset, section in zip(offsets, self._sections, strict=False):
            at += file.write(bytes(offset - at))
            at += file.write(section().data)
        file.write(bytes(offsets[-1] - at))


class Container:
    """An open file, mapped. `is_private` says that none but this user can have written it; `sums`
    is what sections are checked with.
    """

    def __init__(self, path: str | Path) -> None:
        """Raise ArtifactError for what is not a whole file of this version, OSError for none."""
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            start = file.read(_START)
            self._version_checked(path, start)
            _, _, length, size = _HEAD.unpack(start[: _HEAD.size])
            if size != status.st_size or not length <= min(size, _LONGEST_HEADER):
                raise ArtifactError(
                    f"{path} is damaged: it has {status.st_size} bytes, not {size}; save it again"
                )
            text = file.read(length)
            if hashlib.sha256(start[: _HEAD.size] + text).digest() != start[_HEAD.size :]:
                raise damage(path, "header")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.path = path
        self.is_private = is_private(status)
        self._bytes: Bytes = np.frombuffer(mapped, np.uint8)
        self._checked: set[int] = set()
        self.sums: Sums = by_numpy
        try:
            self.header = of(dict, json.loads(text))
            table = [of(list, row) for row in of(list, self.header.get("sections"))]
            self._digests = [of(str, digest) for _, digest in table]
            self._sizes = [natural(section_size) for section_size, _ in table]
        except (ValueError, RecursionError, ArtifactError) as error:
            raise damage(path, "header") from error
        self._offsets = _offsets(length, self._sizes)
        if self._offsets[-1] != size:
            raise damage(path, "table of sections")

    def section(self, number: int) -> Bytes:
        """The bytes of a section, checked when it is first taken. They cannot be written to."""
        if not 0 <= number < len(self._sizes):
            raise damage(self.path, "table of sections")
        start = self._offsets[number]
        content = self._bytes[start : start + self._sizes[number]]
        if number not in self._checked:
            if checksum(content, self.sums) != self._digests[number]:
                raise damage(self.path, f"section {number}")
            self._checked.add(number)
        return content

    @staticmethod
    def _version_checked(path: str | Path, start: bytes) -> None:
        magic = start[: len(ARTIFACT)]
        if magic != ARTIFACT[: len(start)] or not start:
            raise ArtifactError(
                f"{path} is not a program that `Compiled.save` has written; an ONNX model is for"
                " satura.compile"
            )
        if len(start) < _START:
            raise ArtifactError(f"{path} is damaged: it ends in its first bytes; save it again")
        _, version, _, _ = _HEAD.unpack(start[: _HEAD.size])
        if version != VERSION:
            raise ArtifactError(
                f"{path} has version {version} of the format, and this satura reads version"
                f" {VERSION}: save it with this satura, or open it with the one that wrote it"
            )


def is_artifact(path: Path) -> bool:
    """Whether the file at `path` begins as one that was saved."""
    with open_regular(path) as file:
        return file.read(len(ARTIFACT)) == ARTIFACT


def damage(path: str | Path, part: str) -> ArtifactError:
    """The error for a file whose `part` is not what was written."""
    return ArtifactError(f"{path} is damaged: its {part} is not as it was written; save it again")


def of(kind: type[T], value: object) -> T:
    """`value`, which is exactly of that type. Raises ArtifactError for others."""
    if type(value) is not kind:
        raise ArtifactError(f"there should be a {kind.__name__}, not {value!r:.20}")
    return value


def natural(value: object) -> int:
    """`value`, which is an int of at least 0. Raises ArtifactError for others."""
    number = of(int, value)
    if not 0 <= number < 1 << 62:
        raise ArtifactError(f"{number:.6g} is out of range")
    return number


def checksum(content: Bytes, sums: Sums = by_numpy) -> str:
    """A digest of the sums of all rows and columns of words: as fast as memory is read.

    A change stays unseen only where it alters four words or more and each row's and each column's
    sum modulo 2⁶⁴ is what it was. What is small is digested itself.
    """
    digest = hashlib.sha256(f"{content.size}\n".encode())
    if content.size <= _SMALL:
        digest.update(content.data)
        return digest.hexdigest()
    whole = content.size // _ROW * _ROW
    for each in sums(content[:whole].view(np.uint64).reshape(-1, WORDS)):
        digest.update(each.data)
    digest.update(content[whole:].data)
    return digest.hexdigest()


def _bytes(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _offsets(header: int, sizes: Iterable[int]) -> list[int]:
    """Where each section starts, and the end of the file."""
    offsets = [_align(_START + header)]
    for size in sizes:
        offsets.append(_align(offsets[-1] + size))
    return offsets


def _align(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
