"""Outputs in given arrays, and calls whose arrays stay the same."""

from __future__ import annotations

import os
import pickle
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import satura
from satura.backend.run.workspace import MOST_IDLE, Workspaces
from satura.rewrite.errors import CallError
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests.onnx_models import Typed, make_model, node

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
SUM = X + X


def compiled(threads: int = 1) -> satura.Compiled:
    """Outputs of every kind: computed, given twice, an input, a constant."""
    build = Builder()
    x = build.input("x", DType.F32, (symbol("rows"), 4))
    total = build.binary("add", x, x)
    constant = build.constant([1.0, 2.0], DType.F32)
    outputs = {"sum": total, "again": total, "same": x, "fixed": constant}
    return satura.compile(build.program(outputs), threads=threads)


def room(shape: tuple[int, ...] = (3, 4)) -> Array:
    return np.full(shape, 9, np.float32)


@pytest.mark.parametrize("names", [["sum"], ["again"], ["sum", "again"], ["same", "fixed"], []])
def test_outputs_go_to_given_arrays(names: list[str]) -> None:
    out = {name: room((2,) if name == "fixed" else (3, 4)) for name in names}
    program = compiled()
    results = program.run({"x": X}, out=out)
    assert all(results[name] is out[name] for name in names)
    expected = {"sum": SUM, "again": SUM, "same": X, "fixed": np.array([1, 2], np.float32)}
    for name, array in expected.items():
        np.testing.assert_array_equal(results[name], array)
    memory = [X, *results.values()]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(memory) for b in memory[:i])
    np.testing.assert_array_equal(program(X)[0], SUM)
    called = program(X, out={"again": (again := room())})
    assert called[1] is again
    if "sum" in out:  # later calls leave it alone
        program(X + 1)
        np.testing.assert_array_equal(out["sum"], SUM)


def test_empty_outputs_that_no_array_can_be_are_refused() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("n"), symbol("m")))
    shape = symbol("n"), symbol("m")
    wide = build.broadcast(build.reshape(x, (*shape, 1)), (*shape, 2**31))
    program = satura.compile(build.program({"wide": wide}), rules="none")
    assert np.shape(program(np.zeros((0, 5), np.float32))) == (0, 5, 2**31)
    with pytest.raises(CallError, match=r"output 'wide' of type .* is too large for an array"):
        program(np.zeros((0, 2**40), np.float32))


def test_an_input_may_be_called_out() -> None:
    build = Builder()
    y = build.unary("neg", build.input("out", DType.F32, (3, 4)))
    program = satura.compile(build.program({"y": y}), threads=1)
    np.testing.assert_array_equal(program(out=X), -X)


READ_ONLY = room()
READ_ONLY.flags.writeable = False
SHARED = room((6, 4))
UNFIT: dict[str, tuple[dict[str, object], str]] = {
    "name": ({"total": room()}, "there is no output 'total'; the outputs are ['sum', 'again'"),
    "kind": ({"sum": [[0.0] * 4] * 3}, "'sum' must be a NumPy array, not list"),
    "shape": ({"sum": room((4, 3))}, "'sum' must be f32[3, 4], not float32[4, 3]"),
    "dtype": ({"sum": np.zeros((3, 4))}, "'sum' must be f32[3, 4], not float64[3, 4]"),
    "strides": ({"sum": room((4, 3)).T}, "'sum' must be C-contiguous"),
    "read-only": ({"sum": READ_ONLY}, "'sum' must be C-contiguous, aligned and writable"),
    "each other": ({"sum": SHARED[:3], "again": SHARED[2:5]}, "shares memory with output 'sum'"),
}  # fmt: skip


@pytest.mark.parametrize("out, message", UNFIT.values(), ids=UNFIT)
def test_arrays_that_do_not_fit_are_refused(out: dict[str, Array], message: str) -> None:
    with pytest.raises(CallError, match=re.escape(message)):
        compiled().run({"x": X}, out=out)
    with pytest.raises(CallError, match=re.escape(message)):
        compiled().bind({"x": X}, out=out)


def test_large_outputs_start_at_a_cache_line() -> None:
    """Where each vector of a row that is stored lies on one line."""
    program, x = compiled(), np.ones((2001, 4), np.float32)
    found = [program.run({"x": x})["sum"] for _ in range(8)]
    assert not any(each.ctypes.data % 64 for each in found)


def test_a_result_has_its_memory_as_long_as_a_view_of_it_is_held() -> None:
    program = compiled()

    def row(value: int) -> Array:
        return program.run({"x": np.full((2001, 4), value, np.float32)})["sum"][7:8]

    with ThreadPoolExecutor(4) as pool:
        held = [*map(row, range(5)), *pool.map(row, range(5, 40))]
    assert [int(each[0, 0]) for each in held] == list(range(0, 80, 2))
    first, second = (row(value).ctypes.data for value in (40, 41))
    assert first == second  # nobody held it


