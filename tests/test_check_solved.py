"""The checker on conditions whose functions compare many things: few matches meet them, and what
is compared says which ones do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np
import pytest

from satura.rewrite.check.disagreement import padded_size
from satura.rewrite.check.instances import fires, is_trivial
from satura.rewrite.check.side_conditions import Firings
from satura.rewrite.check.solved_within import MOST_WORK, solved_within
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    broadcast,
    matmul,
    pad,
    pool,
    reduce,
    reshape,
    slice_,
    unary,
)
from satura.rewrite.types.attributes import Axes, Padding, Shape, Slices, Window, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import known_at_least
from satura.rewrite.types.tensor_type import TensorType
from satura.testing import check
from tests.tiers import deep_but


@attribute_function
def sees_all_before(w: Window, x: TensorType) -> bool:
    """Whether a window over a list reaches from any element back to the first one."""
    if x.rank != 1 or not isinstance(x.shape[0], int) or any(w.fill.bits):
        return False
    n = x.shape[0]
    plain = w.strides == (1,) and w.dilations == (1,) and w.hi == (0,)
    return plain and n > 0 and w.sizes == (n,) and w.lo == (n - 1,)


@attribute_function
def is_last(s: Slices, x: TensorType) -> bool:
    return x.rank == 1 and s.sizes == (1,) and s.starts == (x.shape[0] - 1,)


@attribute_function
def is_first(s: Slices) -> bool:
    return s.sizes == (1,) and s.starts == (0,)


@attribute_function
def all_axes(x: TensorType) -> Axes:
    return Axes(tuple(range(x.rank)))


@rule
def last_of_running_sums(x: Tensor, w: Window, s: Slices) -> Law:
    """the last of the running sums of a list = its sum, on integers"""
    sums = slice_(pool("sum", x, w), s)
    return rewrites(
        sums,
        reduce("sum", x, all_axes(x.type)),
        sees_all_before(w, x.type) & is_last(s, x.type) & x.type.dtype.is_integer,
    )


@rule
def first_of_running_sums(x: Tensor, w: Window, s: Slices) -> Law:
    """the first of the running sums of a list = its sum: it is the first element"""
    sums = slice_(pool("sum", x, w), s)
    return rewrites(
        sums,
        reduce("sum", x, all_axes(x.type)),
        sees_all_before(w, x.type) & is_first(s) & x.type.dtype.is_integer,
    )


@attribute_function
def is_repeated(x: TensorType, r: Shape, b: Shape, u: Shape) -> bool:
    """Whether each element of a list is repeated."""
    if x.rank != 1 or len(b.dims) != 2:
        return False
    return r.dims == (*x.shape, 1) and u.dims == (x.shape[0] * b.dims[1],)


@attribute_function
def takes_each(s: Slices, x: TensorType, b: Shape) -> bool:
    """Whether s goes in steps of as many elements as each became. It may go backwards."""
    refuse_unless(len(b.dims) == 2)
    return len(s.steps) == 1 and abs(s.steps[0]) == b.dims[1] and s.sizes == x.shape


@rule
def take_of_repeated(x: Tensor, r: Shape, b: Shape, u: Shape, s: Slices) -> Law:
    """every k-th element of a list that was repeated k times = the list"""
    return rewrites(
        slice_(reshape(broadcast(reshape(x, r), b), u), s),
        x,
        is_repeated(x.type, r, b, u) & takes_each(s, x.type, b),
    )


@attribute_function
def pad_inner_axis(b: Padding, c: Padding) -> bool:
    """Whether b pads the last axis alone, and c the last but one as much."""
    n = len(b.lo)
    for i in range(n):
        if i != n - 1 and (b.lo[i], b.hi[i]) != (0, 0):
            return False
        if i != n - 2 and (c.lo[i], c.hi[i]) != (0, 0):
            return False
    return n >= 2 and b.lo[-1] == c.lo[-2] and b.hi[-1] == c.hi[-2]


@attribute_function
def has_no_bits(v: Scalar) -> bool:
    return not any(v.bits)


@rule
def product_of_padded(x: Tensor, y: Tensor, v: Scalar, u: Tensor, b: Padding, c: Padding) -> Law:
    """matmul(pad(x, 0), pad(y, u)) = matmul(x, y): where u is infinite, 0 * u is NaN"""
    return rewrites(
        matmul(pad(x, v, b), pad(y, u, c)), matmul(x, y), has_no_bits(v) & pad_inner_axis(b, c)
    )


WRONG = (first_of_running_sums, take_of_repeated, product_of_padded)
SEEDS = (0, 1009, 424242)


@pytest.mark.parametrize("seed", deep_but(SEEDS[:1], SEEDS))
@pytest.mark.parametrize("law", deep_but([take_of_repeated], WRONG), ids=lambda law: law.name)
def test_a_law_is_refuted_where_few_matches_meet_its_condition(law: Rule, seed: int) -> None:
    assert check(law, seed, shrink=False).verdict == "refuted"


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_law_fires_often_enough(seed: int) -> None:
    report = check(last_of_running_sums, seed)
    assert report.verdict == "tested", str(report)


@attribute_function
def is_as_large(w: Window, x: TensorType) -> bool:
    return w.sizes == x.shape


@rule
def pool_of_all(x: Tensor, w: Window) -> Law:
    """max(x, a window as large as x) = max(x, all axes): not with dilations, nor with a border"""
    all_of_it = reduce("max", x, all_axes(x.type))
    return rewrites(pool("max", x, w), all_of_it, is_as_large(w, x.type))


def test_a_window_of_an_open_size_is_not_tried() -> None:
    assert check(pool_of_all, shrink=False).verdict == "refuted"
    found = list(solved_within(pool_of_all.directions[0], Random(0)))
    assert found and all(isinstance(n, int) for each in found for n in each.types["x"].shape)


def test_what_is_solved_fires_and_is_not_all_alike() -> None:
    (direction,) = last_of_running_sums.directions
    found = list(solved_within(direction, Random(0)))
    assert len(found) > 50 and all(map(fires, found))
    assert len({each.bindings["w"] for each in found}) >= 5
    assert len({each.types["x"].dtype for each in found}) >= 5


@pytest.mark.deep
def test_few_firings_pad_nothing() -> None:
    firings = Firings(product_of_padded.directions[0])
    firings.draw(Random(0), 150, 6000)
    padded = [each for each in firings.found.values() if not is_trivial(each)]
    assert len(padded) > 75


def test_functions_that_cannot_be_read_are_called_as_they_are() -> None:
    scope: dict[str, object] = {"attribute_function": attribute_function, "Slices": Slices}
    exec("@attribute_function\ndef begins(s: Slices) -> bool:\n    return s.starts == (2,)", scope)

    @rule
    def slice_from(x: Tensor, s: Slices) -> Law:
        """x[2:] = x, which it is not"""
        return rewrites(slice_(x, s), x, scope["begins"](s))  # type: ignore[operator]

    assert list(solved_within(slice_from.directions[0], Random(0))) == []


def bound(extent: int) -> Callable[[Window], bool]:
    """A function whose text alone does not say what it computes."""

    @attribute_function
    def is_so_large(w: Window, extent: int = extent) -> bool:
        return w.sizes == (extent,)

    return is_so_large


@attribute_function
def counts_down(w: Window) -> bool:
    if w.sizes != (2,) or w.lo != (w.hi[0] - 1,):
        return False
    n = w.lo[0]
    while n != 0:
        n -= 1
    return True


@attribute_function
def is_huge(w: Window) -> bool:
    return w.lo == (10**9,) and w.hi == (2**40,)


@attribute_function
def compares_with_anything(w: Window, x: TensorType) -> bool:
    numbers = np.arange(3)
    others: tuple[object, ...] = ((np.int64(6),), "f32", 0.0, (None,))
    odd = any(part == other for part in (w.lo, x.dtype, w.fill, w.sizes) for other in others)
    return not odd and (numbers, w.hi) != (numbers, (7,))


@cache
def fibonacci(n: int) -> int:
    return n if n in (0, 1) else fibonacci(n - 1) + fibonacci(n - 2)


@attribute_function
def calls_itself(w: Window) -> bool:
    return w.rank == 1 and fibonacci(60 + w.sizes[0]) > 0 and w.sizes == (3,)


ODD: dict[str, Callable[..., bool]] = {
    "default": bound(2),
    "counts down": counts_down,
    "huge": is_huge,
    "anything": compares_with_anything,
    "cached": calls_itself,
}


@pytest.mark.parametrize("odd", deep_but(["default", "anything"], ODD))
def test_odd_functions_do_no_harm(odd: str) -> None:
    condition = ODD[odd]

    @rule
    def negate_twice(x: Tensor, w: Window) -> Law:
        """-(-p) = p"""
        p = pool("max", x, w)
        holds = condition(w, x.type) if odd == "anything" else condition(w)
        return rewrites(unary("neg", unary("neg", p)), p, holds)

    verdict = check(negate_twice, shrink=False).verdict
    assert verdict == ("tested" if odd != "huge" else "vacuous")


@attribute_function
def is_5_or_7(w: Window) -> bool:
    return w.rank == 1 and w.sizes[0] in (5, 7)


def test_all_options_of_a_comparison_are_tried() -> None:
    @rule
    def wide(x: Tensor, w: Window) -> Law:
        """-(-p) = p, for windows of 5 or 7"""
        p = pool("max", x, w)
        return rewrites(unary("neg", unary("neg", p)), p, is_5_or_7(w))

    found = list(solved_within(wide.directions[0], Random(0)))
    windows = [value for each in found for _, value in each.values if isinstance(value, Window)]
    assert {window.sizes for window in windows} == {(5,), (7,)}


@attribute_function
def is_deep(x: TensorType, y: TensorType) -> bool:
    """Whether two tensors share an axis that nobody draws so long, and have few rows."""
    return known(x.shape[-1]) > 1000 and known(y.shape[-1]) <= 3


def known(extent: object) -> int:
    refuse_unless(isinstance(extent, int), "it is open")
    assert isinstance(extent, int)
    return extent


@pytest.mark.parametrize("is_right", [True, False])
def test_bounds_that_operands_share_are_met(is_right: bool) -> None:
    @rule
    def twice(x: Tensor, y: Tensor) -> Law:
        """-(-xy) = xy, or the mistaken -xy"""
        product = matmul(x, y)
        wrong = unary("neg", product)
        return rewrites(
            unary("neg", unary("neg", product)), product if is_right else wrong,
            is_deep(x.type, y.type),
        )  # fmt: skip

    assert check(twice, shrink=False).verdict == ("tested" if is_right else "refuted")


@attribute_function
def between(x: TensorType) -> bool:
    return x.rank > 0 and 1000 <= known(x.shape[0]) <= 1010


@attribute_function
def not_below(x: TensorType) -> bool:
    return x.rank > 0 and not known(x.shape[0]) < 1024


@attribute_function
def at_least(x: TensorType) -> bool:
    return x.rank > 0 and known_at_least(x.shape[0], 1000)


@pytest.mark.parametrize("condition", deep_but([between], [between, not_below, at_least]))
@pytest.mark.parametrize("is_right", [True, False])
def test_bounds_are_met_however_they_are_said(
    condition: Callable[[TensorType], bool], is_right: bool
) -> None:
    @rule
    def twice(x: Tensor) -> Law:
        """-(-x) = x, or the mistaken -x"""
        once = unary("neg", x)
        return rewrites(unary("neg", once), x if is_right else once, condition(x.type))

    assert check(twice, shrink=False).verdict == ("tested" if is_right else "refuted")


@attribute_function
def leaves_much(x: TensorType, s: Slices) -> bool:
    refuse_unless(x.rank == 1, "it must be a list")
    first, size = known(s.starts[0]), known(s.sizes[0])
    return known(x.shape[0]) - first - size >= 400


def test_a_law_that_fires_for_empty_tensors_alone_is_not_tested() -> None:
    @rule
    def negate(x: Tensor, s: Slices) -> Law:
        """the mistaken -(-slice) = -slice, which holds for none"""
        once = unary("neg", slice_(x, s))
        return rewrites(unary("neg", once), once, leaves_much(x.type, s))

    assert check(negate, shrink=False).verdict in ("vacuous", "refuted")
    found = list(solved_within(negate.directions[0], Random(0)))
    assert all(0 not in each.left_side.nodes[-1].type.shape for each in found)


@attribute_function
def is_far(x: TensorType, w: Window) -> bool:
    """Whether a window reaches far; of those of many axes images with their borders are huge."""
    return w.rank >= 1 and w.dilations[-1] > 30 and w.sizes[-1] >= 2


@pytest.mark.deep
def test_what_a_window_moves_over_is_not_too_large() -> None:
    @rule
    def negate(x: Tensor, w: Window) -> Law:
        """-(-p) = p"""
        p = pool("max", x, w)
        return rewrites(unary("neg", unary("neg", p)), p, is_far(x.type, w))

    assert check(negate, shrink=False).verdict == "tested"
    found = list(solved_within(negate.directions[0], Random(0)))
    for each in found:
        nodes = each.left_side.nodes
        operands = [tuple(nodes[at].type for at in node.operands) for node in nodes]
        sizes = [padded_size(*pair) for pair in zip(nodes, operands, strict=True)]
        assert max(sizes) <= MOST_WORK
