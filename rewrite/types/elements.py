"""Elements as text: what is written of one element is read back as the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.types.tensor_type import Array, DType

_BOOLS = {"False": False, "True": True}


def array_text(array: Array) -> str:
    """The elements of `array` in row-major order, in brackets unless its rank is 0."""
    texts = ", ".join(_texts(array))
    return f"[{texts}]" if array.ndim else texts


def _texts(array: Array) -> list[str]:
    """Each element as text; a NaN with other bits than NumPy's is `nan:` and its bits."""
    dtype = DType.of(array.dtype)
    flat = array.reshape(-1)
    if not dtype.is_float:
        return [str(value) for value in flat.tolist()]
    texts = list(map(_number_text, flat))
    bits = flat.view(f"u{dtype.itemsize}")
    usual = int(_usual_nan(dtype).view(bits.dtype)[0])
    return [
        f"nan:{int(each):x}" if text == "nan" and each != usual else text
        for text, each in zip(texts, bits, strict=True)
    ]


def _number_text(value: np.generic) -> str:
    """As few digits as give the same element again."""
    short = repr(float(str(value)))
    again = np.array(float(short)).astype(value.dtype)
    return short if again == value else repr(float(value))


def elements(texts: Sequence[str], dtype: DType) -> Array:
    """The elements that `texts` stand for, in a line. Raises ValueError for what is not one."""
    if not dtype.is_float:
        values = [_BOOLS[text] if text in _BOOLS else int(text) for text in texts]
        if any(isinstance(value, bool) is not (dtype is DType.BOOL) for value in values):
            raise ValueError(f"elements of {dtype} are not written so")
        try:
            return np.array(values, dtype.numpy)
        except OverflowError as error:
            raise ValueError(str(error)) from None
    numbers = [0.0 if text.startswith("nan:") else float(text) for text in texts]
    with np.errstate(over="ignore"):
        array = np.array(numbers).astype(dtype.numpy)
    bits = array.view(f"u{dtype.itemsize}")
    for index, text in enumerate(texts):
        if text.startswith("nan:"):
            bits[index] = _nan_bits(text.removeprefix("nan:"), dtype)
        elif text == "nan":
            bits[index] = _usual_nan(dtype).view(bits.dtype)[0]
    return array


def _usual_nan(dtype: DType) -> Array:
    return np.array([np.nan]).astype(dtype.numpy)


def _nan_bits(text: str, dtype: DType) -> int:
    """The bits in a hexadecimal `text`. Raises ValueError where they are not those of a NaN."""
    bits = int(text, 16)
    if not 0 <= bits < 1 << 8 * dtype.itemsize:
        raise ValueError(f"nan:{text} has more bits than {dtype}")
    if not np.isnan(np.array([bits], f"u{dtype.itemsize}").view(dtype.numpy)[0]):
        raise ValueError(f"nan:{text} is a number in {dtype}")
    return bits
