"""The laws of movement for elementwise ops that users declare.

A user's function of one element type is lifted by `unary` or `binary`, whose laws hold for it as
they are. Any other op f with a formula gets laws of its own, made here; each is in force where the
law of the book that it is like is. In these laws x… are the operands of f; its attributes are left
out, they stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from inspect import Parameter, Signature
from itertools import combinations
from typing import cast

import numpy as np

from satura.rewrite.language.dsl import (
    Law,
    Rule,
    RuleSet,
    Tensor,
    Term,
    Varying,
    attribute_function,
    rewrites,
    rule,
)
from satura.rewrite.language.terms import (
    application,
    broadcast,
    concat,
    pad,
    reshape,
    scalar,
    slice_,
    transpose,
)
from satura.rewrite.ops import Kind, Op
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Attribute, Axis, Padding, Perm, Scalar, Shape, Slices
from satura.rewrite.types.tensor_type import DType
from satura.rules.reshape import regroups

Applied = Callable[..., Term]
Body = Callable[[Applied, list[Term], Mapping[str, object]], Law]


def with_movement(rules: RuleSet, program: Program) -> RuleSet:
    """`rules`, and for each user's op in `program` the laws that are like some of `rules`."""
    for op in dict.fromkeys(node.op for node in program.nodes):
        if op.user is not None and op.kind is Kind.ELEMENTWISE:
            laws = [law for law, model in movement(op) if model in rules]
            rules = rules + RuleSet(*(law for law in laws if law.name not in rules))
    return rules


@lru_cache(maxsize=256)
def movement(op: Op) -> tuple[tuple[Rule, str], ...]:
    """The laws of movement of an elementwise op, each with the law of the book that it is like."""
    makers = [
        (_transpose, "transpose_past_select"),
        (_reshape, "reshape_past_select"),
        (_broadcast, "broadcast_out_of_select"),
        (_slice, "slice_into_select"),
        (_pad, "pad_out_of_select"),
        (_fold, "fold_binary"),
    ]
    laws = [(make(op), model) for make, model in makers]
    if op.arity == 1:
        laws.append((_concat(op), "concat_into_unary"))
    elif op.arity is not None:
        laws += [
            (_transpose_one(op, at), "transpose_out_of_left_varying") for at in range(op.arity)
        ]
        laws += [(_reshape_some(op, some), "reshape_out_of_left_operand") for some in _some(op)]
    return tuple(laws)


def _some(op: Op) -> Iterator[frozenset[int]]:
    """Every choice of some operands, but not all."""
    for count in range(1, op.arity or 0):
        yield from map(frozenset, combinations(range(op.arity or 0), count))


def _law(
    op: Op, name: str, law: str, variables: Mapping[str, type], body: Body,
    operands: Mapping[str, type] | None = None,
) -> Rule:  # fmt: skip
    """The rule about op whose variables are its operands and attributes, and `variables`."""
    tensors = _operands(op) if operands is None else operands
    names = [f"{name}_" for name in op.attribute_names]
    attributes = dict(zip(names, op.attributes, strict=True))

    def function(**values: object) -> Law:
        def applied(*terms: object) -> Term:
            return application(op, (*terms, *(values[name] for name in names)))

        return body(applied, [cast(Term, values[name]) for name in tensors], values)

    function.__name__ = f"{name}_{op.name}"
    function.__doc__ = law.replace("f(", f"{op.name}(")
    parameters = {**tensors, **attributes, **variables}.items()
    signature = Signature(
        [Parameter(n, Parameter.KEYWORD_ONLY, annotation=s) for n, s in parameters]
    )
    function.__signature__ = signature  # type: ignore[attr-defined]  # which the DSL reads
    return rule(function)


def _operands(op: Op, first: type = Tensor) -> dict[str, type]:
    return {f"x{at}": Tensor if at else first for at in range(op.arity or 0)}


def _alike(tensors: list[Term]) -> list[bool]:
    return [x.type.shape == tensors[0].type.shape for x in tensors[1:]]


def _transpose(op: Op) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        p = cast(Perm, values["p"])
        return rewrites(f(*(transpose(x, p) for x in xs)), transpose(f(*xs), p))

    law = "f(transpose(x, p)…) = transpose(f(x…), p)"
    return _law(op, "transpose_past", law, {"p": Perm}, body, _operands(op, Varying))


def _reshape(op: Op) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        s = cast(Shape, values["s"])
        return rewrites(f(*(reshape(x, s) for x in xs)), reshape(f(*xs), s), *_alike(xs))

    law = "f(reshape(x, s)…) = reshape(f(x…), s), when x… have one shape"
    return _law(op, "reshape_past", law, {"s": Shape}, body, _operands(op, Varying))


