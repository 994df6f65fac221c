"""Contractions of integers from 8 bits against the interpreter, and quantised models as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

import satura
from benchmarks.models.quantized import quantize
from satura.backend.contraction import call, readings
from satura.backend.contraction.packing import pack_products
from satura.backend.contraction.readings import Reading
from satura.backend.contraction.sorted_words import fits_halves
from satura.backend.contraction.tile import Products
from satura.backend.target import host_target
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Node, Program
from satura.rewrite.types.attributes import UnaryFn
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import Array, DType
from satura.rules import DEFAULT
from tests.onnx_models import Typed, make_model, node
from tests.random_programs import compare
from tests.test_kernels import computed, special_values
from tests.tiers import deep_but
from tests.trivial_scheduler import one_dispatch

SUMS = DEFAULT.without("matmul_of_one_term")  # also of one product


def drawn(dtype: DType, shape: tuple[int, ...], seed: int) -> Array:
    """All values, the extremes often."""
    random = np.random.default_rng(seed)
    least, most = map(int, dtype.bounds)
    values = random.integers(least, most + 1, shape)
    extremes = random.choice([least, most], shape)
    return np.where(random.random(shape) < 0.3, extremes, values).astype(dtype.numpy)


def widened(build: Builder, x: int, zero: int, shape: tuple[int, ...], wide: DType) -> int:
    """x less its zero point, as i32 or i64."""
    spread = build.broadcast(build.constant(np.full((1,) * len(shape), zero), DType.I16), shape)
    return build.cast(build.binary("sub", build.cast(x, DType.I16), spread), wide)


def near_the_bound(shape: tuple[int, ...], largest: int) -> Array:
    """±`largest`, and here and there one more: two of 64 and 255 fit an i16, 64 and 65 do not."""
    random = np.random.default_rng(largest)
    magnitudes = largest + (random.random(shape) < 0.01)
    signs = np.where(random.random(shape) < 0.5, -1, 1)
    return np.asarray(signs * magnitudes, np.int8)


@dataclass(frozen=True)
class Case:
    """A convolution or, without a kernel, a matmul; its dtypes, zero points and sizes."""

    dtypes: tuple[DType, DType]
    zeros: tuple[int, int]
    depth: int
    columns: int
    kernel: int = 0
    stride: int = 1
    border: int = 0
    dilation: int = 1
    groups: int = 1
    fill: int = 0
    wide: DType = DType.I32
    varies: bool = False  # the right operand, too
    size: int = 9
    largest: int = 0  # magnitude of nearly all weights; 0: any

    def program(self) -> Program:
        build = Builder()
        (left, right), (first, second) = self.dtypes, self.zeros
        size, depth = self.size, self.depth
        shape: tuple[int, ...]
        weights: tuple[int, ...]
        if not self.kernel:
            shape, weights = (2, size, depth), (2, depth, self.columns)
        else:
            shape = (2, size, size + 2, depth * self.groups)
            weights = (self.kernel, self.kernel, depth, self.columns * self.groups)
        x = widened(build, build.input("x", left, shape), first, shape, self.wide)
        given = drawn(right, weights, self.depth)
        if self.largest:
            given = near_the_bound(weights, self.largest)
        w = build.input("w", right, weights) if self.varies else build.constant(given)
        w = widened(build, w, second, weights, self.wide)
        if not self.kernel:
            return build.program({"y": build.matmul(x, w)})
        window = build.window(
            self.wide, (self.kernel,) * 2, (self.stride,) * 2, (self.dilation,) * 2,
            (self.border,) * 2, (self.border,) * 2, self.fill,
        )  # fmt: skip
        return build.program({"y": build.conv(x, w, window, self.groups)})


U8, I8 = DType.U8, DType.I8
CASES = [
    Case((U8, I8), (3, 0), 16, 70, 3, border=1),
    Case((U8, I8), (250, 0), 5, 7, 3, stride=2, border=1),
    Case((I8, I8), (-3, 0), 8, 64, 1, wide=DType.I64),
    Case((U8, U8), (0, 128), 12, 20, 3, border=2, dilation=2),
    Case((I8, U8), (-128, 255), 3, 33, 5, stride=3, border=2),
    Case((U8, I8), (128, 0), 4, 12, 3, border=1, groups=3),
    Case((U8, I8), (7, 0), 1, 1, 3, border=1, groups=6),
    Case((U8, I8), (9, 0), 70, 65, 1, fill=40, border=1),
    Case((U8, I8), (9, 0), 8, 5, 2, fill=400, border=1),
    Case((U8, I8), (0, 0), 1, 1, wide=DType.I64),
    Case((U8, I8), (255, 0), 63, 130),
    Case((I8, I8), (5, 0), 64, 16, wide=DType.I64),
    Case((U8, I8), (17, 3), 31, 40, varies=True),
    Case((I8, U8), (-9, 130), 32, 17, varies=True),
]


@contextmanager
def readings_found() -> Iterator[list[Reading | None]]:
    """How the contractions that are compiled meanwhile are read."""
    found: list[Reading | None] = []

    def remembered(schedule: Schedule, dispatch: Dispatch, node: Node) -> Reading | None:
        found.append(readings.reading_of(schedule, dispatch, node))
        return found[-1]

    with patch.object(call, "reading_of", remembered):
        yield found


def check(case: Case) -> None:
    program = case.program()
    inputs = {
        node.input_name: drawn(node.type.dtype, tuple(map(static, node.type.shape)), 3)
        for node in (program.nodes[at] for at in program.inputs)
    }
    with readings_found() as found:
        result = satura.compile(program, threads=2, rules=SUMS)(**inputs)
    np.testing.assert_array_equal(result, interpret(program, inputs)["y"])
    depthwise = case.groups > 1 and case.depth == 1
    assert depthwise or any(reading is not None for reading in found)


@pytest.mark.parametrize("case", deep_but(CASES[1:2] + CASES[8:9], CASES))
def test_sums_are_the_interpreters(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", deep_but(CASES[2:3], CASES))
def test_sums_of_pairs_are_the_interpreters(case: Case) -> None:
    with patch.object(readings, "_quads", lambda *_: None):
        check(case)


SORTED = [
    Case((U8, I8), (0, 0), 90, 33, largest=31, size=27),
    Case((U8, I8), (8, 0), 24, 16, 3, border=1, largest=32),
    Case((U8, I8), (3, 0), 16, 70, 3, border=1, largest=64),
    Case((U8, I8), (0, 0), 64, 65, largest=64, size=29),
    Case((I8, I8), (-3, 0), 8, 24, 3, stride=2, border=1, largest=64),
    Case((U8, I8), (255, 0), 7, 9, 3, border=2, dilation=2, largest=64),
    Case((U8, I8), (7, 0), 12, 20, 3, border=1, groups=3, largest=64, size=17),
    Case((U8, I8), (9, 0), 4, 40, 1, fill=40, border=1, largest=63),
    Case((U8, I8), (128, 0), 130, 1, largest=64, size=1),
    *(case for case in CASES if case.dtypes[1] is I8 and not case.varies),
]


@contextmanager
def sorted_words(is_faster: bool | None = None) -> Iterator[None]:
    """A CPU that adds pairs of products of octets, and no four of them."""
    target = host_target()._replace(features="+ssse3")
    with ExitStack() as stack:
        stack.enter_context(patch.object(readings, "host_target", lambda: target))
        if is_faster is not None:
            stack.enter_context(patch.object(readings, "is_sorted_faster", lambda *_: is_faster))
        yield


@pytest.mark.parametrize("case", deep_but(SORTED[:5:2], SORTED))
def test_sums_of_sorted_words_are_the_interpreters(case: Case) -> None:
    with sorted_words(True):
        check(case)


@pytest.mark.parametrize("count", [2, 4])
def test_sums_that_fit_are_all_that_never_saturate(count: int) -> None:
    weights = np.random.default_rng(0).integers(-256 // count, 256 // count, (count, 1 << 15))
    sums = [np.dot(octets, weights) for octets in product((0, 255), repeat=count)]
    fit = (np.min(sums, 0) >= -(2**15)) & (np.max(sums, 0) < 2**15)
    assert 0 < fit.sum() < fit.size
    np.testing.assert_array_equal(fits_halves(*weights), fit)


@pytest.mark.parametrize(("largest", "products"), [(64, Products.OCTETS), (127, Products.PAIRS)])
def test_the_range_of_weights_decides_how_they_are_multiplied(
    largest: int, products: Products
) -> None:
    program = Case((U8, I8), (3, 0), 64, 32, largest=largest).program()
    schedule = one_dispatch(program)
    (dispatch,) = schedule.dispatches
    node = next(node for node in schedule.program.nodes if node.op.name == "matmul")
    with sorted_words():
        found = readings.reading_of(schedule, dispatch, node)
    assert found is not None and found.products is products


@pytest.mark.parametrize("products", [Products.PAIRS, Products.QUADS])
@pytest.mark.parametrize("depth", [1, 2, 4, 7, 70])
def test_panels_correct_what_rows_are_too_large(products: Products, depth: int) -> None:
    width, groups, columns, shift = 8, 2, 11, 131
    weights = drawn(I8, (depth, groups * columns), depth).astype(np.int64)
    panels = pack_products(weights, groups, width, products, shift)
    kind = I8 if products is Products.QUADS else DType.I16
    lines = panels[:, :, 1:].copy().view(kind.numpy).astype(np.int64)
    parts = lines.reshape(groups, 2, -1, width, products.per_word).transpose(2, 4, 0, 1, 3)
    rows = drawn(U8, (3, depth), 5).astype(np.int64)
    padded = np.zeros((3, parts.shape[0] * parts.shape[1]), np.int64)
    padded[:, :depth] = rows + shift
    sums = padded @ parts.reshape(padded.shape[1], -1) + panels[:, :, 0].reshape(-1)
    sums = sums.reshape(3, groups, -1)[:, :, :columns].reshape(3, -1)
    np.testing.assert_array_equal(sums, rows @ weights)


def float_model() -> onnx.ModelProto:
    """Convolutions of several kinds, a sum, a mean and a Gemm."""
    random = np.random.default_rng(0)
    shapes = {
        "w1": (8, 3, 3, 3), "w2": (16, 8, 3, 3), "w3": (16, 16, 1, 1), "w4": (16, 1, 3, 3),
        "w5": (10, 16), "b1": (8,), "b2": (16,), "b3": (16,), "b4": (16,), "b5": (10,),
    }  # fmt: skip
    weights = {
        name: (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }
    nodes = [
        node("Conv", "x w1 b1", "a", pads=[1] * 4), node("Relu", "a", "ar"),
        node("Conv", "ar w2 b2", "b", pads=[1] * 4, strides=[2, 2]),
        node("Conv", "b w3 b3", "c"), node("Relu", "c", "cr"), node("Add", "b cr", "d"),
        node("Conv", "d w4 b4", "e", pads=[1] * 4, group=16),
        node("GlobalAveragePool", "e", "g"), node("Flatten", "g", "f"),
        node("Gemm", "f w5 b5", transB=1),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (1, 3, 12, 12)}, weights, 13)
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.deep
def test_a_quantised_model_is_multiplied_in_integers() -> None:
    model = quantize(float_model())
    x = np.random.default_rng(1).normal(size=(1, 3, 12, 12)).astype(np.float32)
    with readings_found() as found:
        compiled = satura.compile(model, threads=1)
    y = np.asarray(compiled(x=x), np.float32)
    meant = np.asarray(interpret(satura.load(model), {"x": x})["y"], np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (theirs,) = session.run(None, {"x": x})
    values = model.graph.initializer
    scale = {each.name: numpy_helper.to_array(each) for each in values}
    last = [node for node in model.graph.node if node.op_type == "DequantizeLinear"][-1]
    step = float(scale[last.input[1]])
    for other in (meant, np.asarray(theirs, np.float32)):
        assert np.abs(y - other).max() <= 1.01 * step
        assert np.mean(np.abs(y - other) > 0.01 * step) <= 0.1  # only at ties
    if host_target().sums_four_products:
        wide = [reading for reading in found if reading is not None]
        assert sum(reading.products is Products.QUADS for reading in wide) >= 2


def quantised_by_operators(
    weight: DType, is_dynamic: bool, kernel: int, rows: tuple[int, ...] = (6,)
) -> onnx.ModelProto:
    """Two convolutions or, without a kernel, products of `rows` that are quantised as a whole:
    their inputs by zero points that are constants, or those of each call."""
    random = np.random.default_rng(3)
    shape = (16, 16, kernel, kernel) if kernel else (96, 96)
    least = 64 if weight is DType.U8 else -64
    x = Typed((2, 16, 9, 9) if kernel else (*rows, 96), TensorProto.FLOAT if is_dynamic else
              TensorProto.UINT8)  # fmt: skip
    weights = {
        "w": random.integers(least, least + 129, shape).astype(weight.numpy),
        "wz": np.array(128 if weight is DType.U8 else 0, weight.numpy),
        "s": np.float32(0.02), "z": np.uint8(119), "t": np.float32(0.11),
    }  # fmt: skip
    pads: dict[str, object] = {"pads": [kernel // 2] * 4} if kernel else {}
    nodes = []
    for source, result in (("x", "h"), ("h", "y")):
        if is_dynamic:
            op = "ConvInteger" if kernel else "MatMulInteger"
            nodes += [
                node("DynamicQuantizeLinear", source, f"{source}q {source}s {source}z"),
                node(op, f"{source}q w {source}z wz", f"{source}i", **pads),
                node("Cast", f"{source}i", f"{source}f", to=TensorProto.FLOAT),
                node("Mul", f"{source}f {source}s", result),
            ]
        else:
            op = "QLinearConv" if kernel else "QLinearMatMul"
            nodes.append(node(op, f"{source} s z w s wz t z", result, **pads))
    return make_model(nodes, {"x": x}, weights, 13)


@pytest.mark.parametrize("rules", ["none", "default"])
def test_sums_next_to_a_half_are_multiplied_by_one_factor(rules: str) -> None:
    """-1750 times 0.02 · 0.01 / 0.1 is -3.4999998 as ONNX's reference has it; in steps -3.5."""
    constants: dict[str, object] = {
        "s": np.float32(0.02), "z": np.uint8(0), "w": np.array([[-35]], np.int8),
        "u": np.float32(0.01), "o": np.int8(0), "t": np.float32(0.1), "v": np.uint8(223),
    }  # fmt: skip
    x = Typed((1, 1), TensorProto.UINT8)
    model = make_model([node("QLinearMatMul", "x s z w u o t v", "y")], {"x": x}, constants, 13)
    y = satura.compile(model, threads=1, rules=rules).run({"x": np.array([[50]], np.uint8)})["y"]
    np.testing.assert_array_equal(y, np.array([[220]], np.uint8))


