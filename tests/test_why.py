"""`satura.why`: what each step of a rule matches, the nearest miss, and what a firing made."""

from __future__ import annotations

import numpy as np
import pytest

import satura
from satura.light import light
from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.errors import RuleError
from satura.rewrite.explain import matcher
from satura.rewrite.explain.class_graph import Graph
from satura.rewrite.explain.findings import Miss, Why
from satura.rewrite.explain.matcher import trace
from satura.rewrite.explain.why import why as explain_rule
from satura.rewrite.language.dsl import (
    Known,
    Law,
    Rule,
    RuleSet,
    Tensor,
    Varying,
    attribute_function,
    equates,
    replaces,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import (
    application,
    binary,
    concat,
    conv,
    pad,
    scalar,
    transpose,
    unary,
)
from satura.rewrite.onnx.load import load_with_names
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import (
    Axis,
    BinaryFn,
    Groups,
    Padding,
    Perm,
    Refuse,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT
from tests.random_programs import random_program
from tests.tiers import deep_but
from tests.user_ops import user_ops


@attribute_function
def spatial(padding: Padding) -> Padding:
    """The padding without its outer axes, which must not be padded."""
    if padding.lo[0] or padding.hi[0]:
        raise Refuse("images are padded")
    return Padding(padding.lo[1:-1], padding.hi[1:-1])


@rule
def pad_into_conv(
    x: Tensor, w: Known, v: Scalar, b: Padding, window: Window, groups: Groups
) -> Law:
    """conv(pad(x, v, b), w) = conv(x, w) with a border of v"""
    return rewrites(
        conv(pad(x, v, b), w, window, groups), conv(x, w, window.padded(spatial(b), v), groups)
    )


@attribute_function
def permuted(padding: Padding, perm: Perm) -> Padding:
    """The padding of the transposed tensor."""
    return Padding(perm.apply(padding.lo), perm.apply(padding.hi))


@rule
def pad_out_of_transpose(x: Tensor, v: Tensor, b: Padding, p: Perm) -> Law:
    """transpose(pad(x, v, b), p) = pad(transpose(x, p), v, p(b))"""
    moved = permuted(b, p)
    return rewrites(transpose(pad(x, v, b), p), pad(transpose(x, p), v, moved))


def padded_convolutions(value: float, batch: int = 0) -> Program:
    """conv(transpose(pad(x))) and conv(relu(x)), on [1, 4, 6, 6] and [1, 6, 6, 4]."""
    build = Builder()
    x = build.input("x", DType.F32, (1, 4, 6, 6))
    y = build.input("y", DType.F32, (1, 6, 6, 4))
    w = build.constant(np.ones((3, 3, 4, 2), np.float32))
    padded = build.pad(x, (batch, 0, 1, 1), (0, 0, 1, 1), value)
    turned = build.transpose(padded, (0, 2, 3, 1))
    window = build.window(DType.F32, (3, 3))
    return build.program(
        {
            "a": build.conv(turned, w, window),
            "b": build.conv(build.unary("relu", y), w, window),
        }
    )


def why(asked: Rule, program: Program, rules: RuleSet, limits: Limits | None = None) -> Why:
    """Why `asked` fires beside `rules`, which all run in this process."""
    everything = rules if asked.name in rules else rules + asked
    return explain_rule(asked, program, saturate(program, everything, limits or Limits()))


def only_miss(answer: Why) -> Miss:
    (direction,) = answer.directions
    (miss,) = direction.misses
    return miss


def test_what_stands_between_is_seen() -> None:
    program = padded_convolutions(0.0)
    answer = why(pad_into_conv, program, RuleSet())
    (direction,) = answer.directions
    assert not answer.fires and direction.firings == ()
    assert [(step.text, step.program, step.egraph) for step in direction.steps] == [
        ("conv(…, w, window, groups)", 2, 2),
        ("conv(pad(x, v, b), w, window, groups)", 0, 0),
        ("v is a 0-d constant", 0, 0),
        ("w is computed from constants alone", 0, 0),
        ("window.padded(spatial(b), v) has a value", 0, 0),
    ]
    assert direction.steps[1].lost == (("transpose", 1), ("unary relu", 1))
    miss = only_miss(answer)
    assert miss.reason == "operand 1 of conv: no pad, but transpose 1, unary relu 1"
    assert miss.hint == "1 of them have a pad behind transpose"
    first = next(i for i, node in enumerate(program.nodes) if node.op.name == "conv")
    assert miss.node.startswith(f"%{first} = conv(")
    assert "\n  operand 1 of conv: no pad, but transpose 1" in str(answer)


def test_a_firing_says_where_when_what_and_after_whom() -> None:
    program = padded_convolutions(0.0)
    answer = why(pad_into_conv, program, RuleSet(pad_out_of_transpose))
    (direction,) = answer.directions
    assert answer.fires and (direction.matches, direction.places, direction.new_nodes) == (1, 1, 1)
    assert [(step.program, step.egraph) for step in direction.steps] == [
        (2, 3), (0, 1), (0, 1), (0, 1), (0, 1),
    ]  # fmt: skip
    (firing,) = direction.firings
    outputs = dict(program.outputs)
    assert firing.node.startswith(f"%{outputs['a']} = conv(")
    assert firing.round == 2 and firing.after == ("pad_out_of_transpose",)
    (made,) = firing.made
    assert made.startswith("conv(transpose(%") and "(1:1)" in made
    assert f"= %{outputs['a']} : f32[1, 6, 6, 2]" in made
    assert only_miss(answer).reason == "operand 1 of conv: no pad, but transpose 1, unary relu 1"
    assert "fires: 1 match at 1 place, 1 new e-node\n" in str(answer)


def test_a_firing_tells_of_all_that_it_made() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    turned = build.transpose(build.pad(x, (1, 0), (0, 0)), (1, 0))
    answer = why(pad_out_of_transpose, build.program({"y": turned}), RuleSet())
    (firing,) = answer.directions[0].firings
    assert [made.split("(")[0] for made in firing.made] == ["pad", "transpose"]


def test_a_refusal_shows_its_reason_and_the_values() -> None:
    answer = why(pad_into_conv, padded_convolutions(2.5, batch=1), RuleSet(pad_out_of_transpose))
    miss = only_miss(answer)
    assert miss.step == "window.padded(spatial(b), v) has a value"
    assert miss.reason == "it refuses: images are padded" and miss.count == 1
    bound = dict(miss.bound)
    assert bound["b"] == "[1:0, 1:1, 1:1, 0:0]"
    assert "constant() 2.5" in bound["v"] and "transpose" in bound["x"] and bound["groups"] == "1"
    assert [term for term, _ in miss.matched] == [
        "conv(pad(x, v, b), w, window, groups)",
        "pad(x, v, b)",
    ]


def a_program() -> Program:
    """Some of everything that patterns may ask about."""
    build = Builder()
    x = build.input("x", DType.F32, (2, 2))
    y = build.input("y", DType.F32, (2, 2))
    n = build.input("n", DType.F32, (symbol("n"), 2))
    two = build.constant(np.full((2, 2), 2, np.float32))
    return build.program(
        {
            "sum": build.binary("add", x, y),
            "scaled": build.binary("mul", x, two),
            "negated": build.unary("neg", build.unary("abs", two)),
            "turned": build.transpose(build.transpose(x, (1, 0)), (1, 0)),
            "joined": build.concat([x, y], 1),
            "padded": build.pad(n, (0, 1), (0, 0), 3),
            "data": build.pad(x, (0, 1), (0, 0), 3),
        }
    )


@rule
def other_function(x: Tensor, y: Tensor) -> Law:
    """a function that no node has"""
    return rewrites(binary("sub", x, y), binary("add", x, y))


@rule
def same_tensor(f: BinaryFn, x: Tensor) -> Law:
    """one tensor twice"""
    return rewrites(binary(f, x, x), x)


@rule
def known_first(f: BinaryFn, x: Known, y: Tensor) -> Law:
    """a constant on the left"""
    return rewrites(binary(f, x, y), binary(f, y, x))


@rule
def varying_neg(x: Varying) -> Law:
    """neg(abs(x)) of what is not a constant"""
    return rewrites(unary("neg", unary("abs", x)), x)


@rule
def scalar_operand(f: BinaryFn, x: Tensor, v: Scalar) -> Law:
    """a scalar where a tensor stands"""
    return rewrites(binary(f, x, v), x)


@rule
def other_scalar(x: Tensor, b: Padding) -> Law:
    """a pad with 7"""
    return rewrites(pad(x, scalar(Scalar.of(7, DType.F32)), b), x)


@rule
def other_guard(x: Tensor, p: Perm) -> Law:
    """two transposes, of which the outer is the inner one and then the inner one"""
    return rewrites(transpose(transpose(x, p), p[p]), x)


@rule
def false_condition(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """concats along axis 0"""
    return rewrites(concat(x, y, axis), concat(y, x, axis), axis.index == 0)


@rule
def same_function(f: UnaryFn, x: Tensor) -> Law:
    """one function twice"""
    return rewrites(unary(f, unary(f, x)), unary(f, x))


@rule
def no_such_op(x: Tensor, w: Tensor, window: Window, groups: Groups) -> Law:
    """a convolution, of which there is none"""
    return rewrites(conv(x, w, window, groups), x)


@pytest.mark.parametrize(
    ("law", "step", "reason", "count"),
    [
        (other_function, "binary(x, y, sub)", "the root: there is no binary sub", 1),
        (same_tensor, "operand 2 of binary is x again", "operand 2 of binary: it is input,", 1),
        (known_first, "x is computed from constants alone", "x: it is input, which is not", 2),
        (varying_neg, "x depends on an input or a symbolic size", "x: it is constant, a", 1),
        (scalar_operand, "v is a 0-d constant", "v: it is input", 1),
        (other_scalar, "the scalar is f32(7.0)", "the scalar: it is f32(3.0)", 2),
        (other_guard, "an attribute is p[p]", "it is [1, 0], not [0, 1]", 1),
        (false_condition, "if axis.index == 0", "it is false", 1),
        (same_function, "the f of unary is f again", "the f of unary: it is abs, not neg", 1),
        (no_such_op, "conv(x, w, window, groups)", "the root: there is no conv", 1),
    ],
)
def test_the_step_that_stops_a_rule_is_named(law: Rule, step: str, reason: str, count: int) -> None:
    answer = why(law, a_program(), RuleSet())
    (direction,) = answer.directions
    assert not answer.fires
    miss = direction.misses[-1]
    assert (miss.step, miss.count) == (step, count)
    assert miss.reason.startswith(reason)


def test_ops_of_users_are_matched() -> None:
    with user_ops() as ops:

        @rule
        def ends_alike(x: Varying, t: Tensor) -> Law:
            """lerp(x, x, t) = x"""
            return rewrites(application(ops.lerp, (x, x, t)), x)

        @rule
        def sorted_twice(x: Varying, axis: Axis) -> Law:
            """sorted_rows(sorted_rows(x, axis), axis) = sorted_rows(x, axis)"""
            inner = application(ops.sorted_rows, (x, axis))
            return rewrites(application(ops.sorted_rows, (inner, axis)), inner)

        build = Builder()
        x, t = (build.input(name, DType.F32, (2, 2)) for name in "xt")
        lerped = build.add(ops.lerp, (build.add(ops.lerp, (x, x, t)), t, t))
        rows = build.add(ops.sorted_rows, (x,), Axis(1))
        program = build.program({"a": lerped, "b": build.add(ops.sorted_rows, (rows,), Axis(0))})
        answer = why(ends_alike, program, RuleSet())
        assert answer.fires and only_miss(answer).step == "operand 2 of lerp is x again"
        miss = only_miss(why(sorted_twice, program, RuleSet()))
        assert miss.reason == "the axis of sorted_rows: it is 1, not 0"


def test_what_is_hidden_leaves_operands_behind() -> None:
    @rule
    def neg_twice(x: Tensor) -> Law:
        """neg(neg(x)) = x"""
        return replaces(unary("neg", unary("neg", x)), x)

    build = Builder()
    x = build.unary("neg", build.unary("neg", build.input("x", DType.F32, (2, 2))))
    (direction,) = why(neg_twice, build.program({"y": build.unary("abs", x)}), RuleSet()).directions
    assert direction.steps[1].program == 1


def test_each_direction_is_explained() -> None:
    @rule
    def commutes(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
        """neg(f(x, y)) = f(y, x), which is wrong"""
        return equates(unary("neg", binary(f, x, y)), binary(f, y, x))

    forward, backward = why(commutes, a_program(), RuleSet(), Limits(rounds=1)).directions
    assert (forward.label, backward.label) == ("commutes:forward", "commutes:backward")
    assert forward.steps[0].text == "unary(…, neg)"
    assert forward.steps[0].program == 1 and backward.steps[0].program == 2


def test_a_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "its limit of rounds" in str(
        why(false_condition, a_program(), DEFAULT, Limits(rounds=1))
    )
    monkeypatch.setattr(matcher, "MOST_MATCHES", 1)
    limited = why(same_tensor, a_program(), RuleSet())
    (direction,) = limited.directions
    assert not direction.steps[0].exact
    assert "1+ binary(x, x, f)" in str(limited)


def test_a_rule_that_fails_is_an_error_with_its_values() -> None:
    @attribute_function
    def broken(axis: Axis) -> bool:
        return bool(1 // (axis.index - 1))

    @rule
    def law(x: Tensor, y: Tensor, axis: Axis) -> Law:
        """a law that divides by zero"""
        return rewrites(concat(x, y, axis), concat(y, x, axis), broken(axis))

    with pytest.raises(RuleError, match=r"rule 'law' .*ZeroDivisionError.* for axis = 1"):
        why(law, a_program(), RuleSet())


def programs(kind: str) -> list[Program]:
    """Programs that many rules match."""
    if kind == "model":
        return [satura.load(light("light_squeezenet"))]
    return [a_program(), *(random_program(seed)[0] for seed in (0, 1, 2, 13))]


@pytest.mark.parametrize("kind", deep_but((), ["random", "model"]))
def test_the_matcher_agrees_with_the_engine(kind: str) -> None:
    matching = set()
    # Beside others, laws that drop an op also count the nodes that these would make.
    alone = [law for law in DEFAULT if any(x.right in x.left.operands for x in law.directions)]
    assert "drop_identity_transpose" in {law.name for law in alone}
    for program in programs(kind):
        loaded = Graph.of_program(program)
        sets = [DEFAULT, *map(RuleSet, alone)]
        counted = {
            r.name: r.matches
            for rules in sets
            for r in saturate(program, rules, Limits(rounds=1)).report.rules
        }
        saturation = saturate(program, DEFAULT, Limits(nodes=3_000))
        late = {r.name: r.matches for r in saturation.report.rules}
        graph = Graph(saturation.classes)
        for direction in (direction for law in DEFAULT for direction in law.directions):
            found = len(trace(direction, loaded).matches)
            assert found == counted[direction.label], direction.label
            if found:
                matching.add(direction.label)
            if saturation.report.stopped == "saturated" and trace(direction, graph).matches:
                assert late[direction.label], direction.label
    assert len(matching) > (20 if kind == "random" else 3)


@pytest.mark.deep
def test_nodes_have_the_names_of_the_file() -> None:
    program, names = load_with_names(light("light_squeezenet"))
    computed = [i for i, n in enumerate(program.nodes) if n.op.name not in ("input", "constant")]
    assert set(computed) <= set(names)
    convolutions = [names[i] for i in computed if program.nodes[i].op.name == "conv"]
    assert len(set(convolutions)) == len(convolutions) == 26
    assert all(name.startswith("Conv '") for name in convolutions)
    answer = satura.why("pad_into_conv", light("light_squeezenet"))
    assert "(Conv '" in only_miss(answer).node


@pytest.mark.deep
def test_why_takes_rules_by_name_and_by_value() -> None:
    program = padded_convolutions(0.0)
    assert satura.why("pad_into_conv", program).fires
    rules = DEFAULT.without("pad_into_conv") + pad_into_conv
    assert satura.why(pad_into_conv, program, rules).fires
    assert not satura.why(pad_into_conv, program, "none").fires
    with pytest.raises(RuleError, match="did you mean 'pad_into_conv'"):
        satura.why("pad_in_conv", program)
