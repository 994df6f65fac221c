"""Counterexamples: sizes that z3 found, tried on real arrays.

z3's values are a suggestion: functions that it knows nothing about may behave otherwise. So the law
counts as refuted only when both sides, built at these sizes, differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import cast

import numpy as np
import z3

from satura.rewrite.errors import ProgramError
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Values
from satura.rewrite.language.terms import Term, build_term
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import ProgramBuilder
from satura.rewrite.prove.open_values import (
    NAMES,
    OpenConstant,
    OpenDType,
    OpenScalar,
    OpenType,
    dtype_term,
    function_term,
    is_open_name,
    scalar_parts,
)
from satura.rewrite.prove.proof import Found
from satura.rewrite.prove.size import Size
from satura.rewrite.prove.z3_terms import DTYPES, formula
from satura.rewrite.types.attributes import Parameter, Refuse, Shape
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, static
from satura.rewrite.types.tensor_type import Array, DType, TensorType

LARGEST = 100_000  # elements


class Concrete:
    """The values of one model."""

    def __init__(self, model: z3.ModelRef) -> None:
        self.model = model

    def number(self, term: z3.ArithRef) -> int:
        return int(self.model.eval(term, model_completion=True).as_long())

    def dtype(self, term: z3.ArithRef) -> DType:
        return DTYPES[self.number(term) % len(DTYPES)]

    def value(self, value: object) -> object:
        """`value` with every unknown replaced by its value in the model."""
        if type(value) is Size:
            return self.number(formula(value.term))
        if type(value) is OpenDType:
            return self.dtype(value.term)
        if type(value) is OpenType:
            dims = tuple(cast(Dim, self.value(dim)) for dim in value.shape)
            return TensorType(self.dtype(dtype_term(value.open_dtype)), dims)
        if is_open_name(value):
            sort = next(sort for sort in NAMES if isinstance(value, sort))
            names = NAMES[sort]
            return sort(names[self.number(function_term(value)) % len(names)])
        if isinstance(value, OpenScalar):
            element, dtype = scalar_parts(value)
            # Different elements of the model are different numbers.
            number = sum(map(ord, str(self.model.eval(element, model_completion=True))))
            return Scalar.of(number % 100 + 1, self.dtype(dtype))
        if isinstance(value, OpenConstant):
            return Constant(_ramp(cast(TensorType, self.value(value.open_type)), 50))
        if type(value) is tuple:
            return tuple(map(self.value, value))
        if is_dataclass(value) and not isinstance(value, type):
            parts = (getattr(value, field.name) for field in fields(value))
            return type(value)(*map(self.value, parts))
        return value


def real_counterexample(direction: Direction, values: Values, model: z3.ModelRef) -> Found | None:
    """The match at the model's sizes; None where both sides agree on real arrays."""
    concrete = Concrete(model)
    bindings = {name: concrete.value(values[name]) for name in direction.variables}
    shown = ", ".join(f"{name} = {value}" for name, value in bindings.items())
    try:
        left = _value_of_term(direction.left, bindings)
        if left is None:
            return None
        direction.compute(bindings)
    except (ProgramError, Refuse, ValueError, KeyError):
        return None
    try:
        right = _value_of_term(direction.right, bindings)
    except (ProgramError, Refuse, ValueError) as error:
        return Found(direction, bindings, f"for {shown}: the right side fails: {error}")
    same = right is not None and left.shape == right.shape and left.dtype == right.dtype
    if right is None or (same and agreement(left, right).all()):
        return None
    return Found(direction, bindings, f"for {shown}: the sides differ")


def _value_of_term(term: Term, bindings: Mapping[str, object]) -> Array | None:
    """The term's value on arrays of distinct numbers; None where an array would be too large."""
    builder = ProgramBuilder()
    tensors: dict[str, int] = {}
    arguments: dict[str, Array] = {}
    for number, (name, value) in enumerate(bindings.items()):
        if isinstance(value, TensorType):
            if _size(value) > LARGEST:
                return None
            tensors[name] = builder.add("input", (), Parameter(name, value))
            arguments[name] = _ramp(value, 10 * number)
        elif isinstance(value, Shape) and _size(TensorType(DType.F32, value.dims)) > LARGEST:
            return None
    result = build_term(term, builder, tensors, bindings)
    if _size(builder.type(result)) > LARGEST:
        return None
    program = builder.program({"result": result})
    used = {node.input_name for node in program.nodes if node.op.name == "input"}
    return interpret(program, {name: arguments[name] for name in used})["result"]


def _ramp(type_: TensorType, start: int) -> Array:
    """The numbers that follow `start`, in order; of bool every third element is true."""
    count = int(_size(type_))
    numbers = np.arange(start + 1, start + count + 1)
    if type_.dtype is DType.BOOL:
        numbers = numbers % 3 == 0
    shape = tuple(map(static, type_.shape))
    return numbers.astype(type_.dtype.numpy).reshape(shape)


def _size(type_: TensorType) -> int:
    return static(type_.size)
