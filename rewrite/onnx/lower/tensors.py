"""A Builder with what lowerings share: NumPy broadcasting, scalars, dropped axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Padding
from satura.rewrite.types.dims import Dim, product
from satura.rewrite.types.tensor_type import DType


class Tensors(Builder):
    """Builds nodes of canonical ops from operands that broadcast; tensors are node indices."""

    def shape(self, x: int) -> tuple[Dim, ...]:
        return self.type(x).shape

    def dtype(self, x: int) -> DType:
        return self.type(x).dtype

    def rank(self, x: int) -> int:
        return self.type(x).rank

    def converted(self, x: int, dtype: DType) -> int:
        """x itself where it has `dtype`, else cast to it."""
        return x if self.dtype(x) is dtype else self.cast(x, dtype)

    def full(self, value: object, shape: Sequence[Dim], dtype: DType) -> int:
        """A tensor of equal elements."""
        one = self.constant(np.asarray(value).astype(dtype.numpy).reshape((1,) * len(shape)))
        return self.expand(one, shape)

    def number(self, value: object, like: int) -> int:
        """`value` with the dtype and shape of the tensor `like`."""
        return self.full(value, self.shape(like), self.dtype(like))

    def size_of(self, dims: Iterable[Dim], like: int) -> int:
        """The product of `dims`, with the dtype and shape of the tensor `like`."""
        size = product(dims)
        if isinstance(size, int):
            return self.number(size, like)
        return self.expand(self.cast(self.extent(size), self.dtype(like)), self.shape(like))

    def expand(self, x: int, shape: Sequence[Dim]) -> int:
        """x broadcast to exactly `shape`, new axes in front."""
        missing = len(shape) - self.rank(x)
        if missing > 0:
            x = self.reshape(x, (*(1,) * missing, *self.shape(x)))
        return x if self.shape(x) == tuple(shape) else self.broadcast(x, shape)

    def along(self, x: int, axis: int, shape: Sequence[Dim]) -> int:
        """The vector x laid along `axis` of `shape`."""
        if self.rank(x) != 1 or axis >= len(shape):
            raise ProgramError(f"{self.type(x)} is not a vector along axis {axis} of {list(shape)}")
        line: list[Dim] = [1] * len(shape)
        line[axis] = self.shape(x)[0]
        return self.expand(self.reshape(x, line), shape)

    def aligned(self, *operands: int) -> list[int]:
        """The operands broadcast to their common shape."""
        shape = common_shape(*(self.shape(x) for x in operands))
        return [self.expand(x, shape) for x in operands]

    def apply(self, f: str, x: int, y: int) -> int:
        """The binary function f of x and y after broadcasting."""
        return self.binary(f, *self.aligned(x, y))

    def apply_number(self, f: str, x: int, value: object) -> int:
        """The binary function f of x and a number."""
        return self.binary(f, x, self.number(value, x))

    def choose(self, condition: int, x: int, y: int) -> int:
        """`select` after broadcasting."""
        return self.select(*self.aligned(condition, x, y))

    def drop(self, x: int, axes: Iterable[int]) -> int:
        """x without `axes`, which have extent 1."""
        gone = set(axes)
        return self.reshape(x, [dim for axis, dim in enumerate(self.shape(x)) if axis not in gone])

    def insert(self, x: int, axis: int) -> int:
        """x with a new axis of extent 1 at position `axis`."""
        shape = list(self.shape(x))
        return self.reshape(x, [*shape[:axis], 1, *shape[axis:]])

    def reduced(self, f: str, x: int, axes: Sequence[int]) -> int:
        """`reduce` broadcast back to the shape of x."""
        return self.expand(self.reduce(f, x, axes), self.shape(x))

    def mean(self, x: int, axes: Sequence[int]) -> int:
        """The mean along `axes`, which stay with extent 1."""
        total = self.reduce("sum", x, axes)
        return self.binary(
            "div", total, self.size_of([self.shape(x)[axis] for axis in axes], total)
        )

    def padded(self, x: int, value: int, lo: Sequence[Dim], hi: Sequence[Dim]) -> int:
        """`pad` with a scalar tensor; negative paddings are slices before it."""
        cut_lo, cut_hi = (tuple(map(_cut, side)) for side in (lo, hi))
        if any(cut_lo) or any(cut_hi):
            sizes = [dim - a - b for dim, a, b in zip(self.shape(x), cut_lo, cut_hi, strict=True)]
            x = self.slice(x, cut_lo, sizes)
        keep_lo, keep_hi = (tuple(map(_kept, side)) for side in (lo, hi))
        return self.add("pad", (x, value), Padding(keep_lo, keep_hi))

    def one_axis_slice(self, x: int, axis: int, start: Dim, size: Dim, step: int = 1) -> int:
        """A slice that takes every other axis whole."""
        sizes = list(self.shape(x))
        starts: list[Dim] = [0] * len(sizes)
        steps = [1] * len(sizes)
        starts[axis], sizes[axis], steps[axis] = start, size, step
        return self.slice(x, starts, sizes, steps)


def _cut(amount: Dim) -> int:
    return -amount if isinstance(amount, int) and amount < 0 else 0


def _kept(amount: Dim) -> Dim:
    return 0 if isinstance(amount, int) and amount < 0 else amount


def common_shape(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape that all `shapes` broadcast to by NumPy's rule.

    Raises ProgramError where they do not, or where that depends on sizes.
    """
    rank = max(map(len, shapes))
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            if result[axis] == 1:
                result[axis] = dim
            elif dim not in (1, result[axis]):
                shown = " and ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
                raise ProgramError(f"{shown} do not broadcast: {result[axis]} against {dim}")
    return tuple(result)
