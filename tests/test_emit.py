"""Kernel text: where values stand, and which iterations a thread has."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.backend.emit.loops import share
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType


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
