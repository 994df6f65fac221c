"""Words that movement cases are told in: `start(program) >> goal`, and `start(program) | wrong`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType

F32 = DType.F32
Build = Callable[["Cases"], int | tuple[int, ...]]

TO_LAST = (0, 2, 3, 1)
TO_FIRST = (0, 3, 1, 2)


@dataclass(frozen=True)
class Case:
    """Two programs over the same inputs: the second is a goal, or (`stays`) a wrong form."""

    start: Build
    goal: Build
    stays: bool = False


@dataclass(frozen=True)
class Start:
    """`start(program) >> goal` and `start(program) | wrong`."""

    build: Build

    def __rshift__(self, goal: Build) -> Case:
        return Case(self.build, goal)

    def __or__(self, wrong: Build) -> Case:
        return Case(self.build, wrong, stays=True)


def start(build: Build) -> Start:
    return Start(build)


class Cases(Builder):
    """A builder with the words that the cases are told in."""

    def tensor(self, *shape: int, name: str = "x", dtype: DType = F32) -> int:
        return self.input(name, dtype, shape)

    def weight(self, *shape: int, seed: int = 0) -> int:
        values = np.random.default_rng(seed).normal(size=shape)
        return self.constant(values.astype(np.float32))

    def border(self, lo: int = 0, hi: int | None = None, fill: float = 0) -> Window:
        """A 3 by 3 window with the same border on both spatial axes."""
        hi = lo if hi is None else hi
        return self.window(F32, (3, 3), lo=(lo, lo), hi=(hi, hi), fill=fill)

    def pad_spatial(self, x: int, *, amount: int = 1, value: float = 0, first: int = 1) -> int:
        lo = [amount if first <= axis < first + 2 else 0 for axis in range(4)]
        return self.pad(x, lo, lo, value)

    def first(self, x: int) -> int:
        """Channels-last to channels-first."""
        return self.transpose(x, TO_FIRST)

    def last(self, x: int) -> int:
        """Channels-first to channels-last."""
        return self.transpose(x, TO_LAST)

    def conv_first(self, x: int, window: Window) -> int:
        """A channels-first convolution with an [o, i, h, w] weight, as models are loaded."""
        weight = self.transpose(self.weight(5, 4, 3, 3), (2, 3, 1, 0))
        return self.first(self.conv(self.last(x), weight, window))

    def conv_last(self, x: int, window: Window) -> int:
        """The same convolution over a channels-last tensor."""
        weight = self.transpose(self.weight(5, 4, 3, 3), (2, 3, 1, 0))
        return self.conv(x, weight, window)

    def heads(self, x: int) -> int:
        """[batch, row, head, …] to [batch, head, row, …]."""
        return self.transpose(x, (0, 2, 1, 3))

    def less_the_largest(self, x: int, axes: tuple[int, ...]) -> int:
        """x less the largest elements along `axes`, as normalisations take off means."""
        shape = tuple(map(static, self.type(x).shape))
        return self.binary("sub", x, self.broadcast(self.reduce("max", x, axes), shape))

    def scaled(self, x: int) -> int:
        """x times an eighth."""
        shape = tuple(map(static, self.type(x).shape))
        return self.binary("mul", x, self.broadcast(self.constant([[[0.125]]], F32), shape))

    def means_of(self, scores: int, axis: int) -> int:
        """Means of values v [2, 512, 64], weighted by the softmax of scores along `axis`."""
        grown = self.unary("exp", self.less_the_largest(scores, (axis,)))
        shape = tuple(map(static, self.type(scores).shape))
        total = self.broadcast(self.reduce("sum", grown, (axis,)), shape)
        return self.matmul(self.binary("div", grown, total), self.tensor(2, 512, 64, name="v"))

    def cut(self, x: int, axis: int, begin: int, end: int) -> int:
        """x[begin:end] along `axis`."""
        sizes = list(map(static, self.type(x).shape))
        starts = [0] * len(sizes)
        starts[axis], sizes[axis] = begin, end - begin
        return self.slice(x, starts, sizes)
