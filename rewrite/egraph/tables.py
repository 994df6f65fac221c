"""The tables of the e-graph, as egglog text.

Per op that rules or the program mention one constructor `n_op(operands…, attributes…)`, whose
attributes are interned numbers. Facts about classes: `type_of`, `known` (computed from constants
alone, whatever the sizes), `varying` (depends on an input, on another source or on a size),
`turned` (transposed somewhere, or what is computed from it along the same axes is), `movable`,
`untransposed`, `unpadded` and `approximate` (see the terms of these names), `scalar_of` (a 0-d
constant).

What is computed in Python goes through tables, too: a match puts who asks, and with which
arguments, into `want_of_…`, and Python answers with a row of `told_…`, or not at all. Both begin
with a number that says what the row is about; rows of one width share one table, since each table
that is read or filled costs more than its rows.

An elementwise or layout node over its own class, such as x + 0 or a transpose that changes nothing
in the class of x, is hidden: whatever it is rewritten to has one more such node. Classes with one
transpose in common are one: a transpose has an inverse. So has a reshape from shapes that are one,
and a broadcast from one shape to one that has elements at all sizes.

Provenance: `born_op` says which run of which rule made a node first (the class that `(now …)`
has during that run), `cause_op` for which matched class, where that is not the node's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from satura.rewrite.egraph.approximate import (
    FRACTIONAL,
    IRRATIONAL,
    LASTING,
    RELATIONS,
    SCALING,
    copies_constants,
    is_relation_asked,
    lasting_operands,
    sums_products,
)
from satura.rewrite.egraph.queries import Atom, relation, rule_text, split_query
from satura.rewrite.ops import REGISTRY, REPEATING
from satura.rewrite.ops.registry import Kind, Op
from satura.rewrite.types.attributes import may_be_open

# What a row is about: a direction of a rule by its number, or an op's node table by its position.
_TYPING = 1_000_000  # the types of the op's nodes
_LOADING = 2_000_000  # nodes of the program
KNOWN, VARYING = 3_000_000, 3_000_001  # facts about them


@dataclass(frozen=True)
class NodeTable:
    """The constructor of an op; ops of any arity have one per arity that occurs.

    Tables are told apart by their positions.
    """

    op: Op
    arity: int
    position: int

    @property
    def name(self) -> str:
        return f"{self.op.name}_{self.arity}" if self.op.arity is None else self.op.name

    @property
    def operands(self) -> list[str]:
        return [f"e{index}" for index in range(self.arity)]

    @property
    def attributes(self) -> list[str]:
        return [f"a{index}" for index in range(len(self.op.attributes))]

    @property
    def may_be_open(self) -> list[str]:
        """Attributes that can depend on sizes where the result's type does not."""
        named = zip(self.attributes, self.op.attributes, strict=True)
        return [name for name, sort in named if may_be_open(sort)]

    @property
    def arguments(self) -> str:
        return " ".join([*self.operands, *self.attributes])

    @property
    def columns(self) -> str:
        return " ".join(["T"] * self.arity + ["i64"] * len(self.op.attributes))

    @property
    def width(self) -> int:
        """Columns of a table of type demands: an operand's type or an attribute each."""
        return self.arity + len(self.op.attributes)

    @property
    def typing(self) -> int:
        """What rows about the types of the op's nodes begin with."""
        return _TYPING + self.position

    @property
    def loading(self) -> int:
        """What rows that load nodes of a program begin with."""
        return _LOADING + self.position


def node_tables(
    names: Collection[str], host_arities: Iterable[int] = (), first: int = 0
) -> dict[str, NodeTable]:
    """Node tables by name: of the named ops, and of host nodes of these arities.

    Their order does not depend on that of `names`; positions count from `first`.
    """
    ops = [op for op in REGISTRY.values() if op.name in names]
    kinds = [(op, op.arity) for op in ops if op.arity is not None]
    kinds += [(REGISTRY["host"], arity) for arity in sorted(set(host_arities))]
    tables = [NodeTable(*kind, position) for position, kind in enumerate(kinds, first)]
    return {table.name: table for table in tables}


