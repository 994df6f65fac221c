"""Elementwise ops: one result element from one element of each operand.

A scalar function is declared in one row: its NumPy reference, the dtypes it takes, its scalar
formula, its weight in flops, whether it gives bools, the laws that hold of it, and what is known of
its results' digits. The formula is a Python expression in `a` (and `b`); the names it calls are
kernel helpers of `backend/helpers/scalars.py`. A function that a user declares has an expansion
into other functions instead, see `formula.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from satura.rewrite.ops.registry import Kind, op, size_of
from satura.rewrite.types.attributes import BinaryFn, UnaryFn, refuse_unless
from satura.rewrite.types.tensor_type import COMPUTED, FLOATS, Array, DType, TensorType

if TYPE_CHECKING:
    from satura.rewrite.ops.expression import Formula

INTEGERS = frozenset(dtype for dtype in COMPUTED if dtype.is_integer)
NUMBERS = FLOATS | INTEGERS
BOOL = frozenset({DType.BOOL})
BITS = INTEGERS | BOOL
ANY = NUMBERS | BOOL


@dataclass(frozen=True)
class ScalarFunction:
    """A function f on single elements, lifted to tensors by `unary` and `binary`.

    Laws hold bit for bit on all its dtypes, NaN and -0.0 included. It is `commutative` where
    f(a, b) = f(b, a), `associative` where f(f(a, b), c) = f(a, f(b, c)), and `idempotent` where
    f(f(a)) = f(a) or, with two operands, f(a, a) = a. Its results are `irrational` but for few
    operands, and where an operand has a rounding error they have one, too (`keeps_errors`).
    `meaning` says what the formula's name leaves open. What the C library computes, one element at
    a time, takes `slowness` times as long in f32 as its flops do in vectors.
    """

    name: str
    reference: Callable[..., Array]
    dtypes: frozenset[DType]
    formula: str
    flops: float = 1.0
    to_bool: bool = False
    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    irrational: bool = False
    keeps_errors: bool = False
    expansion: Formula | None = None
    meaning: str = ""
    slowness: float = 1.0

    def result(self, dtype: DType) -> DType:
        return DType.BOOL if self.to_bool else dtype


def in_compute_type(function: Callable[..., Array], *operands: Array) -> Array:
    """Apply `function` to f16 and bf16 operands in f32 and round its result once."""
    dtype = DType.of(operands[0].dtype)
    compute = dtype.compute.numpy
    wide = [operand.astype(compute, copy=False) for operand in operands]
    with np.errstate(all="ignore"):
        result = np.asarray(function(*wide))
        if result.dtype == np.bool_:
            return result
        return result.astype(dtype.numpy, copy=False)


def _sigmoid(a: Array) -> Array:
    """1 / (1 + exp(-a))."""
    return np.asarray(1 / (1 + np.exp(np.negative(a))))


def _erf(a: Array) -> Array:
    # Abramowitz and Stegun's series is too coarse for a reference: libm's erf, element by element.
    from math import erf

    flat = [erf(float(value)) for value in a.ravel()]
    return np.array(flat, a.dtype).reshape(a.shape)


def _sign(a: Array) -> Array:
    """-1, 0 or 1; 0.0 of -0.0; NaN stays."""
    return np.asarray(np.sign(a))


def _round(a: Array) -> Array:
    """The nearest whole number, of two the even one."""
    return np.asarray(np.rint(a))


def _relu(a: Array) -> Array:
    """0 where a <= 0, also for -0.0; NaN stays."""
    return np.where(np.less_equal(a, 0), np.zeros_like(a), a)


def _maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum: NaN wins, and -0.0 < 0.0."""
    larger = np.maximum(a, b)
    if a.dtype.kind != "f":
        return np.asarray(larger)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), larger)


