"""Features and costs: what a dispatch does is counted once, and one function makes it time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from satura.rewrite.errors import CallError
from satura.rewrite.extract.amounts import tile_amounts
from satura.rewrite.extract.candidates import candidates
from satura.rewrite.extract.cost import REFERENCE_RATES, CostModel
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.features import RATES, Features
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.schedule import Dispatch
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.random_programs import random_program
from tests.test_extract import unrewritten

MODEL = CostModel()


def only(build: Builder, result: int, model: CostModel = MODEL) -> Dispatch:
    """The one dispatch of a program with one result."""
    (dispatch,) = extract(unrewritten(build.program({"y": result})), model).dispatches
    return dispatch


def amounts(dispatch: Dispatch) -> dict[str, float]:
    assert dispatch.features is not None
    return dispatch.features.summed


@pytest.mark.parametrize("seed", range(20))
def test_what_is_predicted_is_the_cost_of_the_features(seed: int) -> None:
    program, _, _ = random_program(seed)
    schedule = extract(unrewritten(program), MODEL)
    for dispatch in schedule.dispatches:
        assert dispatch.features is not None
        expected = MODEL.seconds(dispatch.features)
        ties = MODEL.constant * (len(dispatch.nodes) + 10)
        assert expected <= dispatch.seconds <= expected + ties
    assert schedule.seconds == pytest.approx(sum(each.seconds for each in schedule.dispatches))


@pytest.mark.parametrize("seed", range(10))
def test_a_candidate_costs_what_its_features_say(seed: int) -> None:
    """Though satura's own model adds it up without them."""
    program, _, _ = random_program(seed)
    model = MODEL.with_rates({"stored": 1e-9})
    found = candidates(unrewritten(program), model, rounds=0)
    classes = found.classes
    for number, cost in enumerate(found.graph.costs):
        fragment = found.fragment(number)
        if fragment.form is not Fused.PLACEMENT:
            expected = model.seconds(fragment.features(classes))
            assert cost == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (100,))
    for _ in range(4):
        x = build.binary("mul", x, build.unary("sigmoid", x))
    done = amounts(only(build, x))
    assert done == {"dear.f32": 4 * 12 * 100, "cheap.f32": 4 * 100}


def test_slices_of_a_value_are_computed_each() -> None:
    """And one that is used twice once."""
    build = Builder()
    value = build.unary("exp", build.input("x", DType.F32, (8, 100)))
    first, second = (build.slice(value, (row, 0), (1, 100)) for row in (0, 3))
    square = build.binary("mul", second, second)
    done = amounts(only(build, build.binary("add", first, square)))
    assert done == {"dear.f32": 2 * 10 * 100, "cheap.f32": 2 * 100}


def test_slices_of_other_slices_are_computed_each() -> None:
    """Also where what they take of these is alike, and what sees it repeats it."""
    build = Builder()
    value = build.unary("exp", build.input("x", DType.F32, (8, 100)))
    rows = [build.slice(value, (row, 0), (2, 100)) for row in (0, 3)]
    first, second = (build.slice(each, (1, 0), (1, 100)) for each in rows)
    done = amounts(only(build, build.binary("add", first, second)))
    assert done == {"dear.f32": 2 * 10 * 100, "cheap.f32": 100}
    wide = [build.broadcast(each, (4, 100)) for each in (first, second)]
    done = amounts(only(build, build.binary("add", *wide)))
    assert done == {"dear.f32": 2 * 4 * 10 * 100, "cheap.f32": 400}


def test_the_parts_of_a_concat_compute_apart() -> None:
    build = Builder()
    value = build.unary("exp", build.input("x", DType.F32, (100,)))
    done = amounts(only(build, build.concat([value, build.unary("neg", value)], 0)))
    assert done == {"dear.f32": 2 * 10 * 100, "cheap.f32": 100, "run": 2}


def test_the_parts_of_a_concat_are_cut_apart() -> None:
    """And a slice leaves their runs, as it does those of one part."""
    build = Builder()
    x = build.input("x", DType.F32, (4, 10, 30))
    padded = build.pad(x, (0, 0, 2), (0, 0, 2))
    whole = build.slice(build.concat([padded, padded], 1), (0, 0, 0), (2, 20, 34))
    assert amounts(only(build, whole))["run"] == 2 * (3 * 4 * 10) + 2 * 4


