"""Every op as a kernel of its own, against the NumPy interpreter: all dtypes, special values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from satura.backend.plan.compiled import compile_schedule
from satura.rewrite.errors import CallError
from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.reductions import reduction_identity
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import Program
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType
from tests.random_programs import compare, random_program
from tests.tiers import deep_but, seeds
from tests.trivial_scheduler import one_dispatch, one_dispatch_per_node

# Enough to meet every way of loading, storing, accumulating and comparing.
STORED = [DType.F32, DType.F64, DType.F16, DType.BF16, DType.I8, DType.U64, DType.BOOL]
FLOATS = [dtype for dtype in COMPUTED if dtype.is_float]
# Units in the last place by which a function may be off, of the compute type.
ULPS = {
    "exp": 2, "sigmoid": 4, "tanh": 4, "erf": 4, "log": 2, "sin": 2, "cos": 2, "tan": 4,
    "asin": 4, "acos": 4, "atan": 4, "sinh": 4, "cosh": 4, "asinh": 4, "acosh": 4, "atanh": 4,
    "pow": 2,
}  # fmt: skip


def special_values(dtype: DType) -> Array:
    """Values that are likely to go wrong."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_float:
        largest = {DType.F16: 65504.0, DType.BF16: 3.3895e38, DType.F32: 3.4028e38}.get(
            dtype, 1.7e308
        )
        numbers = [
            0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 1e-3, 1e-7, 7.25, -30.0, 20.0,
            88.0, -88.0, 90.0, -104.0, 127.0, 128.0, 300.0, 65536.0, -1e10, 1e20,
            1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 3 * 2**-11,  # halfway in bf16, in f16
            largest, -largest, np.inf, -np.inf, np.nan,
        ]  # fmt: skip
        with np.errstate(all="ignore"):
            return np.array(numbers).astype(dtype.numpy)
    bounds = np.iinfo(dtype.numpy.name)
    numbers = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100, bounds.max, bounds.max - 1, bounds.min]
    if bounds.min < 0:
        numbers += [-1, -2, -3, -7, -8, -100, bounds.min + 1]
    return np.array(numbers, dtype.numpy)


def computed(program: Program, arguments: Mapping[str, Array], threads: int = 2) -> Array:
    """The single output of `program`, computed by one kernel."""
    (name,) = dict(program.outputs)
    return compile_schedule(one_dispatch(program), threads).run(arguments)[name]


def assert_close(
    name: str, dtype: DType, got: Array, expected: Array, exact: NDArray[np.float64]
) -> None:
    """Equal bits (any NaN for NaN), or as near to `exact` (in f64) as ULPS allows.

    A zero has its sign.
    """
    same = agreement(got, expected)
    if name in ULPS and dtype.is_float:
        eps = {DType.F16: 2.0**-10, DType.BF16: 2.0**-7}.get(dtype, 0.0)
        compute = np.finfo(dtype.compute.numpy.name)
        eps += ULPS[name] * float(compute.eps)
        tiny = float(compute.smallest_subnormal) * 4
        tiny += 1e-7 if dtype is DType.F16 else 0.0
        same |= agreement(got.astype(np.float64), exact, eps * np.abs(exact) + tiny)
    if dtype.is_float and got.dtype != np.bool_:
        same &= (expected != 0) | (np.signbit(got) == np.signbit(expected))
    assert same.all(), (name, dtype, got[~same][:5], expected[~same][:5])


def all_functions(
    names: Sequence[str], dtype: DType, operands: Sequence[Array]
) -> tuple[Program, dict[str, Array]]:
    """One output: the results of all functions (as f64 or as they are), one after another."""
    build = Builder()
    nodes = [build.input(f"x{i}", dtype, array.shape) for i, array in enumerate(operands)]
    results = []
    for name in names:
        result = build.unary(name, *nodes) if len(nodes) == 1 else build.binary(name, *nodes)
        results.append(result)
    program = build.program({"y": build.concat(results, 0)})
    return program, {f"x{i}": array for i, array in enumerate(operands)}


def check_functions(names: Sequence[str], dtype: DType, operands: Sequence[Array]) -> None:
    program, arguments = all_functions(names, dtype, operands)
    got = computed(program, arguments).reshape(len(names), -1)
    table = UNARY if len(operands) == 1 else BINARY
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)["y"].reshape(len(names), -1)
        for row, name in enumerate(names):
            exact: NDArray[np.float64] = np.zeros(got.shape[1])
            if name in ULPS and dtype.is_float:
                wide = [array.astype(np.float64) for array in operands]
                exact = table[name].reference(*wide).astype(np.float64)
            assert_close(name, dtype, got[row], expected[row], exact)


