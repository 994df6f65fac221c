"""Kernel text: where values stand, and which iterations a thread has."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import satura
from satura.backend.emit.loops import cut_rows, share
from satura.backend.lower.canonical import canonical
from satura.backend.lower.loop_nests import lower
from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import DType
from tests.trivial_scheduler import one_dispatch


@pytest.mark.parametrize("total", [0, 1, 7, 64])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_each_iteration_is_one_thread_s(total: int, threads: int) -> None:
    taken: list[int] = []
    for thread in range(threads):
        names = {"total": total, "thread": thread, "threads": threads}
        exec("\n".join(share("total")), names)
        taken += range(names["lo"], names["hi"])
    assert taken == list(range(total))


def test_one_element_is_gathered_by_an_index_that_no_loop_moves() -> None:
    """Its address is known before all loops but for the index, which is read there too."""
    build = Builder()
    x = build.input("x", DType.I64, (5, 1))
    at = build.input("at", DType.I64, (1,))
    rows = build.input("rows", DType.I64, (7, 1))
    one = build.gather(x, at, 0)
    spread = build.binary("add", rows, build.broadcast(one, (7, 1)))
    program = build.program({"one": one, "spread": spread})
    arguments = {
        "x": np.arange(5).reshape(5, 1) + 3, "at": np.array([-2]),
        "rows": np.arange(7).reshape(7, 1),
    }  # fmt: skip
    expected = interpret(program, arguments)
    for rules in ("none", "default"):
        got = satura.compile(program, threads=1, rules=rules).run(arguments)
        for name, values in expected.items():
            np.testing.assert_array_equal(got[name], values)


@pytest.mark.parametrize("rules", ["none", "default"])
def test_rows_without_elements_have_no_scratch_to_keep_them(rules: str) -> None:
    """The largest element of an empty row is -inf, and the logarithm of no sum is so, too."""
    build = Builder()
    x = build.unary("erf", build.input("x", DType.F32, (1, 0)))
    largest = build.reduce("max", x, [1])
    shifted = build.binary("sub", x, build.broadcast(largest, (1, 0)))
    total = build.reduce("sum", build.unary("exp", shifted), [1])
    program = build.program({"y": build.binary("add", build.unary("log", total), largest)})
    arguments = {"x": np.zeros((1, 0), np.float32)}
    got = satura.compile(program, threads=1, rules=rules).run(arguments)
    np.testing.assert_array_equal(got["y"], interpret(program, arguments)["y"])


def scaled_rows(rows: Dim, length: Dim) -> Program:
    """Rows, each times a number and a number that depends on where it is in the row."""
    build = Builder()
    x = build.input("x", DType.F32, (rows, length))
    by_row, by_place = (
        build.broadcast(build.input(name, DType.F32, shape), (rows, length))
        for name, shape in (("r", (rows, 1)), ("p", (1, length)))
    )
    return build.program({"y": build.binary("sub", build.binary("mul", x, by_row), by_place)})


@pytest.mark.parametrize("rows", [2, 3, 13])
@pytest.mark.parametrize("length", [8190, 8192, 8191])
def test_long_rows_that_are_few_are_cut(rows: int, length: int) -> None:
    """For each of four threads there are four rows or parts of some; a prime number has none."""
    program = scaled_rows(rows, length)
    (nest,) = lower(one_dispatch(program), one_dispatch(program).dispatches[0])
    whole = canonical(nest)
    cut = cut_rows(whole, 4)
    assert cut_rows(whole, 1) == whole
    if length == 8191:
        assert cut == whole
    else:
        units = prod(cut.nest.extents[:-1])
        assert rows * length == units * cut.nest.extents[-1] and 16 <= units <= 64
    random = np.random.default_rng(0)
    shapes = {"x": (rows, length), "r": (rows, 1), "p": (1, length)}
    given = {name: random.normal(0, 1, shape).astype("f") for name, shape in shapes.items()}
    got = compile_schedule(one_dispatch(program), 4).run(given)["y"]
    np.testing.assert_array_equal(got, interpret(program, given)["y"])


def test_few_rows_of_an_open_number_are_cut() -> None:
    compiled = compile_schedule(one_dispatch(scaled_rows(symbol("n"), 8192)), 2)
    for rows in (1, 2, 5):
        made = {"x": (rows, 8192), "r": (rows, 1), "p": (1, 8192)}
        given = {name: np.full(shape, 3, np.float32) for name, shape in made.items()}
        np.testing.assert_array_equal(compiled.run(given)["y"], np.full((rows, 8192), 6))
    assert any("total = a0 * a1" in kernel.source for kernel in compiled.executables())
