"""Mistakes that a rule's definition reports, each with the rule's name, file and line."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pytest

from satura.rewrite.check.testing import check
from satura.rewrite.errors import RuleError
from satura.rewrite.language.dsl import (
    Law,
    Rule,
    Tensor,
    attribute_function,
    family,
    rewrites,
    rule,
)  # fmt: skip
from satura.rewrite.language.terms import transpose, unary
from satura.rewrite.types.attributes import Axes, Perm, Shape
from satura.rewrite.types.constant import Scalar
from satura.rewrite.types.dims import symbol
from satura.rewrite.types.tensor_type import DType, TensorType

FILE = "/a/file/of/rules.py"
HEAD = """\
from satura.language import (
    Axes, Axis, Constant, DType, Elementwise, Law, Operands, Padding, Perm, ReduceFn, Scalar, Shape,
    Slices, Tensor, TensorType, UnaryFn, binary, cast, concat, constant, equates, pad, reduce,
    reshape, rewrites, slice_, transpose, unary
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
def is_of(number: int, *others: int) -> bool:
    """Whether it is one of the others."""
    return number in others


def is_pair(perm: Perm) -> bool:
    """Whether it is of two axes, by a function that is not recorded."""
    return len(perm.order) == 2


def has_first(perm: Perm) -> bool:
    """Whether the first axis stays or there are two, by one that is not recorded either."""
    return perm.order[0] == 0 or is_pair(perm)


@attribute_function
def shape_of(type_: TensorType) -> Shape:
    """The shape."""
    return Shape(type_.shape)


@attribute_function
def is_thin(type_: TensorType) -> bool:
    """Whether the innermost extent is at most 1, asked in a way that open sizes do not answer."""
    return type_.rank > 0 and type_.shape[-1] <= 1  # type: ignore[operator, unused-ignore]


def function_of(variables: str, body: str) -> Callable[..., Law]:
    """The function `law` of these variables, at line 6 of a file."""
    text = f"{HEAD}def law({variables}) -> Law:\n{body}\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    scope: dict[str, object] = {"moved": moved, "rank_of": rank_of, "is_thin": is_thin}
    scope |= {
        "shape_of": shape_of,
        "is_pair": is_pair,
        "has_first": has_first,
        "np": np,
        "is_of": is_of,
    }
    exec(compile(text, FILE, "exec"), scope)
    return cast(Callable[..., Law], scope["law"])


def law_of(variables: str, law: str) -> Callable[..., Law]:
    """The function that returns `law`, in line 8."""
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
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, p is not None)",
     "the condition True does not depend on any attribute: `is`, .* decided while .* is defined"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, f'{p}' == '[1, 0]')",
     "the condition False .*f-strings are decided while the rule is defined"),
    ("x: Tensor", "rewrites(unary('neg', x), cast(x, 'f32'))",
     "cast takes a DType, not the str f32; write DType.F32"),
    ("x: Tensor", "rewrites(unary('neg', x), cast(x, np.float32))", "; write DType.F32$"),
    ("x: Tensor", "rewrites(unary('neg', x), cast(x, np.dtype('i1')))", "; write DType.I8$"),
    ("x: Tensor", "rewrites(unary('neg', x), cast(x, 'float99'))", "not the str float99$"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, is_pair(p))",
     "cannot be recorded; .*; is @attribute_function missing above 'is_pair'"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, has_first(p))",
     "cannot be recorded; .*; is @attribute_function missing above 'has_first'"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, moved(p, p)))",
     "transpose takes a Perm, not moved"),
    ("f: ReduceFn, x: Tensor, axes: Axes, p: Perm",
     "rewrites(reduce(f, transpose(x, p), axes), transpose(reduce(f, x, moved(p, p)), p))",
     "moved takes an Axes as 'axes', not the Perm p"),
    ("f: ReduceFn, x: Tensor, axes: Axes, p: Perm",
     "rewrites(reduce(f, transpose(x, p), axes), reduce(f, x, moved(axes, perm=p.order)))",
     r"moved takes a Perm as 'perm', not p.order \(a tuple\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, rank_of(p) == 2)",
     "rank_of takes a TensorType as 'type_', not the Perm p"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, is_of(p.apply))",
     r"is_of takes an int as 'number', not the method p.apply \(call it"),
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
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, x.type.ranks == 2)",
     "TensorType has no attribute 'ranks'; did you mean 'rank'"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, p.inverse.is_idenity)",
     "Perm has no attribute 'is_idenity'; did you mean 'is_identity'"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, p.inverse)",
     r"a condition is a bool, not p.inverse \(a Perm\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, p.apply)",
     r"a condition is a bool, not the method p.apply \(call it: p.apply\(…\)\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, rank_of(x.type))",
     r"not rank_of\(x.type\) \(rank_of is declared to return int\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, p.is_identity))",
     r"transpose takes a Perm, not p.is_identity \(a bool\)"),
    ("x: Tensor, p: Perm", "rewrites(transpose(x, p), transpose(x, shape_of(x.type)))",
     r"transpose takes a Perm, not shape_of\(x.type\) \(shape_of is declared to return Shape\)"),
    ("x: Tensor, p: Perm, b: Padding",
     "rewrites(pad(transpose(x, p), 0, b), transpose(pad(x, 0, b.permuted), p))",
     r"pad takes a Padding, not the method b.permuted \(call it: b.permuted\(…\)\)"),
    ("x: Tensor, p: Perm, b: Padding", "rewrites(pad(x, b.is_zero, b), x)",
     r"pad takes a tensor where b.is_zero \(a bool\) stands"),
    ("x: Tensor", "rewrites(transpose(x, Perm((0, 0))), x)",
     r"Perm\(order=\(0, 0\)\) is no permutation: each of the axes 0 to 1 stands in it once"),
    ("x: Tensor", "rewrites(unary('neg', x), transpose(x, Perm((1, 2))))", "is no permutation"),
    ("x: Tensor", "rewrites(reduce('sum', x, Axes((1, 0))), x)",
     r"Axes\(indices=\(1, 0\)\): axes stand in order, each once"),
    ("x: Tensor", "rewrites(reduce('sum', x, Axes((1, 1))), x)", "axes stand in order, each once"),
    ("x: Tensor", "rewrites(slice_(x, Slices((0,), (1,), (0,))), x)", "a step is never 0"),
    ("x: Tensor", "rewrites(slice_(x, Slices((0,), (-1,), (1,))), x)",
     "what a Slices counts is never negative"),
    ("x: Tensor", "rewrites(unary('neg', x), pad(x, 0, Padding((-1,), (0,))))",
     r"Padding\(lo=\(-1,\), hi=\(0,\)\): what a Padding counts is never negative"),
    ("x: Tensor", "rewrites(reshape(x, Shape((-1,))), x)", "a Shape counts is never negative"),
    ("f: UnaryFn, x: Tensor", "rewrites(unary(f, unary(f, x)), unary(f, x), f == 'abs')",
     r"they are never equal; write f == UnaryFn\('abs'\), or compare f.name"),
    ("x: Tensor, c: Scalar", "rewrites(binary('mul', x, c), x, c == 1)",
     "c is a Scalar, and 1 an int: they are never equal; compare c.value"),
    ("x: Tensor, c: Scalar", "rewrites(binary('mul', x, c), x, c == x.type.dtype)",
     "c is a Scalar, and x.type.dtype a DType: they are never equal; compare c.dtype"),
    ("x: Tensor, p: Padding", "rewrites(pad(x, 0, p), x, (p != x.type.shape) | p.is_zero)",
     "they are never equal; compare p.lo"),
    ("x: Tensor, k: Constant", "rewrites(binary('mul', x, constant(k)), x, k == 1)",
     "k is a Constant, and 1 an int: they are never equal; compare k.scalar"),
    ("x: Tensor", "rewrites(unary('neg', x), x, 'f32' == x.type.dtype)",
     "never equal; name it, as in x.type.dtype == DType.F32"),
    ("x: Tensor, s: Shape", "rewrites(reshape(x, s), x, (s != x.type.shape) | (s == s))",
     "s is a Shape, and x.type.shape a tuple: they are never equal; compare s.dims"),
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
    ("f: Elementwise, p: Perm", "'f: Elementwise' stands in .* many ops: declare it by @family"),
    ("x: Operands[Tensor], p: Perm", "'x: Operands' .* by @family"),
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
    assert re.search(message, reported(law_of(variables, law), 8))


