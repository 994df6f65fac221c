"""Rules that misbehave, for tests: in their computations, in what they make, or how much of it."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
from collections.abc import Callable
from typing import NoReturn, cast

import numpy as np

from satura.rewrite.language.dsl import Law, Tensor, attribute_function, equates, rewrites, rule
from satura.rewrite.language.rule import Rule
from satura.rewrite.language.terms import (
    binary,
    broadcast,
    constant,
    pool,
    reshape,
    scalar,
    transpose,
    unary,
)
from satura.rewrite.types.attributes import Perm, Shape, UnaryFn, Window
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import TensorType

# Functions that misbehave where a rule computes a permutation.


def fail(error: BaseException) -> NoReturn:
    raise error


def loops(p: Perm) -> NoReturn:
    while True:
        pass


def recurses(p: Perm) -> Perm:
    return recurses(p)


def crashes(p: Perm) -> object:
    """Reads address 0, of which nobody needs to hear."""
    faulthandler.disable()
    return ctypes.string_at(0)


class _Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError


class _Disguise(Perm):
    pass


def changes_the_world(p: Perm) -> NoReturn:
    """Replaces methods for everybody."""
    Perm.__getitem__ = loops  # type: ignore[method-assign,assignment]
    Perm.inverse = property(loops)  # type: ignore[assignment]
    raise ValueError("the world is changed")


MISUSES: dict[str, tuple[Callable[[Perm], object], str]] = {
    "divides": (lambda p: 1 // 0, "ZeroDivisionError: .* for p = "),
    "talks": (lambda p: fail(ValueError("blah " * 200_000)), "ValueError: (blah ){150,200}"),
    "recurses": (recurses, "RecursionError: .* for p = "),
    "exits": (lambda p: sys.exit("leaving"), "SystemExit: leaving, raised in .* for p = "),
    "interrupts": (lambda p: fail(KeyboardInterrupt()), "it raised KeyboardInterrupt"),
    "ends_the_process": (lambda p: os._exit(0), r"it ended its process \(exit status 0\)"),
    "crashes": (crashes, r"it ended its process \(signal SIGSEGV\)"),
    "takes_all_memory": (lambda p: np.ones(1 << 45), "MemoryError"),
    "raises_without_words": (lambda p: fail(_Wordless()), "it raised ValueError"),
    "of_another_class": (lambda p: Shape((1, 0)), "declared to return Perm, and returned Shape"),
    "disguised": (lambda p: _Disguise(p.order), "must be a Perm, not a _Disguise"),
    "mutable": (lambda p: Perm([1, 0]),  # type: ignore[arg-type]
                "the list .* cannot stand in an attribute"),
    "strange": (lambda p: Perm((object(), object())),  # type: ignore[arg-type]
                "the object .* cannot stand in an attribute"),
    "of_bools": (lambda p: Perm((True, False)), "the bool True cannot stand in an attribute"),
    "no_permutation": (lambda p: Perm((7, 7)), "it is unsound: .*does not permute"),
    "changes_its_argument": (
        lambda p: object.__setattr__(p, "order", (0, 1)) or p,  # type: ignore[func-returns-value]
        "it changed its arguments",
    ),
    "changes_the_world": (changes_the_world, "the world is changed"),
    "loops": (loops, "it took too long"),
    "blocks": (lambda p: ctypes.PyDLL(None).sleep(60) and p, "it took too long"),
    "prints": (lambda p: print("something on stdout") or p, ""),
}  # fmt: skip
"""What a rule may do in place of computing a permutation, and the reason that is given for it."""


def misuse(name: str) -> Rule:
    """A rule that computes a permutation by a function of MISUSES."""

    @attribute_function
    def computed(p: Perm) -> Perm:
        return cast(Perm, MISUSES[name][0](p))

    def misused(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = transpose(x, computed(p))"""
        return rewrites(transpose(x, p), transpose(x, computed(p)))

    misused.__name__ = f"rule_{name}"
    return rule(misused)


# Rules that make too much, or the wrong thing.


@attribute_function
def zero_of(t: TensorType) -> Scalar:
    """0 of the element type"""
    return Scalar.of(0, t.dtype)


@attribute_function
def ones_of(t: TensorType) -> Shape:
    """a shape of one element"""
    return Shape((1,) * t.rank)


@rule
def add_nothing(f: UnaryFn, x: Tensor) -> Law:
    """f(x) = f(x + 0), again and again"""
    zeros = broadcast(reshape(scalar(zero_of(x.type)), ones_of(x.type)), Shape(x.type.shape))
    return rewrites(unary(f, x), unary(f, binary("add", x, zeros)))


@attribute_function
def with_one_more_axis(shape: Shape) -> Shape:
    """one more extent of 1"""
    return Shape((*shape.dims, 1))


@rule
def reshape_twice(x: Tensor, s: Shape) -> Law:
    """reshape(x, s) = reshape(reshape(x, s + [1]), s): each match makes two more"""
    return rewrites(reshape(x, s), reshape(reshape(x, with_one_more_axis(s)), s))


@rule
def reshape_again(x: Tensor, s: Shape) -> Law:
    """reshape(x, s) = reshape(reshape(reshape(x, s + [1]), s + [1, 1]), s): three more"""
    longer = with_one_more_axis(s)
    there = reshape(reshape(x, longer), with_one_more_axis(longer))
    return rewrites(reshape(x, s), reshape(there, s))


