"""Parse: the text of a program back to the program.

    %0 = input() "x" : f32[n, 3]
    %1 = constant() [0.5, -0.0, nan] : f32[1, 3]
    %2 = broadcast(%1) [n, 3] : f32[n, 3]
    %3 = binary(%0, %2) mul : f32[n, 3]
    output "y" = %3

A line per node: its number, op, operands, attributes in the order of the op's declaration, and
type. Each attribute is written as its class's `__str__` does it. A large constant is `#` and its
digest; its elements are in `Program.constants`. Ops of users are known by their names.
"""

from __future__ import annotations

from satura.rewrite.errors import ProgramError
from satura.rewrite.ops import REGISTRY, USER_OPS
from satura.rewrite.program.attribute_reader import Given, read_attribute
from satura.rewrite.program.program import Program, ProgramBuilder
from satura.rewrite.program.reader import Reader


def parse(text: str, constants: Given | None = None) -> Program:
    """The program whose text this is; `constants` are the large ones, or their elements.

    Raises ProgramError, naming the line, for what is not the text of a program.
    """
    parser = _Parser(constants or {})
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                parser.read(Reader(line))
            except ProgramError as error:
                raise ProgramError(f"line {number}: {error}") from None
    return parser.program()


class _Parser:
    """The nodes and outputs of the lines read so far."""

    def __init__(self, constants: Given) -> None:
        self.constants = constants
        self.builder = ProgramBuilder()
        self.numbers: dict[int, int] = {}  # as the text has it: as the builder has it
        self.outputs: dict[str, int] = {}

    def read(self, line: Reader) -> None:
        if line.accepts("output"):
            self._output(line)
        else:
            self._node(line)
        line.expect_end()

    def program(self) -> Program:
        builder = self.builder
        return Program(tuple(builder.nodes), tuple(builder.inputs), tuple(self.outputs.items()))

    def _output(self, line: Reader) -> None:
        name = line.string()
        line.expect("=")
        if name in self.outputs:
            raise ProgramError(f"two outputs are called '{name}'")
        self.outputs[name] = self._operand(line)

    def _node(self, line: Reader) -> None:
        number = line.node_number()
        if number in self.numbers:
            raise ProgramError(f"%{number} is defined twice")
        line.expect("=")
        name = line.word("an op")
        op = REGISTRY.get(name) or USER_OPS.get(name)
        if op is None:
            raise ProgramError(f"there is no op '{name}'")
        line.expect("(")
        operands = line.items(lambda: self._operand(line), ")")
        attributes = [read_attribute(line, sort, self.constants) for sort in op.attributes]
        index = self.builder.add(op, operands, *attributes)
        line.expect(":")
        stated, found = line.type(), self.builder.type(index)
        if stated != found:
            raise ProgramError(f"%{number} is {found}, not {stated}")
        self.numbers[number] = index

    def _operand(self, line: Reader) -> int:
        number = line.node_number()
        if number not in self.numbers:
            raise ProgramError(f"%{number} is not defined above")
        return self.numbers[number]