def test_the_line_is_that_of_the_part_that_is_wrong() -> None:
    function = law_of("x: Tensor, p: Perm", "rewrites(\n        x,\n        transpse(x, p))")
    assert "'transpse' is not defined" in reported(function, 10)


@pytest.mark.parametrize(("variables", "message"), OF_VARIABLES)
def test_a_wrong_variable_is_reported(variables: str, message: str) -> None:
    law = "rewrites(transpose(x, p), x)"
    assert re.search(message, reported(law_of(variables, law), 6))


def test_what_is_missing_is_reported() -> None:
    silent = function_of("x: Tensor, p: Perm", "    return rewrites(transpose(x, p), x)")
    assert 'the docstring is missing: state the law there, as in """' in reported(silent, 6)
    idle = function_of("x: Tensor, p: Perm", "    '''a law'''\n    transpose(x, p)")
    assert "must return rewrites" in reported(idle, 6)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("transpose(x, p.order[0])", r"p.order\[0\] must be a Perm, not a int: 1 for"),
        ("x, p.order[0].is_idenity", "'int' object has no attribute 'is_idenity'"),
        ("x, p.order[0]", r"the condition p.order\[0\] is 1, not a bool"),
    ],
)
def test_what_type_checkers_find_names_the_rule_at_its_first_match(law: str, message: str) -> None:
    made = rule(law_of("x: Tensor, p: Perm", f"rewrites(transpose(x, p), {law})"))
    assert isinstance(made, Rule)
    with pytest.raises(RuleError, match=message) as caught:
        made.directions[0].compute({"p": Perm((1, 0))})
    assert str(caught.value).startswith(f"rule 'law' ({FILE}:6): ")


