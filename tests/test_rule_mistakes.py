"""Every mistake in a rule is reported at its definition, with rule, file and line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import (
    Law,
    Tensor,
    attribute_function,
    equates,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import (
    binary,
    concat,
    pool,
    reduce,
    reshape,
    transpose,
    unary,
)  # fmt: skip
from satura.rewrite.types.attributes import (
    Axes,
    Axis,
    BinaryFn,
    Perm,
    ReduceFn,
    Shape,
    UnaryFn,
    Window,
)  # fmt: skip
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


def _wrong_result_sort(x: Tensor, p: Perm) -> Law:
    """a bool where a perm belongs"""
    return rewrites(transpose(x, p), transpose(x, p.is_identity))  # type: ignore[arg-type]


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


def _misspelt_in_result(x: Tensor, p: Perm) -> Law:
    """an attribute of a result that does not exist"""
    return rewrites(transpose(x, p), x, x.type.dtype.is_flaot)  # type: ignore[attr-defined]


def _unknown_sort(x: Tensor, p: int) -> Law:
    """no such sort"""
    return rewrites(transpose(x, Perm((1, 0))), x)


def _matches_everything(x: Tensor) -> Law:
    """a variable on the left"""
    return rewrites(x, unary("neg", unary("neg", x)))


def _constant_condition(x: Tensor, p: Perm) -> Law:
    """a condition that is no recorder"""
    return rewrites(transpose(x, p), x, isinstance(p, Perm))


def _branches(x: Tensor, p: Perm) -> Law:
    """an `and` of conditions"""
    return rewrites(transpose(x, p), x, p.is_identity and p == p.inverse)


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


def _unused_in_many_lines(
    x: Tensor,
    p: Perm,
    spare: Perm,
) -> Law:
    """a parameter on a line of its own"""
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


def _no_permutation(x: Tensor) -> Law:
    """a perm that names an axis twice"""
    return rewrites(transpose(x, Perm((1, 1))), x)


def _negative_axis(x: Tensor, y: Tensor) -> Law:
    """an axis counted from the end"""
    return rewrites(concat(x, y, Axis(-1)), concat(y, x, Axis(-1)))


def _too_few_arguments(f: ReduceFn, x: Tensor, axes: Axes, p: Perm) -> Law:
    """an attribute function without its second argument"""
    return rewrites(
        reduce(f, transpose(x, p), axes),
        transpose(reduce(f, x, moved(axes)), p),  # type: ignore[call-arg]
    )


def _swapped_arguments(f: ReduceFn, x: Tensor, axes: Axes, p: Perm) -> Law:
    """an attribute function with its arguments the other way around"""
    return rewrites(
        reduce(f, transpose(x, p), axes),
        transpose(reduce(f, x, moved(p, axes)), p),  # type: ignore[arg-type]
    )


def _tensor_for_type(x: Tensor, p: Perm) -> Law:
    """a tensor where its type belongs"""
    return rewrites(transpose(x, p), x, rank_of(x) == 2)  # type: ignore[arg-type]


def _method_with_wrong_argument(f: ReduceFn, x: Tensor, p: Perm, window: Window) -> Law:
    """a method that takes a Perm"""
    return rewrites(
        pool(f, transpose(x, p), window),
        transpose(pool(f, x, window.permuted(window)), p),  # type: ignore[arg-type]
    )


def _method_not_called(f: ReduceFn, x: Tensor, window: Window) -> Law:
    """a method where its result belongs"""
    return rewrites(pool(f, x, window), pool(f, x, window.permuted))  # type: ignore[arg-type]


def _property_called(x: Tensor, p: Perm) -> Law:
    """a property that is called"""
    return rewrites(transpose(x, p), transpose(x, p.inverse()))  # type: ignore[operator]


def _wrong_field(x: Tensor, s: Shape) -> Law:
    """a shape inside of a shape"""
    return rewrites(reshape(x, s), reshape(x, Shape(s)))  # type: ignore[arg-type]


def _wrong_index(x: Tensor, p: Perm) -> Law:
    """a perm indexed by a number"""
    return rewrites(transpose(x, p), transpose(x, p[0]))  # type: ignore[index]


def _condition_of_int(x: Tensor, p: Perm) -> Law:
    """a number as a condition"""
    return rewrites(transpose(x, p), x, rank_of(x.type))  # type: ignore[arg-type]


def _condition_is_method(x: Tensor, p: Perm) -> Law:
    """a method as a condition"""
    return rewrites(transpose(x, p), x, p.apply)  # type: ignore[arg-type]


def _compares_axis_with_number(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """an axis is never a number"""
    return rewrites(concat(x, y, axis), concat(y, x, axis), axis == 0)  # type: ignore[comparison-overlap]


def _compares_function_with_name(f: BinaryFn, x: Tensor, y: Tensor) -> Law:
    """a function is never its name"""
    return rewrites(binary(f, x, y), binary(f, y, x), f == "add")  # type: ignore[comparison-overlap]


def _adds_to_axis(x: Tensor, y: Tensor, axis: Axis) -> Law:
    """axes do not add"""
    return rewrites(concat(x, y, axis), concat(y, x, axis + 1))  # type: ignore[operator, arg-type]


def _shape_of_tensor(x: Tensor, s: Shape) -> Law:
    """a tensor has no shape, its type has"""
    return rewrites(reshape(x, s), x, s.dims == x.shape)  # type: ignore[attr-defined]


def _operator_of_tensors(x: Tensor, y: Tensor) -> Law:
    """tensors have no operators"""
    return rewrites(binary("add", x, y), y + x)  # type: ignore[operator]


def _other_dtype(x: Tensor, y: Tensor) -> Law:
    """a bool is never a number"""
    return rewrites(binary("lt", x, y), binary("sub", x, y))


def _never_matches(x: Tensor) -> Law:
    """what gives a float is no bool"""
    return rewrites(unary("not", unary("exp", x)), x)


def _two_ranks(x: Tensor) -> Law:
    """a matrix is no volume"""
    return rewrites(transpose(transpose(x, Perm((1, 0))), Perm((0, 2, 1))), x)


def _other_rank(x: Tensor) -> Law:
    """a matrix is no vector"""
    return rewrites(transpose(x, Perm((1, 0))), reshape(x, Shape((6,))))


MISTAKES: list[tuple[Callable[..., Law], str, int]] = [
    (_unbound, "'y' is not bound by the left side transpose\\(x, p\\)", 2),
    (_unbound_attribute, "'prm' is not bound .*did you mean 'perm'", 2),
    (_unbound_backward, "'p' is not bound by .*write both\\(rewrites", 2),
    (_wrong_sort, "transpose takes a Perm, not the Shape s", 2),
    (_wrong_result_sort, "transpose takes a Perm, not the bool p.is_identity", 2),
    (_swapped, "transpose takes a tensor where the Perm 'p' stands", 2),
    (_no_law, "must return rewrites", 0),
    (_no_docstring, 'the docstring is missing: state the law there, as in """', 0),
    (_misspelt, "Perm has no attribute 'invers'; did you mean 'inverse'", 2),
    (_misspelt_in_result, "DType has no attribute 'is_flaot'; did you mean 'is_float'", 2),
    (_unknown_sort, "'p: int' is no sort of variable; use Axis", 0),
    (_matches_everything, "would match every tensor", 2),
    (_constant_condition, "a condition is always False", 2),
    (_branches, "`if`, `and`, `or`, `not`.*cannot be recorded", 2),
    (_iterates, "iterating over .* cannot be recorded", 2),
    (_asks_for_length, "len\\(\\) of an attribute cannot be recorded", 2),
    (_plain_exception, "TypeError.*missing.*'perm'; it is transpose\\(x, perm\\)", 2),
    (_unused, "the variable 'q' is never used; leave it out", 0),
    (_unused_in_many_lines, "the variable 'spare' is never used", 3),
    (_no_sort, "the variable 'p' has no sort: annotate it", 0),
    (_misspelt_sort, "'x: Tensr' is no sort of variable; did you mean Tensor", 0),
    (_type_as_sort, "'x: TensorType' is no sort of variable; use Tensor", 0),
    (_any_number, "'\\*x.*': a law has a fixed number of variables", 0),
    (_equal_sides, "both sides are transpose\\(x, p\\): the law says nothing", 2),
    (_unknown_op, "name 'transpse' is not defined; did you mean 'transpose'", 2),
    (_not_imported, "add `from satura.rewrite.language.terms import conv`", 2),
    (_unknown_function, "no unary function 'rellu'; did you mean 'relu'", 2),
    (_unknown_function_literal, "no unary function 'negg'; did you mean 'neg'", 2),
    (_function_of_another_kind, "no reduce function 'add'; it is a BinaryFn", 2),
    (_tuple_for_perm, "takes a Perm, not the tuple \\(1, 0\\); write Perm\\(\\(1, 0\\)\\)", 2),
    (_number_for_axis, "concat takes an Axis, not the int 1; write Axis\\(1\\)", 2),
    (_list_in_perm, "order must be a tuple.*, not \\[1, 0\\]", 2),
    (_no_permutation, "is no permutation", 2),
    (_negative_axis, "axes are counted from 0", 2),
    (_too_few_arguments, "missing a required argument: 'perm'; it is moved\\(axes.*perm", 4),
    (_swapped_arguments, "moved takes an Axes as 'axes', not the Perm p", 4),
    (_tensor_for_type, "not the tensor 'x'; its type is x.type", 2),
    (_method_with_wrong_argument, "permuted takes a Perm as 'perm', not the Window window", 4),
    (_method_not_called, "not the method window.permuted; call it", 2),
    (_property_called, "p.inverse is a Perm, no method", 2),
    (_wrong_field, "Shape takes .* as 'dims', not the Shape s", 2),
    (_wrong_index, "takes a Perm as 'after', not the int 0", 2),
    (_condition_of_int, "the condition rank_of\\(x.type\\) is an int, not a bool", 2),
    (_condition_is_method, "the condition p.apply is a method: call it", 2),
    (_compares_axis_with_number, "always false: an Axis is no int; write Axis\\(0\\)", 2),
    (_compares_function_with_name, "a BinaryFn is no str; write BinaryFn\\('add'\\)", 2),
    (_adds_to_axis, "an Axis has no __add__: compute with its fields \\(index\\)", 2),
    (_shape_of_tensor, "the tensor 'x' has no attribute 'shape'; write x.type.shape", 2),
    (_operator_of_tensors, 'write binary\\("add", y, x\\)', 2),
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


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(RuleError, match="a rule needs a name"):
        rule(lambda x: rewrites(x, x))