@rule
def commute(x: Tensor, y: Tensor) -> Law:
    """x + y = y + x"""
    return rewrites(binary("add", x, y), binary("add", y, x))


@rule
def associate(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) + z = x + (y + z)"""
    return equates(binary("add", binary("add", x, y), z), binary("add", x, binary("add", y, z)))


@rule
def associate_alike(x: Tensor, y: Tensor, z: Tensor) -> Law:
    """(x + y) + z = x + (y + z), for tensors of one rank"""
    left = binary("add", binary("add", x, y), z)
    return rewrites(left, binary("add", x, binary("add", y, z)), x.type.rank == z.type.rank)


@rule
def negate_twice(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = -transpose(-x, p), which is right"""
    return rewrites(transpose(x, p), unary("neg", transpose(unary("neg", x), p)))


@rule
def drop_transpose(x: Tensor, p: Perm) -> Law:
    """transpose(x, p) = x, which is wrong"""
    return rewrites(transpose(x, p), x)


@rule
def drop_reshape(x: Tensor, s: Shape) -> Law:
    """reshape(x, s) = x, which is wrong, and badly typed"""
    return rewrites(reshape(x, s), x)


SWOLLEN: dict[str, tuple[Callable[[TensorType], Shape], str]] = {
    "astronomical": (
        lambda t: Shape((10**30, *t.shape[1:])), "the number 1000.* is out of all bounds"
    ),
    "beyond_memory": (
        lambda t: Shape((1 << 50, *t.shape[1:])), "it is unsound: .* has 16 elements"
    ),
    "negative": (lambda t: Shape((-4, -4)), "it is unsound: .*an extent is negative"),
}  # fmt: skip
"""Absurd shapes, and the reasons that are given for them."""


def swell(name: str) -> Rule:
    """A rule that reshapes to an absurd shape and back."""

    @attribute_function
    def absurd(t: TensorType) -> Shape:
        return SWOLLEN[name][0](t)

    def swollen(x: Tensor, f: UnaryFn) -> Law:
        """f(x) = f(x reshaped there and back)"""
        there = reshape(x, absurd(x.type))
        return rewrites(unary(f, x), unary(f, reshape(there, Shape(x.type.shape))))

    swollen.__name__ = f"rule_{name}"
    return rule(swollen)


@attribute_function
def short_scalar(t: TensorType) -> Scalar:
    """too few bits"""
    return Scalar(t.dtype, b"a")


@attribute_function
def large_constant(t: TensorType) -> Constant:
    """72 MB"""
    return Constant(np.zeros(18_000_000, np.float32))


@rule
def add_large(f: UnaryFn, x: Tensor) -> Law:
    """f(x) = f of the reshaped first part of (x, many zeros), cut short"""
    return rewrites(
        unary(f, x), unary(f, reshape(constant(large_constant(x.type)), ones_of(x.type)))
    )


@attribute_function
def standing_still(t: TensorType) -> Window:
    """a stride of 0"""
    ones, zeros = (1,) * t.rank, (0,) * t.rank
    return Window(ones, zeros, ones, zeros, zeros, Scalar.of(0, t.dtype))


@rule
def narrow(f: UnaryFn, x: Tensor) -> Law:
    """f(x) = f(max over windows of one element of x, which do not move)"""
    return rewrites(unary(f, x), unary(f, pool("max", x, standing_still(x.type))))


@attribute_function
def overwritten(c: Constant) -> Constant:
    """writes to a constant"""
    array = c.array.copy()
    array[:] = 7
    c.kept = array
    c.array.flags.writeable = False
    return c


@rule
def change_weights(c: Constant) -> Law:
    """c = c, after writing to it"""
    return rewrites(constant(c), constant(overwritten(c)))


@rule
def read_short_scalar(f: UnaryFn, x: Tensor) -> Law:
    """f(x) = f(x + a scalar of one byte)"""
    short = broadcast(reshape(scalar(short_scalar(x.type)), ones_of(x.type)), Shape(x.type.shape))
    return rewrites(unary(f, x), unary(f, binary("add", x, short)))


NAMES = ("neg", "abs", "relu", "floor", "ceil", "round", "sign", "exp")


def spread(number: int) -> Rule:
    """A rule that makes all unary functions the same."""

    def spread_to(f: UnaryFn, x: Tensor) -> Law:
        """f(x) = another function of x, which is wrong"""
        return rewrites(unary(f, x), unary(NAMES[number], x))

    spread_to.__name__ = f"spread_to_{NAMES[number]}"
    return rule(spread_to)


@rule
def reverse(
    a: UnaryFn, b: UnaryFn, c: UnaryFn, d: UnaryFn,
    e: UnaryFn, f: UnaryFn, g: UnaryFn, h: UnaryFn, x: Tensor,
) -> Law:  # fmt: skip
    """eight functions in the other order, which is wrong"""
    fourth = unary(e, unary(f, unary(g, unary(h, x))))
    back = unary(d, unary(c, unary(b, unary(a, x))))
    return rewrites(
        unary(a, unary(b, unary(c, unary(d, fourth)))), unary(h, unary(g, unary(f, unary(e, back))))
    )