def _minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN wins, and -0.0 < 0.0."""
    smaller = np.minimum(a, b)
    if a.dtype.kind != "f":
        return np.asarray(smaller)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), smaller)


def _divide(a: Array, b: Array) -> Array:
    """Floats as IEEE; integers truncate toward zero, and x / 0 is 0."""
    if a.dtype.kind == "f":
        return np.asarray(np.true_divide(a, b))
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind != "u":
        uneven = (quotient * safe != a) & (np.less(a, 0) != np.less(safe, 0))
        quotient = quotient + uneven.astype(a.dtype)
        quotient = np.where(safe == -1, np.negative(a), quotient)  # the smallest integer wraps
    return np.where(b == 0, np.zeros_like(a), quotient)


def _safe_divisor(b: Array) -> Array:
    """b with 1 for what a remainder may not divide by: 0, and -1, which traps for the smallest."""
    unsafe = b == 0 if b.dtype.kind == "u" else (b == 0) | (b == -1)
    return np.where(unsafe, np.ones_like(b), b)


def _modulo(a: Array, b: Array) -> Array:
    """The remainder with the sign of b; x mod 0 is 0 for integers, NaN for floats."""
    if a.dtype.kind == "f":
        return np.asarray(np.mod(a, b))
    safe = _safe_divisor(b)
    return np.where(b == 0, np.zeros_like(a), np.mod(a, safe))


def _fmod(a: Array, b: Array) -> Array:
    """The remainder with the sign of a; x fmod 0 is 0 for integers, NaN for floats."""
    if a.dtype.kind == "f":
        return np.asarray(np.fmod(a, b))
    safe = _safe_divisor(b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, safe))


def _power(a: Array, b: Array) -> Array:
    """Floats as C's pow; integers wrap, and a negative exponent gives the truncated quotient."""
    if a.dtype.kind == "f":  # NumPy's power is a last digit off now and then, also for x and -x
        return np.asarray(np.float_power(a, b)).astype(a.dtype)
    result = np.ones_like(a)
    base, exponent = a.copy(), np.where(np.less(b, 0), np.zeros_like(b), b)
    while exponent.any():
        odd = np.bitwise_and(exponent, 1)
        result = np.where(odd, np.multiply(result, base), result)
        base, exponent = np.multiply(base, base), np.right_shift(exponent, 1)
    if a.dtype.kind == "u":
        return np.asarray(result)
    ones = np.ones_like(a)
    minus = np.where(np.bitwise_and(b, 1), np.negative(ones), ones)
    inverse = np.where(a == 1, ones, np.where(a == -1, minus, np.zeros_like(a)))
    return np.where(np.less(b, 0), inverse, result)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    """The function that shifts."""

    def shift(a: Array, b: Array) -> Array:
        """Right shifts keep the sign. Shifts by the width or more, or by less than 0, give 0."""
        valid = np.greater_equal(b, 0) & np.less(b, a.dtype.itemsize * 8)
        amount = np.where(valid, b, np.zeros_like(b))
        moved = np.left_shift(a, amount) if left else np.right_shift(a, amount)
        return np.where(valid, moved, np.zeros_like(a))

    return shift


def _row(
    name: str,
    reference: Callable[..., object],
    dtypes: frozenset[DType],
    formula: str,
    flops: float = 1.0,
    to_bool: bool = False,
    commutative: bool = False,
    associative: bool = False,
    idempotent: bool = False,
    irrational: bool = False,
    keeps_errors: bool = False,
    slowness: float = 1.0,
) -> tuple[str, ScalarFunction]:
    def as_array(*operands: Array) -> Array:
        return np.asarray(reference(*operands))

    return name, ScalarFunction(
        name, as_array, dtypes, formula, flops, to_bool, commutative, associative, idempotent,
        irrational, keeps_errors,
        meaning=(reference.__doc__ or "") if reference.__module__ == __name__ else "",
        slowness=slowness,
    )  # fmt: skip


_LATTICE = {"commutative": True, "associative": True, "idempotent": True}
_IRRATIONAL = {"irrational": True}
_KEEPS = {"keeps_errors": True}

