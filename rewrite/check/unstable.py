"""Functions of a rule that answer differently for equal arguments: no verdict on it would last."""

from __future__ import annotations

from collections.abc import Iterator

from satura.rewrite.check.instances import Instance
from satura.rewrite.language.expressions import Apply, Expression, Values

CALLS = 100


def unstable_call(instance: Instance) -> str:
    """A message about the first call that gave two different answers; empty if none did."""
    for expression in instance.direction.expressions:
        for call in _calls(expression):
            answers = dict.fromkeys(_answer(call, instance.bindings) for _ in range(CALLS))
            if len(answers) > 1:
                first, second, *_ = answers
                return f"for the same arguments {call} is now {first}, now {second}"
    return ""


def _calls(expression: Expression) -> Iterator[Apply]:
    """The calls in an expression, inner ones first."""
    if isinstance(expression, Apply):
        for argument in (*expression.arguments, *(value for _, value in expression.keywords)):
            yield from _calls(argument)
        yield expression


def _answer(call: Apply, values: Values) -> str:
    try:
        return str(call.evaluate(values))
    except Exception as error:  # a refusal is an answer, too
        return type(error).__name__
