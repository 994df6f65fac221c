"""The rule language: a rule is one short function, its docstring is the law.

    @rule
    def compose_transposes(x: Tensor, p: Perm, q: Perm) -> Law:
        \"\"\"transpose(transpose(x, p), q) = transpose(x, p then q)\"\"\"
        return rewrites(transpose(transpose(x, p), q), transpose(x, p[q]))

Parameters are pattern variables. For tensors they are:

- `Tensor` matches any tensor; use it where nothing else is needed.
- `Known` matches one that is computed from constants alone; use it to compute at compile time.
- `Varying` matches one that depends on an input or on a size, and not a constant that is repeated
  as often as a size says; use it to move an op past others: constants are computed at compile
  time, and moving them about is lost work.
- `Movable` matches one that is worth transposing; use it for an operand that gets a transpose.
- `Untransposed` matches one below its transposes; use it under a transpose that moves outwards, so
  that a chain of transposes is composed first and then moves once.
- `Unpadded` is the same for a pad that moves outwards.
- `Approximate` matches one of rounded numbers; use it in laws up to rounding where what is exact,
  such as places and sizes, must stay so.

`Scalar` matches a 0-d constant: among tensors it stands for that tensor, in an attribute expression
for its value. Any other attribute class matches an attribute of that class:

    @rule
    def negate_padded(x: Tensor, c: Scalar, p: Padding) -> Law:
        \"\"\"neg(pad(x, c)) = pad(neg(x), neg(c)), for any padding value\"\"\"
        return rewrites(unary("neg", pad(x, c, p)), pad(unary("neg", x), unary("neg", c), p))

    @rule
    def apply_before_transpose(f: UnaryFn, x: Tensor, p: Perm) -> Law:
        \"\"\"f(transpose(x, p)) = transpose(f(x), p), for any function\"\"\"
        return rewrites(unary(f, transpose(x, p)), transpose(unary(f, x), p))

What a law says:

- `rewrites(left, right, *conditions)` goes one way, `equates(left, right, *conditions)` both ways;
  `replaces(left, right, *conditions)` goes one way, and the left side is never looked at again.
- An attribute on the right may be computed: by methods and fields (`p.inverse`), by operators, by a
  constructor (`Shape(x.type.shape)`), or by any `@attribute_function`. `t.type` is the type of a
  term. A condition is a bool computed likewise; `&`, `|` and `~` are their and, or and not.
  Conditions are asked in the order of writing, up to the first that does not hold: one without
  which another would fail stands before it.
- An attribute on the left may be computed too, when all its variables are bound elsewhere on the
  left: `transpose(transpose(x, p), p.inverse)` matches where the attribute has that value. So
  `equates(a, b)` works as long as each side names every variable somewhere outside computations.
  Where the two directions bind different variables, write `both(rewrites(…), rewrites(…))`.
- Where a computation raises `Refuse`, the rule does not fire for these values. The condition
  `has_value(x)` asks no more of x than that, where nothing on the right has it.
- Where the left side matches and the conditions hold, the right side must have the same type and
  a value: one that is ill typed, or that cannot be computed, refutes the law. So conditions say
  all that the right side needs; `left.type == right.type`, of terms with names, leaves out where
  types differ, and where the right side has none. Open sizes count one by one: a window that is
  longer than an axis at some of them has no value there.
- `@rule(reassociates=True)` marks a law that holds up to rounding; all others hold bit for bit.

Bit for bit means:

- -0.0 is not 0.0, and all NaN of a type are alike.
- f16 and bf16 are computed in f32 and rounded once per op. Integers wrap around in their own type,
  also in sums, products and contractions: a result has the element type of its operands.
- In which order an op adds or multiplies floats is its own matter, and to a law the same for the
  same elements along its axes. A law that adds others, or in another order, holds up to rounding.
  Kernels add in an order that suits the layout, so a law that moves axes may change their sums.

Tests try ranks up to 6, and 7 and 8 where a law names them. They try extents up to 1,030, and
beside the numbers that stand in a law or are read by its functions; where its left side counts,
sums or has positions, up to 140,001 along one axis; where it is about `extent` alone, up to 2^31.
What goes wrong only beyond them is not found, as that `iota` in f32 has gaps above 2^24. A proof is
for all sizes.

Up to rounding means:

- What is not a float is equal.
- Where the left side is finite, the right one is, too. They differ by at most 4 roundings for each
  operation of either side, of the largest number in either computation, intermediate ones
  included; -0.0 may stand for 0.0. An exp and the like are as many operations as their cost says.
- What is infinite or NaN on the left is the same on the right. Where no NaN went in, NaN may stand
  for an infinity, and an infinity for NaN; but not that which one function makes, as the root of
  -inf.
- Nothing is promised where a number in between is subnormal.
- Nothing is promised of NaN and infinities where a sum has no elements: 0 takes the place of
  0 * inf then.
- Nothing is promised where a number overflows by a little in one computation and not in the other,
  where terms of a sum overflow that would cancel, or nearly so, nor where a constant of the law
  makes a number infinite; nor where only the order decides what overflows, as x·y does in (x·y)·z
  of two large numbers and a tiny one, and y·z does not. Tests are of ordinary numbers, and of those
  that are too large or too small by far, all of one magnitude: not of f16 in which a wider type was
  to hold what is large in between.

A law above many ops is a `@family`, see `families.py`: its parameters may be an op (`Elementwise`,
`Arithmetic`, `Contraction`) and the op's operands (`Operands`, `Some` and `Others`, `Scalars`), and
it is a rule for each op.

A rule's function runs once, where it is declared: its helpers must stand above it in the file.
Rules are collected by `RuleSet(rule_a, rule_b)` or, a whole module, `RuleSet.of_module(__name__)`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import overload

from satura.rewrite.errors import RuleError, brief
from satura.rewrite.language.answers import check_arguments, check_comparisons, check_condition
from satura.rewrite.language.called import file_of
from satura.rewrite.language.definition import (
    SORTS,
    called_by_name,
    check_kind,
    check_name,
    check_options,
    inner_function,
    mistake_line,
    reason_of,
    sorts_of,
    sorts_of_rule,
)
from satura.rewrite.language.expressions import (
    AttributeVariable,
    Expression,
    Recorder,
    attribute_function,
    expression_of,
)
from satura.rewrite.language.families import OtherArityError, Reading, readings, sort_of_op
from satura.rewrite.language.mistakes import MistakeError, suggestion
from satura.rewrite.language.rule import (
    Computed,
    Direction,
    Family,
    Law,
    Rule,
    RuleSet,
    Sort,
    source_of,
)
from satura.rewrite.language.terms import (
    Application,
    Approximate,
    Known,
    Movable,
    ScalarTerm,
    Tensor,
    Term,
    TypeOf,
    Unpadded,
    Untransposed,
    Varying,
    operand_of,
    subterms,
    term_variables,
)
from satura.rewrite.language.type_check import check_types
from satura.rewrite.ops import REGISTRY, Op
from satura.rewrite.program.arguments import check_flags
from satura.rewrite.types.constant import Scalar

DECLARED = "__satura_rules__"
"""The global of a file in which `rule` keeps all rules that are written there."""


def rewrites(left: Term, right: Term | Scalar, *conditions: bool) -> Law:
    """The law that replaces `left` by `right` where all conditions hold."""
    return _law(left, right, conditions)


def replaces(left: Term, right: Term, *conditions: bool) -> Law:
    """The law that replaces `left` by `right` where all conditions hold, and hides `left` then.

    What is hidden is neither matched nor chosen again, so `right` must not be made from `left` by
    other laws alone: no law that replaces may lead back.
    """
    return replace(_law(left, right, conditions), hides=True)


def equates(left: Term | Scalar, right: Term | Scalar, *conditions: bool) -> Law:
    """The law that replaces either side by the other where all conditions hold."""
    return both(_law(left, right, conditions), _law(right, left, conditions))


def both(forward: Law, backward: Law) -> Law:
    """One law of two directions that bind different variables."""
    return Law(forward.directions + backward.directions, forward.lines + backward.lines)


def _law(left: object, right: object, conditions: tuple[object, ...]) -> Law:
    """The law of one direction; its line is where `rewrites` or `equates` is called."""
    first, second = operand_of(left, "the left side"), operand_of(right, "the right side")
    return Law(((first, second, tuple(map(_condition, conditions))),), (sys._getframe(2).f_lineno,))


def _condition(value: object) -> Expression:
    if not isinstance(value, Recorder):
        raise MistakeError(
            f"the condition {value} does not depend on any attribute: `is`, isinstance() and texts"
            " such as f-strings are decided while the rule is defined; do that inside an"
            " @attribute_function"
        )
    expression = expression_of(value)
    check_condition(expression)
    return expression


@overload
def rule(function: Callable[..., Law], /) -> Rule: ...
@overload
def rule(*, reassociates: bool = False) -> Callable[[Callable[..., Law]], Rule]: ...
def rule(
    function: Callable[..., Law] | None = None, /, *, reassociates: bool = False, **others: object
) -> Rule | Callable[[Callable[..., Law]], Rule]:
    """Declare a rule, see the module's docstring. Raises RuleError where it is not well formed."""
    check_options("rule", others)
    check_flags(reassociates=reassociates)
    if function is None:
        return lambda function: _declare(function, exact=not reassociates)
    return _declare(function, exact=not reassociates)