@pytest.mark.parametrize("second", [0.02, 0.031])
def test_what_is_quantised_anew_is_summed_as_octets(second: float) -> None:
    """With the same scale as before, which changes nothing, and with another."""
    random = np.random.default_rng(7)
    constants: dict[str, object] = {
        "s": np.float32(0.02), "t": np.float32(second), "z": np.uint8(128),
        "w": random.integers(-127, 128, (12, 6, 3, 3)).astype(np.int8), "u": np.float32(0.01),
        "o": np.int8(0),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("QuantizeLinear", "d t z", "q2"), node("DequantizeLinear", "q2 t z", "d2"),
        node("DequantizeLinear", "w u o", "f"), node("Conv", "d2 f", "y", pads=[1] * 4),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (1, 6, 8, 8)}, constants, 13, ("y", "q"))
    with readings_found() as found:
        compiled = satura.compile(model, threads=1)
    x = random.normal(size=(1, 6, 8, 8)).astype(np.float32)
    found_y, meant = compiled.run({"x": x})["y"], interpret(satura.load(model), {"x": x})["y"]
    np.testing.assert_allclose(np.float64(found_y), np.float64(meant), rtol=1e-4, atol=1e-4)
    assert len(found) == 1 and found[0] is not None


@pytest.mark.parametrize("rules", ["default", "none"])
def test_rows_that_are_dequantised_are_summed_as_octets(rules: str) -> None:
    """Of a product of [2, 3, 96] as quantisers write it, with a factor per column."""
    random = np.random.default_rng(11)
    constants: dict[str, object] = {
        "s": np.float32(0.02), "z": np.int8(-3), "t": np.float32(0.11), "o": np.zeros(32, np.int8),
        "w": random.integers(-127, 128, (96, 32)).astype(np.int8), "b": np.zeros(32, np.float32),
        "u": np.linspace(0.005, 0.02, 32, dtype=np.float32),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w u o", "f", axis=1), node("MatMul", "d f", "m"),
        node("QuantizeLinear", "m t z", "p"), node("DequantizeLinear", "p t z", "e"),
        node("Add", "e b", "y"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (2, 3, 96)}, constants, 13)
    x = random.normal(size=(2, 3, 96)).astype(np.float32)
    compiled = satura.compile(model, threads=1, rules=rules)
    features = [each.features for each in compiled.rewritten.schedule.dispatches]
    kinds = {name for each in features if each for name, _ in each.work}
    assert ("octets" in kinds) is (rules == "default")
    found, meant = compiled.run({"x": x})["y"], interpret(satura.load(model), {"x": x})["y"]
    differences = np.abs(np.float64(found) - np.float64(meant))
    assert differences.max() <= 0.1101  # a step
    assert np.mean(differences > 1e-3) <= 0.02  # at ties


