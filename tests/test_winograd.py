"""Winograd's convolutions against direct ones: shapes, special values, errors, and where extraction
chooses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from satura.backend.contraction import problem
from satura.backend.contraction.tile import Tile
from satura.backend.contraction.winograd import (
    PARAMETERS,
    WinogradCall,
    packed_taps,
    winograd_plan,
)  # fmt: skip
from satura.backend.plan.compiled import compile_schedule
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch_per_node

Floats = NDArray[np.float32]
Border = tuple[tuple[int, int], tuple[int, int]]


def drawn(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def convolution(
    op: str, shape: tuple[int, ...], w: Floats, border: Border, fill: float = 0.0
) -> Program:
    build = Builder()
    x = build.input("x", DType.F32, shape)
    window = build.window(DType.F32, (3, 3), None, None, border[0], border[1], fill)
    weight = build.constant(w, DType.F32)
    if op == "winograd":
        return build.program({"y": build.winograd(x, weight, window)})
    return build.program({"y": build.conv(x, weight, window)})


def computed(program: Program, x: Floats, threads: int = 1) -> Floats:
    compiled = compile_schedule(one_dispatch_per_node(program), threads)
    return np.asarray(compiled.run({"x": x})["y"], np.float32)


def wide(values: Array) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)


def scheduled(program: Program) -> Schedule:
    return best_schedule(saturate(program, DEFAULT))


def exact(x: Floats, w: Floats, border: Border, fill: float = 0.0) -> NDArray[np.float64]:
    """The convolution in f64."""
    build = Builder()
    window = build.window(DType.F64, (3, 3), None, None, border[0], border[1], fill)
    given_ = build.input("x", DType.F64, x.shape)
    weight = build.constant(w.astype(np.float64), DType.F64)
    program = build.program({"y": build.conv(given_, weight, window)})
    return np.asarray(interpret(program, {"x": x.astype(np.float64)})["y"], np.float64)


def check(x: Floats, w: Floats, border: Border, fill: float, threads: int) -> None:
    program = convolution("winograd", x.shape, w, border, fill)
    expected = exact(x, w, border, fill)
    bound = 2e-6 * (1 + abs(expected).max(initial=0)) * (1 + x.shape[-1]) ** 0.5
    for found in (computed(program, x, threads), interpret(program, {"x": x})["y"]):
        np.testing.assert_allclose(wide(found), expected, rtol=0, atol=bound)


edges = st.tuples(st.integers(0, 3), st.integers(0, 3))


@settings(max_examples=settings().max_examples // 5)  # each is a compilation
@given(
    st.integers(0, 3), st.tuples(st.integers(1, 9), st.integers(1, 20)),
    st.integers(1, 40) | st.integers(64, 300), st.sampled_from([1, 7, 16, 33, 48, 70, 130]),
    edges, edges, st.sampled_from([0.0, -1.5, 3.0]), st.integers(1, 3),
)  # fmt: skip
@example(1, (2, 3), 1, 1, (1, 1), (0, 0), 0.0, 1)
@example(2, (30, 31), 35, 130, (1, 1), (1, 1), 0.0, 2)
@example(1, (4, 24), 200, 48, (1, 1), (1, 1), 0.0, 2)  # two runs of 6 tiles, in steps of depth
@example(1, (6, 6), 300, 70, (1, 1), (1, 1), 0.0, 1)
@example(1, (14, 14), 64, 130, (1, 1), (1, 1), 0.0, 64)  # a share for most of them
def test_shapes(
    n: int, space: tuple[int, int], channels: int, columns: int, lo: tuple[int, int],
    hi: tuple[int, int], fill: float, threads: int,
) -> None:  # fmt: skip
    first, second = (max(e, 3 - a - b) for e, a, b in zip(space, lo, hi, strict=True))
    x = drawn(n, first, second, channels)
    check(x, drawn(3, 3, channels, columns, seed=1), (lo, hi), fill, threads)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    x, w = drawn(2, 27, 30, 48), drawn(3, 3, 48, 200, seed=1)
    program = convolution("winograd", x.shape, w, ((1, 1), (1, 1)))
    results = [computed(program, x, threads) for threads in (1, 2, 2)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], results[2])


@pytest.mark.parametrize("channel", deep_but([149], [0, 77, 149]))
def test_results_of_one_channel_are_those_of_the_interpreter(channel: int) -> None:
    """Where all others are 0 the order of sums does not matter: transforms must round alike."""
    x, w = np.zeros((1, 27, 30, 150), np.float32), drawn(3, 3, 150, 70, seed=1)
    x[..., channel] = drawn(1, 27, 30)
    program = convolution("winograd", x.shape, w, ((1, 1), (1, 0)))
    expected = interpret(program, {"x": x})["y"]
    for threads in (1, 3):
        np.testing.assert_array_equal(computed(program, x, threads), expected)


def test_constants_are_no_larger_than_the_weights() -> None:
    program = convolution("winograd", (1, 6, 6, 20), drawn(3, 3, 20, 64), ((1, 1), (1, 1)))
    compiled = compile_schedule(one_dispatch_per_node(program), 1)
    assert compiled.plans.store.size == 4 * 3 * 3 * 20 * 64


SPECIALS = (np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -0.0)


@pytest.mark.parametrize("fill", [0.0, np.inf, np.nan])
@pytest.mark.parametrize("seed", deep_but([0], range(3)))
def test_special_values_stay_where_they_are_seen(seed: int, fill: float) -> None:
    random = np.random.default_rng(seed)
    x, w = drawn(2, 11, 12, 20), drawn(3, 3, 20, 37, seed=1) / np.float32(16)
    w[random.random(w.shape) < 0.2] = 0  # times infinity: NaN
    for value in SPECIALS:
        place = tuple(random.integers(0, extent) for extent in x.shape)
        x[place] = value
    border = ((1, 0), (1, 2))
    found = computed(convolution("winograd", x.shape, w, border, fill), x)
    with np.errstate(all="ignore"):
        direct = computed(convolution("conv", x.shape, w, border, fill), x)
        expected = interpret(convolution("winograd", x.shape, w, border, fill), {"x": x})["y"]
    odd = ~np.isfinite(direct)
    assert odd.any()
    assert not odd.all()
    np.testing.assert_array_equal(found[odd], direct[odd])
    np.testing.assert_array_equal(expected[odd], direct[odd])
    huge = ~odd & (abs(direct) > 1e33)
    assert huge.any()
    np.testing.assert_allclose(found[huge], direct[huge], rtol=1e-5)
    np.testing.assert_allclose(found[~odd & ~huge], direct[~odd & ~huge], atol=1e-5)


def test_sums_that_overflow_in_a_tile_but_not_in_a_result() -> None:
    x = np.full((1, 6, 6, 2), 2e38, np.float32)
    w = np.zeros((3, 3, 2, 5), np.float32)
    w[1, 1, 0] = 0.5
    found = computed(convolution("winograd", x.shape, w, ((1, 1), (1, 1))), x)
    np.testing.assert_array_equal(found, np.full((1, 6, 6, 5), 1e38, np.float32))


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_weights_that_cannot_be_transformed(value: float) -> None:
    x, w = drawn(1, 6, 6, 4), drawn(3, 3, 4, 5, seed=1)
    w[1, 2, 3, 4] = value
    border = ((1, 1), (1, 1))
    found = computed(convolution("winograd", x.shape, w, border), x)
    np.testing.assert_array_equal(found, computed(convolution("conv", x.shape, w, border), x))


@pytest.mark.parametrize(
    "case",
    deep_but([(28, 64, 64, False)], [
        (28, 64, 64, False), (28, 64, 64, True), (14, 256, 96, False), (14, 256, 96, True),
    ]),
)  # fmt: skip
def test_errors_are_those_of_a_plain_convolution(case: tuple[int, int, int, bool]) -> None:
    """Against f64; `positive` as after a relu."""
    space, channels, columns, positive = case
    x, w = drawn(1, space, space, channels), drawn(3, 3, channels, columns, seed=1)
    x = np.maximum(x, 0) if positive else x
    border = ((1, 1), (1, 1))
    expected = exact(x, w, border)
    with patch.object(problem, "multiplies_in_parts", lambda *_: False):  # whose errors are less
        results = [computed(convolution(op, x.shape, w, border), x) for op in ("winograd", "conv")]
    errors = [float(np.sqrt(np.mean((result - expected) ** 2))) for result in results]
    assert errors[0] <= 1.1 * errors[1]


@pytest.mark.deep
def test_what_follows_a_convolution_is_computed_with_it() -> None:
    """A residual, an activation, a transposed result, and a concat that two write into."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 15, 14, 48))
    window = build.window(DType.F32, (3, 3), None, None, (1, 1), (1, 1))

    def layer(source: int, inner: int, channels: int) -> int:
        weight = drawn(3, 3, inner, channels) / np.float32((9 * inner) ** 0.5)
        found = build.conv(source, build.constant(weight, DType.F32), window)
        bias = build.constant(drawn(1, 1, 1, channels, seed=1), DType.F32)
        return build.binary("add", found, build.broadcast(bias, (1, 15, 14, channels)))

    first = build.unary("relu", layer(x, 48, 32))
    both = build.concat([x, first], 3)
    second = build.unary("tanh", layer(both, 80, 64))
    third = build.unary("relu", build.binary("add", layer(second, 64, 64), second))
    program = build.program({
        "dense": build.concat([both, second], 3), "residual": third,
        "turned": build.transpose(layer(third, 64, 40), (0, 3, 1, 2)),
    })  # fmt: skip
    chosen = scheduled(program)
    kinds = [node.op.name for node in chosen.program.nodes]
    assert kinds.count("winograd") == 4
    assert len(chosen.dispatches) <= 6
    given_ = {"x": drawn(1, 15, 14, 48)}
    expected = interpret(program, given_)
    for threads in (1, 2):
        found = compile_schedule(chosen, threads).run(given_)
        for name, value in expected.items():
            np.testing.assert_allclose(wide(found[name]), wide(value), atol=2e-5)


