"""Ops that users declare in rules: laws about them, and laws that move layouts past them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import satura
from satura.errors import OpError, RuleError
from satura.ops import (
    Axes,
    Axis,
    DType,
    Kind,
    Op,
    Scalar,
    Shape,
    TensorType,
    local_ops,
    op,
    refuse_unless,
)
from satura.pipeline.api import rewritten
from satura.rewrite.check.refute import refutation
from satura.rewrite.extract.statistics import statistics
from satura.rewrite.language.dsl import (
    Law,
    RuleSet,
    Tensor,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import binary, broadcast, reshape, scalar, unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.prove import prove
from satura.rules import DEFAULT, NONE
from satura.testing import check
from tests.tiers import deep_but
from tests.user_ops import Shift, UserOps


def _number(value: float) -> Scalar:
    return Scalar.of(value, DType.F32)


@pytest.mark.deep
def test_ops_stand_in_rules_by_their_own_name(ops: UserOps) -> None:
    @rule
    def odd(x: Tensor) -> Law:
        """softsign(-x) = -softsign(x)"""
        return rewrites(ops.softsign(unary("neg", x)), unary("neg", ops.softsign(x)))

    @rule
    def swapped(x: Tensor, y: Tensor) -> Law:
        """hypotenuse(x, y) = hypotenuse(y, x)"""
        return rewrites(ops.hypotenuse(x, y), ops.hypotenuse(y, x))

    @rule
    def sorted_twice(x: Tensor, axis: Axis) -> Law:
        """sorted(sorted(x)) = sorted(x), along one axis"""
        return rewrites(ops.sorted_rows(ops.sorted_rows(x, axis), axis), ops.sorted_rows(x, axis))

    assert check(odd, attempts=150).is_sound
    assert not any(refutation(law, attempts=100) for law in (swapped, sorted_twice))
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    ordered = build.add(ops.sorted_rows, (build.add("sorted_rows", (x,), Axis(1)),), Axis(1))
    found = satura.optimize(build.program({"y": ordered}), rules=DEFAULT + sorted_twice)
    assert [node.op.name for node in found.nodes] == ["input", "sorted_rows"]


def test_a_scalar_may_be_an_attribute_on_one_side_and_a_tensor_on_the_other() -> None:
    @attribute_function
    def minus(a: Scalar) -> Scalar:
        """-a"""
        return Scalar.of(-float(a.value), a.dtype)

    @attribute_function
    def is_f32(a: Scalar) -> bool:
        """Whether a is an f32."""
        return a.dtype is DType.F32

    @attribute_function
    def units(type_: TensorType) -> Shape:
        """As many 1s as the type has axes."""
        return Shape((1,) * type_.rank)

    with local_ops():

        @op(formula="x * alpha")
        def scaled(x: TensorType, alpha: Scalar) -> TensorType:
            """x * alpha"""
            refuse_unless(x.dtype is DType.F32 is alpha.dtype, "scaled takes f32")
            return x

        @rule
        def scaled_negated(x: Tensor, a: Scalar) -> Law:
            """scaled(-x, a) = scaled(x, -a)"""
            return rewrites(scaled(unary("neg", x), a), scaled(x, minus(a)))

        @rule
        def scaled_as_product(x: Tensor, a: Scalar) -> Law:
            """scaled(x, a) = x * a"""
            wide = broadcast(reshape(scalar(a), units(x.type)), Shape(x.type.shape))
            return rewrites(scaled(x, a), binary("mul", x, wide))

        @rule
        def product_as_scaled(x: Tensor, a: Scalar, ones: Shape, s: Shape) -> Law:
            """x * a = scaled(x, a)"""
            wide = broadcast(reshape(scalar(a), ones), s)
            return rewrites(binary("mul", x, wide), scaled(x, a), is_f32(a))

        for law in (scaled_negated, scaled_as_product, product_as_scaled):
            assert refutation(law, attempts=200) is None, law.name
        build = Builder()
        x = build.input("x", DType.F32, (2, 3))
        y = build.add(scaled, (build.unary("neg", x),), _number(3))
        only = RuleSet(scaled_negated, scaled_as_product)
        program = satura.optimize(build.program({"y": y}), rules=only, strict=True)
        value = np.array([[1, 2, 3], [-4, 0, -6]], np.float32)
        np.testing.assert_array_equal(satura.interpret(program, {"x": value})["y"], -3 * value)


def test_wrong_laws_about_them_are_refuted(ops: UserOps) -> None:
    @rule
    def elu_of_relu(x: Tensor, alpha: Scalar) -> Law:
        """elu(relu(x), alpha) = relu(x), but not for an infinite alpha"""
        return rewrites(ops.elu(unary("relu", x), alpha), unary("relu", x))

    @rule
    def lerp_of_one(x: Tensor, t: Tensor) -> Law:
        """lerp(x, x, t) = x, but not where x or t is infinite"""
        return rewrites(ops.lerp(x, x, t), x)

    @rule
    def sorted_everywhere(x: Tensor, axis: Axis, p: Axis) -> Law:
        """sorted(sorted(x, a), b) = sorted(x, b), but sorting along a pairs other elements"""
        return rewrites(ops.sorted_rows(ops.sorted_rows(x, axis), p), ops.sorted_rows(x, p))

    for law in (elu_of_relu, lerp_of_one, sorted_everywhere):
        report = check(law, shrink=False)
        assert report.verdict == "refuted", report


def test_a_wrong_use_in_a_rule_is_an_error(ops: UserOps) -> None:
    with pytest.raises(RuleError, match=r"lerp\(x, y, t\) is given 2 arguments"):

        @rule
        def short(x: Tensor) -> Law:
            """lerp(x, x) = x"""
            return rewrites(ops.lerp(x, x), x)

    with pytest.raises(RuleError, match="elu takes a"):

        @rule
        def swapped(x: Tensor, alpha: Scalar, a: Axes) -> Law:
            """elu(x, a) = x"""
            return rewrites(ops.elu(x, a), x)


def test_an_attribute_that_nothing_draws_asks_for_a_generator(ops: UserOps) -> None:
    @rule
    def rolled_twice(x: Tensor, a: Shift) -> Law:
        """rolled(rolled(x, a), a) = rolled(x, a)"""
        return rewrites(ops.rolled(ops.rolled(x, a), a), ops.rolled(x, a))

    with pytest.raises(OpError, match="a Shift cannot be drawn; give the op a generator"):
        check(rolled_twice)


# Movement


def names(program: Program) -> list[str]:
    return [node.op.name for node in program.nodes if node.op.kind is not Kind.SOURCE]


def channels_first(ops: UserOps) -> Program:
    """Transposes around one op of each kind, with one operand broadcast."""
    build = Builder()
    x, y = (build.input(name, DType.F32, (1, 4, 5, 3)) for name in "xy")
    left, right = (build.transpose(node, (0, 3, 1, 2)) for node in (x, y))
    weight = build.broadcast(build.constant([[[[0.25]]]], DType.F32), (1, 3, 4, 5))
    mixed = build.add(ops.lerp, (left, build.add(ops.softsign, (right,)), weight))
    bent = build.add(ops.elu, (build.add("hypotenuse", (mixed, left)),), _number(0.5))
    return build.program({"y": build.transpose(bent, (0, 2, 3, 1))})


def test_layouts_move_through_them(ops: UserOps) -> None:
    program = channels_first(ops)
    assert names(program).count("transpose") == 3
    found = satura.optimize(program)
    assert sorted(names(found)) == ["binary", "broadcast", "elu", "lerp", "unary"]


def residual(act: Callable[[Builder, int, int], int]) -> Program:
    """Three convolutions, channels first outside, each followed by `act` with a shortcut."""
    build, random = Builder(), np.random.default_rng(0)
    x = build.input("x", DType.F32, (1, 8, 6, 6))
    for _ in range(3):
        weights = build.constant(random.standard_normal((3, 3, 8, 8)).astype(np.float32))
        window = build.window(DType.F32, (3, 3), lo=(1, 1), hi=(1, 1))
        y = build.conv(build.transpose(x, (0, 2, 3, 1)), weights, window)
        x = act(build, build.transpose(y, (0, 3, 1, 2)), x)
    return build.program({"y": x})


@pytest.mark.deep
def test_networks_of_them_take_as_many_dispatches_as_with_ops_of_satura(ops: UserOps) -> None:
    def usual(build: Builder, y: int, x: int) -> int:
        return build.binary("add", build.unary("relu", y), x)

    def users(build: Builder, y: int, x: int) -> int:
        channels = np.linspace(0, 1, 8, dtype=np.float32).reshape((1, 8, 1, 1))
        weight = build.broadcast(build.constant(channels), (1, 8, 6, 6))
        return build.add(ops.lerp, (build.add(ops.elu, (y,), _number(0.5)), x, weight))

    counts = [
        statistics(rewritten(residual(act)).schedule)["dispatch-count"] for act in (usual, users)
    ]
    assert counts[0] == counts[1]


def movement(op: Op) -> RuleSet:
    """The laws of the book about a user's op."""
    return DEFAULT.for_ops([op]).without(*(entry.name for entry in DEFAULT))


