"""Verify: whether a schedule can run, whoever wrote it.

Every dispatch reads what is stored before it, and stores inside a buffer that is its own to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from satura.rewrite.errors import ProgramError
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.clamps import never_negative
from satura.rewrite.types.dims import Dim

_FUSED = frozenset({Kind.ELEMENTWISE, Kind.LAYOUT, Kind.INDEXING, Kind.SOURCE})

# What the anchor of a form is.
_ANCHORS: Mapping[Form, Kind] = {
    Form.ROW: Kind.REDUCTION, Form.CONTRACTION: Kind.CONTRACTION, Form.WINDOW: Kind.WINDOW,
    Form.ALONE: Kind.ALONE,
}  # fmt: skip


def verify(schedule: Schedule) -> None:
    """Raise ProgramError for a schedule that cannot run; its program is well typed."""
    _Check(schedule).run()


class _Check:
    """`stored` are the nodes that are in memory after the dispatches seen so far."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.nodes = schedule.program.nodes
        self.homes = schedule.homes
        self.given = {*schedule.program.inputs, *schedule.constants}
        self.stored = set(self.given)
        self.copied: set[tuple[int, Home]] = set()
        computed = {dispatch.root for dispatch in schedule.dispatches if dispatch.nodes}
        conditions = schedule.program.conditions
        self.natural = [dim for condition in conditions for dim in condition.natural]
        self.placed = schedule.homes.keys() - computed - self.given

    def run(self) -> None:
        schedule = self.schedule
        named = [*self.homes, *(home.buffer for home in self.homes.values()), *schedule.constants]
        for dispatch in schedule.dispatches:
            named += [dispatch.root, *dispatch.nodes, *dispatch.operands]
        for node in named:
            _expect(0 <= node < len(self.nodes), f"%{node} is not a node")
        known = schedule.program.known
        for node in schedule.constants:
            _expect(known[node], f"%{node} is not computed from constants")
        for node in (*self.given, *schedule.program.output_nodes):
            _expect(node in self.homes, f"%{node} lies nowhere")
            _expect(self.homes[node].buffer == node, f"%{node} has no buffer of its own")
        for node, home in self.homes.items():
            self.check_home(node, home)
        for dispatch in schedule.dispatches:
            self.check_dispatch(dispatch)
        for node in schedule.program.output_nodes:
            self.check_stored(node)

    def check_home(self, node: int, home: Home) -> None:
        """A tensor lies in its own buffer, or inside that of a concat whose parts are placed."""
        _expect(home.buffer in self.homes, f"%{home.buffer} is not in memory")
        if node in self.placed:
            is_made = self.nodes[node].op.name in ("concat", "item")
            _expect(is_made, f"nothing computes %{node}")
        own = self.homes[home.buffer]
        _expect(own.buffer == home.buffer, f"%{home.buffer} has no buffer of its own")
        part, whole = self.nodes[node].type, self.nodes[home.buffer].type
        _expect(len(home.start) == part.rank == whole.rank, f"%{node} does not fit %{home.buffer}")
        _expect(part.dtype is whole.dtype, f"%{node} and %{home.buffer} have two element types")
        if node == home.buffer:
            _expect(all(at == 0 for at in home.start), f"%{node} does not start where it lies")
            return
        _expect(home.buffer in self.placed, f"%{home.buffer} is not made of parts")
        for at, extent, all_ in zip(home.start, part.shape, whole.shape, strict=True):
            fits = all(never_negative(dim, self.natural) for dim in (at, all_ - at - extent))
            _expect(fits, f"%{node} is not inside %{home.buffer}")

    def check_dispatch(self, dispatch: Dispatch) -> None:
        for node in dispatch.operands:
            self.check_stored(node)
        if not dispatch.nodes:
            self.check_copy(dispatch)
            return
        root, inside = dispatch.root, set(dispatch.nodes)
        _expect(dispatch.nodes == tuple(sorted(inside)), f"the nodes of %{root} are in no order")
        _expect(root == dispatch.nodes[-1], f"%{root} is not the last of its nodes")
        _expect(root not in self.stored, f"%{root} is stored twice")
        _expect(dispatch.target == self.homes.get(root), f"%{root} is stored elsewhere")
        available = inside.union(dispatch.operands)
        needed = {root}
        for node in dispatch.nodes:
            read = available.issuperset(self.nodes[node].operands)
            _expect(read, f"%{node} reads what its dispatch does not")
            _expect(self.nodes[node].op.name != "input", f"%{node} is an input")
            needed.update(self.nodes[node].operands)
        _expect(needed == available, f"%{root} needs not all that its dispatch has")
        self.check_form(dispatch)
        self.stored.add(root)
        if dispatch.form is Form.HOST:
            self.stored |= inside & self.homes.keys()

    def check_form(self, dispatch: Dispatch) -> None:
        """The nodes are such as the form computes, and the anchor is the one that it needs."""
        kinds = {node: self.nodes[node].op.kind for node in dispatch.nodes}
        if dispatch.form is Form.HOST:
            fits = set(kinds.values()) == {Kind.HOST} and dispatch.anchor is None
        else:
            wanted = _ANCHORS.get(dispatch.form)
            special = [node for node, kind in kinds.items() if kind not in _FUSED]
            fits = all(kinds[node] is wanted for node in special)
            if wanted is None:
                fits &= dispatch.anchor is None
            else:
                fits &= dispatch.anchor in special
                fits &= wanted is Kind.REDUCTION or len(special) == 1
        _expect(fits, f"%{dispatch.root} is not computed by a {dispatch.form.value}")

    def check_copy(self, dispatch: Dispatch) -> None:
        """A copy brings a tensor to its place in a concat."""
        copy = (dispatch.root, dispatch.target)
        fits = dispatch.operands == (dispatch.root,) and dispatch.form is Form.LOOP
        fits &= dispatch.anchor is None
        fits &= copy in self.all_parts
        _expect(fits, f"%{dispatch.root} is copied where nobody reads it")
        self.copied.add(copy)

    def check_stored(self, node: int) -> None:
        """A node is in memory; the parts of a concat that is not computed are where they belong."""
        pending = [node]
        while pending:
            node = pending.pop()
            if node in self.stored:
                continue
            is_placed = node in self.placed and self.nodes[node].op.name == "concat"
            _expect(is_placed, f"%{node} is read before it is stored")
            for operand, home in self.parts(node):
                if (operand, home) not in self.copied:
                    _expect(self.homes.get(operand) == home, f"%{operand} is not in its place")
                    pending.append(operand)
            self.stored.add(node)

    @cached_property
    def all_parts(self) -> frozenset[tuple[int, Home]]:
        return frozenset(part for node in self.placed for part in self.parts(node))

    def parts(self, node: int) -> Iterator[tuple[int, Home]]:
        """The operands of a concat, and where in its buffer they belong."""
        concat = self.nodes[node]
        if concat.op.name != "concat":
            return
        (axis,), home = concat.attributes, self.homes[node]
        assert isinstance(axis, Axis)
        start: list[Dim] = list(home.start)
        for operand in concat.operands:
            yield operand, Home(home.buffer, tuple(start))
            start[axis.index] = start[axis.index] + self.nodes[operand].type.shape[axis.index]


def _expect(condition: bool, flaw: str) -> None:
    if not condition:
        raise ProgramError(flaw)
