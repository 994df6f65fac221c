"""Convolutions of images whose operand is computed, as kernels, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.backend.emit.images import serves_images
from satura.backend.lower.planes import planes
from satura.backend.plan.compiled import compile_schedule
from satura.backend.target import host_target
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.dims import static, symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests import guarded_memory
from tests.random_programs import compare
from tests.test_windows import draw
from tests.tiers import deep_but, seeds
from tests.trivial_scheduler import one_dispatch

CHANNELS = (1, 3, 8, 15, 16, 17, 40, 64, 100, 130)
Case = tuple[Program, dict[str, Array]]


def operand(build: Builder, random: np.random.Generator, dtype: DType, x: int) -> int:
    """What is computed of x: of one element, of one and a number per channel, of padded ones, or
    nothing."""
    shape = build.type(x).shape
    if build.type(x).dtype is not dtype:
        x = build.cast(x, dtype)
    ones = (1,) * (len(shape) - 1)
    what = random.integers(0, 5)
    if what == 0:
        return build.unary("relu", x)
    if what == 1:
        scale = build.constant(draw(random, dtype, (*ones, static(shape[-1]))))
        return build.binary("mul", x, build.broadcast(scale, shape))
    if what == 2:
        other = build.input("other", dtype, (*shape[:-2], 1, shape[-1]))
        return build.binary("sub", x, build.broadcast(other, shape))
    if what == 3:
        return x
    pads = [0, *random.integers(0, 3, len(shape) - 2).tolist(), 0]
    return build.pad(build.unary("neg", x), pads, pads, float(random.choice([0, 2, np.inf])))


def case(seed: int) -> Case:
    """A random convolution in one to three dimensions, whose window moves along at most two."""
    random = np.random.default_rng(seed)
    dtype = [DType.F32, DType.F32, DType.F64, DType.F16, DType.BF16][seed % 5]
    source = [dtype, DType.U8, DType.I8, DType.I32][int(random.integers(0, 4))]
    rank = int(random.integers(1, 4))
    channels = int(random.choice(CHANNELS))
    most = {1: 60, 2: 30, 3: 8}[rank]
    extents = [int(n) for n in random.integers(1, most, rank)]
    build = Builder()
    shape = (int(random.integers(1, 3)), *extents, channels)
    x = build.input("x", source, shape)
    seen = operand(build, random, dtype, x)
    sizes = [int(n) for n in random.integers(1, 6, rank)]
    strides, dilations = ([int(n) for n in random.integers(1, 4, rank)] for _ in range(2))
    lo, hi = ([int(n) for n in random.integers(0, 4, rank)] for _ in range(2))
    for axis in range(rank):
        extent = static(build.type(seen).shape[axis + 1])
        if axis < rank - 2:
            sizes[axis] = strides[axis] = 1
            lo[axis] = hi[axis] = 0
        while (sizes[axis] - 1) * dilations[axis] >= extent + lo[axis] + hi[axis]:
            sizes[axis] -= 1
    window = build.window(dtype, sizes, strides, dilations, lo, hi, int(random.integers(0, 2)))
    weights = draw(random, dtype, (*sizes, 1, channels))
    w = build.constant(weights) if random.random() < 0.7 else build.input("w", dtype, weights.shape)
    result = build.conv(seen, w, window, channels)
    if random.random() < 0.5:
        result = build.unary("relu", result)
    program = build.program({"y": result})
    arguments: dict[str, Array] = {}
    for index in program.inputs:
        node = program.nodes[index]
        known = node.input_name == "w"
        arguments[node.input_name] = weights if known else draw(random, node.type.dtype, of(node))
    return program, arguments


def of(node: Node) -> tuple[int, ...]:
    """The shape of a node's result."""
    return tuple(map(static, node.type.shape))


def is_of_images(program: Program) -> bool:
    schedule = one_dispatch(program)
    found = planes(schedule, schedule.dispatches[0])
    return found is not None and found.is_of_images and serves_images(found)


@pytest.mark.parametrize("seed", deep_but(seeds(25, 2000), seeds(300, 2000)))
def test_convolutions_of_what_is_computed(seed: int) -> None:
    """On one thread and on three, whose rows are cut."""
    program, arguments = case(seed)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)["y"]
    for threads in (1, 3):
        got = compile_schedule(one_dispatch(program), threads).run(arguments)["y"]
        assert compare(expected, got, True) is None, program.python()


@pytest.mark.parametrize("stride", [1, 2])
def test_many_taps_of_elements_as_they_are(stride: int) -> None:
    """Their weights fit the registers of some CPUs, which then sum them so."""
    build, random = Builder(), np.random.default_rng(stride)
    x = build.input("x", DType.F32, (2, 19, 23, 40))
    window = build.window(DType.F32, (5, 5), (stride, stride), (1, 1), (2, 2), (2, 2), 0)
    weights = build.constant(draw(random, DType.F32, (5, 5, 1, 40)))
    program = build.program({"y": build.conv(x, weights, window, 40)})
    values = draw(random, DType.F32, (2, 19, 23, 40))
    with np.errstate(all="ignore"):
        expected = interpret(program, {"x": values})["y"]
    got = compile_schedule(one_dispatch(program), 2).run({"x": values})["y"]
    assert compare(expected, got, True) is None
    assert is_of_images(program) == (host_target().registers == 32)


def test_most_cases_are_of_images() -> None:
    assert sum(is_of_images(case(seed)[0]) for seed in range(40)) > 25


@pytest.mark.parametrize("seed", deep_but(seeds(2, 40), seeds(20, 40)))
def test_kernels_stay_inside_their_operands(seed: int) -> None:
    program, arguments = case(seed)
    with np.errstate(all="ignore"):
        guarded_memory.check(program, arguments, {"y": True})


@pytest.mark.parametrize("edges", [(1, 1), (2, 9), (3, 4), (16, 5), (40, 33)])
def test_images_of_any_size(edges: tuple[int, int]) -> None:
    """One kernel for all sizes, some of which have fewer results than are summed at a time."""
    program = of_open_sizes()
    compiled = satura.compile(program, threads=2, rules="none")
    random = np.random.default_rng(edges)
    x = random.integers(0, 256, (2, *edges, 40)).astype(np.uint8)
    assert compare(interpret(program, {"x": x})["y"], compiled.run({"x": x})["y"], True) is None


def of_open_sizes() -> Program:
    build = Builder()
    x = build.input("x", DType.U8, (2, symbol("h"), symbol("w"), 40))
    window = build.window(DType.F32, (3, 3), (1, 2), (1, 1), (1, 1), (1, 1), 0)
    weights = np.random.default_rng(0).integers(-9, 10, (3, 3, 1, 40)).astype(np.float32)
    return build.program(
        {"y": build.conv(build.cast(x, DType.F32), build.constant(weights), window, 40)}
    )
