"""Types of tensors in a header: the element type by its name, and dims, symbolic ones as text."""

from __future__ import annotations

from satura.artifact.container import natural, of
from satura.rewrite.errors import ArtifactError
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.sequence_type import SequenceType
from satura.rewrite.types.tensor_type import DType, TensorType

_DTYPES = {dtype.value: dtype for dtype in DType}


def type_row(type_: TensorType) -> list[object]:
    """What a header has for a type: two fields, and of a sequence what its tensors are."""
    row: list[object] = [
        type_.dtype.value, [dim if isinstance(dim, int) else str(dim) for dim in type_.shape]
    ]  # fmt: skip
    if isinstance(type_, SequenceType):
        dims = None if type_.dims is None else list(type_.dims)
        row += [type_.element.value, dims, type_.is_optional, type_.is_list]
    return row


def type_of(row: object) -> TensorType:
    """The type that `type_row` wrote. Raises ArtifactError, or ProgramError for a dim's text."""
    name, dims, *more = of(list, row)
    dtype, shape = _dtype(name), tuple(map(_dim, of(list, dims)))
    if not more:
        return TensorType(dtype, shape)
    element, known, is_optional, is_list = more
    extents = None
    if known is not None:
        extents = tuple(None if each is None else natural(each) for each in of(list, known))
    return SequenceType(
        dtype, shape, _dtype(element), extents, of(bool, is_optional), of(bool, is_list)
    )


def _dtype(name: object) -> DType:
    dtype = _DTYPES.get(of(str, name))
    if dtype is None:
        raise ArtifactError(f"there is no element type '{name}'")
    return dtype


def _dim(value: object) -> Dim:
    if type(value) is not str:
        return natural(value)
    from satura.rewrite.program.reader import Reader

    line = Reader(value)
    found = line.dim()
    line.expect_end()
    return found