PADDED = [
    ((1, 0, 0), (1, 0, 0), 3),
    ((0, 0, 2), (0, 0, 0), 2 * 4 * 10),
    ((0, 1, 0), (0, 1, 2), 3 * 4 + 2 * 4 * 12),
    ((0, 1, 0), (0, 1, 1), 3 * 4 + 1.25 * 4 * 12),
    ((0, 0, 1), (1, 0, 1), 2 + 1.5 * 5 * 10),
]
"""Paddings of three axes, and runs: of a single element a quarter."""


@pytest.mark.parametrize(("lo", "hi", "runs"), PADDED)
def test_a_pad_cuts_loops_into_runs(lo: tuple[int, ...], hi: tuple[int, ...], runs: float) -> None:
    build = Builder()
    padded = build.pad(build.input("x", DType.F32, (4, 10, 30)), lo, hi)
    assert amounts(only(build, build.unary("neg", padded)))["run"] == runs


@pytest.mark.parametrize(
    ("lo", "hi", "name"), [(2, 2, "picked"), (0, 2, "picked"), (0, 0, "turned")]
)
def test_short_pieces_are_turned_one_by_one(lo: int, hi: int, name: str) -> None:
    """Whether axes of extent 1 come between or not."""
    build = Builder()
    padded = build.pad(build.input("x", DType.F32, (3, 40)), (lo, 0), (hi, 0))
    upright = build.reshape(padded, (1, 3 + lo + hi, 40))
    assert name in amounts(only(build, build.transpose(padded, (1, 0))))
    assert name in amounts(only(build, build.transpose(upright, (0, 2, 1))))


def test_a_concat_of_no_elements_is_one_loop() -> None:
    build = Builder()
    parts = [build.input(name, DType.F32, (50, 60, 0)) for name in "xy"]
    assert amounts(only(build, build.concat(parts, 2))) == {}


@pytest.mark.parametrize(("end", "masked"), [(1, {"masked": 4 * 12 * 31}), (0, {})])
def test_a_row_compares_each_element_of_what_is_cut_within_rows(
    end: int, masked: dict[str, float]
) -> None:
    build = Builder()
    padded = build.pad(build.input("x", DType.F32, (4, 10, 30)), (0, 1, 0), (0, 1, end))
    done = amounts(only(build, build.reduce("sum", padded, (2,))))
    runs = {} if end else {"run": 12}
    assert done == {"reduction.f32": 4 * 12 * (30 + end), "row": 4 * 12, **runs, **masked}


def test_a_maximum_of_two_tensors_takes_more_than_one_with_a_number() -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (100,)) for name in "xy")
    number = build.broadcast(build.constant(np.ones(1, np.float32)), (100,))
    done = [amounts(only(build, build.binary("max", x, each))) for each in (y, number)]
    assert done == [{"cheap.f32": 4 * 100}, {"cheap.f32": 100}]
    whole = build.input("i", DType.I32, (100,))
    beside = build.input("j", DType.I32, (100,))
    assert amounts(only(build, build.binary("max", whole, beside))) == {"cheap.i32": 100}


@pytest.mark.parametrize(("shape", "axis", "name"), [
    ((50, 40), 1, "picked"), ((2000,), 0, "picked"), ((50, 40, 3), 1, "picked"),
    ((50, 40), 0, "gathered"), ((50, 40, 8), 1, "gathered"),
])  # fmt: skip
def test_what_data_leads_to_one_by_one_is_picked(
    shape: tuple[int, ...], axis: int, name: str
) -> None:
    build = Builder()
    x, places = build.input("x", DType.F32, shape), build.input("i", DType.I64, (30,))
    result = build.gather(x, places, axis)
    elements = np.prod([*shape[:axis], 30, *shape[axis + 1 :]])
    done = amounts(only(build, result))
    assert done == {name: elements * (4 if name == "gathered" else 1)}


