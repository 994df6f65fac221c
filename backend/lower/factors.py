"""Results that products alone read."""

from __future__ import annotations

from satura.rewrite.extract.schedule import Dispatch, Form, Schedule
from satura.rewrite.ops import Kind


def is_only_a_factor(schedule: Schedule, node: int) -> bool:
    """Whether contractions are all that reads a result, and do so for their products only.

    Never of an exact schedule, whose kernels multiply elements as they are.
    """
    if schedule.is_exact or node in schedule.program.output_nodes:
        return False
    if schedule.homes[node].buffer != node:
        return False
    readers = [each for each in schedule.dispatches if node in each.operands]
    return all(_multiplies(schedule, reader, node) for reader in readers)


def _multiplies(schedule: Schedule, reader: Dispatch, node: int) -> bool:
    """Whether a dispatch does nothing with the elements of `node` but to multiply them."""
    if reader.form is not Form.CONTRACTION:
        return False
    same = {node}
    for index in reader.nodes:
        user = schedule.program.nodes[index]
        if index == reader.anchor or same.isdisjoint(user.operands):
            continue
        if user.op.kind is not Kind.LAYOUT:
            return False
        same.add(index)
    return True
