"""Every rule of the book passes its property test; wrong rules that shipped elsewhere do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from satura.rewrite.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Groups,
    Padding,
    Perm,
    ReduceFn,
    Scalar,
    Shape,
    Slices,
    UnaryFn,
    Window,
    refuse_unless,
)
from satura.rewrite.check.testing import FIRINGS, assert_sound, check
from satura.rewrite.dims import representative
from satura.rewrite.dsl import (
    Law,
    RuleSet,
    Tensor,
    attribute_function,
    equates,
    rewrites,
    rule,
)
from satura.rewrite.errors import RuleError
from satura.rewrite.ops.combining import reduction_identity
from satura.rewrite.terms import (
    binary,
    broadcast,
    cast,
    concat,
    conv,
    pad,
    pool,
    reduce,
    reshape,
    scalar,
    slice_,
    transpose,
    unary,
)
from satura.rewrite.types import DType, TensorType
from satura.rules import BOOK, DEFAULT, EXACT, NONE
from satura.rules.regroup import blocks, replaced, with_units


@pytest.mark.parametrize("name", [entry.name for entry in DEFAULT])
def test_rule_is_sound(name: str) -> None:
    result = check(DEFAULT[name])
    assert result.is_sound, str(result)
    assert all(direction.firings >= FIRINGS for direction in result.directions)


def test_sets() -> None:
    assert len(NONE) == 0
    assert sum(map(len, BOOK.values())) == len(DEFAULT) > len(EXACT) > 0
    assert all(entry.exact for entry in EXACT)


def test_a_check_repeats_itself() -> None:
    entry = museum_sum_over_broadcast
    assert str(check(entry, seed=3)) == str(check(entry, seed=3))


# The museum: rewrites that shipped in compilers and were wrong.


@attribute_function
def bordered(window: Window, padding: Padding, fill: Scalar) -> Window:
    """The window with the padding added to its border, whatever the padding's value."""
    refuse_unless(all(isinstance(dim, int) for dim in (*padding.lo, *padding.hi)))
    lo = tuple(a + int(str(b)) for a, b in zip(window.lo, padding.lo, strict=True))
    hi = tuple(a + int(str(b)) for a, b in zip(window.hi, padding.hi, strict=True))
    return replace(window, lo=lo, hi=hi, fill=fill)


@attribute_function
def identity_of(f: ReduceFn, type_: TensorType) -> Scalar:
    """What a pool of f counts outside as nothing."""
    return Scalar.of(reduction_identity(f.name, type_.dtype), type_.dtype)


@attribute_function
def zero_of(type_: TensorType) -> Scalar:
    """0 in the type's dtype."""
    return Scalar.of(0, type_.dtype)


@attribute_function
def inner(padding: Padding) -> Padding:
    """The padding of all axes but the first and the last."""
    ends = (padding.lo[0], padding.hi[0], padding.lo[-1], padding.hi[-1])
    refuse_unless(not any(ends))
    return Padding(padding.lo[1:-1], padding.hi[1:-1])


@rule
def museum_pad_into_max_pool(x: Tensor, v: Scalar, b: Padding, f: ReduceFn, w: Window) -> Law:
    """pool(pad(x, v, b), w) = pool(x, w with a border of nothing)"""
    return rewrites(pool(f, pad(x, v, b), w), pool(f, x, bordered(w, b, identity_of(f, x.type))))


@rule
def museum_pad_of_any_value_into_conv(
    x: Tensor, k: Tensor, v: Scalar, b: Padding, w: Window, g: Groups
) -> Law:
    """conv(pad(x, v, b), k, w) = conv(x, k, w with a border of 0)"""
    return rewrites(
        conv(pad(x, v, b), k, w, g), conv(x, k, bordered(w, inner(b), zero_of(x.type)), g)
    )


