"""What became of a model's nodes in the file that was written for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from satura.commands.terminal import counted
from satura.rewrite.onnx.order import short_label
from satura.rewrite.onnx.parts import Parts
from satura.rewrite.program.program import Program

_SHOWN = 5  # nodes that stay as they are
_COMMUTATIVE = {"Add", "And", "Equal", "Max", "Mean", "Min", "Mul", "Or", "Sum", "Xor"}


@dataclass(frozen=True)
class Changed:
    """The nodes of two graphs by op, where a constant is not one, and whether they are wired alike.

    Graphs that are have the same nodes, whatever their tensors are called.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    is_wired_alike: bool

    @property
    def removed(self) -> dict[str, int]:
        """How many nodes there are fewer, by op."""
        return dict(sorted((Counter(self.before) - Counter(self.after)).items()))

    @property
    def added(self) -> dict[str, int]:
        """How many nodes there are more, by op."""
        return dict(sorted((Counter(self.after) - Counter(self.before)).items()))

    def __str__(self) -> str:
        before, after = sum(self.before.values()), sum(self.after.values())
        if self.is_wired_alike:
            return f"{counted(after, 'node')}, the same as before"
        changes = [f"-{count} {name}" for name, count in self.removed.items()]
        changes += [f"+{count} {name}" for name, count in self.added.items()]
        detail = ", ".join(changes) or "the same ops, arranged anew"
        return f"{counted(before, 'node')} became {after} ({detail})"

    def as_json(self) -> dict[str, object]:
        """The numbers of nodes and, by op, how many there are fewer and more."""
        before, after = sum(self.before.values()), sum(self.after.values())
        nodes = {"before": before, "after": after, "same": self.is_wired_alike}
        return {"nodes": nodes, "removed": self.removed, "added": self.added}


def changed(before: GraphProto, after: GraphProto) -> Changed:
    """What became of the nodes of `before`, which `after` was written for."""
    numbers: dict[Hashable, int] = {}
    is_wired_alike = _wiring(before, numbers) == _wiring(after, numbers)
    return Changed(_count(before), _count(after), is_wired_alike)


def _count(graph: GraphProto) -> Counter[str]:
    return Counter(node.op_type for node in graph.node if node.op_type != "Constant")


def _wiring(graph: GraphProto, numbers: dict[Hashable, int]) -> tuple[list[int], list[int]]:
    """What the nodes and the outputs of a graph are, as numbers: an op of certain operands has one
    number in all graphs. All constants have the same, and attributes do not count: with other ones
    equal results are wired otherwise."""

    def number(key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    made = {"": number("absent")} | {
        each.name: number(("input", each.name)) for each in graph.input
    }
    constant = number("constant")
    made |= {each.name: constant for each in graph.initializer}
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant":
            continue  # as an initializer, which may be kept elsewhere, it is made by nothing here
        operands = [made.get(name, constant) for name in node.input]
        key = sorted(operands) if node.op_type in _COMMUTATIVE else operands
        nodes.append(number((node.domain, node.op_type, *key)))
        made |= {name: number((nodes[-1], at)) for at, name in enumerate(node.output)}
    return sorted(nodes), [made.get(each.name, constant) for each in graph.output]


def stayed(made: Program | Parts) -> str:
    """Which nodes of a model stay as they are, if any, and how many programs are around them."""
    if isinstance(made, Program):
        return ""
    names: Sequence[str] = kept_names(made)
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    parts, nodes = counted(len(made.programs), "part"), counted(len(names), "node")
    stays = "stays as it is" if len(names) == 1 else "stay as they are"
    return f"; {parts} rewritten, {nodes} {stays}: {', '.join([*names[:_SHOWN], *more])}"


def kept_names(made: Program | Parts) -> list[str]:
    """What the nodes are called that stay as they are."""
    kept: Sequence[NodeProto] = made.kept if isinstance(made, Parts) else ()
    return list(map(short_label, kept))
