"""Where a node of a rewritten program comes from: the rules that made it, one after the other.

Every e-node says which rule made it first, in which round, and in which class that rule matched.
What the rule matched there is found by matching its left side again: of the matches whose right
side has that e-node, the one that was complete first. What it matched was made in earlier rounds in
turn, down to the program's own nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

from satura.rewrite.egraph.classes import ENode, find_class
from satura.rewrite.egraph.decode import Origin
from satura.rewrite.egraph.saturate import Saturation
from satura.rewrite.errors import CallError
from satura.rewrite.explain.class_graph import Graph
from satura.rewrite.explain.hidden import with_hidden
from satura.rewrite.explain.matcher import Match, Trace, trace
from satura.rewrite.explain.merged import Loaded, enode_of
from satura.rewrite.explain.naming import Names
from satura.rewrite.language.rule import Direction, RuleSet
from satura.rewrite.language.terms import Application, ScalarTerm, Tensor, Term
from satura.rewrite.program.program import Program
from satura.rewrite.program.records import check_node
from satura.rewrite.types.attributes import Attribute
from satura.rewrite.types.constant import Constant, Scalar


@dataclass(frozen=True)
class Made:
    """A rule fired: in which round, on what (root first), and the e-node that it made."""

    rule: str
    round: int
    matched: tuple[str, ...]
    made: str

    def __str__(self) -> str:
        lines = [f"round {self.round}, {self.rule} matched", *(f"    {t}" for t in self.matched)]
        return "\n".join([*lines, f"  and made {self.made}"])


@dataclass(frozen=True)
class Equal:
    """What an operand was in the loaded program, and the rules that equate it with what it is now.

    Where what they matched is gone, those rules are `perhaps` that fired and might have.
    """

    now: str
    loaded: str
    rules: tuple[str, ...]
    perhaps: tuple[str, ...]

    @property
    def by(self) -> str:
        """The rules, in words."""
        if self.rules or not self.perhaps:
            return " or ".join(self.rules) or "rules"
        return f"rules, perhaps {' or '.join(self.perhaps)}"

    def __str__(self) -> str:
        return f"{self.loaded}\n    is {self.now} here, made equal by {self.by}"


@dataclass(frozen=True)
class Explanation:
    """A node of a rewritten program, and the firings that led to it, earliest first.

    A node that no rule made may have `equal` operands in place of those of the loaded program.
    """

    node: str
    steps: tuple[Made, ...]
    equal: tuple[Equal, ...] = ()

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        if self.equal:
            shown = [f"  {each}" for each in self.equal]
            return "\n".join(
                [self.node, "  stands in the loaded program with other operands", *shown]
            )
        if not self.steps:
            return f"{self.node}\n  stands in the program as it was loaded"
        return "\n".join([self.node, *map(str, self.steps)])


class Explainer:
    """Explains nodes of programs that were extracted from one saturation of `program`.

    `rules` are those that ran. `names` are those that the program's nodes have elsewhere.
    """

    def __init__(
        self,
        program: Program,
        saturation: Saturation,
        rules: RuleSet,
        names: Mapping[int, str] | None = None,
    ) -> None:
        self.saturation = with_hidden(saturation)
        self.names = Names(program, self.saturation, names or {})
        self.directions = {d.label: d for rule in rules for d in rule.directions}
        self.homes = self.saturation.classes.homes
        self.loaded = Loaded(program, self.saturation.program_classes)
        self.graph = Graph(self.saturation.classes)
        # One trace serves all nodes that a rule made.
        self.trace = cache(self._trace)
        self.matches = cache(self._matches)

    def explain(self, rewritten: Program, index: int) -> Explanation:
        """Where node `index` of `rewritten` comes from. Raises CallError for an unknown one."""
        return self.explain_all(rewritten, [index])[0]

    def explain_all(self, rewritten: Program, indices: Sequence[int]) -> list[Explanation]:
        """Where those nodes of `rewritten` come from. Raises CallError for one that is unknown."""
        homes = find_class(self.saturation.classes, rewritten)
        return [self._explain(rewritten, homes, index) for index in indices]

    def _explain(self, rewritten: Program, homes: Sequence[int | None], index: int) -> Explanation:
        check_node(rewritten, index)
        node = rewritten.nodes[index]
        entry = enode_of(rewritten, homes, index)
        if homes[index] is None or entry is None:
            raise CallError(f"%{index} = {node} is not in the e-graph")
        steps: dict[ENode, Made] = {}
        self._collect(entry, steps)
        ordered = sorted(steps.values(), key=lambda step: step.round)
        others = () if steps else self.loaded.otherwise(rewritten, homes, index)
        equal = tuple(self._equal(here, there, homes[here]) for here, there in others)
        return Explanation(f"%{index} = {node} : {node.type}", tuple(ordered), equal)

    def _equal(self, here: int, there: int, number: int | None) -> Equal:
        """What is said of a class with node `here` of the rewritten program, and node `there` of
        the loaded one: rules equate terms in it with operands of these."""
        fired = {each.name for each in self.saturation.report.rules if each.matches}
        perhaps = {
            label: direction.right.name
            for label, direction in self.directions.items()
            if label in fired and isinstance(direction.right, Tensor)
        }
        known = [
            label
            for label, variable in perhaps.items()
            for match in (self.matches(label).get(number, []) if number is not None else ())
            if self.trace(label).bindings.class_of(variable, match) == number
        ]
        rules = tuple(dict.fromkeys(known))
        return Equal(f"%{here}", self.names.of_node(there), rules, () if rules else (*perhaps,))

    def _collect(self, node: ENode, steps: dict[ENode, Made]) -> None:
        """Add the firing that made `node`, and those that made what it matched."""
        stack = [node]
        while stack:
            node = stack.pop()
            number = self.homes[node]
            if node in steps or self.names.maker(number, node) is None:
                continue
            origin = self.names.origin(number, node)
            match = self._match(origin, number, node)
            matched = [entry for _, entry in match]
            steps[node] = Made(
                origin.rule or "",
                origin.round,
                tuple(self.names.text(*entry) for entry in match),
                self.names.term(number, node),
            )
            stack.extend(matched)

    def _match(self, origin: Origin, number: int, node: ENode) -> Match:
        """What the rule matched when it made `node`; empty where that is no longer known.

        Classes are as they are at the end: what was matched may have merged with what was made.
        """
        if origin.rule not in self.directions:
            return ()
        root = number if origin.cause is None else origin.cause
        direction = self.directions[origin.rule]
        found = self.trace(direction.label)
        here = self.matches(direction.label).get(root, [])
        # Of two e-nodes that became one when their operands merged, origin and cause may be mixed.
        for candidates in (here, found.matches):
            makers = [match for match in candidates if self._makes(direction, found, match, node)]
            if makers:
                return min(makers, key=self._age)
        return ()

    def _age(self, match: Match) -> int:
        """The round in which a match was complete."""
        return max(self.names.origin(*entry).round for entry in match)

    def _trace(self, label: str) -> Trace:
        return trace(self.directions[label], self.graph)

    def _matches(self, label: str) -> dict[int, list[Match]]:
        """The matches of a rule by the class of their root."""
        found: dict[int, list[Match]] = {}
        for match in self.trace(label).matches:
            found.setdefault(match[0][0], []).append(match)
        return found

    def _makes(self, direction: Direction, found: Trace, match: Match, node: ENode) -> bool:
        """Whether the right side for this match has `node` in it."""
        values = found.bindings.values(match)
        made: set[ENode] = set()

        def build(term: Term) -> int | None:
            if isinstance(term, Tensor):
                return found.bindings.class_of(term.name, match)
            if isinstance(term, ScalarTerm):
                scalar = term.value.evaluate(values)
                assert isinstance(scalar, Scalar)
                entry = ENode("constant", (), (Constant(scalar.array),))
            else:
                assert isinstance(term, Application)
                operands = [build(operand) for operand in term.operands]
                attributes = [value.evaluate(values) for value in term.attributes]
                entry = ENode(
                    term.op.name,
                    tuple(number for number in operands if number is not None),
                    tuple(value for value in attributes if isinstance(value, Attribute)),
                )
            made.add(entry)
            return self.homes.get(entry)

        build(direction.right)
        return node in made
