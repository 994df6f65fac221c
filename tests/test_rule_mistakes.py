"""Every mistake in a rule is reported at its definition, with rule, file and line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from satura.rewrite.attributes import (
    Perm,
    Shape,
)  # fmt: skip
from satura.rewrite.dsl import (
    Law,
    Tensor,
    equates,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.errors import RuleError
from satura.rewrite.terms import (
    transpose,
    unary,
)  # fmt: skip


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


MISTAKES: list[tuple[Callable[..., Law], str, int]] = [
    (_unbound, "'y' is not bound by the left side transpose\\(x, p\\)", 0),
    (_unbound_attribute, "'prm' is not bound .*did you mean 'perm'", 0),
    (_unbound_backward, "'p' is not bound by .*write both\\(rewrites", 0),
    (_wrong_sort, "transpose takes a Perm, not the Shape s", 2),
    (_wrong_result_sort, "transpose takes a Perm, not the bool p.is_identity", 2),
    (_swapped, "transpose takes a tensor where the Perm 'p' stands", 2),
    (_no_law, "must return rewrites", 0),
    (_no_docstring, "the docstring is missing", 0),
    (_misspelt, "Perm has no attribute 'invers'; did you mean 'inverse'", 2),
    (_misspelt_in_result, "DType has no attribute 'is_flaot'; did you mean 'is_float'", 2),
    (_unknown_sort, "'p: int' is no sort of variable", 0),
    (_matches_everything, "would match every tensor", 0),
    (_constant_condition, "a condition is always False", 2),
    (_branches, "`if`, `and`, `or`, `not`.*cannot be recorded", 2),
    (_iterates, "iterating over .* cannot be recorded", 2),
    (_asks_for_length, "len\\(\\) of an attribute cannot be recorded", 2),
    (_plain_exception, "TypeError", 2),
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
