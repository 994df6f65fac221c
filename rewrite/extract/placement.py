"""Homes: which buffer every materialised tensor lies in.

A concat that was chosen as a placement becomes a buffer that its parts' producers write into. A
tensor has one home: an input, an output, a constant, a part of two concats, or a part that some
kernel needs contiguous keeps its own buffer, and a copy dispatch moves it into the concat.
"""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.extract.assemble import Assembly, Group
from satura.rewrite.extract.cost import CostModel, copy_seconds
from satura.rewrite.extract.features import copy_features
from satura.rewrite.extract.schedule import Dispatch, Form, Home, Schedule
from satura.rewrite.program.program import Program
from satura.rewrite.types.attributes import Axis
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.tensor_type import bytes_of


def place(assembly: Assembly, model: CostModel) -> Schedule:
    """The schedule of `assembly`: homes decided, copies inserted where a part cannot be placed."""
    program = assembly.program
    homes: dict[int, Home] = {}
    fixed = {*program.inputs, *program.output_nodes, *assembly.constants}
    fixed |= {node for group in assembly.groups if group.form is Form.HOST for node in group.nodes}
    contiguous = _contiguous(program, assembly.groups)
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
            is_torn = operand in contiguous and not _is_whole(program, operand, target)
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
    dispatches: list[Dispatch] = []
    for group in assembly.groups:
        if group.form is None:
            dispatches.extend(copies.get(group.root, ()))
        else:
            described = (group.form, group.root, group.nodes, group.operands, group.anchor)
            dispatches.append(
                Dispatch(*described, homes[group.root], group.seconds, group.features)
            )
    ordered = {node: homes[node] for node in sorted(homes)}
    seconds = sum(dispatch.seconds for dispatch in dispatches)
    return Schedule(program, tuple(dispatches), assembly.constants, ordered, seconds)


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


def _is_whole(program: Program, part: int, target: Home) -> bool:
    """Whether a part lies in a buffer without gaps: no axis before the cut one has two elements."""
    shape, wide = program.nodes[part].type.shape, program.nodes[target.buffer].type.shape
    cut = [axis for axis, (dim, whole) in enumerate(zip(shape, wide, strict=True)) if dim != whole]
    return all(dim == 1 for dim in shape[: cut[-1]]) if cut else True


def _contiguous(program: Program, groups: Sequence[Group]) -> set[int]:
    """Tensors that an anchored kernel reads or stores through a reshape of axes of more than one
    element.

    Its offsets are plain strides only over a contiguous tensor.
    """
    result: set[int] = set()
    for group in groups:
        if group.form not in (Form.CONTRACTION, Form.WINDOW) or group.anchor is None:
            continue
        for operand in program.nodes[group.anchor].operands:
            reshaped = False
            while operand not in group.operands:
                reshaped |= _merges_or_splits(program, operand)
                operand = program.nodes[operand].operands[0]
            if reshaped:
                result.add(operand)
        path = {group.anchor}
        for node in group.nodes:
            if path.intersection(program.nodes[node].operands):
                path.add(node)
                if _merges_or_splits(program, node):
                    result.add(group.root)
    return result


def _merges_or_splits(program: Program, node: int) -> bool:
    """Whether this is a reshape that does more than bring axes of extent 1 and take them away."""
    found = program.nodes[node]
    if found.op.name != "reshape":
        return False
    shapes = (program.nodes[found.operands[0]].type.shape, found.type.shape)
    before, after = ([dim for dim in shape if dim != 1] for shape in shapes)
    return before != after
