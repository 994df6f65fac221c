"""ConvInteger whose input has another zero point in each call: integers, exactly, as octets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import satura
from satura.backend.contraction.tile import Products
from satura.backend.target import host_target
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType
from tests.onnx_models import Typed, make_model, node
from tests.test_octets import drawn, readings_found
from tests.tiers import deep_but

U8, I8 = DType.U8, DType.I8
TYPES = {U8: TensorProto.UINT8, I8: TensorProto.INT8}
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A convolution of images of some rank, all of its axes alike, and zero points of weights."""

    rank: int = 2
    dtypes: tuple[DType, DType] = (U8, U8)
    zero: int | tuple[int, ...] = 128
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    border: tuple[int, int] = (1, 1)
    groups: int = 1
    depth: int = 8
    columns: int = 6

    def each(self, value: T) -> list[T]:
        return [value] * self.rank

    def model(self) -> onnx.ModelProto:
        left, right = self.dtypes
        shape = (self.columns * self.groups, self.depth, *self.each(self.kernel))
        weights: dict[str, object] = {
            "w": drawn(right, shape, 1), "wz": np.array(self.zero, right.numpy),
        }  # fmt: skip
        attributes: dict[str, object] = {
            "strides": self.each(self.stride), "dilations": self.each(self.dilation),
            "pads": [end for end in self.border for _ in range(self.rank)], "group": self.groups,
        }  # fmt: skip
        inputs = {"x": Typed(self.shape, TYPES[left]), "z": Typed((), TYPES[left])}
        return make_model([node("ConvInteger", "x w z wz", "y", **attributes)], inputs, weights, 13)

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.depth * self.groups, *(7 + axis for axis in range(self.rank)))

    def calls(self) -> list[dict[str, Array]]:
        dtype = self.dtypes[0]
        x = drawn(dtype, self.shape, 2)
        return [{"x": x, "z": np.array(z, dtype.numpy)} for z in (*dtype.bounds, 0, 77)]


CASES = [
    Case(),
    Case(1, (U8, I8), 0, stride=2),
    Case(3, (I8, U8), 131, kernel=2, border=(0, 1)),
    Case(zero=117, dilation=2, border=(2, 1)),
    Case(zero=(3, 0, 255, 128, 127, 9), border=(0, 0)),
    Case(dtypes=(I8, I8), zero=-7, groups=3, stride=3, border=(2, 2)),
    Case(kernel=1, border=(0, 0)),
    Case(dtypes=(U8, I8), zero=5, kernel=1, border=(1, 0), stride=2),
    Case(zero=121, depth=1, columns=1, groups=6),
]


@pytest.mark.parametrize("case", CASES)
def test_no_zero_point_is_subtracted_before_products(case: Case) -> None:
    program = satura.load(case.model())
    optimised = satura.optimize(program)
    for given in case.calls():
        meant = interpret(program, given)["y"]
        np.testing.assert_array_equal(interpret(optimised, given)["y"], meant)
    if case.depth > 1:  # a window of one channel sums few products
        (sums,) = (each for each in optimised.nodes if each.op.name == "conv")
        window = sums.attributes[0]
        assert isinstance(window, Window) and not window.has_border
        assert optimised.nodes[sums.operands[0]].op.name == "cast"


@pytest.mark.parametrize("case", deep_but(CASES[:1], CASES))
def test_sums_are_the_interpreters(case: Case) -> None:
    program = satura.load(case.model())
    with readings_found() as found:
        compiled = satura.compile(program, threads=1)
    for given in case.calls():
        meant = interpret(program, given)["y"]
        np.testing.assert_array_equal(compiled.run(given)["y"], meant)
    assert case.depth == 1 or (len(found) == 1 and found[0] is not None)


def product_of(zero: int) -> onnx.ModelProto:
    weights: dict[str, object] = {"w": drawn(U8, (96, 128), 1), "wz": np.array(zero, np.uint8)}
    inputs = {"x": Typed((4, 100, 96), TensorProto.UINT8), "z": Typed((), TensorProto.UINT8)}
    return make_model([node("MatMulInteger", "x w z wz", "y")], inputs, weights, 13)


LARGE = [
    Case(zero=117, depth=64, columns=64).model(),
    Case(zero=0, depth=64, columns=96, dilation=2, border=(2, 1)).model(),
    product_of(139),
    product_of(0),
]


@pytest.mark.parametrize("model", deep_but(LARGE[2:3], LARGE))
def test_weights_that_are_not_i8_are_shifted(model: onnx.ModelProto) -> None:
    """Where that pays: sums of what they are multiplied by stand beside the products then."""
    program = satura.load(model)
    with readings_found() as found:
        compiled = satura.compile(program, threads=1)
    shape = program.nodes[program.inputs[0]].type.shape
    given = {"x": drawn(U8, tuple(map(static, shape)), 2), "z": np.array(77, np.uint8)}
    np.testing.assert_array_equal(compiled.run(given)["y"], interpret(program, given)["y"])
    (reading,) = found
    assert reading is not None and isinstance(reading.weights, np.ndarray)
    assert reading.weights.min() == -128 and reading.weights.max() <= 127
    assert reading.products is not Products.PAIRS or not host_target().sums_four_products
