"""The e-graph grows with the program, not faster: what moves has been composed before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto

from benchmarks.models import build
from satura.language import (
    Law,
    Shape,
    Tensor,
    attribute_function,
    binary,
    broadcast,
    rewrites,
    rule,
)
from satura.pipeline.api import optimize
from satura.pipeline.models import load
from satura.rewrite.egraph.saturate import Saturation, in_same_class, saturate
from satura.rewrite.extract.extract import extract
from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT
from tests.onnx_models import Typed, make_model, node
from tests.tiers import deep_but

F32 = DType.F32
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def convolution(build: Builder, x: int) -> int:
    weight = build.constant(np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype(np.float32))
    return build.conv(x, weight, build.window(F32, (1, 1)))


def chain(length: int, with_constants: bool = False, is_turned: bool = True) -> Program:
    """Elementwise ops between channels-last convolutions, on a channels-first tensor if turned."""
    b = Builder()
    x = convolution(b, b.input("x", F32, (1, 8, 8, 4)))
    x, shape = (b.transpose(x, TO_FIRST), (1, 4, 8, 8)) if is_turned else (x, (1, 8, 8, 4))
    for number in range(length):
        if with_constants and number % 2:
            scale = b.constant(np.full((1, 4, 1, 1), 1 + number / 100, np.float32))
            scale = scale if is_turned else b.reshape(scale, (1, 1, 1, 4))
            x = b.binary("mul", x, b.broadcast(scale, shape))
        else:
            x = b.unary("sigmoid" if number % 4 else "tanh", x)
    return b.program({"y": convolution(b, b.transpose(x, TO_LAST) if is_turned else x)})


def parts(count: int) -> Program:
    """A tensor in `count` slices, a function of each, and their concatenation."""
    b = Builder()
    x = b.input("x", F32, (2, 3 * count))
    pieces = [b.slice(x, (0, 3 * number), (2, 3)) for number in range(count)]
    return b.program(
        {"y": b.concat([b.unary("tanh", b.unary("exp", piece)) for piece in pieces], 1)}
    )


def pads(count: int) -> Program:
    """A pad and a function that keeps its value, by turns."""
    b = Builder()
    x = b.input("x", F32, (2, 3))
    for _ in range(count):
        x = b.unary("tanh", b.pad(x, [1, 0], [0, 1]))
    return b.program({"y": x})


def transposes(count: int) -> Program:
    """A random transpose of five axes and a function, by turns."""
    b, random = Builder(), np.random.default_rng(0)
    x = b.input("x", F32, (2, 3, 4, 5, 6))
    for _ in range(count):
        x = b.unary("tanh", b.transpose(x, tuple(map(int, random.permutation(5)))))
    return b.program({"y": x})


def reflected(count: int) -> Program:
    """Channels-last convolutions of images of any size with reflected borders."""
    b, high, wide = Builder(), symbol("h"), symbol("w")
    x = b.input("x", F32, (1, 4, high, wide))
    for _ in range(count):
        first = b.slice(x, (0, 0, 1, 0), (1, 4, 1, wide))
        last = b.slice(x, (0, 0, high - 2, 0), (1, 4, 1, wide))
        x = b.concat([first, x, last], 2)
        first = b.slice(x, (0, 0, 0, 1), (1, 4, high + 2, 1))
        last = b.slice(x, (0, 0, 0, wide - 2), (1, 4, high + 2, 1))
        x = b.transpose(b.concat([first, x, last], 3), TO_LAST)
        weight = b.constant(np.ones((3, 3, 4, 4), np.float32))
        x = b.unary("relu", b.transpose(b.conv(x, weight, b.window(F32, (3, 3))), TO_FIRST))
    return b.program({"y": x})


def scaled_sums(count: int) -> Program:
    """A constant is added and another multiplied with, by turns, between two transposes."""
    b = Builder()
    x, shape = b.transpose(b.input("x", F32, (2, 4, 3)), (1, 2, 0)), (4, 3, 2)
    for number in range(count):
        shift = b.constant(np.full((1, 3, 1), number, np.float32))
        scale = b.constant(np.full((1, 1, 1), 1 + number / 100, np.float32))
        x = b.binary("add", x, b.broadcast(shift, shape))
        x = b.binary("mul", x, b.broadcast(scale, shape))
    return b.program({"y": b.reshape(x, (12, 2))})


def varying_ops(program: Program) -> list[str]:
    """The ops of what depends on an input."""
    return [n.op.name for n, known in zip(program.nodes, program.known, strict=True) if not known]


def cheapest(program: Program) -> Schedule:
    """What extraction finds once nothing more is left to do."""
    saturation = saturate(program, DEFAULT)
    assert saturation.report.stopped == "saturated"
    return extract(saturation.classes)


def growth(saturation: Saturation) -> float:
    """E-nodes at the end for each at the start."""
    assert saturation.report.stopped == "saturated"
    return saturation.report.nodes / saturation.report.rounds[0].nodes


@pytest.mark.parametrize("length", deep_but([40], [40, 200]))
def test_inverse_transposes_meet_over_many_ops(length: int) -> None:
    assert "transpose" not in varying_ops(cheapest(chain(length)).program)


@pytest.mark.deep
def test_constants_on_the_way_do_not_matter() -> None:
    program = chain(200, with_constants=True)
    goal = chain(200, with_constants=True, is_turned=False)
    assert in_same_class(saturate(program, DEFAULT), program.output_nodes[0], goal)


@pytest.mark.parametrize("count", deep_but([16], [16, 64]))
def test_many_parts_become_one(count: int) -> None:
    ops = varying_ops(cheapest(parts(count)).program)
    assert ops == ["input", "unary", "unary"]


@pytest.mark.parametrize("is_left", [False, True])
def test_what_adds_nothing_is_moved_once(is_left: bool) -> None:
    """0 + n = n: each term of n is not one more to which 0 is added before it is broadcast."""
    b, n = Builder(), symbol("n")
    zero = b.broadcast(b.constant([[0]], DType.I64), (1, n))
    size = b.broadcast(b.reshape(b.extent(n), (1, 1)), (1, n))
    total = b.binary("add", *((zero, size) if is_left else (size, zero)))
    total = b.binary("mul", total, b.iota((1, n), 1, DType.I64))
    assert growth(saturate(b.program({"y": total}), DEFAULT)) < 4


def test_pads_of_one_value_become_one() -> None:
    assert varying_ops(cheapest(pads(16)).program).count("pad") == 1


@pytest.mark.parametrize(
    "program", deep_but([pads, scaled_sums], [parts, pads, scaled_sums, transposes])
)
def test_growth_does_not_depend_on_the_length(program: Callable[[int], Program]) -> None:
    short, long = (growth(saturate(program(length), DEFAULT)) for length in (8, 16))
    assert long < 1.5 * short


@pytest.mark.parametrize("between", ["nothing", "pad", "concat"])
def test_what_is_made_of_a_class_alone_does_not_hide_its_terms(between: str) -> None:
    """Two halves of [a, c] are joined again: a slice of [a, c], or of what holds it, is no term."""
    b = Builder()
    a, c = (b.input(name, F32, (1, 2)) for name in "ac")
    whole = b.concat([a, c], 0)
    if between == "pad":
        whole = b.pad(whole, (0, 0), (1, 0), 0.0)
    elif between == "concat":
        whole = b.concat([whole, a], 0)
    halves = [b.slice(whole, [start, 0], [1, 2]) for start in (0, 1)]
    joined = {"flat": b.concat(halves, 1), "same": b.unary("exp", b.concat(halves, 0))}
    program = b.program({"whole": whole, **joined})
    arguments = {name: np.array([[1, 2]], np.float32) for name in "ac"}
    expected, got = interpret(program, arguments), interpret(optimize(program), arguments)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array)


def test_a_function_over_its_own_class_is_not_used() -> None:
    """The class of x - 0 is that of x: rules that move past the subtraction would never end; nor
    do transposes that cancel stay."""
    b = Builder()
    x = b.unary("neg", b.input("x", F32, (2, 3)))
    zero = b.broadcast(b.constant(np.zeros((1, 1), np.float32)), (2, 3))
    moved = b.reshape(b.binary("sub", b.transpose(x, (1, 0)), b.transpose(zero, (1, 0))), (6,))
    again = b.unary("exp", b.transpose(b.transpose(x, (1, 0)), (1, 0)))
    classes = saturate(b.program({"y": moved, "z": again}), DEFAULT).classes
    nodes = [(home, node) for home, nodes in enumerate(classes.nodes) for node in nodes]
    assert not [node for home, node in nodes if home in node.operands]


def sums_of_one_row(rows: int = 1) -> ModelProto:
    """Rows of 32 numbers, added where their numbers in `row` say."""
    nodes = [
        node("Unsqueeze", "row one", "e"), node("Expand", "e shape", "i"),
        node("ScatterElements", "zeros i u", axis=0, reduction="add"),
    ]  # fmt: skip
    constants: dict[str, object] = {
        "one": [1], "shape": [rows, 32], "zeros": np.zeros((2, 32), np.float32)
    }  # fmt: skip
    return make_model(nodes, {"row": Typed([rows]), "u": (rows, 32)}, constants, 18)


def test_what_is_repeated_from_equal_shapes_is_equal() -> None:
    """Without it, products of what is repeated are repeated products, and so on for 800 rounds."""
    report = saturate(load(sums_of_one_row()), DEFAULT).report
    assert report.stopped == "saturated" and len(report.rounds) < 40


def test_what_is_made_of_repeated_constants_is_made_once() -> None:
    """Learned queries of an open batch, normalised: they depend on no input, but on a size."""
    b = Builder()
    n = symbol("n")
    b.input("x", F32, (n, 4))
    rows = b.constant(np.random.default_rng(0).normal(size=(1, 64, 128)).astype(np.float32))
    wide, narrow = (n, 64, 128), (n, 64, 1)
    queries = b.broadcast(rows, wide)

    def mean(x: int) -> int:
        length = b.broadcast(b.constant(np.full((1, 1, 1), 128, np.float32)), narrow)
        return b.binary("div", b.reduce("sum", x, (2,)), length)

    moved = b.binary("sub", queries, b.broadcast(mean(queries), wide))
    spread = b.unary("sqrt", mean(b.binary("mul", moved, moved)))
    program = b.program({"y": b.binary("div", moved, b.broadcast(spread, wide))})
    found = saturate(program, DEFAULT)
    assert growth(found) < 5
    schedule = extract(found.classes)
    (dispatch,) = schedule.dispatches
    assert [schedule.program.nodes[index].op.name for index in dispatch.nodes] == ["broadcast"]


@attribute_function
def has_none(s: Shape) -> bool:
    """Whether a tensor of this shape has no elements."""
    return 0 in s.dims


@rule
def of_no_elements(x: Tensor, y: Tensor, s: Shape) -> Law:
    """broadcast(x, s) + broadcast(y, s) = broadcast(x, s), where s has no elements"""
    wide = broadcast(x, s)
    return rewrites(binary("add", wide, broadcast(y, s)), wide, has_none(s))


def test_what_is_repeated_no_times_may_differ() -> None:
    """x and x + y are not equal because their repetitions without elements are."""
    b = Builder()
    x, y = (b.input(name, F32, (1, 2)) for name in "xy")
    none = b.binary("add", *(b.broadcast(each, (0, 2)) for each in (x, y)))
    both = b.binary("add", x, y)
    program = b.program({"none": none, "both": both, "x": x})
    found = saturate(program, DEFAULT + of_no_elements)
    classes = [found.program_classes[index] for index in program.output_nodes]
    assert len(set(classes)) == 3


@pytest.mark.deep
@pytest.mark.parametrize("model", ["tiny_mobilevit", "tiny_swin", "tiny_segformer"])
def test_layouts_of_a_model_are_few(model: str) -> None:
    assert growth(saturate(load(build(model)), DEFAULT)) < 10


def test_one_row_gives_the_whole_no_other_layout_or_shape() -> None:
    """Borders are rows and columns, in which the axis of one element may stand anywhere."""
    assert growth(saturate(reflected(2), DEFAULT)) < 8
