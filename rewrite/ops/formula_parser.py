"""Formulas as text: what may stand in one, and the expression that it says."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable, Sequence

from satura.rewrite.ops.elementwise import BINARY, UNARY
from satura.rewrite.ops.expression import Call, Expression, Number, Operand, Parameter
from satura.rewrite.types.tensor_type import COMPUTED


class FormulaError(Exception):
    """What is wrong in a formula's text."""


_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.Not: "not", ast.Invert: "bitnot"}
_COMPARED = {
    ast.Eq: "eq",
    ast.NotEq: "eq",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "lt",
    ast.GtE: "le",
}
_NUMBERS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_MOST_PRODUCTS = 4  # x ** n up to here is a product, which vectorises


def parse(text: str, operands: Sequence[str], numbers: Sequence[str | None]) -> Expression:
    """The expression in these operands and attributes (None: one that is not a number).

    Raises FormulaError that says which part of the text is wrong.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise FormulaError(f"it is not a Python expression: {error}") from None
    names: dict[str, Expression] = {name: Number(value) for name, value in _NUMBERS.items()}
    names |= {name: Parameter(at) for at, name in enumerate(numbers) if name}
    names |= {name: Operand(at) for at, name in enumerate(operands)}
    return _Parser(names).expression(tree)


class _Parser:
    def __init__(self, names: dict[str, Expression]) -> None:
        self.names = names

    def expression(self, tree: ast.expr) -> Expression:
        if isinstance(tree, ast.Name):
            if tree.id not in self.names:
                raise FormulaError(f"there is no '{tree.id}'{_advice(tree.id, self.names)}")
            return self.names[tree.id]
        if isinstance(tree, ast.Constant) and isinstance(tree.value, bool | int | float):
            return Number(tree.value)
        if isinstance(tree, ast.UnaryOp):
            return self.negated(tree)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _BINARY:
            if isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
                exponent = tree.right.value
                if isinstance(exponent, int) and 1 <= exponent <= _MOST_PRODUCTS:
                    return self.product(tree, exponent)
            return self.call(tree, _BINARY[type(tree.op)], tree.left, tree.right)
        if isinstance(tree, ast.BoolOp):
            name = "and" if isinstance(tree.op, ast.And) else "or"
            return self.joined(tree, name, [self.expression(value) for value in tree.values])
        if isinstance(tree, ast.Compare):
            return self.compared(tree)
        if isinstance(tree, ast.IfExp):
            return self.call(tree, "select", tree.test, tree.body, tree.orelse)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.keywords:
            return self.called(tree, tree.func.id)
        raise FormulaError(f"'{ast.unparse(tree)}' cannot stand in a formula")

    def call(self, tree: ast.expr, function: str, *arguments: ast.expr) -> Call:
        return Call(function, tuple(map(self.expression, arguments)), ast.unparse(tree))

    def negated(self, tree: ast.UnaryOp) -> Expression:
        if isinstance(tree.op, ast.UAdd):
            return self.expression(tree.operand)
        operand = self.expression(tree.operand)
        if isinstance(tree.op, ast.USub) and isinstance(operand, Number):
            return Number(-operand.value)
        return Call(_UNARY[type(tree.op)], (operand,), ast.unparse(tree))

    def product(self, tree: ast.BinOp, exponent: int) -> Expression:
        return self.joined(tree, "mul", [self.expression(tree.left)] * exponent)

    def joined(self, tree: ast.expr, function: str, parts: Sequence[Expression]) -> Expression:
        result = parts[0]
        for part in parts[1:]:
            result = Call(function, (result, part), ast.unparse(tree))
        return result

    def compared(self, tree: ast.Compare) -> Expression:
        values = [self.expression(value) for value in (tree.left, *tree.comparators)]
        parts: list[Expression] = []
        for operator, left, right in zip(tree.ops, values, values[1:], strict=False):
            if type(operator) not in _COMPARED:
                raise FormulaError(f"'{ast.unparse(tree)}' cannot stand in a formula")
            swapped = isinstance(operator, ast.Gt | ast.GtE)
            pair = (right, left) if swapped else (left, right)
            part = Call(_COMPARED[type(operator)], pair, ast.unparse(tree))
            if isinstance(operator, ast.NotEq):
                part = Call("not", (part,), ast.unparse(tree))
            parts.append(part)
        return self.joined(tree, "and", parts)

    def called(self, tree: ast.Call, name: str) -> Expression:
        arities = {"where": 3} | {dtype.value: 1 for dtype in COMPUTED}
        arities |= dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2)
        if name not in arities:
            raise FormulaError(
                f"there is no function '{name}'{_advice(name, arities)}; functions are those of"
                " `unary` and `binary` in docs/ops.md"
            )
        if len(tree.args) != arities[name]:
            raise FormulaError(f"'{ast.unparse(tree)}': {name} takes {arities[name]} arguments")
        call = self.call(tree, "select" if name == "where" else name, *tree.args)
        function = UNARY.get(name) or BINARY.get(name)
        inner = None if function is None else function.expansion
        return call if inner is None else _substitute(inner.root, call.arguments)


def _substitute(expression: Expression, arguments: Sequence[Expression]) -> Expression:
    """The expression with the arguments of its call in place of its operands."""
    if isinstance(expression, Operand):
        return arguments[expression.position]
    if isinstance(expression, Call):
        parts = tuple(_substitute(part, arguments) for part in expression.arguments)
        return Call(expression.function, parts, expression.text)
    return expression


def _advice(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""
