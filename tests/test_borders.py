"""Borders of windows over what no load gives, or only in part, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType
from tests.test_windows import FUNCTIONS, check, draw
from tests.tiers import deep_but, seeds

DTYPES = [DType.F32, DType.F64, DType.I8, DType.I32]


def source(random: np.random.Generator, build: Builder, dtype: DType) -> int:
    """A tensor of rank 3: a constant, ramp or size that is broadcast, what data finds, or input."""
    shape = tuple(int(n) for n in random.integers(1, 8, 3))
    match random.choice(["constant", "iota", "extent", "gather", "input"]):
        case "constant":
            small = build.constant(np.full((1, 1, 1), int(random.integers(0, 4))), dtype)
        case "iota":
            small = build.cast(build.iota(shape, int(random.integers(3)), DType.I64), dtype)
        case "extent":
            small = build.reshape(build.cast(build.extent(shape[0]), dtype), (1, 1, 1))
        case "gather":
            table = build.constant(np.arange(1, 1 + 3 * shape[1]).reshape(3, shape[1], 1), dtype)
            small = build.gather(table, build.constant(random.integers(-3, 3, shape[:1])), 0)
        case _:
            small = build.input("x", dtype, [int(random.choice([1, n])) for n in shape])
    return build.broadcast(small, shape)


def moved(random: np.random.Generator, build: Builder, node: int) -> int:
    """The tensor after an op that computes, moves, pads or joins."""
    dtype, shape = build.type(node).dtype, [static(n) for n in build.type(node).shape]
    axis = int(random.integers(3))
    match random.choice(["cast", "add", "transpose", "pad", "concat", "slice", "reshape"]):
        case "cast":
            return build.cast(build.cast(node, DType.I16), dtype)
        case "add":
            return build.binary("add", node, node)
        case "transpose":
            return build.transpose(node, [int(n) for n in random.permutation(3)])
        case "pad":
            lo, hi = ([int(n) for n in random.integers(0, 3, 3)] for _ in range(2))
            return build.pad(node, lo, hi, int(random.integers(0, 3)))
        case "concat":
            ones = build.broadcast(build.constant(np.ones((1, 1, 1)), dtype), shape)
            return build.concat([node, ones] if random.random() < 0.5 else [ones, node], axis)
        case "slice":
            starts = [int(i == axis and n > 1) for i, n in enumerate(shape)]
            return build.slice(node, starts, [n - s for n, s in zip(shape, starts, strict=True)])
    return build.reshape(build.reshape(node, (int(np.prod(shape)),)), shape[1:] + shape[:1])


@pytest.mark.parametrize("seed", deep_but(seeds(4, 8), seeds(200, 8)))
@pytest.mark.parametrize("form", ["pool", "conv", "depthwise"])
def test_borders_of_what_no_load_gives(form: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    build = Builder()
    x = source(random, build, dtype)
    for _ in range(int(random.integers(3))):
        x = moved(random, build, x)
    shape = [static(n) for n in build.type(x).shape]
    axes = shape if form == "pool" else shape[1:2]
    lo, hi, size = ([int(n) for n in random.integers(0, 4, len(axes))] for _ in range(3))
    sizes = [min(n + 1, a + b + c) for n, a, b, c in zip(size, axes, lo, hi, strict=True)]
    f = FUNCTIONS[seed % 4] if random.random() < 0.3 else "sum"
    fill = int(random.integers(0, 3)) if random.random() < 0.7 else reduction_identity(f, dtype)
    window = build.window(dtype, sizes, None, None, lo, hi, fill)
    if form == "pool":
        result = build.pool(f, x, window)
    else:
        groups = 1 if form == "conv" else shape[2]
        weights = draw(random, DType.I32, (*sizes, shape[2] // groups, shape[2]))
        result = build.conv(x, build.constant(weights, dtype), window, groups)
    program = build.program({"y": result})
    extents = [map(static, program.nodes[index].type.shape) for index in program.inputs]
    drawn = dict.fromkeys("x"[: len(extents)], draw(random, dtype, tuple(*extents)))
    check(program, drawn, True, dtype is not DType.F32 or f != "prod")
