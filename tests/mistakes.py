"""One mistake at one place of a Python text: what a hurried author of rules could have written."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping

Mistake = tuple[str, ast.AST]

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
}
TWINS = {"lo": "hi", "hi": "lo", "starts": "sizes", "sizes": "starts"}
OPPOSITES = {"any": "all", "all": "any", "min": "max", "max": "min"}
OTHER_FUNCTION = {"max": "sum", "min": "prod", "mul": "sub", "div": "min"}


def mistakes(node: ast.AST, scope: Mapping[str, object]) -> Iterator[Mistake]:
    """What could stand in place of `node`, each with the kind of mistake.

    `scope` are the globals of the text; mistakes in its tables are made where they are used.
    """
    yield from _MISTAKES.get(type(node), _none)(node, scope)


def _none(node: ast.AST, scope: Mapping[str, object]) -> Iterator[Mistake]:
    return iter(())


def _statement(node: ast.Expr, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if _calls(node.value, "refuse_unless"):
        yield "condition dropped", ast.Pass()
        wrong = copy.deepcopy(node)
        assert isinstance(wrong.value, ast.Call)
        wrong.value.args[0] = ast.UnaryOp(ast.Not(), wrong.value.args[0])
        yield "condition inverted", wrong


def _if(node: ast.If, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(node.body[0], ast.Raise):
        yield "condition dropped", ast.Pass()
    yield "condition inverted", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _if_expression(node: ast.IfExp, scope: Mapping[str, object]) -> Iterator[Mistake]:
    yield "branches swapped", ast.IfExp(node.test, node.orelse, node.body)


def _comparison(node: ast.Compare, scope: Mapping[str, object]) -> Iterator[Mistake]:
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield "comparison", ast.Compare(node.left, ops, node.comparators)


def _connective(node: ast.BoolOp, scope: Mapping[str, object]) -> Iterator[Mistake]:
    yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for place in range(len(node.values)):
        rest = node.values[:place] + node.values[place + 1 :]
        yield "operand dropped", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _sign(node: ast.UnaryOp, scope: Mapping[str, object]) -> Iterator[Mistake]:
    yield "sign or not dropped", node.operand


def _constant(node: ast.Constant, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(node.value, bool):
        return
    if isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
        yield "constant", ast.Constant(node.value - 1)
    if node.value in OTHER_FUNCTION:
        yield "constant", ast.Constant(OTHER_FUNCTION[str(node.value)])


def _return(node: ast.Return, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield "condition inverted", ast.Return(ast.Constant(not node.value.value))


def _arithmetic(node: ast.BinOp, scope: Mapping[str, object]) -> Iterator[Mistake]:
    other = ARITHMETIC.get(type(node.op))
    if other is not None:
        yield "arithmetic", ast.BinOp(node.left, other(), node.right)
        yield "arithmetic", node.left


def _call(node: ast.Call, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name == "refuse_unless":
            return
        if name in OPPOSITES:
            yield "any/all", ast.Call(ast.Name(OPPOSITES[name]), node.args, node.keywords)
        if name == "sorted":
            yield "not sorted", ast.Call(ast.Name("list"), node.args, [])
        if name == "range":
            for place, bound in enumerate(node.args):
                for step in (ast.Add(), ast.Sub()):
                    args = list(node.args)
                    args[place] = ast.BinOp(bound, step, ast.Constant(1))
                    yield "off by one", ast.Call(node.func, args, [])
    for place in range(len(node.args) - 1):
        args = list(node.args)
        args[place : place + 2] = reversed(args[place : place + 2])
        yield "arguments swapped", ast.Call(node.func, args, node.keywords)


def _attribute(node: ast.Attribute, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if node.attr in TWINS:
        yield "lo/hi, starts/sizes", ast.Attribute(node.value, TWINS[node.attr], node.ctx)
    if node.attr == "inverse":
        yield "no inverse", node.value


def _comprehension(node: ast.comprehension, scope: Mapping[str, object]) -> Iterator[Mistake]:
    for place in range(len(node.ifs)):
        rest = node.ifs[:place] + node.ifs[place + 1 :]
        yield "filter dropped", ast.comprehension(node.target, node.iter, rest, node.is_async)


def _slice(node: ast.Slice, scope: Mapping[str, object]) -> Iterator[Mistake]:
    for field in ("lower", "upper"):
        bound = getattr(node, field)
        if bound is not None and not isinstance(bound, ast.Constant):
            for step in (ast.Add(), ast.Sub()):
                wrong = copy.deepcopy(node)
                setattr(wrong, field, ast.BinOp(bound, step, ast.Constant(1)))
                yield "off by one", wrong


def _name(node: ast.Name, scope: Mapping[str, object]) -> Iterator[Mistake]:
    table = scope.get(node.id)
    if isinstance(table, tuple) and all(isinstance(entry, str) for entry in table):
        for wrong in ("sub", "neg"):
            yield "table", ast.Tuple([ast.Constant(entry) for entry in (*table, wrong)], node.ctx)


def _subscript(node: ast.Subscript, scope: Mapping[str, object]) -> Iterator[Mistake]:
    if isinstance(node.value, ast.Name) and isinstance(scope.get(node.value.id), dict):
        for step in (ast.Add(), ast.Sub()):
            yield "table", ast.BinOp(node, step, ast.Constant(1))


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


_MISTAKES: dict[type[ast.AST], Callable[..., Iterator[Mistake]]] = {
    ast.Expr: _statement,
    ast.If: _if,
    ast.IfExp: _if_expression,
    ast.Compare: _comparison,
    ast.BoolOp: _connective,
    ast.UnaryOp: _sign,
    ast.Constant: _constant,
    ast.Return: _return,
    ast.BinOp: _arithmetic,
    ast.Call: _call,
    ast.Attribute: _attribute,
    ast.comprehension: _comprehension,
    ast.Slice: _slice,
    ast.Name: _name,
    ast.Subscript: _subscript,
}