@overload
def family(function: Callable[..., Law], /) -> Family: ...
@overload
def family(*, reassociates: bool = False) -> Callable[[Callable[..., Law]], Family]: ...
def family(
    function: Callable[..., Law] | None = None, /, *, reassociates: bool = False, **others: object
) -> Family | Callable[[Callable[..., Law]], Family]:
    """Declare a law above many ops: a rule for each op. Raises RuleError as `rule` does."""
    check_options("family", others)
    check_flags(reassociates=reassociates)
    if function is None:
        return lambda function: _declare_family(function, exact=not reassociates)
    return _declare_family(function, exact=not reassociates)


def _declare_family(function: Callable[..., Law], exact: bool) -> Family:
    inner = inner_function(function)
    code, name = inner.__code__, function.__name__
    law = inspect.cleandoc(function.__doc__ or "")
    file, line = file_of(code), code.co_firstlineno
    try:
        sorts = sorts_of(function)
        has = sort_of_op(sorts).has
    except MistakeError as error:
        raise RuleError(f"family '{name}' ({file}:{line}): {error}") from None

    @lru_cache(maxsize=256)
    def about(op: Op) -> tuple[Rule, ...]:
        found = []
        for reading in readings(op, sorts):
            with suppress(OtherArityError):
                found.append(_rule(function, exact, reading))
        return tuple(found)

    ops = [op for op in REGISTRY.values() if op.user is None and has(op)]
    rules = tuple(entry for op in ops for entry in about(op))
    if not rules:
        raise RuleError(
            f"family '{name}' ({file}:{line}): no op has as many operands as the law gives it"
        )
    declared = Family(name, law, exact, file, line, has, about, rules)
    inner.__globals__.setdefault(DECLARED, []).append(declared)
    return declared


