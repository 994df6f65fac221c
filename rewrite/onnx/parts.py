"""Parts: a model as several programs, and nodes that stay as they are between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from onnx import FunctionProto, NodeProto, ValueInfoProto, printer

from satura.rewrite.onnx.order import inner_graphs
from satura.rewrite.program.program import Program
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import TensorType


@dataclass(frozen=True, eq=False)
class Parts:
    """Programs in the order in which they run, and the nodes of a model between them.

    What programs and nodes pass to each other has the names that it has in the model. `constants`
    are those that only graphs inside of the nodes read, `opsets` and `functions` are those of the
    nodes. The types of the `inputs` are those that the programs take, the `outputs` are typed as
    the model declares them. `taken` are sizes that a program takes for equal, as it is of a
    Program.
    """

    steps: tuple[Program | NodeProto, ...]
    inputs: Mapping[str, TensorType]
    outputs: tuple[ValueInfoProto, ...]
    constants: Mapping[str, Constant]
    opsets: Mapping[str, int]
    taken: tuple[SizeCondition, ...] = ()
    functions: tuple[FunctionProto, ...] = ()

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs, of which there may be fewer than nodes."""
        return tuple(each for each in self.steps if isinstance(each, Program))

    @cached_property
    def kept(self) -> tuple[NodeProto, ...]:
        """The nodes that stay as the model has them."""
        return tuple(each for each in self.steps if isinstance(each, NodeProto))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that the nodes, and the graphs inside them, have for anything."""
        return frozenset(name for node in self.kept for name in _names(node))

    def __str__(self) -> str:
        """The programs as text, and the nodes as ONNX prints them."""
        texts = (str(x) if isinstance(x, Program) else printer.to_text(x) for x in self.steps)
        return "\n\n".join(text.strip() for text in texts)


def _names(node: NodeProto) -> Iterator[str]:
    yield from (*node.input, *node.output)
    for graph in inner_graphs(node):
        for value in (*graph.input, *graph.output, *graph.initializer):
            yield value.name
        for inner in graph.node:
            yield from _names(inner)
