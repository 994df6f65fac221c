"""A law's left side matched in Python, step by step: what each step keeps, and what it loses.

The e-graph engine only says how often a rule fired. Here the same e-classes are matched again, the
pattern from its root down and operand by operand, then its facts, conditions, guards and results,
in the order in which the engine would refuse. Each step keeps the matches that pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from satura.rewrite.egraph.classes import ENode
from satura.rewrite.egraph.interner import content
from satura.rewrite.explain.class_graph import FUNCTIONS, Graph, op_text
from satura.rewrite.language.expressions import AttributeVariable, Expression, Literal
from satura.rewrite.language.rule import Computed, Direction
from satura.rewrite.language.terms import (
    Application,
    Approximate,
    Known,
    Movable,
    ScalarTerm,
    Tensor,
    Term,
    Unpadded,
    Untransposed,
    Varying,
)
from satura.rewrite.types.attributes import Attribute, Refuse
from satura.rewrite.types.constant import Scalar

MOST_MATCHES = 50_000

Match = tuple[tuple[int, ENode], ...]
"""Per op of the pattern, in the order of matching, the class and the e-node that it stands for."""

Fault = Callable[[dict[str, object], Attribute | None], str | None]
"""Says why values, and the attribute compared with them, drop a match; None where they do not."""


@dataclass(frozen=True)
class Step:
    """One thing that must hold of a match, in words; `asks` names the part that it is about.

    `extend` gives the matches that go on from one; `blame` says why none does: what stands there,
    or one reason. A step for an operand has the op `wanted` and `find`, the operand's class.
    """

    text: str
    asks: str
    extend: Callable[[Match], Sequence[Match]]
    blame: Callable[[Match], Sequence[str]]
    wanted: str | None = None
    find: Callable[[Match], int] | None = None


@dataclass(frozen=True)
class Passed:
    """A step, the matches that passed it, and those that failed.

    `cut` says that more than MOST_MATCHES passed, of which the others were not followed.
    """

    step: Step
    passed: tuple[Match, ...]
    failed: tuple[Match, ...]
    cut: bool


def _wanted_op(term: Application) -> str:
    """The op of a pattern, with its scalar function where that is given."""
    values = [value.value for value in term.attributes if isinstance(value, Literal)]
    functions = [value for value in values if isinstance(value, FUNCTIONS)]
    return " ".join([term.op.name, *map(str, functions)])


@dataclass(frozen=True)
class Trace:
    """All steps of a direction on a graph, and where its variables stand in matches."""

    bindings: Bindings
    steps: tuple[Passed, ...]

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches of the whole left side that nothing refuses."""
        return self.steps[-1].passed

    @property
    def furthest(self) -> Passed | None:
        """The last step that some match did not pass."""
        return next((step for step in reversed(self.steps) if step.failed), None)


def trace(direction: Direction, graph: Graph) -> Trace:
    """What every step of `direction` keeps and loses of the e-nodes of `graph`."""
    bindings = _Steps(direction, graph)
    current: list[Match] = [()]
    result = []
    for step in bindings.steps:
        passed: list[Match] = []
        failed: list[Match] = []
        for match in current:
            extended = step.extend(match)
            passed.extend(extended)
            if not extended:
                failed.append(match)
        cut = len(passed) > MOST_MATCHES
        current = passed[:MOST_MATCHES]
        result.append(Passed(step, tuple(current), tuple(failed), cut))
    return Trace(bindings, tuple(result))


class Bindings:
    """Where the variables of a pattern stand in its matches."""

    def __init__(self, direction: Direction, graph: Graph) -> None:
        self.direction = direction
        self.graph = graph
        self.terms: list[Application] = []
        self.classes: dict[Term, Callable[[Match], int]] = {}
        self.attributes: dict[Expression | Computed, Callable[[Match], Attribute]] = {}

    def class_of(self, name: str, match: Match) -> int | None:
        """The class that a tensor or a scalar variable stands for, None where it is not bound."""
        for term, find in self.classes.items():
            if _name(term) == name:
                return find(match) if self._is_bound(find, match) else None
        return None

    def values(self, match: Match) -> dict[str, object]:
        """A type per tensor and a value per attribute, as far as they are bound."""
        found: dict[str, object] = {}
        for expression, value_of in self.attributes.items():
            if isinstance(expression, AttributeVariable) and self._is_bound(value_of, match):
                found[expression.name] = value_of(match)
        for term, class_of in self.classes.items():
            if isinstance(term, Tensor) and self._is_bound(class_of, match):
                found[term.name] = self.graph.classes.types[class_of(match)]
        return found

    def _is_bound(self, find: Callable[[Match], object], match: Match) -> bool:
        try:
            find(match)
        except LookupError:
            return False
        return True