_RELATIONS = "\n".join(f"(function {name} (i64) Unit :no-merge)" for name in RELATIONS)
# What there is whatever the ops, beside the shared tables.
BASE = f"""
(sort T)
(constructor transposed_back (T i64) T)
(constructor reshaped_back (T i64) T)
(constructor broadcast_back (T i64) T)
(constructor now (i64) T)
(constructor now_load () T)
(constructor node (i64) T)
(function type_of (T i64) Unit :no-merge)
(function conflict (i64 i64) Unit :no-merge)
(function known (T) Unit :no-merge)
(function varying (T) Unit :no-merge)
(function turned (T) Unit :no-merge)
(function movable (T) Unit :no-merge)
(function untransposed (T) Unit :no-merge)
(function unpadded (T) Unit :no-merge)
(function approximate (T) Unit :no-merge)
(function fraction (T) Unit :no-merge)
(function pad_value (T i64) Unit :no-merge)
(function next_pad_value (T i64) Unit :no-merge)
(function static (i64) Unit :no-merge)
(function filled (i64) Unit :no-merge)
(function symbolic (i64) Unit :no-merge)
{_RELATIONS}
(function scalar_of (T) i64 :merge (min old new))
(function scalar_value (i64 i64) Unit :no-merge)
(ruleset load)
(ruleset types)
(ruleset facts)
(ruleset unions)
(ruleset rounding)
(ruleset demand)
(ruleset forget)
(rule ((= e (now n))) ((delete (now n))) :ruleset forget)
(rule ((type_of x a) (type_of x b) (< a b)) ((set (conflict a b) ()))
      :ruleset unions :name "conflict")
(rule ((told_1 {KNOWN} n)) ((set (known (node n)) ())) :ruleset load)
(rule ((told_1 {VARYING} n)) ((set (varying (node n)) ())) :ruleset load)
(rule ((turned x) (varying x)) ((set (movable x) ())) :ruleset facts)
(rule ((pad_value x a) (next_pad_value x b) (!= a b)) ((set (unpadded x) ())) :ruleset facts)
"""


def schema(table: NodeTable) -> str:
    """Text that declares all tables about an op's nodes, and the rules for facts about them."""
    name, columns = table.name, table.columns
    text = f"""
(constructor n_{name} ({columns}) T)
(function born_{name} ({columns}) T :merge old)
(function cause_{name} ({columns}) T :merge old)
"""
    node = Atom(f"n_{name}", (*table.operands, *table.attributes), "e")
    text += _loader(table) + _type_tables(table, node)
    if table.op.name == "constant":
        text += _fact([node], "(known e)") + _fact([node], "(movable e)")
        text += _fact([node, Atom("scalar_value", ("a0", "s"))], "(scalar_of e)", value="s")
    elif table.arity == 0:
        text += _fact([node], "(varying e)")
    elif table.op.kind is not Kind.HOST:
        known = [Atom("known", (operand,)) for operand in table.operands]
        static = [Atom("type_of", ("e", "y")), Atom("static", ("y",))]
        static += [Atom("static", (column,)) for column in table.may_be_open]
        text += _fact([node, *known, *static], "(known e)", f"known_{name}")
        for column in table.may_be_open if table.op.name not in REPEATING else ():
            text += _fact([node, Atom("symbolic", (column,))], "(varying e)")
    for operand in table.operands:
        text += _fact([node, Atom("varying", (operand,))], "(varying e)")
        if table.op.kind in (Kind.ELEMENTWISE, Kind.LAYOUT):
            text += _hiding_rule(table, operand)
    return text + _movement_rules(table, node) + _rounding_rules(table, node)


def _hiding_rule(table: NodeTable, operand: str) -> str:
    """The rule that hides a node whose class is that of its operand."""
    operands = ["e" if name == operand else name for name in table.operands]
    call = f"(n_{table.name} {' '.join([*operands, *table.attributes])})"
    return f"(rule ((= e {call})) ((subsume {call})) :ruleset unions)\n"


def _movement_rules(table: NodeTable, node: Atom) -> str:
    """The rules for facts about what can be moved, and where a movement starts."""
    op, varying, text = table.op, Atom("varying", ("e",)), ""
    if op.name in ("reshape", "transpose"):
        text += _fact([node, Atom("known", ("e0",))], "(movable e)")
    if op.name == "transpose":
        text += _fact([node], "(turned e0)")
        text += _rule([node], "(union e0 (transposed_back e a0))", ruleset="unions")
    elif op.kind is Kind.ELEMENTWISE or op.name == "reshape":
        for operand in table.operands:
            text += _fact([node, Atom("untransposed", (operand,))], "(untransposed e)")
    else:
        text += _fact([node, varying], "(untransposed e)")
    source = Atom("type_of", ("e0", "t"))
    if op.name == "reshape":
        text += _rule([node, source], "(union e0 (reshaped_back e t))", ruleset="unions")
    if op.name == "broadcast":
        has_elements = [Atom("type_of", ("e", "y")), Atom("filled", ("y",))]
        union = "(union e0 (broadcast_back e t))"
        text += _rule([node, *has_elements, source], union, "back", "unions")
    if keeps_axes(op):
        for operand in table.operands:
            text += _fact([node, Atom("turned", ("e",))], f"(turned {operand})")
    if op.name == "pad":
        value = Atom("scalar_of", ("e1",), "s")
        text += _fact([node, value], "(pad_value e s)")
        text += _fact([node, value], "(next_pad_value e0 s)")
    elif op.kind is Kind.ELEMENTWISE and table.arity == 1:
        text += _fact([node, Atom("unpadded", ("e0",))], "(unpadded e)")
    else:
        text += _fact([node], "(unpadded e)")
    return text


