"""Programs saved as ONNX give in onnxruntime what they give in the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import satura
from satura.rewrite.errors import SaturaError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.opsets import is_one_of, means_the_same
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import REDUCTIONS
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import BinaryFn, Padding
from satura.rewrite.types.dims import static, symbol
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType
from tests.onnx_cases import sample
from tests.onnx_models import Inputs, Typed, make_model, node
from tests.onnxruntime_reference import WITHOUT_F64, assert_close, kept_by_pools, run
from tests.tiers import deep_but

FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
INTEGERS = tuple(dtype for dtype in COMPUTED if dtype.is_integer)
TOLERANCE = {DType.F64: 1e-12, DType.F32: 2e-6, DType.F16: 2e-3, DType.BF16: 2e-2}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e30, -1e-30, 300.7)


def check(program: Program, *valuations: dict[str, Array], tolerance: float | None = None) -> None:
    """Save `program`, check the model, compare onnxruntime with the interpreter."""
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    for arguments in valuations:
        expected = interpret(program, arguments)
        kept = kept_by_pools(program, arguments, expected)
        for (name, wanted), found in zip(expected.items(), run(model, arguments), strict=True):
            assert found.shape == wanted.shape, name
            got = np.where(kept[name], found, wanted).astype(found.dtype)
            dtype = DType.of(wanted.dtype)
            if dtype.is_float:
                bound = TOLERANCE[dtype] if tolerance is None else tolerance
                assert_close(got, wanted, bound, name)
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=name)


def values(dtype: DType, shape: Sequence[int], seed: int = 0, special: bool = True) -> Array:
    """Random values; with `special` also NaN, infinities, zeros and the extremes of integers."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return np.asarray(random.random(shape) < 0.5)
    drawn: Array
    if dtype.is_float:
        drawn = np.asarray(random.standard_normal(shape) * 2)
        pool: Sequence[float] = SPECIAL
    else:
        bits = 8 * dtype.itemsize
        most = 2 ** (bits - dtype.is_signed) - 1
        least = -most - 1 if dtype.is_signed else 0
        drawn = np.asarray(random.integers(max(least, -9), 10, shape))
        pool = (0, 1, 2, 3, most, most - 1, least, least + 1, most // 2**31, most // 2**33)
    chosen = random.random(shape) < (0.4 if special else 0.0)
    mixed = np.array(drawn, object)
    for place in np.argwhere(chosen):
        mixed[tuple(place)] = pool[int(random.integers(len(pool)))]
    with np.errstate(all="ignore"):
        if dtype.is_float:
            return mixed.astype(np.float64).astype(dtype.numpy)
        return mixed.astype(dtype.numpy)


def arguments_of(
    program: Program, seed: int = 0, special: bool = True, **sizes: int
) -> dict[str, Array]:
    """Random arguments for `program` at the given sizes."""
    result = {}
    for position, index in enumerate(program.inputs):
        node = program.nodes[index]
        type_ = node.type.concrete(sizes)
        shape = list(map(static, type_.shape))
        result[node.input_name] = values(type_.dtype, shape, seed + position, special)
    return result


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    build = Builder()
    outputs = {}
    without = {DType.F64} if name in WITHOUT_F64 else set()
    for dtype in sorted(UNARY[name].dtypes - without, key=lambda dtype: dtype.value):
        x = build.input(f"x_{dtype.value}", dtype, (97,))
        outputs[dtype.value] = build.unary(name, x)
    program = build.program(outputs)
    check(program, arguments_of(program), tolerance=None)


@pytest.mark.parametrize("name", WITHOUT_F64)
def test_functions_of_f64_that_onnxruntime_lacks_are_saved_as_they_are(name: str) -> None:
    build = Builder()
    x = build.input("x", DType.F64, (97,))
    program = build.program({"y": build.unary(name, x)})
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    assert load(model) == program
    arguments = {"x": values(DType.F64, (97,))}
    with np.errstate(all="ignore"):
        (got,) = ReferenceEvaluator(model).run(None, arguments)
    # The reference rounds erf to f32.
    bound = TOLERANCE[DType.F32 if name == "erf" else DType.F64]
    assert_close(np.asarray(got), interpret(program, arguments)["y"], bound)


@pytest.mark.parametrize("name", deep_but([*BINARY][::2], BINARY))
def test_binary(name: str) -> None:
    build = Builder()
    outputs = {}
    for dtype in sorted(BINARY[name].dtypes, key=lambda dtype: dtype.value):
        x = build.input(f"x_{dtype.value}", dtype, (601,))
        y = build.input(f"y_{dtype.value}", dtype, (601,))
        outputs[dtype.value] = build.binary(name, x, y)
    program = build.program(outputs)
    check(program, arguments_of(program))


def test_binary_with_constants_and_broadcasts() -> None:
    build = Builder()
    x = build.input("x", DType.I32, (3, 5))
    row = build.broadcast(build.constant(np.array([[1, -1, 0, 7, -3]], np.int32)), (3, 5))
    nonzero = build.broadcast(build.constant(np.array([[3]], np.int32)), (3, 5))
    both = build.broadcast(build.input("s", DType.I32, (1, 1)), (3, 5))
    program = build.program(
        {
            "quotient": build.binary("div", x, row),
            "plain": build.binary("div", x, nonzero),
            "rest": build.binary("mod", x, row),
            "power": build.binary("pow", x, nonzero),
            "negative": build.binary("pow", x, row),
            "spread": build.binary("add", both, both),
        }
    )
    check(program, arguments_of(program), arguments_of(program, seed=7))
    assert sum(node.op_type == "Expand" for node in to_model(program).graph.node) == 1


def test_integers_to_a_fixed_power_are_products() -> None:
    model = make_model([node("Pow", "x e", "y")], {"x": Typed((2, 5))}, {"e": np.array(5)})
    program = load(model)
    check(program, arguments_of(program))
    assert len(to_model(program).graph.node) == 3


@pytest.mark.parametrize("dtype", deep_but(COMPUTED[::3], COMPUTED))
def test_select(dtype: DType) -> None:
    build = Builder()
    operands = build.input("c", DType.BOOL, (4, 6)), build.input("x", dtype, (4, 6))
    program = build.program({"z": build.select(*operands, build.input("y", dtype, (4, 6)))})
    check(program, arguments_of(program), tolerance=0)


@pytest.mark.parametrize("old", deep_but(COMPUTED[::3], COMPUTED))
def test_cast(old: DType) -> None:
    build = Builder()
    x = build.input("x", old, (211,))
    program = build.program({new.value: build.cast(x, new) for new in COMPUTED})
    check(program, arguments_of(program), tolerance=0)


@pytest.mark.parametrize("dtype", deep_but(COMPUTED[::3], COMPUTED))
def test_movement(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (4, 3, 5))
    scalar = build.input("s", dtype, ())
    indices = build.constant(np.array([[2, 0], [-1, 1]]))
    outputs = {
        "transpose": build.transpose(x, (2, 0, 1)),
        "reshape": build.reshape(x, (2, 1, 30)),
        "scalar": build.reshape(build.slice(x, (1, 2, 3), (1, 1, 1)), ()),
        "broadcast": build.broadcast(build.reshape(x, (4, 1, 3, 5)), (4, 2, 3, 5)),
        "spread": build.broadcast(build.reshape(scalar, (1, 1)), (2, 3)),
        "slice": build.slice(x, (1, 0, 4), (2, 3, 3), (2, 1, -2)),
        "reversed": build.slice(x, (3, 2, 4), (4, 3, 5), (-1, -1, -1)),
        "nothing": build.slice(x, (4, 0, 0), (0, 3, 5)),
        "pad": build.pad(x, (1, 0, 2), (0, 3, 0), 1),
        "pad_scalar": build.add("pad", (x, scalar), Padding((0, 1, 0), (1, 1, 1))),
        "concat": build.concat(
            [x, build.transpose(build.transpose(x, (1, 0, 2)), (1, 0, 2)), x], 1
        ),
        "gather": build.gather(x, indices, 1),
        "iota": build.iota((3, 4, 2), 1, dtype),
    }
    check(build.program(outputs), arguments_of(build.program(outputs)), tolerance=0)


@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.I64], FLOATS + INTEGERS))
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduce(name: str, dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (3, 5, 4))
    program = build.program(
        {
            "inner": build.reduce(name, x, (2,)),
            "outer": build.reduce(name, x, (0,)),
            "both": build.reduce(name, x, (0, 2)),
            "all": build.reduce(name, x, (0, 1, 2)),
            "none": build.reduce(name, x, ()),
            "empty": build.reduce(name, build.slice(x, (0, 0, 0), (3, 0, 4)), (1,)),
            "unit": build.reduce(name, build.slice(x, (0, 2, 0), (3, 1, 4)), (1,)),
        }
    )
    special = name in ("max", "min") or dtype.is_integer
    check(program, arguments_of(program, special=special), arguments_of(program, 1, special=False))


