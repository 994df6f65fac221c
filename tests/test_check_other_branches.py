"""The checker on laws that are wrong in a branch which few matches take: it is met on purpose."""

from __future__ import annotations

from random import Random

import pytest

from satura.rewrite.check.other_branches import of_other_branches
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import reduce, transpose, unary
from satura.rewrite.types.attributes import Axes, Perm, refuse_unless
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import TensorType
from satura.testing import check
from tests.tiers import deep_but


def last(x: TensorType) -> int:
    refuse_unless(x.rank > 0 and isinstance(x.shape[-1], int))
    return static(x.shape[-1])


@attribute_function
def is_last(axes: Axes, x: TensorType) -> bool:
    return x.rank > 0 and axes.indices == (x.rank - 1,)


@attribute_function
def is_odd_or_of_forty_blocks(x: TensorType) -> bool:
    return last(x) % 2 == 1 or last(x) // 16 == 40


@attribute_function
def is_odd_or_between(x: TensorType) -> bool:
    return last(x) % 2 == 1 or 40 <= last(x) // 16 < 44


@attribute_function
def is_odd_or_far(x: TensorType) -> bool:
    n = last(x)
    if n % 2 == 1:
        return True
    return 3 * n - 100 == 1718 and x.rank == 2


@attribute_function
def is_odd_or_rare(x: TensorType) -> bool:
    return last(x) % 2 == 1 or (last(x) // 3 == 90 and last(x) % 4 == 2)


def negated(condition: object) -> Rule:
    @rule
    def prod_of_negated(x: Tensor, axes: Axes) -> Law:
        """prod(-x) = -prod(x) along the last axis, when that is odd"""
        return rewrites(
            reduce("prod", unary("neg", x), axes), unary("neg", reduce("prod", x, axes)),
            is_last(axes, x.type), condition(x.type),  # type: ignore[operator]
        )  # fmt: skip

    return prod_of_negated


@attribute_function
def order_but_for(p: Perm, x: TensorType) -> Perm:
    """The order, but for one length of the first axis."""
    refuse_unless(x.rank > 1 and isinstance(x.shape[0], int))
    return Perm((*p.order[1:], p.order[0])) if static(x.shape[0]) // 5 == 61 else p


@rule
def transpose_that_turns(x: Tensor, p: Perm) -> Law:
    """transpose(-x, p) = -transpose(x, p)"""
    return rewrites(
        transpose(unary("neg", x), p), unary("neg", transpose(x, order_but_for(p, x.type)))
    )


WRONG = {
    "blocks": negated(is_odd_or_of_forty_blocks), "between": negated(is_odd_or_between),
    "far": negated(is_odd_or_far), "rare": negated(is_odd_or_rare),
    "computed": transpose_that_turns,
}  # fmt: skip


@pytest.mark.parametrize("name", deep_but(["blocks", "computed"], WRONG))
def test_a_law_that_is_wrong_in_a_rare_branch_is_refuted(name: str) -> None:
    report = check(WRONG[name])
    assert report.verdict == "refuted", str(report)


@attribute_function
def has_one_of_many(x: TensorType) -> bool:
    return last(x) % 2 == 1 or last(x) // 16 == 40 or last(x) - 700 == 6


@rule
def negated_twice(x: Tensor, axes: Axes) -> Law:
    """max(x) = max(-(-x)), whatever is asked of the extents"""
    return rewrites(
        reduce("max", x, axes), reduce("max", unary("neg", unary("neg", x)), axes),
        has_one_of_many(x.type),
    )  # fmt: skip


def test_each_branch_is_met() -> None:
    (direction,) = negated_twice.directions
    firings = Firings(direction)
    firings.draw(Random(0), 150, 6000)
    extents = {last(each.types["x"]) for each in firings.found.values()}
    assert extents & {*range(640, 656, 2)} and 706 in extents


def test_what_held_already_is_not_met_again() -> None:
    (direction,) = negated_twice.directions
    firings = Firings(direction)
    firings.draw(Random(0), 150, 6000)
    assert not [*of_other_branches(direction, [*firings.found.values()], Random(1))]
