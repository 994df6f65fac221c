"""Lowering: how dispatches become loop nests, and that fused ones compute what they should."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from satura.backend.lower.canonical import canonical
from satura.backend.lower.loop_nests import lower
from satura.backend.plan.buffers import Lifetime, plan_arena
from satura.backend.plan.compiled import CompiledSchedule, compile_schedule
from satura.rewrite.errors import CallError
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import static, symbol
from satura.rewrite.types.tensor_type import Array, DType
from tests.random_programs import compare
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch, one_dispatch_per_node

F32 = DType.F32


def draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def nests_of(program: Program) -> list[tuple[int, ...]]:
    """Extents of the canonical nests of a program that runs in one dispatch."""
    schedule = one_dispatch(program)
    return [canonical(nest).nest.extents for nest in lower(schedule, schedule.dispatches[0])]


def check(program: Program, **arguments: Array) -> CompiledSchedule:
    """The program in one dispatch equals the interpreter."""
    compiled = compile_schedule(one_dispatch(program), 2)
    out = compiled.run(arguments)
    for name, expected in interpret(program, arguments).items():
        assert compare(expected, out[name], exact=False) is None, name
    return compiled


# Loops


def test_contiguous_elementwise_work_is_one_loop() -> None:
    build = Builder()
    x = build.input("x", F32, (3, 4, 5, 6))
    program = build.program({"y": build.unary("relu", build.reshape(x, (12, 30)))})
    assert nests_of(program) == [(360,)]


def test_what_data_lead_to_is_read_along_its_runs() -> None:
    """Sums of bags of rows: along a bag, data would say for each element where it is."""
    build = Builder()
    at = build.input("at", DType.I64, (50, 20))
    rows = build.gather(build.input("x", F32, (30, 16)), at, 0)
    program = build.program({"y": build.reduce("sum", rows, (1,))})
    assert [extents[-1] for extents in nests_of(program)] == [16]


def test_a_transpose_keeps_only_the_loops_it_needs() -> None:
    build = Builder()
    x = build.input("x", F32, (2, 3, 4, 5))
    program = build.program({"y": build.transpose(x, (0, 2, 3, 1))})
    assert nests_of(program) == [(2, 3, 20)]


def test_a_broadcast_row_splits_the_loop() -> None:
    build = Builder()
    x, row = build.input("x", F32, (6, 7, 8)), build.input("row", F32, (1, 1, 8))
    program = build.program({"y": build.binary("add", x, build.broadcast(row, (6, 7, 8)))})
    assert nests_of(program) == [(42, 8)]


def test_pads_and_concats_become_boxes() -> None:
    build = Builder()
    x = build.input("x", F32, (4, 6))
    padded = build.unary("relu", build.pad(x, (1, 2), (0, 3), -1.5))
    program = build.program({"y": padded})
    assert sorted(nests_of(program)) == sorted([(11,), (4, 2), (4, 6), (4, 3)])
    check(program, x=draw(4, 6))


def test_nested_pads_and_concats() -> None:
    build = Builder()
    x, y = build.input("x", F32, (4, 6)), build.input("y", F32, (4, 3))
    joined = build.concat([build.pad(x, (0, 1), (0, 1), 2.0), y, x], 1)
    turned = build.transpose(build.pad(joined, (1, 0), (1, 2), -1.0), (1, 0))
    program = build.program({"z": build.unary("abs", turned)})
    check(program, x=draw(4, 6), y=draw(4, 3))


def test_a_reshape_that_cuts_an_axis_splits_its_loop() -> None:
    """4096 as 64 × 64, with a transpose between: no division is left."""
    build = Builder()
    x = build.input("x", F32, (8, 36))
    split = build.transpose(build.reshape(x, (8, 6, 6)), (2, 0, 1))
    program = build.program({"y": build.unary("neg", build.reshape(split, (6, 48)))})
    schedule = one_dispatch(program)
    (nest,) = lower(schedule, schedule.dispatches[0])
    assert all(value.op != "quotient" for value in nest.values)
    check(program, x=draw(8, 36))


def test_reshapes_that_do_not_split_still_compute() -> None:
    build = Builder()
    x = build.input("x", F32, (6, 10))
    program = build.program({"y": build.reshape(build.transpose(x, (1, 0)), (4, 15))})
    check(program, x=draw(6, 10))


def test_a_guard_over_several_loops_becomes_a_mask() -> None:
    build = Builder()
    x = build.input("x", F32, (5, 6))
    long = build.pad(build.reshape(x, (30,)), (3,), (3,), 7.0)
    program = build.program({"y": build.transpose(build.reshape(long, (4, 9)), (1, 0))})
    check(program, x=draw(5, 6))


@pytest.mark.parametrize("size", [1, 2, 7, 99])
def test_scores_that_are_shifted_by_their_row_are_one_plain_nest(size: int) -> None:
    """The pad of an attention by relative positions is never read, and nothing is divided."""
    build = Builder()
    width = 2 * size - 1
    padded = build.pad(build.input("x", F32, (4, size, width)), (0, 0, 1), (0, 0, 0))
    turned = build.slice(build.reshape(padded, (4, 2 * size, size)), (0, 1, 0), (4, width, size))
    again = build.reshape(turned, (4, size, width))
    program = build.program({"y": build.slice(again, (0, 0, 0), (4, size, size))})
    schedule = one_dispatch(program)
    (nest,) = lower(schedule, schedule.dispatches[0])
    (value,) = nest.values
    assert value.op == "load" and not value.operands
    x = draw(4, size, width)
    out = check(program, x=x).run({"x": x})["y"]
    for row in range(size):
        np.testing.assert_array_equal(out[:, row], x[:, row, size - 1 - row :][:, :size])


def test_rotary_halves() -> None:
    build = Builder()
    x = build.input("x", F32, (3, 5, 8))
    first = build.slice(x, (0, 0, 0), (3, 5, 4))
    second = build.unary("neg", build.slice(x, (0, 0, 4), (3, 5, 4)))
    turned = build.concat([second, first], 2)
    check(build.program({"y": build.binary("add", x, turned)}), x=draw(3, 5, 8))


# Reductions


def softmax(build: Builder, x: int, axes: tuple[int, ...]) -> int:
    shape = build.type(x).shape
    top = build.broadcast(build.reduce("max", x, axes), shape)
    grown = build.unary("exp", build.binary("sub", x, top))
    return build.binary("div", grown, build.broadcast(build.reduce("sum", grown, axes), shape))


@pytest.mark.parametrize("axes", deep_but([(2,), (0, 2)], [(2,), (1,), (0, 2), (1, 2), (0, 1, 2)]))
def test_softmax_over_any_axes_is_one_dispatch(axes: tuple[int, ...]) -> None:
    build = Builder()
    x = build.input("x", F32, (6, 9, 20))
    program = build.program({"y": build.reshape(softmax(build, x, axes), (54, 20))})
    check(program, x=draw(6, 9, 20))


@pytest.mark.parametrize("axis", [0, 1])
def test_normalisation_with_scale_and_residual(axis: int) -> None:
    build = Builder()
    shape = (70, 50)
    x, other = build.input("x", F32, shape), build.input("other", F32, shape)
    total = build.binary("add", x, other)

    def mean(node: int) -> int:
        count = build.broadcast(
            build.reshape(build.constant(np.float32(shape[axis])), (1, 1)),
            tuple(1 if i == axis else n for i, n in enumerate(shape)),
        )
        return build.binary("div", build.reduce("sum", node, (axis,)), count)

    centred = build.binary("sub", total, build.broadcast(mean(total), shape))
    spread = build.unary("sqrt", mean(build.binary("mul", centred, centred)))
    scaled = build.binary("div", centred, build.broadcast(spread, shape))
    row = build.constant(draw(1, 50))
    program = build.program({"y": build.binary("mul", scaled, build.broadcast(row, shape))})
    check(program, x=draw(*shape), other=draw(*shape))


def test_an_index_of_the_largest_of_something_computed() -> None:
    build = Builder()
    x = build.input("x", F32, (4, 30))
    program = build.program(
        {"y": build.reshape(build.arg_reduce("max", build.unary("abs", x), 1), (4,))}
    )
    check(program, x=draw(4, 30))


@pytest.mark.parametrize(
    "shape", deep_but([(0, 3), (1, 1)], [(0, 3), (3, 0), (1, 1), (1, 5), (5, 1)])
)
def test_empty_and_unit_extents(shape: tuple[int, int]) -> None:
    build = Builder()
    x = build.input("x", F32, shape)
    for outputs in (
        {"sum": build.reduce("sum", x, (1,))},
        {"max": build.reduce("max", x, (0, 1))},
        {"relu": build.unary("relu", build.transpose(x, (1, 0)))},
        {"padded": build.pad(x, (1, 0), (0, 2), 3.0)},
        {"joined": build.concat([x, x], 1)},
        {"product": build.matmul(x, build.constant(draw(shape[1], 4)))},
    ):
        check(build.program(outputs), x=draw(*shape))


# Windows and contractions


def test_a_pool_with_work_after_it() -> None:
    build = Builder()
    x = build.input("x", F32, (2, 8, 9, 12))
    window = build.window(F32, (1, 3, 3, 1), (1, 2, 2, 1), None, (0, 1, 1, 0), (0, 1, 0, 0), 0.5)
    pooled = build.pool(
        "max", build.transpose(build.transpose(x, (0, 2, 1, 3)), (0, 2, 1, 3)), window
    )
    program = build.program({"y": build.transpose(build.unary("tanh", pooled), (0, 3, 1, 2))})
    check(program, x=draw(2, 8, 9, 12))


@pytest.mark.parametrize("groups", deep_but([2], [1, 2, 12]))
def test_a_convolution_with_bias_residual_and_transposed_store(groups: int) -> None:
    build = Builder()
    x = build.input("x", F32, (2, 8, 9, 12))
    window = build.window(F32, (3, 3), (2, 1), None, (1, 1), (1, 0), 0)
    weight = build.constant(draw(3, 3, 12 // groups, 24))
    result = build.conv(x, weight, window, groups)
    shape = build.type(result).shape
    residual = build.input("residual", F32, shape)
    total = build.binary("add", result, build.broadcast(build.constant(draw(1, 1, 1, 24)), shape))
    total = build.unary("relu", build.binary("add", total, residual))
    program = build.program({"y": build.transpose(total, (0, 3, 1, 2))})
    residual_shape = tuple(map(static, shape))
    check(program, x=draw(2, 8, 9, 12), residual=draw(*residual_shape))


def test_attention_scores_split_into_heads() -> None:
    """q · kᵀ per head, read through reshapes and transposes of [tokens, heads · width]."""
    build = Builder()
    q, k = build.input("q", F32, (2, 10, 24)), build.input("k", F32, (2, 11, 24))
    heads = build.transpose(build.reshape(q, (2, 10, 3, 8)), (0, 2, 1, 3))
    keys = build.transpose(build.reshape(k, (2, 11, 3, 8)), (0, 2, 3, 1))
    scores = build.matmul(heads, keys)
    shape = build.type(scores).shape
    scale = build.broadcast(build.constant(np.full((1, 1, 1, 1), 0.3, np.float32)), shape)
    program = build.program({"y": build.binary("mul", scores, scale)})
    check(program, q=draw(2, 10, 24), k=draw(2, 11, 24))


# Executables


def text_of(program: Program) -> str:
    (executable,) = compile_schedule(one_dispatch(program), 1).executables()
    return executable.source


def test_twins_share_their_text() -> None:
    """Extents, scalars and the order of commutative operands do not matter."""
    texts = set()
    for extent, scalar, swapped in ((8, 2.0, False), (50, 3.0, True)):
        build = Builder()
        x, y = build.input("x", F32, (3, extent)), build.input("y", F32, (1, extent))
        factor = build.broadcast(build.constant(np.full((1, 1), scalar, np.float32)), (3, extent))
        pair = (factor, build.unary("exp", x)) if swapped else (build.unary("exp", x), factor)
        total = build.binary("mul", *pair)
        pair = (build.broadcast(y, (3, extent)), total)
        program = build.program({"z": build.binary("add", *(pair[::-1] if swapped else pair))})
        texts.add(text_of(program))
    assert len(texts) == 1


def test_a_square_map_is_nothing_special() -> None:
    texts = set()
    for height, width in ((8, 8), (7, 9)):
        build = Builder()
        x = build.input("x", F32, (1, height, width, 6))
        window = build.window(F32, (1, 3, 3, 1), None, None, (0, 1, 1, 0), (0, 1, 1, 0), -np.inf)
        texts.add(text_of(build.program({"y": build.pool("max", x, window)})))
    assert len(texts) == 1


def test_different_bodies_do_not_share() -> None:
    def square(same: bool, dtype: DType) -> str:
        build = Builder()
        x, y = build.input("x", dtype, (9,)), build.input("y", dtype, (9,))
        return text_of(build.program({"z": build.binary("mul", x, x if same else y)}))

    assert len({square(True, F32), square(False, F32), square(False, DType.F64)}) == 3


# Homes, buffers, calls


def test_parts_of_a_concat_are_stored_in_place() -> None:
    """Two producers write into slices of one buffer, a consumer reads one slice of it."""
    build = Builder()
    x = build.input("x", F32, (5, 4))
    first, second = build.unary("relu", x), build.unary("neg", x)
    joined = build.concat([first, second], 1)
    again = build.unary("abs", second)
    program = build.program({"joined": joined, "again": again})
    names = {node.op.name + str(node.attributes[:1]): i for i, node in enumerate(program.nodes)}
    assert len(names) == len(program.nodes)
    outputs = dict(program.outputs)
    buffer = outputs["joined"]
    parts = program.nodes[buffer].operands
    homes = {program.inputs[0]: Home(program.inputs[0], (0, 0)), buffer: Home(buffer, (0, 0))}
    homes[parts[0]], homes[parts[1]] = Home(buffer, (0, 0)), Home(buffer, (0, 4))
    homes[outputs["again"]] = Home(outputs["again"], (0, 0))
    dispatches = tuple(
        Dispatch(Form.LOOP, node, (node,), program.nodes[node].operands, None, homes[node])
        for node in (*parts, outputs["again"])
    )
    schedule = Schedule(program, dispatches, (), homes)
    arguments = {"x": draw(5, 4)}
    out = compile_schedule(schedule, 2).run(arguments)
    for name, expected in interpret(program, arguments).items():
        np.testing.assert_array_equal(out[name], expected)


def test_buffers_that_live_at_different_times_share_memory() -> None:
    chain = [Lifetime(i, 1000, i, i + 1) for i in range(10)]
    assert plan_arena(chain).size == 2 * 1024
    together = [Lifetime(i, 64, 0, 5) for i in range(4)]
    arena = plan_arena(together)
    assert arena.size == 4 * 64
    assert len(set(arena.offsets.values())) == 4


def test_symbolic_sizes_and_inputs_that_are_not_contiguous() -> None:
    build = Builder()
    n = symbol("n")
    x = build.input("x", F32, (n, 4))
    program = build.program({"y": softmax(build, build.transpose(x, (1, 0)), (1,)), "x": x})
    compiled = compile_schedule(one_dispatch_per_node(program), 2)
    for extent in (3, 1, 0, 7, 3):
        array = draw(4, extent).T[:, ::-1]
        array.flags.writeable = False
        out = compiled.run({"x": array})
        for name, expected in interpret(program, {"x": array}).items():
            assert compare(expected, out[name], exact=False) is None, name
        assert not np.shares_memory(out["x"], array)
    with pytest.raises(CallError, match="must be f32"):
        compiled.run({"x": np.zeros((3, 4))})


def test_new_sizes_use_the_same_kernels() -> None:
    build = Builder()
    n = symbol("n")
    x = build.input("x", F32, (n, 8))
    weight = build.constant(draw(8, 5))
    program = build.program({"y": build.unary("tanh", build.matmul(x, weight))})
    compiled = compile_schedule(one_dispatch_per_node(program), 1)
    texts = {tuple(e.source for e in compiled.executables({"n": n_})) for n_ in (2, 9, 33)}
    assert len(texts) == 1


@pytest.mark.deep
def test_no_kernel_needs_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All text is translated directly, whatever a program consists of."""
    monkeypatch.setenv("SATURA_CACHE", str(tmp_path / "kernels"))
    script = """
import sys
import subprocess
import sys

import numpy as np
from tests.test_lower import warm_program
from satura.backend.plan.compiled import compile_schedule
from tests.trivial_scheduler import one_dispatch_per_node
compiled = compile_schedule(one_dispatch_per_node(warm_program()), 2)
compiled.run({"x": np.ones((2, 6, 8), np.float32)})
print("numba" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == "False"


def warm_program() -> Program:
    """A loop, a row, a contraction and a window."""
    build = Builder()
    x = build.input("x", F32, (2, 6, 8))
    product = build.matmul(x, build.constant(np.ones((2, 8, 3), np.float32)))
    window = build.window(F32, (1, 2, 1))
    pooled = build.pool("max", build.unary("tanh", product), window)
    return build.program({"y": build.reduce("sum", pooled, (2,))})


def test_boxes_of_different_depth_share_their_text() -> None:
    build = Builder()
    x = build.input("x", F32, (4, 6, 7))
    program = build.program({"y": build.unary("tanh", build.pad(x, (1, 2, 3), (1, 2, 3), 0.5))})
    assert text_of(program).count("for box in") <= 3
    check(program, x=draw(4, 6, 7))


def test_eight_threads_call_one_program() -> None:
    build = Builder()
    x = build.input("x", F32, (40, 64))
    product = build.matmul(softmax(build, x, (1,)), build.constant(draw(64, 48)))
    program = build.program({"y": build.unary("erf", product)})
    compiled = compile_schedule(one_dispatch_per_node(program), 2)
    inputs = [np.roll(draw(40, 64), shift, 1) for shift in range(8)]
    expected = [compiled.run({"x": array})["y"] for array in inputs]

    def call(number: int) -> bool:
        outs = (compiled.run({"x": inputs[number]})["y"] for _ in range(100))
        return all(np.array_equal(out, expected[number]) for out in outs)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(8)))
