"""Rules that misbehave, for tests: in their computations, in what they make, or how much of it."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
from collections.abc import Callable

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
from satura.rewrite.types.attributes import (
    Perm,
    Shape,
    UnaryFn,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import TensorType

# Attribute functions that misbehave.


@attribute_function
def loops(p: Perm) -> Perm:
    """never returns"""
    while True:
        pass


@attribute_function
def blocks(p: Perm) -> Perm:
    """holds the interpreter for a minute"""
    ctypes.PyDLL(None).sleep(60)
    return p


@attribute_function
def divides(p: Perm) -> Perm:
    """raises"""
    return Perm((1 // 0,))


@attribute_function
def talks(p: Perm) -> Perm:
    """raises with a megabyte of text"""
    raise ValueError("blah " * 200_000)


@attribute_function
def recurses(p: Perm) -> Perm:
    """calls itself"""
    again: Perm = recurses(p)
    return again


@attribute_function
def exits(p: Perm) -> Perm:
    """leaves Python"""
    sys.exit("leaving")


@attribute_function
def interrupts(p: Perm) -> Perm:
    """as if by Ctrl-C"""
    raise KeyboardInterrupt


@attribute_function
def ends_the_process(p: Perm) -> Perm:
    """leaves without a word"""
    os._exit(0)


@attribute_function
def crashes(p: Perm) -> Perm:
    """reads address 0"""
    faulthandler.disable()
    ctypes.string_at(0)
    return p


@attribute_function
def takes_all_memory(p: Perm) -> Perm:
    """asks for 256 TiB"""
    np.ones(1 << 45)
    return p


class _Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError


@attribute_function
def raises_without_words(p: Perm) -> Perm:
    """raises what cannot be printed"""
    raise _Wordless


@attribute_function
def of_another_class(p: Perm) -> Perm:
    """is not a permutation"""
    return Shape((1, 0))  # type: ignore[return-value]


class _Disguise(Perm):
    pass


@attribute_function
def disguised(p: Perm) -> Perm:
    """is of a class of its own"""
    return _Disguise(p.order)


@attribute_function
def mutable(p: Perm) -> Perm:
    """holds a list"""
    return Perm([1, 0])  # type: ignore[arg-type]


@attribute_function
def strange(p: Perm) -> Perm:
    """holds an object"""
    return Perm((object(), object()))  # type: ignore[arg-type]


@attribute_function
def of_bools(p: Perm) -> Perm:
    """holds what would do as a number"""
    return Perm((True, False))


@attribute_function
def no_permutation(p: Perm) -> Perm:
    """names an axis that does not exist"""
    return Perm((7, 7))


@attribute_function
def changes_its_argument(p: Perm) -> Perm:
    """writes to a frozen value"""
    object.__setattr__(p, "order", (0, 1))
    return p


@attribute_function
def changes_the_world(p: Perm) -> Perm:
    """replaces a method for everybody"""
    Perm.__getitem__ = loops  # type: ignore[method-assign,assignment]
    Perm.inverse = property(divides)  # type: ignore[assignment]
    raise ValueError("the world is changed")


@attribute_function
def prints(p: Perm) -> Perm:
    """prints"""
    print("something on stdout")
    return p


def misuse(function: Callable[[Perm], Perm]) -> Rule:
    """A rule that computes a permutation by `function`."""

    def misused(x: Tensor, p: Perm) -> Law:
        """transpose(x, p) = transpose(x, function(p))"""
        return rewrites(transpose(x, p), transpose(x, function(p)))

    misused.__name__ = f"rule_{function.__name__}"
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


@attribute_function
def astronomical(t: TensorType) -> Shape:
    """10^30 elements"""
    return Shape((10**30, *t.shape[1:]))


@attribute_function
def beyond_memory(t: TensorType) -> Shape:
    """2^50 elements"""
    return Shape((1 << 50, *t.shape[1:]))


@attribute_function
def negative(t: TensorType) -> Shape:
    """less than none"""
    return Shape((-4, -4))


def swell(function: Callable[[TensorType], Shape]) -> Rule:
    """A rule that reshapes to an absurd shape and back."""

    def swollen(x: Tensor, f: UnaryFn) -> Law:
        """f(x) = f(x reshaped there and back)"""
        there = reshape(x, function(x.type))
        return rewrites(unary(f, x), unary(f, reshape(there, Shape(x.type.shape))))

    swollen.__name__ = f"rule_{function.__name__}"
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