def test_a_sum_over_no_axes_is_not_its_operand() -> None:
    """That of -0.0 is 0.0, whatever the rank."""
    build = Builder()
    operands = {"x": np.array(-0.0, np.float32), "v": np.array([-0.0, 1], np.float32)}
    inputs = {name: build.input(name, DType.F32, x.shape) for name, x in operands.items()}
    sums = {f"of {name}": build.reduce("sum", at, ()) for name, at in inputs.items()}
    for found in run(to_model(build.program(sums)), operands):
        assert not np.signbit(found).any()


@pytest.mark.parametrize("dtype", deep_but(COMPUTED[::3], COMPUTED))
def test_arg_reduce_and_bool_reductions(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (6, 7))
    outputs = {
        f"{name}_{axis}_{last}": build.arg_reduce(name, x, axis, bool(last))
        for name in ("max", "min")
        for axis in (0, 1)
        for last in (0, 1)
    }
    if dtype is DType.BOOL:
        outputs |= {name: build.reduce(name, x, (1,)) for name in ("max", "min")}
    check(
        build.program(outputs), *(arguments_of(build.program(outputs), seed) for seed in range(3))
    )


@pytest.mark.parametrize("dtype", [DType.F64, DType.U8, DType.I8, DType.F32])
def test_a_pool_whose_extents_onnx_infers_otherwise_is_saved_with_its_border(dtype: DType) -> None:
    """ONNX counts a last window that starts in the border, which has no result."""
    pool = node(
        "MaxPool", kernel_shape=[3, 3], strides=[2, 3], pads=[0, 0, 1, 2], ceil_mode=1
    )  # fmt: skip
    x = Typed((1, 6, 11, 9), helper.np_dtype_to_tensor_dtype(dtype.numpy))
    model = make_model([pool], {"x": x})
    saved = to_model(satura.optimize(model))
    onnx.checker.check_model(saved, full_check=True)
    assert [each.op_type for each in saved.graph.node] == ["MaxPool"]
    given = {"x": values(dtype, (1, 6, 11, 9), 0, special=False)}
    (result,) = run(saved, given)
    np.testing.assert_array_equal(result, run(model, given)[0])


