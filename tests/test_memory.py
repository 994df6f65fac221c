"""Tensors beyond what memory can hold: an error that names tensor and size, nothing allocated."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.errors import CallError, ModelError
from satura.pipeline.inputs import random_inputs
from satura.rewrite.program import memory
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.memory import memory_bytes
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType
from tests.onnx_models import Shape, Typed, make_model, node

N = 2**20


def outer(extent: Dim, is_result: bool) -> Program:
    """x · xᵀ, or the sums of the rows of its exponentials times themselves."""
    build = Builder()
    x = build.input("x", DType.F32, (extent, 2))
    product = build.matmul(x, build.transpose(x, (1, 0)))
    raised = build.unary("exp", product)
    sums = build.matmul(raised, build.matmul(raised, x))
    return build.program({"y": product if is_result else sums})


Stage = Callable[[Program], object]
STAGES: dict[str, tuple[Dim, type[Exception], Stage]] = {
    "compile": (N, ModelError, satura.compile),
    "run": (
        symbol("n"), CallError,
        lambda program: satura.compile(program).run({"x": np.ones((N, 2), np.float32)}),
    ),
    "interpret": (
        N, CallError, lambda program: satura.interpret(program, {"x": np.ones((N, 2), np.float32)})
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_result", [True, False], ids=["result", "arena"])
@pytest.mark.parametrize("stage", STAGES)
def test_what_memory_cannot_hold_is_named(stage: str, is_result: bool) -> None:
    extent, kind, do = STAGES[stage]
    name = "output 'y'" if is_result else r"%\d+ \(\w+\)"
    with pytest.raises(kind, match=rf"{name} of type f32\[{N}, {N}\] takes {4 * N * N:,} bytes"):
        do(outer(extent, is_result))


def test_a_program_that_refused_a_size_runs_at_others() -> None:
    compiled = satura.compile(outer(symbol("n"), True))
    with pytest.raises(CallError, match="memory has"):
        compiled.run({"x": np.ones((N, 2), np.float32)})
    assert np.array_equal(compiled(np.ones((3, 2), np.float32)), np.full((3, 3), 2.0))


def test_a_constant_that_memory_cannot_hold_is_named() -> None:
    build = Builder()
    huge = build.iota((2**45,), 0, DType.I64)
    with pytest.raises(ModelError, match=rf"output 'y' of type i64\[{2**45}\]"):
        satura.compile(build.program({"y": build.unary("neg", huge)}))


def test_arguments_that_memory_cannot_hold_are_not_drawn() -> None:
    with pytest.raises(CallError, match="input 'x' of type f32"):
        random_inputs(outer(symbol("n"), True), {"n": 2**50})


Arguments = dict[str, np.ndarray]
VIEWS: dict[str, Arguments] = {
    "read": {"x": np.broadcast_to(np.float32(1), (1, 2**45)), "shape": np.array([1])},
    "deciding": {"x": np.ones((1, 1), np.float32), "shape": np.broadcast_to(1, (2**45,))},
}


@pytest.mark.parametrize("which", VIEWS)
@pytest.mark.parametrize("is_opened", [False, True])
def test_views_that_memory_cannot_hold_a_copy_of_are_named(
    which: str, is_opened: bool, tmp_path: Path
) -> None:
    nodes = [node("ReduceSum", "x", "sum", keepdims=0), node("Expand", "sum shape", "y")]
    typed: dict[str, Shape | Typed] = {"x": ("n", "m"), "shape": Typed(("k",))}
    compiled = satura.compile(make_model(nodes, typed, {}), threads=1)
    assert compiled.run({"x": np.ones((3, 2), np.float32), "shape": np.array([1])})["y"] == 6
    if is_opened:
        compiled.save(tmp_path / "saved")
    with pytest.raises(CallError, match=r"input '\w+' of type \w+\[.*\] takes .*memory has"):
        (satura.open(tmp_path / "saved") if is_opened else compiled).run(VIEWS[which])


def test_a_limit_of_the_process_counts() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    machine = memory_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (machine - 1, before[1]))
    try:
        assert memory_bytes() == machine - 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("spare", [-1, 0])
def test_the_last_byte_counts(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of 3 × 3 floats, nothing in the arena, and what the thread works in."""
    compiled = satura.compile(outer(symbol("n"), True), threads=1)
    scratch = compiled._whole.prepare({"n": 3}).routine.scratch
    compiled.release()
    monkeypatch.setattr(memory, "_ANY_MACHINE", 0)
    monkeypatch.setattr(memory, "memory_bytes", lambda: 36 + scratch + spare)
    if spare < 0:
        with pytest.raises(CallError, match="takes 36 bytes"):
            compiled(np.ones((3, 2), np.float32))
    else:
        assert compiled.run({"x": np.ones((3, 2), np.float32)})["y"].shape == (3, 3)