def _broadcast(op: Op) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        s = cast(Shape, values["s"])
        return rewrites(f(*(broadcast(x, s) for x in xs)), broadcast(f(*xs), s), *_alike(xs))

    law = "f(broadcast(x, s)…) = broadcast(f(x…), s), when x… have one shape"
    return _law(op, "broadcast_out_of", law, {"s": Shape}, body)


def _slice(op: Op) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        s = cast(Slices, values["s"])
        return rewrites(slice_(f(*xs), s), f(*(slice_(x, s) for x in xs)))

    return _law(op, "slice_into", "slice(f(x…), s) = f(slice(x, s)…)", {"s": Slices}, body)


def _concat(op: Op) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        axis, x, y = cast(Axis, values["axis"]), xs[0], cast(Term, values["y"])
        return rewrites(concat(f(x), f(y), axis), f(concat(x, y, axis)))

    variables = {"y": Tensor, "axis": Axis}
    return _law(op, "concat_into", "concat(f(x), f(y), a) = f(concat(x, y, a))", variables, body)


def _pad(op: Op) -> Rule:
    value, numbers = _value(op), _numbers(op)

    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        b, fills = cast(Padding, values["b"]), [cast(Scalar, values[name]) for name in numbers]
        padded = f(*(pad(x, v, b) for x, v in zip(xs, fills, strict=True)))
        fill = value(*fills, *(values[f"{name}_"] for name in op.attribute_names))
        return rewrites(padded, pad(f(*xs), scalar(fill), b))

    law = "f(pad(x, v, b)…) = pad(f(x…), f(v…), b)"
    return _law(op, "pad_out_of", law, {**numbers, "b": Padding}, body)


def _fold(op: Op) -> Rule:
    value, numbers = _value(op), _numbers(op)

    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        given = [values[name] for name in numbers]
        attributes = [values[f"{name}_"] for name in op.attribute_names]
        return rewrites(f(*given), scalar(value(*given, *attributes)))

    return _law(op, "fold", "f(v…) is a constant, for constants v…", numbers, body, {})


def _numbers(op: Op) -> dict[str, type]:
    return {f"v{at}": Scalar for at in range(op.arity or 0)}


def _value(op: Op) -> Callable[..., Scalar]:
    """The op on scalars, as an attribute function."""

    @attribute_function
    def value(*arguments: object) -> Scalar:
        scalars = [cast(Scalar, v) for v in arguments[: op.arity]]
        attributes = tuple(cast(Attribute, v) for v in arguments[op.arity :])
        result = np.asarray(op.reference(*(v.array for v in scalars), *attributes))
        return Scalar(DType.of(result.dtype), result.tobytes())

    return value


def _transpose_one(op: Op, moved: int) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        p = cast(Perm, values["p"])
        left = [transpose(x, p) if i == moved else x for i, x in enumerate(xs)]
        right = [x if i == moved else transpose(x, p.inverse) for i, x in enumerate(xs)]
        return rewrites(f(*left), transpose(f(*right), p))

    law = "f(transpose(x, p), y…) = transpose(f(x, transpose(y, p⁻¹)…), p)"
    name = f"transpose_out_of_{_positions(frozenset((moved,)))}_of"
    return _law(op, name, law, {"p": Perm}, body, _varying(op, frozenset((moved,))))


def _reshape_some(op: Op, moved: frozenset[int]) -> Rule:
    def body(f: Applied, xs: list[Term], values: Mapping[str, object]) -> Law:
        s, sources = cast(Shape, values["s"]), [x for i, x in enumerate(xs) if i in moved]
        before = Shape(sources[0].type.shape)
        wide = [broadcast(x, s) for x in xs]
        left = [reshape(x, s) if i in moved else wide[i] for i, x in enumerate(xs)]
        right = [x if i in moved else reshape(wide[i], before) for i, x in enumerate(xs)]
        fits = [regroups(x.type, s, before) for i, x in enumerate(xs) if i not in moved]
        return rewrites(f(*left), reshape(f(*right), s), *_alike(sources), *fits)

    law = (
        "f(reshape(x, s)…, broadcast(y, s)…) ="
        " reshape(f(x…, reshape(broadcast(y, s), shape of x)…), s),"
        " when x… have one shape and the inner reshape can pass the broadcast"
    )
    name = f"reshape_out_of_{_positions(moved)}_of"
    return _law(op, name, law, {"s": Shape}, body, _varying(op, moved))


def _varying(op: Op, moved: frozenset[int]) -> dict[str, type]:
    """The op's operands, the first of the moved ones varying."""
    operands = _operands(op)
    operands[f"x{min(moved)}"] = Varying
    return operands


def _positions(moved: frozenset[int]) -> str:
    return "_and_".join(("first", "second", "third")[at] for at in sorted(moved))
