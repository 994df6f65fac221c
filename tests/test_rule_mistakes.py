"""Mistakes that a rule's definition reports, each with the rule's name, file and line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import Law, Tensor, attribute_function, equates, rewrites, rule
from satura.rewrite.language.terms import binary, concat, reduce, reshape, transpose, unary
from satura.rewrite.types.attributes import Axes, Axis, Perm, ReduceFn, Shape, UnaryFn
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.tensor_type import TensorType


@attribute_function
def moved(axes: Axes, perm: Perm) -> Axes:
    """The axes that `axes` of the transposed tensor come from."""
    return Axes(tuple(sorted(perm.order[axis] for axis in axes.indices)))


@attribute_function
def rank_of(type_: TensorType) -> int:
    """The number of axes."""
    return type_.rank


def _unbound(x: Tensor, y: Tensor, p: Perm) -> Law:
    """left does not bind y"""
    return rewrites(transpose(x, p), y)


def _unbound_attribute(x: Tensor, perm: Perm, prm: Perm) -> Law:
    """left does not bind prm"""
    return rewrites(transpose(x, perm), transpose(x, prm))


def _unbound_backward(x: Tensor, p: Perm, q: Perm) -> Law:
    """the other direction does not bind p and q"""
    return equates(transpose(transpose(x, p), q), transpose(x, p[q]))


def _wrong_sort(x: Tensor, s: Shape) -> Law:
    """a shape where a perm belongs"""
    return rewrites(transpose(x, s), x)  # type: ignore[arg-type]


def _swapped(x: Tensor, p: Perm) -> Law:
    """attribute first"""
    return rewrites(transpose(p, x), x)  # type: ignore[arg-type]


def _no_law(x: Tensor, p: Perm) -> Law:
    """returns nothing"""
    transpose(x, p)
    return None  # type: ignore[return-value]


def _no_docstring(x: Tensor, p: Perm) -> Law:
    return rewrites(transpose(x, p), x)


def _misspelt(x: Tensor, p: Perm) -> Law:
    """a method that does not exist"""
    return rewrites(transpose(x, p), transpose(x, p.invers))  # type: ignore[attr-defined]


def _operator(x: Tensor) -> Law:
    """a sign in place of an op"""
    return rewrites(x + x, x)  # type: ignore[operator]


def _unknown_sort(x: Tensor, p: int) -> Law:
    """no such sort"""
    return rewrites(transpose(x, Perm((1, 0))), x)


def _matches_everything(x: Tensor) -> Law:
    """a variable on the left"""
    return rewrites(x, unary("neg", unary("neg", x)))


def _constant_condition(x: Tensor, p: Perm) -> Law:
    """a condition that is not a recorder"""
    return rewrites(transpose(x, p), x, isinstance(p, Perm))


def _branches(x: Tensor, p: Perm) -> Law:
    """an `and` of conditions"""
    return rewrites(transpose(x, p), x, p.is_identity and p == p.inverse)


def _compares_made(x: Tensor, s: Shape) -> Law:
    """two attributes that are made here"""
    return rewrites(reshape(x, s), x, Shape(s.dims) == Shape(x.type.shape))


def _foreign(x: Tensor, c: Scalar) -> Law:
    """an attribute in another library's hands"""
    return rewrites(binary("mul", x, c), x, c == Scalar.of(1, x.type.dtype))


def _iterates(x: Tensor, p: Perm) -> Law:
    """a loop over an attribute"""
    return rewrites(transpose(x, p), transpose(x, Perm(tuple(p.order))))


def _asks_for_length(x: Tensor, p: Perm) -> Law:
    """len of an attribute"""
    return rewrites(transpose(x, p), x, len(p.order) == 2)


def _plain_exception(x: Tensor, p: Perm) -> Law:
    """an exception of Python"""
    return rewrites(transpose(x), x)  # type: ignore[call-arg]


def _unused(x: Tensor, p: Perm, q: Perm) -> Law:
    """q stands nowhere"""
    return rewrites(transpose(x, p), x, p.is_identity)


def _no_sort(x: Tensor, p) -> Law:  # type: ignore[no-untyped-def]
    """a parameter without annotation"""
    return rewrites(transpose(x, p), x)


def _misspelt_sort(x: Tensr, p: Perm) -> Law:  # type: ignore[name-defined]  # noqa: F821
    """an annotation that is not there"""
    return rewrites(transpose(x, p), x)


