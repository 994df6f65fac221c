"""The columns of the table of scalar functions: what a row says holds of its reference."""

from __future__ import annotations

import ctypes
import platform
from itertools import product

import numpy as np
import pytest

import satura
from satura.rewrite.ops.elementwise import BINARY, UNARY, ScalarFunction, in_compute_type
from satura.rewrite.program.builder import Builder
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.tensor_type import Array, DType


def values(dtype: DType) -> Array:
    """Numbers with which every law that is wrong fails."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_float:
        numbers = [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 2.5, 0.085, -7.0, 1e4, np.nan, np.inf, -np.inf]
        return np.array(numbers).astype(dtype.numpy)
    least, most = dtype.bounds
    return np.array([0, 1, 2, 3, 7, 100, least, least + 1, most - 1, most], dtype.numpy)


def apply(f: ScalarFunction, *operands: Array) -> Array:
    return in_compute_type(f.reference, *operands)


def tuples(dtype: DType, count: int) -> list[Array]:
    """Columns of all tuples of `values`."""
    return [np.array(column) for column in zip(*product(values(dtype), repeat=count), strict=True)]


def is_commutative(f: ScalarFunction, dtype: DType) -> bool:
    a, b = tuples(dtype, 2)
    return bool(agreement(apply(f, a, b), apply(f, b, a)).all())


def is_associative(f: ScalarFunction, dtype: DType) -> bool:
    a, b, c = tuples(dtype, 3)
    left, right = apply(f, apply(f, a, b), c), apply(f, a, apply(f, b, c))
    return bool(agreement(left, right).all())


@pytest.mark.parametrize("f", BINARY.values(), ids=BINARY.keys())
def test_laws_of_binary_functions_are_those_of_their_rows(f: ScalarFunction) -> None:
    assert f.commutative == all(is_commutative(f, dtype) for dtype in f.dtypes)
    if f.to_bool:
        assert not f.associative and not f.idempotent
        return
    assert f.associative == all(is_associative(f, dtype) for dtype in f.dtypes)
    same = [agreement(apply(f, a, a), a).all() for a in map(values, f.dtypes)]
    assert f.idempotent == all(same)


@pytest.mark.parametrize("f", UNARY.values(), ids=UNARY.keys())
def test_unary_functions_are_idempotent_where_their_rows_say_so(f: ScalarFunction) -> None:
    assert not f.commutative and not f.associative
    once = {dtype: apply(f, values(dtype)) for dtype in f.dtypes}
    again = [
        not f.to_bool and bool(agreement(apply(f, result), result).all())
        for result in once.values()
    ]
    assert f.idempotent == all(again)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_an_element_does_not_depend_on_its_neighbours(name: str) -> None:
    """Alone, in a long array, and beside an operand that all elements share."""
    f, arity = (UNARY[name], 1) if name in UNARY else (BINARY[name], 2)
    for dtype in (dtype for dtype in f.dtypes if dtype in (DType.F32, DType.F64)):
        operands = tuples(dtype, arity)
        together = apply(f, *operands)
        alone = np.array([apply(f, *map(np.array, row)) for row in zip(*operands, strict=True)])
        assert agreement(together, alone).all()
        for shared in values(dtype) if arity == 2 else ():
            column = values(dtype)
            repeated = apply(f, column, np.broadcast_to(shared, column.shape))
            assert agreement(repeated, apply(f, column, np.full_like(column, shared))).all()


def test_known_bounds_keep_nan_and_the_signs_of_zeros() -> None:
    build = Builder()
    bounds = [0.0, -0.0, 6.0, -1.0, np.inf, -np.inf, np.nan]
    given = values(DType.F32)
    x = build.input("x", DType.F32, given.shape)
    results: list[int] = []
    for bound in bounds:
        limit = build.broadcast(build.constant([bound], DType.F32), given.shape)
        results += [build.binary(f, x, limit) for f in ("max", "min")]
        results += [build.binary(f, limit, x) for f in ("max", "min")]
    program = build.program({"y": build.concat(results, 0)})
    found = satura.compile(program, 1, rules="none").run({"x": given})["y"]
    meant = interpret(program, {"x": given})["y"]
    assert np.array_equal(found, meant, equal_nan=True)
    numbers = ~np.isnan(meant)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(meant[numbers]))


FE_UNDERFLOW = {"x86_64": 0x10, "aarch64": 0x8}


@pytest.mark.skipif(platform.machine() not in FE_UNDERFLOW, reason="the flag's bit is not known")
@pytest.mark.parametrize("function", ["exp", "sigmoid", "tanh", "softmax"])
def test_what_a_mask_leaves_out_does_not_underflow(function: str) -> None:
    """A product that vanishes takes a CPU as long as fifty others."""
    row = [1.0, -1e4, -3e38, -np.inf, -106.0, -2.0, -200.0, -0.0]
    masked = np.array(row * 8, np.float32).reshape(4, 16)
    build = Builder()
    x = build.input("x", DType.F32, masked.shape)

    def of_rows(name: str, value: int) -> int:
        return build.broadcast(build.reduce(name, value, (1,)), masked.shape)

    if function == "softmax":
        power = build.unary("exp", build.binary("sub", x, of_rows("max", x)))
        y = build.binary("div", power, of_rows("sum", power))
    else:
        y = build.unary(function, x)
    compiled = satura.compile(build.program({"y": y}), 1)
    flags = ctypes.CDLL(None)
    flags.feclearexcept(FE_UNDERFLOW[platform.machine()])
    result = compiled.run({"x": masked})["y"]
    assert not flags.fetestexcept(FE_UNDERFLOW[platform.machine()])
    assert result.tobytes() != masked.tobytes()


@pytest.mark.parametrize(
    "dtype", [each for each in DType if each.is_integer and not each.is_narrow]
)
def test_integers_are_divided_to_the_last_unit(dtype: DType) -> None:
    """Multiples of a divisor, and their neighbours: a quotient must not be rounded up to one."""
    random, (least, most) = np.random.default_rng(0), dtype.bounds
    sizes = random.integers(0, 8 * dtype.itemsize, 3000).astype(dtype.numpy)
    y = random.integers(least, most, 3000, dtype.numpy, endpoint=True) >> sizes
    factors = random.integers(max(least, -9), 10, 3000).astype(dtype.numpy)
    x = y * factors + random.integers(max(least, -1), 2, 3000).astype(dtype.numpy)
    ends = np.array([least, least + 1, 0, 1, most - 1, most], dtype.numpy)
    arguments = {"x": np.append(x, np.repeat(ends, 6)), "y": np.append(y, np.tile(ends, 6))}
    build = Builder()
    operands = [build.input(name, dtype, each.shape) for name, each in arguments.items()]
    results = {name: build.binary(name, *operands) for name in ("div", "mod", "fmod")}
    program = build.program(results)
    found, wanted = satura.compile(program, 1).run(arguments), interpret(program, arguments)
    for name in results:
        np.testing.assert_array_equal(found[name], wanted[name])
