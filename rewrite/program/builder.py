"""Builder: write programs in Python, one method per canonical op.

build = Builder()
x = build.input("x", DType.F32, (1, 8, 8, 3))
program = build.program({"y": build.unary("relu", x)})

An open size is `symbol("n")`, in place of an int.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from satura.rewrite.ops.cells import Cell
from satura.rewrite.program.program import ProgramBuilder
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    HostCall,
    Padding,
    Parameter,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.extents import dims_of
from satura.rewrite.types.tensor_type import DType, TensorType


class Builder(ProgramBuilder):
    """A ProgramBuilder with a method per op; tensors are node indices."""

    def input(self, name: str, dtype: DType, shape: Sequence[Dim]) -> int:
        return self.add("input", (), Parameter(name, TensorType(dtype, dims_of(shape))))

    def constant(self, value: object, dtype: DType | None = None) -> int:
        array = np.asarray(value)
        return self.add(
            "constant", (), Constant(array if dtype is None else array.astype(dtype.numpy))
        )

    def iota(self, shape: Sequence[Dim], axis: int, dtype: DType) -> int:
        return self.add("iota", (), Shape(dims_of(shape)), Axis(axis), dtype)

    def extent(self, dim: Dim) -> int:
        return self.add("extent", (), Shape(dims_of((dim,))))

    def unary(self, f: str, x: int) -> int:
        return self.add("unary", (x,), UnaryFn(f))

    def binary(self, f: str, x: int, y: int) -> int:
        return self.add("binary", (x, y), BinaryFn(f))

    def select(self, condition: int, x: int, y: int) -> int:
        return self.add("select", (condition, x, y))

    def cast(self, x: int, dtype: DType) -> int:
        return self.add("cast", (x,), dtype)

    def transpose(self, x: int, perm: Sequence[int]) -> int:
        return self.add("transpose", (x,), Perm(tuple(perm)))

    def reshape(self, x: int, shape: Sequence[Dim]) -> int:
        return self.add("reshape", (x,), Shape(dims_of(shape)))

    def broadcast(self, x: int, shape: Sequence[Dim]) -> int:
        return self.add("broadcast", (x,), Shape(dims_of(shape)))

    def slice(
        self,
        x: int,
        starts: Sequence[Dim],
        sizes: Sequence[Dim],
        steps: Sequence[int] | None = None,
    ) -> int:
        steps = (1,) * len(sizes) if steps is None else steps
        return self.add("slice", (x,), Slices(dims_of(starts), dims_of(sizes), tuple(steps)))

    def pad(self, x: int, lo: Sequence[Dim], hi: Sequence[Dim], value: int | float = 0) -> int:
        fill = self.constant(np.asarray(value).astype(self.type(x).dtype.numpy))
        return self.add("pad", (x, fill), Padding(dims_of(lo), dims_of(hi)))

    def concat(self, operands: Sequence[int], axis: int) -> int:
        result = operands[0]
        for operand in operands[1:]:
            result = self.add("concat", (result, operand), Axis(axis))
        return result

    def gather(self, x: int, indices: int, axis: int) -> int:
        return self.add("gather", (x, indices), Axis(axis))

    def reduce(self, f: str, x: int, axes: Sequence[int]) -> int:
        return self.add("reduce", (x,), ReduceFn(f), Axes(tuple(sorted(axes))))

    def arg_reduce(self, f: str, x: int, axis: int, last: bool = False) -> int:
        return self.add("arg_reduce", (x,), ReduceFn(f), Axis(axis), Count(int(last)))

    def pool(self, f: str, x: int, window: Window) -> int:
        return self.add("pool", (x,), ReduceFn(f), window)

    def matmul(self, x: int, y: int) -> int:
        return self.add("matmul", (x, y))

    def conv(self, x: int, w: int, window: Window, groups: int = 1) -> int:
        return self.add("conv", (x, w), window, Groups(groups))

    def winograd(self, x: int, w: int, window: Window) -> int:
        return self.add("winograd", (x, w), window)

    def attention(self, q: int, k: int, bias: int, v: int) -> int:
        return self.add("attention", (q, k, bias, v))

    def scatter(self, x: int, indices: int, updates: int, f: str = "last") -> int:
        return self.add("scatter", (x, indices, updates), ReduceFn(f))

    def first_places(self, x: int, count: int, is_largest: bool = True) -> int:
        return self.add("first_places", (x,), Count(count), Count(int(is_largest)))

    def recurrence(
        self, x: int, weights: int, first: int, parameters: int, lengths: int, cell: Cell
    ) -> int:
        return self.add("recurrence", (x, weights, first, parameters, lengths), cell)

    def host(self, operands: Sequence[int], call: HostCall) -> int:
        return self.add("host", operands, call)

    def item(self, node: int, index: int) -> int:
        return self.add("item", (node,), Count(index))

    def window(
        self,
        dtype: DType,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        lo: Sequence[int] | None = None,
        hi: Sequence[int] | None = None,
        fill: object = 0,
    ) -> Window:
        """A window over len(sizes) axes; strides and dilations default to 1, borders to none."""
        ones, zeros = (1,) * len(sizes), (0,) * len(sizes)
        return Window(
            tuple(sizes),
            tuple(strides or ones),
            tuple(dilations or ones),
            tuple(lo or zeros),
            tuple(hi or zeros),
            Scalar.of(fill, dtype),
        )
