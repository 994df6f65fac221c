"""Dispatches of a schedule as `satura show` prints them."""

from __future__ import annotations

from dataclasses import dataclass

from satura.rewrite.extract.schedule import Schedule
from satura.rewrite.program.records import NodeRecord, node_record


@dataclass(frozen=True)
class DispatchRecord:
    """A dispatch: what it reads from memory, the nodes that it computes, and what it stores where.

    What is stored lies in `buffer`, the memory of a node, from index `start` on.
    """

    number: int
    form: str
    seconds: float
    reads: tuple[NodeRecord, ...]
    computes: tuple[NodeRecord, ...]
    stores: NodeRecord
    buffer: int
    start: tuple[str, ...]

    def concerns(self, node: int) -> bool:
        """Whether that node is read, computed or stored here."""
        return any(each.node == node for each in (*self.reads, *self.computes, self.stores))

    def __str__(self) -> str:
        lines = [f"dispatch {self.number}: {self.form}, {self.seconds * 1e6:.2f} us"]
        lines += [f"  reads     %{node.node} : {node.type}" for node in self.reads]
        lines += [f"  computes  {node}" for node in self.computes]
        inside = ""
        if self.buffer != self.stores.node:
            inside = f" in %{self.buffer} from [{', '.join(self.start)}] on"
        return "\n".join([*lines, f"  stores    %{self.stores.node} : {self.stores.type}{inside}"])


def dispatch_records(schedule: Schedule) -> tuple[DispatchRecord, ...]:
    """The dispatches of `schedule` in execution order."""

    def records(nodes: tuple[int, ...]) -> tuple[NodeRecord, ...]:
        return tuple(node_record(schedule.program, node) for node in nodes)

    return tuple(
        DispatchRecord(
            number,
            dispatch.form.value,
            dispatch.seconds,
            records(dispatch.operands),
            records(dispatch.nodes),
            node_record(schedule.program, dispatch.root),
            dispatch.target.buffer,
            tuple(map(str, dispatch.target.start)),
        )
        for number, dispatch in enumerate(schedule.dispatches)
    )