def test_their_laws_are_in_force_where_those_of_the_book_are(ops: UserOps) -> None:
    used = [node.op for node in channels_first(ops).nodes]
    assert len(NONE.for_ops(used)) == 0
    reduced = DEFAULT.without("transpose_past").for_ops(used)
    assert "transpose_past_lerp" not in reduced and "reshape_past_lerp" in reduced
    assert "transpose_past_lerp" in DEFAULT.for_ops(used)
    assert "transpose_past_lerp" in DEFAULT.without("transpose_past_select").for_ops(used)
    assert {"transpose_past_lerp", "fold_elu"} <= {entry.name for entry in DEFAULT.for_ops(used)}


SAMPLES = {  # each kind of law once: two ops have the same law in the same way
    "lerp": ("transpose_past_lerp", "reshape_out_of_lerp_yxy", "transpose_out_of_lerp_yzx"),
    "elu": ("pad_out_of_elu", "fold_elu", "concat_into_elu"),
    "dequantize": (
        "reshape_past_dequantize",
        "broadcast_out_of_dequantize",
        "slice_into_dequantize",
    ),
}


@pytest.mark.parametrize("name", deep_but((), SAMPLES))
def test_laws_of_movement_are_sound(name: str, ops: UserOps) -> None:
    laws = movement(getattr(ops, name))
    for law in SAMPLES[name]:
        report = check(laws[law])
        assert report.verdict == "tested", report


