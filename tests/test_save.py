"""Programs saved as ONNX give in onnxruntime what they give in the interpreter, op by op."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import satura
from satura.rewrite.errors import SaturaError
from satura.rewrite.onnx.load import load
from satura.rewrite.onnx.write.save import to_model
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import REDUCTIONS
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.attributes import Padding
from satura.rewrite.types.tensor_type import COMPUTED, DType
from tests.onnx_cases import sample
from tests.onnx_models import Typed, make_model, node
from tests.onnxruntime_reference import WITHOUT_F64, assert_close, run
from tests.saved_programs import FLOATS, INTEGERS, TOLERANCE, arguments_of, check, values
from tests.tiers import deep_but


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
