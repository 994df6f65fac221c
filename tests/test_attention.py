"""Attention without its scores as a tensor: shapes, views, special values, and where it pays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from satura.backend.plan.compiled import compile_schedule
from satura.pipeline.stages import best_schedule, saturate
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT, EXACT
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch_per_node

Floats = NDArray[np.float32]
Drawn = dict[str, Floats]

BIASES = {  # of batch, queries and keys: which have one for all
    "of each score": (False, False, False), "of keys": (True, True, True),
    "of queries": (False, False, True), "of a batch": (False, True, False),
}  # fmt: skip


def bias_shape(kind: str, batch: tuple[int, ...], rows: int, keys: int) -> tuple[int, ...]:
    no_batch, no_rows, no_keys = BIASES[kind]
    if kind == "of keys":
        return (*(1 for _ in batch), 1, keys)
    return (
        *(1 if no_batch else n for n in batch), 1 if no_rows else rows, 1 if no_keys else keys
    )  # fmt: skip


def drawn(
    batch: tuple[int, ...], rows: int, keys: int, depth: int, columns: int, kind: str, seed: int = 0
) -> Drawn:
    random = np.random.default_rng(seed)
    shapes = {
        "q": (*batch, rows, depth), "k": (*batch, depth, keys),
        "b": bias_shape(kind, batch, rows, keys), "v": (*batch, keys, columns),
    }  # fmt: skip
    return {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def attention_of(given_: Drawn) -> Program:
    build = Builder()
    q, k, b, v = (build.input(name, DType.F32, x.shape) for name, x in given_.items())
    scores = (*given_["q"].shape[:-1], given_["k"].shape[-1])
    return build.program({"y": build.attention(q, k, build.broadcast(b, scores), v)})


def computed(schedule: Schedule, given_: Drawn, threads: int = 1) -> NDArray[np.float64]:
    return np.asarray(compile_schedule(schedule, threads).run(given_)["y"], np.float64)


def interpreted(program: Program, given_: Drawn) -> NDArray[np.float64]:
    return np.asarray(interpret(program, given_)["y"], np.float64)


def exact(given_: Drawn) -> NDArray[np.float64]:
    """The attention in f64."""
    q, k, b, v = (x.astype(np.float64) for x in given_.values())
    with np.errstate(all="ignore"):
        scores = q @ k + b
        if scores.shape[-1] == 0:
            return np.zeros((*q.shape[:-1], v.shape[-1]))
        grown = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(grown / grown.sum(-1, keepdims=True) @ v)


def fused(program: Program) -> Schedule:
    """All of the program's layout ops in the dispatch of its attention, whatever that costs."""
    return best_schedule(saturate(program, DEFAULT))


