"""How an op of onnxruntime is defined: its signature and its body, in ONNX's function syntax.

@defined("FastGelu (X, bias?) => (Y)")
def fast_gelu(call: Call) -> str:
    x = "x = Add (X, bias)" if call.has("bias") else "x = Identity (X)"
    return f'{x} Y = Gelu <approximate = "tanh"> (x)'

Inputs and attributes with a question mark may be left out; an attribute has a kind, and may have a
default. A `flag` is an int that must be 0 or 1: of others each implementation makes what it likes.
An op whose body is the same for all its nodes is a text alone, see `defined_as`. Ops in bodies are
those of opset BODY_OPSET.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, NodeProto, parser

from satura.rewrite.errors import SaturaError, UnsupportedError
from satura.rewrite.onnx.lower.context import Context
from satura.rewrite.onnx.types import ELEMENT_CODES
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import DType

DOMAIN = "com.microsoft"
BODY_OPSET = 23
_HEADER = f'<domain: "{DOMAIN}", opset_import: ["" : {BODY_OPSET}]>'
_INSTEAD = (
    "export the model without it, or with a function that defines this op, or declare the op:"
    " satura.ops"
)
_OPTIONAL = re.compile(r"(\w+)\?")
_KIND = re.compile(r"(\w+): (ints?|floats?|string|flag)\b(?=\s*([=,>]))")


@dataclass(frozen=True)
class Signature:
    """An op's name, attributes, inputs and outputs, as a function without a body; the kinds of its
    attributes, and which of them are flags; and what may be left out."""

    function: FunctionProto
    kinds: Mapping[str, int]
    flags: frozenset[str]
    optional: frozenset[str]
    is_variadic: bool

    @staticmethod
    def of(text: str, is_variadic: bool = False) -> Signature:
        """What a text says, such as `Op <k: int, m?: ints, a: float = 1.0> (x, bias?) => (y)`."""
        plain = text.replace("?", "")
        found = _KIND.findall(plain)
        flags = frozenset(name for name, kind, _ in found if kind == "flag")
        kinds = {
            name: AttributeProto.AttributeType.Value("INT" if name in flags else kind.upper())
            for name, kind, _ in found
        }
        # ONNX's syntax has a kind only where there is a default.
        bare = _KIND.sub(lambda match: match[0] if match[3] == "=" else match[1], plain)
        function = _parsed(f"{bare.replace(': flag', ': int')} {{ }}")
        return Signature(function, kinds, flags, frozenset(_OPTIONAL.findall(text)), is_variadic)

    def inputs(self, count: int) -> list[str]:
        """The names of so many inputs: the last of a variadic op are `inputs0`, `inputs1`, …."""
        names = [*self.function.input]
        if self.is_variadic:
            last = names.pop()
            names += [f"{last}{at}" for at in range(count - len(names))]
        return names

    def checked(self, node: Context) -> Context:
        """`node` with the attributes that it leaves out at their defaults.

        Raises UnsupportedError for attributes that are not of the signature, ModelError where
        inputs or attributes are missing or of another kind, or a flag is neither 0 nor 1.
        """
        given = {attribute.name: attribute.type for attribute in node.proto.attribute}
        for name, kind in given.items():
            if name not in self.kinds:
                raise node.unsupported(f"attribute '{name}' is not defined here; {_INSTEAD}")
            if kind != self.kinds[name]:
                wanted, found = (
                    AttributeProto.AttributeType.Name(each).lower()
                    for each in (self.kinds[name], kind)
                )
                raise node.wrong(f"attribute '{name}' must be of kind {wanted}, not {found}")
            if name in self.flags and node.integer(name) not in (0, 1):
                raise node.wrong(f"attribute '{name}' must be 0 or 1, not {node.integer(name)}")
        for name in self.function.attribute:
            if name not in given and name not in self.optional:
                raise node.wrong(f"attribute '{name}' is missing")
        for at, name in enumerate(self.inputs(len(node.operands))):
            if name not in self.optional and node.optional(at) is None:
                raise node.wrong(f"input '{name}' is missing")
        proto = NodeProto()
        proto.CopyFrom(node.proto)
        defaults = self.function.attribute_proto
        proto.attribute.extend(each for each in defaults if each.name not in given)
        return Context(node.build, node.values, proto, node.opset, node.operands)


@dataclass(frozen=True)
class Call:
    """A node of a defined op; its inputs and attributes are asked for by their names."""

    node: Context
    signature: Signature

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs."""
        return self.signature.inputs(len(self.node.operands))

    def has(self, name: str) -> bool:
        """Whether the input is given."""
        return name in self.inputs and self.node.optional(self.inputs.index(name)) is not None

    def _index(self, name: str) -> int:
        return self.node[self.inputs.index(name)]

    def rank(self, name: str) -> int:
        return self.node.build.rank(self._index(name))

    def shape(self, name: str, *ranks: int) -> tuple[Dim, ...]:
        """The input's shape; ModelError where its rank is none of `ranks`, if there are any."""
        shape = self.node.build.shape(self._index(name))
        if ranks and len(shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            raise self.node.wrong(f"input '{name}' must have {expected} axes, not {len(shape)}")
        return shape

    def size(self, name: str, axis: int, *ranks: int) -> int:
        """An extent of the input; UnsupportedError where it is open."""
        dim = self.shape(name, *ranks)[axis]
        if not isinstance(dim, int):
            raise self.undefined(f"input '{name}' with axis {axis} of the open size {dim}")
        return dim

    def is_known(self, name: str) -> bool:
        """Whether constants and sizes decide the input's value."""
        return self.node.values.of(self._index(name)) is not None

    def dtype(self, name: str) -> DType:
        return self.node.build.dtype(self._index(name))

    def code(self, name: str) -> int:
        """What ONNX has for the input's element type."""
        return ELEMENT_CODES[self.dtype(name)]

    def wants(self, output: str) -> bool:
        """Whether the output has a name in the node."""
        at = [*self.signature.function.output].index(output)
        return at < len(self.node.wanted) and self.node.wanted[at]

    # Attributes

    def has_attribute(self, name: str) -> bool:
        return self.node.has(name)

    def integer(self, name: str) -> int:
        return self.node.integer(name)

    def number(self, name: str) -> float:
        return self.node.number(name)

    def integers(self, name: str) -> tuple[int, ...]:
        return self.node.integers(name) or ()

    def numbers(self, name: str) -> tuple[float, ...]:
        return self.node.numbers(name) or ()

    def text(self, name: str) -> str:
        return self.node.text(name)

    def undefined(self, what: str) -> UnsupportedError:
        """The error of a form of the op that has no definition here."""
        return self.node.unsupported(f"{what} is not defined here; {_INSTEAD}")

    def refuse(self, *names: str) -> None:
        """Raise UnsupportedError where one of these inputs is given, attributes are not 0, or
        outputs are asked for."""
        for name in names:
            if self.has(name):
                raise self.undefined(f"input '{name}'")
            if name in self.signature.function.output and self.wants(name):
                raise self.undefined(f"output '{name}'")
            if self.node.attribute_value(name):
                raise self.undefined_value(name)

    def needs(self, given: str, *others: str) -> None:
        """Raise ModelError where the input is given without one of these."""
        for other in others:
            if self.has(given) and not self.has(other):
                raise self.node.wrong(f"input '{given}' is given without '{other}': add it")

    def together(self, *names: str) -> None:
        """Raise ModelError where some of these inputs are given, and others are not."""
        for name in names:
            self.needs(name, *names)

    def undefined_value(self, attribute: str) -> UnsupportedError:
        """The error of a value of an attribute for which the op has no definition here."""
        value = self.node.attribute_value(attribute)
        shown = value.decode(errors="replace") if isinstance(value, bytes) else value
        return self.undefined(f"attribute '{attribute}' = {shown!r}")


Body = Callable[[Call], str]


@dataclass(frozen=True)
class Definition:
    """An op's signature, and what makes its body for a node."""

    signature: Signature
    body: Body

    def function(self, node: Context) -> FunctionProto:
        """The function that `node` calls; errors as of `Signature.checked`, and of the body."""
        call = Call(self.signature.checked(node), self.signature)
        result = FunctionProto()
        result.CopyFrom(self.signature.function)
        del result.input[:]
        result.input.extend(call.inputs)
        result.node.extend(_parsed(f"f () => (y) {{ {self.body(call)} }}").node)
        return result


DEFINITIONS: dict[tuple[str, str], Definition] = {}
"""Per domain and name of an op."""


def defined(text: str, domain: str = DOMAIN, is_variadic: bool = False) -> Callable[[Body], Body]:
    """Register a function as what makes the bodies of an op with this signature."""

    def register(body: Body) -> Body:
        signature = Signature.of(text, is_variadic)
        name = signature.function.name
        if (domain, name) in DEFINITIONS:
            raise SaturaError(f"two definitions of {name}")
        DEFINITIONS[domain, name] = Definition(signature, body)
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
    """The statements that make `name` a number in the element type of the tensor `like`."""
    return f"""
        {name}_wide = Constant <value_float = {value!r}> ()
        {name} = CastLike ({name}_wide, {like})
    """


def ints(name: str, values: Sequence[int]) -> str:
    """The statement that makes `name` a vector of i64."""
    return f"{name} = Constant <value_ints: ints = [{', '.join(map(str, values))}]> ()"


def perm(order: Sequence[int]) -> str:
    """The attribute of a Transpose."""
    return f"perm = [{', '.join(map(str, order))}]"