@pytest.mark.parametrize(("steps", "done"), [
    ((1, 2), {"picked": 30 * 20}), ((1, -1), {"picked": 30 * 40}), ((2, 1), {}), ((-1, 1), {}),
])  # fmt: skip
def test_a_slice_at_a_distance_is_read_one_by_one(
    steps: tuple[int, int], done: dict[str, float]
) -> None:
    build = Builder()
    sizes = tuple([extent // abs(step) for extent, step in zip((30, 40), steps, strict=True)])
    starts = tuple([size - 1 if step < 0 else 0 for size, step in zip(sizes, steps, strict=True)])
    x = build.input("x", DType.F32, (30, 40))
    assert amounts(only(build, build.slice(x, starts, sizes, steps))) == done


def test_what_a_library_computes_takes_long_in_f32() -> None:
    def flops(name: str, dtype: DType) -> float:
        build = Builder()
        (amount,) = amounts(only(build, build.unary(name, build.input("x", dtype, (9,))))).values()
        return amount

    assert flops("sinh", DType.F32) == 30 * flops("sinh", DType.F64)
    assert flops("exp", DType.F32) == flops("exp", DType.F64)


def test_more_first_places_and_longer_rows_take_more_comparisons() -> None:
    def steps(extent: int, count: int) -> float:
        build = Builder()
        x = build.input("x", DType.F32, (10, extent))
        return amounts(only(build, build.first_places(x, count)))["ordered"]

    assert 10 * 1000 < steps(1000, 1) < 1.1 * steps(1000, 1) < steps(1000, 8)
    assert steps(1000, 8) - 10 * 1000 > steps(100, 8) - 10 * 100  # more of them are found late
    assert steps(0, 0) >= 0 and np.isfinite(steps(0, 0))


@pytest.mark.parametrize(("width", "times"), [(3, 16), (16, 16), (40, 40)])
def test_what_is_repeated_in_short_rows_is_computed_one_by_one(width: int, times: int) -> None:
    build = Builder()
    value = build.unary("exp", build.input("x", DType.F32, (100, 1)))
    wide = build.broadcast(value, (100, width))
    other = build.input("y", DType.F32, (100, width))
    done = amounts(only(build, build.binary("mul", wide, other), CostModel(constant=0)))
    assert done["dear.f32"] == pytest.approx(times * 10 * 100)


@pytest.mark.parametrize(("depth", "times"), [(1, 1), (3, 16)])
def test_indices_of_rows_are_computed_one_by_one(depth: int, times: int) -> None:
    build = Builder()
    table = build.input("table", DType.F32, (7, depth))
    places = build.unary("abs", build.input("i", DType.I64, (100,)))
    done = amounts(only(build, build.gather(table, places, 0)))
    assert done["cheap.i64"] == times * 100


def test_bytes_are_those_read_and_stored() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (100,))
    ones = build.constant(np.arange(100, dtype=np.float32))
    features = only(build, build.binary("add", x, ones)).features
    assert features is not None
    assert (features.near, features.far, features.constants) == (800, 0, 400)


@pytest.mark.parametrize(("shape", "axes", "rows"), [
    ((30, 100), (1,), 30), ((30, 4), (0,), 4), ((16, 100), (0,), 1 + 16 / 8),
    ((16, 100, 1), (0,), 1 + 16 / 8), ((3, 16, 1000), (1,), 3 * 2 * (1 + 16 / 8)),
    ((4, 5, 4, 64), (1, 2), 4 * (1 + 20 / 8)), ((16, 0), (0,), None), ((1, 100), (0,), 1 + 1 / 8),
])  # fmt: skip
def test_results_side_by_side_are_one_row(
    shape: tuple[int, ...], axes: tuple[int, ...], rows: float | None
) -> None:
    build = Builder()
    x = build.input("x", DType.F32, shape)
    assert amounts(only(build, build.reduce("max", x, axes))).get("row") == rows


@pytest.mark.parametrize(("kind", "rows", "seen"), [("broadcast", 200, 100), ("slice", 50, 50)])
def test_what_is_narrowed_is_read_as_wide_as_it_lies(kind: str, rows: int, seen: int) -> None:
    build = Builder()
    x = build.unary("isnan", build.input("x", DType.F32, (1, 100, 60)))
    if kind == "broadcast":
        x = build.broadcast(x, (2, 100, 60))
    else:
        x = build.slice(x, (0, 10, 0), (1, rows, 60))
    features = only(build, x).features
    assert features is not None
    assert features.near == 4 * 60 * seen + 60 * rows


def test_what_caches_cannot_hold_is_far() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1 << 20,))
    features = only(build, build.unary("neg", x)).features
    assert features is not None and (features.near, features.far) == (2 << 18, 30 << 18)


