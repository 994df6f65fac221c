"""Element types and tensor types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from satura.rewrite.system.interrupts import import_whole
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.dims import Dim, product, symbols_of
from satura.rewrite.types.typical import representative

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
MOST_AXES = 64
"""What a NumPy array may have."""

_NARROW_BITS = {
    "f8e4m3": 8, "f8e4m3z": 8, "f8e5m2": 8, "f8e5m2z": 8, "f4e2m1": 4,
    "i4": 4, "u4": 4, "i2": 2, "u2": 2,
}  # fmt: skip


class DType(Enum):
    """An element type; the value is its short name."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    BOOL = "bool"
    F8E4M3 = "f8e4m3"
    F8E4M3Z = "f8e4m3z"
    F8E5M2 = "f8e5m2"
    F8E5M2Z = "f8e5m2z"
    F4E2M1 = "f4e2m1"
    I4 = "i4"
    U4 = "u4"
    I2 = "i2"
    U2 = "u2"

    __hash__ = object.__hash__  # that of an enum is a function of Python

    def __init__(self, name: str) -> None:
        """Find out once what is asked most often."""
        self._is_narrow = name in _NARROW_BITS
        self._is_float = name.startswith(("f", "bf"))
        self._is_integer = not self._is_float and name != "bool"

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    def __str__(self) -> str:
        return self.value

    @property
    def numpy(self) -> np.dtype[np.generic]:
        if self not in _NUMPY:
            _name_others()
        return _NUMPY[self]

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.numpy.itemsize)

    @property
    def is_narrow(self) -> bool:
        """Whether it has less than 8 bits, or is a float of 8: one element takes one byte."""
        return self._is_narrow

    @property
    def is_float(self) -> bool:
        """Whether it is a float of any width, those of 8 and of 4 bits included."""
        return self._is_float

    @property
    def is_signed(self) -> bool:
        """Whether it has negative numbers, as floats do; bool has none."""
        return self.is_float or self.value.startswith("i")

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer of any width; bool is not."""
        return self._is_integer

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        bits = _NARROW_BITS.get(self.value, 8 * self.itemsize)
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.is_signed else (0, (1 << bits) - 1)

    @property
    def compute(self) -> DType:
        """The type that arithmetic runs in: f16 and bf16 are stored, and computed in f32."""
        if self.is_narrow and not self.is_float:
            return DType.I8 if self.is_signed else DType.U8
        return DType.F32 if self.is_float and self is not DType.F64 else self

    @staticmethod
    def of(dtype: np.dtype[np.generic]) -> DType:
        """The DType of a NumPy dtype; KeyError when satura has none for it."""
        found = np.dtype(dtype)
        if found not in _FROM_NUMPY:
            _name_others()
        return _FROM_NUMPY[found]


COMPUTED = tuple(dtype for dtype in DType if not dtype.is_narrow)
NARROW = tuple(dtype for dtype in DType if dtype.is_narrow)
"""Those that are stored, moved and cast to others; nothing computes with them."""
FLOATS = frozenset({DType.F64, DType.F32, DType.F16, DType.BF16})
_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.I8: np.dtype(np.int8),
    DType.I16: np.dtype(np.int16),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.U8: np.dtype(np.uint8),
    DType.U16: np.dtype(np.uint16),
    DType.U32: np.dtype(np.uint32),
    DType.U64: np.dtype(np.uint64),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {numpy: dtype for dtype, numpy in _NUMPY.items()}


def _name_others() -> None:
    """Enter the types that NumPy lacks: their package is seldom needed, and slow to import."""
    import_whole("ml_dtypes")
    import ml_dtypes

    others = {
        DType.BF16: ml_dtypes.bfloat16,
        DType.F8E4M3: ml_dtypes.float8_e4m3fn,
        DType.F8E4M3Z: ml_dtypes.float8_e4m3fnuz,
        DType.F8E5M2: ml_dtypes.float8_e5m2,
        DType.F8E5M2Z: ml_dtypes.float8_e5m2fnuz,
        DType.F4E2M1: ml_dtypes.float4_e2m1fn,
        DType.I4: ml_dtypes.int4,
        DType.U4: ml_dtypes.uint4,
        DType.I2: ml_dtypes.int2,
        DType.U2: ml_dtypes.uint2,
    }
    for dtype, kind in others.items():
        _FROM_NUMPY[np.dtype(kind)] = dtype
        _NUMPY[dtype] = np.dtype(kind)


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of a tensor; the rank is static, dims may be symbolic."""

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def symbols(self) -> frozenset[str]:
        return symbols_of(self.shape)

    def with_shape(self, shape: tuple[Dim, ...]) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def concrete(self, sizes: Mapping[str, int]) -> TensorType:
        """The type where every symbol has its size from `sizes`."""
        return TensorType(self.dtype, tuple(evaluate(dim, sizes) for dim in self.shape))

    def typical(self, sizes: Mapping[str, int]) -> TensorType:
        """The type where every symbol has a typical size: that of `sizes`, or 64."""
        if not self.symbols:
            return self
        return TensorType(self.dtype, tuple(representative(dim, sizes=sizes) for dim in self.shape))

    def __str__(self) -> str:
        return f"{self.dtype.value}[{', '.join(map(str, self.shape))}]"


def open_sizes(types: Iterable[TensorType]) -> frozenset[str]:
    """Names of all sizes that some types leave open."""
    return symbols_of(dim for type_ in types for dim in type_.shape)


@lru_cache(maxsize=1 << 16)
def bytes_of(type_: TensorType) -> float:
    """Size of a tensor in bytes, at representative sizes."""
    total = float(type_.dtype.itemsize)
    for dim in type_.shape:
        total *= representative(dim)
    return total