def test_a_window_longer_than_its_axis_is_saved_as_no_node() -> None:
    pool = node("LpPool", p=2, kernel_shape=[3, 1], strides=[3, 3], dilations=[1, 2])
    saved = to_model(satura.optimize(make_model([pool], {"x": (1, 2, 2, 5)}, opset=18)))
    onnx.checker.check_model(saved, full_check=True)
    assert "LpPool" not in {each.op_type for each in saved.graph.node}


@pytest.mark.parametrize(
    "dtype", deep_but([DType.F32, DType.I64, DType.U8, DType.F64], FLOATS + INTEGERS)
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_pool(name: str, dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (2, 7, 6, 3))
    fill = -np.inf if dtype.is_float and name == "max" else 1
    flat = build.window(
        dtype, (1, 3, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1), (0, 1, 2, 0), (0, 2, 1, 0), fill
    )
    deep = build.window(dtype, (2, 2, 1, 3), (1, 2, 2, 1), None, (1, 0, 0, 1), None, fill)
    line = build.window(dtype, (1, 1, 4, 1))
    program = build.program(
        {
            "flat": build.pool(name, x, flat),
            "deep": build.pool(name, x, deep),
            "line": build.pool(name, x, line),
            "none": build.pool(name, x, build.window(dtype, (1, 1, 1, 1))),
        }
    )
    special = name in ("max", "min")
    check(program, arguments_of(program, special=special), arguments_of(program, 1, special=False))


@pytest.mark.parametrize("dtype", deep_but([*FLOATS, DType.I64], FLOATS + INTEGERS))
def test_contractions(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (2, 6, 5, 4))
    window = build.window(dtype, (3, 2), (2, 1), (1, 2), (1, 0), (0, 2))
    filled = build.window(dtype, (2, 2), lo=(1, 1), hi=(0, 1), fill=2)
    dense = build.constant(values(dtype, (3, 2, 4, 6), 5, special=False))
    grouped = build.constant(values(dtype, (2, 2, 2, 6), 6, special=False))
    depthwise = build.input("w", dtype, (3, 2, 1, 4))
    left, right = build.input("a", dtype, (2, 3, 4)), build.input("b", dtype, (2, 4, 5))
    empty = build.slice(left, (0, 0, 0), (2, 3, 0)), build.slice(right, (0, 0, 0), (2, 0, 5))
    line, point = build.reshape(x, (2, 30, 4)), build.reshape(x, (60, 4))
    program = build.program(
        {
            "dense": build.conv(x, dense, window),
            "filled": build.conv(x, grouped, filled, groups=2),
            "depthwise": build.conv(x, depthwise, window, groups=4),
            "line": build.conv(line, build.reshape(depthwise, (6, 1, 4)),
                               build.window(dtype, (6,)), groups=4),
            "point": build.conv(point, build.slice(build.reshape(dense, (36, 4)), (0, 0), (4, 4)),
                                build.window(dtype, ())),
            "matmul": build.matmul(left, right),
            "zeros": build.matmul(*empty),
        }
    )  # fmt: skip
    bound = {DType.F32: 1e-5, DType.F64: 1e-12, DType.F16: 3e-2, DType.BF16: 3e-1}.get(dtype)
    check(program, arguments_of(program, special=False), tolerance=bound)


def test_attention_with_a_bias_and_without() -> None:
    build = Builder()
    q, k = build.input("q", DType.F32, (2, 3, 4)), build.input("k", DType.F32, (2, 4, 5))
    v, b = build.input("v", DType.F32, (2, 5, 6)), build.input("b", DType.F32, (1, 3, 1))
    zero = build.reshape(build.constant(0.0, DType.F32), (1, 1, 1))
    program = build.program(
        {
            "biased": build.attention(q, k, build.broadcast(b, (2, 3, 5)), v),
            "whole": build.attention(q, k, build.matmul(q, k), v),
            "plain": build.attention(q, k, build.broadcast(zero, (2, 3, 5)), v),
            "of nothing": build.attention(
                q, build.slice(k, (0, 0, 0), (2, 4, 0)), build.slice(k, (0, 0, 0), (2, 3, 0)),
                build.slice(v, (0, 0, 0), (2, 0, 6)),
            ),
        }
    )  # fmt: skip
    check(program, arguments_of(program, special=False), tolerance=1e-5)
    assert [node.op_type for node in to_model(program).graph.node].count("Add") == 2


def test_convolution_over_four_axes_and_over_nothing() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 3, 3, 3, 3, 2))
    w = build.input("w", DType.F32, (2, 2, 2, 2, 2, 3))
    wide = build.window(DType.F32, (2, 2, 2, 2), lo=(1, 0, 0, 0))
    flat = build.input("e", DType.F32, (2, 4, 0, 3))
    kernel = build.input("k", DType.F32, (1, 1, 3, 5))
    blank = build.conv(flat, kernel, build.window(DType.F32, (1, 1), lo=(0, 1), hi=(0, 2)))
    program = build.program({"wide": build.conv(x, w, wide), "border": blank})
    check(program, arguments_of(program, special=False), tolerance=1e-5)


