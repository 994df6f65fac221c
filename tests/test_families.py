"""Laws about many ops: the rules that they are, in sets and in files, and mistakes in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satura.language import (
    Arithmetic,
    Axis,
    Contraction,
    Elementwise,
    Family,
    Law,
    Movable,
    Operands,
    Others,
    Perm,
    RuleError,
    RuleSet,
    Scalars,
    Shape,
    Slices,
    Some,
    Tensor,
    Varying,
    broadcast,
    concat,
    family,
    has_value,
    rewrites,
    scalar,
    slice_,
    transpose,
)
from satura.pipeline.rule_file import load_rules
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.explain.why import why
from satura.rewrite.language.rule import Rule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT, EXACT
from satura.testing import check
from tests.tiers import deep_but
from tests.user_ops import user_ops


@family
def backed(f: Elementwise, xs: Operands[Varying], p: Perm) -> Law:
    """f(transpose(x, p)…) = transpose(f(x…), p)"""
    return rewrites(f(xs.each(transpose, p)), transpose(f(xs), p))


@family
def shared(
    f: Arithmetic, xs: Some[Varying], ys: Others[Movable], zs: Others[Tensor], p: Perm, s: Shape
) -> Law:
    """f(transpose(x, p)…, y…, broadcast(z, s)…) = …"""
    q = p.inverse
    wide = zs.each(transpose, q).each(broadcast, s.permuted(q))
    return rewrites(
        f(xs.each(transpose, p), ys, zs.each(broadcast, s)),
        transpose(f(xs, ys.each(transpose, q), wide), p),
    )


@family
def quoted(
    f: "'Elementwise'",  # type: ignore[valid-type]  # noqa: UP037
    xs: 'Operands["Varying"]',  # noqa: UP037
    p: "Perm",  # noqa: UP037
    /,
) -> Law:
    """f(transpose(x, p)…) = transpose(f(x…), p), whose sorts are texts"""
    return rewrites(f(xs.each(transpose, p)), transpose(f(xs), p))


def names(rules: RuleSet) -> list[str]:
    return [entry.name for entry in rules]


def texts(family: Family) -> dict[str, str]:
    return {entry.name: str(entry.directions[0]) for entry in family.rules}


def test_sorts_of_families_may_be_texts() -> None:
    assert [*texts(quoted).values()] == [*texts(backed).values()]
    assert [rule.directions[0].varies for rule in quoted.rules] == [True] * len(quoted.rules)


def test_a_family_is_a_rule_for_each_op() -> None:
    assert texts(backed) == {
        "backed_unary": "unary(transpose(x, p), f) -> transpose(unary(x, f), p)",
        "backed_binary": "binary(transpose(x1, p), transpose(x2, p), f)"
        " -> transpose(binary(x1, x2, f), p)",
        "backed_select": "select(transpose(x1, p), transpose(x2, p), transpose(x3, p))"
        " -> transpose(select(x1, x2, x3), p)",
        "backed_cast": "cast(transpose(x, p), dtype) -> transpose(cast(x, dtype), p)",
    }
    unary, *_, cast = backed.rules
    assert (unary.law, cast.law) == (backed.law, backed.law.replace("f(", "cast("))
    assert {entry.family for entry in backed.rules} == {"backed"}


def test_operands_are_shared_out_in_every_way() -> None:
    assert texts(shared) == {
        "shared_binary_xy": "binary(transpose(x, p), y, f)"
        " -> transpose(binary(x, transpose(y, p.inverse), f), p)",
        "shared_binary_xz": "binary(transpose(x, p), broadcast(z, s), f) -> transpose(binary(x,"
        " broadcast(transpose(z, p.inverse), s.permuted(p.inverse)), f), p)",
        "shared_binary_yx": "binary(y, transpose(x, p), f)"
        " -> transpose(binary(transpose(y, p.inverse), x, f), p)",
        "shared_binary_zx": "binary(broadcast(z, s), transpose(x, p), f) -> transpose(binary("
        "broadcast(transpose(z, p.inverse), s.permuted(p.inverse)), x, f), p)",
    }
    with user_ops() as ops:
        found = RuleSet(shared).for_ops([ops.lerp])
        lerps = {name.rpartition("_")[2] for name in names(found) if "lerp" in name}
    assert len(lerps) == 3**3 - 2**3 - 1  # all ways but those without x and that with x alone
    assert {"xyz", "zyx", "xxz", "yxy"} <= lerps


def test_an_op_of_another_arity_is_left_out() -> None:
    @family
    def of_one(f: Elementwise, x: Tensor, s: Slices) -> Law:
        """slice(f(x), s) = f(slice(x, s))"""
        return rewrites(slice_(f(x), s), f(slice_(x, s)))

    assert [entry.name for entry in of_one.rules] == ["of_one_unary", "of_one_cast"]
    with pytest.raises(
        RuleError, match=r"family 'of_four' .* no op has as many operands as the law"
    ):

        @family
        def of_four(f: Elementwise, x: Tensor, s: Slices) -> Law:
            """slice(f(x, x, x, x), s) = f(slice(x, s)…)"""
            y = slice_(x, s)
            return rewrites(slice_(f(x, x, x, x), s), f(y, y, y, y))


def test_attributes_of_the_op_stay_apart_from_variables() -> None:
    @family
    def swapped(g: Contraction, x: Tensor, w: Tensor, window: Shape) -> Law:
        """broadcast(g(x, w)) = g(x, w), when nothing is repeated"""
        product = g(x, w)
        return rewrites(broadcast(product, window), product, product.type.shape == window.dims)

    _, conv = swapped.rules
    assert list(conv.variables) == ["window_", "groups", "x", "w", "window"]


def test_sets_hold_families() -> None:
    both = RuleSet(backed, *shared.rules)
    assert len(both) == 8 and len(both.laws) == 5
    assert names(both.without("backed")) == [entry.name for entry in shared.rules]
    assert "backed_cast" not in both.without("backed_cast")
    with user_ops() as ops:
        assert "backed_elu" in (both + DEFAULT).for_ops([ops.elu])
        assert "backed_elu" in (DEFAULT + backed).exact.for_ops([ops.elu])
        assert "backed_elu" not in both.without("backed").for_ops([ops.elu])
        assert "scale_into_matmul" not in EXACT.for_ops([ops.elu])


WRONG_LAWS = """
@family
def unmoved(f: Elementwise, xs: Operands[Tensor], p: Perm) -> Law:
    '''f(transpose(x, p)…) = f(x…)'''
    return rewrites(f(xs.each(transpose, p)), f(xs))
