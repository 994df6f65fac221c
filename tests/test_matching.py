"""What the variables of a rule match in the e-graph: tensors, constants, scalars."""

from __future__ import annotations

import numpy as np
import pytest

from satura.rewrite.egraph.saturate import in_same_class, saturate
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import (
    Known,
    Law,
    RuleSet,
    Tensor,
    attribute_function,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    constant,
    iota,
    pad,
    reshape,
    scalar,
    unary,
)  # fmt: skip
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Axis, BinaryFn, Padding, Shape, UnaryFn, refuse_unless
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType


def test_known_matches_what_depends_on_constants_alone() -> None:
    @rule
    def constants_first(f: BinaryFn, x: Tensor, w: Known) -> Law:
        """f(x, w) = f(w, x)"""
        return rewrites(binary(f, x, w), binary(f, w, x))

    build = Builder()
    seq = symbol("seq")
    x = build.input("x", DType.F32, (4,))
    z = build.input("z", DType.F32, (seq,))
    weight = build.unary("neg", build.constant(np.arange(4, dtype=np.float32)))
    open_ = build.broadcast(build.constant(np.ones(1, np.float32)), (seq,))
    program = build.program(
        {"a": build.binary("add", x, weight), "b": build.binary("add", z, open_)}
    )
    classes = saturate(program, RuleSet(constants_first)).classes
    assert [len(classes.nodes[number]) for _, number in classes.outputs] == [2, 1]


def test_scalars_match_by_bit_pattern() -> None:
    @attribute_function
    def is_minus_zero(v: Scalar) -> bool:
        return v == Scalar.of(-0.0, DType.F32)

    @rule
    def drop(x: Tensor, v: Scalar, padding: Padding) -> Law:
        """not a law; it fires for -0.0 only"""
        padded = pad(x, v, padding)
        return rewrites(padded, unary("neg", padded), is_minus_zero(v))

    @rule
    def mark(x: Tensor, v: Scalar, padding: Padding) -> Law:
        """not a law; there is no `not` of floats"""
        return rewrites(pad(x, v, padding), pad(unary("not", x), v, padding), is_minus_zero(v))

    build = Builder()
    x = build.input("x", DType.F32, (4,))
    program = build.program(
        {
            "minus": build.pad(x, (1,), (1,), -0.0),
            "plus": build.pad(x, (1,), (1,), 0.0),
            "nan": build.pad(x, (1,), (1,), float("nan")),
        }
    )
    report = saturate(program, RuleSet(drop)).report
    (entry,) = report.rules
    assert (entry.matches, entry.demand_calls, entry.refusals) == (1, 3, 2)
    with pytest.raises(RuleError, match=r"rule 'mark' .* not does not take f32"):
        saturate(program, RuleSet(mark))


def test_scalars_are_made_and_seen_by_later_rules() -> None:
    @attribute_function
    def successor(v: Scalar) -> Scalar:
        refuse_unless(int(v.array) < 5, "large enough")
        return Scalar.of(int(v.array) + 1, v.dtype)

    @rule
    def count_up(f: UnaryFn, v: Scalar) -> Law:
        """not a law; it makes new constants from constants"""
        return rewrites(unary(f, v), unary(f, scalar(successor(v))))

    build = Builder()
    program = build.program({"y": build.unary("abs", build.constant(np.int64(0)))})
    saturation = saturate(program, RuleSet(count_up))
    constants = [
        str(node.attributes[0])
        for nodes in saturation.classes.nodes
        for node in nodes
        if node.op == "constant"
    ]
    assert sorted(constants) == list("012345")


def test_constants_are_bound_and_made() -> None:
    @attribute_function
    def negated(value: Constant) -> Constant:
        return Constant(np.negative(value.array))

    @rule
    def fold(c: Constant, s: Shape) -> Law:
        """broadcast(-c) = broadcast of the constant -c"""
        return rewrites(broadcast(unary("neg", constant(c)), s), broadcast(constant(negated(c)), s))

    build = Builder()
    weight = build.constant(np.arange(3, dtype=np.float32).reshape(1, 3))
    start = build.program({"y": build.broadcast(build.unary("neg", weight), (2, 3))})
    build = Builder()
    weight = build.constant(-np.arange(3, dtype=np.float32).reshape(1, 3))
    goal = build.program({"y": build.broadcast(weight, (2, 3))})
    assert in_same_class(saturate(start, RuleSet(fold)), start.output_nodes[0], goal)


def test_a_variable_that_occurs_twice_matches_equal_tensors_only() -> None:
    @rule
    def double(x: Tensor) -> Law:
        """x + x = abs(x), which is wrong"""
        return rewrites(binary("add", x, x), unary("abs", x))

    build = Builder()
    x, y = (build.input(name, DType.F32, (2,)) for name in "xy")
    program = build.program({"a": build.binary("add", x, x), "b": build.binary("add", x, y)})
    classes = saturate(program, RuleSet(double)).classes
    assert [len(classes.nodes[number]) for _, number in classes.outputs] == [2, 1]


def test_a_computation_without_variables() -> None:
    @rule
    def law(x: Tensor) -> Law:
        """neg(x) = reshape(x, the shape of an iota), which holds for that shape only"""
        ramp = iota(Shape((2, 3)), Axis(0), DType.F32)
        return rewrites(unary("neg", x), reshape(x, Shape(ramp.type.shape)))

    build = Builder()
    program = build.program({"y": build.unary("neg", build.input("x", DType.F32, (2, 3)))})
    classes = saturate(program, RuleSet(law)).classes
    assert [node.op for node in classes.nodes[classes.outputs[0][1]]] == ["reshape", "unary"]