# fmt: off
UNARY: dict[str, ScalarFunction] = dict((
    _row("neg", np.negative, NUMBERS, "-a", **_KEEPS),
    _row("abs", np.abs, NUMBERS, "absolute(a)", idempotent=True, **_KEEPS),
    _row("relu", _relu, NUMBERS, "relu(a)", idempotent=True, **_KEEPS),
    _row("sign", _sign, NUMBERS, "sign(a)", idempotent=True),
    _row("exp", np.exp, FLOATS, "exp(a)", 10, **_IRRATIONAL),
    _row("log", np.log, FLOATS, "log(a)", 10, **_IRRATIONAL),
    _row("sqrt", np.sqrt, FLOATS, "sqrt(a)", 4, **_IRRATIONAL),
    _row("tanh", np.tanh, FLOATS, "tanh(a)", 12, **_IRRATIONAL),
    _row("sigmoid", _sigmoid, FLOATS, "sigmoid(a)", 12, **_IRRATIONAL),
    _row("erf", _erf, FLOATS, "erf(a)", 20, **_IRRATIONAL),
    _row("sin", np.sin, FLOATS, "sin(a)", 30, **_IRRATIONAL),
    _row("cos", np.cos, FLOATS, "cos(a)", 30, **_IRRATIONAL),
    _row("tan", np.tan, FLOATS, "tan(a)", 40, **_IRRATIONAL),
    _row("asin", np.arcsin, FLOATS, "asin(a)", 20, **_IRRATIONAL),
    _row("acos", np.arccos, FLOATS, "acos(a)", 20, **_IRRATIONAL),
    _row("atan", np.arctan, FLOATS, "atan(a)", 20, **_IRRATIONAL),
    _row("sinh", np.sinh, FLOATS, "sinh(a)", 20, **_IRRATIONAL, slowness=30),
    _row("cosh", np.cosh, FLOATS, "cosh(a)", 20, **_IRRATIONAL, slowness=30),
    _row("asinh", np.arcsinh, FLOATS, "asinh(a)", 20, **_IRRATIONAL, slowness=30),
    _row("acosh", np.arccosh, FLOATS, "acosh(a)", 20, **_IRRATIONAL, slowness=30),
    _row("atanh", np.arctanh, FLOATS, "atanh(a)", 20, **_IRRATIONAL),
    _row("floor", np.floor, FLOATS, "floor(a)", idempotent=True),
    _row("ceil", np.ceil, FLOATS, "ceil(a)", idempotent=True),
    _row("round", _round, FLOATS, "rint(a)", idempotent=True),
    _row("isnan", np.isnan, FLOATS, "a != a", to_bool=True),
    _row("isinf", np.isinf, FLOATS, "isinf(a)", to_bool=True),
    _row("not", np.logical_not, BOOL, "not a"),
    _row("bitnot", np.invert, INTEGERS, "~a"),
))

BINARY: dict[str, ScalarFunction] = dict((
    _row("add", np.add, NUMBERS, "a + b", commutative=True, **_KEEPS),
    _row("sub", np.subtract, NUMBERS, "a - b", **_KEEPS),
    _row("mul", np.multiply, NUMBERS, "a * b", commutative=True, **_KEEPS),
    _row("div", _divide, NUMBERS, "divide(a, b)", 4, **_KEEPS),
    _row("mod", _modulo, NUMBERS, "modulo(a, b)", 8, slowness=60),
    _row("fmod", _fmod, NUMBERS, "fmod(a, b)", 8, slowness=60),
    _row("pow", _power, NUMBERS, "power(a, b)", 60, **_KEEPS),
    _row("max", _maximum, NUMBERS, "maximum(a, b)", **_LATTICE, **_KEEPS),
    _row("min", _minimum, NUMBERS, "minimum(a, b)", **_LATTICE, **_KEEPS),
    _row("eq", np.equal, ANY, "a == b", to_bool=True, commutative=True),
    _row("lt", np.less, NUMBERS, "a < b", to_bool=True),
    _row("le", np.less_equal, NUMBERS, "a <= b", to_bool=True),
    _row("and", np.bitwise_and, BITS, "a & b", **_LATTICE),
    _row("or", np.bitwise_or, BITS, "a | b", **_LATTICE),
    _row("xor", np.bitwise_xor, BITS, "a ^ b", commutative=True, associative=True),
    _row("shl", _shift(True), INTEGERS, "shift_left(a, b)"),
    _row("shr", _shift(False), INTEGERS, "shift_right(a, b)"),
))
# fmt: on

COMMUTATIVE = tuple(name for name, function in BINARY.items() if function.commutative)
IDEMPOTENT = tuple(name for name, function in UNARY.items() if function.idempotent)


