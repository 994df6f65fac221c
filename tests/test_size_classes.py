"""Classes of sizes: a plan that is evaluated is the plan that is lowered for these sizes."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Mapping
from math import prod

import numpy as np
import pytest

import satura
from benchmarks.models import build as build_model
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.plans import Plans, plan_of
from satura.backend.run.workspace import Workspace
from satura.backend.sizes.size import Relation, Trace
from satura.pipeline.models import load
from satura.rewrite.check.compare import apply_op, magnitude
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import Array, DType
from tests.dynamic_programs import SIZES, arguments_for, dynamic_program
from tests.evaluated_plans import M, N, scheduled, wrong_plans
from tests.evaluated_plans import no_kernels as no_kernels
from tests.random_programs import compare
from tests.tiers import deep_but, seeds


def drawn_sizes(seed: int, count: int) -> list[dict[str, int]]:
    random = np.random.default_rng(seed)
    return [dict(zip("nm", random.choice(SIZES, 2).tolist(), strict=True)) for _ in range(count)]


def check_plans(seed: int) -> None:
    program, _ = dynamic_program(seed)
    if program.symbols:
        wrong = wrong_plans(program, drawn_sizes(seed, 12))
        assert not wrong, f"seed {seed}: {wrong}\n{program.python()}"


def check_results(seed: int, count: int) -> None:
    """Run a program at many sizes in turn, and compare every output with the interpreter."""
    program, exact = dynamic_program(seed)
    compiled = satura.compile(program, threads=2, rules="none")
    for number, sizes in enumerate(drawn_sizes(seed, count)):
        shapes = [node.type.shape for node in program.nodes]
        if max(prod(evaluate(dim, sizes) for dim in shape) for shape in shapes) > 200_000:
            continue
        arguments = arguments_for(program, sizes, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                expected = interpret(program, arguments)
            except ProgramError:
                with pytest.raises(CallError):
                    compiled.run(arguments)
                continue
            got = compiled.run(arguments)
        found = {n: compare(expected[n], got[n], exact[n]) for n in expected}
        wrong = {name: text for name, text in found.items() if text}
        if not all(exact[name] for name in wrong):  # by as little as digits do that are lost?
            concrete = program.concrete({name: sizes[name] for name in program.symbols})
            shaken = [shaken_results(concrete, arguments, number) for number in range(8)]
            for name in [name for name in wrong if not exact[name]]:
                step = magnitude([np.subtract(each[name], expected[name]) for each in shaken])
                if agreement(expected[name], got[name], 16 * step).all():
                    del wrong[name]
        assert not wrong, f"seed {seed} at {sizes}: {wrong}\n{program.python()}"


def shaken_results(program: Program, arguments: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """The outputs where each float, given or computed, is a neighbour of its value."""
    random = np.random.default_rng(seed)
    values: list[Array] = []
    for each in program.nodes:
        if each.op.name == "input":
            value = arguments[each.input_name]
        else:
            value = apply_op(each.op, [values[i] for i in each.operands], each.attributes)
        if value.dtype.kind == "f":
            side = random.choice([-np.inf, np.inf], value.shape).astype(value.dtype)
            with np.errstate(over="ignore"):
                value = np.nextafter(value, side)
        values.append(value)
    return {name: values[index] for name, index in program.outputs}


@pytest.mark.parametrize("seed", deep_but((0, 1, 784718380), (*range(40), 784718380), range(20)))
def test_evaluated_plans_are_the_lowered_ones(seed: int, no_kernels: None) -> None:
    check_plans(seed)


@pytest.mark.parametrize("seed", deep_but((0, 784719726), (*range(12), 784719726), range(6)))
def test_calls_of_many_sizes_equal_the_interpreter(seed: int) -> None:
    check_results(seed, 8)


@pytest.mark.parametrize("seed", deep_but((), seeds(2000, 1000), ()))
def test_two_thousand_dynamic_programs(seed: int) -> None:
    check_plans(seed)
    check_results(seed, 24)


@pytest.mark.parametrize("rules", ["none", "default"])
def test_constants_are_folded_where_no_attribute_is_open(rules: str) -> None:
    """A row of a table that a size says, and pads that move a row: both are of a fixed extent."""
    build = Builder()
    x = build.input("x", DType.F32, (N, 8))
    table = build.constant(np.arange(512, dtype=np.float32).reshape(64, 8))
    row = build.unary("exp", build.slice(table, (N, 0), (1, 8), (1, 1)))
    moved = build.pad(build.constant(np.ones((1, 8), np.float32)), (N, 0), (63 - N, 0), 0.5)
    total = build.reshape(build.reduce("sum", x, (0,)), (1, 8))
    outputs = {"y": build.binary("add", row, total), "z": moved, "fixed": build.unary("neg", table)}
    program = build.program(outputs)
    compiled = satura.compile(program, threads=1, rules=rules)
    for n in (3, 0, 17, 63):
        arguments = {"x": np.ones((n, 8), np.float32)}
        found = compiled.run(arguments)
        for name, expected in interpret(program, arguments).items():
            assert compare(expected, found[name], exact=False) is None, (name, n)


def padded_softmax() -> Program:
    """A softmax over an axis that is padded to the next even extent."""
    build = Builder()
    x = build.input("x", DType.F32, (N, M, 6))
    wide = build.pad(x, (0, 0, 0), (0, M - M // 2 * 2, 0), 1.0)
    shape = build.type(wide).shape
    high = build.broadcast(build.reduce("max", wide, (1,)), shape)
    exp = build.unary("exp", build.binary("sub", wide, high))
    total = build.broadcast(build.reduce("sum", exp, (1,)), shape)
    return build.program({"y": build.binary("div", exp, total)})


@pytest.mark.parametrize("dropped", [Relation.ZERO, Relation.NEGATIVE])
def test_facts_that_are_dropped_are_seen(
    dropped: Relation, no_kernels: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that does not note every decision gives plans that lowering does not give."""
    decide = Trace.decide

    def forgetful(trace: Trace, relation: Relation, dim: Dim, holds: bool) -> bool:
        return holds if relation is dropped else decide(trace, relation, dim, holds)

    program = padded_softmax()
    sizes = [{"n": n, "m": m} for n, m in ((3, 33), (3, 32), (1, 40), (3, 34), (3, 4001), (9, 1))]
    assert not wrong_plans(program, sizes)
    monkeypatch.setattr(Trace, "decide", forgetful)
    assert wrong_plans(program, sizes)