@pytest.mark.parametrize("rows", [1, 8])
def test_what_is_stored_takes_longer_than_what_is_read(rows: int) -> None:
    """Of the bytes that move, a dispatch stores those of its result."""
    model = MODEL.with_rates({"stored": 1e-10})
    build = Builder()
    x = build.input("x", DType.F32, (rows, 100))
    for result, stored in (
        (build.unary("neg", x), rows * 400),
        (build.reduce("sum", x, (1,)), rows * 4),
    ):
        dispatch = only(build, result, model)
        features = dispatch.features
        assert features is not None and features.stored == stored
        assert features.near + features.far == rows * 400 + stored
        longer = model.memory(features) - model.memory(replace(features, stored=0.0))
        assert longer == pytest.approx(1e-10 * stored)
        assert dispatch.seconds == pytest.approx(model.seconds(features), abs=1e-7)


@pytest.mark.parametrize(
    ("perm", "kind"), [((0, 2, 1), "turned"), ((1, 0, 2), "run"), ((0, 1, 2), None)]
)
def test_a_transpose_costs_what_its_reads_cost(perm: tuple[int, ...], kind: str | None) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4, 5, 6))
    y = build.unary("neg", build.transpose(x, perm))
    assert set(amounts(only(build, y))) == {"cheap.f32", *([kind] if kind else [])}


def test_movements_in_a_row_cost_what_they_do_together() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (5, 7, 8))
    planes = build.transpose(build.reshape(x, (5, 7, 2, 4)), (3, 2, 0, 1))
    shuffled = build.transpose(build.reshape(planes, (8, 5, 7)), (1, 2, 0))
    assert amounts(only(build, build.unary("neg", shuffled))) == {"cheap.f32": 280, "turned": 280}


def test_what_is_turned_and_turned_back_is_read_in_order() -> None:
    """As a nearest resize of channels-first images between channels-last ones is."""
    build = Builder()
    x = build.transpose(build.input("x", DType.F32, (1, 5, 7, 8)), (0, 3, 1, 2))
    wide = build.broadcast(build.reshape(x, (1, 8, 5, 1, 7, 1)), (1, 8, 5, 2, 7, 2))
    last = build.transpose(build.reshape(wide, (1, 8, 10, 14)), (0, 2, 3, 1))
    assert amounts(only(build, last)) == {"run": 140}
    turned = build.transpose(build.reshape(wide, (1, 8, 10, 14)), (0, 2, 1, 3))
    assert "turned" in amounts(only(build, turned))


def test_wide_types_compute_longer() -> None:
    def seconds(dtype: DType) -> float:
        build = Builder()
        return only(build, build.unary("exp", build.input("x", dtype, (1 << 16,)))).seconds

    assert seconds(DType.F64) > seconds(DType.F32)


def efficiency(rows: int, columns: int, depth: int, lanes: int = 16) -> float:
    """Of the time that a product takes in tiles, the share that its own multiply-adds take."""
    work, _ = tile_amounts(DType.F32, 1, rows, columns, depth, 1, lanes)
    features = Features("contraction", "f32", work)
    return 2 * rows * columns * depth * MODEL.rates["contraction.f32"] / MODEL.work(features)


def test_small_products_are_less_efficient() -> None:
    large = efficiency(960, 960, 960)
    assert 0.9 < large <= 1
    assert efficiency(1, 960, 960) < 0.6 * large
    assert efficiency(960, 17, 960) < 0.6 * large
    assert efficiency(960, 960, 8) < 0.9 * large


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_tiles_never_do_less_than_the_product(lanes: int) -> None:
    random = np.random.default_rng(lanes)
    for rows, columns, depth in random.integers(1, 300, (200, 3)).tolist():
        (flops, _), _ = tile_amounts(DType.F32, 1, rows, columns, depth, 1, lanes)
        assert flops[1] >= 2 * rows * columns * depth