def _declare(function: Callable[..., Law], exact: bool) -> Rule:
    inner = inner_function(function)
    declared = _rule(function, exact)
    inner.__globals__.setdefault(DECLARED, []).append(declared)
    return declared


def _rule(function: Callable[..., Law], exact: bool, reading: Reading | None = None) -> Rule:
    inner = inner_function(function)
    name, code = getattr(function, "__name__", inner.__name__), inner.__code__
    file, line = file_of(code), code.co_firstlineno
    law = inspect.cleandoc(function.__doc__ or "")
    full = f"{name}_{reading.suffix}" if reading else name
    law = reading.law(law) if reading else law
    at = line
    try:
        check_name(name, inner)
        check_kind(inner)
        if not law:
            raise MistakeError(
                "the docstring is missing: state the law there, as in"
                ' """transpose(transpose(x, p), p.inverse) = x"""'
            )
        variables = reading.variables if reading else sorts_of_rule(function)
        values = {key: _variable(key, sort) for key, sort in variables.items()}
        result = called_by_name(function, reading.arguments(values) if reading else values)
        if not isinstance(result, Law):
            raise MistakeError(f"it must return rewrites(…) or equates(…), not {brief(result)}")
        directions = []
        for number, side in enumerate(result.directions):
            at = result.lines[number]
            count = len(result.directions)
            place = f"{file}:{line}"
            direction = _direction(full, number, side, variables, place, count)
            varies = reading is not None and reading.varies
            directions.append(replace(direction, varies=varies, hides=result.hides))
        at = line
        used = {name for direction in directions for name in direction.variables}
        if reading is not None and reading.is_partial:
            variables = {name: variables[name] for name in variables if name in used}
        _check_use(variables, used)
    except OtherArityError:
        raise
    except (Exception, SystemExit) as error:
        where = f"{file}:{mistake_line(error, inner, at)}"
        cause = None if isinstance(error, MistakeError) else error
        raise RuleError(f"rule '{full}' ({where}): {reason_of(error, inner)}") from cause
    family = name if reading else ""
    source = source_of(function)
    return Rule(full, law, tuple(directions), variables, exact, file, line, source, family)


