"""conv and matmul for the register-tiled kernel of `contraction/emit.py`.

The operands must be plain strided views of f32 or f64, or of f16 or bf16, packed as f32; or
integers that come from 8 bits (see `readings.py`). Weights that are constants are packed into
panels at compile time; other right operands are packed by the kernel. Depthwise convolutions and
all other dtypes are plain loops, see `lower/reductions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from satura.backend.constants import ConstantStore
from satura.backend.contraction.axes import NO_ROWS, Axis, over_axes
from satura.backend.contraction.bands import can_be_widened, widened_count
from satura.backend.contraction.emit import contraction_source
from satura.backend.contraction.epilogue import NestEpilogue
from satura.backend.contraction.plan import contraction_plan
from satura.backend.contraction.problem import Problem, conv_problem, matmul_problem
from satura.backend.contraction.readings import reading_of
from satura.backend.contraction.shares import UnitCycles, share_cycles, tile_for_threads
from satura.backend.contraction.sorted_words import table_lines
from satura.backend.contraction.spec import ContractionCall, ContractionSpec, parameters
from satura.backend.contraction.tile import Products, choose_tile, panel_columns
from satura.backend.emit.code import Code, KernelForm
from satura.backend.lower.anchors import anchor_of, epilogue_nest
from satura.backend.lower.body import Pointer
from satura.backend.lower.canonical import renumber
from satura.backend.lower.walk import shape_of
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.tensor_type import Array


def contraction_code(
    schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore, name: str,
    any_sizes: bool, wanted: ContractionForm | None = None,
) -> Code | None:  # fmt: skip
    """The register-tiled kernel of a contraction; None where only plain loops will do.

    With `any_sizes` the text must not depend on extents that other sizes may change. The kernel is
    that of `wanted`, another contraction's, or None where that does not serve.
    """
    node = schedule.program.nodes[anchor_of(dispatch)]
    if 0 in shape_of(schedule, node.operands[0]) or 0 in shape_of(schedule, node.operands[1]):
        return None
    reading = reading_of(schedule, dispatch, node)
    if reading is None:
        return None
    lowered = matmul_problem if node.op.name == "matmul" else conv_problem
    problem = lowered(node, reading, shape_of(schedule, anchor_of(dispatch)))
    if problem is None:
        return None
    problem = problem.sharing(problem.groups_of_a_vector)
    problem = problem.as_matrices(any_sizes, schedule.is_exact)
    return _code(problem, schedule, dispatch, threads, store, name, any_sizes, wanted)


@dataclass(frozen=True)
class ContractionForm:
    """The spec of a contraction kernel, and what it does with each sum."""

    spec: ContractionSpec
    body: tuple[str, ...]

    def may_serve(self, other: KernelForm) -> bool:
        if not isinstance(other, ContractionForm) or self.body != other.body:
            return False
        return self != other and len(self.spec.windowed) >= len(other.spec.windowed)


def _code(
    problem: Problem, schedule: Schedule, dispatch: Dispatch, threads: int, store: ConstantStore,
    name: str, any_sizes: bool, wanted: ContractionForm | None = None,
) -> Code | None:  # fmt: skip
    """The kernel's text and arguments; None where the kernel of `wanted` does not serve."""
    nest = renumber(epilogue_nest(schedule, dispatch))
    crossed = problem if problem.column >= 0 else problem.crossed(nest, store)
    if crossed is not problem:
        return _code(crossed, schedule, dispatch, threads, store, name, any_sizes, wanted)
    batches, rows = problem.merged(nest)
    spec = best = _best_spec(problem, batches, rows, threads, any_sizes)
    if wanted is not None:
        if not wanted.spec.serves(best, problem.columns, any_sizes):
            return None
        spec = wanted.spec
        rows = (*(NO_ROWS,) * (len(spec.windowed) - len(rows)), *rows)
    call = _call(problem, schedule, store, batches, rows, spec)
    plan = contraction_plan(spec, call, threads)
    over = over_axes(nest, [*batches, *rows], problem.column, problem.columns)
    epilogue = NestEpilogue(over, len(parameters(spec)))
    source = contraction_source(name, spec, epilogue)
    work = call.row_count * prod(call.batches) * problem.columns * problem.depth * call.taps
    more = 0.0
    if spec is not best and not any_sizes:  # what sizes must not be asked for is little
        shared = _shared(problem, batches, rows)
        taken, least = (
            share_cycles(each.tile, *shared, threads, _cycles(problem, each))
            for each in (spec, best)
        )
        more = taken - least
    return Code(
        name, source.text, (*plan.arguments, *epilogue.arguments), work // 8,
        plan.scratch_size, ContractionForm(spec, epilogue.body), more,
    )  # fmt: skip