@pytest.mark.parametrize("dtype", deep_but([DType.F32], COMPUTED))
def test_unary_functions(dtype: DType) -> None:
    values = special_values(dtype)
    if dtype.is_float:
        random = np.random.default_rng(0).normal(0, 5, 1000)
        values = np.concatenate([values, random.astype(dtype.numpy)])
    functions = [f for f in UNARY.values() if dtype in f.dtypes]
    for to_bool in (False, True):
        names = [f.name for f in functions if f.to_bool == to_bool]
        if names:
            check_functions(names, dtype, [values])


@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.I8], COMPUTED))
def test_binary_functions(dtype: DType) -> None:
    values = special_values(dtype)
    a, b = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(values, values))
    functions = [f for f in BINARY.values() if dtype in f.dtypes]
    for to_bool in (False, True):
        names = [f.name for f in functions if f.to_bool == to_bool]
        check_functions(names, dtype, [a, b])


@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.U64], COMPUTED))
def test_casts(dtype: DType) -> None:
    """To every dtype, and from there without loss to one that holds them all."""
    values = special_values(dtype)
    for wide, targets in (
        (DType.F64, FLOATS),
        (DType.I64, [to for to in COMPUTED if not to.is_float]),
    ):
        build = Builder()
        x = build.input("x", dtype, values.shape)
        results = [build.cast(build.cast(x, to), wide) for to in targets]
        program = build.program({"y": build.concat(results, 0)})
        with np.errstate(all="ignore"):
            expected = interpret(program, {"x": values})["y"]
        got = computed(program, {"x": values}, threads=1)
        assert compare(expected, got, exact=True) is None, (dtype, targets)


