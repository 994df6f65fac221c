"""Attributes that hold elements: scalars, and constant tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from satura.rewrite.types.dims import static
from satura.rewrite.types.elements import array_text
from satura.rewrite.types.remade import Remade
from satura.rewrite.types.tensor_type import Array, DType, TensorType

MOST_WRITTEN = 8  # elements of a constant
MOST_LOOKED_AT = 4096  # elements of a constant, for their digits
FEW_DIGITS = 12  # of a mantissa in base 2, of 24 that f32 has


@dataclass(frozen=True)
class Scalar:
    """One element: its dtype and bit pattern, so that -0.0, 0.0, 0 and every NaN are distinct."""

    dtype: DType
    bits: bytes

    @staticmethod
    def of(value: object, dtype: DType) -> Scalar:
        """`value` (anything NumPy converts) as one element of `dtype`."""
        # Infinities are NaN in types that have none; what is too large for a type is infinite.
        with np.errstate(invalid="ignore", over="ignore"):
            return Scalar(dtype, np.asarray(value).astype(dtype.numpy).tobytes())

    @property
    def type(self) -> TensorType:
        """The element type, of rank 0."""
        return TensorType(self.dtype, ())

    @property
    def value(self) -> np.generic:
        value: np.generic = self.array.flat[0]
        return value

    @property
    def array(self) -> Array:
        """A read-only 0-d array."""
        return np.frombuffer(self.bits, self.dtype.numpy).reshape(())

    def __str__(self) -> str:
        return f"{self.dtype}({array_text(self.array)})"


def content_digest(type_: TensorType, content: Iterable[memoryview | bytes]) -> bytes:
    """What tells a constant from others: a digest of its type and of its bytes, in pieces."""
    head = f"{type_.dtype.numpy.name}{type_.shape}".encode()
    digest = hashlib.sha256(head)  # CPUs have instructions for it: thrice as fast as BLAKE2
    for piece in content:
        digest.update(piece)
    return digest.digest()[:16]


class Constant:
    """An immutable array, equal to another by dtype, shape and bytes.

    What a large one has in a file, or is computed of others, is not `kept`: its `array` is made
    when it is asked for, and is gone when nobody reads it any more.
    """

    __slots__ = ("_remade", "_type", "digest", "kept")

    def __init__(self, array: Array) -> None:
        array = np.asarray(array)
        if array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C", copy=True)
            array.flags.writeable = False
        self.kept: Array | None = array
        self._type = TensorType(DType.of(array.dtype), array.shape)
        self.digest = content_digest(self._type, [array.reshape(-1).view(np.uint8).data])
        self._remade: Remade | None = None

    @classmethod
    def remade(cls, make: Callable[[], Array], type_: TensorType, digest: bytes) -> Constant:
        """The constant whose array `make` gives: a new C-contiguous one of that type each time.

        Constants of one digest have the same elements.
        """
        made = cls.__new__(cls)
        made.kept, made._type, made.digest, made._remade = None, type_, digest, Remade(make)
        return made

    @property
    def type(self) -> TensorType:
        """The element type and shape."""
        return self._type

    @property
    def array(self) -> Array:
        """The elements. Raises ModelError where they were in a file that has changed."""
        if self.kept is not None:
            return self.kept
        assert self._remade is not None
        return self._remade()

    @property
    def size(self) -> int:
        """How many elements it has."""
        return static(self.type.size)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.size * self.type.dtype.itemsize

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """What is pickled: the elements, and not how they are made."""
        state = {"kept": self.array, "_type": self._type, "digest": self.digest, "_remade": None}
        return None, state

    @property
    def scalar(self) -> Scalar | None:
        """The only element of a 0-d constant; None for other shapes."""
        if self.type.shape:
            return None
        return Scalar(self.type.dtype, self.array.tobytes())

    @property
    def is_fractional(self) -> bool:
        """Whether it is small and consists of f32 fractions with many digits, of which whole
        numbers are not multiples; fractions and their reciprocals are not subnormal."""
        if self.type.dtype is not DType.F32 or not 0 < self.size <= MOST_LOOKED_AT:
            return False
        later_digits = self.array.view(np.uint32) & ((1 << (24 - FEW_DIGITS)) - 1)
        sizes = np.abs(self.array)
        return bool(np.all((later_digits != 0) & (sizes >= 2.0**-126) & (sizes <= 2.0**126)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Constant({self.type}, {self.digest.hex()[:8]})"

    @property
    def label(self) -> str | None:
        """What text has in place of the elements, where these are many."""
        return f"#{self.digest.hex()[:16]}" if self.size > MOST_WRITTEN else None

    def __str__(self) -> str:
        return self.label or array_text(self.array)
