"""What attribute functions compute is made plain before anyone else meets it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pytest

import satura
from satura.rewrite.check.refute import refutation
from satura.rewrite.language.dsl import Law, RuleSet, Tensor, attribute_function, rewrites, rule
from satura.rewrite.language.terms import reshape, unary
from satura.rewrite.program.builder import Builder
from satura.rewrite.types.attributes import Perm, Shape, UnaryFn, UserAttribute
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Quotient, SymbolicDim, static, symbol
from satura.rewrite.types.plain import as_plain
from satura.rewrite.types.tensor_type import DType, TensorType
from tests.tiers import deep_but


class _Sly(int):
    """An int that would run code wherever it is compared or sent."""

    def __eq__(self, other: object) -> bool:
        os._exit(7)

    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (9,))

    def __hash__(self) -> int:
        return 0


class _SlyTuple(tuple[int, ...]):
    def __iter__(self) -> NoReturn:
        os._exit(11)


@pytest.mark.parametrize(
    "order",  # made late: pytest compares
    [
        lambda: (_Sly(1), _Sly(0)),
        lambda: _SlyTuple((1, 0)),
        lambda: tuple(np.array([1, 0])),
        lambda: (np.uint8(1), np.int64(0)),
    ],
    ids=["ints", "tuple", "numpy", "numpy, mixed"],
)
def test_values_are_plain_before_anyone_meets_them(order: Callable[[], tuple[int, ...]]) -> None:
    made = as_plain(Perm(order()))
    assert type(made.order) is tuple and [type(axis) for axis in made.order] == [int, int]
    assert made == Perm((1, 0))


def test_plain_values_stay_what_they_are() -> None:
    n = symbol("n")
    shapes = (Shape((2, n + 1)), Shape((n // 2, n * (n // (n + 1)))))
    for value in (Perm((1, 0)), *shapes, Scalar.of(-0.0, DType.F32), DType.I8):
        assert as_plain(value) is value
    with pytest.raises(TypeError, match="the list"):
        as_plain(Shape(([1],)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Mixed(UserAttribute):
    scale: float
    flag: bool
    steps: tuple[float, ...] = ()


def test_attributes_of_users_may_hold_floats_and_bools() -> None:
    value = _Mixed(0.5, True, (1.5,))
    assert as_plain(value) is value
    made = as_plain(_Mixed(np.float32(0.5), np.bool_(True), (np.float64(1.5),)))  # type: ignore
    assert made == value and [type(part) for part in (made.scale, made.flag)] == [float, bool]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Perm((True, False)), "the bool True cannot stand"),
        (Shape((2.0,)), "the float 2.0 cannot stand"),  # type: ignore[arg-type]
        (Shape((-(1 << 61),)), "the number -2305843009213693952 is out of all bounds"),
        (Shape((np.uint64(1 << 63),)), "the number 9223372036854775808 is out"),  # type: ignore
        (Scalar(DType.F32, b"a"), "a f32 has 4 bytes, not 1"),
        (TensorType(DType.F32, (2, -4)), "an extent is negative"),
        (TensorType(DType.F32, (1 << 30, 1 << 30)), r"there is no .*: it is out of all bounds"),
    ],
    ids=["bool", "float", "number", "numpy's number", "bits", "extent", "size"],
)
def test_what_cannot_be_an_attribute_or_a_type_is_refused(value: object, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        as_plain(value)


@pytest.mark.parametrize("stride", deep_but([2], [2, 3]))
@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)], ids=str)
def test_rules_compute_on_extents_with_floor_divisions(order: tuple[int, ...], stride: int) -> None:
    build = Builder()
    x = build.input("x", DType.F32, (symbol("n"), 1, 4))
    window = build.window(DType.F32, (3, 1, 1), (stride, 1, 1))
    moved = build.transpose(build.pool("max", x, window), order)
    program = build.program({"y": build.unary("relu", moved)})
    found = satura.optimize(program)
    for n in (3, 8):
        value = {"x": np.arange(-2 * n, 2 * n, dtype=np.float32).reshape(n, 1, 4)}
        expected = satura.interpret(program, value)["y"]
        np.testing.assert_array_equal(satura.interpret(found, value)["y"], expected)


def test_numpy_integers_of_a_quotient_are_made_plain() -> None:
    quotient = Quotient(symbol("n"), np.int64(2))  # type: ignore[arg-type]
    made = as_plain(Shape((SymbolicDim((((quotient,), 1),)),)))
    assert made == Shape((symbol("n") // 2,))
    (dim,) = made.dims
    assert isinstance(dim, SymbolicDim)
    (((atom,), _),) = dim.terms
    assert isinstance(atom, Quotient) and type(atom.denominator) is int


@pytest.mark.deep
def test_numpy_integers_may_stand_in_what_a_rule_computes() -> None:
    @attribute_function
    def flat(type_: TensorType) -> Shape:
        """All elements along one axis."""
        size: int = np.prod(list(map(static, type_.shape)), dtype=np.int64)  # type: ignore
        return Shape((size,))

    @attribute_function
    def is_concrete(type_: TensorType) -> bool:
        """Whether the type has no symbolic sizes."""
        return not type_.symbols

    @rule
    def flat_unary(f: UnaryFn, x: Tensor) -> Law:
        """f(x) = f(x, flat), in the shape of x"""
        shaped = reshape(unary(f, reshape(x, flat(x.type))), Shape(x.type.shape))
        return rewrites(unary(f, x), shaped, is_concrete(x.type))

    assert refutation(flat_unary, attempts=100) is None
    build = Builder()
    x = build.input("x", DType.F32, (2, 3))
    program = build.program({"y": build.unary("neg", x)})
    found = satura.optimize(program, rules=RuleSet(flat_unary), strict=True)
    value = np.array([[1, 2, 3], [-4, 0, -6]], np.float32)
    np.testing.assert_array_equal(satura.interpret(found, {"x": value})["y"], -value)
