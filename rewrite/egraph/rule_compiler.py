"""Rules as egglog text: per direction of a rule one ruleset, and tables for its longer joins.

    transpose(transpose(x, p), q) -> transpose(x, p[q])

becomes, as direction 3 and with `e1` for the inner transpose,

    (rule ((= e0 (n_transpose e1 q)) (= e1 (n_transpose x p))) ((match_3 e0 x p q)))
    (rule ((match_3 e0 x p q)) ((want_of_2 3 p q)))
    (rule ((match_3 e0 x p q) (told_3 3 p q o0)) ((let r0 (n_transpose x o0)) (union e0 r0)))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from satura.rewrite.egraph.dropping import Dropping
from satura.rewrite.egraph.interner import Interner
from satura.rewrite.egraph.queries import Atom, rule_text, split_query
from satura.rewrite.egraph.tables import answers_table, want_of
from satura.rewrite.language.dsl import Computed, Direction
from satura.rewrite.language.expressions import AttributeVariable, Expression, Literal
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
from satura.rewrite.ops.registry import Kind
from satura.rewrite.types.attributes import Attribute, Count
from satura.rewrite.types.constant import Constant, Scalar

_FACTS: Mapping[type[Term], str] = {
    Known: "known",
    Varying: "varying",
    Movable: "movable",
    Untransposed: "untransposed",
    Unpadded: "unpadded",
    Approximate: "approximate",
}


@dataclass(frozen=True)
class RuleCode:
    """The egglog text of one direction, and the names of its rulesets and tables.

    The rulesets `joining` fill the tables of its joins, one after another. The rule `asking` puts
    `width` arguments into the table of demands of that width; answers have `results` numbers more.
    It fires at most once per row of the table `rows`, which is empty where that is not known, and
    makes at most `makes` e-nodes each time.
    """

    direction: Direction
    text: str
    joining: tuple[str, ...]
    ruleset: str
    asking: str
    width: int
    results: int
    rows: str
    makes: int


def compile_direction(
    direction: Direction, number: int, interner: Interner, apart: bool = False
) -> RuleCode:
    """The egglog text of `direction`; `number` tells its tables from those of others.

    Where it is to run `apart` from the others, its joins have a ruleset of their own, and all of
    them are done before it fires.
    """
    return _Writer(direction, number, interner, apart).code()


def joining_rulesets(count: int, whose: str = "") -> tuple[str, ...]:
    """The names of the rulesets that fill the first, second and further tables of joins."""
    return tuple(f"joining_{stage}{whose}" for stage in range(count))


class _Writer:
    def __init__(self, direction: Direction, number: int, interner: Interner, apart: bool) -> None:
        self.direction = direction
        self.apart = apart
        self.number = number
        self.interner = interner
        self.now = f"(now {number})"
        self.matched: dict[Term, str] = {}
        self.nodes: list[Atom] = []
        self.facts: list[Atom] = []
        self.made: dict[Term, str] = {}
        self.actions: list[str] = []
        guards, outputs = direction.guards, direction.outputs
        self.guards = {guard: f"g{index}" for index, guard in enumerate(guards)}
        self.outputs = {output: f"o{index}" for index, output in enumerate(outputs)}

    def code(self) -> RuleCode:
        direction, number = self.direction, self.number
        ruleset = f"fire_{number}"
        asking = f"asking_{number}" if direction.computes else ""
        root = self.match(direction.left)
        if direction.varies:
            self.facts.append(Atom("varying", (root,)))
        columns = [*map(self.input, direction.inputs), *self.guards.values()]
        outputs = list(self.outputs.values())
        dropped: list[str] = []
        if isinstance(direction, Dropping):
            operand = self.matched[direction.dropped.operand]
            dropped = [f"(union {root} {operand})", *self.hiding]
            outputs[-1] = self.literal(Count(0))
        result = self.make(direction.right, root, is_root=True)
        self.actions += [f"(union {root} {result})", *self.hiding]
        words = frozenset(" ".join(self.actions).replace("(", " ").replace(")", " ").split())
        loops = self.loops(root)
        words |= frozenset(name for atom in loops for name in atom.variables)

        atoms = [*self.nodes, *self.facts]
        if direction.computes:
            answer = (str(number), *columns, *outputs)
            atoms.append(Atom(answers_table(len(columns) + len(outputs)), answer))
        one_table = self.apart and not direction.computes
        stages, query = split_query(atoms, words, f"match_{number}", 1 if one_table else 2)
        # A row of demands has one answer at most.
        rows = query[0].table if direction.computes or len(query) == 1 else ""
        joining = joining_rulesets(len(stages), f"_of_{number}" if self.apart else "")
        lines = [f"(ruleset {ruleset})\n"]
        if self.apart:
            lines += [f"(ruleset {name})\n" for name in joining]
        lines += [stage.text(name) for stage, name in zip(stages, joining, strict=True)]
        if direction.computes:
            want = Atom(want_of(len(columns)), (str(number), *columns))
            lines.append(rule_text(query[:-1], want.stated, "demand", asking))
        if direction.hides:
            query = [*query, *self.apart_from(root)]
        query = [*query, *loops]
        lines.append(rule_text(query, " ".join(self.actions), ruleset, ruleset))
        if isinstance(direction, Dropping):
            told = Atom(atoms[-1].table, (*atoms[-1].arguments[:-1], self.literal(Count(1))))
            name = f"{ruleset}_{direction.number}"
            query = [told if atom is atoms[-1] else atom for atom in query]
            lines.append(rule_text(query, " ".join(dropped), ruleset, name))
        text, makes = "".join(lines), len(self.made)
        width, results = len(columns), len(outputs)
        return RuleCode(direction, text, joining, ruleset, asking, width, results, rows, makes)

    @property
    def hiding(self) -> list[str]:
        """The action that hides what the left side matched, where it is to be hidden."""
        return [f"(subsume {self.nodes[0].call})"] if self.direction.hides else []

    def loops(self, root: str) -> list[Atom]:
        """Facts that no operand of what matches is in its class: such a node is hidden, but was
        joined with others before, and would be with all that its class ever gets."""
        left = self.direction.left
        if left.op.kind is not Kind.ELEMENTWISE:
            return []
        return [Atom("!=", (root, self.matched[operand])) for operand in left.operands]

    def apart_from(self, root: str) -> list[Atom]:
        """Facts that what replaces a node of a class is not made of that class."""
        right = self.direction.right
        if right in self.matched or not isinstance(right, Application):
            return []
        operands = [self.matched[term] for term in right.operands if term in self.matched]
        return [Atom("!=", (root, operand)) for operand in operands]

    def match(self, term: Term) -> str:
        """The egglog variable of a term on the left side, with the atoms that bind it."""
        if term in self.matched:
            return self.matched[term]
        if isinstance(term, Tensor):
            name = self.matched[term] = f"t_{term.name}"
            if type(term) in _FACTS:
                self.facts.append(Atom(_FACTS[type(term)], (name,)))
            return name
        name = self.matched[term] = f"e{len(self.matched)}"
        if isinstance(term, ScalarTerm):
            value = self.left_scalar(term.value)
            self.facts.append(Atom("scalar_of", (name,), value))
            return name
        assert isinstance(term, Application)
        place = len(self.nodes)
        operands = [self.match(operand) for operand in term.operands]
        sorts = term.op.attributes
        attributes = [
            self.attribute(value, sort, self.guards)
            for value, sort in zip(term.attributes, sorts, strict=True)
        ]
        self.nodes.insert(place, Atom(f"n_{term.op.name}", (*operands, *attributes), name))
        return name

    def make(self, term: Term, root: str, is_root: bool = False) -> str:
        """The egglog variable of a term on the right side, with the actions that build it."""
        if term in self.matched:
            return self.matched[term]
        if term in self.made:
            return self.made[term]
        if isinstance(term, ScalarTerm):
            op, arguments = "constant", self.right_scalar(term.value)
        else:
            assert isinstance(term, Application)
            operands = [self.make(operand, root) for operand in term.operands]
            sorts = term.op.attributes
            attributes = [
                self.attribute(value, sort, self.outputs)
                for value, sort in zip(term.attributes, sorts, strict=True)
            ]
            op, arguments = term.op.name, " ".join([*operands, *attributes])
        name = self.made[term] = f"r{len(self.made)}"
        self.actions.append(f"(let {name} (n_{op} {arguments}))")
        self.actions.append(f"(set (born_{op} {arguments}) {self.now})")
        if not is_root:
            self.actions.append(f"(set (cause_{op} {arguments}) {root})")
        return name

    def input(self, name: str) -> str:
        """The egglog variable of what `compute` reads: an attribute, or a tensor's type."""
        sort = self.direction.variables[name]
        if not issubclass(sort, Tensor):
            return f"a_{name}"
        atom = Atom("type_of", (f"t_{name}", f"y_{name}"))
        if atom not in self.facts:
            self.facts.append(atom)
        return f"y_{name}"

    def attribute(
        self, expression: Expression, sort: type, computed: Mapping[Computed, str]
    ) -> str:
        """The egglog variable or number of an attribute; `computed` names guards or outputs."""
        if isinstance(expression, AttributeVariable):
            return f"a_{expression.name}"
        if isinstance(expression, Literal):
            return self.literal(expression.value)
        return computed[Computed(expression, sort)]

    def left_scalar(self, expression: Expression) -> str:
        if isinstance(expression, AttributeVariable | Literal):
            return self.attribute(expression, Scalar, self.guards)
        return self.guards[Computed(expression, Scalar, is_element=True)]

    def right_scalar(self, expression: Expression) -> str:
        """The number of the constant that holds a scalar."""
        if isinstance(expression, Literal):
            assert isinstance(expression.value, Scalar)
            return str(self.interner.number(Constant(expression.value.array)))
        return self.outputs[Computed(expression, Scalar, is_element=True)]

    def literal(self, value: object) -> str:
        assert isinstance(value, Attribute)
        return str(self.interner.number(value))


__all__ = ["RuleCode", "compile_direction"]