def _name(term: Term) -> str | None:
    if isinstance(term, Tensor):
        return term.name
    if isinstance(term, ScalarTerm) and isinstance(term.value, AttributeVariable):
        return term.value.name
    return None


_FACTS: tuple[tuple[type[Tensor], str, str], ...] = (
    (Known, "is computed from constants alone", ", which is not"),
    (Untransposed, "varies and is not only a transpose", ""),
    (Unpadded, "is not only a pad", ""),
    (Approximate, "varies and is rounded already", ""),
    (Movable, "is transposed elsewhere or a constant", ""),
    (Varying, "depends on an input or a symbolic size", ", a constant"),
)
"""What sorts of variables ask for, and what is said of the ops of a class that does not have it."""


class _Steps(Bindings):
    """The steps of one direction, in order."""

    def __init__(self, direction: Direction, graph: Graph) -> None:
        super().__init__(direction, graph)
        self.steps: list[Step] = []
        self.operand(direction.left, lambda match: -1, "")
        if direction.varies:
            _, says, but = _FACTS[-1]
            self.fact(f"the left side {says}", "", Varying, self.classes[direction.left], but)
        for condition in direction.conditions:
            self.compute(f"if {condition}", condition, self.condition(condition))
        for guard in direction.guards:
            text = f"an attribute is {guard.expression}"
            self.compute(text, guard.expression, self.equality(guard), self.attributes[guard])
        for output in direction.outputs:
            self.compute(f"{output.expression} has a value", output.expression, self.result(output))

    def check(
        self,
        text: str,
        asks: str,
        holds: Callable[[Match], bool],
        blame: Callable[[Match], str],
    ) -> None:
        """A step that keeps or drops a match."""

        def extend(match: Match) -> Sequence[Match]:
            return [match] if holds(match) else []

        self.steps.append(Step(text, asks, extend, lambda match: [blame(match)]))

    def operand(self, term: Term, find: Callable[[Match], int], where: str) -> None:
        """The steps for `term` to match the class that `find` gives."""
        if term in self.classes:
            first = self.classes[term]
            self.check(
                f"{where} is {term} again",
                where,
                lambda match: find(match) == first(match),
                lambda match: f"it is {self.graph.text_of(find(match))}, another tensor",
            )
        elif isinstance(term, Application):
            self.application(term, find, where)
        else:
            self.classes[term] = find
            self.leaf(term, find)

    def application(self, term: Application, find: Callable[[Match], int], where: str) -> None:
        graph, name, slot = self.graph, _wanted_op(term), len(self.terms)
        self.terms.append(term)
        self.classes[term] = lambda match: match[slot][0]

        def extend(match: Match) -> Sequence[Match]:
            if not match:
                return [(entry,) for entry in graph.by_op.get(name, ())]
            number = find(match)
            nodes = graph.classes.nodes[number]
            return [(*match, (number, n)) for n in nodes if name in (n.op, op_text(n))]

        def blame(match: Match) -> Sequence[str]:
            return graph.ops(find(match)) if match else [f"there is no {name}"]

        asks = where or "the root"
        self.steps.append(Step(self.prefix(), asks, extend, blame, name, find))
        names, op = term.op.attribute_names, term.op.name
        for place, (expression, sort) in enumerate(
            zip(term.attributes, term.op.attributes, strict=True)
        ):
            if isinstance(expression, Literal) and isinstance(expression.value, FUNCTIONS):
                continue
            self.attribute(expression, sort, slot, place, f"the {names[place]} of {op}")
        for place, operand in enumerate(term.operands):
            self.operand(operand, _operand_of(slot, place), f"operand {place + 1} of {op}")

    def attribute(
        self, expression: Expression, sort: type, slot: int, place: int, where: str
    ) -> None:
        def value_of(match: Match) -> Attribute:
            return match[slot][1].attributes[place]

        self.value(expression, sort, value_of, where)

    def value(
        self,
        expression: Expression,
        sort: type,
        value_of: Callable[[Match], Attribute],
        where: str,
        is_element: bool = False,
    ) -> None:
        """The steps for an attribute or a scalar of the pattern to be what `value_of` gives."""
        if isinstance(expression, Literal):
            wanted = content(expression.value)
            self.check(
                f"{where} is {expression}",
                where,
                lambda match: content(value_of(match)) == wanted,
                lambda match: f"it is {value_of(match)}",
            )
            return
        key = (
            expression
            if isinstance(expression, AttributeVariable)
            else Computed(expression, sort, is_element)
        )
        first = self.attributes.setdefault(key, value_of)
        if first is not value_of:
            self.check(
                f"{where} is {expression} again",
                where,
                lambda match: content(value_of(match)) == content(first(match)),
                lambda match: f"it is {value_of(match)}, not {first(match)}",
            )

    def leaf(self, term: Term, find: Callable[[Match], int]) -> None:
        """The facts that a variable of the pattern asks for."""
        graph = self.graph
        for sort, says, but in _FACTS:
            if isinstance(term, sort):
                self.fact(f"{term} {says}", str(term), sort, find, but)
                return
        if isinstance(term, ScalarTerm):
            self.check(
                f"{term} is a 0-d constant",
                str(term),
                lambda match: graph.scalars[find(match)] is not None,
                lambda match: f"it is {graph.text_of(find(match))}",
            )

            def value_of(match: Match) -> Attribute:
                value = graph.scalars[find(match)]
                if value is None:
                    raise LookupError(f"{term} is not bound")
                return value

            self.value(term.value, Scalar, value_of, "the scalar", is_element=True)

    def fact(
        self, text: str, asks: str, sort: type[Tensor], find: Callable[[Match], int], but: str
    ) -> None:
        """The step for a class to be one that a variable of `sort` stands for."""
        self.check(
            text,
            asks,
            lambda match: find(match) in self.graph.standing_for(sort),
            lambda match: f"it is {self.graph.text_of(find(match))}{but}",
        )

    def prefix(self) -> str:
        """The pattern as far as its ops are matched."""
        return self._prefix(self.direction.left)

    def _prefix(self, term: Term) -> str:
        if not isinstance(term, Application):
            return str(term)
        if term not in self.terms:
            return "…"
        parts = [self._prefix(operand) for operand in term.operands]
        return f"{term.op.name}({', '.join([*parts, *map(str, term.attributes)])})"

    def compute(
        self,
        text: str,
        expression: Expression,
        fault: Fault,
        actual: Callable[[Match], Attribute] | None = None,
    ) -> None:
        """A step that computes `expression`, and compares it with the `actual` attribute if any."""
        names = tuple(dict.fromkeys(expression.variables()))
        faults: dict[Hashable, str | None] = {}

        def blame(match: Match) -> str | None:
            values = self.values(match)
            found = None if actual is None else actual(match)
            key = (content(found), *(content(values[name]) for name in names))
            if key not in faults:
                faults[key] = self.fault_or_refusal(fault, values, found)
            return faults[key]

        self.check(text, text, lambda match: blame(match) is None, lambda match: blame(match) or "")

    def fault_or_refusal(
        self, fault: Fault, values: dict[str, object], found: Attribute | None
    ) -> str | None:
        """What `fault` answers, or the reason of a refusal. Raises RuleError where it fails."""
        try:
            return fault(values, found)
        except Refuse as reason:
            return f"it refuses: {reason}"
        except Exception as error:
            raise self.direction.failure(error, values) from error

    def condition(self, condition: Expression) -> Fault:
        """The fault of values for which `condition` is false."""
        holds = self.direction.holds
        return lambda values, _: None if holds(condition, values) else "it is false"

    def result(self, output: Computed) -> Fault:
        """No fault: where there is no result, `output` refuses."""

        def fault(values: dict[str, object], found: Attribute | None) -> str | None:
            output.value(values)
            return None

        return fault

    def equality(self, guard: Computed) -> Fault:
        """The fault of an attribute that is not what `guard` computes."""

        def fault(values: dict[str, object], found: Attribute | None) -> str | None:
            wanted = guard.value(values)
            equal = content(wanted) == content(found)
            return None if equal else f"it is {found}, not {wanted}"

        return fault


def _operand_of(slot: int, place: int) -> Callable[[Match], int]:
    return lambda match: match[slot][1].operands[place]
