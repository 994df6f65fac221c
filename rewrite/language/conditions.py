"""The condition that something can be computed."""

from __future__ import annotations

from satura.rewrite.language.expressions import Apply, Expression, attribute_function


@attribute_function
def has_value(value: object) -> bool:
    """The condition that `value` can be computed: a rule does not fire where that is refused.
    Open sizes are asked about once, whatever they are in a call: at one of them there may be no
    value, as of a slice by steps of an axis that is too short then.
    """
    return True


def asks_for_value(condition: Expression) -> bool:
    """Whether a condition is a `has_value`, which may hold for all matches."""
    return isinstance(condition, Apply) and condition.function is has_value.__wrapped__  # type: ignore[attr-defined]
