"""Laws above many ops: parameters that stand for an op and its operands, and a rule for each op.

    @family
    def transpose_past(f: Elementwise, xs: Operands[Varying], p: Perm) -> Law:
        \"\"\"f(transpose(x, p)…) = transpose(f(x…), p)\"\"\"
        return rewrites(f(xs.each(transpose, p)), transpose(f(xs), p))

is one rule for each elementwise op: `transpose_past_unary`, `transpose_past_cast` and so on. The
attributes of the op are variables of these rules and stand in `f`.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar, cast

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.language.expressions import attribute_function
from satura.rewrite.language.mistakes import MistakeError
from satura.rewrite.language.terms import Operand, Tensor, Term, Varying, application
from satura.rewrite.ops import Kind, Op
from satura.rewrite.types.attributes import Attribute, BinaryFn, Refuse, Shape, UnaryFn
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.tensor_type import DType, TensorType

X_co = TypeVar("X_co", bound=Term | Constant, covariant=True)


class OtherArityError(MistakeError):
    """A law gives an op another number of operands than it has."""


@dataclass(frozen=True)
class Operands(Generic[X_co]):
    """All operands of an op, in a law above many ops; of `Operands[Varying]` at least one varies.

    `places` says which of the op's operands they are.
    """

    places: tuple[int, ...]
    terms: tuple[X_co, ...]

    def each(self, op: Callable[..., Term], *arguments: object) -> Operands[Term]:
        """`op` of every operand; a `Scalars` argument gives one scalar to each."""
        columns = [
            value if isinstance(value, Scalars) else [value] * len(self.terms)
            for value in arguments
        ]
        return Operands(self.places, tuple(map(op, self.terms, *columns)))

    def __iter__(self) -> Iterator[X_co]:
        return iter(self.terms)

    @property
    def shape(self) -> Shape:
        """The shape of the first one."""
        return Shape(_type(self.terms[0]).shape)

    @property
    def of_one_shape(self) -> tuple[bool, ...]:
        """The conditions that all have the shape of the first one."""
        first = _type(self.terms[0])
        return tuple(_type(term).shape == first.shape for term in self.terms[1:])


class Some(Operands[X_co]):
    """Some operands of an op, at least one, each of the sort given, where `Others` are the others.

    Every way to divide the operands is a rule of its own: `Some` as x and `Others` as y make the
    rules `_xy` and `_yx` of a binary op, and none of an op with one operand.
    """


class Others(Operands[X_co]):
    """The operands of an op that are not in `Some`, at least one, each of the sort given.

    There may be none for one of several parameters that are `Others`.
    """


def _type(operand: Term | Constant) -> TensorType:
    return operand.type


class Scalars(tuple[Scalar, ...]):
    """A 0-d constant for each operand of an op."""


@dataclass(frozen=True)
class AnyOp:
    """An op and its attributes: what a law above many ops is about."""

    op: Op
    attributes: tuple[Attribute, ...]

    @classmethod
    def has(cls, op: Op) -> bool:
        """Whether laws with this sort are about `op`."""
        raise NotImplementedError

    def __call__(self, *operands: Operand | Operands[Term] | Scalars) -> Term:
        """The op on single operands in order, on scalars, or on operands in their places."""
        placed: dict[int, object] = {}
        for operand in operands:
            if isinstance(operand, Operands):
                placed |= zip(operand.places, operand.terms, strict=True)
            else:
                several = operand if isinstance(operand, Scalars) else (operand,)
                placed |= enumerate(several, len(placed))
        if len(placed) != self.op.arity:
            raise OtherArityError(f"{self.op.name} is given {len(placed)} operands")
        ordered = (placed[place] for place in sorted(placed))
        return application(self.op, (*ordered, *self.attributes))

    @attribute_function
    def element(self, scalars: tuple[Scalar, ...]) -> Scalar:
        """The op on 0-d constants, by its own type rule and reference."""
        try:
            self.op.infer(tuple(Constant(v.array).type for v in scalars), self.attributes)
        except ProgramError as error:
            raise Refuse(str(error)) from error
        result = np.asarray(self.op.reference(*(v.array for v in scalars), *self.attributes))
        return Scalar(DType.of(result.dtype), result.tobytes())


class Elementwise(AnyOp):
    """Any elementwise op: `unary`, `binary`, `select`, `cast`, or a user's op with a formula."""

    @classmethod
    def has(cls, op: Op) -> bool:
        return op.kind is Kind.ELEMENTWISE


class Arithmetic(Elementwise):
    """Any elementwise op but `select`, which computes nothing."""

    @classmethod
    def has(cls, op: Op) -> bool:
        return op.kind is Kind.ELEMENTWISE and op.name != "select"


class Contraction(AnyOp):
    """Any op that sums products: `matmul` or `conv`. A `winograd` is a conv as well, to which
    the laws apply; an `attention` sums products of two kinds."""

    @classmethod
    def has(cls, op: Op) -> bool:
        return op.kind is Kind.CONTRACTION and op.name not in ("winograd", "attention")