@settings(max_examples=settings().max_examples // 5)  # each is a compilation
@given(
    st.sampled_from([(), (1,), (3,), (2, 3)]), st.integers(1, 70) | st.just(400),
    st.integers(1, 70) | st.sampled_from([300, 1000]), st.integers(1, 40), st.integers(1, 70),
    st.sampled_from(sorted(BIASES)), st.integers(1, 3),
)  # fmt: skip
@example((2,), 130, 5000, 8, 20, "of keys", 2)  # more keys than a piece has
@example((), 1, 1, 1, 1, "of each score", 1)
@example((3,), 7, 0, 4, 5, "of a batch", 1)
@example((2,), 5, 9, 0, 3, "of queries", 2)
@example((), 400, 8, 4, 5, "of each score", 2)  # more queries than a block has
def test_shapes(
    batch: tuple[int, ...], rows: int, keys: int, depth: int, columns: int, kind: str, threads: int
) -> None:
    values = drawn(batch, rows, keys, depth, columns, kind)
    program, expected = attention_of(values), exact(values)
    for found in (
        computed(fused(program), values, threads), interpreted(program, values),
        computed(one_dispatch_per_node(program), values, threads),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def heads(turned_keys: bool, stacked: bool) -> tuple[Program, Drawn]:
    """Attention of heads that lie side by side, as projections leave them; the mask is of keys."""
    build, random = Builder(), np.random.default_rng(0)
    n, rows, count, depth = 2, 40, 3, 8
    width = count * depth
    parts, arrays = [], {}
    if stacked:
        x = build.input("x", DType.F32, (n, rows, 3 * width))
        arrays["x"] = random.normal(size=(n, rows, 3 * width)).astype(np.float32)
        parts = [build.slice(x, (0, 0, at * width), (n, rows, width)) for at in range(3)]
    for name in "" if stacked else "qkv":
        parts.append(build.input(name, DType.F32, (n, rows, width)))
        arrays[name] = random.normal(size=(n, rows, width)).astype(np.float32)
    q, k, v = (
        build.transpose(build.reshape(part, (n, rows, count, depth)), (0, 2, 1, 3))
        for part in parts
    )
    k = build.transpose(k, (0, 1, 3, 2))
    if turned_keys:  # by way of an op that stores them so
        k = build.unary("neg", k)
    mask = build.input("m", DType.F32, (n, 1, 1, rows))
    arrays["m"] = np.where(random.random((n, 1, 1, rows)) < 0.3, -1e9, 0).astype(np.float32)
    y = build.attention(q, k, build.broadcast(mask, (n, count, rows, rows)), v)
    y = build.reshape(build.transpose(y, (0, 2, 1, 3)), (n, rows, width))
    return build.program({"y": build.unary("relu", y)}), arrays


@pytest.mark.parametrize("turned_keys", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize("stacked", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_heads_are_read_and_stored_where_they_lie(turned_keys: bool, stacked: bool) -> None:
    program, arrays = heads(turned_keys, stacked)
    schedule = fused(program)
    found = statistics(schedule)
    assert (found["dispatch-count"], found["copy-count"]) == (1 + turned_keys, 0)
    expected = interpreted(program, arrays)
    for threads in (1, 3):
        np.testing.assert_allclose(computed(schedule, arrays, threads), expected, atol=2e-6)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    values = drawn((3,), 200, 700, 24, 40, "of each score")
    schedule = fused(attention_of(values))
    results = [computed(schedule, values, threads) for threads in (1, 2, 7)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("value", deep_but([np.inf], [np.nan, np.inf, -np.inf, 3e38]))
@pytest.mark.parametrize("name", ["q", "k", "b", "v"])
def test_special_values_are_those_of_the_interpreter(name: str, value: float) -> None:
    """In the rows that see them, and in no others."""
    values = drawn((2,), 9, 37, 5, 6, "of each score")
    values[name][1, 3, 2] = value
    program = attention_of(values)
    expected = interpreted(program, values)
    assert np.isfinite(expected[0]).all()
    np.testing.assert_allclose(computed(fused(program), values), expected, rtol=1e-5, atol=2e-5)


def test_a_row_without_any_key_is_not_a_number() -> None:
    values = drawn((), 4, 20, 5, 6, "of each score")
    values["b"][1] = -np.inf
    found = computed(fused(attention_of(values)), values)
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2, 3]]).all()


def softmax_of(rows: int, keys: int, biased: bool) -> Program:
    """Attention as exporters write it, of 8 heads."""
    build = Builder()
    q = build.input("q", DType.F32, (8, rows, 64))
    k, v = (build.input(name, DType.F32, (8, keys, 64)) for name in "kv")
    scores = build.matmul(q, build.transpose(k, (0, 2, 1)))
    shape = (8, rows, keys)
    scale = build.broadcast(build.constant([[[0.125]]], DType.F32), shape)
    scores = build.binary("mul", scores, scale)
    if biased:
        mask = build.input("m", DType.F32, (1, 1, keys))
        scores = build.binary("add", scores, build.broadcast(mask, shape))
    largest = build.broadcast(build.reduce("max", scores, (2,)), shape)
    grown = build.unary("exp", build.binary("sub", scores, largest))
    total = build.broadcast(build.reduce("sum", grown, (2,)), shape)
    return build.program({"y": build.matmul(build.binary("div", grown, total), v)})


def ops_of(schedule: Schedule) -> set[str]:
    nodes = schedule.program.nodes
    return {nodes[at].op.name for each in schedule.dispatches for at in each.nodes}


@pytest.mark.parametrize("biased", [False, True])
def test_scores_of_long_sequences_are_not_stored(biased: bool) -> None:
    """Those of short ones are, and all are where sums may not be rounded in another way."""
    long, short = (softmax_of(size, size, biased) for size in (1024, 16))
    schedule = best_schedule(saturate(long, DEFAULT))
    assert "attention" in ops_of(schedule)
    stored = [schedule.program.nodes[each.root].type for each in schedule.dispatches]
    assert all(type_.shape[-2:] != (1024, 1024) for type_ in stored)
    assert "attention" not in ops_of(best_schedule(saturate(short, DEFAULT)))
    assert "attention" not in ops_of(best_schedule(saturate(long, EXACT)))
