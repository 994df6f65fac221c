"""The rule language: what rules record, what they compute, and how sets of rules are made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from satura.rewrite.errors import CallError, RuleError
from satura.rewrite.language.dsl import (
    Direction,
    Family,
    Known,
    Law,
    Rule,
    RuleSet,
    Tensor,
    attribute_function,
    both,
    equates,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import (
    binary,
    build_term,
    constant,
    matmul,
    pad,
    reshape,
    scalar,
    slice_,
    transpose,
    unary,
)  # fmt: skip
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Padding,
    Perm,
    Refuse,
    Shape,
    Slices,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import DType, TensorType
from satura.rules import DEFAULT


@attribute_function
def half(shape: Shape) -> Shape:
    """The shape with its first axis halved."""
    first, *rest = shape.dims
    if not isinstance(first, int) or first % 2:
        raise Refuse("the first axis cannot be halved")
    return Shape((first // 2, *rest))


@rule
def compose(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, p then q)"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, p[q]))


@rule
def cancel(x: Tensor, p: Perm) -> Law:
    """transpose(transpose(x, p), inverse of p) = x"""
    return rewrites(transpose(transpose(x, p), p.inverse), x)


@rule(reassociates=True)
def through(f: BinaryFn, x: Tensor, y: Tensor, p: Perm) -> Law:
    """f(transpose(x, p), transpose(y, p)) = transpose(f(x, y), p)"""
    return equates(binary(f, transpose(x, p), transpose(y, p)), transpose(binary(f, x, y), p))


@rule
def halve(x: Tensor, s: Shape) -> Law:
    """a law that computes with types and refuses"""
    return rewrites(reshape(x, s), reshape(x, half(s)), x.type.rank >= 2, s.dims != x.type.shape)


def test_a_rule_knows_its_name_law_place_and_variables() -> None:
    assert (compose.name, compose.exact, through.exact) == ("compose", True, False)
    assert compose.law == "transpose(transpose(x, p), q) = transpose(x, p then q)"
    assert compose.file == Path(__file__) and f"{__file__}:{compose.line}" == compose.place
    assert compose.variables == {"x": Tensor, "p": Perm, "q": Perm}
    (direction,) = compose.directions
    assert str(direction) == "transpose(transpose(x, p), q) -> transpose(x, p[q])"


def test_both_directions_of_an_equation() -> None:
    forward, backward = through.directions
    assert (forward.label, backward.label) == ("through:forward", "through:backward")
    assert (str(forward.left), str(forward.right)) == (str(backward.right), str(backward.left))


def test_outputs_are_computed_as_the_attributes_compute() -> None:
    p, q = Perm((1, 2, 0)), Perm((0, 2, 1))
    (direction,) = compose.directions
    assert direction.inputs == ("p", "q")
    assert direction.compute({"p": p, "q": q}) == (p[q],)


def test_conditions_see_the_types_of_tensors() -> None:
    (direction,) = halve.directions
    assert direction.inputs == ("x", "s")
    wide = TensorType(DType.F32, (2, 6))
    assert direction.compute({"x": wide, "s": Shape((4, 3))}) == (Shape((2, 3)),)
    for type_, shape in [
        (TensorType(DType.F32, (12,)), (4, 3)),  # rank
        (wide, (2, 6)),  # same shape
        (wide, (3, 4)),  # half refuses
    ]:
        with pytest.raises(Refuse):
            direction.compute({"x": type_, "s": Shape(shape)})


def test_an_attribute_on_the_left_may_be_computed() -> None:
    (direction,) = cancel.directions
    p = Perm((1, 2, 0))
    assert direction.compute({"p": p}, (p.inverse,)) == ()
    with pytest.raises(Refuse):
        direction.compute({"p": p}, (p,))


def test_the_type_of_a_term_is_inferred() -> None:
    @rule
    def law(x: Tensor, y: Tensor) -> Law:
        """a law on the type of a term that stands on neither side"""
        product = matmul(x, y)
        return rewrites(unary("abs", product), reshape(product, Shape(product.type.shape)))

    (direction,) = law.directions
    types = {"x": TensorType(DType.F32, (2, 3)), "y": TensorType(DType.F32, (3, 5))}
    assert direction.compute(types) == (Shape((2, 5)),)
    with pytest.raises(Refuse):
        direction.compute({**types, "y": TensorType(DType.F32, (4, 5))})


def test_scalars_stand_for_tensors_and_for_values() -> None:
    @attribute_function
    def doubled(v: Scalar) -> Scalar:
        return Scalar.of(np.add(v.array, v.array), v.dtype)

    @rule
    def law(x: Tensor, v: Scalar, padding: Padding) -> Law:
        """x padded with v = x padded with 2v, which is wrong"""
        return rewrites(pad(x, v, padding), pad(x, scalar(doubled(v)), padding), v.dtype.is_float)

    (direction,) = law.directions
    three = Scalar.of(3, DType.F32)
    assert direction.compute({"v": three}) == (Scalar.of(6, DType.F32),)
    build = Builder()
    x = build.input("x", DType.F32, (4,))
    values = {"x": build.type(x), "v": three, "padding": Padding((1,), (0,))}
    left = build_term(direction.left, build, {"x": x}, values)
    right = build_term(direction.right, build, {"x": x}, values)
    program = build.program({"left": left, "right": right})
    assert [str(node.constant.array) for node in program.nodes if node.op.name == "constant"] == [
        "3.0",
        "6.0",
    ]


def test_literals_are_told_apart_by_class() -> None:
    @attribute_function
    def pick(shape: Shape, flag: object) -> Shape:
        return shape if flag is False else Shape((1,))

    @rule
    def law(x: Tensor, s: Shape) -> Law:
        """two computations that differ in `0` and `False` only"""
        return rewrites(reshape(x, s), reshape(reshape(x, pick(s, 0)), pick(s, False)))

    assert law.directions[0].compute({"s": Shape((2,))}) == (Shape((1,)), Shape((2,)))


def test_functions_and_literals_run_as_usual_on_values() -> None:
    assert half(Shape((4, 3))) == Shape((2, 3))

    @rule
    def law(x: Tensor) -> Law:
        """literal attributes"""
        return rewrites(transpose(x, Perm((1, 2, 0))), transpose(x, Perm((1, 2, 0)).inverse))

    assert not law.directions[0].computes


def test_an_exception_in_a_computation_names_the_rule_and_its_arguments() -> None:
    @attribute_function
    def axes_of(shape: Shape) -> Axes:
        return Axes(tuple(range(len(shape.dims))))

    @attribute_function
    def broken(axes: Axes) -> Axis:
        return Axis(axes.indices[0])

    @rule
    def law(x: Tensor, s: Shape) -> Law:
        """an attribute function that fails"""
        return rewrites(reshape(x, s), x, broken(axes_of(s)).index == 0)

    with pytest.raises(RuleError, match=r"rule 'law' \(.*IndexError.*for s = \[\]"):
        law.directions[0].compute({"s": Shape(())})


def test_rule_sets_add_and_lose_rules_by_name() -> None:
    rules = RuleSet(compose, cancel) + through + RuleSet(halve)
    assert [entry.name for entry in rules] == ["compose", "cancel", "through", "halve"]
    assert [entry.name for entry in rules.without("compose", "halve")] == ["cancel", "through"]
    assert rules["cancel"] is cancel and "halve" in rules and len(rules) == 4
    assert "through" not in rules.exact
    assert [entry.name for entry in RuleSet.of_module(__name__)] == [
        "compose", "cancel", "through", "halve",
    ]  # fmt: skip
    assert [entry.name for entry in compose + RuleSet(cancel)] == ["compose", "cancel"]
    for module, advice in ((sys, "give 'sys', not the module"), ("nope", "import it before")):
        with pytest.raises(CallError, match=advice):
            RuleSet.of_module(module)  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="there is no rule 'cancle'; did you mean 'cancel'"):
        rules.without("cancle")


def test_rules_and_sets_are_short_where_they_are_shown() -> None:
    assert repr(halve) == f"<rule 'halve' ({__file__}:{halve.line}): {halve.law}>"
    assert repr(RuleSet(halve)) == "<RuleSet of 1 rule: halve>"
    assert repr(RuleSet()) == "<RuleSet of 0 rules>"
    first, *_, last = DEFAULT
    shown = rf"<RuleSet of {len(DEFAULT)} rules: {first.name}, \w+, \w+, …, {last.name}>"
    assert re.fullmatch(shown, repr(DEFAULT))
    (family, *_) = (each for each in DEFAULT.laws if isinstance(each, Family))
    assert repr(family).startswith(f"<family '{family.name}' ({family.place}) of ")


def test_two_rules_of_one_name_are_reported_with_both_places() -> None:
    def other() -> Rule:
        @rule
        def compose(x: Tensor, p: Perm) -> Law:
            """another law of that name"""
            return rewrites(transpose(x, p), x, p.is_identity)

        return compose

    with pytest.raises(RuleError) as caught:
        RuleSet(compose) + other()
    assert str(caught.value).count(__file__) == 2 and "'compose'" in str(caught.value)


def test_the_digest_follows_the_text_of_rules_and_not_the_process() -> None:
    rules = RuleSet(compose, through)
    assert rules.digest != RuleSet(through, compose).digest != RuleSet(compose).digest
    code = (
        "from satura.rewrite.language.dsl import RuleSet; import runpy, sys\n"
        f"found = runpy.run_path({__file__!r})\n"
        "print(RuleSet(found['compose'], found['through']).digest)"
    )
    for seed in ("1",):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == rules.digest


def test_directions_of_two_laws_that_bind_different_variables() -> None:
    @attribute_function
    def permuted(s: Slices, p: Perm) -> Slices:
        return Slices(p.apply(s.starts), p.apply(s.sizes), p.apply(s.steps))

    @rule
    def law(x: Tensor, p: Perm, s: Slices) -> Law:
        """slice(transpose(x, p), s) = transpose(slice(x, s in the order of x), p)"""
        return both(
            rewrites(slice_(transpose(x, p), s), transpose(slice_(x, permuted(s, p.inverse)), p)),
            rewrites(transpose(slice_(x, s), p), slice_(transpose(x, p), permuted(s, p))),
        )

    forward, backward = law.directions
    p, s = Perm((1, 0)), Slices((0, 1), (2, 3), (1, 1))
    (there,) = forward.compute({"p": p, "s": s})
    assert backward.compute({"p": p, "s": there}) == (s,)


def test_constants_are_matched_and_made() -> None:
    @attribute_function
    def negated(value: Constant) -> Constant:
        return Constant(np.negative(value.array))

    @rule
    def fold(c: Constant) -> Law:
        """neg of a constant is a constant"""
        return rewrites(unary("neg", constant(c)), constant(negated(c)))

    assert fold.directions[0].variables == {"c": Constant}


def test_known_is_a_tensor() -> None:
    @rule
    def law(x: Tensor, w: Known) -> Law:
        """x + w = w + x"""
        return rewrites(binary("add", x, w), binary("add", w, x))

    assert law.directions[0].variables == {"x": Tensor, "w": Known}


def _labels(entry: Rule) -> list[str]:
    return [direction.label for direction in entry.directions]


def test_labels_are_the_rules_name_where_it_has_one_direction() -> None:
    assert _labels(compose) == ["compose"]
    assert isinstance(compose.directions[0], Direction)


def test_a_direction_reads_as_it_was_written() -> None:
    @rule
    def law(x: Tensor, p: Perm, q: Perm) -> Law:
        """transpose(x, p then q) = transpose(transpose(x, p), q), on some"""
        condition = (p.order[0] + 1 == q.order[0]) & p.is_identity
        return rewrites(transpose(transpose(x, p), q), transpose(x, p[q]), condition)

    assert str(law.directions[0]) == (
        "transpose(transpose(x, p), q) -> transpose(x, p[q])"
        " if ((p.order[0] + 1) == q.order[0]) & p.is_identity"
    )
