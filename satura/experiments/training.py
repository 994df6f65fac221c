"""Training programs: small random programs of every form and element type, to time and learn from.

Each program has one op pattern at many random sizes, because a kernel serves all sizes: so few
kernels are compiled for many measurements. No model is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from satura.rewrite.ops.cells import Cell
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType

PER_PATTERN = 16
_VECTOR = 16  # elements


@dataclass(frozen=True)
class Drawing:
    """What one random instance of a pattern is drawn with; its inputs are named after `name`."""

    build: Builder
    random: np.random.Generator
    name: str
    dtype: DType

    def size(self, low: float, high: float) -> int:
        """A random size, all magnitudes alike."""
        return int(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def sizes(self, *limits: tuple[float, float]) -> list[int]:
        return [self.size(*each) for each in limits]

    def choice(self, *numbers: int) -> int:
        return int(self.random.choice(numbers))

    def input(self, *shape: int, right: bool = False, dtype: DType | None = None) -> int:
        """An input; one on the `right` is the second."""
        return self.build.input(f"{self.name}{'_right' * right}", dtype or self.dtype, shape)

    def constant(self, *shape: int, dtype: DType | None = None, step: int = 1) -> int:
        numbers = step * self.random.integers(-2, 3, shape)
        return self.build.constant(numbers.astype((dtype or self.dtype).numpy))

    def tensor(self, rank: int) -> int:
        """An input with a few hundred to a few million elements; half of them have last axes of
        whole vectors, as those of most models are."""
        total, last = self.sizes((1e3, 3e6), (8, 800))
        shape = [1] * (rank - 2) + [max(1, total // last), last]
        if rank == 3:
            shape[0] = self.size(2, 9)
            shape[1] = max(1, shape[1] // shape[0])
        if self.choice(0, 1):
            shape[-2:] = [_VECTOR * ceil(extent / _VECTOR) for extent in shape[-2:]]
        return self.input(*shape)

    def beside(self, x: int) -> int:
        """A second input of the shape of x."""
        return self.input(*map(static, self.build.type(x).shape), right=True)

    def row(self, function: str, x: int) -> int:
        """A reduction of the rows of x, as wide as x again."""
        return self.build.broadcast(self.build.reduce(function, x, (1,)), self.build.type(x).shape)


Pattern = Callable[[Drawing], int]
"""Adds one random instance, and gives its result."""


def programs(seed: int = 0) -> Iterator[tuple[str, Program]]:
    """All training programs of a seed, and what each of them is about."""
    for name, dtype, pattern in _patterns():
        about = f"{name} {dtype.value}"
        random = np.random.default_rng((seed, *about.encode()))
        build = Builder()
        results = {
            f"y{i}": pattern(Drawing(build, random, f"x{i}", dtype)) for i in range(PER_PATTERN)
        }
        yield about, build.program(results)


def _patterns() -> Iterator[tuple[str, DType, Pattern]]:
    for name, pattern in _OF_F32.items():
        yield name, DType.F32, pattern
    for dtype in (DType.F64, DType.F16, DType.I32):
        yield "matmul", dtype, _matmul
    for dtype in (DType.F64, DType.F16, DType.BF16, DType.I8, DType.U8, DType.I32, DType.I64):
        yield "cheap", dtype, _cheap
    for dtype in (DType.F64, DType.I32, DType.I64):
        yield "sum", dtype, _OF_F32["sum"]
    yield "exp", DType.F64, _OF_F32["exp"]
    yield "matmul of", DType.U8, _octets
    yield "matmul of pairs of", DType.U8, _pairs
    yield "layer of", DType.U8, _requantised


def _matmul(draw: Drawing) -> int:
    most = 400 if draw.dtype in (DType.F32, DType.F16) else 80
    rows, depth, columns = (draw.size(low, 4 * most) for low in (1, 8, 4))
    return draw.build.matmul(draw.input(rows, depth), draw.constant(depth, columns))


def _matmul_of_few_rows(draw: Drawing) -> int:
    """A product whose weights are in no cache at the next call, as in most models."""
    rows, depth, columns = draw.sizes((1, 8), (1000, 4000), (1000, 3000))
    return draw.build.matmul(draw.input(rows, depth), draw.constant(depth, columns))


def _biased_matmul(draw: Drawing) -> int:
    build, y = draw.build, _matmul(draw)
    shape = build.type(y).shape
    bias = draw.constant(1, static(shape[1]))
    return build.unary("relu", build.binary("add", y, build.broadcast(bias, shape)))


def _gelu(draw: Drawing) -> int:
    y = _matmul(draw)
    return draw.build.binary("mul", y, draw.build.unary("erf", y))


def _batched_matmul(draw: Drawing) -> int:
    batch, rows, depth = draw.sizes((1, 100), (16, 200), (8, 128))
    x = draw.input(batch, rows, depth)
    return draw.build.matmul(x, draw.input(batch, depth, draw.size(16, 200), right=True))


def _transposed_matmul(draw: Drawing) -> int:
    batch, rows, depth = draw.sizes((1, 100), (16, 200), (8, 128))
    x = draw.input(batch, rows, depth)
    y = draw.input(batch, draw.size(16, 200), depth, right=True)
    return draw.build.matmul(x, draw.build.transpose(y, (0, 2, 1)))


def _conv(draw: Drawing) -> int:
    taps = draw.choice(1, 1, 3, 3, 5)
    edge, inner = draw.sizes((6, 80), (3, 300 // taps))
    return _conv_of(draw, taps, edge, inner, draw.size(8, 300), 1)


def _grouped_conv(draw: Drawing) -> int:
    groups, inner = draw.size(2, 16), draw.choice(4, 8, 16, 32)
    return _conv_of(draw, 3, draw.size(6, 60), inner * groups, inner * groups, groups)


def _depthwise(draw: Drawing) -> int:
    taps, channels = draw.choice(3, 3, 5, 7), 8 * draw.size(2, 80)
    return _conv_of(draw, taps, draw.size(6, 60), channels, channels, channels)


def _planar(draw: Drawing) -> int:
    build, taps, channels = draw.build, draw.choice(3, 3, 5, 7), draw.size(8, 600)
    edge = draw.size(16, 60)
    x = build.transpose(draw.input(1, channels, edge, edge), (0, 2, 3, 1))
    return build.transpose(_conv_over(draw, x, taps, channels, channels, channels), (0, 3, 1, 2))


def _conv_of(draw: Drawing, taps: int, edge: int, inner: int, outer: int, groups: int) -> int:
    return _conv_over(draw, draw.input(1, edge, edge, inner), taps, inner, outer, groups)


def _conv_over(draw: Drawing, x: int, taps: int, inner: int, outer: int, groups: int) -> int:
    weight = draw.constant(taps, taps, inner // groups, outer)
    border, strides = (taps // 2,) * 2, (draw.choice(1, 1, 2),) * 2
    window = draw.build.window(draw.dtype, (taps, taps), strides, lo=border, hi=border)
    return draw.build.conv(x, weight, window, groups)


def _winograd(draw: Drawing) -> int:
    edge, inner, outer = draw.sizes((6, 80), (8, 200), (8, 200))
    x, weight = draw.input(1, edge, edge, inner), draw.constant(3, 3, inner, outer)
    window = draw.build.window(draw.dtype, (3, 3), lo=(1, 1), hi=(1, 1))
    return draw.build.winograd(x, weight, window)


def _attention(draw: Drawing) -> int:
    build = draw.build
    heads, rows, keys, depth = draw.sizes((1, 8), (8, 600), (8, 600), (16, 80))
    q, k = draw.input(heads, rows, depth), draw.input(heads, depth, keys, right=True)
    v = build.input(f"{draw.name}_values", draw.dtype, (heads, keys, depth))
    return build.attention(q, k, build.broadcast(draw.constant(1, 1, keys), (heads, rows, keys)), v)


def _octets(draw: Drawing, weights: DType = DType.I8, step: int = 1) -> int:
    rows, depth, columns = draw.size(30, 3000), 4 * draw.size(8, 200), 8 * draw.size(3, 100)
    x = draw.build.cast(draw.input(rows, depth), DType.I32)
    weight = draw.constant(depth, columns, dtype=weights, step=step)
    return draw.build.matmul(x, draw.build.cast(weight, DType.I32))


def _pairs(draw: Drawing) -> int:
    """Weights of which an i8 holds the half."""
    return _octets(draw, DType.I16, step=100)


def _requantised(draw: Drawing) -> int:
    """The sums of a quantised layer, and what it makes of them for the next one to read."""
    build, sums = draw.build, _octets(draw)
    shape = build.type(sums).shape

    def number(value: float) -> int:
        return build.broadcast(build.constant(np.full((1, 1), value, np.float32)), shape)

    scale = build.broadcast(draw.constant(1, static(shape[1]), dtype=DType.F32), shape)
    real = build.binary("mul", build.cast(sums, DType.F32), scale)
    steps = build.unary("round", build.binary("div", real, number(0.25)))
    kept = build.binary("min", build.binary("max", steps, number(0)), number(255))
    return build.cast(kept, DType.U8)


def _recurrence(draw: Drawing) -> int:
    build, cell = draw.build, Cell("rnn", (("tanh", 0.0, 0.0),))
    steps, batch, units = draw.sizes((5, 200), (1, 16), (8, 300))
    x = draw.input(steps, batch, units)
    weights = draw.random.uniform(-1, 1, (1, units, units)) / units  # so that roundings fade away
    weight = build.constant(weights.astype(draw.dtype.numpy))
    first, none = (
        build.constant(np.zeros(s, np.float32)) for s in ((1, 1, batch, units), (1, 0, units))
    )
    return build.recurrence(x, weight, first, none, build.constant(np.zeros(0, np.int64)), cell)


def _scatter(draw: Drawing) -> int:
    rows, width, count = draw.sizes((10, 3000), (8, 600), (8, 2000))
    x, places = draw.input(rows, width), draw.build.constant(draw.random.integers(0, rows, count))
    updates = draw.build.input(f"{draw.name}_new", draw.dtype, (count, width))
    return draw.build.scatter(x, places, updates, "sum")


def _first_places(draw: Drawing) -> int:
    return draw.build.first_places(draw.input(*draw.sizes((1, 300), (30, 3000))), draw.size(1, 20))


def _pool(draw: Drawing) -> int:
    function, taps, stride = ("max", "sum")[draw.choice(0, 1)], draw.choice(2, 3), draw.choice(1, 2)
    edge, channels = draw.size(8, 60), 8 * draw.size(2, 60)
    window = draw.build.window(draw.dtype, (1, taps, taps, 1), strides=(1, stride, stride, 1))
    return draw.build.pool(function, draw.input(1, edge, edge, channels), window)


def _cheap(draw: Drawing) -> int:
    build, x = draw.build, draw.tensor(2)
    y = draw.beside(x)
    return build.binary("max", build.binary("add", x, y), build.binary("mul", x, y))


def _addition(draw: Drawing) -> int:
    x = draw.tensor(2)
    return draw.build.binary("add", x, draw.beside(x))


def _chain(draw: Drawing) -> int:
    build = draw.build
    x = y = draw.tensor(2)
    for _ in range(6):
        y = build.binary("max", build.binary("mul", y, x), build.binary("add", y, x))
    return y


def _gather(draw: Drawing) -> int:
    """From a table that caches hold: it is read at the same places at each call."""
    table = draw.input(*draw.sizes((50, 3000), (8, 800)), right=True)
    return draw.build.gather(table, draw.input(draw.size(8, 2000), dtype=DType.I64), 0)


def _picked(draw: Drawing) -> int:
    """Elements one by one: where data says, and at a distance."""
    rows, columns = draw.sizes((8, 600), (16, 800))
    x = draw.input(rows, columns)
    if draw.choice(0, 1):
        return draw.build.gather(x, draw.input(draw.size(8, 800), dtype=DType.I64, right=True), 1)
    step = draw.choice(-1, 2, 3)
    start = columns - 1 if step < 0 else 0
    return draw.build.slice(x, (0, start), (rows, columns // abs(step)), (1, step))


def _softmax(draw: Drawing) -> int:
    build, x = draw.build, draw.tensor(2)
    y = build.unary("exp", build.binary("sub", x, draw.row("max", x)))
    return build.binary("div", y, draw.row("sum", y))


def _normalisation(draw: Drawing) -> int:
    build, x = draw.build, draw.tensor(2)
    y = build.binary("sub", x, draw.row("sum", x))
    square = draw.row("sum", build.binary("mul", y, y))
    return build.binary("div", y, build.unary("sqrt", square))


_OF_F32: dict[str, Pattern] = {
    "matmul": _matmul, "few rows": _matmul_of_few_rows, "biased matmul": _biased_matmul,
    "erf of matmul": _gelu, "batched": _batched_matmul, "transposed": _transposed_matmul,
    "conv": _conv, "conv again": _conv, "grouped": _grouped_conv, "depthwise": _depthwise,
    "planar": _planar, "pool": _pool, "pool again": _pool,
    "cheap": _cheap, "add": _addition, "chain": _chain,
    "exp": lambda draw: draw.build.unary("exp", draw.tensor(2)),
    "erf": lambda draw: draw.build.unary("erf", draw.tensor(2)),
    "turned": lambda draw: draw.build.transpose(draw.tensor(3), (0, 2, 1)),
    "swapped": lambda draw: draw.build.transpose(draw.tensor(3), (1, 0, 2)),
    "padded": lambda draw: draw.build.pad(draw.tensor(3), (0, 1, 1), (0, 1, 1)),
    "gathered": _gather, "picked": _picked,
    "sum": lambda draw: draw.build.reduce("sum", draw.tensor(2), (1,)),
    "column sum": lambda draw: draw.build.reduce("sum", draw.tensor(3), (1,)),
    "softmax": _softmax, "normalised": _normalisation, "winograd": _winograd,
    "attention": _attention,
    "recurrence": _recurrence, "scatter": _scatter, "first places": _first_places,
}  # fmt: skip
