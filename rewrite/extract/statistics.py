"""What a schedule does, in the words of `satura stats`."""

from __future__ import annotations

from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.ops import Kind
from satura.rewrite.ops.registry import size_of
from satura.rewrite.types.tensor_type import bytes_of

Statistics = dict[str, int]


def statistics(schedule: Schedule) -> Statistics:
    """Counts over the dispatches of `schedule`; symbolic dims count at representative sizes.

    What only a compiled program knows (`executable-count`, `transient-memory-size`) is not here.
    """
    program = schedule.program
    runs: dict[int, int] = {}
    for dispatch in schedule.dispatches:
        for node in dispatch.nodes:
            runs[node] = runs.get(node, 0) + 1
    flops = {node: _flops(schedule, node) for node in runs}
    constants = [bytes_of(program.nodes[node].type) for node in schedule.constants]
    return {
        "dispatch-count": len(schedule.dispatches),
        "fill-count": sum(map(schedule.is_fill, schedule.dispatches)),
        "copy-count": sum(map(schedule.is_copy, schedule.dispatches)),
        "host-count": sum(dispatch.form is Form.HOST for dispatch in schedule.dispatches),
        "moved-bytes": int(sum(moved_bytes(schedule, d) for d in schedule.dispatches)),
        "constant-count": len(constants),
        "constant-size": int(sum(constants)),
        "flops": int(sum(runs[node] * flops[node] for node in runs)),
        "redundant-flops": int(sum((runs[node] - 1) * flops[node] for node in runs)),
    }


def moved_bytes(schedule: Schedule, dispatch: Dispatch) -> float:
    """Bytes that the dispatch stores unchanged from what it loads."""
    program = schedule.program
    itemsize = program.nodes[dispatch.root].type.dtype.itemsize

    def plain_loads(node: int) -> float:
        """Elements of `node` that are plain loads."""
        if node in dispatch.operands:
            return size_of(program.nodes[node].type)
        op = program.nodes[node].op
        if op.kind is not Kind.LAYOUT:
            return 0.0
        parts = [plain_loads(operand) for operand in program.nodes[node].operands]
        if op.name == "concat":
            return sum(parts)
        size = size_of(program.nodes[node].type)
        if op.name == "pad":
            return min(size, parts[0])
        return size if parts[0] else 0.0

    return plain_loads(dispatch.root) * itemsize if dispatch.form is Form.LOOP else 0.0


def _flops(schedule: Schedule, index: int) -> float:
    nodes = schedule.program.nodes
    node = nodes[index]
    return node.op.flops(tuple(nodes[i].type for i in node.operands), node.attributes, node.type)