def test_arrays_are_compared_and_reduced_as_they_are() -> None:
    condition = "(c.array == 0).all() & (c.value != 1)"
    made = rule(law_of("x: Tensor, c: Scalar", f"rewrites(binary('add', x, c), x, {condition})"))
    assert isinstance(made, Rule)
    (direction,) = made.directions
    assert direction.holds(direction.conditions[0], {"c": Scalar.of(0, DType.F32)})


@pytest.mark.parametrize(
    ("answer", "declared", "right", "message"),
    [
        ("p.order", "Perm", "transpose(x, made(p))",
         r"made is declared to return Perm, and returned \(1, 0\) for p = \[1, 0\]"),
        ("None", "Perm", "transpose(x, made(p))",
         "made is declared to return Perm, and returned None .* no answer, raise Refuse"),
        ("1", "bool", "x, made(p)", "made is declared to return bool, and returned 1"),
        ("Perm(list(p.order))", "Perm", "transpose(x, made(p))",
         r"the list \[1, 0\] cannot stand in an attribute for p"),
    ],
)  # fmt: skip
def test_an_answer_of_another_class_than_declared_is_told(
    answer: str, declared: str, right: str, message: str
) -> None:
    function = law_of("x: Tensor, p: Perm", f"rewrites(transpose(x, p), {right})")
    scope = function.__globals__
    exec(f"def made(p: Perm) -> {declared}:\n    return {answer}\n", scope)
    scope["made"] = attribute_function(scope["made"])
    made = rule(function)
    assert isinstance(made, Rule)
    with pytest.raises(RuleError, match=message) as caught:
        made.directions[0].compute({"p": Perm((1, 0))})
    assert "let a condition before it" not in str(caught.value)


@pytest.mark.parametrize("answer", ["None", "[*p.order]"])
def test_what_is_no_attribute_is_told_of_the_left_side_too(answer: str) -> None:
    function = law_of("x: Tensor, p: Perm", "rewrites(transpose(transpose(x, p), made(p)), x)")
    scope = function.__globals__
    exec(f"def made(p):\n    return {answer}\n", scope)
    scope["made"] = attribute_function(scope["made"])
    made = rule(function)
    assert isinstance(made, Rule)
    report = check(made, attempts=100)
    assert report.verdict == "vacuous"
    assert re.search(r"made\(p\) must be a Perm, not a (NoneType: None|list)", report.reason)


def test_options_that_do_not_exist_are_told() -> None:
    decorate = cast(Callable[..., object], rule)
    line = sys._getframe().f_lineno + 2
    with pytest.raises(RuleError, match="did you mean 'reassociates'") as caught:
        decorate(reassociate=True)
    assert str(caught.value).startswith(f"{__file__}:{line}: @rule has no option 'reassociate'")
    with pytest.raises(RuleError, match="@family has no option 'exact'; it has reassociates"):
        cast(Callable[..., object], family)(exact=False)


def test_a_law_is_returned_by_a_plain_function() -> None:
    async def later(x: Tensor) -> Law:
        """a law"""
        return rewrites(unary("neg", unary("neg", x)), x)

    def yielding(x: Tensor) -> Iterator[Law]:
        """a law"""
        yield rewrites(unary("neg", unary("neg", x)), x)

    with pytest.raises(RuleError, match=r"rule 'later' .*write `def`, not `async def`"):
        rule(cast(Callable[..., Law], later))
    with pytest.raises(RuleError, match=r"rule 'yielding' .*write `return`, not `yield`"):
        rule(cast(Callable[..., Law], yielding))


def test_an_exit_is_reported_as_other_errors_are() -> None:
    assert reported(law_of("x: Tensor", "exit(3)"), 8) == "SystemExit: 3"

    @attribute_function
    def leaving(p: Perm) -> Perm:
        sys.exit("bye")

    @rule
    def law(x: Tensor, p: Perm) -> Law:
        """a law whose function leaves"""
        return rewrites(transpose(x, p), transpose(x, leaving(p)))

    with pytest.raises(
        RuleError, match=rf"SystemExit: bye, raised in leaving, {__file__}:\d+, for"
    ):
        law.directions[0].compute({"p": Perm((1, 0))})
    assert "SystemExit: bye, raised in leaving" in check(law).reason


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(RuleError, match="a rule needs a name"):
        rule(lambda x: rewrites(x, x))


def test_a_comparison_of_open_sizes_names_what_answers() -> None:
    made = rule(law_of("x: Tensor, p: Perm", "rewrites(transpose(x, p), x, is_thin(x.type))"))
    assert isinstance(made, Rule)
    values = {"x": TensorType(DType.F32, (symbol("n"),)), "p": Perm((0,))}
    with pytest.raises(RuleError, match=r"'<=' not supported .* ask known_at_least\(size, bound\)"):
        made.directions[0].compute(values)