@pytest.mark.deep
def test_sizes_that_only_calls_know() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("n"), symbol("h"), 20, 32))
    weight = build.constant(drawn(3, 3, 32, 40, seed=1), DType.F32)
    product = build.conv(x, weight, build.window(DType.F32, (3, 3), None, None, (2, 1), (2, 1)))
    program = build.program({"y": build.unary("relu", product)})
    chosen = scheduled(program)
    assert "winograd" in [node.op.name for node in chosen.program.nodes]
    compiled = compile_schedule(chosen, 2)
    for n, height in ((1, 7), (3, 30), (0, 4), (2, 1), (2, 0)):
        given_ = {"x": drawn(n, height, 20, 32)}
        found, expected = compiled.run(given_)["y"], interpret(program, given_)["y"]
        np.testing.assert_allclose(wide(found), wide(expected), atol=1e-4)


@pytest.mark.parametrize(
    ("space", "channels", "columns", "is_chosen"),
    [
        (56, 64, 64, True), (14, 256, 256, True), (7, 512, 512, True), (64, 160, 32, True),
        (56, 32, 32, True), (112, 3, 32, False), (112, 8, 8, False), (2, 512, 512, False),
        (1, 64, 64, False),
    ],
)  # fmt: skip
def test_extraction_chooses_it_where_it_pays(
    space: int, channels: int, columns: int, is_chosen: bool
) -> None:
    """Few channels cost more to transform than they save, and so do weights for few tiles."""
    weight = np.ones((3, 3, channels, columns), np.float32)
    program = convolution("conv", (1, space, space, channels), weight, ((1, 1), (1, 1)))
    kinds = [node.op.name for node in scheduled(program).program.nodes]
    assert ("winograd" in kinds) == is_chosen