@pytest.mark.parametrize("step", deep_but([32771], [4099, 32771]))
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "erf", "log", "sin", "cos", "tan"])
def test_approximations_keep_their_bounds(name: str, step: int) -> None:
    """Every `step`th f32, every one that matters near 1, and those next to zeros of sin and cos."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    near = np.linspace(-12, 12, 300_001).astype(np.float32)
    zeros = np.outer(2.0 ** np.arange(0, 100, 9), np.arange(1, 5000) * np.pi / 2)
    given = [bits.view(np.float32), near, zeros.ravel().astype(np.float32)]
    check_functions([name], DType.F32, [np.concatenate(given)])


def test_exp_below_a_maximum_keeps_its_bound() -> None:
    """Every 32771st f32 that is not above 0, less the maximum, 0, of its row."""
    bits = np.arange(1 << 31, (255 << 23) + (1 << 31), 32771, dtype=np.uint64).astype(np.uint32)
    below = np.concatenate([bits.view(np.float32), np.linspace(-110, 0, 100_001, dtype=np.float32)])
    build = Builder()
    x = build.input("x", DType.F32, (1, below.size))
    most = build.broadcast(build.reduce("max", x, (1,)), (1, below.size))
    program = build.program({"y": build.unary("exp", build.binary("sub", x, most))})
    got = computed(program, {"x": below[None]}, threads=1)[0]
    exact = np.exp(below.astype(np.float64))
    assert_close("exp", DType.F32, got, exact.astype(np.float32), exact)


def test_pow_keeps_its_bound() -> None:
    """Powers of every magnitude, near 1 to large exponents, and of any two bit patterns."""
    random = np.random.default_rng(0)
    count = 300_000
    bits = random.integers(0, 1 << 32, (2, count), dtype=np.uint64).astype(np.uint32)
    whole = random.integers(-20, 20, (2, count)).astype(np.float32)
    bases = [
        np.exp(random.uniform(-87, 88, count)), 1 + random.normal(0, 1e-4, count), whole[0],
        bits[0].view(np.float32),
    ]  # fmt: skip
    exponents = [
        random.normal(0, 3, count), random.normal(0, 1e5, count), whole[1], bits[1].view(np.float32)
    ]  # fmt: skip
    a, b = (
        np.concatenate([part.astype(np.float32, copy=False) for part in side])
        for side in (bases, exponents)
    )
    check_functions(["pow"], DType.F32, [a, b])


@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.BOOL], STORED))
def test_reductions(dtype: DType) -> None:
    random = np.random.default_rng(1)
    shape = (3, 4, 5, 19)
    values = special_values(dtype)
    x = values[random.integers(len(values), size=shape)]
    small = random.integers(0, 3, shape) if dtype.is_integer else random.normal(0, 1, shape)
    build = Builder()
    given, tame = build.input("x", dtype, shape), build.input("small", dtype, shape)
    outputs: dict[str, int] = {}
    all_axes = ((3,), (1, 2), (0, 2), (0, 1, 2, 3)) if dtype is DType.F32 else ((3,), (0, 2))
    for axes in all_axes:
        outputs[f"max{axes}"] = build.reduce("max", given, axes)
        if dtype is not DType.BOOL:
            outputs[f"sum{axes}"] = build.reduce("sum", tame, axes)
    outputs["min"] = build.reduce("min", given, (3,))
    outputs["first"] = build.arg_reduce("max", given, 3)
    outputs["last"] = build.arg_reduce("min", given, 3, True)
    outputs["column"] = build.arg_reduce("min", given, 1)
    if dtype is not DType.BOOL:
        outputs["prod(1)"] = build.reduce("prod", tame, (1,))
    program = build.program(outputs)
    arguments = {"x": x, "small": small.astype(dtype.numpy)}
    out = compile_schedule(one_dispatch_per_node(program), 2).run(arguments)
    for name, expected in interpret(program, arguments).items():
        exact = not dtype.is_float or name.split("(")[0] not in ("sum", "prod")
        assert compare(expected, out[name], exact) is None, (dtype, name)


@pytest.mark.parametrize("dtype", deep_but([DType.F32], STORED[:-1]))
def test_windows_and_contractions(dtype: DType) -> None:
    random = np.random.default_rng(2)

    def draw(*shape: int) -> Array:
        return random.integers(0, 3, shape).astype(dtype.numpy)

    build = Builder()
    x = build.input("x", dtype, (2, 7, 6, 10))
    outputs: dict[str, int] = {}
    windows = [
        build.window(
            dtype, (1, 3, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1), (0, 1, 1, 0), (0, 2, 0, 0), 1
        ),
        build.window(dtype, (1, 2, 3, 3), (1, 1, 2, 2), None, (0, 1, 0, 2), (0, 0, 3, 1), 0),
        build.window(dtype, (2, 1, 1, 1), None, None, (0, 3, 0, 0), None, 2),
    ]
    functions = (("sum", "max"), ("min", "sum"), ("prod", "max"))
    for number, window in enumerate(windows):
        for f in functions[number]:
            outputs[f"{f}{number}"] = build.pool(f, x, window)
    spatial = build.window(dtype, (3, 2), (2, 1), (1, 2), (1, 1), (0, 2), 0)
    filled = build.window(dtype, (3, 2), None, None, (1, 1), (0, 2), 1)
    for groups, columns, window in (
        (1, 4, spatial), (2, 6, filled), (10, 10, spatial), (10, 20, filled),
    ):  # fmt: skip
        weight = build.constant(draw(3, 2, 10 // groups, columns), dtype)
        outputs[f"conv{groups}"] = build.conv(x, weight, window, groups)
    w = build.input("w", dtype, (3, 2, 5, 6))
    outputs["varying weights"] = build.conv(x, w, filled, 2)
    y = build.input("y", dtype, (2, 7, 10, 33))
    outputs["matmul"] = build.matmul(x, y)
    if dtype is DType.F32:
        turned = build.transpose(y, (0, 1, 3, 2)), build.transpose(x, (0, 1, 3, 2))
        outputs["turned"] = build.matmul(*turned)
    program = build.program(outputs)
    arguments = {"x": draw(2, 7, 6, 10), "y": draw(2, 7, 10, 33), "w": draw(3, 2, 5, 6)}
    out = compile_schedule(one_dispatch_per_node(program), 2).run(arguments)
    for name, expected in interpret(program, arguments).items():
        assert compare(expected, out[name], not dtype.is_float) is None, (dtype, name)


@pytest.mark.parametrize("dtype", deep_but([], [DType.F16, DType.BF16]))
def test_contractions_of_half_precision(dtype: DType) -> None:
    """Packed as f32: whole numbers, whose sums are exact, in every layout of the operands."""
    random = np.random.default_rng(6)

    def draw(*shape: int) -> Array:
        return random.integers(-2, 3, shape).astype(dtype.numpy)

    build = Builder()
    given = {"x": draw(2, 37, 70), "y": draw(2, 70, 35), "z": draw(2, 9, 8, 12)}
    x, y, z = (build.input(name, dtype, array.shape) for name, array in given.items())
    turned = build.transpose(y, (0, 2, 1)), build.transpose(x, (0, 2, 1))
    border = build.window(dtype, (3, 2), (2, 1), (1, 2), (1, 1), (0, 2), 1)
    plain = build.window(dtype, (1, 1))
    program = build.program({
        "varying": build.matmul(x, y),
        "turned": build.unary("relu", build.matmul(*turned)),
        "constant": build.matmul(x, build.constant(draw(2, 70, 35), dtype)),
        "border": build.conv(z, build.constant(draw(3, 2, 12, 20), dtype), border),
        "groups": build.conv(z, build.constant(draw(3, 2, 4, 18), dtype), border, 3),
        "one tap": build.conv(z, build.constant(draw(1, 1, 12, 20), dtype), plain),
    })  # fmt: skip
    compiled = compile_schedule(one_dispatch_per_node(program), 2)
    assert sum("tile_" in kernel.source for kernel in compiled.executables()) > 3
    out = compiled.run(given)
    for name, expected in interpret(program, given).items():
        assert compare(expected, out[name], exact=True) is None, (dtype, name)


@pytest.mark.parametrize("dtype", deep_but([], STORED[:-1]))
def test_windows_along_the_last_axis(dtype: DType) -> None:
    """As pools of channels-first tensors have them: special values, borders of every width."""
    values = special_values(dtype)
    x = values[np.random.default_rng(4).integers(len(values), size=(2, 3, 9, 37))]
    build = Builder()
    node = build.input("x", dtype, x.shape)
    one = (1, 1)
    outputs: dict[str, int] = {}
    for size, stride, lo, hi in ((3, 1, 1, 1), (3, 2, 1, 0), (5, 1, 4, 0), (2, 2, 0, 1)):
        for f in ("max", "min"):
            fill = reduction_identity(f, dtype) if lo != 4 else 1
            window = build.window(
                dtype, (*one, size, size), (*one, stride, stride), None, (0, 0, lo, lo),
                (0, 0, hi, hi), fill,
            )  # fmt: skip
            outputs[f"{f} {size} {stride}"] = build.pool(f, node, window)
    program = build.program(outputs)
    out = compile_schedule(one_dispatch_per_node(program), 2).run({"x": x})
    for name, expected in interpret(program, {"x": x}).items():
        assert compare(expected, out[name], exact=True) is None, (dtype, name)


def test_weights_that_are_not_finite_count_outside_the_border() -> None:
    build = Builder()
    x = build.input("x", DType.F32, (1, 3, 3, 4))
    window = build.window(DType.F32, (3, 3), None, None, (1, 1), (1, 1), 0)
    weight = np.ones((3, 3, 1, 4), np.float32)
    weight[0, 0, 0, 1] = np.inf
    program = build.program({"y": build.conv(x, build.constant(weight), window, 4)})
    arguments = {"x": np.ones((1, 3, 3, 4), np.float32)}
    out = compile_schedule(one_dispatch_per_node(program), 1).run(arguments)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)
    np.testing.assert_array_equal(out["y"], expected["y"])


@pytest.mark.parametrize("times", deep_but([2, 5], [2, 3, 4, 5]))
@pytest.mark.parametrize("dtype", deep_but([DType.F32, DType.I8], [DType.F32, DType.I8, DType.F16]))
def test_repeated_elements(dtype: DType, times: int) -> None:
    """Upsampling: a short loop along which the result is stored."""
    values = special_values(dtype)
    x = values[np.random.default_rng(5).integers(len(values), size=(3, 5, 21))]
    build = Builder()
    node = build.reshape(build.input("x", dtype, x.shape), (3, 5, 1, 21, 1))
    repeated = build.broadcast(node, (3, 5, times, 21, times))
    both = build.concat([build.reshape(node, (315, 1))] * times, 1)
    program = build.program({
        "up": build.reshape(repeated, (3, 5 * times, 21 * times)),
        "side by side": build.unary("neg", both),
    })  # fmt: skip
    out = compile_schedule(one_dispatch_per_node(program), 2).run({"x": x})
    for name, expected in interpret(program, {"x": x}).items():
        assert compare(expected, out[name], exact=True) is None, name


@pytest.mark.parametrize("dtype", deep_but([DType.F16], STORED))
def test_layout_and_indexing(dtype: DType) -> None:
    values = special_values(dtype)
    x = values[np.random.default_rng(3).integers(len(values), size=(4, 6, 10))]
    build = Builder()
    node = build.input("x", dtype, x.shape)
    at = build.input("at", DType.I64, (3, 2))
    program = build.program({
        "transpose": build.transpose(node, (2, 0, 1)),
        "reshape": build.reshape(build.transpose(node, (1, 0, 2)), (8, 30)),
        "broadcast": build.broadcast(build.reshape(node, (4, 1, 6, 10)), (4, 3, 6, 10)),
        "slice": build.slice(node, (3, 0, 9), (2, 3, 4), (-2, 2, -3)),
        "pad": build.pad(node, (1, 0, 2), (0, 2, 1), 1),
        "concat": build.concat([node, node, build.slice(node, (0, 0, 0), (4, 6, 3))], 2),
        "gather": build.gather(node, at, 1),
        "narrow": build.gather(node, build.cast(at, DType.I32), 0),
        "ramp": build.iota((3, 5), 1, dtype if dtype is not DType.BOOL else DType.I64),
    })  # fmt: skip
    arguments = {"x": x, "at": np.array([[0, -1], [3, -4], [2, 1]])}
    out = compile_schedule(one_dispatch_per_node(program), 2).run(arguments)
    for name, expected in interpret(program, arguments).items():
        assert compare(expected, out[name], exact=True) is None, (dtype, name)


def test_an_index_outside_is_an_error_of_the_call() -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, (5, 3)), build.input("at", DType.I64, (2,))
    program = build.program({"y": build.gather(x, at, 0)})
    compiled = compile_schedule(one_dispatch_per_node(program), 2)
    x_value = np.arange(15, dtype=np.float32).reshape(5, 3)
    for bad in (5, -6, 1 << 60):
        with pytest.raises(CallError, match=r"outside \[-5, 5\)"):
            compiled.run({"x": x_value, "at": np.array([0, bad])})
    good = compiled.run({"x": x_value, "at": np.array([4, -5])})
    np.testing.assert_array_equal(good["y"], x_value[[4, 0]])
    for known in (5, -6):
        build = Builder()
        x = build.input("x", DType.F32, (5, 3))
        program = build.program({"y": build.gather(x, build.constant([0, known]), 0)})
        with pytest.raises(CallError, match=r"outside \[-5, 5\)"):
            compile_schedule(one_dispatch_per_node(program), 1).run({"x": x_value})


@pytest.mark.parametrize("shape", [(20,), (2, 5, 0)])
def test_a_reduction_of_no_elements_reads_no_index(shape: tuple[int, ...]) -> None:
    build = Builder()
    x, at = build.input("x", DType.F32, shape), build.input("at", DType.I64, (20, 0))
    gathered = build.gather(x, at, len(shape) - 1)
    outer = 20 if len(shape) == 1 else 200
    merged = build.reshape(gathered, (outer, 0))
    program = build.program({"y": build.reduce("sum", merged, (0, 1))})
    arguments = {"x": np.ones(shape, np.float32), "at": np.full(30, 99)[:0].reshape(20, 0)}
    expected = interpret(program, arguments)["y"]  # 99 is not in what is given, but beside it
    np.testing.assert_array_equal(computed(program, arguments), expected)


@pytest.mark.parametrize("seed", deep_but([], range(50), range(10)))
def test_random_programs_one_kernel_per_node(seed: int) -> None:
    check_random_program(seed)


@pytest.mark.parametrize("seed", deep_but((), seeds(300), ()))
def test_many_random_programs(seed: int) -> None:
    check_random_program(seed)


def check_random_program(seed: int) -> None:
    program, arguments, exact = random_program(seed)
    with np.errstate(all="ignore"):
        expected = interpret(program, arguments)
    out = compile_schedule(one_dispatch_per_node(program), 2).run(arguments)
    for name, array in expected.items():
        difference = compare(array, out[name], exact[name])
        assert difference is None, f"{name}: {difference}\n{program}"
