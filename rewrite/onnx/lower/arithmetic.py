"""Tensors in arithmetic, so that a lowering reads as the formula that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType


class Value:
    """A tensor of `build`, with Python's operators: what stands behind one is a number or a tensor
    that broadcasts to this one's shape. A comparison gives a tensor of bools."""

    def __init__(self, build: Tensors, index: int) -> None:
        self.build, self.index = build, index

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.build.shape(self.index)

    @property
    def dtype(self) -> DType:
        return self.build.dtype(self.index)

    def cast(self, dtype: DType) -> Value:
        return Value(self.build, self.build.converted(self.index, dtype))

    def reduce(self, f: str, axes: Sequence[int]) -> Value:
        """A reduction along `axes`, which stay with extent 1."""
        return Value(self.build, self.build.reduce(f, self.index, axes))

    def mean(self, axes: Sequence[int]) -> Value:
        """The mean along `axes`, which stay with extent 1."""
        return Value(self.build, self.build.mean(self.index, axes))

    def along(self, axis: int, other: Value) -> Value:
        """This vector laid along an axis of `other`."""
        return Value(self.build, self.build.along(self.index, axis, other.shape))

    def unary(self, f: str) -> Value:
        return Value(self.build, self.build.unary(f, self.index))

    def binary(self, f: str, other: Value | float, is_second: bool = False) -> Value:
        """The binary function f of this and `other`, or of `other` and this."""
        pair = self.index, self.like(other).index
        return Value(self.build, self.build.binary(f, *(pair[::-1] if is_second else pair)))

    def like(self, other: Value | float) -> Value:
        """`other` in the shape of this, a number also in its element type."""
        if isinstance(other, Value):
            return Value(self.build, self.build.expand(other.index, self.shape))
        return Value(self.build, self.build.number(other, self.index))

    def __add__(self, other: Value | float) -> Value:
        return self.binary("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.binary("sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.binary("sub", other, is_second=True)

    def __mul__(self, other: Value | float) -> Value:
        return self.binary("mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.binary("div", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.binary("div", other, is_second=True)

    def __neg__(self) -> Value:
        return self.unary("neg")

    def __abs__(self) -> Value:
        return self.unary("abs")

    def __lt__(self, other: Value | float) -> Value:
        return self.binary("lt", other)

    def __le__(self, other: Value | float) -> Value:
        return self.binary("le", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.binary("lt", other, is_second=True)

    def __ge__(self, other: Value | float) -> Value:
        return self.binary("le", other, is_second=True)

    def clipped(self, top: Value | float, least: float = 0) -> Value:
        """Between `least` and `top`."""
        return self.binary("min", top).binary("max", least)

    def where(self, condition: Value, other: Value | float) -> Value:
        """This where the condition holds, else `other`."""
        chosen = self.build.select(condition.index, self.index, self.like(other).index)
        return Value(self.build, chosen)