def test_symbolic_dims_follow_the_inputs_shapes() -> None:
    n, m = symbol("n"), symbol("m")
    build = Builder()
    x = build.input("x", DType.F32, (n, 2 * m, 3))
    y = build.input("y", DType.F32, (m, n))
    row = build.reshape(x, (n, 2, m, 3))
    program = build.program(
        {
            "split": build.transpose(row, (1, 0, 2, 3)),
            "flat": build.reshape(x, (6 * n * m,)),
            "pairs": build.broadcast(build.reshape(y, (m, n, 1)), (m, n, n + m)),
            "padded": build.pad(y, (n, 1), (1, m // 2), 7),
            "middle": build.slice(x, (0, m - 1, 0), (n, m, 3)),
            "back": build.slice(y, (m - 1, n - 1), (m, n), (-1, -1)),
            "halves": build.slice(y, (0, 0), (m, (n + 1) // 2), (1, 2)),
            "count": build.extent(n * m - 3),
            "floor": build.extent((n - 5) // 2),
            "ramp": build.iota((n, m), 0, DType.F32),
            "total": build.reduce("sum", x, (0, 1)),
            "largest": build.reduce("max", y, (1,)),
            "first": build.arg_reduce("max", y, 0),
            "product": build.matmul(y, build.reshape(x, (n, 6 * m))),
            "pool": build.pool("max", x, build.window(DType.F32, (1, 2, 1), (1, 2, 1))),
            "integers": build.reduce("sum", build.cast(y, DType.I64), (0,)),
            "factors": build.reduce("prod", build.cast(y, DType.I32), (0,)),
        }
    )
    model = to_model(program)
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in model.graph.input
    ]
    assert shapes == [["n", "2*m", 3], ["m", "n"]]
    sizes = ({"n": 4, "m": 3}, {"n": 1, "m": 1}, {"n": 5, "m": 2})
    check(
        program, *(arguments_of(program, special=False, **size) for size in sizes), tolerance=1e-5
    )


def test_symbolic_convolution() -> None:
    n, h = symbol("n"), symbol("h")
    build = Builder()
    x = build.input("x", DType.F32, (n, h, 5, 2))
    weight = build.constant(values(DType.F32, (3, 3, 2, 4), special=False))
    window = build.window(DType.F32, (3, 3), (2, 1), lo=(1, 1), hi=(1, 1))
    wide = build.constant(values(DType.F64, (3, 3, 2, 4), special=False))
    fine = build.window(DType.F64, (3, 3), (2, 1), lo=(1, 1), hi=(1, 1))
    program = build.program(
        {
            "narrow": build.conv(x, weight, window),
            "wide": build.conv(build.cast(x, DType.F64), wide, fine),
        }
    )
    sizes = ({"n": 2, "h": 6}, {"n": 1, "h": 1}, {"n": 0, "h": 3})
    check(
        program, *(arguments_of(program, special=False, **size) for size in sizes), tolerance=1e-5
    )


def test_what_is_computed_from_constants_is_stored() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 8, 9, 300))
    variance, scale = (build.constant(np.full(300, v, np.float32)) for v in (3, 5))
    small = build.broadcast(build.reshape(build.constant(np.float32(1)), (1,)), (300,))
    root = build.unary("sqrt", build.binary("add", variance, small))
    factor = build.reshape(build.binary("div", scale, root), (1, 1, 1, 300))
    scaled = build.binary("mul", x, build.broadcast(factor, (2, 8, 9, 300)))
    model = to_model(build.program({"y": scaled}))
    assert [node.op_type for node in model.graph.node] == ["Mul"]
    (stored,) = model.graph.initializer
    assert np.array_equal(numpy_helper.to_array(stored), np.full((1, 1, 1, 300), 2.5, np.float32))


def test_what_is_larger_than_its_constants_is_not_stored() -> None:
    build = Builder()
    weight = build.cast(build.constant(np.arange(100, dtype=np.int8).repeat(20)), DType.F32)
    doubled = build.binary(
        "mul", weight, build.broadcast(build.constant(np.full(1, 2, np.float32)), (2000,))
    )
    model = to_model(
        build.program({"y": build.concat([build.input("x", DType.F32, (1,)), doubled], 0)})
    )
    assert sum(len(tensor.raw_data) for tensor in model.graph.initializer) < 2100


def test_channels_stay_first_in_what_is_saved() -> None:
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Mul", "a slope", "s"),
        node("Max", "a s", "b"), node("MaxPool", "b", "c", **pool),
        node("AveragePool", "b", "d", count_include_pad=1, **pool), node("Add", "c d", "e"),
        node("Concat", "e c", "f", axis=1), node("Slice", "f two four one", "g"),
        node("Conv", "g w", "h"), node("ReduceSum", "h one", "y"),
    ]  # fmt: skip
    constants = {
        "w": values(DType.F32, (2, 2, 3, 3), special=False), "two": [1], "four": [3], "one": [1],
        "slope": np.array([[[0.1]], [[0.2]]], np.float32),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": ("n", 2, 9, 11)}, constants))
    model = to_model(program)
    assert model.opset_import[0].version == 18  # of which AveragePool is fast in onnxruntime
    ops = {each.op_type for each in model.graph.node}
    assert {"Conv", "MaxPool", "AveragePool", "Concat"} <= ops and not ops & {"Transpose", "Pad"}
    check(program, arguments_of(program, special=False, n=2), tolerance=2e-5)


def test_ops_of_many_small_ones_come_back() -> None:
    nodes = [
        node("LayerNormalization", "x scale bias", "a", axis=-1),
        node("LayerNormalization", "a scale", "b", axis=2, epsilon=0.1),
        node("Mul", "b cut", "c"), node("Erf", "c", "d"), node("Add", "d one", "e"),
        node("Mul", "b half", "f"), node("Mul", "f e", "g"), node("Softmax", "g", "y", axis=1),
    ]  # fmt: skip
    line = values(DType.F32, (6,), special=False)
    constants = {
        "scale": line, "bias": line + 1, "half": np.float32(0.5), "one": np.float32(1),
        "cut": np.float32(0.5**0.5),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": ("n", 4, 6)}, constants))
    ops = [each.op_type for each in to_model(program).graph.node]
    assert ops == ["LayerNormalization", "LayerNormalization", "Gelu", "Softmax"]
    check(program, arguments_of(program, n=2), arguments_of(program, special=False, n=3))


RAISED: tuple[tuple[str, dict[str, object], tuple[tuple[int, ...], ...]], ...] = (
    ("Softmax", {"axis": 0}, ()), ("LogSoftmax", {"axis": 0}, ()), ("LogSoftmax", {"axis": 2}, ()),
    ("Gelu", {"approximate": "none"}, ()), ("Gelu", {"approximate": "tanh"}, ()),
    ("LayerNormalization", {"axis": 2, "epsilon": 0.1}, ((2,), (2,))),
    ("LayerNormalization", {"axis": 1, "epsilon": 1e-5}, ((4, 2),)),
    ("InstanceNormalization", {"epsilon": 1e-3}, ((4,), (4,))),
    ("LpNormalization", {"axis": 1, "p": 2}, ()), ("LpNormalization", {"axis": 2, "p": 1}, ()),
    ("LeakyRelu", {"alpha": 0.2}, ()), ("LeakyRelu", {"alpha": -1.5}, ()), ("Selu", {}, ()),
    ("Elu", {"alpha": 1.0}, ()), ("Elu", {"alpha": -0.3}, ()), ("Celu", {"alpha": 2.0}, ()),
    ("HardSwish", {}, ()), ("HardSigmoid", {"alpha": 0.3, "beta": 0.0}, ()), ("Softplus", {}, ()),
    ("HardSigmoid", {"alpha": 1.0, "beta": 0.4}, ()), ("ThresholdedRelu", {"alpha": 0.7}, ()),
    ("Softsign", {}, ()), ("Clip", {}, ((), ())), ("Trilu", {"upper": 1}, ()),
    ("Trilu", {"upper": 0}, ()), ("PRelu", {}, ((4, 1),)), ("PRelu", {}, ((2,),)),
)  # fmt: skip
"""Ops that programs spell out in small ones: attributes, and the shapes of the constants."""


@pytest.mark.parametrize("op_type, attributes, shapes", RAISED)
def test_an_op_comes_back_of_what_has_its_type(
    op_type: str, attributes: dict[str, object], shapes: tuple[tuple[int, ...], ...]
) -> None:
    constants = {f"c{at}": values(DType.F32, s, at, special=False) for at, s in enumerate(shapes)}
    one = node(op_type, " ".join(["x", *constants]), "y", **attributes)
    alone = load(make_model([one], {"x": ("n", 4, 2)}, constants, opset=22))
    (written,) = to_model(alone).graph.node
    found = {a.name: onnx.helper.get_attribute_value(a) for a in written.attribute}
    wanted = {a.name: onnx.helper.get_attribute_value(a) for a in one.attribute}
    assert written.op_type == op_type
    assert {"approximate": b"none", **found} == {"approximate": b"none", **wanted} | {
        name: pytest.approx(value) for name, value in wanted.items() if isinstance(value, float)
    }
    check(alone, *(arguments_of(alone, n, special=n % 2 == 1, n=n) for n in (1, 3, 4)))
    one.input[0] = "wide"
    spread = load(
        make_model([node("Expand", "x shape", "wide"), one], {"x": (1, 4, 1)},
                   constants | {"shape": [3, 1, 2]}, opset=22)
    )  # fmt: skip
    check(spread, arguments_of(spread))


_OTHER = {"add": "sub", "sub": "add", "mul": "div", "div": "mul", "max": "min", "min": "max",
          "lt": "le", "le": "eq", "eq": "lt"}  # fmt: skip


@pytest.mark.parametrize("op_type, attributes, shapes", RAISED)
def test_what_is_not_quite_an_op_is_saved_as_it_is(
    op_type: str, attributes: dict[str, object], shapes: tuple[tuple[int, ...], ...]
) -> None:
    """One binary of its formula is turned round, or of another function."""
    constants = {f"c{at}": values(DType.F32, s, at, special=False) for at, s in enumerate(shapes)}
    one = node(op_type, " ".join(["x", *constants]), "y", **attributes)
    program = load(make_model([one], {"x": (3, 4, 2)}, constants, opset=22))
    nodes = list(program.nodes)
    results: list[tuple[str, int]] = []
    for index, each in enumerate(program.nodes):
        if each.op.name != "binary":
            continue
        (function,) = each.attributes
        assert isinstance(function, BinaryFn)
        turned = replace(each, operands=each.operands[::-1])
        for other in (turned, replace(each, attributes=(BinaryFn(_OTHER[function.name]),))):
            start = len(nodes) - program.inputs[-1] - 1
            assert program.inputs == (0,)
            nodes += [
                replace(n, operands=tuple(at and at + start for at in n.operands))
                for n in [*program.nodes[:index], other, *program.nodes[index + 1 :]][1:]
            ]
            results.append((f"y{len(results)}", program.outputs[0][1] + start))
    mutants = Program(tuple(nodes), program.inputs, tuple(results))
    x = values(DType.F32, (3, 4, 2), special=False)
    check(mutants, {"x": np.multiply(x, 0.25, dtype=np.float32)}, tolerance=1e-4)


def test_sums_so_far_and_repeated_elements_come_back() -> None:
    nodes = [
        node("CumSum", "x one", "a"), node("CumSum", "a one", "b", reverse=1, exclusive=1),
        node("Resize", "b scales", "y", mode="nearest"),
    ]  # fmt: skip
    nodes[2].input.insert(1, "")
    constants = {"one": 1, "scales": np.array([1, 2, 3], np.float32)}
    program = load(make_model(nodes, {"x": ("n", 4, 2)}, constants))
    assert [each.op_type for each in to_model(program).graph.node] == ["CumSum", "CumSum", "Resize"]
    check(program, *(arguments_of(program, special=False, n=n) for n in (1, 3)), tolerance=1e-5)
    check(program, arguments_of(program, n=2))


def test_activations_and_repeated_elements_between_convolutions_are_single_nodes() -> None:
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("LeakyRelu", "a", "b", alpha=0.1),
        node("Resize", "b scales", "c", mode="nearest"), node("Conv", "c w2", "d"),
        node("PRelu", "d slope", "y"),
    ]  # fmt: skip
    nodes[2].input.insert(1, "")
    constants = {
        "w": values(DType.F32, (32, 3, 3, 3), special=False),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "w2": values(DType.F32, (16, 32, 1, 1), special=False),
        "slope": values(DType.F32, (16, 1, 1), special=False),
    }  # fmt: skip
    program = satura.optimize(make_model(nodes, {"x": (1, 3, 9, 8)}, constants))
    ops = [each.op_type for each in to_model(program).graph.node]
    assert ops == ["Conv", "LeakyRelu", "Resize", "Conv", "PRelu"]
    check(program, arguments_of(program, special=False), tolerance=3e-4)


def test_ops_of_f16_come_back() -> None:
    build = Builder()
    x = build.input("x", DType.F16, (3, 4))
    six = build.broadcast(build.constant(np.full((1, 1), 6, np.float16)), (3, 4))
    clipped = build.binary("min", build.unary("relu", x), six)
    program = build.program({"y": clipped})
    assert [each.op_type for each in to_model(program).graph.node] == ["Clip"]
    check(program, arguments_of(program))


@pytest.mark.parametrize("dtype", [DType.F32, DType.BOOL])
def test_extrema_along_an_axis_that_is_empty_at_some_sizes(dtype: DType) -> None:
    build = Builder()
    x = build.input("x", dtype, (symbol("n"), 3))
    program = build.program({name: build.reduce(name, x, (0,)) for name in ("max", "min")})
    check(program, *(arguments_of(program, n=n) for n in (0, 1, 4)))


@pytest.mark.filterwarnings("ignore::satura.rewrite.errors.LimitWarning")
def test_nodes_of_a_model_come_back_where_nothing_is_cheaper() -> None:
    nodes = [
        node("DynamicQuantizeLinear", "rows", "q s z"), node("MatMulInteger", "q w z", "a"),
        node("ArgMax", "rows", "b", axis=-1), node("ReduceL2", "rows", "c", axes=[1]),
        node("DepthToSpace", "x", "d", blocksize=2), node("TopK", "rows two", "e f"),
        node("GridSample", "x grid", "g", mode="bilinear"),
        node("Resize", "x none scales", "h", mode="linear"),
        node("QuantizeLinear", "x step zero", "x8"), node("DequantizeLinear", "x8 step zero", "xq"),
        node("DequantizeLinear", "k step nought", "kq"),
        node("Conv", "xq kq bias", "cq", pads=[1, 1, 1, 1]), node("Relu", "cq", "rq"),
        node("QuantizeLinear", "rq step zero", "i"),
    ]  # fmt: skip
    nodes[7].input[1] = ""
    constants = {
        "w": np.arange(-6, 6, dtype=np.int8).reshape(4, 3), "two": [2],
        "scales": np.array([1, 1, 2, 3], np.float32), "step": np.float32(0.25),
        "zero": np.uint8(128), "nought": np.int8(0), "bias": np.array([0.5, 1, 2, 0], np.float32),
        "k": np.arange(-72, 72, dtype=np.int8).reshape(4, 4, 3, 3),
    }  # fmt: skip
    inputs = {"x": (1, 4, 5, 6), "grid": (1, 3, 4, 2), "rows": (3, 4)}
    model = make_model(nodes, inputs, constants, outputs=tuple("abcdefghi"))
    program = satura.optimize(model, limits=satura.Limits(rounds=1))
    written = Counter(each.op_type for each in to_model(program).graph.node)
    assert written == Counter(each.op_type for each in nodes)
    check(program, arguments_of(program, special=False), tolerance=2e-5)


OF_F16 = {
    "ReduceLogSumExp": [-1000, -1000, -999, -np.inf],
    "ReduceLogSum": [60000, 60000, 5, 1],
    "ReduceSumSquare": [0.01, 0.02, 0.03, 0.0005],
}


@pytest.mark.parametrize("name", OF_F16)
def test_a_node_of_f16_does_not_come_back_where_newer_opsets_define_it_by_others(name: str) -> None:
    """onnxruntime would round what is between these: 0 behind the exponentials, and infinities."""
    x = Typed((4, "n"), TensorProto.FLOAT16)
    model = make_model([node(name, axes=[0], keepdims=0)], {"x": x}, opset=13)
    saved = to_model(satura.optimize(model))
    assert name not in {each.op_type for each in saved.graph.node}
    given = {"x": np.array(OF_F16[name], np.float16).reshape(4, 1)}
    (result,), (expected,) = (run(each, given) for each in (saved, model))
    np.testing.assert_allclose(result.astype(np.float32), expected.astype(np.float32), rtol=2e-3)


def test_nodes_whose_inputs_changed_places_do_not_come_back_in_newer_opsets() -> None:
    assert means_the_same("Resize", 11, 13) and not means_the_same("Resize", 10, 11)
    assert means_the_same("BatchNormalization", 9, 15)


def graph(op_type: str) -> GraphProto:
    """A graph of one node."""
    return helper.make_graph([node(op_type, "x", "y")], "inside", [], [])


@pytest.mark.parametrize(
    ("written", "types", "is_old"),
    [
        (node("AveragePool", "x", kernel_shape=[2, 2], auto_pad="NOTSET"), (), True),
        (node("AveragePool", "x", kernel_shape=[2, 2], dilations=[2, 2]), (), False),
        (node("Pad", "x p"), (), True),
        (node("Pad", "x p", mode="wrap"), (), False),
        (node("Pad", "x p"), ("tensor(float8e5m2)",), False),
        (node("Gelu", "x"), (), False),
        (node("Relu", "x"), ("tensor(float8e5m2)",), True),
        (node("Scan", "x p q", body=graph("Relu"), num_scan_inputs=1), (), True),
        (node("Scan", "x p q", body=graph("Gelu"), num_scan_inputs=1), (), False),
    ],
)
def test_what_came_with_newer_opsets_is_told(
    written: NodeProto, types: tuple[str, ...], is_old: bool
) -> None:
    every = {"tensor(float)", *types}
    assert is_one_of(written, 18, 21, lambda name: every) is is_old


@pytest.mark.deep
def test_models_saved_again_give_what_they_gave() -> None:
    """A part of the onnx package's own tests, where onnxruntime runs the original."""
    same = 0
    for case in list(sample().values())[::3]:
        model = case.model
        assert model is not None and case.data_sets is not None
        names = [info.name for info in model.graph.input]
        arguments = dict(zip(names, map(np.asarray, case.data_sets[0][0]), strict=False))
        try:
            expected = run(model, arguments)
        except Exception:  # onnxruntime's errors have no class in common
            continue
        try:
            saved = to_model(satura.optimize(model, limits=satura.Limits(rounds=1)))
        except SaturaError:
            continue
        for found, wanted in zip(run(saved, arguments), expected, strict=True):
            assert found.shape == wanted.shape and found.dtype == wanted.dtype, case.name
            if DType.of(wanted.dtype).is_float:
                assert_close(found, wanted, 1e-2 if wanted.itemsize < 4 else 1e-4, case.name)
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=case.name)
        same += 1
    assert same > 30


def test_open_extents_of_reshapes_need_no_nodes() -> None:
    build = Builder()
    n, m = symbol("n"), symbol("m")
    x = build.input("x", DType.F32, (n, m, 6))
    turned = build.transpose(build.input("z", DType.F32, (1, n, 4)), (1, 0, 2))
    results = {
        "a": build.reshape(x, (n, m, 2, 3)), "b": build.reshape(turned, (1, n, 2, 2)),
        "c": build.reshape(turned, (n * 4,)), "d": build.reshape(x, (m, n, 6)),
    }  # fmt: skip
    program = build.program(results)
    model = to_model(program)
    shapes = [each.op_type for each in model.graph.node if each.op_type == "Shape"]
    assert len(shapes) == 2  # for d
    check(program, *(arguments_of(program, n=n, m=m) for n in (0, 1, 3) for m in (0, 2)))


@pytest.mark.parametrize(
    ("start", "end", "shape"),
    [(1, 100, (0, 1, 4)), (0, 5, (0, 2, 2)), (-4, 2**62, (0, 4, 1)), (3, -3, (0, 4, 1))],
)
def test_slices_are_clamped_at_every_size(start: int, end: int, shape: tuple[int, ...]) -> None:
    nodes = [node("Slice", "x s e", "a"), node("Reshape", "a shape")]
    constants = {"s": [start], "e": [end], "shape": shape}
    model = make_model(nodes, {"x": ("n", 4)}, constants)
    saved = to_model(satura.optimize(model))
    for n in (0, 1, 3, 4, 5, 6, 7, 99, 100, 101):
        x = np.arange(n * 4, dtype=np.float32).reshape(n, 4)
        wanted = x[start:end]
        (found,) = run(saved, {"x": x})
        np.testing.assert_array_equal(found, wanted.reshape(len(wanted), *shape[1:]))


def test_what_stands_between_transposes_is_done_without_them() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (2, 3, 4, 5))
    turned = build.transpose(x, (2, 0, 3, 1))
    padded = build.pad(turned, (0, 1, 2, 0), (3, 0, 1, 0), 0.5)
    cut = build.slice(padded, (1, 0, 2, 0), (5, 3, 6, 3), (1, 1, 1, 1))
    scale = build.constant(values(DType.F32, (5, 1, 6, 1), special=False))
    scaled = build.binary("mul", cut, build.broadcast(scale, (5, 3, 6, 3)))
    joined = build.concat([scaled, cut], 2)
    total = build.reduce("sum", joined, (1, 3))
    program = build.program({"y": build.transpose(total, (1, 3, 0, 2))})
    assert "Transpose" not in {each.op_type for each in to_model(program).graph.node}
    check(program, arguments_of(program, special=False))


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("weights", ["f32", "f16"])
def test_quantised_activations_are_of_an_opset_that_onnxruntime_runs(
    opset: int, weights: str, tmp_path: Path
) -> None:
    """At its default level it refuses a Transpose of int8 QDQ in opset 21; nodes are there once."""
    dtype = np.float16 if weights == "f16" else np.float32
    marks = ("QuantizeLinear", "DequantizeLinear")
    nodes = [
        node("Cast", "x", "c", to=10 if weights == "f16" else 1),
        *(node(mark, f"{x} scale zero", y) for mark, x, y in zip(marks, "cp", "pq", strict=True)),
        node("Transpose", "c", "t", perm=[1, 0]),
        *(node(mark, f"{x} scale zero", y) for mark, x, y in zip(marks, "tu", "uv", strict=True)),
        node("MatMul", "q v"),
    ]
    constants = {"scale": np.array(0.03, dtype), "zero": np.array(0, np.int8)}
    model = make_model(
        nodes, {"x": (4, 8)}, constants, opset=max(opset, 19 if dtype != np.float32 else 0)
    )
    path = tmp_path / "out.onnx"
    satura.save(satura.optimize(model), path)
    (version,) = (each.version for each in onnx.load(path).opset_import)
    assert version == (18 if weights == "f32" else 19)
    given = {"x": values(DType.F32, (4, 8), special=False)}
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_close(session.run(None, given)[0], run(model, given)[0], 1e-3)
    counts = Counter(each.op_type for each in onnx.load(path).graph.node)
    assert counts["QuantizeLinear"] == counts["DequantizeLinear"] == 1


