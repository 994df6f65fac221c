"""Schedules as text: they read back as they were, and none is read that cannot run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.models import TINY, build
from satura.pipeline.api import rewritten
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.extract.schedule_text import parse_schedule, schedule_text
from satura.rewrite.extract.verify import verify
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from tests.random_programs import random_program
from tests.tiers import deep_but


def read_back(schedule: Schedule) -> Schedule:
    constants = [node.constant for node in schedule.program.nodes if node.op.name == "constant"]
    by_label = {each.label: each for each in constants if each.label is not None}
    return parse_schedule(schedule_text(schedule), by_label)


READ_BACK = ("tiny_resnet_pad", "tiny_bert", "tiny_swin", "tiny_deeplab")


@pytest.mark.parametrize("name", deep_but(["tiny_rope_attention"], TINY, READ_BACK))
def test_schedules_of_models_read_back(name: str) -> None:
    schedule = rewritten(build(name)).schedule
    assert read_back(schedule) == schedule


@pytest.mark.parametrize("seed", deep_but(range(1), range(200), range(10)))
@pytest.mark.parametrize("rules", ["none", "default"])
def test_schedules_of_random_programs_read_back(seed: int, rules: str) -> None:
    schedule = rewritten(random_program(seed)[0], rules).schedule
    assert read_back(schedule) == schedule


@pytest.fixture(scope="module")
def joined() -> Schedule:
    """Two products side by side in a concat, with the input as a third part, which is copied."""
    build = Builder()
    n = symbol("n")
    x = build.input("x", DType.F32, (n, 64))
    w = build.constant(np.arange(64 * 256, dtype=np.float32).reshape(64, 256))
    product = build.matmul(x, w)
    y = build.concat([product, build.matmul(x, build.unary("neg", w)), x], 1)
    scale = build.reduce("max", build.unary("abs", product), [1])
    program = build.program({"y": y, "scale": scale})
    return rewritten(program, "none").schedule


def test_a_schedule_with_placed_and_copied_parts_reads_back(joined: Schedule) -> None:
    assert {dispatch.form for dispatch in joined.dispatches} >= {Form.CONTRACTION, Form.ROW}
    assert any(not dispatch.nodes for dispatch in joined.dispatches)
    assert any(home.buffer != node for node, home in joined.homes.items())
    assert read_back(joined) == joined
    exact = replace(joined, is_exact=True)
    assert read_back(exact) == exact != joined


def the_dispatch(schedule: Schedule, form: Form) -> Dispatch:
    return next(each for each in schedule.dispatches if each.form is form and each.nodes)


def with_dispatch(schedule: Schedule, old: Dispatch, *new: Dispatch) -> Schedule:
    at = schedule.dispatches.index(old)
    return replace(
        schedule, dispatches=(*schedule.dispatches[:at], *new, *schedule.dispatches[at + 1 :])
    )


def assert_refused(schedule: Schedule, flaw: str) -> None:
    with pytest.raises(ProgramError, match=flaw):
        verify(schedule)


def test_a_dispatch_that_is_missing_late_or_twice_is_refused(joined: Schedule) -> None:
    row = the_dispatch(joined, Form.ROW)
    assert_refused(with_dispatch(joined, row), "no buffer of its own|lies nowhere|nothing computes")
    late = replace(joined, dispatches=joined.dispatches[::-1])
    assert_refused(late, "before it is stored|not in its place")
    assert_refused(with_dispatch(joined, row, row, row), "stored twice")


def test_a_copy_that_is_missing_or_goes_elsewhere_is_refused(joined: Schedule) -> None:
    copy = next(dispatch for dispatch in joined.dispatches if not dispatch.nodes)
    assert_refused(with_dispatch(joined, copy), "not in its place")
    start = (*copy.target.start[:-1], copy.target.start[-1] - 1)
    moved = replace(copy, target=replace(copy.target, start=start))
    assert_refused(with_dispatch(joined, copy, moved), "copied where nobody reads it")


@pytest.mark.parametrize("start", [-1, 1, 9, 1 << 40, symbol("n")])
def test_a_home_outside_its_buffer_or_off_its_place_is_refused(
    joined: Schedule, start: int
) -> None:
    product = the_dispatch(joined, Form.CONTRACTION)
    home = Home(product.target.buffer, (start, 0))
    moved = with_dispatch(joined, product, replace(product, target=home))
    flaw = "not inside|not in its place|copied where"
    assert_refused(replace(moved, homes={**joined.homes, product.root: home}), flaw)


def test_homes_in_foreign_buffers_are_refused(joined: Schedule) -> None:
    row = the_dispatch(joined, Form.ROW)
    (x,) = joined.program.inputs
    for node in (row.root, x, *joined.constants):
        for buffer in {*joined.homes, 0, -1, 1 << 40} - {node}:
            start = (0,) * joined.program.nodes[node].type.rank
            homes = {**joined.homes, node: Home(buffer, start)}
            assert_refused(replace(joined, homes=homes), "%")


def test_dispatches_of_a_form_that_does_not_fit_are_refused(joined: Schedule) -> None:
    for dispatch in joined.dispatches:
        for form in set(Form) - {dispatch.form}:
            assert_refused(
                with_dispatch(joined, dispatch, replace(dispatch, form=form)), "computed by|copied"
            )


def test_an_anchor_or_operand_that_does_not_fit_is_refused(joined: Schedule) -> None:
    row = the_dispatch(joined, Form.ROW)
    for changed in (
        replace(row, anchor=None), replace(row, anchor=row.nodes[0]), replace(row, anchor=1 << 40),
    ):  # fmt: skip
        assert_refused(with_dispatch(joined, row, changed), "computed by a row")
    assert_refused(with_dispatch(joined, row, replace(row, operands=())), "its dispatch does not")
    assert_refused(with_dispatch(joined, row, replace(row, nodes=row.nodes[::-1])), "in no order")
    inputs = tuple(sorted({*joined.program.inputs, *row.nodes}))
    assert_refused(with_dispatch(joined, row, replace(row, nodes=inputs)), "is an input")
    (x,) = joined.program.inputs
    more = replace(row, operands=(*row.operands, x))
    assert_refused(with_dispatch(joined, row, more), "needs not all")


def test_constants_have_to_be_known(joined: Schedule) -> None:
    changed = replace(joined, constants=(*joined.constants, joined.dispatches[0].root))
    assert_refused(changed, "not computed from constants")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("takes ", "takes nan"),
        ("takes ", "takes 1e999"),
        ("dispatch row", "dispatch wavefront"),
        ("dispatch row", "launch row"),
        ("home %0", "home %999999"),
        ("\n\n", "\n"),
        ("neg", "negative"),
        ("%0 = ", "%1 = "),
    ],
)
def test_other_text_is_refused(joined: Schedule, old: str, new: str) -> None:
    text = schedule_text(joined)
    assert old in text
    constants = [node.constant for node in joined.program.nodes if node.op.name == "constant"]
    with pytest.raises(ProgramError):
        parse_schedule(text.replace(old, new, 1), {str(each.label): each for each in constants})