def test_the_cache_says_which_classes_there_are_and_why() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (N, 8))
    program = build.program({"y": build.reduce("sum", x, (1,))})
    compiled = satura.compile(program, threads=1, rules="none")
    assert not compiled.cache
    shapes = np.array([40, 41, 0])
    compiled.prepare([{"n": n} for n in shapes])  # NumPy's integers, as arithmetic gives them
    compiled.run({"x": np.ones((41, 8), np.float32)})
    one, first = compiled.cache
    assert dict(first.sizes) == {"n": 40} and (first.plans, first.uses) == (2, 3)
    assert dict(one.sizes) == {"n": 0} and (one.plans, one.uses) == (1, 1)
    assert first.missed is None and one.missed in first.facts
    assert "class of n=0 (not n " in str(one)
    for wrong, message in (
        ({"n": 1, "m": 1}, "no size 'm' in the model; its sizes are"),
        ({}, "for each of"),
    ):
        with pytest.raises(CallError, match=message):
            compiled.prepare([wrong])
    compiled.release()
    assert (compiled.run({"x": np.ones((3, 8), np.float32)})["y"] == 8).all()


def test_numbers_longer_than_words_are_refused() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (N, M, 8))
    program = build.program({"y": build.reduce("max", build.reshape(x, (N * M * 8,)), (0,))})
    compiled = satura.compile(program, threads=1, rules="none")
    compiled.prepare({"n": 4, "m": 5})
    with pytest.raises(CallError, match=r"above 2\*\*63"):
        compiled.prepare({"n": 2**40, "m": 2**40})


def test_calls_of_many_sizes_keep_few_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans go by bytes, the one longest not used first; classes stay, and memory is shared."""
    monkeypatch.setattr("satura.backend.run.part.MOST_PLANS", 20_000)
    build = Builder()
    x = build.input("x", DType.F32, (N, 8))
    total = build.broadcast(build.reduce("sum", x, (1,)), (N, 8))
    program = build.program({"y": build.matmul(x, build.transpose(total, (1, 0)))})
    kernels = compile_schedule(scheduled(program), 1)
    for n in (*range(80, 120), 80):  # wider than a tile of any machine
        kernels.run({"x": np.ones((n, 8), np.float32)})
    (found,) = kernels.classes
    assert found.plans == 41 and found.uses == 41  # 80 had gone
    assert len(kernels.plans.ready) < 8 and kernels.plans.workspaces.idle == 1


def test_a_plan_takes_about_the_bytes_that_it_counts_for(no_kernels: None) -> None:
    """So 500 lengths of a BERT are kept: a call in turn evaluates nothing."""
    plans = Plans(scheduled(load(build_model("tiny_bert"))), 2)
    every = [(("batch", 1), ("seq", length)) for length in range(56, 32, -1)]
    workspace = Workspace()
    for sizes in (every.pop(0), every.pop()):  # the classes, and room for all
        plan_of(plans.planned(sizes)).instance(workspace)
    tracemalloc.start()
    kept = [plans.planned(sizes) for sizes in every]
    instances = [plan_of(each).instance(workspace) for each in kept]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    counted = sum(each.size for each in kept)
    assert len(instances) == len(every) == len(plans.ready) - 2
    assert 0.65 * counted < taken < 1.4 * counted
