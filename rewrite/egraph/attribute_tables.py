"""Demand tables: attributes are computed by Python between runs, once per distinct arguments.

Matches put who asks and with what into `want_of_…`; `answer` evaluates what is new and puts
arguments and results into `told_…`, or nothing where the computation refuses. Rows are taken in
sorted order, so that interned numbers do not depend on the order of tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from satura.rewrite.egraph.approximate import RELATIONS, relations_of
from satura.rewrite.egraph.engine import EGraph, Row, Step
from satura.rewrite.egraph.interner import Interner, Value
from satura.rewrite.egraph.rule_compiler import RuleCode
from satura.rewrite.egraph.tables import NodeTable, answers_table, want_of
from satura.rewrite.errors import SaturaError
from satura.rewrite.types.attributes import (
    Attribute,
    Count,
    HostCall,
    Refuse,
    is_open,
    may_be_open,
)
from satura.rewrite.types.constant import Constant, Scalar  # fmt: skip
from satura.rewrite.types.dims import known_at_least
from satura.rewrite.types.tensor_type import TensorType


class TypeConflictError(SaturaError):
    """An e-node without a type, or a class with two: a rule is unsound."""


class Answer(Protocol):
    """A function that computes the results for one row of arguments; None refuses."""

    def __call__(self, arguments: tuple[Value, ...]) -> tuple[Value, ...] | None: ...


@dataclass
class Demand:
    """What one rule asks of Python, or the typing of one op, and the function that answers.

    The rule `asking` of the engine puts rows that begin with `number` into the table `want`; the
    answers, which begin with it too, go to the table `told`.
    """

    asking: str
    want: str
    number: int
    told: str
    answer: Answer
    done: set[Row] = field(default_factory=set)
    refusals: int = 0
    seconds: float = 0.0

    @property
    def calls(self) -> int:
        return len(self.done)


class Demands:
    """The demand tables of one e-graph."""

    def __init__(self, egraph: EGraph, interner: Interner) -> None:
        self._egraph = egraph
        self._interner = interner
        self._described = 0

    def answer(self, demands: Iterable[Demand], asked: Step) -> bool:
        """Answer all new rows that the run `asked` made. Returns whether that added anything."""
        asking = [demand for demand in demands if asked.matches.get(demand.asking)]
        rows: dict[int, list[Row]] = {}
        asked_in = {demand.want: f"clear_{demand.want}" for demand in asking}
        for entries in self._egraph.drain(asked_in).values() if asking else ():
            for number, *arguments in entries:
                rows.setdefault(number, []).append(tuple(arguments))
        answers: dict[str, list[Row]] = {}
        for demand in asking:
            started = perf_counter()
            answered = self._answers(demand, rows.get(demand.number, []))
            answers.setdefault(demand.told, []).extend(answered)
            demand.seconds += perf_counter() - started
        self._egraph.insert(answers)
        self.describe()
        return any(answers.values())

    def _answers(self, demand: Demand, asked: list[Row]) -> list[Row]:
        """The rows that answer those of `asked` that are new."""
        values = self._interner.values
        rows: list[Row] = []
        for row in asked:
            if row in demand.done:
                continue
            demand.done.add(row)
            results = demand.answer(tuple(values[number] for number in row))
            if results is None:
                demand.refusals += 1
            else:
                rows.append((demand.number, *row, *map(self._interner.number, results)))
        return rows

    def describe(self) -> None:
        """Tell the e-graph which new values are scalar constants, which depend on sizes, which are
        types of tensors with elements, and which matter for rounding."""
        scalars: list[Row] = []
        static: list[Row] = []
        filled: list[Row] = []
        symbolic: list[Row] = []
        rounding: dict[str, list[Row]] = {relation: [] for relation in RELATIONS}
        for number in range(self._described, len(self._interner.values)):
            value = self._interner[number]
            for relation in relations_of(value):
                rounding[relation].append((number,))
            if isinstance(value, Constant) and (scalar := value.scalar) is not None:
                scalars.append((number, self._interner.number(scalar)))
            elif isinstance(value, TensorType):
                (symbolic if value.symbols else static).append((number,))
                if all(known_at_least(extent, 1) for extent in value.shape):
                    filled.append((number,))
            elif may_be_open(type(value)):
                (symbolic if is_open(value) else static).append((number,))
        self._described = len(self._interner.values)
        self._egraph.insert(
            {"scalar_value": scalars, "static": static, "symbolic": symbolic, "filled": filled}
            | rounding
        )


def type_demand(table: NodeTable) -> Demand:
    """The demand for the types of an op's nodes.

    Answering raises TypeConflictError where operands and attributes do not fit.
    """
    op, arity = table.op, table.arity

    def answer(arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        if op.name == "item":
            call, index = arguments
            assert isinstance(call, HostCall) and isinstance(index, Count)
            return (call.outputs[index.value],)
        types = tuple(value for value in arguments[:arity] if isinstance(value, TensorType))
        attributes = tuple(v for v in arguments[arity:] if isinstance(v, Attribute))
        try:
            result = op.infer(types, attributes)
        except SaturaError as error:
            shown = ", ".join(map(str, arguments))
            raise TypeConflictError(f"{op.name}({shown}) has no type: {error}") from error
        return (result[0] if isinstance(result, tuple) else result,)

    width = table.width
    return Demand(
        f"asking_{table.name}", want_of(width), table.typing, answers_table(width + 1), answer
    )


def rule_demand(number: int, code: RuleCode) -> Demand:
    """The demand for the attributes that a rule computes; answering may raise RuleError."""
    direction = code.direction
    inputs, guards = direction.inputs, len(direction.guards)

    def answer(arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
        values = dict(zip(inputs, arguments[: len(inputs)], strict=True))
        found = arguments[len(inputs) :] if guards else None
        try:
            results = direction.compute(values, found)
        except Refuse:
            return None
        pairs = zip(results, direction.outputs, strict=True)
        return tuple(
            Constant(value.array) if isinstance(value, Scalar) and output.is_element else value
            for value, output in pairs
        )

    width = code.width
    return Demand(code.asking, want_of(width), number, answers_table(width + code.results), answer)