@op(
    kind=Kind.ELEMENTWISE,
    reference=lambda x, f: in_compute_type(UNARY[f.name].reference, x),
    flops=lambda result, x, f: UNARY[f.name].flops * size_of(result),
)
def unary(x: TensorType, f: UnaryFn) -> TensorType:
    """f of each element."""
    refuse_unless(f.name in UNARY, f"there is no unary function '{f}'")
    refuse_unless(x.dtype in UNARY[f.name].dtypes, f"{f} does not take {x.dtype.value}")
    return x.with_dtype(UNARY[f.name].result(x.dtype))


@op(
    kind=Kind.ELEMENTWISE,
    reference=lambda x, y, f: in_compute_type(BINARY[f.name].reference, x, y),
    flops=lambda result, x, y, f: BINARY[f.name].flops * size_of(result),
)
def binary(x: TensorType, y: TensorType, f: BinaryFn) -> TensorType:
    """f of each pair of elements; both operands have the same type, broadcasts are explicit."""
    refuse_unless(f.name in BINARY, f"there is no binary function '{f}'")
    refuse_unless(x == y, "the operands' types differ")
    refuse_unless(x.dtype in BINARY[f.name].dtypes, f"{f} does not take {x.dtype.value}")
    return x.with_dtype(BINARY[f.name].result(x.dtype))


@op(kind=Kind.ELEMENTWISE, reference=np.where, flops=lambda result, *_: size_of(result))
def select(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """x where the condition holds, else y."""
    refuse_unless(condition == x.with_dtype(DType.BOOL), f"condition is {condition}")
    refuse_unless(x == y, "the operands' types differ")
    return x


def convert(x: Array, dtype: DType) -> Array:
    """Float to integer truncates and saturates, NaN gives 0; to bool, all but 0 is true.

    Floats beyond a narrow float become its infinity, its NaN, or where it has none its largest.
    """
    if dtype is DType.BOOL:
        return np.asarray(x != 0)
    if dtype.is_integer and DType.of(x.dtype).is_float:
        least, most = dtype.bounds
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = np.where((wide >= float(least)) & (wide < float(most) + 1), wide, 0)
        result = inside.astype(dtype.compute.numpy)
        result = np.where(wide < float(least), least, result)
        return (
            np.where(wide >= float(most), most, result)
            .astype(dtype.compute.numpy)
            .astype(dtype.numpy)
        )
    with np.errstate(all="ignore"):
        if dtype.is_narrow and dtype.is_integer:  # of an integer the low bits count
            codes = np.asarray(x.astype(np.int64) & dtype.bounds[1] - dtype.bounds[0])
            return codes.astype(np.uint8).astype(dtype.numpy)
        if dtype.is_float and dtype.compute is not dtype:
            x = np.where(np.isnan(x), 0, x) if dtype is DType.F4E2M1 else x  # it has no NaN
            fits = x.dtype == np.float32 or x.dtype.itemsize < 4
            return (x.astype(np.float32) if fits else _to_odd(x)).astype(dtype.numpy)
        return x.astype(dtype.numpy)


def _to_odd(x: Array) -> Array:
    """Of the two f32 around each number the one with an odd last digit, where neither is equal.

    To a shorter float these round as the numbers themselves.
    """
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:  # an f64 has 53 bits: the last is any of 12
        rest, high = np.bitwise_and(x, 2047), np.right_shift(x, 53)
        joined = np.bitwise_or(np.subtract(x, rest), np.where(rest, 2048, 0).astype(x.dtype))
        x = np.where((high == 0) | (np.add(high, 1) == 0), x, joined)
    x = x.astype(np.float64)
    near = x.astype(np.float32)
    back, bits = near.astype(np.float64), near.view(np.int32)
    odd = (bits - (np.abs(back) > np.abs(x)).astype(np.int32)) | np.int32(1)
    is_between = (back != x) & ~np.isnan(x)
    return np.where(is_between, odd, bits).view(np.float32)


@op(kind=Kind.ELEMENTWISE, reference=convert, flops=lambda result, *_: size_of(result))
def cast(x: TensorType, dtype: DType) -> TensorType:
    """Each element converted to `dtype`: float to integer truncates and saturates, NaN gives 0;
    integer to integer keeps the low bits. To bool, all but zeros are true, NaN as well."""
    return x.with_dtype(dtype)
