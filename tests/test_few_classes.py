"""Classes of sizes are few: attention, convolutions and windows of many sizes are of one or two."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import satura
from benchmarks.models import build as build_model
from satura.backend.constants import fold_constants
from satura.backend.emit.code import Code
from satura.backend.plan import kernels
from satura.backend.plan.kernels import kernel_code
from satura.backend.plan.plans import Plans, plan_of
from satura.backend.plan.size_class import size_class
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import rewrite
from satura.rewrite.errors import ProgramError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType
from tests.dynamic_programs import dynamic_program
from tests.evaluated_plans import M, N, difference, scheduled, wrong_plans
from tests.evaluated_plans import no_kernels as no_kernels
from tests.random_programs import compare


def convolutions(high: Dim, wide: Dim) -> Program:
    """Images of high · wide pixels, through windows of all kinds."""
    build = Builder()
    x = build.input("x", DType.F32, (symbol("batch"), high, wide, 8))
    random = np.random.default_rng(0)

    def weights(*shape: int) -> int:
        return build.constant(random.standard_normal(shape), DType.F32)

    same = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
    half = build.window(
        DType.F32, (1, 3, 3, 1), (1, 2, 2, 1), lo=(0, 1, 1, 0), hi=(0, 1, 1, 0), fill=-np.inf
    )
    x = build.unary("relu", build.winograd(x, weights(3, 3, 8, 16), same))
    x = build.pool("max", x, half)
    x = build.conv(x, weights(3, 3, 1, 16), same, 16)
    x = build.conv(x, weights(3, 3, 1, 16), build.window(DType.F32, (3, 3), (2, 2), hi=(1, 1)), 16)
    x = build.conv(x, weights(1, 1, 16, 8), build.window(DType.F32, (1, 1)))
    return build.program({"y": build.reduce("sum", x, (1, 2))})


def test_attention_of_many_lengths_is_of_one_class(no_kernels: None) -> None:
    """Blocks of queries, panels and pieces of keys are numbers, and not facts."""
    build = Builder()
    q = build.input("q", DType.F32, (8, N, 64))
    k, v = (build.input(name, DType.F32, (8, M, 64)) for name in "kv")
    mask = build.broadcast(build.input("m", DType.F32, (1, 1, M)), (8, N, M))
    y = build.attention(q, build.transpose(k, (0, 2, 1)), mask, v)
    plans, random = Plans(scheduled(build.program({"y": y})), 3), np.random.default_rng(0)
    for n, m in random.integers(2, 3000, (20, 2)).tolist():
        plans.planned((("m", m), ("n", n)))
    assert len(plans.known) == 1, [each.missed for each, _ in plans.known]


@pytest.mark.parametrize(("high", "wide"), [pytest.param(24, 24, marks=pytest.mark.deep), (N, M)])
def test_convolutions_of_many_sizes_are_of_few_classes(
    high: Dim, wide: Dim, no_kernels: None
) -> None:
    """One image, or more: strides, tiles, blocks and borders are numbers, and not facts."""
    program = convolutions(high, wide)
    plans, random = Plans(scheduled(program), 3), np.random.default_rng(0)
    for batch in (*range(1, 20), 31, 32, 33, 64, 100):
        n, m = random.integers(32, 400, 2).tolist()
        sizes = {"batch": batch, "n": n, "m": m}
        plans.planned(tuple((name, sizes[name]) for name in sorted(program.symbols)))
    assert len(plans.known) == 1, [each.missed for each, _ in plans.known]
    small = [(8, 1, 3), (2, 4, 2), (9, 5, 8), (1, 64, 2), (3, 2, 2), (70, 33, 31)]
    assert not wrong_plans(program, [{"batch": batch, "n": n, "m": m} for batch, n, m in small])


@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (5, 1), (7, 1)])
def test_windows_over_images_of_any_size_are_one_class(
    taps: int, stride: int, no_kernels: None
) -> None:
    """Rows of a unit, its borders and its scratch are numbers, however small the image is."""
    build = Builder()
    image = build.input("x", DType.F32, (symbol("batch"), 48, N, M))
    x = build.transpose(image, (0, 2, 3, 1))
    around = (taps // 2, taps // 2)
    steps = (stride, stride)
    weights = build.constant(np.ones((taps, taps, 1, 48)), DType.F32)
    window = build.window(DType.F32, (taps, taps), steps, lo=around, hi=around)
    x = build.unary("relu", build.conv(x, weights, window, 48))
    program = build.program({"y": build.transpose(x, (0, 3, 1, 2))})
    found = rewrite(program, rule_set("default"), None, lambda *_: None)
    plans, random = Plans(fold_constants(found.schedule), 2), np.random.default_rng(0)
    for _ in range(60):
        batch, n, m = random.integers((1, 4, 4), (5, 260, 260)).tolist()
        named = {"batch": batch, "m": m, "n": n}
        plan = plan_of(plans.planned(tuple(named.items())))
        if n < 40:
            own = size_class(plans.schedule, named, plans.store, 2).plan(named)
            assert difference(plan, own) is None, named
    assert len(plans.known) == 1, [each.missed for each, _ in plans.known]


@pytest.mark.deep
def test_convolutions_of_many_sizes_equal_the_interpreter() -> None:
    program = convolutions(N, M)
    compiled = satura.compile(program, threads=2, rules="none")
    random = np.random.default_rng(0)
    for batch, n, m in ((9, 33, 40), (2, 1, 2), (1, 7, 64), (12, 20, 35), (3, 4, 3), (8, 41, 16)):
        x = random.standard_normal((batch, n, m, 8)).astype(np.float32)
        expected, found = interpret(program, {"x": x})["y"], compiled.run({"x": x})["y"]
        assert compare(expected, found, exact=False) is None, (batch, n, m)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("tiny_minilm", {}), ("tiny_rope_attention", {}),
        ("tiny_resnet", {0: "batch"}), ("tiny_esrgan", {0: "batch", 2: "seq", 3: "wide"}),
    ],
)  # fmt: skip
def test_sizes_of_one_class_are_not_lowered(
    name: str, symbols: Mapping[int, str], no_kernels: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 200 sizes in turn only the first is lowered, and kernels of no other one are compiled."""
    model = build_model(name)
    for axis, symbol_name in symbols.items():
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = symbol_name
        model.graph.output[0].type.tensor_type.shape.dim[axis].dim_param = f"{symbol_name} out"
    found = rewrite(satura.load(model), rule_set("default"), None, lambda *_: None)
    plans = Plans(fold_constants(found.schedule), 2)
    symbols_of = sorted(plans.schedule.program.symbols)
    random = np.random.default_rng(0)
    calls = 0

    def counted(*given: Any) -> Code | None:
        nonlocal calls
        calls += 1
        return kernel_code(*given)

    monkeypatch.setattr(kernels, "kernel_code", counted)
    found_first = 0
    for number in range(200):
        drawn = {"batch": random.integers(8, 33), "wide": random.integers(40, 400)}
        sizes = {each: int(drawn.get(each, random.integers(49, 64))) for each in symbols_of}
        plans.planned(tuple(sizes.items()))
        found_first = found_first if number else calls
        assert calls == found_first >= len(plans.schedule.dispatches) and len(plans.known) == 1


@pytest.mark.deep
def test_random_programs_have_few_classes(no_kernels: None) -> None:
    """Over 30 sizes each, one or two in the mean: where a size is divided, rests make classes."""
    counts = []
    for seed in range(12):
        program, _ = dynamic_program(seed)
        schedule, random = scheduled(program), np.random.default_rng(seed)
        plans = Plans(schedule, 2)
        for _ in range(30):
            drawn = dict(zip("mn", random.integers(20, 300, 2).tolist(), strict=True))
            sizes = {name: drawn[name] for name in sorted(program.symbols)}
            with suppress(ProgramError):
                plans.planned(tuple(sizes.items()))
        counts.append(len(plans.known))
    assert sum(counts) <= 20, counts
