"""Boxes that overlap a better one left out, by a kernel: see `rewrite/program/suppression.py`.

Few boxes of a class are ever looked at, so its scores are not sorted but are a heap:

    for each class
        for each box with enough score   its order: the bits of its score, then its place
        while there are boxes, and not enough are kept
            take the first of the heap
            for each block of the boxes kept so far    is any of them too near?
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from satura.backend.cache_lines import address, aligned_bytes, whole_lines
from satura.backend.jit.kernel import KernelError, KernelSource
from satura.backend.jit.machine_code import kernel_address
from satura.backend.run.routine import SMALL_WORK
from satura.backend.run.runtime import ALL_THREADS, Executor, Step
from satura.rewrite.program.suppression import SIDES, kept_boxes, sides_of
from satura.rewrite.types.tensor_type import Array

KeptBoxes = Callable[[Array, Array, int, float, float | None, bool], NDArray[np.int64]]

_BLOCK = 16  # boxes that are compared at a time
_SCORES = 32  # that are looked at at a time: in most of them none is enough
_SHIFT = 1 << 32
_LAST = (1 << 63) - 1
_INFINITY = 0x7F800000

# The item goes down from the hole to where it belongs; behind the heap stands what is last of all.
_SUNK = """\
{0}child = 2 * hole + 1
{0}while child < size:
{0}    other = load_int64(heap, child)
{0}    beside = load_int64(heap, child + 1)
{0}    child += cast_i64(beside < other)
{0}    other = min(other, beside)
{0}    if item < other:
{0}        break
{0}    store_int64(heap, hole, other)
{0}    hole = child
{0}    child = 2 * hole + 1
{0}store_int64(heap, hole, item)
"""

# A box whose area is not above 0 overlaps nothing; the sides of others are numbers. The first sides
# in the rest of a block are infinite: they share nothing with any box.
SUPPRESSION = KernelSource("suppression", f"""\
def kernel(args, thread, threads):
    rows = load_int64(args, 4)
    classes = load_int64(args, 5)
    count = load_int64(args, 6)
    most = load_int64(args, 7)
    is_all = load_int64(args, 8) != 0
    least = scalar_f32(load_int64(args, 9))
    overlap = scalar_f32(load_int64(args, 10))
    heap = load_int64(args, 11) + thread * load_int64(args, 12)
    low = heap + load_int64(args, 13)
    pitch = load_int64(args, 14)
    zero = scalar_f32(0)
    for row in range(rows * thread // threads, rows * (thread + 1) // threads):
        sides = load_int64(args, 0) + {4 * SIDES} * count * (row // classes)
        scores = load_int64(args, 1) + 4 * count * row
        places = load_int64(args, 2) + 8 * most * row
        size = 0
        for first in range(0, count, {_SCORES}):
            stop = min(first + {_SCORES}, count)
            is_any = is_all
            for place in range(first, stop):
                is_any = is_any | (load_f32(scores, place) > least)
            if is_any:
                for place in range(first, stop):
                    score = load_f32(scores, place)
                    order = cast_i64(max_key(zero - score)) * {_SHIFT} + place
                    store_int64(heap, size, order)
                    size += cast_i64((score > least) | is_all)
        store_int64(heap, size, {_LAST})
        for rest in range(size // 2):
            hole = size // 2 - 1 - rest
            item = load_int64(heap, hole)
{_SUNK.format(" " * 12)}
        kept = 0
        solid = 0
        while size > 0 and kept < most:
            place = load_int64(heap, 0) & {_SHIFT - 1}
            size -= 1
            item = load_int64(heap, size)
            store_int64(heap, size, {_LAST})
            hole = 0
{_SUNK.format(" " * 12)}
            top = load_f32(sides, place)
            left = load_f32(sides, count + place)
            bottom = load_f32(sides, 2 * count + place)
            right = load_f32(sides, 3 * count + place)
            area = load_f32(sides, 4 * count + place)
            is_near = False
            if area > zero:
                for first in range(0, solid, {_BLOCK}):
                    for at in range({_BLOCK}):
                        each = low + 4 * first
                        height = min(get_f32(each + 2 * pitch, at), bottom)
                        height = height - max(get_f32(each, at), top)
                        width = min(get_f32(each + 3 * pitch, at), right)
                        width = width - max(get_f32(each + pitch, at), left)
                        common = height * width
                        union = get_f32(each + 4 * pitch, at) + area - common
                        is_there = (height > zero) & (common > zero) & (union > zero)
                        is_near = is_near | (is_there & (divide(common, union) > overlap))
                    if is_near:
                        break
            if is_near:
                continue
            store_int64(places, kept, place)
            kept += 1
            if area > zero:
                if solid % {_BLOCK} == 0:
                    for at in range({_BLOCK}):
                        put_f32(low, solid + at, scalar_f32({_INFINITY}))
                put_f32(low, solid, top)
                put_f32(low + pitch, solid, left)
                put_f32(low + 2 * pitch, solid, bottom)
                put_f32(low + 3 * pitch, solid, right)
                put_f32(low + 4 * pitch, solid, area)
                solid += 1
        store_int64(load_int64(args, 3), row, kept)
""")  # fmt: skip


def boxes_keeper(threads: int) -> KeptBoxes:
    """`kept_boxes` by the kernel, which is compiled where it is in no cache; NumPy's where it does
    not compile."""
    try:
        return partial(_kept_by_kernel, kernel_address(SUPPRESSION), threads)
    except KernelError:
        return kept_boxes


def _kept_by_kernel(
    kernel: int, threads: int, boxes: Array, scores: Array, most: int, overlap: float,
    score: float | None, is_by_center: bool,
) -> NDArray[np.int64]:  # fmt: skip
    """What `kept_boxes` gives of the same, bit for bit."""
    fits = scores.ndim == 3 and boxes.shape == (len(scores), scores.shape[-1], 4)
    if not fits or scores.dtype != np.float32 or most <= 0:
        return kept_boxes(boxes, scores, most, overlap, score, is_by_center)
    (_, classes, count), rows = scores.shape, scores.shape[0] * scores.shape[1]
    most = min(most, count)
    sides, values = sides_of(boxes, is_by_center), np.ascontiguousarray(scores)
    places, kept = np.empty((rows, most), np.int64), np.empty(rows, np.int64)
    heap, pitch = whole_lines(8 * (count + 1)), whole_lines(4 * most)
    scratch = aligned_bytes(threads * (heap + SIDES * pitch))
    words = np.array([
        *map(address, (sides, values, places, kept)), rows, classes, count, most,
        score is None, _bits(score or 0.0), _bits(overlap),
        address(scratch), heap + SIDES * pitch, heap, pitch,
    ], np.int64)  # fmt: skip
    width = ALL_THREADS if values.size > SMALL_WORK else 1
    Executor([Step(kernel, address(words), width)], threads).run()
    is_found = np.arange(kept.max(initial=0)) < kept[:, None]
    found = places[:, : is_found.shape[1]][is_found]
    return np.stack([*np.divmod(np.repeat(np.arange(rows), kept), classes), found], axis=1)


def _bits(number: float) -> int:
    with np.errstate(all="ignore"):
        return int(np.float32(number).view(np.int32))