def _check_use(variables: Mapping[str, Sort], used: Collection[str]) -> None:
    """Raise MistakeError for a variable that no direction mentions."""
    for name in variables:
        if name not in used:
            raise MistakeError(
                f"the variable '{name}' is never used; leave it out, or match it on the left"
            )


def _variable(name: str, sort: Sort) -> object:
    if issubclass(sort, Tensor):
        return sort(name)
    return Recorder(AttributeVariable(name, sort))


def _direction(
    name: str,
    number: int,
    side: tuple[Term, Term, tuple[Expression, ...]],
    variables: Mapping[str, Sort],
    place: str,
    count: int,
) -> Direction:
    left, right, conditions = side
    label = name if count == 1 else f"{name}:{'forward' if number == 0 else 'backward'}"
    if left == right:
        raise MistakeError(f"both sides are {left}: the law says nothing")
    if not isinstance(left, Application):
        raise MistakeError(f"the left side '{left}' would match every tensor; it must apply an op")
    bound = dict.fromkeys(_bound_names(left))
    direction = Direction(
        label, left, right, conditions, {key: variables[key] for key in bound}, place
    )
    used = [*term_variables(left), *term_variables(right), *direction.inputs]
    for free in dict.fromkeys(used):
        if free not in bound:
            raise MistakeError(
                f"'{free}' is not bound by the left side {left}{suggestion(free, bound)}"
                if count == 1
                else f"'{free}' is not bound by {left} in direction {number + 1};"
                " write both(rewrites(…), rewrites(…)) or make it one way"
            )
    for expression in direction.expressions:
        check_comparisons(expression)
        check_arguments(expression)
    check_types(left, right)
    return direction


def _bound_names(left: Term) -> Iterator[str]:
    for term in subterms(left):
        if isinstance(term, Tensor):
            yield term.name
        elif isinstance(term, ScalarTerm):
            if isinstance(term.value, AttributeVariable):
                yield term.value.name
        elif isinstance(term, Application):
            for attribute in term.attributes:
                if isinstance(attribute, AttributeVariable):
                    yield attribute.name


__all__ = [
    "SORTS",
    "Approximate",
    "Computed",
    "Direction",
    "Family",
    "Known",
    "Law",
    "Movable",
    "Rule",
    "RuleSet",
    "Tensor",
    "Term",
    "TypeOf",
    "Unpadded",
    "Untransposed",
    "Varying",
    "attribute_function",
    "both",
    "equates",
    "family",
    "replaces",
    "rewrites",
    "rule",
]
