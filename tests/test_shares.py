"""Tiles that are chosen for what threads share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satura.backend.contraction.shares import row_blocks, share_cycles, tile_for_threads
from satura.backend.contraction.spec import ContractionSpec
from satura.backend.contraction.tile import Products, choose_tile, lanes_of
from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch_per_node

SPEC = ContractionSpec(0, (False,), choose_tile(None, 64))
CYCLES = partial(SPEC.cycles, 512)

sizes = st.integers(1, 500)


@given(sizes, sizes, st.integers(1, 20), st.integers(1, 64))
def test_no_other_tile_takes_longer(rows: int, columns: int, products: int, threads: int) -> None:
    tile = choose_tile(rows, columns)
    chosen = tile_for_threads(tile, rows, columns, products, threads, CYCLES)
    before, after = (
        share_cycles(each, rows, columns, products, threads, CYCLES) for each in (tile, chosen)
    )
    assert after <= before
    if threads == 1:
        assert chosen == tile


def test_many_threads_share_a_small_product_evenly() -> None:
    """Where the tile for all rows would compute rows twice, or leave threads without a unit."""
    rows, columns, threads = 49, 32 * lanes_of(Products.F32), 64
    tile = choose_tile(rows, columns)
    chosen = tile_for_threads(tile, rows, columns, 1, threads, CYCLES)
    before, after = (
        share_cycles(each, rows, columns, 1, threads, CYCLES) for each in (tile, chosen)
    )
    assert after < 0.95 * before


@given(
    sizes, st.integers(0, 9), st.integers(0, 20), st.integers(1, 64), sizes, st.integers(1, 12),
    st.integers(1, 9), sizes,
)  # fmt: skip
def test_blocks_have_rows_that_fit(
    rows: int, products: int, panels: int, threads: int, fits: int, tallest: int, taps: int,
    lines: int,
) -> None:  # fmt: skip
    blocks = row_blocks(rows, products, panels, threads, fits, tallest, taps, lines, 2, 16)
    assert blocks >= 1 and -(-rows // blocks) <= fits


@pytest.mark.parametrize("rows, panels, depth", [(196, 8, 64), (784, 2, 192), (3136, 3, 24)])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_keep_to_their_rows(rows: int, panels: int, depth: int, threads: int) -> None:
    """So that what comes before and after finds them in the same cache."""
    blocks = row_blocks(rows, 1, panels, threads, 480, 12, 1, depth, 3, 16)
    assert blocks % threads == 0


def test_threads_share_the_weights_that_outweigh_rows() -> None:
    assert row_blocks(49, 1, 20, 2, 480, 8, 1, 960, 3, 16) == 1


@pytest.mark.parametrize("threads", deep_but([64], [3, 17, 64]))
@settings(max_examples=settings().max_examples // 10)  # each is a compilation
@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 140), st.booleans())
def test_products_of_many_threads(
    threads: int, rows: int, depth: int, columns: int, is_constant: bool
) -> None:
    random = np.random.default_rng(rows)
    x = random.normal(size=(rows, depth)).astype(np.float32)
    w = random.normal(size=(depth, columns)).astype(np.float32)
    build = Builder()
    arrays = {"x": x} if is_constant else {"x": x, "w": w}
    left = build.input("x", DType.F32, x.shape)
    right = build.constant(w) if is_constant else build.input("w", DType.F32, w.shape)
    program = build.program({"y": build.matmul(left, right)})
    found = compile_schedule(one_dispatch_per_node(program), threads).run(arrays)["y"]
    found, expected = (
        np.asarray(each, np.float64) for each in (found, interpret(program, arrays)["y"])
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * depth)
