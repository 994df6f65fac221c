"""Tensors that an anchored kernel sees through reshapes, and whether they may lie among others.

A contraction or a window reads and stores tensors by strides, one for each of its loops. In a
buffer with gaps, a reshape that merges axes across a gap leaves no such strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from satura.rewrite.extract.assemble import Group
from satura.rewrite.extract.index_paths import index_paths
from satura.rewrite.extract.schedule import Form
from satura.rewrite.ops import Kind
from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import (
    Index,
    is_affine,
    offset,
    pull,
    row_major,
    variables,
)  # fmt: skip


def reshaped_tensors(program: Program, groups: Sequence[Group]) -> dict[int, list[Group]]:
    """The groups whose kernels read or store a tensor through a reshape of axes of more than one
    element."""
    found: dict[int, list[Group]] = {}
    for group in groups:
        if group.form not in (Form.CONTRACTION, Form.WINDOW) or group.anchor is None:
            continue
        seen = [path[-1] for path in _read(program, group) if _is_reshaped(program, path[:-1])]
        if _is_reshaped(program, _stored(program, group)):
            seen.append(group.root)
        for node in seen:
            found.setdefault(node, []).append(group)
    return found


def steps_evenly(program: Program, group: Group, node: int, shape: Sequence[Dim]) -> bool:
    """Whether the kernel of `group` has strides for `node` in a buffer of this shape."""
    strides = row_major(shape)
    places = [place for path in _read(program, group) for place in _pulled(program, path, node)]
    if node == group.root:
        places.append(_pushed(program, group))
    return all(place is not None and is_affine(offset(place, strides)) for place in places)


def _read(program: Program, group: Group) -> Iterator[list[int]]:
    """For each operand of the anchor the nodes from it to the tensor in memory that it is read
    from."""
    assert group.anchor is not None
    for operand in program.nodes[group.anchor].operands:
        path = [operand]
        while path[-1] not in group.operands:
            path.append(program.nodes[path[-1]].operands[0])
        yield path


def _stored(program: Program, group: Group) -> list[int]:
    """The nodes of a group that depend on its anchor, in order."""
    path = {group.anchor}
    found = []
    for node in group.nodes:
        if path.intersection(program.nodes[node].operands):
            path.add(node)
            found.append(node)
    return found


def _is_reshaped(program: Program, path: Sequence[int]) -> bool:
    """Whether a reshape on a path does more than bring axes of extent 1 and take them away."""
    for node in path:
        found = program.nodes[node]
        if found.op.name != "reshape":
            continue
        shapes = (program.nodes[found.operands[0]].type.shape, found.type.shape)
        before, after = ([dim for dim in shape if dim != 1] for shape in shapes)
        if before != after:
            return True
    return False


def _pulled(program: Program, path: Sequence[int], node: int) -> Iterator[Index | None]:
    """The place in `node`, at the end of a path, of what an anchor reads; None if not known."""
    if path[-1] != node:
        return
    nodes = program.nodes
    place, ranges = variables(nodes[path[0]].type.shape)
    for above, below in pairwise(path):
        seen = nodes[above]
        if seen.op.name in ("transpose", "reshape", "broadcast", "slice"):
            source = nodes[below].type.shape
            place = pull(seen.op.name, seen.attributes, place, seen.type.shape, source, ranges)
        elif seen.op.kind is not Kind.ELEMENTWISE:
            yield None
            return
    yield place


def _pushed(program: Program, group: Group) -> Index | None:
    """The place in a group's root of what its anchor computes; None if not known."""
    assert group.anchor is not None
    start, ranges = variables(program.nodes[group.anchor].type.shape)
    return index_paths(program.nodes, group.nodes, {group.anchor: start}, ranges).get(group.root)
