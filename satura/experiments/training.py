"""Training programs: small random programs of every form and element type, to time and learn from.

Each program has one op pattern at many random sizes, because a kernel serves all sizes: so few
kernels are compiled for many measurements. No model is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from satura.rewrite.ops.cells import Cell
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType

Random = np.random.Generator
Pattern = Callable[[Builder, Random, str, DType], int]
"""Adds one random instance, whose inputs are named after the text, and gives its result."""

PER_PATTERN = 8


def programs(seed: int = 0) -> Iterator[tuple[str, Program]]:
    """All training programs of a seed, and what each of them is about."""
    for number, (name, dtype, pattern) in enumerate(_patterns()):
        random = np.random.default_rng((seed, number))
        build = Builder()
        results = {f"y{i}": pattern(build, random, f"x{i}", dtype) for i in range(PER_PATTERN)}
        yield f"{name} {dtype.value}", build.program(results)


def _patterns() -> Iterator[tuple[str, DType, Pattern]]:
    for name, pattern in _OF_F32.items():
        yield name, DType.F32, pattern
    for dtype in (DType.F64, DType.F16, DType.I32):
        yield "matmul", dtype, _matmul
    for dtype in (DType.F64, DType.F16, DType.BF16, DType.I8, DType.U8, DType.I32, DType.I64):
        yield "cheap", dtype, _cheap
    for dtype in (DType.F64, DType.I32, DType.I64):
        yield "sum", dtype, _sum
    yield "exp", DType.F64, _dear
    yield "matmul of", DType.U8, _octets


def _size(random: Random, low: float, high: float) -> int:
    """A random size, all magnitudes alike."""
    return int(np.exp(random.uniform(np.log(low), np.log(high))))


def _constant(build: Builder, random: Random, shape: tuple[int, ...], dtype: DType) -> int:
    return build.constant(random.integers(-2, 3, shape).astype(dtype.numpy))


def _tensor(build: Builder, random: Random, name: str, dtype: DType, rank: int) -> int:
    """An input with a few hundred to a few million elements."""
    total, last = _size(random, 1e3, 3e6), _size(random, 8, 800)
    shape = [1] * (rank - 2) + [max(1, total // last), last]
    if rank == 3:
        shape[0] = _size(random, 2, 9)
        shape[1] = max(1, shape[1] // shape[0])
    return build.input(name, dtype, tuple(shape))


def _matmul(build: Builder, random: Random, name: str, dtype: DType) -> int:
    most = 400 if dtype in (DType.F32, DType.F16) else 80
    rows, depth, columns = (_size(random, low, 4 * most) for low in (1, 8, 4))
    x = build.input(name, dtype, (rows, depth))
    return build.matmul(x, _constant(build, random, (depth, columns), dtype))


def _biased_matmul(build: Builder, random: Random, name: str, dtype: DType) -> int:
    y = _matmul(build, random, name, dtype)
    shape = build.type(y).shape
    bias = _constant(build, random, (1, static(shape[1])), dtype)
    return build.unary("relu", build.binary("add", y, build.broadcast(bias, shape)))


def _gelu(build: Builder, random: Random, name: str, dtype: DType) -> int:
    y = _matmul(build, random, name, dtype)
    return build.binary("mul", y, build.unary("erf", y))


def _batched_matmul(build: Builder, random: Random, name: str, dtype: DType) -> int:
    batch, rows, depth = (_size(random, *limits) for limits in ((1, 100), (16, 200), (8, 128)))
    x = build.input(name, dtype, (batch, rows, depth))
    y = build.input(f"{name}_right", dtype, (batch, depth, _size(random, 16, 200)))
    return build.matmul(x, y)


def _transposed_matmul(build: Builder, random: Random, name: str, dtype: DType) -> int:
    batch, rows, depth = (_size(random, *limits) for limits in ((1, 100), (16, 200), (8, 128)))
    x = build.input(name, dtype, (batch, rows, depth))
    y = build.input(f"{name}_right", dtype, (batch, _size(random, 16, 200), depth))
    return build.matmul(x, build.transpose(y, (0, 2, 1)))


def _conv(build: Builder, random: Random, name: str, dtype: DType) -> int:
    taps = int(random.choice([1, 1, 3, 3, 5]))
    edge, inner = _size(random, 6, 80), _size(random, 3, 300 // taps)
    return _conv_of(build, random, name, dtype, taps, edge, inner, _size(random, 8, 300), 1)


def _grouped_conv(build: Builder, random: Random, name: str, dtype: DType) -> int:
    groups, inner = _size(random, 2, 16), int(random.choice([4, 8, 16, 32]))
    edge, outer = _size(random, 6, 60), inner * groups
    return _conv_of(build, random, name, dtype, 3, edge, inner * groups, outer, groups)


def _depthwise(build: Builder, random: Random, name: str, dtype: DType) -> int:
    taps, channels = int(random.choice([3, 3, 5, 7])), _size(random, 8, 600)
    edge = _size(random, 6, 60)
    return _conv_of(build, random, name, dtype, taps, edge, channels, channels, channels)


def _planar(build: Builder, random: Random, name: str, dtype: DType) -> int:
    taps, channels = int(random.choice([3, 3, 5, 7])), _size(random, 8, 600)
    edge = _size(random, 16, 60)
    x = build.transpose(build.input(name, dtype, (1, channels, edge, edge)), (0, 2, 3, 1))
    result = _conv_over(build, random, x, dtype, taps, channels, channels, channels)
    return build.transpose(result, (0, 3, 1, 2))


def _conv_of(
    build: Builder, random: Random, name: str, dtype: DType, taps: int, edge: int, inner: int,
    outer: int, groups: int,
) -> int:  # fmt: skip
    x = build.input(name, dtype, (1, edge, edge, inner))
    return _conv_over(build, random, x, dtype, taps, inner, outer, groups)


def _conv_over(
    build: Builder, random: Random, x: int, dtype: DType, taps: int, inner: int, outer: int,
    groups: int,
) -> int:  # fmt: skip
    weight = _constant(build, random, (taps, taps, inner // groups, outer), dtype)
    border, stride = taps // 2, int(random.choice([1, 1, 2]))
    window = build.window(
        dtype, (taps, taps), strides=(stride,) * 2, lo=(border,) * 2, hi=(border,) * 2
    )
    return build.conv(x, weight, window, groups)


def _winograd(build: Builder, random: Random, name: str, dtype: DType) -> int:
    edge, inner, outer = (_size(random, *limits) for limits in ((6, 80), (8, 200), (8, 200)))
    x = build.input(name, dtype, (1, edge, edge, inner))
    weight = _constant(build, random, (3, 3, inner, outer), dtype)
    return build.winograd(x, weight, build.window(dtype, (3, 3), lo=(1, 1), hi=(1, 1)))


def _octets(build: Builder, random: Random, name: str, dtype: DType) -> int:
    rows, depth, columns = (_size(random, *limits) for limits in ((1, 1600), (8, 800), (8, 800)))
    x = build.cast(build.input(name, dtype, (rows, depth)), DType.I32)
    weight = build.cast(_constant(build, random, (depth, columns), DType.I8), DType.I32)
    return build.matmul(x, weight)


def _recurrence(build: Builder, random: Random, name: str, dtype: DType) -> int:
    steps, batch, units = (_size(random, *limits) for limits in ((5, 200), (1, 16), (8, 300)))
    cell = Cell("rnn", (("tanh", 0.0, 0.0),))
    x = build.input(name, dtype, (steps, batch, units))
    weights = random.uniform(-1, 1, (1, units, units)) / units  # so that roundings fade away
    weight = build.constant(weights.astype(dtype.numpy))
    first, none = (
        build.constant(np.zeros(s, np.float32)) for s in ((1, 1, batch, units), (1, 0, units))
    )
    return build.recurrence(x, weight, first, none, build.constant(np.zeros(0, np.int64)), cell)


def _scatter(build: Builder, random: Random, name: str, dtype: DType) -> int:
    rows, width = _size(random, 10, 3000), _size(random, 8, 600)
    count = _size(random, 8, 2000)
    x = build.input(name, dtype, (rows, width))
    places = build.constant(random.integers(0, rows, count))
    return build.scatter(x, places, build.input(f"{name}_new", dtype, (count, width)), "sum")


def _first_places(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = build.input(name, dtype, (_size(random, 1, 300), _size(random, 30, 3000)))
    return build.first_places(x, _size(random, 1, 20))


def _pool(build: Builder, random: Random, name: str, dtype: DType) -> int:
    taps, edge, channels = int(random.choice([2, 3])), _size(random, 8, 80), _size(random, 8, 300)
    x = build.input(name, dtype, (1, edge, edge, channels))
    return build.pool("max", x, build.window(dtype, (1, taps, taps, 1), strides=(1, taps, taps, 1)))


def _cheap(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = _tensor(build, random, name, dtype, 2)
    y = build.input(f"{name}_right", dtype, build.type(x).shape)
    return build.binary("max", build.binary("add", x, y), build.binary("mul", x, y))


def _addition(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = _tensor(build, random, name, dtype, 2)
    return build.binary("add", x, build.input(f"{name}_right", dtype, build.type(x).shape))


def _chain(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = y = _tensor(build, random, name, dtype, 2)
    for _ in range(6):
        y = build.binary("max", build.binary("mul", y, x), build.binary("add", y, x))
    return y


def _dear(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.unary("exp", _tensor(build, random, name, dtype, 2))


def _erf(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.unary("erf", _tensor(build, random, name, dtype, 2))


def _transpose_inner(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.transpose(_tensor(build, random, name, dtype, 3), (0, 2, 1))


def _transpose_outer(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.transpose(_tensor(build, random, name, dtype, 3), (1, 0, 2))


def _padding(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = _tensor(build, random, name, dtype, 3)
    return build.pad(x, (0, 1, 1), (0, 1, 1))


def _gather(build: Builder, random: Random, name: str, dtype: DType) -> int:
    table = _constant(build, random, (_size(random, 50, 3000), _size(random, 8, 800)), dtype)
    return build.gather(table, build.input(name, DType.I64, (_size(random, 8, 2000),)), 0)


def _sum(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.reduce("sum", _tensor(build, random, name, dtype, 2), (1,))


def _columns(build: Builder, random: Random, name: str, dtype: DType) -> int:
    return build.reduce("sum", _tensor(build, random, name, dtype, 3), (1,))


def _softmax(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = _tensor(build, random, name, dtype, 2)
    y = build.unary("exp", build.binary("sub", x, _row(build, "max", x)))
    return build.binary("div", y, _row(build, "sum", y))


def _normalisation(build: Builder, random: Random, name: str, dtype: DType) -> int:
    x = _tensor(build, random, name, dtype, 2)
    y = build.binary("sub", x, _row(build, "sum", x))
    square = _row(build, "sum", build.binary("mul", y, y))
    return build.binary("div", y, build.unary("sqrt", square))


def _row(build: Builder, function: str, x: int) -> int:
    """A reduction of the rows of x, as wide as x again."""
    shape = build.type(x).shape
    return build.broadcast(build.reshape(build.reduce(function, x, (1,)), (shape[0], 1)), shape)


_OF_F32: dict[str, Pattern] = {
    "matmul": _matmul, "biased matmul": _biased_matmul, "erf of matmul": _gelu, "batched":
    _batched_matmul, "transposed": _transposed_matmul, "conv": _conv, "conv again": _conv,
    "grouped": _grouped_conv, "depthwise": _depthwise, "planar": _planar, "pool": _pool,
    "cheap": _cheap, "add": _addition, "chain": _chain, "exp": _dear, "erf": _erf,
    "turned": _transpose_inner, "swapped": _transpose_outer, "padded": _padding,
    "gathered": _gather, "sum": _sum, "column sum": _columns, "softmax": _softmax,
    "normalised": _normalisation, "winograd": _winograd, "recurrence": _recurrence,
    "scatter": _scatter, "first places": _first_places,
}  # fmt: skip
