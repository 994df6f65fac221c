"""Attributes read back from text, each by its class."""

from __future__ import annotations

import ast
from base64 import b64decode
from collections.abc import Callable, Mapping
from operator import add, floordiv, mul, sub
from typing import get_args

import numpy as np

from satura.rewrite.errors import ProgramError
from satura.rewrite.program.reader import Reader
from satura.rewrite.types.attributes import (
    Attribute,
    Axes,
    Axis,
    BinaryFn,
    Count,
    Groups,
    HostCall,
    Padding,
    Parameter,
    Perm,
    ReduceFn,
    Shape,
    Slices,
    UnaryFn,
    UserAttribute,
    Window,
)
from satura.rewrite.types.constant import Constant, Scalar
from satura.rewrite.types.dims import Dim, SymbolicDim, static, symbol
from satura.rewrite.types.elements import elements
from satura.rewrite.types.size_condition import Relation, SizeCondition
from satura.rewrite.types.tensor_type import Array, DType, TensorType

Given = Mapping[str, Array | Constant]
"""Large constants by label, or their elements."""

_ELEMENT = r"nan:[0-9a-f]+|[-+.\w]+"


def read_attribute(line: Reader, sort: type, constants: Given) -> Attribute:
    """The attribute of class `sort` that stands next in `line`.

    `constants` are the large ones, or their elements. Raises ProgramError.
    """
    if sort is Constant:
        return _constant(line, constants)
    if issubclass(sort, UserAttribute):
        return _user_attribute(line, sort)
    return _READERS[sort](line)


def _parameter(line: Reader) -> Parameter:
    name = line.string()
    conditions = []
    while line.accepts("where"):
        left, relation = line.dim(), _relation(line)
        right = line.dim()
        conditions.append(SizeCondition(left, right, relation, line.after("for", line.string)))
    return Parameter(name, line.stated_type(), tuple(conditions))


def _relation(line: Reader) -> Relation:
    if line.accepts(">="):
        return ">="
    if line.accepts("<="):
        return "<="
    line.expect("=")
    return "="


def _padding(line: Reader) -> Padding:
    def pair() -> tuple[Dim, Dim]:
        lo = line.dim()
        line.expect(":")
        return lo, line.dim()

    pairs = line.items_in_brackets(pair)
    return Padding(tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs))


def _slices(line: Reader) -> Slices:
    def axis() -> tuple[Dim, Dim, int]:
        start = line.operand()
        line.expect("+")
        return start, line.operand(), line.integer() if line.accepts("*") else 1

    axes = line.items_in_brackets(axis)
    starts, sizes, steps = zip(*axes, strict=True) if axes else ((), (), ())
    return Slices(starts, sizes, steps)


def _window(line: Reader) -> Window:
    def axis() -> tuple[int, int, int, int, int]:
        size = line.integer()
        stride = line.integer() if line.accepts("/") else 1
        dilation = line.integer() if line.accepts("~") else 1
        lo = hi = 0
        if line.accepts("("):
            lo = line.integer()
            line.expect(":")
            hi = line.integer()
            line.expect(")")
        return size, stride, dilation, lo, hi

    axes = line.items_in_brackets(axis)
    line.expect("fill")
    parts = [tuple(axis[i] for axis in axes) for i in range(5)]
    return Window(parts[0], parts[1], parts[2], parts[3], parts[4], _scalar(line))


def _scalar(line: Reader) -> Scalar:
    dtype = line.dtype()
    line.expect("(")
    array = _elements([_element(line)], dtype)
    line.expect(")")
    return Scalar(dtype, array.tobytes())


def _elements(texts: list[str], dtype: DType) -> Array:
    try:
        return elements(texts, dtype)
    except (ValueError, OverflowError) as error:
        raise ProgramError(f"these are not elements of {dtype}: {error}") from None