def _type_as_sort(x: TensorType, p: Perm) -> Law:
    """a type where a tensor belongs"""
    return rewrites(transpose(x, p), x)  # type: ignore[arg-type]


def _any_number(*x: Tensor) -> Law:
    """any number of variables"""
    return rewrites(unary("neg", x[0]), x[0])


def _equal_sides(x: Tensor, p: Perm) -> Law:
    """both sides are one"""
    return rewrites(
        transpose(x, p),
        transpose(x, p),
    )


def _unknown_op(x: Tensor, p: Perm) -> Law:
    """an op that does not exist"""
    return rewrites(transpse(x, p), x)  # type: ignore[name-defined]  # noqa: F821


def _not_imported(x: Tensor, p: Perm) -> Law:
    """an op that is not imported"""
    return rewrites(conv(x, p), x)  # type: ignore[name-defined]  # noqa: F821


def _unknown_function(x: Tensor) -> Law:
    """a scalar function that does not exist"""
    return rewrites(unary("rellu", x), x)


def _unknown_function_literal(x: Tensor) -> Law:
    """a scalar function that does not exist, by its class"""
    return rewrites(unary("neg", x), unary(UnaryFn("negg"), x))


def _function_of_another_kind(x: Tensor, axes: Axes) -> Law:
    """a binary function where a reduction belongs"""
    return rewrites(reduce("add", x, axes), x)


def _tuple_for_perm(x: Tensor) -> Law:
    """a tuple where a perm belongs"""
    return rewrites(transpose(x, (1, 0)), x)  # type: ignore[arg-type]


def _number_for_axis(x: Tensor, y: Tensor) -> Law:
    """a number where an axis belongs"""
    return rewrites(concat(x, y, 1), concat(y, x, Axis(1)))  # type: ignore[arg-type]


def _list_in_perm(x: Tensor) -> Law:
    """a perm of a list"""
    return rewrites(transpose(x, Perm([1, 0])), x)  # type: ignore[arg-type]


def _negative_axis(x: Tensor, y: Tensor) -> Law:
    """an axis counted from the end"""
    return rewrites(concat(x, y, Axis(-1)), concat(y, x, Axis(-1)))


def _too_few_arguments(f: ReduceFn, x: Tensor, axes: Axes, p: Perm) -> Law:
    """an attribute function without its second argument"""
    return rewrites(
        reduce(f, transpose(x, p), axes),
        transpose(reduce(f, x, moved(axes)), p),  # type: ignore[call-arg]
    )


def _tensor_for_type(x: Tensor, p: Perm) -> Law:
    """a tensor where its type belongs"""
    return rewrites(transpose(x, p), x, rank_of(x) == 2)  # type: ignore[arg-type]


def _other_dtype(x: Tensor, y: Tensor) -> Law:
    """a bool is never a number"""
    return rewrites(binary("lt", x, y), binary("sub", x, y))


def _never_matches(x: Tensor) -> Law:
    """what gives a float is not a bool"""
    return rewrites(unary("not", unary("exp", x)), x)


def _two_ranks(x: Tensor) -> Law:
    """a matrix is not a volume"""
    return rewrites(transpose(transpose(x, Perm((1, 0))), Perm((0, 2, 1))), x)


def _other_rank(x: Tensor) -> Law:
    """a matrix is not a vector"""
    return rewrites(transpose(x, Perm((1, 0))), reshape(x, Shape((6,))))


