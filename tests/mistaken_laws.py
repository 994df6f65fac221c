"""Laws that are wrong, that change or raise something, and the reports of their checks."""

from __future__ import annotations

import functools

from satura.rewrite.language.dsl import Law, Rule, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import binary, broadcast, pad, slice_, transpose
from satura.rewrite.types.attributes import Padding, Perm, Shape, Slices, refuse_unless
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import TensorType
from satura.rewrite.types.typical import representative
from satura.testing import RuleReport, check
from tests.museum import minus_itself


@rule
def swap(x: Tensor, p: Perm, q: Perm) -> Law:
    """transpose(transpose(x, p), q) = transpose(x, q then p): the wrong way round"""
    return rewrites(transpose(transpose(x, p), q), transpose(x, q[p]))


@attribute_function
def seems_whole(type_: TensorType, slices: Slices) -> bool:
    """Whether every axis is whole at typical sizes, and read in order."""
    axes = zip(type_.shape, slices.starts, slices.sizes, slices.steps, strict=True)
    return all(
        start == 0 and step == 1 and representative(dim) == representative(size)
        for dim, start, size, step in axes
    )


@rule
def drop_slice_that_seems_whole(x: Tensor, s: Slices) -> Law:
    """slice(x, s) = x, when s seems whole"""
    return rewrites(slice_(x, s), x, seems_whole(x.type, s))


@attribute_function
def wider(padding: Padding) -> Padding:
    """One element more."""
    refuse_unless(bool(padding.lo), "there is no axis")
    return Padding((padding.lo[0] + 1, *padding.lo[1:]), padding.hi)


@rule
def widen(x: Tensor, v: Scalar, b: Padding) -> Law:
    """pad(x, v, b) = pad(x, v, b and one more)"""
    return rewrites(pad(x, v, b), pad(x, v, wider(b)))


@attribute_function
def slices_of(p: Perm) -> Slices:
    """Slices that reach outside."""
    return Slices(p.order, (1,) * len(p.order), (1,) * len(p.order))


@rule
def shift_axes(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = slice(x, p): no such thing"""
    return rewrites(transpose(x, p), slice_(x, slices_of(p)))


@rule(reassociates=True)
def drop_a_term(x: Tensor, y: Tensor) -> Law:
    """(x + y) + y = x + y"""
    return rewrites(binary("add", binary("add", x, y), y), binary("add", x, y))


@attribute_function
def out_of_range(p: Perm) -> Perm:
    """Raise IndexError."""
    return Perm((p.order[9],))


@rule
def careless(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, …)"""
    return rewrites(transpose(x, p), transpose(x, out_of_range(p)))


@attribute_function
def sorted_in_place(p: Perm) -> Perm:
    """Changes its argument."""
    object.__setattr__(p, "order", tuple(sorted(p.order)))
    return p


@rule
def meddle(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x, after p was changed"""
    return rewrites(transpose(x, p), transpose(x, sorted_in_place(p)))


CALLS: list[Perm] = []


@attribute_function
def alternating(p: Perm) -> Perm:
    """Answers p, and every fourth time its inverse."""
    CALLS.append(p)
    return p.inverse if len(CALLS) % 4 == 0 else p


@rule
def moody(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, p), mostly"""
    return rewrites(transpose(x, p), transpose(x, alternating(p)))


@attribute_function
def no_perm(p: Perm) -> Perm:
    """A Perm of what is not an axis."""
    return Perm((["a"], 0.5))  # type: ignore[arg-type]


@rule
def garble(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = transpose(x, nonsense)"""
    return rewrites(transpose(x, p), transpose(x, no_perm(p)))


@attribute_function
def enormous(shape: Shape) -> Shape:
    """More elements than any machine holds."""
    refuse_unless(bool(shape.dims), "there is no axis")
    return Shape((10**15, *shape.dims[1:]))


@attribute_function
def first_of(shape: Shape) -> Slices:
    """The first elements."""
    rank = len(shape.dims)
    return Slices((0,) * rank, shape.dims, (1,) * rank)


@rule
def swell(x: Tensor, s: Shape) -> Law:
    """broadcast(x, s) = a part of something enormous"""
    whole = broadcast(x, enormous(s))
    return rewrites(broadcast(x, s), slice_(whole, first_of(s)))


@functools.cache
def report_of(entry: Rule) -> RuleReport:
    """The report with all defaults."""
    return check(entry)


WRONG = [swap, minus_itself, drop_slice_that_seems_whole, widen, shift_axes, drop_a_term]
BROKEN = [meddle, moody, swell]
RAISING = [careless, garble]


def name_of(entry: object) -> str:
    return str(getattr(entry, "name", entry))


SLOW = (swap, shift_axes, drop_slice_that_seems_whole)  # to shrink
QUICK = [wrong for wrong in WRONG if wrong not in SLOW]
