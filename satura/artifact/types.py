"""Types of tensors in a header: the element type by its name, and dims, symbolic ones as text."""

from __future__ import annotations

from satura.artifact.container import natural, of
from satura.rewrite.errors import ArtifactError
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType, TensorType

_DTYPES = {dtype.value: dtype for dtype in DType}


def type_row(type_: TensorType) -> list[object]:
    """What a header has for a type."""
    return [
        type_.dtype.value, [dim if isinstance(dim, int) else str(dim) for dim in type_.shape]
    ]  # fmt: skip


def type_of(row: object) -> TensorType:
    """The type that `type_row` wrote. Raises ArtifactError, or ProgramError for a dim's text."""
    name, dims = of(list, row)
    dtype = _DTYPES.get(of(str, name))
    if dtype is None:
        raise ArtifactError(f"there is no element type '{name}'")
    return TensorType(dtype, tuple(map(_dim, of(list, dims))))


def _dim(value: object) -> Dim:
    if type(value) is not str:
        return natural(value)
    from satura.rewrite.program.reader import Reader

    line = Reader(value)
    found = line.dim()
    line.expect_end()
    return found
