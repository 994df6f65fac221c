"""Attributes and extents that the checker draws: laws that are wrong for few are refuted."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from satura.rewrite.check.layout_operands import split
from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import (
    arg_reduce,
    binary,
    broadcast,
    concat,
    conv,
    matmul,
    pad,
    pool,
    reshape,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.ops import reductions
from satura.rewrite.ops.draw import Draw
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.attributes import (
    Axis,
    Count,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.types.dims import SymbolicDim, static, symbol, symbols_of
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.testing import check
from tests.tiers import deep_but


def test_parts_of_a_size_are_in_normal_form() -> None:
    """A part `2` that is a polynomial equals no 2, so that a right law's sides would not fit."""
    whole = symbol("n") * 3 + 2
    for seed in range(30):
        for part in split(Draw(Random(seed)), whole):
            assert isinstance(part, SymbolicDim) == bool(symbols_of([part]))


@attribute_function
def seems_trivial(w: Window) -> bool:
    """Sizes and strides 1, whatever the border."""
    return all(n == 1 for n in (*w.sizes, *w.strides))


@rule
def pool_of_one(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = x for windows of 1: not with a border"""
    return rewrites(pool(f, x, w), x, seems_trivial(w))


@attribute_function
def strides_up_to_two(w: Window) -> Window:
    """Strides of 3 become 2."""
    return replace(w, strides=tuple(min(2, n) for n in w.strides))


@rule
def pool_by_two(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with strides up to 2)"""
    return rewrites(pool(f, x, w), pool(f, x, strides_up_to_two(w)))


@attribute_function
def steps_up_to_two(s: Slices) -> Slices:
    """Steps of 3 become 2."""
    return Slices(s.starts, s.sizes, tuple(max(-2, min(2, n)) for n in s.steps))


@rule
def slice_by_two(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = slice(x, s with steps up to 2)"""
    return rewrites(slice_(x, s), slice_(x, steps_up_to_two(s)))


@attribute_function
def at_most_two(b: Padding) -> Padding:
    """3 elements before an axis become 2."""
    return Padding(tuple(min(2, n) if isinstance(n, int) else n for n in b.lo), b.hi)


@rule
def pad_by_two(x: Tensor, v: Tensor, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b up to 2)"""
    return rewrites(pad(x, v, b), pad(x, v, at_most_two(b)))


@attribute_function
def is_thin(x: TensorType) -> bool:
    """An inner extent of at most 1."""
    inner = x.shape[-1]
    return isinstance(inner, int) and inner < 2


@attribute_function
def outer(x: TensorType, y: TensorType) -> Shape:
    """The product's shape."""
    return Shape((*x.shape[:-1], y.shape[-1]))


@rule(reassociates=True)
def outer_product(x: Tensor, y: Tensor) -> Law:
    """matmul(x, y) = x * y for an inner extent of 1: not of 0"""
    s = outer(x.type, y.type)
    product = binary("mul", broadcast(x, s), broadcast(y, s))
    return rewrites(matmul(x, y), product, is_thin(x.type))


@attribute_function
def inverse_of_sizes(p: Perm, x: TensorType) -> Perm:
    """The inverse, but for three unknown extents."""
    return p if x.rank == 3 and not any(isinstance(dim, int) for dim in x.shape) else p.inverse


@rule
def there_and_back(x: Tensor, p: Perm) -> Law:
    """|transpose(x, p)| = transpose(|transpose(transpose(x, p), p⁻¹)|, p)"""
    back = transpose(transpose(x, p), inverse_of_sizes(p, x.type))
    return rewrites(unary("abs", transpose(x, p)), transpose(unary("abs", back), p))


@attribute_function
def keeps_the_shape(x: TensorType, p: Perm) -> bool:
    """Whether p moves only axes before the last two, and x has the same shape then."""
    refuse_unless(x.rank >= 4)
    return p.order[-2:] == (x.rank - 2, x.rank - 1) and p.apply(x.shape) == x.shape


@rule
def moved_batches(x: Tensor, y: Tensor, p: Perm) -> Law:
    """matmul(transpose(x, p), transpose(y, p)) = matmul(x, y): not for two equal batch extents"""
    left = matmul(transpose(x, p), transpose(y, p))
    return rewrites(left, matmul(x, y), keeps_the_shape(x.type, p))


@attribute_function
def changed_from_40(f: UnaryFn, x: TensorType) -> UnaryFn:
    """f, but abs for a last extent of at least 40."""
    refuse_unless(x.rank > 0 and isinstance(x.shape[-1], int))
    return UnaryFn("abs") if static(x.shape[-1]) >= 40 else f


@rule
def short_rows_only(f: UnaryFn, x: Tensor) -> Law:
    """-f(x) = -f(x): not for an extent that the rule names"""
    left = unary("neg", unary(f, x))
    return rewrites(left, unary("neg", unary(changed_from_40(f, x.type), x)))


@attribute_function
def agree_at(x: TensorType, s: Shape, a: Axis) -> bool:
    """Whether x and s have one rank and one extent along a."""
    return len(s.dims) == x.rank and x.shape[a.index] == s.dims[a.index]


@rule
def reshaped_positions(x: Tensor, s: Shape, a: Axis, last: Count) -> Law:
    """argmax(reshape(x, s), a) = reshape(argmax(x, a)): not for [2, 3, 4] as [4, 3, 2]"""
    left = arg_reduce("max", reshape(x, s), a, last)
    return rewrites(
        left, reshape(arg_reduce("max", x, a, last), Shape(left.type.shape)), agree_at(x.type, s, a)
    )


@attribute_function
def of_few_bits(w: Window) -> Window:
    """Sizes of more than three bits become one less."""
    sizes = tuple(n - 1 if len(f"{n:b}") > len("bit") else n for n in w.sizes)
    return replace(w, sizes=sizes)


@rule
def pool_of_seven(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with sizes below 8), whose rule names no number"""
    return rewrites(pool(f, x, w), pool(f, x, of_few_bits(w)))


@attribute_function
def borders_up_to_two(w: Window) -> Window:
    """What a border has beyond 2 elements goes to the other end."""
    after = tuple(hi + max(0, lo - 2) for lo, hi in zip(w.lo, w.hi, strict=True))
    return replace(w, lo=tuple(min(2, lo) for lo in w.lo), hi=after)


@rule
def pool_by_borders(f: ReduceFn, x: Tensor, w: Window) -> Law:
    """pool(f, x, w) = pool(f, x, w with at most two elements before)"""
    return rewrites(pool(f, x, w), pool(f, x, borders_up_to_two(w)))


@attribute_function
def abs_if_long(f: UnaryFn, x: TensorType) -> UnaryFn:
    """f, but abs for a last extent of five bits and more."""
    refuse_unless(x.rank > 0 and isinstance(x.shape[-1], int))
    return UnaryFn("abs") if len(f"{x.shape[-1]:b}") > len("bits") else f


@rule
def rows_of_four_bits(f: UnaryFn, x: Tensor) -> Law:
    """-f(x) = -f(x): not for an extent of 16 and more, which the rule does not name"""
    left = unary("neg", unary(f, x))
    return rewrites(left, unary("neg", unary(abs_if_long(f, x.type), x)))


@attribute_function
def has_one_tap(win: Window, old: TensorType, new: TensorType) -> bool:
    """Whether single elements are read, and as many stored."""
    return win.sizes == (1,) * win.rank and old.shape[1:-1] == new.shape[1:-1]


@attribute_function
def in_single_steps(win: Window) -> Window:
    """The window in steps of 1, without borders."""
    none = (0,) * win.rank
    return replace(win, strides=(1,) * win.rank, lo=none, hi=none)


@rule(reassociates=True)
def conv_by_one_tap(x: Tensor, w: Tensor, win: Window, g: Groups) -> Law:
    """conv(x, w) = conv in steps of 1, of windows of 1: not where borders make up for the steps"""
    left = conv(x, w, win, g)
    return rewrites(left, conv(x, w, in_single_steps(win), g), has_one_tap(win, x.type, left.type))


@attribute_function
def one_or_many(g: Groups) -> bool:
    return g.count == 1 or g.count > 4


@rule(reassociates=True)
def weights_of_many_groups(x: Tensor, w: Tensor, u: Tensor, v: Window, g: Groups) -> Law:
    """conv(x, concat(w, u)) = concat(conv(x, w), conv(x, u)), for 1 group: not for 5"""
    last = Axis(3)
    left = conv(x, concat(w, u, last), v, g)
    right = concat(conv(x, w, v, g), conv(x, u, v, g), last)
    return rewrites(left, right, one_or_many(g), left.type == right.type)


@pytest.mark.parametrize("f", ["max", "min"])
def test_long_extents_are_reduced_in_few_steps(f: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check draws extents of 140,001: a step for each element took all its time."""
    steps: list[str] = []
    step = reductions.combine

    def counted(f: str, a: Array, b: Array) -> Array:
        steps.append(f)
        return step(f, a, b)

    monkeypatch.setattr(reductions, "combine", counted)
    for values in ([0.0, -0.0, 1.0, np.nan], [-0.0, 0.0], [np.inf], []):
        x = np.array(values * 5000, np.float32)[None]
        build = Builder()
        operand = build.input("x", DType.F32, x.shape)
        program = build.program({"y": build.reduce(f, operand, [1])})
        expected = reductions.reduction_identity(f, DType.F32)
        for value in values:
            expected = step(f, np.asarray(expected), np.array(value, np.float32)).flat[0]
        found = interpret(program, {"x": x})["y"]
        assert found.shape == (1, 1) and found.tobytes() == np.asarray(expected).tobytes()
    assert len(steps) < 60


WRONG = [
    weights_of_many_groups,
    conv_by_one_tap,
    pool_by_borders,
    rows_of_four_bits,
    pool_of_seven,
    short_rows_only,
    reshaped_positions,
    there_and_back,
    moved_batches,
    pool_of_one,
    pool_by_two,
    slice_by_two,
    pad_by_two,
    outer_product,
]
QUICK = [short_rows_only, slice_by_two, outer_product]


@pytest.mark.parametrize("seed", deep_but([0], range(2)))
@pytest.mark.parametrize("wrong", deep_but(QUICK, WRONG), ids=lambda each: each.name)
def test_rare_values_refute(wrong: Rule, seed: int) -> None:
    assert check(wrong, seed, shrink=False).verdict == "refuted"
