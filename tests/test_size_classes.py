"""Classes of sizes: a plan that is evaluated is the plan that is lowered for these sizes."""

from __future__ import annotations

import json
import tracemalloc
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import satura
from benchmarks.models import build as build_model
from satura.backend.constants import fold_constants
from satura.backend.emit.code import Code
from satura.backend.jit.machine_code import KernelSource
from satura.backend.plan import kernels, lowered
from satura.backend.plan.compiled import compile_schedule
from satura.backend.plan.kernels import kernel_code
from satura.backend.plan.plan import Plan
from satura.backend.plan.plans import Plans, plan_of
from satura.backend.plan.size_class import size_class
from satura.backend.run.workspace import Workspace
from satura.backend.sizes.size import Relation, Trace
from satura.backend.target import host_target
from satura.commands.cli import main
from satura.pipeline.models import load
from satura.pipeline.rule_sets import rule_set
from satura.pipeline.stages import rewrite
from satura.rewrite.check.compare import apply_op, magnitude
from satura.rewrite.errors import CallError, ProgramError
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.at_sizes import evaluate
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests.dynamic_programs import SIZES, arguments_for, dynamic_program
from tests.onnx_models import make_model, node
from tests.random_programs import compare
from tests.tiers import deep_but, seeds

N, M = symbol("n"), symbol("m")


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans without machine code: a kernel's address is the checksum of its text."""

    def addresses(sources: Sequence[KernelSource], report: object = None) -> list[int]:
        return [zlib.crc32(source.text.encode()) for source in sources]

    with monkeypatch.context() as patch:
        patch.setattr(lowered, "compile_all", addresses)
        yield


def scheduled(program: Program) -> Schedule:
    return fold_constants(rewrite(program, rule_set("none"), None, lambda *_: None).schedule)


def difference(found: Plan, wanted: Plan) -> str | None:
    """What differs between two plans for the same sizes."""
    mine, theirs = found.routine, wanted.routine
    pairs = {
        "arena": (found.arena, wanted.arena),
        "scratch": (mine.scratch, theirs.scratch),
        "kernels": (found.executables, wanted.executables),
        "steps": ((mine.launches, found.order), (theirs.launches, wanted.order)),
        "outputs": (mine.outputs, theirs.outputs),
        "regions": (mine.regions.tolist(), theirs.regions.tolist()),
        "numbers": (mine.numbers().tolist(), theirs.numbers().tolist()),
    }
    return next((what for what, (one, other) in pairs.items() if one != other), None)


def drawn_sizes(seed: int, count: int) -> list[dict[str, int]]:
    random = np.random.default_rng(seed)
    return [dict(zip("nm", random.choice(SIZES, 2).tolist(), strict=True)) for _ in range(count)]


def wrong_plans(program: Program, every: Sequence[Mapping[str, int]]) -> list[str]:
    """Where evaluated plans are not what lowering at these sizes gives."""
    schedule = scheduled(program)
    plans = Plans(schedule, 2)
    wrong = []
    for sizes in every:
        named = {name: sizes[name] for name in sorted(program.symbols)}
        try:
            schedule.concrete(named)
        except ProgramError:
            with pytest.raises(ProgramError):
                plans.planned(tuple(named.items()))
            continue
        found = plan_of(plans.planned(tuple(named.items())))
        own = size_class(schedule, named, plans.store, 2).plan(named) if named else found
        what = difference(found, own)
        if what:
            wrong.append(f"{what} at {named}")
    assert all(found.is_traced for _, found in plans.known)
    return wrong


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
    every = [(("batch", 1), ("seq", length)) for length in range(60, 32, -1)]
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


def test_explain_names_the_fact_that_kept_sizes_from_a_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = Builder()
    x, other = (build.input(name, DType.F32, (8, symbol(name))) for name in "nm")
    sums = {name: build.reduce("sum", each, (1,)) for name, each in (("y", x), ("z", other))}
    satura.save(build.program(sums), tmp_path / "model.onnx")  # a size that is not named is typical
    edge = 32 * host_target().lanes  # rows from here on are summed in blocks
    sizes = f"n={edge - 1}:{edge + 1}"
    command = ["explain", str(tmp_path / "model.onnx"), "--sizes", sizes, "--json"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert not ended.value.code
    several, one = sorted(json.loads(capsys.readouterr().out), key=lambda each: -each["plans"])
    assert (several["plans"], one["plans"], one["sizes"]["n"]) == (2, 1, edge - 1)
    assert one["missed"] is None and several["missed"] in one["facts"]
    with pytest.raises(SystemExit):
        main(command[:-1])
    text = capsys.readouterr().out
    assert text.startswith("3 sizes, 2 classes\nall classes\n") and text.count("n != 0") == 1
    assert (
        f"\n  {several['missed']}\n" in text
        and f"\n  asked: n={edge}:{edge + 1}, m=64:64\n" in text
    )
    with pytest.raises(SystemExit):
        main([*command[:3], "n=0:2", "--json"])  # without the classes that were met before
    found = json.loads(capsys.readouterr().out)
    assert sum(each["plans"] for each in found) == 3
    assert sorted(each["asked"]["n"] for each in found)[0][0] == 0


def test_explain_counts_sizes_that_a_program_is_for_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    nodes = [node("Shape", "x", "k"), node("TopK", "x k", "y places")]
    onnx.save(make_model(nodes, {"x": ("n",)}, opset=17), path)
    for sizes, classes in (("n=16", 0), ("n=15:16", 1)):
        with pytest.raises(SystemExit) as ended:
            main(["explain", str(path), "--sizes", sizes])
        assert not ended.value.code
        first, second, *_ = capsys.readouterr().out.splitlines()
        assert first.endswith(f", {classes} class{'' if classes == 1 else 'es'}")
        assert second.startswith("1 size of no class: the program is for these alone")


@pytest.mark.parametrize(
    ("option", "sizes", "asked", "notes"),
    [
        ("--sizes", "n=0:1,m=0:4", 10, ["4 sizes do not run, first n=0 m=0: the program does not"]),
        ("--size", "m=1:2,n=4:5", 4, ["2 sizes do not run, first m=1 n=4: "]),
        ("--size", "m=2:3", 2, []),
        ("--sizes", "n=0:300,m=2:301", 1000, ["a sample: 1,000 of 90,300 sizes"]),
        ("--sizes", "n=0:300,m=1:300", 1000, ["a sample: 1,000 of 90,300 sizes", " do not run, "]),
    ],
)
def test_explain_samples_what_is_too_much_and_counts_sizes_that_do_not_run(
    option: str, sizes: str, asked: int, notes: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "model.onnx"
    pool = [node("MaxPool", "x", "z", kernel_shape=[3])]
    onnx.save(make_model(pool, {"x": ("n", 2, "m")}, {}, outputs=("z",)), path)
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(path), option, sizes, "--json"])
    out, err = capsys.readouterr()
    assert not ended.value.code, err
    assert all(note in line for note, line in zip(notes, err.splitlines(), strict=True)), err
    refused = sum(int(line.split()[1]) for line in err.splitlines() if "not run" in line)
    found = json.loads(out)
    assert sum(each["plans"] for each in found) + refused == asked
    if asked == 1000:
        of_n = [each["asked"]["n"] for each in found]
        assert (min(of_n)[0], max(high for _, high in of_n)) == (0, 300), "both ends are asked"