def _constant(line: Reader, constants: Given) -> Constant:
    label = line.take_match("#[0-9a-f]+")
    if label is None:
        texts = line.items(lambda: _element(line), "]") if line.accepts("[") else [_element(line)]
        type_ = line.stated_type()
        array = _elements(texts, type_.dtype)
        if array.size != type_.size:
            raise ProgramError(f"{array.size} elements do not make {type_}")
        return Constant(array.reshape(tuple(map(static, type_.shape))))
    if label not in constants:
        raise ProgramError(f"the elements of constant {label} are not given")
    given = constants[label]
    constant = given if isinstance(given, Constant) else Constant(np.asarray(given))
    if constant.label != label:
        raise ProgramError(f"the elements that are given for {label} are those of {constant}")
    return constant


def _element(line: Reader) -> str:
    return line.token(_ELEMENT, "an element")


def _host_call(line: Reader) -> HostCall:
    op_type = line.string()
    line.expect("of")
    domain = line.string()
    line.expect("opset")
    opset = line.integer()
    line.expect("salt")
    salt = line.integer()
    line.expect("gives")
    line.expect("(")
    outputs = tuple(line.items(line.type, ")"))
    line.expect("node")
    try:
        proto = b64decode(line.string(), validate=True)
    except ValueError:
        raise ProgramError("the node of the host call is not in base 64") from None
    return HostCall(op_type, domain, opset, proto, outputs, salt)


def _user_attribute(line: Reader, sort: type[UserAttribute]) -> UserAttribute:
    """A user's attribute: Python that calls its class, up to the parenthesis that closes it."""
    start = line.at
    for end, character in enumerate(line.line):
        if end > start and character == ")":
            try:
                tree = ast.parse(line.line[start : end + 1].strip(), mode="eval")
                value = _value(tree.body, {**_CLASSES, sort.__name__: sort})
            except SyntaxError:
                continue
            except (TypeError, ValueError, KeyError, ZeroDivisionError, RecursionError) as error:
                raise ProgramError(f"not a {sort.__name__}: {error}") from None
            if isinstance(value, sort):
                line.at = end + 1
                return value
    raise line.mismatch(f"a {sort.__name__}")


def _value(tree: ast.expr, classes: Mapping[str, type]) -> object:
    """What `repr` writes of plain values, dims and attributes. Raises ValueError for the rest."""
    match tree:
        case ast.Constant(value):
            return value
        case ast.Tuple(items):
            return tuple(_value(item, classes) for item in items)
        case ast.Name(("inf" | "nan") as name):
            return float(name)
        case ast.Name(name):
            return symbol(name)
        case ast.Attribute(ast.Name("DType"), name):
            return DType[name]
        case ast.UnaryOp(ast.USub(), operand):
            number = _value(operand, classes)
            if isinstance(number, int | float | SymbolicDim):
                return -number
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            first, second = _value(left, classes), _value(right, classes)
            if isinstance(first, Dim) and isinstance(second, Dim):
                return _SIGNS[type(sign)](first, second)
        case ast.Call(ast.Name(name), [], fields) if name in classes:
            given = {str(field.arg): _value(field.value, classes) for field in fields}
            return classes[name](**given)
    raise ValueError(f"{ast.unparse(tree)} cannot be read")


_SIGNS: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv,
}  # fmt: skip
_CLASSES = {sort.__name__: sort for sort in (*get_args(Attribute), TensorType)}
_READERS: dict[type, Callable[[Reader], Attribute]] = {
    Perm: lambda line: Perm(line.items_in_brackets(line.integer)),
    Shape: lambda line: Shape(line.dims()),
    Axis: lambda line: Axis(line.integer()),
    Axes: lambda line: Axes(line.items_in_brackets(line.integer)),
    Scalar: _scalar,
    Padding: _padding,
    Slices: _slices,
    Window: _window,
    Groups: lambda line: Groups(line.integer()),
    UnaryFn: lambda line: UnaryFn(line.word("a function")),
    BinaryFn: lambda line: BinaryFn(line.word("a function")),
    ReduceFn: lambda line: ReduceFn(line.word("a function")),
    Parameter: _parameter,
    Count: lambda line: Count(line.integer()),
    HostCall: _host_call,
    DType: Reader.dtype,
}
