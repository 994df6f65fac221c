"""What a proof takes an op to mean is what its reference computes and its type rule says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from zlib import crc32

import numpy as np
import pytest
import z3

from satura.rewrite.check.instances import Instance, draw_instance
from satura.rewrite.language.terms import (
    Application,
    ScalarTerm,
    Tensor,
    Term,
    build_term,
    subterms,
)
from satura.rewrite.ops.draw import is_concrete
from satura.rewrite.ops.elementwise import BINARY, UNARY, in_compute_type
from satura.rewrite.ops.reductions import REDUCTIONS, combine, reduction_identity
from satura.rewrite.ops.registry import REGISTRY
from satura.rewrite.program.interpreter import interpret
from satura.rewrite.program.program import ProgramBuilder
from satura.rewrite.prove.folds import Fold
from satura.rewrite.prove.matches import constant_of
from satura.rewrite.prove.meaning import MEANINGS, meaning
from satura.rewrite.prove.paths import Budget, Path
from satura.rewrite.prove.tensors import Elements
from satura.rewrite.prove.z3_terms import DTYPES, ELEMENT, code, equal, formula
from satura.rewrite.types.attributes import Attribute, Parameter, Shape, Window
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import Dim, static
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rules import DEFAULT
from tests.tiers import deep_but

LARGEST = 60  # elements of a result


class Checked:
    """Every demand of an op holds on what its type rule accepts."""

    def __init__(self) -> None:
        self.path = Path(z3.Solver(), Budget(100_000))

    def always(self, fact: z3.BoolRef, reason: str) -> None:
        solver = z3.Solver()
        solver.add(self.path.solver.assertions())
        solver.add(z3.Not(fact))
        assert solver.check() == z3.unsat, reason

    def same(self, left: Dim, right: Dim, reason: str) -> None:
        self.always(equal(left, right), reason)

    def natural(self, dim: Dim, reason: str) -> None:
        assert isinstance(dim, int) and dim >= 0, reason

    def at_run_time(self, fact: z3.BoolRef, dims: Sequence[Dim], reason: str) -> None:
        self.always(fact, reason)

    def fail(self, reason: str) -> None:
        raise AssertionError(reason)

    def hint(self, lemma: Callable[[], object]) -> None:
        pass


def meaning_on(term: Term, judge: Checked, bindings: Mapping[str, object]) -> Elements:
    """The meaning of a term on real attributes."""
    if isinstance(term, Tensor):
        type_ = bindings[term.name]
        assert isinstance(type_, TensorType)
        return variable(term.name, type_)
    if isinstance(term, ScalarTerm):
        value = term.value.evaluate(bindings)
        assert isinstance(value, Scalar)
        return constant_of(value)
    assert isinstance(term, Application)
    operands = [meaning_on(operand, judge, bindings) for operand in term.operands]
    attributes = [value.evaluate(bindings) for value in term.attributes]
    return meaning(judge, term.op, operands, attributes)


def variable(name: str, type_: TensorType) -> Elements:
    function = z3.Function(name, *([z3.IntSort()] * type_.rank), ELEMENT)
    return Elements(type_.shape, code(type_.dtype), lambda index: function(*map(formula, index)))


class Evaluator:
    """The value of an element's term, where every index is a number."""

    def __init__(self, arrays: Mapping[str, Array], folds: Mapping[str, Fold]) -> None:
        self.arrays = arrays
        self.folds = {str(fold.name): fold for fold in folds.values()}

    def value(self, term: z3.ExprRef) -> Array:
        name, parts = term.decl().name(), term.children()
        if name in self.arrays:
            index = tuple(z3.simplify(part).as_long() for part in parts)
            assert all(at >= 0 for at in index)
            return np.asarray(self.arrays[name][index])
        if name in self.folds:
            return self.fold(self.folds[name])
        if name.startswith("element "):
            _, dtype, bits = name.split(" ")
            return Scalar(DType(dtype), bytes.fromhex(bits)).array
        if name == "if":
            return self.value(parts[1] if self.truth(parts[0]) else parts[2])
        number = [part.as_long() for part in map(z3.simplify, parts) if z3.is_int_value(part)]
        values = [self.value(part) for part in parts if part.sort() == ELEMENT]
        if name == "cast":
            target = DTYPES[z3.simplify(parts[1]).as_long()]
            return np.asarray(REGISTRY["cast"].reference(*values, target))
        if name == "product":
            return np.asarray(np.multiply(*values))
        table = list({"unary": UNARY, "binary": BINARY}[name].values())
        return in_compute_type(table[number[0]].reference, *values)

    def truth(self, condition: z3.BoolRef) -> bool:
        if condition.decl().name() == "is_true":
            return bool(self.value(condition.arg(0)))
        simple = z3.simplify(condition)
        assert z3.is_true(simple) or z3.is_false(simple), condition
        return bool(z3.is_true(simple))

    def fold(self, fold: Fold) -> Array:
        f = REDUCTIONS[z3.simplify(fold.heads[1]).as_long()] if fold.heads[0] == "reduce" else "sum"
        total: Array | None = None
        for index in itertools.product(*(range(static(extent)) for _, extent in fold.axes)):
            pairs = zip(fold.axes, index, strict=True)
            numbers = [(formula(loop), z3.IntVal(at)) for (loop, _), at in pairs]
            value = self.value(z3.simplify(z3.substitute(fold.body, *numbers)))
            if total is None:
                total = np.full((), reduction_identity(f, DType.of(value.dtype)))
            total = combine(f, total, value)
        if total is None:
            dtype = DTYPES[z3.simplify(fold.heads[-1]).as_long()]
            total = np.full((), reduction_identity(f, dtype))
        return total