FAMILY_SORTS = (Elementwise, Arithmetic, Contraction, Operands, Some, Others, Scalars)
Sorts = Mapping[str, type]  # of parameters; Operands, Some and Others have an argument

_FUNCTION = re.compile(r"\bf\(")


@dataclass(frozen=True)
class Reading:
    """How a law above many ops reads for one op; its parameters have `sorts`.

    `shares` are the places of the operands in each of `Some` and `Others`, by parameter.
    """

    op: Op
    sorts: Sorts
    shares: Mapping[str, tuple[int, ...]]

    @property
    def suffix(self) -> str:
        """The end of the rule's name, by which it differs from those of other readings."""
        letters = {place: name[0] for name, places in self.shares.items() for place in places}
        shared = "".join(letters[place] for place in sorted(letters))
        return f"{self.op.name}_{shared}" if shared else self.op.name

    def law(self, text: str) -> str:
        """The law's text, where the op stands for f unless it applies a scalar function f."""
        lifts = any(issubclass(sort, UnaryFn | BinaryFn) for sort in self.op.attributes)
        return text if lifts else _FUNCTION.sub(f"{self.op.name}(", text)

    @property
    def variables(self) -> dict[str, type]:
        """The variables of the rule with their sorts."""
        parts = map(self._parts, self.sorts)
        return {name: sort for each in parts for name, sort in each.items()}

    @property
    def varies(self) -> bool:
        """Whether the law leaves alone what is computed from constants."""
        return any(map(_one_varies, self.sorts.values()))

    @property
    def is_partial(self) -> bool:
        """Whether a parameter stands for no operand, so that variables may be left over."""
        return not all(self.shares.values())

    def arguments(self, variables: Mapping[str, object]) -> dict[str, object]:
        """What the law is called with, where `variables` stand for the variables of the rule."""
        return {name: self._argument(name, variables) for name in self.sorts}

    def _argument(self, name: str, variables: Mapping[str, object]) -> object:
        parts = tuple(variables[part] for part in self._parts(name))
        sort = _class_of(self.sorts[name])
        if issubclass(sort, AnyOp):
            return sort(self.op, cast(tuple[Attribute, ...], parts))
        if issubclass(sort, Operands):
            return sort(self._places(name), cast(tuple[Term, ...], parts))
        return Scalars(cast(tuple[Scalar, ...], parts)) if sort is Scalars else parts[0]

    def _parts(self, name: str) -> dict[str, type]:
        """The variables of the rule that the parameter `name` of the law stands for."""
        sort = _class_of(self.sorts[name])
        if issubclass(sort, AnyOp):
            taken = self.sorts.keys() - {name}
            names = [part + "_" * (part in taken) for part in self.op.attribute_names]
            return dict(zip(names, self.op.attributes, strict=True))
        if sort is not Scalars and not issubclass(sort, Operands):
            return {name: sort}
        places, stem = self._places(name), name.removesuffix("s")
        names = [stem] if len(places) == 1 else [f"{stem}{place + 1}" for place in places]
        if sort is Scalars:
            return dict.fromkeys(names, Scalar)
        (of_each,) = typing.get_args(self.sorts[name])
        return dict.fromkeys(names, Tensor if _one_varies(self.sorts[name]) else of_each)

    def _places(self, name: str) -> tuple[int, ...]:
        """The places of the operands that the parameter `name` stands for."""
        return self.shares.get(name, tuple(range(self.op.arity or 0)))


def _class_of(sort: type) -> type:
    """The class of a sort: Operands of Operands[Tensor]."""
    return typing.get_origin(sort) or sort


def _one_varies(sort: type) -> bool:
    """Whether a sort asks only that one of the operands varies."""
    return _class_of(sort) is Operands and typing.get_args(sort) == (Varying,)


def readings(op: Op, sorts: Sorts) -> Iterator[Reading]:
    """Every reading of a law above many ops, whose parameters have `sorts`, for `op`."""
    parts = {
        name: _class_of(sort) for name, sort in sorts.items() if _class_of(sort) in (Some, Others)
    }
    for chosen in product(parts, repeat=(op.arity or 0) if parts else 0):
        if {Some, Others} <= {parts[name] for name in chosen} or not parts:
            places = {
                name: tuple(place for place, part in enumerate(chosen) if part == name)
                for name in parts
            }
            yield Reading(op, sorts, places)


def sort_of_op(sorts: Sorts) -> type[AnyOp]:
    """The sort of the op that a law above many ops is about."""
    found = [sort for sort in map(_class_of, sorts.values()) if issubclass(sort, AnyOp)]
    if len(found) != 1:
        raise MistakeError(
            "a law above many ops has exactly one parameter of sort Elementwise, Arithmetic or"
            " Contraction"
        )
    return found[0]
