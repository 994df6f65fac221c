"""Plans: kernels are merged where they are equal, and each region has an address when they run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import satura
from satura.backend.emit.body import Code
from satura.backend.jit.machine_code import KernelSource, compile_all
from satura.backend.plan.executables import Executable, executables
from satura.backend.plan.records import kernel_records
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.tensor_type import DType


@pytest.mark.parametrize("consumer", ["matmul", "loop", "transposed"])
def test_kernels_read_constants_that_are_also_outputs(consumer: str) -> None:
    """Its address is the store's: no call sets one for an output that is not computed."""
    build = Builder()
    x = build.input("x", DType.F32, (3, 3))
    table = build.constant(np.arange(9).reshape(3, 3), DType.F32)
    value = build.matmul(x, x) if consumer == "matmul" else x
    read = build.transpose(table, (1, 0)) if consumer == "transposed" else table
    program = build.program({"sum": build.binary("add", value, read), "table": table})
    arguments = {"x": np.arange(9, dtype=np.float32).reshape(3, 3) - 4}
    expected = interpret(program, arguments)
    for rules in ("none", "default"):
        got = satura.compile(program, threads=1, rules=rules).run(arguments)
        for name, values in expected.items():
            np.testing.assert_array_equal(got[name], values)


def test_a_reshaped_product_joins_another_tensor_along_the_last_axis() -> None:
    """A contraction does not store through a reshape into a part of a concat."""
    build = Builder()
    x, z = (build.input(name, DType.F32, (2, 6, 8)) for name in "xz")
    weight = build.constant(np.arange(128).reshape(2, 8, 8) % 5, DType.F32)
    parts = [build.reshape(node, (2, 3, 16)) for node in (build.matmul(x, weight), z)]
    program = build.program({"joined": build.concat(parts, 2)})
    arguments = {name: np.arange(96, dtype=np.float32).reshape(2, 6, 8) for name in "xz"}
    got = satura.compile(program, threads=1, rules="none").run(arguments)
    np.testing.assert_array_equal(got["joined"], interpret(program, arguments)["joined"])


def test_equal_texts_are_one_executable() -> None:
    codes = [Code(name, text, (), 1) for name, text in ("ax", "by", "cx", "az", "aw")]
    assert executables(codes) == (
        Executable("a", "x", 2),
        Executable("b", "y", 1),
        Executable("a'", "z", 1),
        Executable("a''", "w", 1),
    )


def test_executables_are_what_is_compiled_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_sources: list[KernelSource] = []

    def recorded(
        sources: list[KernelSource], progress: Callable[[int, int], None] | None
    ) -> list[int]:
        compiled_sources.extend(sources)
        return compile_all(sources, progress)

    monkeypatch.setattr("satura.backend.plan.lowered.compile_all", recorded)
    build = Builder()
    outputs = {
        f"{name}_{extent}": build.unary(name, build.input(f"{name}_of_{extent}", DType.F32, shape))
        for extent, shape in ((4, (4,)), (7, (7,)))
        for name in ("abs", "neg")
    }
    compiled = satura.compile(build.program(outputs), threads=1, rules="none")
    assert compiled.executables == {"loop_abs": 2, "loop_neg": 2}
    assert [source.name for source in compiled_sources] == ["loop_abs", "loop_neg"]
    assert compiled.statistics["executable-count"] == 2
    assert compiled.statistics["dispatch-count"] == 4


def test_kernels_are_shown_under_the_names_that_executables_have() -> None:
    build = Builder()
    outputs = {
        dtype.value: build.unary("abs", build.input(f"of_{dtype.value}", dtype, (4,)))
        for dtype in (DType.F32, DType.F64)
    }
    compiled = satura.compile(build.program(outputs), threads=1)
    assert compiled.executables == {"loop_abs": 1, "loop_abs'": 1}
    records = kernel_records(compiled.rewritten.schedule, 1)
    assert [record.name for record in records] == list(compiled.executables)