def ramp(type_: TensorType, start: int) -> Array:
    """Small numbers, so that sums are exact."""
    shape = tuple(map(static, type_.shape))
    numbers = np.arange(start, start + int(np.prod(shape)))
    values = numbers % 3 == 0 if type_.dtype is DType.BOOL else numbers % 5 + 1
    return values.astype(type_.dtype.numpy).reshape(shape)


def short(value: object) -> object:
    """A float of at most 3 bits in place of a drawn one, so that sums of products are exact."""
    if isinstance(value, Window):
        fill = short(value.fill)
        assert isinstance(fill, Scalar)
        return replace(value, fill=fill)
    if not isinstance(value, Scalar) or not value.dtype.is_float:
        return value
    fraction, exponent = np.frexp(np.float64(value.value))
    return Scalar.of(float(np.ldexp(np.round(fraction * 8) / 8, exponent)), value.dtype)


def compare(instance: Instance) -> bool:
    """Compare the left side's meaning with its reference; False where that would take long."""
    bindings = {name: short(value) for name, value in instance.bindings.items()}
    builder = ProgramBuilder()
    arrays: dict[str, Array] = {}
    tensors: dict[str, int] = {}
    for number, (name, type_) in enumerate(instance.types.items()):
        if not is_concrete(type_.shape):
            return False
        tensors[name] = builder.add("input", (), Parameter(name, type_))
        arrays[name] = ramp(type_, number)
    left = instance.direction.left
    result = build_term(left, builder, tensors, bindings)
    shape = builder.type(result).shape
    if not is_concrete(shape) or np.prod(list(map(static, shape))) > LARGEST:
        return False
    program = builder.program({"result": result})
    expected = interpret(program, arrays)["result"]
    judge = Checked()
    tensor = meaning_on(left, judge, bindings)
    assert tensor.shape == shape
    judge.always(tensor.dtype == code(builder.type(result).dtype), "the dtypes differ")
    for index in np.ndindex(expected.shape):
        term = z3.simplify(tensor.at(index))
        if term.decl().name() != "fold 0" or expected.size < 20:
            value = Evaluator(arrays, judge.path.folds).value(term)
            # NumPy does not know that the NaNs of bfloat16 are equal.
            wide = np.float64 if DType.of(expected.dtype).is_float else expected.dtype
            rounded = value.astype(expected.dtype).astype(wide)
            np.testing.assert_array_equal(rounded, expected[index].astype(wide))
    return True


FOLDS = ("reduce", "pool", "matmul", "conv")


def folds(term: Application) -> int:
    """How many sums and the like stand in a term."""
    inner = (each for each in subterms(term) if isinstance(each, Application))
    return len({id(each) for each in inner if each.op.name in FOLDS})


def knows(left: Term) -> bool:
    """Whether all ops have a meaning, and none folds what is folded: the evaluator takes each fold
    for itself."""
    applications = [term for term in subterms(left) if isinstance(term, Application)]
    if any(term.op.name in FOLDS and folds(term) > 1 for term in applications):
        return False
    return all(term.op.name in MEANINGS and term.op.name != "arg_reduce" for term in applications)


RULES = [entry.name for entry in DEFAULT if all(knows(way.left) for way in entry.directions)]


@pytest.mark.parametrize("name", deep_but(RULES[::20], RULES))
def test_left_sides_mean_what_they_compute(name: str) -> None:
    random = Random(crc32(name.encode()))
    compared = 0
    for attempt in range(400):
        instance = draw_instance(DEFAULT[name].directions[0], random)
        least = 12 if attempt < 100 else 0  # smaller ones show little
        if instance is not None and instance.weight >= least:
            compared += compare(instance)
        if compared == 2:
            break
    assert compared or "conv" in name or "matmul" in name


def test_every_meaning_but_one_is_compared() -> None:
    used = {
        term.op.name
        for name in RULES
        for term in subterms(DEFAULT[name].directions[0].left)
        if isinstance(term, Application)
    }
    assert set(MEANINGS) - used == {"arg_reduce"}


def test_digits_that_mix() -> None:
    x = variable("x", TensorType(DType.F32, (4, 6)))
    moved = MEANINGS["reshape"](Checked(), x, reshape_to(3, 8))
    values = np.arange(24).reshape(4, 6)
    for index in np.ndindex(3, 8):
        term = z3.simplify(moved.at(index))
        read = tuple(part.as_long() for part in term.children())
        assert values[read] == values.reshape(3, 8)[index]


def reshape_to(*dims: int) -> Attribute:
    return Shape(dims)
