"""Conditions that write down what their functions compare.

The functions are copies, with calls of a recorder in the place of comparisons. An author's function
of which no copy can be made is called as it is.
"""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType

from satura.rewrite.check.solved import conjuncts
from satura.rewrite.language.dsl import Direction
from satura.rewrite.language.expressions import Apply, Expression
from satura.rewrite.language.ours import is_ours
from satura.rewrite.types.dims import Dim, known_at_least

MOST_COMPARED = 500  # comparisons of one condition: a loop may not end for what makes no sense
MOST_OPTIONS = 20  # of `in (…)`
ASKED: Mapping[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=",
}  # fmt: skip
ORDERS: Mapping[str, tuple[Callable[..., object], int]] = {
    "<": (operator.lt, -1), "<=": (operator.le, 0), ">": (operator.gt, 1), ">=": (operator.ge, 0),
}  # fmt: skip
"""What they ask, and how far above the right side the nearest left one is."""
OPPOSITE: Mapping[type, type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}  # fmt: skip
RECORDER = "__compared__"
ANYTHING = (
    Exception,
    SystemExit,
)  # is what an author's function may raise for what it did not expect
Values = Mapping[str, object]
Pair = tuple[object, object]
Place = str
"""Where a comparison stands: in which function, line and column."""


@dataclass(frozen=True)
class Answer:
    """How many conditions hold, and equations in the first one that does not; the pairs that are
    not equal there, and the variables that it reads. There are no variables where all hold."""

    met: tuple[int, int]
    pairs: Sequence[Pair]
    read: frozenset[str]


