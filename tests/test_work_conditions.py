"""Conditions that only keep the e-graph small: no counterexample shows where they are wrong.

Such a law holds without its condition too, so the property test cannot miss it. Each is tried on a
program where the rule has to fire and on one where it has to rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from satura.rewrite.egraph.limits import Limits
from satura.rewrite.egraph.saturate import saturate
from satura.rewrite.language.dsl import RuleSet
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.program import Program
from satura.rewrite.types.tensor_type import DType
from satura.rules import DEFAULT

Made = Callable[[Builder], int]


def tensor(build: Builder, name: str, *shape: int) -> int:
    return build.input(name, DType.F32, shape)


def twice_transposed(*shape: int) -> Made:
    """Both transposes turn the three axes round by one."""
    return lambda b: b.transpose(b.transpose(tensor(b, "x", *shape), [1, 2, 0]), [1, 2, 0])


def transposed(perm: list[int], *shape: int) -> Made:
    return lambda b: b.transpose(tensor(b, "x", *shape), perm)


def reshaped(target: list[int], *shape: int) -> Made:
    """The transpose turns the three axes round by one; then `target` is their shape."""
    return lambda b: b.reshape(b.transpose(tensor(b, "x", *shape), [1, 2, 0]), target)


def merged(perm: list[int], target: list[int]) -> Made:
    return lambda b: b.reshape(b.transpose(tensor(b, "x", 2, 3, 1, 4), perm), target)


def known(*shape: int) -> Made:
    return lambda b: b.constant(np.full(shape, 3, np.float32))


def padded(*shape: int) -> Made:
    return lambda b: b.pad(b.transpose(tensor(b, "x", *shape), [1, 0]), [1, 0], [1, 0])


def sliced(*sizes: int) -> Made:
    """The slice takes `sizes` of 4 × 5, the transpose swaps the axes."""
    return lambda b: b.transpose(b.slice(tensor(b, "x", 4, 5), [0, 0], sizes), [1, 0])


def rows_merged(count: int) -> Made:
    """Some rows of six, each of which is made one axis."""
    return lambda b: b.reshape(
        b.slice(tensor(b, "x", 6, 4, 5), [0] * 3, [count, 4, 5]), [count, 20]
    )


def row_of(rows: int) -> Made:
    """One of some rows of 4 × 5, without its last column, with the other axes swapped."""
    return lambda b: b.transpose(b.slice(tensor(b, "x", rows, 4, 5), [0] * 3, [1, 4, 4]), [0, 2, 1])


def joined(first: tuple[int, int], second: tuple[int, int]) -> Made:
    def make(build: Builder) -> int:
        x, y = tensor(build, "x", *first), tensor(build, "y", *second)
        return build.concat([build.transpose(x, [1, 0]), build.transpose(y, [1, 0])], 1)

    return make


def widened(*shape: int) -> Made:
    def make(build: Builder) -> int:
        turned = build.transpose(tensor(build, "x", *shape), [2, 1, 0])
        return build.broadcast(turned, [4 if n == 1 else n for n in reversed(shape)])

    return make


def regrouped(left: bool, *repeated: int) -> Made:
    """A reshape from 24 × 5 to 4 × 6 × 5, and a broadcast from `repeated` to that."""

    def make(build: Builder) -> int:
        split = build.reshape(tensor(build, "x", 24, 5), [4, 6, 5])
        wide = build.broadcast(tensor(build, "y", *repeated), [4, 6, 5])
        return build.binary("sub", *((split, wide) if left else (wide, split)))

    return make


def widened_pair(first: tuple[int, ...], second: tuple[int, ...]) -> Made:
    def make(build: Builder) -> int:
        wide = (4, 3, 5)
        x, y = tensor(build, "x", *first), tensor(build, "y", *second)
        return build.binary("sub", build.broadcast(x, wide), build.broadcast(y, wide))

    return make


def negated(inner: Callable[[Builder, int], int], *shape: int) -> Made:
    return lambda b: b.unary("neg", inner(b, tensor(b, "x", *shape)))


def turned(build: Builder, x: int) -> int:
    return build.transpose(x, [1, 0])


def padded_with(*values: float) -> Callable[[Builder, int], int]:
    """The pads stand one on the other."""

    def make(build: Builder, x: int) -> int:
        for value in values:
            x = build.pad(x, [1, 0], [1, 0], value)
        return x

    return make


def sum_with_turned(is_turned_back: bool) -> Made:
    def make(build: Builder) -> int:
        x, y = tensor(build, "x", 2, 3), tensor(build, "y", 3, 2)
        total = build.unary("neg", build.binary("add", turned(build, x), y))
        return turned(build, total) if is_turned_back else total

    return make


def widened_constant(dtype: DType) -> Made:
    """A transpose of a constant of some type as i64."""

    def made(b: Builder) -> int:
        return b.transpose(b.cast(b.constant(np.ones((2, 3), dtype.numpy)), DType.I64), (1, 0))

    return made


def centred(dtype: DType, moved: Callable[[Builder, int], int] = turned) -> Made:
    """A movement of integers of some type, as i64 and less 3."""

    def made(b: Builder) -> int:
        three = b.broadcast(b.reshape(b.constant(np.int64(3)), (1, 1)), (2, 3))
        return moved(b, b.binary("sub", b.cast(b.input("x", dtype, (2, 3)), DType.I64), three))

    return made


def summed(axes: tuple[int, ...], *shape: int) -> Made:
    return lambda b: b.reduce("sum", tensor(b, "x", *shape), axes)


def product(rows: int, depth: int, columns: int) -> Made:
    return lambda b: b.matmul(tensor(b, "x", rows, depth), tensor(b, "y", depth, columns))


def flat(b: Builder, x: int) -> int:
    return b.reshape(x, (6,))


def dequantised(dtype: DType) -> Made:
    def make(build: Builder) -> int:
        weights = build.constant(np.arange(6).reshape(2, 3), dtype)
        scale = build.broadcast(build.constant(np.full((1, 3), 0.5, np.float32)), (2, 3))
        return turned(build, build.binary("mul", build.cast(weights, DType.F32), scale))

    return make


# The rule, where it has to fire, and where it has to rest.
CONDITIONS: list[tuple[str, Made, Made]] = [
    ("compose_transposes", twice_transposed(2, 3, 4), twice_transposed(2, 1, 1)),
    ("compose_transposes", twice_transposed(2, 3, 1), twice_transposed(1, 3, 1)),
    ("transpose_of_units", transposed([1, 0], 1, 3), transposed([0, 1], 1, 3)),
    ("units_out_of_transpose", transposed([2, 0, 1], 2, 1, 3), transposed([2, 1, 0], 2, 1, 3)),
    ("units_out_of_transpose", transposed([2, 0, 1], 2, 1, 3), transposed([1, 0, 2], 2, 1, 3)),
    (
        "transpose_past_unary",
        negated(turned, 2, 3),
        negated(lambda b, x: turned(b, turned(b, x)), 2, 3),
    ),
    (
        "transpose_past_unary",
        negated(lambda b, x: turned(b, b.reshape(x, [3, 2])), 2, 3),
        negated(lambda b, x: turned(b, b.reshape(turned(b, x), [2, 3])), 2, 3),
    ),
    ("transpose_out_of_binary_xy", sum_with_turned(True), sum_with_turned(False)),
    ("pad_out_of_unary", negated(padded_with(0), 2, 3), negated(padded_with(0, 0), 2, 3)),
    ("pad_out_of_unary", negated(padded_with(1, 0), 2, 3), negated(padded_with(0, 0), 2, 3)),
    ("transpose_past_reshape", reshaped([12, 2], 2, 3, 4), reshaped([3, 4, 2], 2, 3, 4)),
    ("transpose_past_reshape", reshaped([6, 4], 4, 3, 2), reshaped([3], 1, 3, 1)),
    ("transpose_past_reshape", merged([1, 3, 0, 2], [12, 2]), merged([3, 1, 0, 2], [12, 2])),
    ("constant_of_one_element", known(1, 1), known()),
    ("transpose_past_pad", padded(2, 3), padded(1, 3)),
    ("transpose_past_slice", sliced(2, 5), sliced(1, 5)),
    ("transpose_past_slice", row_of(1), row_of(6)),
    ("reshape_past_slice", rows_merged(2), rows_merged(1)),
    ("transpose_past_concat", joined((2, 3), (2, 3)), joined((1, 3), (1, 3))),
    ("transpose_past_concat", joined((1, 3), (2, 3)), joined((1, 1), (2, 1))),
    ("transpose_out_of_broadcast", widened(2, 3, 1), widened(1, 3, 1)),
    ("reshape_out_of_binary_xy", regrouped(True, 1, 1, 5), regrouped(True, 4, 1, 5)),
    ("reshape_out_of_binary_yx", regrouped(False, 1, 1, 5), regrouped(False, 4, 1, 5)),
    (
        "broadcast_out_of_unlike_binary",
        widened_pair((4, 1, 1), (1, 1, 5)),
        widened_pair((4, 1, 5), (1, 3, 1)),
    ),
    (
        "broadcast_out_of_unlike_binary",
        widened_pair((1, 1, 1), (4, 1, 1)),
        widened_pair((4, 1, 1), (4, 1, 1)),
    ),
    ("transpose_into_dequantised", dequantised(DType.I8), dequantised(DType.I32)),
    ("transpose_into_widened", widened_constant(DType.I8), widened_constant(DType.I32)),
    ("transpose_into_centred", centred(DType.U8), centred(DType.I32)),
    ("reshape_into_dequantised", centred(DType.U8, flat), centred(DType.I32, flat)),
    ("matmul_in_parts", product(1, 2048, 2048), product(1, 2047, 1)),
    ("matmul_in_parts", product(32, 2048, 64), product(32, 2048, 65)),
    ("matmul_in_parts", product(1, 2055, 1), product(1, 2053, 1)),
    ("reduce_in_parts", summed((0,), 4096, 1), summed((0,), 4095, 1)),
    ("reduce_in_parts", summed((0, 1), 512, 8), summed((0, 1), 511, 9)),
    ("reduce_in_parts", summed((1,), 8, 4096), summed((1,), 9, 4096)),
    ("reduce_in_parts", summed((0,), 4097, 1), summed((0,), 4099, 1)),
]


def made_by(name: str, made: Made) -> int:
    """How many e-nodes the rule makes of a program in its first round."""
    builder = Builder()
    program: Program = builder.program({"y": made(builder)})
    saturation = saturate(program, RuleSet(DEFAULT[name]), Limits(rounds=1))
    return sum(direction.new_nodes for direction in saturation.report.rules)


@pytest.mark.parametrize(
    ("name", "fires", "rests"),
    [
        pytest.param(*each, id=each[0], marks=pytest.mark.deep if place % 2 else ())
        for place, each in enumerate(CONDITIONS)
    ],
)
def test_a_rule_works_where_it_pays(name: str, fires: Made, rests: Made) -> None:
    assert made_by(name, fires) > 0, f"{name} does not fire where it should"
    assert made_by(name, rests) == 0, f"{name} fires where it only makes work"
