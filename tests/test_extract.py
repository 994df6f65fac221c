"""Extraction: schedules are complete and ordered, fusion does what it promises, costs add up."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.errors import CallError
from satura.rewrite.extract.candidates import enumerate_fragments
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.extract import EXTRACTORS, Method, extract
from satura.rewrite.extract.features import Features
from satura.rewrite.extract.schedule import Form, Schedule
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.extract.templates import Templates
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.random_programs import compare, random_program
from tests.tiers import deep_but


def unrewritten(program: Program) -> EClasses:
    """The e-graph of a program that no rule has touched: a class per node."""
    return EClasses(
        tuple((ENode(n.op.name, n.operands, n.attributes),) for n in program.nodes),
        tuple(node.type for node in program.nodes),
        program.known,
        program.inputs,
        program.outputs,
    )


def check(schedule: Schedule) -> None:
    """A schedule computes everything it needs, in order."""
    program = schedule.program
    program.verify()
    done = {*program.inputs, *schedule.constants}
    for dispatch in schedule.dispatches:
        inside = set(dispatch.nodes)
        for operand in dispatch.operands:
            home = schedule.homes[operand]
            stored = operand in done or program.nodes[operand].op.name == "concat"
            assert stored, f"%{operand} is read before it is stored"
            assert home.buffer in schedule.homes
        for node in dispatch.nodes:
            for operand in program.nodes[node].operands:
                assert operand in inside or operand in dispatch.operands
        assert not dispatch.nodes or dispatch.nodes[-1] == dispatch.root
        if dispatch.form is Form.ROW:
            assert dispatch.anchor in inside
        if dispatch.form in (Form.CONTRACTION, Form.WINDOW):
            kinds = [program.nodes[n].op.name for n in dispatch.nodes]
            assert sum(kinds.count(name) for name in ("conv", "matmul", "pool")) == 1
        done.add(dispatch.root)
    for index in program.output_nodes:
        assert index in schedule.homes
        if program.nodes[index].op.name != "concat":
            assert index in done


@pytest.mark.parametrize("seed", deep_but(range(4), range(40)))
@pytest.mark.parametrize("method", EXTRACTORS)
def test_random_programs_keep_their_meaning(seed: int, method: Method) -> None:
    program, arguments, exact = random_program(seed)
    schedule = extract(unrewritten(program), method=method)
    check(schedule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected, got = interpret(program, arguments), interpret(schedule.program, arguments)
    for name in expected:
        assert compare(expected[name], got[name], exact[name]) is None, program.python()


def conv_block(build: Builder, x: int, channels: int, out: int) -> int:
    """conv 3x3 + bias over a channels-last tensor."""
    weight = build.constant(np.ones((3, 3, channels, out), np.float32))
    window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
    result = build.conv(x, weight, window)
    shape = build.type(result).shape
    bias = build.reshape(build.constant(np.ones(out, np.float32)), (1,) * (len(shape) - 1) + (out,))
    return build.binary("add", result, build.broadcast(bias, shape))


def test_conv_bias_residual_relu_is_one_dispatch() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 8, 8, 16))
    y = build.unary("relu", build.binary("add", conv_block(build, x, 16, 16), x))
    schedule = extract(unrewritten(build.program({"y": y})))
    (dispatch,) = schedule.dispatches
    assert dispatch.form is Form.CONTRACTION
    assert len(dispatch.operands) == 3  # the input, which is the residual too, weight and bias


def test_growing_concat_is_one_buffer() -> None:
    build = Builder()
    x = conv_block(build, build.input("x", DType.F32, (1, 8, 8, 4)), 4, 16)
    for step in range(3):
        x = build.concat([x, conv_block(build, x, 16 + 8 * step, 8)], 3)
    schedule = extract(unrewritten(build.program({"y": conv_block(build, x, 40, 4)})))
    counts = statistics(schedule)
    assert counts["dispatch-count"] == 5
    assert counts["copy-count"] == counts["fill-count"] == counts["moved-bytes"] == 0
    starts = [d.target.start[-1] for d in schedule.dispatches]
    assert starts == [0, 16, 24, 32, 0]


def test_parts_of_a_concat_in_a_concat_follow_one_another() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 8, 8, 4))
    first, second, third = (conv_block(build, x, 4, width) for width in (8, 16, 24))
    inner = build.concat([second, third], 3)
    program = build.program({"y": build.concat([first, inner], 3)})
    dispatches = extract(unrewritten(program)).dispatches
    assert {dispatch.target.start[-1] for dispatch in dispatches} == {0, 8, 24}


def test_a_part_with_two_homes_is_copied() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 8, 8, 16))
    both = build.concat([x, x], 3)
    schedule = extract(unrewritten(build.program({"y": conv_block(build, both, 32, 4)})))
    check(schedule)
    assert statistics(schedule)["moved-bytes"] > 0


@pytest.mark.parametrize("method", ["search", "exact"])
def test_what_two_concats_share_is_stored_in_one_and_read_by_the_other(method: Method) -> None:
    """A candidate cannot know that another one wants its parts elsewhere, until both are chosen."""
    build = Builder()
    parts = [conv_block(build, build.input(name, DType.F32, (2, 6, 6, 8)), 8, 12) for name in "xy"]
    concats = {f"along {axis}": build.concat(parts, axis) for axis in (0, 3)}
    schedule = extract(unrewritten(build.program(concats)), method=method)
    check(schedule)
    assert statistics(schedule)["copy-count"] == 1  # both parts at once
    assert len(schedule.dispatches) == 3


def test_a_tensor_that_is_both_parts_of_a_concat_is_copied_once() -> None:
    build = Builder()
    x = conv_block(build, build.input("x", DType.F32, (1, 8, 8, 4)), 4, 16)
    schedule = extract(unrewritten(build.program({"y": build.concat([x, x], 3)})))
    check(schedule)
    counts = statistics(schedule)
    assert counts["moved-bytes"] == 8 * 8 * 16 * 4
    assert schedule.seconds == pytest.approx(sum(each.seconds for each in schedule.dispatches))


@pytest.mark.parametrize(
    ("shape", "axis", "placed"),
    [
        ((1, 108, 4), 1, 2), ((2, 108, 4), 1, 2), ((2, 108, 4), 0, 2), ((2, 36, 12), 2, 2),
        ((72, 12), 1, 2), ((2, 6, 3, 2, 12), 4, 2), ((2, 6, 3, 2, 12), 3, 0), ((1, 108, 4), 2, 0),
        ((2, 6, 72), 1, 2), ((2, 6, 2, 36), 2, 2), ((2, 18, 24), 2, 0), ((12, 6, 4, 3), 2, 2),
        ((12, 6, 4, 3), 3, 0),
    ],
)  # fmt: skip
def test_a_result_is_stored_through_a_reshape_where_it_has_strides(
    shape: tuple[int, ...], axis: int, placed: int
) -> None:
    """A convolution steps through its result in a larger buffer, where the reshape merges no axes
    across a gap; else both results are moved there by one dispatch."""
    build = Builder()
    parts = []
    batch = 1 if shape[0] == 1 else 2
    for name in "xy":
        x = build.input(name, DType.F32, (batch, 6, 6, 8))
        parts.append(build.reshape(conv_block(build, x, 8, 12), shape))
    program = build.program({"z": build.concat(parts, axis)})
    schedule = extract(unrewritten(program))
    assert sum(each.target.buffer != each.root for each in schedule.dispatches) == placed
    assert len(schedule.dispatches) == (2 if placed else 3)
    random = np.random.default_rng(axis)
    arguments = {name: random.standard_normal((batch, 6, 6, 8)).astype(np.float32) for name in "xy"}
    expected = interpret(program, arguments)["z"]
    for threads in (1, 2):
        found = compile_schedule(schedule, threads).run(arguments)["z"]
        assert compare(expected, found, exact=False) is None


@pytest.mark.parametrize(("shape", "copies"), [((72, 12), 0), ((216, 4), 1)])
def test_a_part_is_read_through_a_reshape_where_it_has_strides(
    shape: tuple[int, ...], copies: int
) -> None:
    build = Builder()
    parts = [conv_block(build, build.input(name, DType.F32, (2, 6, 6, 8)), 8, 12) for name in "xy"]
    weights = build.constant(np.linspace(-1, 1, shape[-1] * 5, dtype=np.float32).reshape(-1, 5))
    product = build.matmul(build.reshape(parts[0], shape), weights)
    program = build.program({"z": build.concat(parts, 3), "product": product})
    schedule = extract(unrewritten(program))
    check(schedule)
    assert sum(not dispatch.nodes for dispatch in schedule.dispatches) == copies
    random = np.random.default_rng(2)
    arguments = {name: random.standard_normal((2, 6, 6, 8)).astype(np.float32) for name in "xy"}
    expected, found = interpret(program, arguments), compile_schedule(schedule, 1).run(arguments)
    for name in expected:
        assert compare(expected[name], found[name], exact=False) is None


def test_softmax_is_one_row_dispatch() -> None:
    build = Builder()
    shape = (symbol("batch"), 12, symbol("seq"), symbol("seq"))
    x = build.input("x", DType.F32, shape)
    largest = build.broadcast(build.reduce("max", x, (3,)), shape)
    powers = build.unary("exp", build.binary("sub", x, largest))
    total = build.broadcast(build.reduce("sum", powers, (3,)), shape)
    program = build.program({"y": build.binary("div", powers, total)})
    (dispatch,) = extract(unrewritten(program)).dispatches
    assert dispatch.form is Form.ROW


def test_a_row_beside_what_it_reads_once_more_is_one_dispatch() -> None:
    """Alone, the sum of squares is cheaper where the product ends in the squares."""
    build, shape = Builder(), (64, 256)
    x = build.matmul(build.input("x", DType.F32, shape), build.input("w", DType.F32, (256, 256)))
    two = build.constant(np.full(shape, 2, np.float32))
    total = build.reduce("sum", build.binary("pow", x, two), (1,))
    y = build.binary("div", x, build.broadcast(build.unary("sqrt", total), shape))
    found = enumerate_fragments(
        unrewritten(build.program({"y": y, "x": x})), Templates(CostModel())
    )
    assert len(found.start.choice) == 2


class Launches(CostModel):
    def seconds(self, features: Features) -> float:
        return 1e-6


def test_a_cost_model_of_a_users_own_fuses_by_its_own_seconds() -> None:
    build, shape = Builder(), (64, 64)
    product = build.matmul(*(build.input(name, DType.F32, shape) for name in "xw"))
    program = build.program({"y": build.unary("relu", product)})
    assert len(extract(unrewritten(program), Launches()).dispatches) == 1


def test_attention_heads_are_read_and_written_in_place() -> None:
    """Splitting and merging heads are strides of the matmuls, not copies."""
    batch, seq = symbol("batch"), symbol("seq")
    build = Builder()

    def heads(name: str, perm: tuple[int, ...]) -> int:
        x = build.input(name, DType.F32, (batch * seq, 768))
        return build.transpose(build.reshape(x, (batch, seq, 12, 64)), perm)

    scores = build.matmul(heads("q", (0, 2, 1, 3)), heads("k", (0, 2, 3, 1)))
    mixed = build.matmul(scores, heads("v", (0, 2, 1, 3)))
    merged = build.reshape(build.transpose(mixed, (0, 2, 1, 3)), (batch * seq, 768))
    schedule = extract(unrewritten(build.program({"y": merged})))
    assert [d.form for d in schedule.dispatches] == [Form.CONTRACTION] * 2


@pytest.mark.deep
def test_long_chain_is_cut_into_dispatches() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (64,))
    for step in range(1500):
        x = build.unary(("relu", "neg", "abs")[step % 3], x)
    schedule = extract(unrewritten(build.program({"y": x})))
    check(schedule)
    assert len(schedule.dispatches) < 60


def test_shared_work_is_materialised_once() -> None:
    """Two convolutions read one expensive elementwise result: it is computed once."""
    build = Builder()
    x = build.unary("exp", build.input("x", DType.F32, (1, 8, 8, 16)))
    y = build.binary("add", conv_block(build, x, 16, 8), conv_block(build, x, 16, 8))
    schedule = extract(unrewritten(build.program({"y": y})))
    assert statistics(schedule)["redundant-flops"] == 0


def test_what_a_contraction_cannot_step_through_is_stored_first() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4, 6))
    torn = build.reshape(build.transpose(x, (1, 0)), (8, 3))
    program = build.program({"y": build.matmul(torn, build.input("w", DType.F32, (3, 5)))})
    copy, product = extract(unrewritten(program)).dispatches
    assert (copy.form, product.form) == (Form.LOOP, Form.CONTRACTION)
    assert copy.root in product.operands


@pytest.mark.parametrize("is_table", [True, False])
def test_what_is_gathered_in_runs_is_turned_before_or_after(is_table: bool) -> None:
    """Data says where a run starts: turned in the same loop, its elements would be far apart."""
    build = Builder()
    x = build.input("x", DType.F32, (64, 900) if is_table else (900, 64))
    table = build.transpose(x, (1, 0)) if is_table else x
    rows = build.gather(table, build.input("at", DType.I64, (1000,)), 0)
    result = rows if is_table else build.transpose(rows, (1, 0))
    schedule = extract(unrewritten(build.program({"y": result})))
    assert [schedule.program.nodes[each.root].op.name for each in schedule.dispatches] == (
        ["transpose", "gather"] if is_table else ["gather", "transpose"]
    )


def test_what_is_stored_anyway_is_read() -> None:
    """A convolution whose raw and relu'd results are both needed runs once."""
    build = Builder()
    raw = conv_block(build, build.input("x", DType.F32, (1, 8, 8, 16)), 16, 8)
    program = build.program({"raw": raw, "relu": build.unary("relu", raw)})
    schedule = extract(unrewritten(program))
    check(schedule)
    counts = statistics(schedule)
    assert counts["redundant-flops"] == 0
    assert counts["dispatch-count"] == 2


def test_shared_work_in_a_dispatch_is_paid_once() -> None:
    """A chain of x * sigmoid(x) reads each x twice: as a tree it has 2^12 sigmoids."""
    build = Builder()
    x = build.input("x", DType.F32, (64, 64))
    for _ in range(12):
        x = build.binary("mul", x, build.unary("sigmoid", x))
    (dispatch,) = extract(unrewritten(build.program({"y": x}))).dispatches
    assert len(dispatch.nodes) == 24


def test_an_unknown_method_is_an_error() -> None:
    build = Builder()
    classes = unrewritten(build.program({"y": build.unary("neg", build.input("x", DType.F32, ()))}))
    with pytest.raises(CallError, match="no method 'ilp'; choose from"):
        extract(classes, method="ilp")  # type: ignore[arg-type]


def test_only_movement_is_a_copy_and_only_constants_a_fill() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (3, 5))
    outputs = {"copy": build.transpose(x, (1, 0)), "ramp": build.iota((4, 4), 1, DType.I64)}
    counts = statistics(extract(unrewritten(build.program(outputs))))
    assert counts["copy-count"] == 1
    assert counts["fill-count"] == 1
