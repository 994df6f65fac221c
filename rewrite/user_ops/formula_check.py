"""Trials at an op's declaration: what it takes, and whether formula and reference agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from satura.rewrite.errors import CallError, OpError, ProgramError
from satura.rewrite.ops.expression import Formula
from satura.rewrite.ops.formula import evaluate_formula
from satura.rewrite.ops.registry import Op
from satura.rewrite.types.attributes import Attribute, Count, Refuse
from satura.rewrite.types.comparison import agreement, first_difference
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Dim, symbol
from satura.rewrite.types.tensor_type import COMPUTED, Array, DType, TensorType

Signature = tuple[tuple[DType, ...], DType]
Wrong = Callable[[str], OpError]

VALUES = 96  # tuples of operands per element type
NUMBERS = (1.0, 0.5, 2.0, -1.0, 0.0)  # the first is one of every element type
SHAPES: tuple[tuple[Dim, ...], ...] = ((), (1,), (3, 0), (2, 1, 2, 3), (symbol("n"), 2))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 2.0, 3.5, -7.0, 30.0, -30.0, 100.0)
SPECIAL = (np.inf, -np.inf, np.nan)
INTEGERS = (0, 1, 2, 3, 7, -1, -3, -100)
TOLERANCES = {DType.F64: 1e-6, DType.F32: 1e-3, DType.F16: 1e-2, DType.BF16: 5e-2}


def signatures(op: Op, wrong: Wrong) -> tuple[Signature, ...]:
    """Element types of operands and result that the op takes.

    Raises OpError where it takes none, or where they depend on the shape.
    """
    reason = ""
    for attributes in samples(op):
        found: list[Signature] = []
        for dtypes in itertools.product(DType, repeat=op.arity or 0):
            try:
                found.append((dtypes, _infer(op, dtypes, (2, 3), attributes).dtype))
            except Refuse as refusal:
                reason = reason or str(refusal)
        if found:
            for dtypes, dtype in found:
                _check_shapes(op, dtypes, dtype, attributes, wrong)
            return tuple(found)
    raise wrong(f"it takes no element type: {reason}")


def _check_shapes(
    op: Op, dtypes: tuple[DType, ...], dtype: DType, attributes: tuple[Attribute, ...], wrong: Wrong
) -> None:
    for shape in SHAPES:
        try:
            fits = _infer(op, dtypes, shape, attributes) == TensorType(dtype, shape)
        except Refuse as refusal:
            raise wrong(f"an op with a formula takes every shape: {refusal}") from None
        if not fits:
            raise wrong("an op with a formula gives one element type for every shape")


def _infer(
    op: Op, dtypes: Sequence[DType], shape: tuple[Dim, ...], attributes: tuple[Attribute, ...]
) -> TensorType:
    """What the type rule says. Raises Refuse where it refuses, OpError where it fails."""
    try:
        result = op.type_rule(*(TensorType(dtype, shape) for dtype in dtypes), *attributes)
    except ProgramError as error:  # says which op it is
        raise OpError(str(error)) from error
    assert isinstance(result, TensorType)
    return result


def samples(op: Op) -> Iterator[tuple[Attribute, ...]]:
    """Values to try for the op's attributes."""
    columns: list[Sequence[Attribute]] = []
    for sort in op.attributes:
        if sort is Scalar:
            columns.append([Scalar.of(number, DType.F32) for number in NUMBERS])
        elif sort is Count:
            columns.append([Count(number) for number in (1, 2, 0)])
        else:
            columns.append(COMPUTED)
    return itertools.product(*columns)


def try_formula(op: Op, formula: Formula, taken: Sequence[Signature], wrong: Wrong) -> None:
    """Compare formula and reference on every element type. Raises OpError with an example."""
    attempts = list(itertools.islice(samples(op), len(NUMBERS)))
    for (dtypes, result), attributes in itertools.product(taken, attempts):
        operands = _operands(dtypes)
        try:
            got = evaluate_formula(formula, operands, attributes).astype(result.numpy)
            expected = op.reference(*operands, *attributes)
            op.reference(*(operand[:1].reshape(()) for operand in operands), *attributes)
        except Refuse:
            continue  # the type rule does not take these attributes
        except CallError as error:  # says which op it is
            raise OpError(
                f"{error}; the type rule should refuse what the reference does not take"
            ) from error
        index = first_difference(_agreement(got, expected, result))
        if index is not None:
            values = [f"{x[index]}" for x in operands] + [str(value) for value in attributes]
            raise wrong(
                f"for {' and '.join(dict.fromkeys(dtype.value for dtype in dtypes))} its formula"
                f" gives {got[index]} where its reference gives {expected[index]}, at"
                f" ({', '.join(values)}); mend one, or refuse this element type in the type rule"
            )


def _operands(dtypes: Sequence[DType]) -> list[Array]:
    random = np.random.default_rng(0)
    arrays: list[Array] = []
    for dtype in dtypes:
        if dtype.is_float:
            chosen = np.concatenate(
                [random.choice(FLOATS, VALUES // 2), random.normal(0, 3, VALUES)]
            )
            chosen[:: len(SPECIAL) * 4] = random.choice(SPECIAL, len(chosen[:: len(SPECIAL) * 4]))
        elif dtype is DType.BOOL:
            chosen = random.integers(0, 2, VALUES * 3 // 2)
        else:
            least, most = dtype.bounds
            fitting = [value for value in INTEGERS if least <= value <= most]
            chosen = random.choice(np.array([*fitting, least, most], object), VALUES * 3 // 2)
        arrays.append(np.asarray(chosen).astype(dtype.numpy))
    return arrays


def _agreement(got: Array, expected: Array, dtype: DType) -> NDArray[np.bool_]:
    """Where both are the same up to rounding; a zero's sign counts."""
    if not dtype.is_float:
        return agreement(got, expected)
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(got.astype(np.float64)), np.abs(expected.astype(np.float64)))
    near = agreement(got, expected, TOLERANCES[dtype] * np.maximum(1.0, scale))
    return np.where((got == 0) & (expected == 0), agreement(got, expected), near)