def _rounding_rules(table: NodeTable, node: Atom) -> str:
    """The rules for facts about rounding, see `approximate.py`."""
    op, name, text = table.op, table.name, ""
    approximate, varying = "(set (approximate e) ())", Atom("varying", ("e",))

    def rule(atoms: list[Atom], action: str, what: str) -> str:
        return _rule([node, *atoms], action, f"{what}_{name}", "rounding")

    if op.name == "constant":
        text += rule([Atom(FRACTIONAL, ("a0",))], "(set (fraction e) ())", "is")
    if copies_constants(op.name):
        text += rule([Atom("fraction", ("e0",))], "(set (fraction e) ())", "copies")
    if op.name == "unary":
        text += rule([Atom(IRRATIONAL, ("a0",)), varying], approximate, "is")
    if sums_products(op.name):
        of_floats = [Atom("type_of", ("e", "y")), Atom(LASTING, ("y",))]
        text += rule([*of_floats, varying], approximate, "sums")
    lasting = [Atom(LASTING, ("a0",))] if is_relation_asked(op.name) else []
    for position in lasting_operands(op.name, table.arity):
        operand = f"e{position}"
        text += rule([*lasting, Atom("approximate", (operand,))], approximate, f"lasts_{position}")
        if op.name == "binary":
            scales = [Atom(SCALING, ("a0",)), Atom("fraction", (operand,)), varying]
            text += rule(scales, approximate, f"scales_{position}")
    return text


def keeps_axes(op: Op) -> bool:
    """Whether a transpose of the result may be one of the operands."""
    moves = op.kind is Kind.LAYOUT and op.name not in ("reshape", "transpose")
    return moves or op.kind in (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.WINDOW)


def _fact(atoms: list[Atom], fact: str, name: str = "", value: str = "()") -> str:
    """A rule for facts; `name` names its tables where it needs some."""
    return _rule(atoms, f"(set {fact} {value})", name)


def _rule(atoms: list[Atom], action: str, name: str = "", ruleset: str = "facts") -> str:
    """A rule that is run with those for facts, or for types."""
    words = frozenset(action.replace("(", " ").replace(")", " ").split())
    stages, query = split_query(atoms, words, name)
    body = " ".join(map(str, query))
    rule = f"(rule ({body}) ({action}) :ruleset {ruleset})\n"
    return "".join([*(stage.text(ruleset) for stage in stages), rule])


def want_of(width: int) -> str:
    """The name of the table of demands with `width` arguments."""
    return f"want_of_{width}"


def answers_table(width: int) -> str:
    """The name of the table of what Python tells in `width` numbers."""
    return f"told_{width}"


def widths(tables: Iterable[NodeTable]) -> set[int]:
    """Widths of the shared tables that loading nodes and typing them takes."""
    return {table.width + more for table in tables for more in range(3)}


def shared_tables(width: int) -> str:
    """The two tables for rows of `width` numbers; the ruleset `clear_…` empties that of demands."""
    want, sorts = want_of(width), ["i64"] * (width + 1)
    columns = " ".join(f"c{index}" for index in range(width + 1))
    return (
        f"{relation(answers_table(width), sorts)}{relation(want, sorts)}"
        f"(ruleset clear_{want})\n"
        f"(rule (({want} {columns})) ((delete ({want} {columns}))) :ruleset clear_{want})\n"
    )


def _loader(table: NodeTable) -> str:
    """The rule that makes a program's nodes: their classes are there before they are."""
    columns = [f"i{index}" for index in range(table.arity)] + table.attributes
    row = Atom(answers_table(table.width + 2), (str(table.loading), "n", *columns, "t"))
    arguments = [f"(node i{index})" for index in range(table.arity)] + table.attributes
    made = " ".join(arguments)
    return f"""
(rule ({row})
      ((let e (n_{table.name} {made})) (union e (node n)) (set (type_of e t) ())
       (set (born_{table.name} {made}) (now_load))) :ruleset load)
"""


def _type_tables(table: NodeTable, node: Atom) -> str:
    """Demands for the types of an op's nodes.

    `typing_…` has a node's class and what its type follows from: the types of its operands and its
    attributes; for a result of a host call the call itself.
    """
    name = table.name
    columns = tuple(f"c{index}" for index in range(table.width))
    sorts = ["i64"] * table.width
    typing = Atom(f"typing_{name}", ("e", *columns))
    number = str(table.typing)
    want = Atom(want_of(table.width), (number, *columns))
    text = relation(typing.table, ["T", *sorts])
    text += rule_text([typing], want.stated, "types", f"asking_{name}")  # tells what it asked for
    told = Atom(answers_table(table.width + 1), (number, *columns, "y"))
    text += _rule([typing, told], "(set (type_of e y) ())", ruleset="types")
    if table.op.name == "item":
        return text
    if table.op.name == "host":
        result = Atom("n_item", ("e", "c"), "er")
        text += _rule([node, result], "(set (typing_item er a0 c) ())", ruleset="types")
    types = tuple(f"y{index}" for index in range(table.arity))
    pairs = zip(table.operands, types, strict=True)
    atoms = [node, *(Atom("type_of", pair) for pair in pairs)]
    row = f"(typing_{name} e {' '.join((*types, *table.attributes))})"
    return text + _rule(atoms, f"(set {row} ())", f"of_{name}", "types")