"""


@family
def forgets_to_move_back(f: Arithmetic, xs: Some[Tensor], ys: Others[Tensor], p: Perm) -> Law:
    """f(transpose(x, p)…, y…) = transpose(f(x…, y…), p), which is wrong"""
    return rewrites(f(xs.each(transpose, p), ys), transpose(f(xs, ys), p))


@family
def forgets_to_slice(f: Elementwise, xs: Operands[Tensor], s: Slices) -> Law:
    """slice(f(x…), s) = f(x…), which is wrong"""
    return rewrites(slice_(f(xs), s), f(xs))


@family
def folds_to_the_first(f: Elementwise, vs: Scalars) -> Law:
    """f(v…) = the first of v…, which is wrong"""
    return rewrites(f(vs), scalar(vs[0]))


WRONG = [
    *forgets_to_move_back.rules,
    *forgets_to_slice.rules,
    *folds_to_the_first.rules,
]


@pytest.mark.parametrize("wrong", deep_but(WRONG[::2], WRONG), ids=lambda each: each.name)
def test_a_wrong_law_is_refuted_for_each_op(wrong: Rule) -> None:
    assert check(wrong, shrink=False).verdict == "refuted"


def test_a_wrong_law_is_refuted_for_a_users_op() -> None:
    with user_ops() as ops:
        for entry in forgets_to_slice.about(ops.elu):
            assert check(entry, shrink=False).verdict == "refuted"


@pytest.mark.deep
def test_a_condition_that_a_value_exists_may_hold_for_every_match() -> None:
    @family
    def joined(f: Elementwise, x: Tensor, y: Tensor, axis: Axis) -> Law:
        """concat(f(x), f(y), axis) = f(concat(x, y, axis)), when x and y have one dtype"""
        whole = concat(x, y, axis)
        return rewrites(concat(f(x), f(y), axis), f(whole), has_value(whole.type))

    @family
    def careless(f: Elementwise, x: Tensor, y: Tensor, axis: Axis) -> Law:
        """concat(f(x), f(y), axis) = f(concat(x, y, axis)), of any dtypes"""
        return rewrites(concat(f(x), f(y), axis), f(concat(x, y, axis)))

    assert [check(entry, attempts=300).is_sound for entry in joined.rules] == [True, True]
    assert [check(entry, shrink=False).is_sound for entry in careless.rules] == [False, False]
    with user_ops() as ops:  # which has a single dtype
        (only,) = joined.about(ops.elu)
        assert check(only, attempts=300).is_sound


def beside(other: str) -> Program:
    """The sum of a transposed input and, at the same shape, one of several tensors."""
    build = Builder()
    x = build.transpose(build.input("x", DType.F32, (3, 2)), (1, 0))
    row, flat = (np.ones(shape, np.float32) for shape in ((1, 3), (6,)))
    tensors = {
        "input": lambda: build.input("y", DType.F32, (2, 3)),
        "constant": lambda: build.constant(np.ones((2, 3), np.float32)),
        "reshaped constant": lambda: build.reshape(build.constant(flat), (2, 3)),
        "reshaped input": lambda: build.reshape(build.input("y", DType.F32, (6,)), (2, 3)),
        "broadcast constant": lambda: build.broadcast(build.constant(row), (2, 3)),
        "turned constant": lambda: build.transpose(build.constant(flat.reshape((3, 2))), (1, 0)),
    }
    y = tensors[other.removesuffix(" that is turned elsewhere")]()
    elsewhere = {} if other in tensors else {"t": build.transpose(y, (1, 0))}
    return build.program({"z": build.binary("add", x, y), **elsewhere})


@pytest.mark.parametrize("name", ["shared_binary_xy", "backed_binary"])
@pytest.mark.parametrize(
    ("other", "moves"),
    [
        ("input that is turned elsewhere", "shared_binary_xy"),
        ("constant", "shared_binary_xy"),
        ("reshaped constant", "shared_binary_xy"),
        ("reshaped input that is turned elsewhere", "shared_binary_xy"),
        ("input", ""),
        ("reshaped input", ""),
        ("broadcast constant", ""),
        ("turned constant", "both"),
    ],
)
def test_what_is_worth_moving(name: str, other: str, moves: str) -> None:
    program, asked = beside(other), RuleSet(backed, shared)[name]
    answer = why(asked, program, saturate(program, RuleSet(asked)))
    (direction,) = answer.directions
    assert (direction.new_nodes > 0) == answer.fires == (moves in (name, "both"))


def test_what_is_known_is_left_alone() -> None:
    build = Builder()
    known = build.constant(np.ones((3, 2), np.float32))
    both = build.binary("add", *(build.transpose(known, (1, 0)) for _ in range(2)))
    program, asked = build.program({"y": both}), RuleSet(backed)["backed_binary"]
    answer = why(asked, program, saturate(program, RuleSet(asked)))
    assert not answer.fires and not answer.directions[0].new_nodes
    assert "the left side depends on an input" in answer.directions[0].steps[-1].text


def test_a_file_may_declare_families(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from satura.language import *\n" + WRONG_LAWS, "utf-8")
    rules = load_rules(file)
    assert names(rules) == ["unmoved_unary", "unmoved_binary", "unmoved_select", "unmoved_cast"]
    with user_ops() as ops:
        assert "unmoved_elu" in rules.for_ops([ops.elu])


def test_mistakes_in_a_family_are_errors() -> None:
    with pytest.raises(RuleError, match=r"family 'no_op' .* one parameter of sort Elementwise"):

        @family
        def no_op(x: Tensor, p: Perm) -> Law:
            """transpose(x, p) = x"""
            return rewrites(transpose(x, p), x)

    with pytest.raises(RuleError, match=r"'backwards_unary' .* 's' is never used"):

        @family
        def backwards(f: Elementwise, xs: Operands[Tensor], p: Perm, s: Shape) -> Law:
            """transpose(f(x…), p) = f(transpose(x, p)…)"""
            return rewrites(transpose(f(xs), p), f(xs.each(transpose, p)))


@family
def reverse_past(f: Elementwise, xs: Operands[Tensor], s: Slices) -> Law:
    """f(slice(x, s)…) = slice(f(x…), s), where x… may be wider than each other"""
    return rewrites(f(xs.each(slice_, s)), slice_(f(xs), s))


@pytest.mark.parametrize("seed", deep_but((), range(3)))
def test_operands_that_fit_at_no_sizes_crash_no_check(seed: int) -> None:
    (select,) = (rule for rule in reverse_past.rules if rule.name == "reverse_past_select")
    assert check(select, seed=seed, attempts=100).verdict in ("tested", "refuted", "vacuous")


def test_operands_without_a_sort_are_reported() -> None:
    def bare(f: Elementwise, xs: Operands, p: Perm) -> Law:  # type: ignore[type-arg]
        """f(transpose(x, p)…) = transpose(f(x…), p)"""
        return rewrites(f(xs.each(transpose, p)), transpose(f(xs), p))

    with pytest.raises(RuleError, match=r"'xs: Operands' .*: write Operands\[Tensor\]"):
        family(bare)