def test_exact_laws_leave_convolutions_alone() -> None:
    program = convolution("conv", (1, 56, 56, 64), drawn(3, 3, 64, 64), ((1, 1), (1, 1)))
    schedule = best_schedule(saturate(program, DEFAULT.exact))
    assert "winograd" not in [node.op.name for node in schedule.program.nodes]


NARROW = """
import numpy as np
from satura.backend.target import host_target
from tests.test_winograd import check, drawn

for channels, columns in ((3, 40), (21, 5)):
    weight = drawn(3, 3, channels, columns, seed=1)
    check(drawn(1, 9, 10, channels), weight, ((1, 1), (0, 2)), 0.5, 2)
print(host_target().lanes)
"""


@pytest.mark.parametrize("vector_bytes", deep_but((), [16, 32]))
def test_narrower_vectors(vector_bytes: int, tmp_path: Path) -> None:
    variables = {"SATURA_VECTOR_BYTES": str(vector_bytes), "SATURA_CACHE": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", NARROW], capture_output=True, text=True, check=True,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert run.stdout.split() == [str(vector_bytes // 4)]


def test_the_last_panel_of_taps_is_filled_up() -> None:
    weight = drawn(3, 3, 5, 150)
    packed = packed_taps(weight, 16).transpose(1, 2, 3, 0, 4).reshape(3, 3, 5, 160)
    np.testing.assert_array_equal(packed[..., :150], weight)
    assert not packed[..., 150:].any()


def shares(space: int, channels: int, threads: int) -> tuple[int, int, int]:
    """The blocks, panels and tiles of a convolution whose result is as large as its operand."""
    call = WinogradCall(
        0, 0, 0, 1, (space, space), (space, space), (1, 1), (0, 0, 0), channels, channels,
    )  # fmt: skip
    arguments, _ = winograd_plan(Tile((6, 5), 4), call, threads)
    values = dict(zip(PARAMETERS, arguments, strict=True))
    blocks, panels, tiles = (values[name] for name in ("blocks", "panels", "tiles"))
    assert isinstance(blocks, int) and isinstance(panels, int) and isinstance(tiles, int)
    return blocks, panels, tiles


@pytest.mark.parametrize(("space", "channels"), [(56, 64), (28, 128)])
def test_many_threads_have_equal_shares(space: int, channels: int) -> None:
    blocks, panels, tiles = shares(space, channels, 64)
    share = -(-panels * blocks // 64) * -(-tiles // blocks)
    assert panels * tiles >= 40 * share


def test_blocks_are_large_where_each_transforms_all_weights() -> None:
    """56² pixels are 784 tiles: of 128 channels more of them are in a block than of 64."""
    assert shares(56, 128, 1)[0] < shares(56, 16, 1)[0]