def convolution(build: Builder, groups: int, channels: int = 64) -> int:
    x = build.input("x", DType.F32, (1, 16, 16, channels))
    weight = build.constant(np.ones((3, 3, channels // groups, channels), np.float32))
    return build.conv(x, weight, build.window(DType.F32, (3, 3)), groups)


def pool_amount(function: str, stride: int) -> float:
    """Instructions per result of a pool of 3 by 3."""
    build = Builder()
    sizes, steps = (1, 3, 3, 1), (1, stride, stride, 1)
    x = build.input("x", DType.F32, (1, 6 * stride + 3, 6 * stride + 3, 16))
    result = build.pool(function, x, build.window(DType.F32, sizes, strides=steps))
    return amounts(only(build, result))["pool.f32"] / (7 * 7 * 16)


def test_pools_cost_what_neighbours_do_not_share() -> None:
    assert pool_amount("max", 3) == 9 + 3 * 8
    assert pool_amount("sum", 3) == 9 + 8
    # Of four neighbours in steps of 1, which see 6 places, each is 3 loads and 2 sums for all.
    assert pool_amount("sum", 1) == 6 * 3 / 4 + 6 * 2 / 4 + 2
    assert pool_amount("sum", 1) < pool_amount("sum", 2) < pool_amount("sum", 3)


def test_a_maximum_of_rows_takes_more_than_a_sum() -> None:
    taken = {}
    for function in ("sum", "max"):
        build = Builder()
        x = build.input("x", DType.F32, (8, 100))
        taken[function] = amounts(only(build, build.reduce(function, x, (1,))))["reduction.f32"]
    assert taken == {"sum": 800, "max": 2400}


def test_depthwise_has_a_rate_of_its_own() -> None:
    one, two, first = Builder(), Builder(), Builder()
    assert set(amounts(only(one, convolution(one, 64)))) == {"depthwise.f32"}
    assert set(amounts(only(two, convolution(two, 1)))) == {"contraction.f32", "tile.f32"}
    x = first.input("x", DType.F32, (1, 64, 32, 32))
    weight = first.constant(np.ones((3, 3, 1, 64), np.float32))
    last = first.transpose(x, (0, 2, 3, 1))
    result = first.conv(last, weight, first.window(DType.F32, (3, 3)), 64)
    planar = only(first, first.transpose(result, (0, 3, 1, 2)))
    assert set(amounts(planar)) == {"planar.f32", "row"}


@pytest.mark.parametrize(("threads", "times"), [(1, 1), (16, 1), (17, 2), (64, 4)])
def test_pixels_of_channels_first_tensors_are_packed_by_all_threads_of_a_panel(
    threads: int, times: int
) -> None:
    """There are 16 panels."""
    build = Builder()
    last = build.transpose(build.input("x", DType.F32, (1, 64, 32, 32)), (0, 2, 3, 1))
    weight = build.constant(np.ones((1, 1, 64, 32), np.float32))
    result = build.conv(last, weight, build.window(DType.F32, (1, 1)))
    model = replace(MODEL, threads=threads)
    crossed = amounts(only(build, build.transpose(result, (0, 3, 1, 2)), model))
    assert set(crossed) == {"contraction.f32", "tile.f32", "packed"}
    assert crossed["packed"] == times * 64 * 32 * 32 * 4


def test_a_varying_right_side_is_packed() -> None:
    build = Builder()
    x, y = (build.input(name, DType.F32, (64, 64)) for name in "xy")
    assert amounts(only(build, build.matmul(x, y)))["packed"] == 64 * 64 * 4


@pytest.mark.parametrize("dtype", [DType.I8, DType.I16])
def test_weights_of_octets_are_read_as_they_are_packed(dtype: DType) -> None:
    """And their sums are converted in registers, whatever type they have."""
    build = Builder()
    x = build.cast(build.input("x", DType.U8, (16, 32)), DType.I64)
    w = build.constant(np.full((32, 48), 100), dtype)
    if dtype is DType.I8:
        zero_point = build.constant(np.full((32, 48), 1), DType.I16)
        w = build.binary("sub", build.cast(w, DType.I16), zero_point)
    w = build.cast(w, DType.I64)
    dispatch = only(build, build.cast(build.matmul(x, w), DType.F32))
    assert dispatch.features is not None
    assert dispatch.features.constants == dtype.itemsize * 32 * 48
    done = amounts(dispatch)
    assert done["cheap.f32"] == 16 * 48 and "cheap.i64" not in done


@pytest.mark.parametrize(
    ("dtype", "rows", "columns", "depth", "known"),
    [
        (DType.F32, 56, 64, 64, True), (DType.F32, 64, 31, 64, True),
        (DType.F32, 64, 64, 15, True), (DType.F64, 64, 64, 64, True),
        (DType.F32, 64, 64, 64, False),
    ],
)  # fmt: skip
def test_products_that_gain_nothing_in_parts_are_counted_as_they_are(
    dtype: DType, rows: int, columns: int, depth: int, known: bool
) -> None:
    def done(model: CostModel) -> dict[str, float]:
        build = Builder()
        w = np.ones((depth, columns), dtype.numpy)
        right = build.constant(w) if known else build.input("w", dtype, w.shape)
        return amounts(
            only(build, build.matmul(build.input("x", dtype, (rows, depth)), right), model)
        )

    assert done(CostModel(in_parts=True)) == done(MODEL) and "parted" not in done(MODEL)


def test_products_in_parts_are_whole_matrices_of_what_is_split_once() -> None:
    model = CostModel(in_parts=True)

    def done(rows: int, columns: int, depth: int) -> dict[str, float]:
        build = Builder()
        x = build.input("x", DType.F32, (rows, depth))
        return amounts(only(build, build.matmul(x, weights(build, depth, columns)), model))

    def weights(build: Builder, *shape: int) -> int:
        return build.constant(np.ones(shape, np.float32))

    few = done(100, 40, 50)
    assert few["parted"] == 2 * 128 * 64 * 50 and few["tile.f32"] == 4 * 2
    assert few["packed"] == 4 * (100 * 50 + 50 * 40) and "contraction.f32" not in few
    many = done(1000, 400, 500)  # whose weights do not stay near
    assert many["packed"] == 4 * (1000 * 500 + 3 * 500 * 400)

    def convolved(depth: int) -> dict[str, float]:
        build = Builder()
        window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
        x = build.input("x", DType.F32, (1, 8, 8, depth))
        y = build.conv(x, weights(build, 3, 3, depth, 32), window, 1)
        return amounts(only(build, y, model))

    assert "parted" in done(64, 64, 4000) and "parted" not in convolved(2560)
    conv = convolved(16)
    assert conv["parted"] == 2 * 64 * 32 * 9 * 16
    assert conv["packed"] == 4 * (64 * 16 + 9 * 16 * 32)


def test_threads_share_what_is_long_enough() -> None:
    long = Features("loop", "f32", (("dear.f32", 1e8),), units=100.0)
    short = Features("loop", "f32", (("dear.f32", 1e3),), units=100.0)
    whole = Features("loop", "f32", (("dear.f32", 1e8),), units=1.0)
    two = CostModel(threads=2)
    assert two.seconds(long) < 0.6 * MODEL.seconds(long)
    assert two.seconds(short) == MODEL.seconds(short)
    assert two.seconds(whole) == MODEL.seconds(whole)


def test_every_rate_has_a_default_and_matters() -> None:
    assert REFERENCE_RATES.keys() == set(RATES)
    for lanes in (4, 8, 16):
        model = CostModel.of_vectors(lanes)
        assert model.rates.keys() == set(RATES)
        assert all(seconds > 0 for seconds in model.rates.values())
        assert model.rates["octets"] * lanes == pytest.approx(16 * REFERENCE_RATES["octets"])
        assert not model.in_parts and CostModel.of_vectors(lanes, in_parts=True).in_parts
        by_matrices = CostModel.of_vectors(lanes, has_matrices=True).rates
        assert by_matrices["octets"] < REFERENCE_RATES["octets"] / 2
        assert {**by_matrices, "octets": 0} == {**model.rates, "octets": 0}
    for name in RATES:
        changed = MODEL.with_rates({name: 1.0})
        assert changed.identity != MODEL.identity


class Half(CostModel):
    """Half as long as others say."""

    def seconds(self, features: Features) -> float:
        return super().seconds(features) / 2


@pytest.mark.parametrize("model", [MODEL, CostModel(threads=4), MODEL.with_measured({}), Half()])
@pytest.mark.parametrize("form", ["loop", "host"])
def test_terms_are_what_seconds_are_made_of(model: CostModel, form: str) -> None:
    work = (("cheap.f32", 1e6), ("row", 10.0))
    for features in (
        Features(form, "f32"), Features(form, "f32", near=100.0),
        Features(form, "f32", work, 1e6, 1e7, 50.0, 9.0), Features(form, "f32", work, 9, 0, 1e7),
    ):  # fmt: skip
        terms = model.terms(features)
        assert sum(terms.values()) == pytest.approx(model.seconds(features))
        assert min(terms.values()) >= 0


def test_constants_that_are_read_meanwhile_hide_by_rates_that_were_measured() -> None:
    """Mostly, and never more of them than there is to compute."""
    model = MODEL.with_measured({})
    launch, constant = model.rates["launch"], model.rates["constant"]
    work = (("cheap.f32", 1e7),)
    computing = model.working(work)
    for size in (0.0, 1e5, 1e8):
        reading, both = size * constant, Features("loop", "f32", work, constants=size)
        least, most = sorted((reading, computing))
        assert model.seconds(both) == pytest.approx(launch + most + least / 4)
    apart = Features("loop", "f32", work, near=1e5)
    assert model.seconds(apart) == pytest.approx(launch + computing + 1e5 * model.rates["near"])


class Free(CostModel):
    """Memory costs nothing."""

    def memory(self, features: Features) -> float:
        return 0.0


def test_what_a_model_says_of_memory_counts() -> None:
    features = Features("loop", "f32", (("cheap.f32", 1e3),), 1e6, 1e7, 1e6)
    free = Free()
    assert free.seconds(features) == free.rates["launch"] + free.work(features)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"threads": 0}, "threads .* at least 1, not 0"), ({"streams": -2}, "streams .* not -2"),
    ({"lanes": "a"}, "lanes .* not 'a'"), ({"hidden": "a"}, "a share from 0 to 1, not 'a'"),
    ({"hidden": -1.0}, "not -1.0"), ({"hidden": float("nan")}, "not nan"),
    ({"behind": 2}, "behind .* not 2"), ({"rates": {}}, "has all rates, and .* missing"),
    ({"rates": {**REFERENCE_RATES, "zzz": 1.0}}, "no rate 'zzz'"),
])  # fmt: skip
def test_a_cost_model_that_no_machine_has_is_refused(
    wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(CallError, match=message):
        CostModel(**wrong)  # type: ignore[arg-type]  # it is wrong
    with pytest.raises(CallError, match="no rate 'zzz'"):
        MODEL.with_rates({"zzz": 1.0})


def test_the_identity_tells_all_that_costs_depend_on() -> None:
    models = [
        MODEL, MODEL.with_sizes({"n": 1}), MODEL.with_sizes({"n": 2}), CostModel(lanes=8),
        CostModel(threads=2), CostModel(streams=2), CostModel(constant=2e-9),
        CostModel(constant_byte=2e-13), CostModel.of_vectors(8), CostModel(behind=0.5),
        CostModel(in_parts=True),
    ]  # fmt: skip
    assert len({model.identity for model in models}) == len(models)


def test_typical_sizes_are_those_of_the_model() -> None:
    def moved(model: CostModel) -> float:
        build = Builder()
        x = build.input("x", DType.F32, (symbol("n"), 2))
        features = only(build, build.unary("neg", x), model).features
        assert features is not None
        return features.working_set

    assert moved(MODEL) == 64 * 2 * 8
    assert moved(MODEL.with_sizes({"n": 5})) == 5 * 2 * 8
    assert moved(MODEL.with_sizes({"other": 5})) == 64 * 2 * 8


def test_of_two_dispatches_that_hide_behind_the_same_side_the_lesser_is_cheaper() -> None:
    for threads in (1, 8):
        model = CostModel.of_vectors(8, threads)
        work = (("dear.f32", 1e6),)
        little, much = (Features("loop", "f32", work, near, units=8.0) for near in (1e4, 2e4))
        assert model.memory(much) < model.work(much)
        assert model.seconds(little) < model.seconds(much)
        light, heavy = (
            Features("loop", "f32", (("cheap.f32", n),), 1e6, units=8.0) for n in (1e3, 2e3)
        )
        assert model.work(heavy) < model.memory(heavy)
        assert model.seconds(light) < model.seconds(heavy)
