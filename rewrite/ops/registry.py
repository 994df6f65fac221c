"""The registry: what an op is, stated once.

An op is declared by its type rule; the decorator adds its kind, reference and flops:

    @op(kind=Kind.LAYOUT, reference=lambda x, perm: np.transpose(x, perm.order))
    def transpose(x: TensorType, perm: Perm) -> TensorType:
        \"\"\"Axis i of the result is axis perm[i] of x.\"\"\"
        return x.with_shape(perm.apply(x.shape))

Tensor operands come first and are annotated `TensorType`; every further parameter is an attribute
of the annotated class. `*operands: TensorType` declares any number of operands.

Ops of users are declared by another decorator, see `rewrite/user_ops/declare.py`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from satura.rewrite.errors import OpError, ProgramError, brief
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    BinaryFn,
    ReduceFn,
    Refuse,
    UnaryFn,
    Window,
)
from satura.rewrite.types.tensor_type import Array, DType, TensorType
from satura.rewrite.types.typical import representative

if TYPE_CHECKING:
    from satura.rewrite.ops.draw import Draw
    from satura.rewrite.ops.expression import Formula

Types = TensorType | tuple[TensorType, ...]
Generator: TypeAlias = (
    "Callable[[Draw, TensorType], tuple[tuple[TensorType, ...], tuple[Attribute, ...]]]"
)
"""Draws operand types and attributes of an op whose result has the given type."""

USER_DOMAIN = "satura.user"


class Kind(Enum):
    """What an op does, by which it is fused.

    All operands of an ELEMENTWISE op have the shape of its result. A REDUCTION has a `ReduceFn`,
    then the `Axes` or the `Axis` that have extent 1 in its result; a WINDOW has a `ReduceFn` and a
    `Window`. Those, and contractions, do not take narrow types. HOST ops are calls of ONNX nodes,
    or declared by users.

    How an op is computed the backend knows by its name: of ELEMENTWISE ops their text
    (`backend/emit/text.py`), of SOURCE, LAYOUT and INDEXING ops how an element of the result leads
    to those of operands (`backend/lower/walk.py`, `rewrite/types/index_map.py`), of REDUCTION,
    WINDOW and CONTRACTION ops a nest of loops (`backend/lower/reductions.py`), and of each op that
    stands ALONE its kernel (`backend/plan/kernels.py`).
    """

    SOURCE = "source"  # no operands: inputs, constants, iota
    ELEMENTWISE = "elementwise"  # one result element from one element of each operand
    LAYOUT = "layout"  # only moves elements: an index map
    INDEXING = "indexing"  # where it reads depends on data
    REDUCTION = "reduction"  # combines the elements along axes
    WINDOW = "window"  # combines the elements under a sliding window
    CONTRACTION = "contraction"  # sums of products
    ALONE = "alone"  # loops that are no index map: a dispatch of its own
    HOST = "host"  # runs outside the kernels

    __hash__ = object.__hash__  # that of an enum is a function of Python


@dataclass(frozen=True)
class UserDeclaration:
    """What only an op of a user has.

    `function` is what it is in programs where `unary` or `binary` lifts it; other elementwise ops
    stand there by themselves, and `signatures` are element types of operands and result.
    """

    domain: str
    op_type: str
    place: str
    generator: Generator | None = None
    formula: Formula | None = None
    function: UnaryFn | BinaryFn | None = None
    signatures: tuple[tuple[tuple[DType, ...], DType], ...] = ()


@dataclass(frozen=True, eq=False)
class Op:
    """One op: name, operands, attributes, type rule, NumPy reference and flops."""

    name: str
    kind: Kind
    arity: int | None  # None: any number of operands
    attributes: tuple[type, ...]
    attribute_names: tuple[str, ...]
    type_rule: Callable[..., Types]
    reference: Callable[..., Array]
    flops_rule: Callable[..., float]
    law: str
    user: UserDeclaration | None = None  # None: one of the canonical ops

    def infer(self, operands: tuple[TensorType, ...], attributes: tuple[Attribute, ...]) -> Types:
        """Type of the result. Raises ProgramError when operands or attributes do not fit."""
        if self.arity is not None and len(operands) != self.arity:
            raise ProgramError(f"{self.name} takes {self.arity} operands, not {len(operands)}")
        if len(attributes) != len(self.attributes):
            raise ProgramError(f"{self.name} takes attributes {self.attribute_names}")
        for value, name, sort in zip(
            attributes, self.attribute_names, self.attributes, strict=True
        ):
            if not isinstance(value, sort):
                raise ProgramError(
                    f"{self.name}: {name} must be a {sort.__name__}, not {brief(value)}"
                )
        if self.kind in _COMPUTING and any(operand.dtype.is_narrow for operand in operands):
            raise ProgramError(f"{self.name} does not compute with {operands[0].dtype}: cast it")
        try:
            if self.arity is None:  # attributes stand after *operands: keywords only
                named = dict(zip(self.attribute_names, attributes, strict=True))
                return self.type_rule(*operands, **named)
            return self.type_rule(*operands, *attributes)
        except Refuse as reason:
            shown = ", ".join(map(str, operands))
            raise ProgramError(f"{self.name}({shown}): {reason}") from None

    def flops(
        self,
        operands: tuple[TensorType, ...],
        attributes: tuple[Attribute, ...],
        result: TensorType,
    ) -> float:
        """Arithmetic operations of one evaluation; symbolic dims count at representative sizes."""
        return float(self.flops_rule(result, *operands, *attributes))

    def in_programs(self, attributes: Sequence[Attribute]) -> tuple[Op, tuple[Attribute, ...]]:
        """The op and the attributes that stand in programs for this op with `attributes`."""
        function = self.user.function if self.user else None
        if function is None:
            return self, tuple(attributes)
        if attributes:
            raise ProgramError(f"{self.name} takes no attributes")
        return REGISTRY["unary" if isinstance(function, UnaryFn) else "binary"], (function,)

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        """Programs are pickled without the functions of their ops: these are found by name."""
        return _op_in_programs, (self.name,)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


_DEMANDED: Mapping[Kind, tuple[tuple[type, ...], ...]] = {
    Kind.REDUCTION: ((ReduceFn,), (Axes, Axis)),
    Kind.WINDOW: ((ReduceFn,), (Window,)),
}
"""The classes that the first attributes of an op of some kind have: the backend reads them."""
_COMPUTING = frozenset({Kind.REDUCTION, Kind.WINDOW, Kind.CONTRACTION, Kind.ALONE})


def _op_in_programs(name: str) -> Op:
    return REGISTRY[name]


def _check_attributes(op: Op) -> None:
    wanted = _DEMANDED.get(op.kind, ())
    given = op.attributes[: len(wanted)]
    if len(given) < len(wanted) or not all(map(issubclass, given, wanted)):
        shown = ", ".join(" or ".join(each.__name__ for each in classes) for classes in wanted)
        raise OpError(
            f"op {op.name}: the first attributes of a {op.kind.value} are {shown}; give it these,"
            " or another kind"
        )


REGISTRY: dict[str, Op] = {}
"""The ops that stand in programs, by name."""

USER_OPS: dict[str, Op] = {}
"""The ops that users declared, by name; functions of `unary` and `binary` are only here."""


def user_op(op: Op, attributes: Sequence[Attribute]) -> Op | None:
    """The op of a user that stands in programs as `op` with `attributes`; None for others."""
    function = attributes[0] if attributes else None
    if op.user is None and isinstance(function, UnaryFn | BinaryFn):
        return USER_OPS.get(function.name)
    return op if op.user else None


def size_of(type_: TensorType) -> float:
    """Number of elements at representative sizes."""
    total = 1.0
    for dim in type_.shape:
        total *= representative(dim)
    return total


def no_flops(result: TensorType, *_: object) -> float:
    """Nothing is computed."""
    return 0.0


def op(
    kind: Kind,
    reference: Callable[..., object],
    flops: Callable[..., float] = no_flops,
) -> Callable[[Callable[..., Types]], Op]:
    """Declare a canonical op by its type rule, see the module's docstring.

    Raises OpError for an op without a docstring, of a name that is taken, or without the attributes
    that its kind demands.
    """

    def declare(type_rule: Callable[..., Types]) -> Op:
        parameters = inspect.signature(type_rule).parameters
        hints = typing.get_type_hints(type_rule)
        variadic = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
        operands = [name for name in parameters if hints[name] is TensorType]
        attributes = [name for name in parameters if hints[name] is not TensorType]
        result = Op(
            name=type_rule.__name__.rstrip("_"),
            kind=kind,
            arity=None if variadic else len(operands),
            attributes=tuple(hints[name] for name in attributes),
            attribute_names=tuple(attributes),
            type_rule=type_rule,
            reference=typing.cast(Callable[..., Array], reference),
            flops_rule=flops,
            law=inspect.getdoc(type_rule) or "",
        )
        if not result.law or result.name in REGISTRY:
            raise OpError(f"op {result.name} needs a docstring and a name of its own")
        _check_attributes(result)
        REGISTRY[result.name] = result
        return result

    return declare
