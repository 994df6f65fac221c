"""Random programs whose sizes are symbols: what lowering decides is decided by calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from satura.rewrite.program.program import Program
from satura.rewrite.types.dims import Dim, SymbolicDim, static, symbol
from satura.rewrite.types.size_condition import SizeCondition
from satura.rewrite.types.tensor_type import Array, DType
from tests.random_programs import STEPS, RandomProgram, Step

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64)
N, M = symbol("n"), symbol("m")
_DIMS: tuple[Dim, ...] = (N, N, M, M, 1, 2, 3, 4, 8)


@dataclass
class _Dynamic(RandomProgram):
    conditions: list[SizeCondition] = field(default_factory=list)

    def dim(self) -> Dim:
        return _DIMS[int(self.random.integers(len(_DIMS)))]

    def axis(self, node: int) -> int | None:
        """An axis of a symbolic extent."""
        found = [i for i, n in enumerate(self.shape(node)) if isinstance(n, SymbolicDim)]
        return found[int(self.random.integers(len(found)))] if found else None


def _part(program: RandomProgram) -> None:
    """A slice whose size and start depend on sizes, a pad with sizes, or a turn of an axis."""
    assert isinstance(program, _Dynamic)
    node = program.pick(lambda v: program.axis(v) is not None)
    if node is None:
        return
    axis = program.axis(node)
    assert axis is not None
    shape, build = program.shape(node), program.build
    extent = shape[axis]
    starts: list[Dim] = [0] * len(shape)
    sizes, steps = list(shape), [1] * len(shape)
    kind = int(program.random.integers(5))
    if kind < 2:
        half = (extent + kind) // 2
        starts[axis], sizes[axis] = (0, half) if program.chance(0.5) else (extent - half, half)
        result = build.slice(node, starts, sizes, steps)
    elif kind == 2:
        starts[axis], steps[axis] = extent - 1, -1
        result = build.slice(node, starts, sizes, steps)
    elif kind == 3:
        lo, hi = [0] * len(shape), [0] * len(shape)
        borders: tuple[Dim, ...] = (0, 1, M, N // 2)
        pads: list[list[Dim]] = [[*lo], [*hi]]
        for pad in pads:
            pad[axis] = borders[int(program.random.integers(len(borders)))]
        result = build.pad(node, pads[0], pads[1], 1.0)
    else:
        result = build.concat([node, node], axis)
    program.keep(result, program.exact[node], max(2.0, program.bound[node]))


def _regrouped(program: RandomProgram) -> None:
    """Two neighbouring axes in the other order of extents, by a reshape: a division at runtime."""
    node = program.pick(lambda v: len(program.shape(v)) >= 2)
    if node is None:
        return
    shape = list(program.shape(node))
    at = int(program.random.integers(len(shape) - 1))
    both = [shape[at] * shape[at + 1]]
    shape[at : at + 2] = both if program.chance(0.4) else [shape[at + 1], shape[at]]
    result = program.build.reshape(node, shape)
    program.keep(result, program.exact[node], program.bound[node])


def _scored(program: RandomProgram) -> None:
    """A product of two tensors of symbolic extents, as in attention."""
    node = program.pick(lambda v: len(program.shape(v)) >= 2 and program.dtype(v) is DType.F32)
    if node is None:
        return
    node = program.tamed(node)
    shape = program.shape(node)
    turned = program.build.transpose(node, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
    small = program.keep(program.build.unary("tanh", turned), False, 1.0)
    left, right = (node, small) if program.chance(0.5) else (small, node)
    program.keep(program.build.matmul(left, right), False, 100.0)


def _taken_for_equal(program: RandomProgram) -> None:
    """An axis cut to an extent that it must have: other sizes are refused."""
    assert isinstance(program, _Dynamic)
    node = program.pick(lambda v: program.axis(v) is not None)
    if node is None or program.conditions:
        return
    sizes = list(program.shape(node))
    axis = program.axis(node)
    assert axis is not None
    extent = sizes[axis]
    sizes[axis] = extent // 2 * 2
    program.conditions.append(SizeCondition(extent, sizes[axis], "=", "a random step"))
    result = program.build.slice(node, [0] * len(sizes), sizes)
    program.keep(result, program.exact[node], program.bound[node])


def _in_blocks(program: RandomProgram) -> None:
    """An axis filled up to whole blocks, folded in each and along them, as running sums are."""
    assert isinstance(program, _Dynamic)
    node = program.pick(lambda v: program.dtype(v) is DType.F32 and program.axis(v) is not None)
    if node is None:
        return
    node, build = program.tamed(node), program.build
    axis, shape = program.axis(node), program.shape(node)
    assert axis is not None
    length = int(program.random.choice([3, 4, 16]))
    count = (shape[axis] + (length - 1)) // length
    ends: list[Dim] = [0] * len(shape)
    ends[axis] = count * length - shape[axis]
    whole = build.pad(node, [0] * len(shape), ends, 0.0)
    blocks = build.reshape(whole, (*shape[:axis], count, length, *shape[axis + 1 :]))
    sizes, before = [1] * (len(shape) + 1), [0] * (len(shape) + 1)
    sizes[axis + 1], before[axis + 1] = length, length - 1
    f = str(program.random.choice(["sum", "max"]))
    folded = build.pool(f, blocks, build.window(DType.F32, sizes, lo=before))
    together = build.reshape(folded, build.type(whole).shape)
    result = build.slice(together, [0] * len(shape), shape)
    program.keep(result, f == "max" and program.exact[node], length * program.bound[node] + 1)


def _resampled(program: RandomProgram) -> None:
    """An axis read at places that are computed from its extent."""
    assert isinstance(program, _Dynamic)
    node = program.pick(lambda v: program.axis(v) is not None)
    if node is None:
        return
    axis, shape, build = program.axis(node), program.shape(node), program.build
    assert axis is not None
    above, below = ((1, 2), (2, 1), (3, 2))[int(program.random.integers(3))]
    ramp = build.iota((shape[axis] * above // below,), 0, DType.F64)
    line = build.type(ramp).shape

    def along(x: int) -> int:
        return build.broadcast(build.reshape(build.cast(x, DType.F64), (1,)), line)

    half, scale = along(build.constant(0.5)), along(build.constant(above / below))
    at = build.binary("div", build.binary("add", ramp, half), scale)
    last = build.binary("sub", along(build.extent(shape[axis])), along(build.constant(1.0)))
    place = build.binary("min", build.unary("floor", at), last)
    found = build.gather(node, build.cast(place, DType.I64), axis)
    program.keep(found, program.exact[node], program.bound[node])


_STEPS: tuple[tuple[Step, float], ...] = (
    *((step, weight) for step, weight in STEPS), (_part, 4), (_regrouped, 2), (_scored, 1),
    (_taken_for_equal, 0.5), (_in_blocks, 2), (_resampled, 2),
)  # fmt: skip


def dynamic_program(seed: int) -> tuple[Program, dict[str, bool]]:
    """A program over the sizes n and m, and for each output whether it is exact.

    For some sizes it may have no types.
    """
    random = np.random.default_rng([seed, 31])
    program = _Dynamic(random, {"n": 3, "m": 2})
    for shape in ((N, 3, M), (M, 5, N), (N, 4, 6, 3)):
        program.new_input(DType.F32, shape)
    goal = int(random.integers(10, 30))
    weights = np.array([weight for _, weight in _STEPS])
    for _ in range(10 * goal):
        if len(program.build.nodes) >= goal:
            break
        _STEPS[int(random.choice(len(_STEPS), p=weights / weights.sum()))][0](program)
    read = {operand for node in program.build.nodes for operand in node.operands}
    ends = [v for v in dict.fromkeys(program.values) if v not in read]
    ends = [v for v in ends if program.build.nodes[v].op.name != "input"] or program.values[-1:]
    outputs = {f"y{k}": v for k, v in enumerate(ends)}
    made = program.build.program(outputs)
    if program.conditions:
        made = made.where(tuple(program.conditions))
    return made, {n: program.exact[v] for n, v in outputs.items()}


def arguments_for(program: Program, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Arguments at these sizes; signed integers are 0 and -1, which are indices of any table."""
    draw = RandomProgram(np.random.default_rng(seed), {})
    found = {}
    for index in program.inputs:
        node = program.nodes[index]
        shape = tuple(static(dim) for dim in node.type.concrete(sizes).shape)
        values = draw.data(node.type.dtype, shape, special=True)
        if node.type.dtype.is_integer:
            values = values % 2 - int(node.type.dtype.is_signed)
        found[node.input_name] = values
    return found