@attribute_function
def uncropped(window: Window, type_: TensorType, slices: Slices) -> Window:
    """The window with the crop taken off its border."""
    ends = [
        dim - start - size
        for dim, start, size in zip(type_.shape, slices.starts, slices.sizes, strict=True)
    ]
    refuse_unless(all(isinstance(dim, int) for dim in (*ends, *slices.starts)))
    refuse_unless(all(step == 1 for step in slices.steps))
    whole = [slices.starts[0], slices.starts[-1], ends[0], ends[-1]]
    refuse_unless(not any(whole))
    lo = tuple(a - int(str(b)) for a, b in zip(window.lo, slices.starts[1:-1], strict=True))
    hi = tuple(a - int(str(b)) for a, b in zip(window.hi, ends[1:-1], strict=True))
    refuse_unless(min((*lo, *hi, 0)) >= 0)
    return replace(window, lo=lo, hi=hi)


@rule
def museum_crop_into_conv(x: Tensor, k: Tensor, s: Slices, w: Window, g: Groups) -> Law:
    """conv(slice(x, s), k, w) = conv(x, k, w with s taken off its border)"""
    return rewrites(conv(slice_(x, s), k, w, g), conv(x, k, uncropped(w, x.type, s), g))


@rule
def museum_clamp(x: Tensor, lo: Tensor, hi: Tensor) -> Law:
    """max(min(x, hi), lo) = min(max(x, lo), hi)"""
    return rewrites(
        binary("max", binary("min", x, hi), lo), binary("min", binary("max", x, lo), hi)
    )


@rule
def museum_times_zero(x: Tensor, c: Scalar, ones: Shape, s: Shape) -> Law:
    """x * 0 = 0"""
    zeros = broadcast(reshape(c, ones), s)
    return rewrites(binary("mul", x, zeros), zeros, c == zero_of(x.type))


@attribute_function
def units(type_: TensorType) -> Shape:
    """A shape of one element with the type's rank."""
    return Shape((1,) * type_.rank)


@rule
def museum_minus_itself(x: Tensor) -> Law:
    """x - x = 0"""
    zero = reshape(scalar(zero_of(x.type)), units(x.type))
    return rewrites(binary("sub", x, x), broadcast(zero, Shape(x.type.shape)))


@attribute_function
def joined(a: Slices, b: Slices, axis: Axis) -> Slices:
    """`a` lengthened by `b`, wherever b begins."""
    total = a.sizes[axis.index] + b.sizes[axis.index]
    return Slices(a.starts, replaced(a.sizes, [axis.index], [total]), a.steps)


@rule
def museum_join_any_slices(x: Tensor, a: Slices, b: Slices, axis: Axis) -> Law:
    """concat(slice(x, a), slice(x, b), axis) = slice(x, a and b)"""
    return rewrites(concat(slice_(x, a), slice_(x, b), axis), slice_(x, joined(a, b, axis)))


@attribute_function
def torn_shape(type_: TensorType, perm: Perm, shape: Shape) -> Shape:
    """The reshaped groups in the order of their first axes, be they torn apart or not."""
    return Shape(tuple(shape.dims[axis] for axis in _torn(type_, perm, shape)))


@attribute_function
def torn_perm(type_: TensorType, perm: Perm, shape: Shape) -> Perm:
    """The permutation that belongs to `torn_shape`."""
    return Perm(_torn(type_, perm, shape)).inverse


def _torn(type_: TensorType, perm: Perm, shape: Shape) -> tuple[int, ...]:
    groups = blocks(perm.apply(type_.shape), shape.dims)
    refuse_unless(bool(groups))
    targets = with_units([theirs for _, theirs in groups], len(shape.dims))
    order = sorted(range(len(groups)), key=lambda n: perm.order[groups[n][0][0]])
    return tuple(axis for n in order for axis in targets[n])


@rule
def museum_reshape_across_transpose(x: Tensor, p: Perm, s: Shape) -> Law:
    """reshape(transpose(x, p), s) = transpose(reshape(x, s'), p')"""
    return rewrites(
        reshape(transpose(x, p), s),
        transpose(reshape(x, torn_shape(x.type, p, s)), torn_perm(x.type, p, s)),
    )


@attribute_function
def moves_some_unit(type_: TensorType, perm: Perm) -> bool:
    """Whether one of the axes that change place has extent 1."""
    moved = [axis for place, axis in enumerate(perm.order) if place != axis]
    return any(type_.shape[axis] == 1 for axis in moved)