def test_an_output_over_an_input_is_refused() -> None:
    memory = room((4, 4))
    for call in (compiled().run, compiled().bind):
        with pytest.raises(CallError, match="'sum' shares memory with an input"):
            call({"x": memory[:3]}, out={"sum": memory[1:]})


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bound_call_reads_what_its_arrays_hold_then(threads: int) -> None:
    x, out = X.copy(), {"sum": room()}
    program = compiled(threads)
    bound = program.bind({"x": x}, out=out)
    with pytest.raises(CallError, match="a bound call cannot be pickled"):
        pickle.dumps(bound)
    first = bound()
    assert first["sum"] is out["sum"]
    np.testing.assert_array_equal(first["again"], SUM)
    x += 1
    program(np.zeros((3, 4), np.float32))
    assert bound()["again"] is first["again"]
    for name, expected in (("sum", x + x), ("again", x + x), ("same", x)):
        np.testing.assert_array_equal(first[name], expected)


def test_bound_calls_of_several_sizes_and_threads() -> None:
    program = compiled()
    arrays = [np.full((rows, 4), rows, np.float32) for rows in range(1, 7)]
    calls = [program.bind({"x": array}) for array in arrays] * 20
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda call: call(), calls))
    for array, result in zip(arrays * 20, results, strict=True):
        np.testing.assert_array_equal(result["sum"], array + array)


UNBOUND: dict[str, tuple[dict[str, object], str]] = {
    "strides": ({"x": np.zeros((4, 3), np.float32).T}, "must be C-contiguous and aligned"),
    "list": ({"x": [[0.0] * 4]}, "'x' must be a NumPy array to be bound"),
    "dtype": ({"x": np.zeros((3, 4))}, "input 'x' must be f32[rows, 4]"),
    "missing": ({}, "input 'x' (f32[rows, 4]) is missing"),
}


@pytest.mark.parametrize("arguments, message", UNBOUND.values(), ids=UNBOUND)
def test_inputs_that_cannot_be_bound_are_refused(arguments: dict[str, Array], message: str) -> None:
    with pytest.raises(CallError, match=re.escape(message)):
        compiled().bind(arguments)


def test_a_bound_call_reports_an_index_that_leaves_its_axis() -> None:
    build = Builder()
    table = build.input("table", DType.F32, (5,))
    at = build.input("at", DType.I64, (2,))
    program = satura.compile(build.program({"y": build.gather(table, at, 0)}), threads=1)
    index = np.array([1, 2])
    bound = program.bind({"table": np.arange(5, dtype=np.float32), "at": index})
    np.testing.assert_array_equal(bound()["y"], [1, 2])
    index[0] = 7
    with pytest.raises(CallError, match="outside"):
        bound()
    index[0] = 4
    np.testing.assert_array_equal(bound()["y"], [4, 2])


def test_a_bound_call_refuses_other_values_that_decide_shapes() -> None:
    model = make_model(
        [node("Slice", "x start end")],
        {"x": ("n",), "start": Typed([1]), "end": Typed([1])},
    )
    start, end = np.array([0]), np.array([2])
    x = np.arange(4, dtype=np.float32)
    bound = satura.compile(model, threads=1).bind({"x": x, "start": start, "end": end})
    np.testing.assert_array_equal(bound()["y"], [0, 1])
    for array, value, name in ((start, 1, "start"), (end, 3, "end")):
        before, array[0] = int(array[0]), value
        with pytest.raises(CallError, match=rf"of input '{name}' decide shapes.* but \[{value}\]"):
            bound()
        array[0] = before
    x += 1
    np.testing.assert_array_equal(bound()["y"], [1, 2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_fork_makes_the_call_that_another_thread_was_in() -> None:
    build = Builder()
    program = build.program({"y": build.unary("neg", build.input("x", DType.F32, (2,)))})
    bound = satura.compile(program, threads=1).bind({"x": np.ones(2, np.float32)})
    with bound._lock:  # as another thread has it
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # to end a hang
            os._exit(0 if bound()["y"][0] == -1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_memory_of_calls_grows_for_all_sizes_and_is_given_back_when_idle() -> None:
    """One arena for each call at a time: as large as the largest, and small again later."""
    spaces = Workspaces()
    for size in (1000, 5000, 3000):
        space = spaces.take()
        space.fit(size, 0)
        spaces.give_back(space)
    assert (spaces.idle, space.size) == (1, 5000)
    others = [spaces.take() for _ in range(3)]
    for other in others:
        spaces.give_back(other)
    assert spaces.idle == 3
    for _ in range(MOST_IDLE + 1):
        space = spaces.take()
        space.fit(100, 0)
        spaces.give_back(space)
    assert (spaces.idle, space.size) == (1, 100)
