"""How an op of onnxruntime is defined: its signature and its body, in ONNX's function syntax.

@defined("QuickGelu <alpha: float = 1.702> (X) => (Y)")
def quick_gelu(call: Call) -> str:
    return f"{scalar('alpha', call.number('alpha'), like='X')} ax = Mul (alpha, X) ..."

An op whose body is the same for all its nodes is a text alone, see `defined_as`. A body reads ops
of opset BODY_OPSET; an attribute without a default, and an input, may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import FunctionProto, parser

from satura.rewrite.errors import SaturaError, UnsupportedError
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.order import label
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

DOMAIN = "com.microsoft"
BODY_OPSET = 23
_HEADER = f'<domain: "{DOMAIN}", opset_import: ["" : {BODY_OPSET}]>'


@dataclass(frozen=True)
class Call:
    """A node of a defined op; its inputs and attributes are asked for by their names."""

    node: Context
    signature: FunctionProto

    def _at(self, name: str) -> int | None:
        return self.node.optional([*self.signature.input].index(name))

    def _index(self, name: str) -> int:
        index = self._at(name)
        if index is None:
            raise self.node.wrong(f"input '{name}' is missing")
        return index

    def has(self, name: str) -> bool:
        """Whether the input is given."""
        return self._at(name) is not None

    def rank(self, name: str) -> int:
        return self.node.build.rank(self._index(name))

    def shape(self, name: str) -> tuple[Dim, ...]:
        return self.node.build.shape(self._index(name))

    def dtype(self, name: str) -> DType:
        return self.node.build.dtype(self._index(name))

    def code(self, name: str) -> int:
        """What ONNX has for the input's element type."""
        return ELEMENT_CODES[self.dtype(name)]

    def wants(self, output: str) -> bool:
        """Whether the output has a name in the node."""
        at = [*self.signature.output].index(output)
        return at < len(self.node.wanted) and self.node.wanted[at]

    # Attributes

    def has_attribute(self, name: str) -> bool:
        return self.node.has(name)

    def _check(self, name: str) -> None:
        if not self.node.has(name):
            raise self.node.wrong(f"attribute '{name}' is missing")

    def integer(self, name: str) -> int:
        self._check(name)
        return self.node.integer(name)

    def number(self, name: str) -> float:
        self._check(name)
        return self.node.number(name)

    def integers(self, name: str) -> tuple[int, ...]:
        self._check(name)
        return self.node.integers(name) or ()

    def numbers(self, name: str) -> tuple[float, ...]:
        return self.node.numbers(name) or ()

    def text(self, name: str) -> str:
        return self.node.text(name)

    def undefined(self, what: str) -> UnsupportedError:
        """The error of a form of the op that has no definition here."""
        return self.node.unsupported(
            f"{what} is not defined here; export the model without it, or with a function that"
            " defines this op, or declare the op: satura.ops"
        )

    def refuse(self, *names: str) -> None:
        """Raise UnsupportedError where one of these inputs is given, attributes are not 0, or
        outputs are asked for."""
        for name in names:
            if name in self.signature.input and self.has(name):
                raise self.undefined(f"input '{name}'")
            if name in self.signature.output and self.wants(name):
                raise self.undefined(f"output '{name}'")
            if self.has_attribute(name) and self.node.attribute_value(name):
                value = self.node.attribute_value(name)
                raise self.undefined(f"attribute '{name}' = {value!r}")


Body = Callable[[Call], str]


@dataclass(frozen=True)
class Definition:
    """An op's signature, and what makes its body for a node.

    Of a variadic op the last input stands for any number of them, `inputs0`, `inputs1`, ….
    """

    signature: FunctionProto
    body: Body
    is_variadic: bool = False

    def function(self, node: Context) -> FunctionProto:
        """The function that `node` calls.

        Raises UnsupportedError for attributes and forms without a definition, ModelError for inputs
        and attributes that are missing.
        """
        signature = FunctionProto()
        signature.CopyFrom(self.signature)
        if self.is_variadic:
            name = signature.input.pop()
            count = max(len(node.operands) - len(signature.input), 0)
            signature.input.extend(f"{name}{at}" for at in range(count))
        call = Call(with_all_attributes(node, signature), signature)
        content = _parsed(f"f () => ({signature.output[0]}) {{ {self.body(call)} }}")
        signature.node.extend(content.node)
        return signature


def with_all_attributes(node: Context, signature: FunctionProto) -> Context:
    """A node whose attributes are those of a signature, at their defaults where it has none."""
    proto = type(node.proto)()
    proto.CopyFrom(node.proto)
    known = {*signature.attribute, *(each.name for each in signature.attribute_proto)}
    for attribute in proto.attribute:
        if attribute.name not in known:
            raise UnsupportedError(
                f"{label(proto)}: attribute '{attribute.name}' is not defined here; export the"
                " model without it, or declare the op: satura.ops"
            )
    given = {attribute.name for attribute in proto.attribute}
    proto.attribute.extend(each for each in signature.attribute_proto if each.name not in given)
    return Context(node.build, node.values, proto, node.opset, node.operands)


DEFINITIONS: dict[tuple[str, str], Definition] = {}


def defined(
    signature: str, domain: str = DOMAIN, is_variadic: bool = False
) -> Callable[[Body], Body]:
    """Register a function as what makes the bodies of an op with this signature."""

    def register(body: Body) -> Body:
        made = _parsed(f"{signature} {{ }}")
        if (domain, made.name) in DEFINITIONS:
            raise SaturaError(f"two definitions of {made.name}")
        DEFINITIONS[domain, made.name] = Definition(made, body, is_variadic)
        return body

    return register


def defined_as(text: str, domain: str = DOMAIN) -> None:
    """Register an op by the text of its function: signature { body }."""
    signature, _, body = text.partition("{")
    statements, _, _ = body.rpartition("}")
    defined(signature, domain)(lambda call: statements)


def _parsed(text: str) -> FunctionProto:
    return parser.parse_function(f"{_HEADER} {text}")


# Terms of bodies


def scalar(name: str, value: float, like: str) -> str:
    """The statement that makes `name` a number in the element type of the tensor `like`."""
    return f"{name}_wide = Constant <value_float = {value!r}> () {name} = CastLike ({name}_wide, {like})"


def ints(name: str, values: Sequence[int]) -> str:
    """The statement that makes `name` a vector of i64."""
    return f"{name} = Constant <value_ints: ints = [{', '.join(map(str, values))}]> ()"


def perm(order: Sequence[int]) -> str:
    """The attribute of a Transpose."""
    return f"perm = [{', '.join(map(str, order))}]"