@pytest.mark.parametrize("weight", deep_but([DType.I8], [DType.I8, DType.U8]))
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("kernel", deep_but([3], [0, 1, 3]))
@pytest.mark.parametrize("rows", deep_but([(2, 3)], [(6,), (2, 3)]))
def test_what_is_quantised_by_operators_is_summed_as_octets(
    weight: DType, is_dynamic: bool, kernel: int, rows: tuple[int, ...]
) -> None:
    """Also where the zero point is another in each call."""
    model = quantised_by_operators(weight, is_dynamic, kernel, rows)
    program = satura.load(model)
    shape = tuple(static(dim) for dim in program.nodes[program.inputs[0]].type.shape)
    x = np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)
    given = {"x": (x / np.float32(17) - 4).astype(np.float32) if is_dynamic else x}
    compiled = satura.compile(model, threads=1)
    sums = [
        each for each in compiled.rewritten.schedule.dispatches if each.form.value == "contraction"
    ]
    kinds = {name for each in sums if each.features for name, _ in each.features.work}
    assert len(sums) == 2
    assert "octets" in kinds
    y, meant = (
        found["y"].astype(np.float64) for found in (compiled.run(given), interpret(program, given))
    )
    step = np.abs(meant).max() / 255 if is_dynamic else 1.0
    assert np.abs(y - meant).max() <= 2.01 * step  # at ties, of either
    assert np.mean(np.abs(y - meant) > 0.5 * step) <= 0.1


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [
        (DType.U8, 119),
        pytest.param(DType.U8, 0, marks=pytest.mark.deep),
        pytest.param(DType.I8, -3, marks=pytest.mark.deep),
    ],
)
@pytest.mark.parametrize("factor", deep_but([1.0], [1.0, 1.25]))
def test_what_is_quantised_as_it_was_is_quantised_once(
    dtype: DType, zero: int, factor: float
) -> None:
    weights = {
        "s": np.float32(0.02),
        "t": np.float32(0.02 * factor),
        "z": np.array(zero, dtype.numpy),
    }
    nodes = [
        node("QuantizeLinear", "x s z", "a"), node("DequantizeLinear", "a s z", "b"),
        node("QuantizeLinear", "b t z", "c"), node("DequantizeLinear", "c t z"),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (700,)}, weights, 13)
    program = satura.optimize(model)
    rounded = [node for node in program.nodes if node.attributes == (UnaryFn("round"),)]
    assert len(rounded) == (1 if factor == 1.0 else 2)
    x = np.linspace(-4, 7, 700, dtype=np.float32)
    meant = interpret(satura.load(model), {"x": x})["y"]
    assert np.allclose(interpret(program, {"x": x})["y"], meant, atol=0.02 * factor)
    exact = satura.optimize(model, rules="exact")
    assert np.array_equal(interpret(exact, {"x": x})["y"], meant)