def test_declared_names_of_extents_are_kept(tmp_path: Path) -> None:
    """Where a name is that of one extent, which is computed from sizes."""
    nodes = [
        node("Concat", "past x", "joined", axis=1), node("Relu", "joined", "frames"),
        node("Concat", "x x x x", "fourth", axis=1),
        node("Concat", "x x", "twice", axis=1), node("Concat", "x x x", "thrice", axis=1),
    ]  # fmt: skip
    inputs: Inputs = {"past": ["b", "old", 8], "x": ["b", "new", 8]}
    declared: dict[str, list[str | int | None]] = {
        "joined": ["b", "old + new", 8], "frames": ["b", "length", 8],
        "twice": ["b", "doubled", 8], "thrice": ["b", "length", 8], "fourth": ["b", "new", 8],
    }  # fmt: skip
    model = make_model(nodes, inputs, outputs=tuple(declared))
    for output, dims in zip(model.graph.output, declared.values(), strict=True):
        output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, dims))
    programs = (
        satura.load(model),
        satura.optimize(model),
        satura.compile(model, threads=1).program,
    )
    for program in programs:
        satura.save(program, tmp_path / "out.onnx")
        graph = onnx.load(tmp_path / "out.onnx").graph
        found = {x.name: _dims(x) for x in graph.output}
        assert found["joined"] == ["b", "old + new", 8] and found["frames"][1] == "old + new"
        assert found["twice"][1] == "doubled", "a name of its own"
        assert found["thrice"][1] == "3*new", "a name of two"
        assert found["fourth"][1] == "4*new", "the name of a size"
        assert [_dims(x) for x in graph.input] == [["b", "old", 8], ["b", "new", 8]]


def _dims(value: onnx.ValueInfoProto) -> list[str | int]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