class Comparing:
    """The conditions of a direction, with functions that write down what they compare.

    After they are `asked`, comparisons that gave true are `held`, and `missed` are the pairs of
    those that did not. Where `with_outputs`, what the right side computes counts among these.
    """

    def __init__(self, direction: Direction, *, with_outputs: bool = False) -> None:
        self.held: set[Place] = set()
        self.missed: dict[Place, list[Pair]] = {}
        self.pairs: list[Pair] = []
        self.equal = 0
        self.compared_once = 0  # how many comparisons one condition has made
        self.times = 0  # that the conditions were asked
        self.scopes: dict[int, dict[str, object]] = {}
        self.made: dict[FunctionType, Callable[..., object]] = {}
        conditions = [part for each in direction.conditions for part in conjuncts(each)]
        self.read = [frozenset(each.variables()) for each in conditions]
        self.conditions = [self._recording(each) for each in conditions]
        outputs = direction.outputs if with_outputs else ()
        self.outputs = [self._recording(each.expression) for each in outputs]
        made = self.made.items()
        self.has_functions = any(inspect.unwrap(each) is not plain for plain, each in made)

    def asked(self, values: Values) -> Answer:
        """What the conditions say of these values, one after the other."""
        self.times += 1
        self.held, self.missed = set(), {}
        for number, condition in enumerate(self.conditions):
            self.pairs, self.equal, self.compared_once = [], 0, 0
            try:
                holds = bool(condition.evaluate(values))
            except ANYTHING:
                holds = False
            if not holds:
                return Answer((number, self.equal), self.pairs, self.read[number])
        for output in self.outputs:
            with suppress(*ANYTHING):
                self.compared_once = 0
                output.evaluate(values)
        return Answer((len(self.conditions), 0), [], frozenset())

    def compared(
        self, left: object, right: object, asked: str, place: Place | None = None
    ) -> object:
        """What the comparison gives; a pair that differs is kept, unless by elements."""
        before = len(self.pairs)
        answer = self._compared(left, right, asked)
        if place is not None and answer is True:
            self.held.add(place)
        elif place is not None:
            self.missed.setdefault(place, []).extend(self.pairs[before:])
        return answer

    def _compared(self, left: object, right: object, asked: str) -> object:
        self.compared_once += 1
        if self.compared_once > MOST_COMPARED:
            raise _TooManyError
        if asked in ORDERS:
            return self._ordered(left, right, asked)
        if asked == "in":
            answer = left in right  # type: ignore[operator]
            is_equal, options = answer, right if isinstance(right, tuple | list) else ()
        else:
            answer = left == right if asked == "==" else left != right
            is_equal, options = answer is (asked == "=="), (right,)
        if isinstance(answer, bool):
            self.equal += is_equal
            self.pairs += [] if is_equal else [(left, each) for each in options[:MOST_OPTIONS]]
        return answer

    def _at_least(self, size: Dim, bound: int) -> object:
        """What `known_at_least` says; of a number as `>=` does."""
        is_number = type(size) is int
        return self.compared(size, bound, ">=") if is_number else known_at_least(size, bound)

    def _ordered(self, left: object, right: object, asked: str) -> object:
        """What a comparison of order gives; numbers that are the wrong way round are kept with
        those nearest to them that are not."""
        order, above = ORDERS[asked]
        answer = order(left, right)
        if answer is True:
            self.equal += 1
        elif type(left) is int and type(right) is int:
            self.pairs += [(left, right + above), (left - above, right)]
        return answer

    def _recording(self, expression: Expression) -> Expression:
        if not isinstance(expression, Apply):
            return expression
        function = expression.function
        if function is operator.eq:
            function = self._equals
        elif function is not getattr:
            function = self._function(function)
        arguments = tuple(map(self._recording, expression.arguments))
        keywords = tuple((name, self._recording(each)) for name, each in expression.keywords)
        return Apply(function, arguments, keywords)

    def _equals(self, left: object, right: object) -> object:
        return self.compared(left, right, "==")

    def _function(self, function: Callable[..., object]) -> Callable[..., object]:
        """The author's function with its comparisons written down; any other one as it is."""
        try:
            plain = inspect.unwrap(function)
        except Exception:  # a stand-in of the author's may give anything for any field
            return function
        if plain is known_at_least:
            return self._at_least
        if (
            not isinstance(plain, FunctionType)
            or is_ours(plain)
            or str(plain.__module__).startswith("numpy")
        ):
            return function
        if plain not in self.made:
            self.made[plain] = function  # as long as it is made, and where it cannot be
            try:
                self.made[plain] = self._made(plain) or function
            except Exception:  # its text stands where no copy of it can be made
                return function
        return self.made[plain]

    def _made(self, function: FunctionType) -> FunctionType | None:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        if function.__closure__ or not isinstance(definition, ast.FunctionDef):
            return None
        definition.decorator_list = []
        definition.args.defaults = []  # those of the author's function are taken
        definition.args.kw_defaults = [None for _ in definition.args.kwonlyargs]
        written = ast.Module([_Recorded(function.__qualname__).visit(definition)], [])
        code = compile(
            ast.fix_missing_locations(written),
            function.__code__.co_filename,
            "exec",
            __future__.annotations.compiler_flag,
            dont_inherit=True,
        )
        scope = self.scopes.setdefault(
            id(function.__globals__), {**function.__globals__, RECORDER: self.compared}
        )
        for name in function.__code__.co_names:
            helper = function.__globals__.get(name)
            if callable(helper):
                scope[name] = self._function(helper)
        name, before = definition.name, scope.get(definition.name)
        exec(code, scope)
        made = scope[name]
        assert isinstance(made, FunctionType)
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        if before is not None:  # what calls itself calls the author's function, which may be cached
            scope[name] = before
        return made


class _TooManyError(Exception):
    """A condition compares without end."""


class _Recorded(ast.NodeTransformer):
    """Calls of the recorder in the place of comparisons, of which a chain is several."""

    def __init__(self, function: str) -> None:
        self.function = function

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        inner = node.operand
        if isinstance(node.op, ast.Not) and isinstance(inner, ast.Compare) and len(inner.ops) == 1:
            opposite = OPPOSITE.get(type(inner.ops[0]))
            if opposite is not None:
                compare = ast.Compare(inner.left, [opposite()], inner.comparators)
                return self.visit_Compare(ast.copy_location(compare, inner))
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        if len(node.ops) > 1:
            pairs = zip(operands, node.ops, operands[1:], strict=False)
            each = [
                ast.copy_location(ast.Compare(left, [asked], [right]), left)
                for left, asked, right in pairs
            ]
            return ast.BoolOp(ast.And(), [self.visit_Compare(copy.deepcopy(one)) for one in each])
        self.generic_visit(node)
        asked = ASKED.get(type(node.ops[0]))
        if asked is None:
            return node
        place = ast.Constant(f"{self.function}, {node.lineno}:{node.col_offset}")
        arguments = [node.left, node.comparators[0], ast.Constant(asked), place]
        return ast.Call(ast.Name(RECORDER, ast.Load()), arguments, [])