BOUNDS = ((0, 255), (-128, 127), (5, 200), (-129, 256), (-np.inf, np.inf), (0, 254.5), (-0.5, 255))


@pytest.mark.parametrize("to", [DType.U8, DType.I8])
def test_bounds_and_zero_points_of_octets(to: DType) -> None:
    """Bounds that a cast has anyway or not, then a zero point that fits 8 bits or not."""
    values = special_values(DType.F32)
    build = Builder()
    x = build.input("x", DType.F32, values.shape)

    def spread(number: float, dtype: DType) -> int:
        return build.broadcast(build.constant([number], dtype), values.shape)

    results = []
    for (least, most), zero in product(BOUNDS, (0, 3, -128, 255, 256, -129, 32767, -32768)):
        above = build.binary("max", x, spread(least, DType.F32))
        octets = build.cast(build.binary("min", above, spread(most, DType.F32)), to)
        less = build.binary("sub", build.cast(octets, DType.I16), spread(zero, DType.I16))
        results.append(build.cast(less, DType.F32))
    program = build.program({"y": build.concat(results, 0)})
    with np.errstate(all="ignore"):
        expected = interpret(program, {"x": values})["y"]
    got = computed(program, {"x": values}, threads=1)
    assert compare(expected, got, exact=True) is None
