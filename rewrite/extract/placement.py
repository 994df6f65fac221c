"""Homes: which buffer every materialised tensor lies in.

A concat that was chosen as a placement becomes a buffer that its parts' producers write into. A
tensor has one home: an input, an output, a constant, a part of two concats, or a part that some
kernel cannot step through in there keeps its own buffer, and a copy dispatch moves it into the
concat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from satura.rewrite.extract.assemble import Assembly
from satura.rewrite.extract.cost import CostModel, copy_seconds
from satura.rewrite.extract.even_steps import reshaped_tensors, steps_evenly
from satura.rewrite.extract.features import copy_features
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import bytes_of


@dataclass(frozen=True)
class Homes:
    """The home of every tensor that is stored, and by the concat what has to be copied into it."""

    of: Mapping[int, Home]
    copies: Mapping[int, Sequence[Dispatch]]


def place(assembly: Assembly, model: CostModel) -> Schedule:
    """The schedule of `assembly`: homes decided, copies inserted where a part cannot be placed."""
    return placed(assembly, find_homes(assembly, model))


def placed(assembly: Assembly, homes: Homes) -> Schedule:
    """The schedule of `assembly` with these homes."""
    dispatches: list[Dispatch] = []
    for group in assembly.groups:
        if group.form is None:
            dispatches.extend(homes.copies.get(group.root, ()))
        else:
            described = (group.form, group.root, group.nodes, group.operands, group.anchor)
            dispatches.append(
                Dispatch(*described, homes.of[group.root], group.seconds, group.features)
            )
    ordered = {node: homes.of[node] for node in sorted(homes.of)}
    seconds = sum(dispatch.seconds for dispatch in dispatches)
    return Schedule(assembly.program, tuple(dispatches), assembly.constants, ordered, seconds)


def uncharged_copies(assembly: Assembly, homes: Homes) -> dict[int, float]:
    """Seconds of copies that no candidate was charged for, by the concat: a part that could have
    been written in place is written elsewhere, as another choice demands."""
    copies = homes.copies
    found = {
        group.root: sum(copy.seconds for copy in copies[group.root]) - group.seconds
        for group in assembly.groups
        if group.root in copies
    }
    return {root: seconds for root, seconds in found.items() if seconds > 0}


def find_homes(assembly: Assembly, model: CostModel) -> Homes:
    """Decide the home of every tensor of `assembly` that is stored."""
    program = assembly.program
    homes: dict[int, Home] = {}
    fixed = {*program.inputs, *program.output_nodes, *assembly.constants}
    fixed |= {node for group in assembly.groups if group.form is Form.HOST for node in group.nodes}
    reshaped = reshaped_tensors(program, assembly.groups)
    copies: dict[int, list[Dispatch]] = {}
    for node in (*program.inputs, *assembly.constants):
        homes[node] = _own(program, node)
    for group in reversed(assembly.groups):
        home = homes.setdefault(group.root, _own(program, group.root))
        for node in group.nodes if group.form is Form.HOST else ():
            if program.nodes[node].op.name == "item":
                homes.setdefault(node, _own(program, node))
        if group.form is not None:
            continue
        for operand, target in _parts(program, group.root, home):
            shape = program.nodes[target.buffer].type.shape
            is_torn = not all(
                steps_evenly(program, each, operand, shape) for each in reshaped.get(operand, ())
            )
            if operand in fixed or operand in homes or is_torn:
                type_ = program.nodes[operand].type
                size = bytes_of(type_.typical(model.sizes))
                dtype = type_.dtype.value
                copy = Dispatch(
                    Form.LOOP, operand, (), (operand,), None, target,
                    copy_seconds(model, dtype, size), copy_features(dtype, size),
                )  # fmt: skip
                copies.setdefault(group.root, []).append(copy)
                homes.setdefault(operand, _own(program, operand))
            else:
                homes[operand] = target
    return Homes(homes, copies)


def _own(program: Program, node: int) -> Home:
    return Home(node, (0,) * program.nodes[node].type.rank)


def _parts(program: Program, concat: int, home: Home) -> list[tuple[int, Home]]:
    """The operands of `concat` and where in its home they belong."""
    node = program.nodes[concat]
    axis = node.attributes[0]
    assert isinstance(axis, Axis)
    start: list[Dim] = list(home.start)
    result = []
    for operand in node.operands:
        result.append((operand, Home(home.buffer, tuple(start))))
        start[axis.index] = start[axis.index] + program.nodes[operand].type.shape[axis.index]
    return result
