"""Mistakes that a rule's definition reports, each with the rule's name, file and line."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import cast

import pytest

from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import Law, Rule, attribute_function, rewrites, rule
from satura.rewrite.types.attributes import Axes, Perm
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType, TensorType

FILE = "/a/file/of/rules.py"
HEAD = """\
from satura.language import (
    Axes, Axis, DType, Law, Perm, ReduceFn, Scalar, Shape, Tensor, TensorType, UnaryFn, binary,
    cast, concat, equates, reduce, reshape, rewrites, transpose, unary
)
"""


@attribute_function
def moved(axes: Axes, perm: Perm) -> Axes:
    """The axes that `axes` of the transposed tensor come from."""
    return Axes(tuple(sorted(perm.order[axis] for axis in axes.indices)))


@attribute_function
def rank_of(type_: TensorType) -> int:
    """The number of axes."""
    return type_.rank


@attribute_function
def is_thin(type_: TensorType) -> bool:
    """Whether the innermost extent is at most 1, asked in a way that open sizes do not answer."""
    return type_.rank > 0 and type_.shape[-1] <= 1  # type: ignore[operator, unused-ignore]


def function_of(variables: str, body: str) -> Callable[..., Law]:
    """The function `law` of these variables, at line 5 of a file."""
    text = f"{HEAD}def law({variables}) -> Law:\n{body}\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    scope: dict[str, object] = {"moved": moved, "rank_of": rank_of, "is_thin": is_thin}
    exec(compile(text, FILE, "exec"), scope)
    return cast(Callable[..., Law], scope["law"])


def law_of(variables: str, law: str) -> Callable[..., Law]:
    """The function that returns `law`, in line 7."""
    return function_of(variables, f"    '''a law'''\n    return {law}")


MISTAKES = [  # variables, law, and what is said of it
    ("x: Tensor, y: Tensor, p: Perm", "rewrites(transpose(x, p), y)",
     r"'y' is not bound by the left side transpose\(x, p\)"),
    ("x: Tensor, perm: Perm, prm: Perm", "rewrites(transpose(x, perm), transpose(x, prm))",
     "'prm' is not bound .*did you mean 'perm'"),
    ("x: Tensor, p: Perm, q: Perm", "equates(transpose(transpose(x, p), q), transpose(x, p[q]))",
     r"'p' is not bound by .*write both\(rewrites"),
    ("x: Tensor, s: Shape", "rewrites(transpose(x, s), x)",
     "transpose takes a Perm, not the Shape s"),
    ("x: Tensor, p: Perm", "rewrites(transpose(p, x), x)",
     "transpose takes a tensor where the Perm p stands; tensors come first"),
    ("x: Tensor", "rewrites(binary('mul', x, 0), 0)",
     r"the int 0 stands; a number may stand beside a tensor.*scalar\(c\).*c = Scalar.of\(0, "),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, p.invers))",
     "Perm has no attribute 'invers'; did you mean 'inverse'"),
    ("x: Tensor", "rewrites(x + x, x)",
     r'for \+: .*; a law names its ops: binary\("add", x, y\)'),
    ("x: Tensor", "rewrites(unary('neg', x), x, x.dtype.is_float)",
     "has no attribute 'dtype'; its type has it: x.type.dtype"),
    ("x: Tensor", "rewrites(unary('neg', x), x, condition=True)",
     r"it is rewrites\(left, right, \*conditions\)"),
    ("x: Tensor", "rewrites(x, unary('neg', unary('neg', x)))", "would match every tensor"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, isinstance(p, Perm))",
     "the condition False does not depend on any attribute"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, p.is_identity and p == p.inverse)",
     "`if`, `and`, `or`, `not`.*cannot be recorded"),
    ("x: Tensor, s: Shape", "rewrites(reshape(x, s), x, Shape(s.dims) == Shape(x.type.shape))",
     "`==` of two attributes that are made here cannot be recorded"),
    ("x: Tensor, c: Scalar", "rewrites(binary('mul', x, c), x, c == Scalar.of(1, x.type.dtype))",
     "ValueError.*<recorded .*: compute this inside an @attribute_function"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, Perm(tuple(p.order))))",
     "iterating over .* cannot be recorded"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, len(p.order) == 2)",
     r"len\(\), .* cannot be recorded"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x), x)",
     r"TypeError.*missing.*'perm'; it is transpose\(x, perm\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, p))",
     r"both sides are transpose\(x, p\): the law says nothing"),
    ("x: Tensor, p: Perm", "rewrites(transpse(x, p), x)",
     "name 'transpse' is not defined; did you mean 'transpose'"),
    ("x: Tensor, p: Perm", "rewrites(conv(x, p), x)", "add `from satura.language import conv`"),
    ("x: Tensor", "rewrites(unary('rellu', x), x)", "no UnaryFn 'rellu'; did you mean 'relu'"),
    ("x: Tensor", "rewrites(unary('neg', x), unary(UnaryFn('negg'), x))",
     "no UnaryFn 'negg'; did you mean 'neg'"),
    ("x: Tensor", "rewrites(unary('ngt', x), x)", "'ngt'; did you mean 'neg' or 'not'"),
    ("x: Tensor, axes: Axes", "rewrites(reduce('add', x, axes), x)",
     "no ReduceFn 'add'; there are sum, prod, max, min"),
    ("x: Tensor", "rewrites(transpose(x, (1, 0)), x)",
     r"transpose takes a Perm, not the tuple \(1, 0\)"),
    ("x: Tensor, y: Tensor", "rewrites(concat(x, y, 1), concat(y, x, Axis(1)))",
     "concat takes an Axis, not the int 1"),
    ("x: Tensor", "rewrites(transpose(x, Perm([1, 0])), x)",
     r"the list \[1, 0\] cannot stand in an attribute"),
    ("x: Tensor, y: Tensor", "rewrites(concat(x, y, Axis(-1)), concat(y, x, Axis(-1)))",
     "axes are counted from 0"),
    ("f: ReduceFn, x: Tensor, axes: Axes, p: Perm",
     "rewrites(reduce(f, transpose(x, p), axes), transpose(reduce(f, x, moved(axes)), p))",
     r"missing a required argument: 'perm'; it is moved\(axes.*perm"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, rank_of(x) == 2)",
     "the tensor 'x' is not an attribute: .* its type, x.type"),
    ("x: Tensor, y: Tensor", "rewrites(binary('lt', x, y), binary('sub', x, y))",
     r"never have the type of the left side \(bool\): no element type"),
    ("x: Tensor", "rewrites(unary('not', unary('exp', x)), x)",
     "the left side .* can never match: no element type of 'x' suits"),
    ("x: Tensor", "rewrites(unary('neg', cast(x, DType.F8E5M2)), x)",
     "the left side .* can never match: no element type suits"),
    ("x: Tensor", "rewrites(transpose(transpose(x, Perm((1, 0))), Perm((0, 2, 1))), x)",
     "the left side .* can never match: no rank of 'x' suits"),
    ("x: Tensor", "rewrites(transpose(x, Perm((1, 0))), reshape(x, Shape((6,))))",
     "the right side .* can never have .*: no rank suits"),
]  # fmt: skip
OF_VARIABLES = [
    ("x: Tensor, p: int", "'p: int' is not a sort of variable; sorts are .*Perm, Shape"),
    ("x: Tensor, p: Perm, q: Perm", "the variable 'q' is never used; leave it out"),
    ("x: Tensor, p", "the variable 'p' has no sort: write p: Tensor"),
    ("x: Tensr, p: Perm", "'x: Tensr' is not a sort of variable; did you mean 'Tensor'"),
    ("x: TensorType, p: Perm", "'x: TensorType' is not a sort .*; did you mean 'Tensor'"),
    ("*x: Tensor", r"'\*x.*': a law has a fixed number of variables"),
]


def reported(function: Callable[..., Law], line: int) -> str:
    """What is said of the rule behind its name, file and line."""
    with pytest.raises(RuleError) as caught:
        rule(function)
    start = f"rule 'law' ({FILE}:{line}): "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


@pytest.mark.parametrize(("variables", "law", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_line(variables: str, law: str, message: str) -> None:
    assert re.search(message, reported(law_of(variables, law), 7))


def test_the_line_is_that_of_the_part_that_is_wrong() -> None:
    function = law_of("x: Tensor, p: Perm", "rewrites(\n        x,\n        transpse(x, p))")
    assert "'transpse' is not defined" in reported(function, 9)


@pytest.mark.parametrize(("variables", "message"), OF_VARIABLES)
def test_a_wrong_variable_is_reported(variables: str, message: str) -> None:
    law = "rewrites(transpose(x, p), x)"
    assert re.search(message, reported(law_of(variables, law), 5))


def test_what_is_missing_is_reported() -> None:
    silent = function_of("x: Tensor, p: Perm", "    return rewrites(transpose(x, p), x)")
    assert 'the docstring is missing: state the law there, as in """' in reported(silent, 5)
    idle = function_of("x: Tensor, p: Perm", "    '''a law'''\n    transpose(x, p)")
    assert "must return rewrites" in reported(idle, 5)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("transpose(x, p.is_identity)", "p.is_identity must be a Perm, not a bool"),
        ("x, p.inverse.is_idenity", "'Perm' object has no attribute 'is_idenity'"),
        ("x, p.apply", "the condition p.apply is .*, not a bool"),
    ],
)
def test_what_type_checkers_find_names_the_rule_at_its_first_match(law: str, message: str) -> None:
    made = rule(law_of("x: Tensor, p: Perm", f"rewrites(transpose(x, p), {law})"))
    assert isinstance(made, Rule)
    with pytest.raises(RuleError, match=message) as caught:
        made.directions[0].compute({"p": Perm((1, 0))})
    assert str(caught.value).startswith(f"rule 'law' ({FILE}:5): ")


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(RuleError, match="a rule needs a name"):
        rule(lambda x: rewrites(x, x))


def test_a_comparison_of_open_sizes_names_what_answers() -> None:
    made = rule(law_of("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, is_thin(x.type))"))
    assert isinstance(made, Rule)
    values = {"x": TensorType(DType.F32, (symbol("n"),)), "p": Perm((0,))}
    with pytest.raises(RuleError, match=r"'<=' not supported .* ask known_at_least\(size, bound\)"):
        made.directions[0].compute(values)
