"""Plans: kernels are merged where they are equal, and each region has an address when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import satura
from satura.artifact.container import Container
from satura.backend.emit.code import Code, KernelForm
from satura.backend.jit.machine_code import KernelSource, compile_all
from satura.backend.plan.executables import CYCLES, Executable, executables, merge_kernels
from satura.backend.plan.merging import MERGING
from satura.backend.plan.records import kernel_records
from satura.pipeline.inputs import random_inputs
from satura.rewrite.errors import CallError
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
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


@pytest.mark.parametrize("met", [(), ({"n": 1},), ({"n": 40}, {"n": 64})], ids=str)
def test_what_is_read_of_typical_sizes_is_not_kept(
    met: Sequence[Mapping[str, int]], tmp_path: Path
) -> None:
    build = Builder()
    weights = build.constant(np.ones((8, 3), np.float32))
    product = build.matmul(build.input("x", DType.F32, (symbol("n"), 8)), weights)
    program = build.program({"y": build.reduce("sum", product, (0,))})
    saved, read = [], []
    for looks in (False, True):
        compiled = satura.compile(program, threads=1)
        compiled.prepare(met)
        if looks:
            before = compiled.cache
            read.append((compiled.statistics, compiled.executables))
            assert compiled.cache == before
        compiled.save(tmp_path / "file", [{"n": 2}])
        (row,) = Container(tmp_path / "file").header["programs"]
        saved.append(([each["first"] for each in row["classes"]], row["constants"]))
        read.append((compiled.statistics, compiled.executables))
    assert saved[0] == saved[1]
    assert all(each[1] == read[0][1] for each in read)


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


def _levels(program: Program) -> dict[str, int]:
    """How many kernels there are per level, each of which gives what the interpreter gives."""
    arguments = random_inputs(program, {})
    expected = interpret(program, arguments)
    found = {}
    for level in MERGING:
        compiled = satura.compile(program, threads=1, rules="none", executables=level)
        for name, got in compiled.run(arguments).items():
            assert np.allclose(got, expected[name], rtol=1e-5, atol=1e-5)
        found[level] = len(compiled.executables)
    return found


def test_bodies_that_differ_by_names_order_constants_or_sizes_are_one() -> None:
    build = Builder()
    outputs = {}
    for at, (shape, factor) in enumerate([((3, 5), 2.0), ((7,), -0.5), ((2, 1, 9), 4.0)]):
        x = build.input(f"x{at}", DType.F32, shape)
        scale = build.constant(np.full(shape, factor), DType.F32)
        y = build.unary("exp", build.input(f"y{at}", DType.F32, shape)) if at else None
        product = build.binary("mul", *((x, scale) if at else (scale, x)))
        if y is None:
            y = build.unary("exp", build.input(f"y{at}", DType.F32, shape))
        total = build.binary("add", *((y, product) if at == 1 else (product, y)))
        outputs[f"out{at}"] = total
    assert _levels(build.program(outputs)) == {"none": 3, "exact": 1, "generic": 1, "cost": 1}


def test_a_product_of_two_never_runs_as_a_square() -> None:
    build = Builder()
    x, y, z = (build.input(name, DType.F32, (4, 6)) for name in "xyz")
    program = build.program({"xy": build.binary("mul", x, y), "zz": build.binary("mul", z, z)})
    assert _levels(program) == {"none": 2, "exact": 2, "generic": 2, "cost": 2}


def test_kernels_run_calls_with_fewer_axes_and_rows() -> None:
    """A matmul of one row runs in the kernel for many rows, or of many rows of two axes."""
    build = Builder()
    weight = build.constant(np.arange(64 * 32).reshape(64, 32) % 7 - 3, DType.F32)
    sources = [build.input(f"of_{rows}", DType.F32, (rows, 64)) for rows in (50, 1)]
    outputs = {f"y{source}": build.matmul(source, weight) for source in sources}
    spaced = build.slice(build.input("spaced", DType.F32, (6, 9, 64)), (0, 0, 0), (5, 7, 64))
    columns = build.constant(np.arange(64 * 40).reshape(1, 64, 40) % 5 - 2, DType.F32)
    weights = build.broadcast(columns, (5, 64, 40))
    program = build.program({**outputs, "spaced": build.matmul(spaced, weights)})
    found = _levels(program)
    assert found["none"] == found["exact"] == 3
    assert found["generic"] == found["cost"] == 1


def test_many_rows_never_run_in_a_kernel_for_one() -> None:
    """Sums of a single row wait for each other: its kernel may be the one that is left out."""
    build = Builder()
    weight = build.constant(np.arange(2048 * 512).reshape(2048, 512) % 7 - 3, DType.F32)
    sources = [build.input(f"of_{rows}", DType.F32, (rows, 2048)) for rows in (60, 1)]
    program = build.program({f"y{each}": build.matmul(each, weight) for each in sources})
    schedule = satura.compile(program, 1, "exact", rules="none").rewritten.schedule
    assert len(kernel_records(schedule, 1, "cost")) == 2
    (kernel,) = kernel_records(schedule, 1, "generic")
    assert "_1x" not in kernel.source


@dataclass(frozen=True)
class _Served:
    """The form of a kernel that serves every dispatch."""

    text: str

    def may_serve(self, other: KernelForm) -> bool:
        return self != other


@pytest.mark.parametrize(
    ("seconds", "merging", "expected"),
    [(0.0, "cost", "abc"), (1.0, "cost", "abb"), (50.0, "cost", "bbb"), (0.0, "generic", "bbb")],
)
def test_what_costs_least_is_merged_first_and_more_of_it_where_a_program_takes_long(
    seconds: float, merging: str, expected: str
) -> None:
    """Milliseconds more that dispatches 0, 1 and 2 take in the kernels a, b and c of each."""
    more = {0: {"b": 60.0, "c": 300.0}, 1: {"a": 400.0, "c": 90.0}, 2: {"a": 80.0, "b": 2.0}}

    def code(number: int, form: KernelForm | None) -> Code:
        assert isinstance(form, _Served)
        slower = more[number].get(form.text, 0.0) * CYCLES / 1000
        return Code(form.text, form.text, (), 1, 0, form, slower)

    codes = {number: code(number, _Served(text)) for number, text in enumerate("abc")}
    found = merge_kernels(codes, merging, code, seconds)
    assert "".join(found[number].text for number in codes) == expected


def test_an_unknown_level_of_executables_is_named() -> None:
    build = Builder()
    program = build.program({"y": build.unary("abs", build.input("x", DType.F32, (2,)))})
    with pytest.raises(CallError, match=r"executables is 'most'; choose from .*'generic', 'cost'"):
        satura.compile(program, executables="most")