def _best_spec(
    problem: Problem, batches: Sequence[Axis], rows: Sequence[Axis], threads: int, any_sizes: bool
) -> ContractionSpec:
    """The kernel that takes the fewest cycles; with `any_sizes` one that does not depend on
    extents that differ between calls."""
    reading, grouped = problem.reading, problem.groups > 1 or problem.shared > 0
    any_columns = any_sizes and reading.weights is None  # those of weights are always the same
    known = None if any_sizes else prod(axis.row.extent for axis in rows)
    axes = tuple(axis.row for axis in rows)
    widened = not any_sizes and problem.planar and can_be_widened(axes)
    if widened:
        known = widened_count(axes)
    tile = choose_tile(
        known, problem.columns, None, any_columns, reading.products, has_tail=not problem.shared
    )
    if problem.shared == 1:  # the microkernel is written out, and more rows would be spilled
        tile = replace(tile, rows=tuple(max(1, rows - 1) for rows in tile.rows))
    spec = ContractionSpec(
        len(batches) + grouped, tuple(axis.row.is_windowed for axis in rows), tile, grouped,
        problem.left_packed, reading.right_packed, reading.left_dtype, reading.right_dtype,
        reading.result, problem.shared, octets_banded=problem.octets_banded, widened=widened,
    )  # fmt: skip
    if not any_sizes and not problem.shared:
        shared = _shared(problem, batches, rows)
        tile = tile_for_threads(tile, *shared, threads, _cycles(problem, spec))
    full = not any_columns and problem.columns % panel_columns(tile) == 0
    return replace(spec, tile=tile, full=full)


def _call(
    problem: Problem, schedule: Schedule, store: ConstantStore, batches: Sequence[Axis],
    rows: Sequence[Axis], spec: ContractionSpec,
) -> ContractionCall:  # fmt: skip
    """What a kernel of `spec` is called with; constant weights are packed into `store`."""
    reading, grouped = problem.reading, spec.grouped
    pointer, right_strides = reading.right.pointer, tuple(axis.right for axis in batches)
    panel_lines = head_lines = 0
    group_stride = problem.columns * problem.right_column
    if reading.weights is not None:
        digest = schedule.program.nodes[reading.right.node].constant.digest
        pointer, right_strides, group_stride, panel_lines = _packed(
            problem, store, digest, reading.weights, batches, spec
        )
        if reading.products is Products.OCTETS:
            head_lines = table_lines(*problem.pieces_of_a_row, spec.width)
    return ContractionCall(
        left=reading.left.pointer,
        right=pointer,
        scratch=Pointer(("scratch", 0)),
        batches=(*(axis.row.extent for axis in batches), *((problem.groups,) * grouped)),
        left_strides=(*(axis.row.stride for axis in batches), *((problem.left_group,) * grouped)),
        right_strides=(*right_strides, *((group_stride,) * grouped)),
        rows=tuple(axis.row for axis in rows),
        columns=problem.columns,
        depth=problem.depth,
        fill=reading.fill,
        left_depth_stride=problem.left_depth,
        right_depth_stride=problem.right_depth,
        right_column_stride=problem.right_column,
        left_zero=reading.left_zero,
        right_zero=reading.right_zero,
        panel_lines=panel_lines,
        table_lines=head_lines,
    )


def _cycles(problem: Problem, spec: ContractionSpec) -> UnitCycles:
    """How many cycles a tile takes in a kernel of `spec`, for all lines of a panel."""
    return partial(spec.cycles, problem.words_of_a_row)


def _shared(
    problem: Problem, batches: Sequence[Axis], rows: Sequence[Axis]
) -> tuple[int, int, int]:
    """What threads share: the rows and columns of a product, and how many products."""
    products = prod(axis.row.extent for axis in batches) * max(1, problem.groups)
    return prod(axis.row.extent for axis in rows), problem.columns, products


def _packed(
    problem: Problem, store: ConstantStore, digest: bytes, weights: Constant | Array,
    batches: Sequence[Axis], spec: ContractionSpec,
) -> tuple[Pointer, tuple[int, ...], int, int]:  # fmt: skip
    """The weights as panels in `store`, their strides along batches and groups, their lines."""
    reading, width = problem.reading, spec.width
    taps = prod(axis.row.taps for axis in problem.rows)
    moving = [axis for axis in batches if axis.right]
    groups = max(1, problem.groups)
    moved = (axis.row.extent for axis in moving)
    extents = (*moved, taps * problem.depth, groups * problem.columns)
    strides = (*(axis.right for axis in moving), problem.right_depth, problem.right_column)
    size = reading.right.itemsize
    shape = tuple(map(int, extents))  # a constant may be spread over a size
    steps = tuple(int(stride // size) for stride in strides)
    start = reading.right.pointer.offset // size
    pieces, _ = problem.pieces_of_a_row
    words = problem.words_of_a_row if reading.products.word.is_integer else taps * problem.depth
    key = f"{digest.hex()} {start} {shape} {steps} {groups} {width} {reading.key} {pieces} {words}"

    def pack() -> Array:
        array = weights.array if isinstance(weights, Constant) else weights
        flat = array.reshape(-1)[start:]
        strides = tuple(step * array.itemsize for step in steps)
        seen = np.lib.stride_tricks.as_strided(flat, shape, strides)
        return reading.packed(seen.reshape(-1, *shape[-2:]), groups, width, pieces, words)

    number = store.derived(key.encode(), pack)
    lines = words + spec.heads
    if spec.tile.part:  # the weights themselves decide it
        store.made(number)
        lines = store.arrays[number].shape[-2]
    group_stride = -(-problem.columns // width) * lines * spec.line
    batch_stride = group_stride * groups
    right: list[int] = []
    for axis in reversed(batches):
        right.insert(0, batch_stride if axis.right else 0)
        batch_stride *= axis.row.extent if axis.right else 1
    return Pointer(("constant", number)), tuple(right), group_stride, lines