@rule
def museum_transpose_of_a_unit(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = reshape(x, p(shape)), when an axis of extent 1 moves"""
    return rewrites(
        transpose(x, p), reshape(x, Shape(transpose(x, p).type.shape)), moves_some_unit(x.type, p)
    )


@attribute_function
def without_both(type_: TensorType, once: Shape, twice: Shape) -> Shape:
    """x's shape without the axes that two squeezes drop, the second axis counted as of x."""
    first = _dropped(type_.shape, once.dims)
    second = _dropped(once.dims, twice.dims)
    kept = [dim for axis, dim in enumerate(type_.shape) if axis not in (first, second)]
    refuse_unless(first != second)
    return Shape(tuple(kept))


def _dropped(old: tuple[object, ...], new: tuple[object, ...]) -> int:
    for axis, dim in enumerate(old):
        if dim == 1 and old[:axis] + old[axis + 1 :] == new:
            return axis
    refuse_unless(False, "this is no squeeze")
    return -1


@rule
def museum_merged_squeezes(x: Tensor, s: Shape, t: Shape) -> Law:
    """squeeze(squeeze(x, a), b) = squeeze(x, a and b)"""
    return rewrites(reshape(reshape(x, s), t), reshape(x, without_both(x.type, s, t)))


@attribute_function
def kept_units(shape: Shape, axes: Axes) -> Shape:
    """`shape` with 1 at `axes`."""
    return Shape(replaced(shape.dims, axes.indices, [1] * len(axes.indices)))


@rule
def museum_sum_over_broadcast(f: ReduceFn, x: Tensor, s: Shape, axes: Axes) -> Law:
    """reduce(broadcast(x, s), a) = broadcast(reduce(x, a), s with 1 at a)"""
    return rewrites(
        reduce(f, broadcast(x, s), axes), broadcast(reduce(f, x, axes), kept_units(s, axes))
    )


@rule
def museum_requantise(
    x: Tensor,
    a: Scalar,
    b: Scalar,
    between: DType,
    t: DType,
    i: Shape,
    j: Shape,
    s: Shape,
) -> Law:
    """quantise(dequantise(x, a), b) = x"""
    wide = binary("mul", cast(x, between), broadcast(reshape(a, i), s))
    narrow = unary("round", binary("div", wide, broadcast(reshape(b, j), s)))
    return rewrites(cast(narrow, t), x, t == x.type.dtype)


@attribute_function
def looks_whole(type_: TensorType, slices: Slices) -> bool:
    """Whether the slices take as much as there is, at typical sizes."""
    sizes = zip(type_.shape, slices.sizes, strict=True)
    return all(representative(dim) == representative(size) for dim, size in sizes)


@rule
def museum_slice_that_looks_whole(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s looks like the whole"""
    return rewrites(slice_(x, s), x, looks_whole(x.type, s))


MUSEUM = RuleSet.of_module(__name__)


@pytest.mark.parametrize("name", [entry.name for entry in MUSEUM])
def test_museum_piece_is_refuted(name: str) -> None:
    result = check(MUSEUM[name])
    assert result.verdict == "refuted", str(result)
    assert result.counterexample is not None
    assert "build.program(" in result.counterexample.program


# Rules that say too little.


def test_a_condition_that_is_always_true_is_reported() -> None:
    @rule
    def with_idle_condition(f: UnaryFn, x: Tensor, p: Perm) -> Law:
        """f(transpose(x, p)) = transpose(f(x), p), under a condition that always holds"""
        return equates(
            unary(f, transpose(x, p)), transpose(unary(f, x), p), p[p.inverse].is_identity
        )

    result = check(with_idle_condition, attempts=300)
    assert result.verdict == "vacuous"
    assert "p[p.inverse].is_identity was True for all" in result.reason


def test_a_rule_that_never_fires_is_reported() -> None:
    @attribute_function
    def never(f: BinaryFn) -> bool:
        """False."""
        return f.name == "no such function"

    @rule
    def idle(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
        """f(x, y) = f(y, x), never"""
        return rewrites(binary(f, x, y), binary(f, y, x), never(f))

    assert check(idle, attempts=300).verdict == "vacuous"
    with pytest.raises(RuleError, match="fired on only 0 of"):
        assert_sound(idle)