MISTAKES: list[tuple[Callable[..., Law], str, int]] = [
    (_unbound, "'y' is not bound by the left side transpose\\(x, p\\)", 2),
    (_unbound_attribute, "'prm' is not bound .*did you mean 'perm'", 2),
    (_unbound_backward, "'p' is not bound by .*write both\\(rewrites", 2),
    (_wrong_sort, "transpose takes a Perm, not the Shape s", 2),
    (_swapped, "transpose takes a tensor where the Perm p stands; tensors come first", 2),
    (_no_law, "must return rewrites", 0),
    (_no_docstring, 'the docstring is missing: state the law there, as in """', 0),
    (_misspelt, "Perm has no attribute 'invers'; did you mean 'inverse'", 2),
    (_operator, r"for \+: .*; a law names its ops: binary\(\"add\", x, y\)", 2),
    (_unknown_sort, "'p: int' is not a sort of variable; sorts are .*Perm, Shape", 0),
    (_matches_everything, "would match every tensor", 2),
    (_constant_condition, "the condition False does not depend on any attribute", 2),
    (_branches, "`if`, `and`, `or`, `not`.*cannot be recorded", 2),
    (_compares_made, "`==` of two attributes that are made here cannot be recorded", 2),
    (_foreign, "ValueError.*<recorded .*: compute this inside an @attribute_function", 2),
    (_iterates, "iterating over .* cannot be recorded", 2),
    (_asks_for_length, "len\\(\\), .* cannot be recorded", 2),
    (_plain_exception, "TypeError.*missing.*'perm'; it is transpose\\(x, perm\\)", 2),
    (_unused, "the variable 'q' is never used; leave it out", 0),
    (_no_sort, "the variable 'p' has no sort: write p: Tensor", 0),
    (_misspelt_sort, "'x: Tensr' is not a sort of variable; did you mean 'Tensor'", 0),
    (_type_as_sort, "'x: TensorType' is not a sort .*; did you mean 'Tensor'", 0),
    (_any_number, "'\\*x.*': a law has a fixed number of variables", 0),
    (_equal_sides, "both sides are transpose\\(x, p\\): the law says nothing", 2),
    (_unknown_op, "name 'transpse' is not defined; did you mean 'transpose'", 2),
    (_not_imported, "add `from satura.language import conv`", 2),
    (_unknown_function, "no UnaryFn 'rellu'; did you mean 'relu'", 2),
    (_unknown_function_literal, "no UnaryFn 'negg'; did you mean 'neg'", 2),
    (_function_of_another_kind, "no ReduceFn 'add'; there are sum, prod, max, min", 2),
    (_tuple_for_perm, "transpose takes a Perm, not the tuple \\(1, 0\\)", 2),
    (_number_for_axis, "concat takes an Axis, not the int 1", 2),
    (_list_in_perm, "the list \\[1, 0\\] cannot stand in an attribute", 2),
    (_negative_axis, "axes are counted from 0", 2),
    (_too_few_arguments, "missing a required argument: 'perm'; it is moved\\(axes.*perm", 4),
    (_tensor_for_type, "the tensor 'x' is not an attribute: .* its type, x.type", 2),
    (_other_dtype, "never have the type of the left side \\(bool\\): no element type", 2),
    (_never_matches, "the left side .* can never match: no element type of 'x' suits", 2),
    (_two_ranks, "the left side .* can never match: no rank of 'x' suits", 2),
    (_other_rank, "the right side .* can never have .*: no rank suits", 2),
]


@pytest.mark.parametrize(("function", "message", "line"), MISTAKES)
def test_a_mistake_is_reported_with_rule_file_and_line(
    function: Callable[..., Law], message: str, line: int
) -> None:
    with pytest.raises(RuleError) as caught:
        rule(function)
    place = function.__code__.co_firstlineno + line
    start = f"rule '{function.__name__}' ({__file__}:{place}): "
    assert str(caught.value).startswith(start)
    assert re.search(message, str(caught.value))


def _wrong_result_sort(x: Tensor, p: Perm) -> Law:
    """a bool where a perm belongs"""
    return rewrites(transpose(x, p), transpose(x, p.is_identity))  # type: ignore[arg-type]


def _misspelt_in_result(x: Tensor, p: Perm) -> Law:
    """an attribute of a result that does not exist"""
    return rewrites(transpose(x, p), x, p.inverse.is_idenity)  # type: ignore[attr-defined]


def _condition_is_method(x: Tensor, p: Perm) -> Law:
    """a method as a condition"""
    return rewrites(transpose(x, p), x, p.apply)  # type: ignore[arg-type]


LEFT_TO_TYPE_CHECKERS: list[tuple[Callable[..., Law], str]] = [
    (_wrong_result_sort, "p.is_identity must be a Perm, not a bool"),
    (_misspelt_in_result, "'Perm' object has no attribute 'is_idenity'"),
    (_condition_is_method, "the condition p.apply is .*, not a bool"),
]


@pytest.mark.parametrize(("function", "message"), LEFT_TO_TYPE_CHECKERS)
def test_what_type_checkers_find_names_the_rule_at_its_first_match(
    function: Callable[..., Law], message: str
) -> None:
    law = rule(function)
    with pytest.raises(RuleError, match=message) as caught:
        law.directions[0].compute({"p": Perm((1, 0))})
    place = function.__code__.co_firstlineno
    assert str(caught.value).startswith(f"rule '{law.name}' ({__file__}:{place}): ")


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(RuleError, match="a rule needs a name"):
        rule(lambda x: rewrites(x, x))
