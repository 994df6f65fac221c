"""From the chosen dispatches of an e-graph to a program and its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.cost import CostModel
from satura.rewrite.extract.features import Features
from satura.rewrite.extract.folding import Folding
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.fragments import Fragment
from satura.rewrite.extract.schedule import Form
from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.program.program import Program, ProgramBuilder, add_typed

ANCHORS = (Kind.REDUCTION, Kind.WINDOW, Kind.CONTRACTION, Kind.ALONE)
FORMS = {
    Fused.VIEW: Form.LOOP,
    Fused.LOOP: Form.LOOP,
    Fused.ROW: Form.ROW,
    Fused.CONTRACTION: Form.CONTRACTION,
    Fused.WINDOW: Form.WINDOW,
    Fused.ALONE: Form.ALONE,
    Fused.HOST: Form.HOST,
}


@dataclass(frozen=True)
class Group:
    """A dispatch without its target; `form` is None for a concat that is only a placement."""

    form: Form | None
    root: int
    nodes: tuple[int, ...]
    operands: tuple[int, ...]
    anchor: int | None
    seconds: float
    features: Features


@dataclass(frozen=True)
class Assembly:
    """The extracted program, its groups in execution order and its compile-time constants.

    `stored` are the nodes of the classes that are inputs, constants or roots of groups.
    """

    program: Program
    groups: tuple[Group, ...]
    constants: tuple[int, ...]
    stored: Mapping[int, int]

    @property
    def class_of(self) -> dict[int, int]:
        """The class that each of these nodes stands for."""
        return {node: cls for cls, node in self.stored.items()}


def assemble(
    classes: EClasses, chosen: Mapping[int, Fragment], folding: Folding, model: CostModel
) -> Assembly:
    """The program of the fragments that were `chosen` for the classes that outputs need."""
    return _Assembler(classes, chosen, folding, model).run()


class _Assembler:
    def __init__(
        self,
        classes: EClasses,
        chosen: Mapping[int, Fragment],
        folding: Folding,
        model: CostModel,
    ) -> None:
        self.classes = classes
        self.chosen = chosen
        self.folded = folding.nodes
        self.model = model
        self.builder = ProgramBuilder()
        self.node_of: dict[int, int] = {}
        self.groups: list[Group] = []
        self.constants: dict[int, None] = {}

    def run(self) -> Assembly:
        classes = self.classes
        for cls in classes.inputs:
            source = next(node for node in classes.nodes[cls] if node.op == "input")
            self.node_of[cls] = self.builder.add("input", (), *source.attributes)
        for _, cls in classes.outputs:
            self._materialise(cls)
            if self.folded[cls] is not None:
                self.constants[self.node_of[cls]] = None
        outputs = tuple((name, self.node_of[cls]) for name, cls in classes.outputs)
        program = Program(tuple(self.builder.nodes), tuple(self.builder.inputs), outputs)
        return Assembly(program, tuple(self.groups), tuple(self.constants), self.node_of)

    def _materialise(self, goal: int) -> None:
        """Emit the dispatch of `goal` after those of everything it reads."""
        open_: set[int] = set()
        stack = [goal]
        while stack:
            cls = stack[-1]
            if cls in self.node_of:
                stack.pop()
                continue
            missing = [leaf for leaf in self._leaves(cls) if leaf not in self.node_of]
            if missing:
                if cls in open_:
                    raise ProgramError("extraction chose dispatches that read each other")
                open_.add(cls)
                stack.extend(reversed(missing))
                continue
            stack.pop()
            fragment = self.chosen.get(cls)
            if fragment is None:
                self._fold(cls)
            else:
                self._dispatch(cls, fragment)

    def _leaves(self, cls: int) -> tuple[int, ...]:
        fragment = self.chosen.get(cls)
        if fragment is not None:
            return tuple(fragment.reads)
        folded = self.folded[cls]
        return folded.operands if folded else ()

    def _fold(self, cls: int) -> None:
        node = self.folded[cls]
        if node is None:
            raise ProgramError(f"class {cls} cannot be computed")
        operands = [self.node_of[operand] for operand in node.operands]
        self.node_of[cls] = self._add(cls, node, operands)

    def _add(self, cls: int, node: ENode, operands: Sequence[int]) -> int:
        """Add an e-node of a class, whose type is known."""
        op, type_ = REGISTRY[node.op], self.classes.types[cls]
        return add_typed(self.builder, op, tuple(operands), node.attributes, type_)

    def _dispatch(self, cls: int, fragment: Fragment) -> None:
        emitted: dict[int, int] = {}
        inside: dict[int, None] = {}
        read: dict[int, None] = {}
        anchors: dict[Fused, int] = {}

        def emit(part: Fragment) -> int:
            if id(part) in emitted:
                return emitted[id(part)]
            operands = []
            for operand, below in zip(part.node.operands, part.parts, strict=True):
                if below is None:
                    operands.append(self.node_of[operand])
                    read[operands[-1]] = None
                else:
                    operands.append(emit(below))
            index = self._add(part.cls, part.node, operands)
            emitted[id(part)] = index
            inside[index] = None
            if part.anchor is fragment.anchor and REGISTRY[part.node.op].kind in ANCHORS:
                anchors.setdefault(fragment.form, index)
            return index

        root = emit(fragment)
        self.node_of[cls] = root
        for leaf in fragment.reads:
            if self.folded[leaf] is not None and self.node_of[leaf] in read:
                self.constants[self.node_of[leaf]] = None
        anchor = anchors.get(fragment.form) if fragment.anchor else None
        nodes = tuple(sorted(inside))
        form = FORMS.get(fragment.form)
        seconds = fragment.seconds(self.classes, self.model)
        features = fragment.features(self.classes).settled
        self.groups.append(Group(form, root, nodes, tuple(read), anchor, seconds, features))
