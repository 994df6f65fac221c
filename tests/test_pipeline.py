"""The whole pipeline: reproducible, thread-safe, deep, and every acceptance check can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import satura
from benchmarks.models import QUANTIZED, TINY, build, example_inputs
from satura.backend.plan.compiled import compile_schedule
from satura.pipeline.stages import rewrite
from satura.rewrite.isolation.process import call
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests.test_acceptance import assert_close, onnxruntime_outputs, seconds, statistics
from tests.tiers import deep_but

ROOT = Path(__file__).parent.parent
FLOAT = tuple(name for name in TINY if name not in QUANTIZED)
SAMPLE = ("tiny_rope_attention",)
DEAR = ("tiny_minilm", "tiny_mobilevit", "tiny_esrgan", "tiny_resnet_v2", "tiny_swin")
SIZES = {"batch": 2, "seq": 9}
PRINT = """
import sys
from benchmarks.models import build
from satura.pipeline.stages import rewrite
schedule = rewrite(build(sys.argv[1]), "default", None, None).schedule
print(schedule.program, schedule.dispatches, schedule.homes)
"""


def optimised_text(seed: str, name: str) -> str:
    """What a fresh process with that hash seed makes of the model."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", PRINT, name], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("name", deep_but([], ["tiny_rope_attention", "tiny_deeplab", "tiny_bert"]))
def test_hash_seeds_change_nothing(name: str) -> None:
    schedule = rewrite(build(name), "default", None, None).schedule
    here = f"{schedule.program} {schedule.dispatches} {schedule.homes}\n"
    assert schedule.dispatches
    assert here == optimised_text("2", name)


@pytest.mark.parametrize(
    "name", deep_but(SAMPLE, FLOAT, [name for name in FLOAT if name not in DEAR])
)
def test_tiny_model_equals_onnxruntime(name: str) -> None:
    model = build(name)
    arguments = example_inputs(model, SIZES)
    compiled = satura.compile(model, threads=2)
    assert compiled.statistics["host-count"] == 0
    assert_close(compiled.run(arguments), onnxruntime_outputs(model, arguments))


def test_eight_threads_share_one_program() -> None:
    model = build("tiny_resnet_pad")
    compiled = satura.compile(model, threads=2)
    inputs = [example_inputs(model, seed=seed) for seed in range(8)]
    expected = [compiled.run(arguments) for arguments in inputs]

    def calls(index: int) -> bool:
        """Thirty calls of one thread: bit for bit what a lone call gave."""
        for _ in range(30):
            got = compiled.run(inputs[index])
            if any((got[name] != value).any() for name, value in expected[index].items()):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(calls, range(8)))


def test_a_fork_plans_sizes_that_its_parent_was_planning() -> None:
    build_ = Builder()
    x = build_.input("x", DType.F32, (symbol("n"),))
    rewritten = rewrite(build_.program({"y": build_.unary("neg", x)}), "default", None, None)
    compiled = compile_schedule(rewritten.schedule, 1)
    with compiled._lock, compiled.plans._lock:  # as another thread of the parent may hold it
        got = call(lambda doing: compiled.run({"x": np.ones(3, np.float32)})["y"], 60)
    assert got.tolist() == [-1] * 3


@pytest.mark.deep
def test_a_chain_longer_than_python_recurses() -> None:
    build_ = Builder()
    x = build_.input("x", DType.F32, (64,))
    for step in range(sys.getrecursionlimit() + 100):
        x = build_.unary(("relu", "neg", "abs")[step % 3], x)
    program = build_.program({"y": x})
    arguments = {"x": np.linspace(-1, 1, 64, dtype=np.float32)}
    got = satura.compile(program, threads=1).run(arguments)
    assert (got["y"] == interpret(program, arguments)["y"]).all()


def with_node(program: Program, index: int, attributes: tuple[object, ...]) -> Program:
    """`program` with other attributes on one node."""
    nodes = list(program.nodes)
    nodes[index] = replace(nodes[index], attributes=attributes)  # type: ignore[arg-type]
    return replace(program, nodes=tuple(nodes))


def permuted_weight(program: Program) -> Program:
    """Swap two output channels of the first convolution's weight."""
    for node in program.nodes:
        if node.op.name == "conv":
            weight = node.operands[1]
            while program.nodes[weight].op.name != "constant":
                weight = program.nodes[weight].operands[0]
            value = program.nodes[weight].constant.array.copy()
            axis = value.shape.index(max(value.shape))
            swapped = np.take(value, [1, 0, *range(2, value.shape[axis])], axis)
            return with_node(program, weight, (Constant(swapped),))
    raise AssertionError("there is no convolution")


def shifted_border(program: Program) -> Program:
    """Move the border of a window by one element."""
    for index, node in reversed(list(enumerate(program.nodes))):
        for window in node.attributes:
            if node.op.name == "conv" and isinstance(window, Window) and any(window.lo):
                axis = window.lo.index(max(window.lo))
                lo, hi = list(window.lo), list(window.hi)
                lo[axis], hi[axis] = lo[axis] - 1, hi[axis] + 1
                moved = replace(window, lo=tuple(lo), hi=tuple(hi))
                return with_node(program, index, (moved, *node.attributes[1:]))
    raise AssertionError("there is no border")


def results(program: Program, arguments: dict[str, Array]) -> dict[str, Array]:
    return satura.compile(program, threads=1, rules="none").run(arguments)


@pytest.mark.parametrize(
    "name", deep_but((), ["tiny_resnet_pad", "tiny_resnet_tf", "tiny_mobilenet"])
)
def test_the_comparison_with_onnxruntime_catches(name: str) -> None:
    """The acceptance check fails on a program with a deliberate fault."""
    model = build(name)
    arguments = example_inputs(model)
    expected = onnxruntime_outputs(model, arguments)
    program = satura.optimize(model)
    assert_close(results(program, arguments), expected)
    for faulty in permuted_weight(program), shifted_border(program):
        with pytest.raises(AssertionError):
            assert_close(results(faulty, arguments), expected)


@pytest.mark.parametrize("name", deep_but([], ["tiny_resnet_pad", "tiny_resnet_tf", "tiny_esrgan"]))
def test_without_rules_every_tiny_goal_is_missed(name: str) -> None:
    plain, rewritten = statistics(name, "none"), statistics(name)
    assert plain["dispatch-count"] > rewritten["dispatch-count"]
    assert seconds(name, "none") > seconds(name)
    # Of a tiny image ESRGAN's upsampling is copied either way.
    assert plain["moved-bytes"] > rewritten["moved-bytes"] or name == "tiny_esrgan"