@pytest.mark.deep
def test_reshapes_slices_and_pads_move_through_them(ops: UserOps) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (4, 6))
    shaped = build.add(ops.elu, (build.reshape(x, (2, 2, 6)),), _number(0.5))
    cut = build.slice(build.add(ops.elu, (x,), _number(2.0)), (0, 0), (1, 6))
    program = build.program({"shaped": build.reshape(shaped, (4, 6)), "cut": cut})
    found = satura.optimize(program)
    assert names(found).count("reshape") == 0
    sliced = found.nodes[dict(found.outputs)["cut"]]
    assert sliced.op.name in ("elu", "slice")
    assert sum(node.op.name == "elu" for node in found.nodes) == 2


def test_a_law_of_movement_that_drops_an_attribute_is_refuted(ops: UserOps) -> None:
    @rule
    def forgets(x: Varying, alpha: Scalar, beta: Scalar) -> Law:
        """elu(elu(x, a), b) = elu(elu(x, a), a): a wrong law"""
        return rewrites(ops.elu(ops.elu(x, alpha), beta), ops.elu(ops.elu(x, alpha), alpha))

    assert check(forgets, shrink=False).verdict == "refuted"
    assert prove(forgets).status != "proved"


@pytest.mark.deep
def test_laws_of_movement_are_proved(ops: UserOps) -> None:
    laws = movement(ops.elu) + movement(ops.lerp)
    for name in ("transpose_past_elu", "slice_into_lerp", "broadcast_out_of_lerp"):
        assert prove(laws[name]).status == "proved"
