"""Rounding errors of long sums of f32: they hardly grow with how much is added.

Equal products are the worst case: each rounding of a single chain has the sign of the one before it
for as long as the sum has one exponent, and 30,000 of them are wrong in the fifth digit.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import satura
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import Array, DType

NEAR = 1e-5


def assert_is_near(program: Program, exact: float, **arguments: Array) -> None:
    for threads in (1, 2):
        found = satura.compile(program, threads=threads).run(arguments)["y"]
        np.testing.assert_allclose(np.asarray(found, np.float64), exact, rtol=NEAR)


@pytest.mark.parametrize("rows", [1, 9, 48])
@pytest.mark.parametrize("depth", [2561, 30_000])
def test_a_product_of_matrices(rows: int, depth: int) -> None:
    build = Builder()
    weights = build.constant(np.full((depth, 33), 0.3, np.float32))
    program = build.program(
        {"y": build.matmul(build.input("x", DType.F32, (rows, depth)), weights)}
    )
    x = np.full((rows, depth), 0.1, np.float32)
    assert_is_near(program, float(np.float32(0.1)) * float(np.float32(0.3)) * depth, x=x)


@pytest.mark.parametrize(("edge", "channels"), [(3, 2048), (21, 64)])
def test_a_convolution(edge: int, channels: int) -> None:
    build = Builder()
    shape = (1, edge + 2, edge + 2, channels)
    weights = build.constant(np.full((edge, edge, channels, 8), 0.3, np.float32))
    window = build.window(DType.F32, (edge, edge))
    program = build.program({"y": build.conv(build.input("x", DType.F32, shape), weights, window)})
    exact = float(np.float32(0.1)) * float(np.float32(0.3)) * edge * edge * channels
    assert_is_near(program, exact, x=np.full(shape, 0.1, np.float32))


@pytest.mark.parametrize("rows", [16, 64])
def test_attention(rows: int) -> None:
    build = Builder()
    shapes = {"q": (rows, 8), "k": (8, 16_384), "b": (rows, 16_384), "v": (16_384, 24)}
    operands = [build.input(name, DType.F32, shape) for name, shape in shapes.items()]
    program = build.program({"y": build.attention(*operands)})
    values = {"q": 0.0, "k": 1.0, "b": 0.0, "v": 0.7}
    given = {name: np.full(shapes[name], value, np.float32) for name, value in values.items()}
    assert_is_near(program, float(np.float32(0.7)), **given)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 100_000), (1,)), ((100_000,), (0,)), ((3, 100_000, 5), (1,)), ((100_000, 64), (0,)),
        ((2, 300, 300, 8), (1, 2)), ((2, 90_001, 7), (1,)),
    ],
)  # fmt: skip
def test_a_reduction(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    build = Builder()
    program = build.program({"y": build.reduce("sum", build.input("x", DType.F32, shape), axes)})
    exact = float(np.float32(0.1)) * prod(shape[axis] for axis in axes)
    assert_is_near(program, exact, x=np.full(shape, 0.1, np.float32))
