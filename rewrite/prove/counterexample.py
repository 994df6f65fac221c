"""Counterexamples: sizes that z3 found, tried on real arrays.

z3's values are a suggestion: functions that it knows nothing about may behave otherwise. So the law
counts as refuted only when both sides, built at these sizes, differ. Where they agree on these
arrays, the sizes are suspects: others may try them on other arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast

import numpy as np
import z3

from satura.rewrite.errors import ProgramError
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Values
from satura.rewrite.language.terms import Term, build_term
from satura.rewrite.ops.draw import SYMBOLS
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
from satura.rewrite.prove.z3_terms import DTYPES, FIXED, formula, generic
from satura.rewrite.types.attributes import Parameter, Refuse, Shape
from satura.rewrite.types.comparison import agreement
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, SymbolicDim, product, static, symbol
from satura.rewrite.types.tensor_type import Array, DType, TensorType

LARGEST = 100_000  # elements
MOST_SUSPECTS = 3  # models


class Concrete:
    """The values of one model, where the unknown numbers that are `opened` stay symbols."""

    def __init__(self, model: z3.ModelRef, opened: Mapping[str, Dim] | None = None) -> None:
        self.model, self.opened = model, opened or {}

    def dim(self, term: SymbolicDim) -> Dim:
        if not self.opened.keys() & term.symbols:
            return self.number(formula(term))
        total: Dim = 0
        for monomial, coefficient in term.terms:
            factors = (
                self.opened.get(str(atom)) or self.number(_actual(atom)) for atom in monomial
            )
            total = total + product((coefficient, *factors))
        return total

    def number(self, term: z3.ArithRef) -> int:
        return int(self.model.eval(term, model_completion=True).as_long())

    def dtype(self, term: z3.ArithRef) -> DType:
        return DTYPES[self.number(term) % len(DTYPES)]

    def value(self, value: object) -> object:
        """`value` with every unknown replaced by its value in the model."""
        if type(value) is Size:
            return self.dim(value.term)
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


def suspects(
    direction: Direction, values: Values, models: Sequence[z3.ModelRef]
) -> Iterator[Mapping[str, object]]:
    """Matches at the sizes of `models`, first with symbols for extents of tensors."""
    found: list[Mapping[str, object]] = []
    for model in models[:MOST_SUSPECTS]:
        for concrete in (Concrete(model, _opened(model, values)), Concrete(model)):
            try:
                bindings = {name: concrete.value(values[name]) for name in direction.variables}
            except (ProgramError, Refuse, ValueError, KeyError):
                continue
            if bindings not in found:
                found.append(bindings)
                yield bindings


def _opened(model: z3.ModelRef, values: Values) -> dict[str, Dim]:
    """The symbols for unknown extents of tensors: one for those that are alike in the model."""
    shapes = [value.shape for value in values.values() if type(value) is OpenType]
    dims = [cast(object, dim) for shape in shapes for dim in shape]
    terms = [dim.term for dim in dims if type(dim) is Size]
    names = dict.fromkeys(name for term in terms for name in sorted(term.symbols))
    concrete, symbols, opened = Concrete(model), list(SYMBOLS), dict[str, Dim]()
    by_value: dict[tuple[int, int], Dim] = {}
    for name in names:
        unknown = symbol(name)
        key = (concrete.number(formula(unknown)), concrete.number(generic(unknown)))
        if not name.startswith(FIXED) and (key in by_value or symbols):
            opened[name] = by_value[key] if key in by_value else symbols.pop(0)
            by_value[key] = opened[name]
    return opened


def _actual(atom: object) -> z3.ArithRef:
    """The number that an atom of a polynomial is; quotients have names in a proof."""
    assert isinstance(atom, str)
    return formula(symbol(atom))


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
