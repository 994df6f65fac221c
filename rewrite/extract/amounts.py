"""Amounts: what the ops of a fragment do, by the names of `features.py`.

Sizes are the typical ones of the classes. A contraction is counted as the register tiles compute
it: columns in whole vectors, and tiles of few rows at the rate that loads or latency leave them.
"""

from __future__ import annotations

from math import ceil, inf, log, log2, prod

from satura.rewrite.egraph.classes import EClasses, ENode
from satura.rewrite.extract.features import Amount, rate
from satura.rewrite.extract.parted import pays_in_parts
from satura.rewrite.extract.shares import NOTHING, CutAmount
from satura.rewrite.ops import REGISTRY
from satura.rewrite.ops.attention import CHEAP, REDUCED, exp_flops, scores_type
from satura.rewrite.ops.cells import Cell
from satura.rewrite.ops.formula import scalar_function
from satura.rewrite.ops.recurrence import cell_flops
from satura.rewrite.ops.registry import size_of
from satura.rewrite.ops.winograd import (
    TILE,
    WEIGHT_OPERATIONS,
    tile_count,
    transformed_elements,
)  # fmt: skip
from satura.rewrite.types.attributes import (
    Attribute,
    Axis,
    BinaryFn,
    Count,
    Groups,
    Padding,
    ReduceFn,
    Slices,
    UnaryFn,
    Window,
)  # fmt: skip
from satura.rewrite.types.dims import Dim, static
from satura.rewrite.types.tensor_type import DType, TensorType


def cut_work(classes: EClasses, node: ENode, cls: int) -> Amount:
    """Where a pad or concat cuts the loops of its result, which of no elements has none."""
    if not classes.elements[cls]:
        return NOTHING
    shape = _shape(classes.sized[cls])
    pieces = pieces_of_axes(classes, node)
    cut = [axis for axis, some in enumerate(pieces) if len(some) > 1]
    runs = float(sum(len(pieces[axis]) * prod(shape[:axis]) for axis in cut))
    is_within = len(shape) - 1 in cut
    if is_within:  # what is one element long takes no loop
        runs -= (1 - _ELEMENT) * pieces[-1].count(1) * prod(shape[:-1])
    return CutAmount(runs, classes.elements[cls] if is_within else 0.0)


def pieces_of_axes(classes: EClasses, node: ENode) -> list[list[Dim]]:
    """The lengths of the pieces that a pad or concat makes each axis of its result of."""
    first, *_ = node.attributes
    shapes = [_shape(classes.sized[operand]) for operand in node.operands]
    if isinstance(first, Axis):
        return [
            [shape[axis] for shape in shapes] if axis == first.index else [length]
            for axis, length in enumerate(shapes[0])
        ]
    assert isinstance(first, Padding)
    ends = zip(first.lo, shapes[0], first.hi, strict=True)
    return [[length, *(end for end in (lo, hi) if end != 0)] for lo, length, hi in ends]


def gathered_run(classes: EClasses, node: ENode) -> int:
    """How many elements side by side a gather takes at each index."""
    (axis,) = node.attributes
    assert isinstance(axis, Axis)
    return prod(_shape(classes.sized[node.operands[0]])[axis.index + 1 :])


def gathered_work(classes: EClasses, node: ENode, cls: int) -> Amount:
    """What is read where data says."""
    if gathered_run(classes, node) < _RUN:
        return "picked", classes.elements[cls]
    return "gathered", classes.bytes[cls]


def sliced_work(classes: EClasses, node: ENode, cls: int) -> Amount:
    """What a slice costs where it sees elements at a distance, or in reverse."""
    (slices,) = node.attributes
    assert isinstance(slices, Slices)
    moving = [axis for axis, size in enumerate(_shape(classes.sized[cls])) if size != 1]
    is_apart = bool(moving) and slices.steps[moving[-1]] != 1
    return ("picked", classes.elements[cls]) if is_apart else NOTHING


_DEAR = 4.0  # weights above are polynomials
_WIDENED = (DType.F16, DType.BF16)
_TILED = (DType.F32, DType.F64, *_WIDENED)
_ROWS_OF_A_PANEL = 480  # for so many rows it is packed once
_MATRIX = 32  # rows, and columns, of products in parts that are summed at a time
_KEPT_WEIGHTS = 640 * 1024  # bytes whose parts stay near
_TILES_OF_A_BLOCK = 96  # of a winograd, for which weights are transformed once
_QUERIES_OF_A_BLOCK = 8  # at least, where there are enough threads
_POOLED = 4  # neighbouring results of a pool that are computed at a time
_COMPARED = 3.0  # instructions of a maximum, which keeps NaN
_ORDERED = 4.0  # those of one of two tensors, which orders zeros by their signs, too
_EXTREMES = (BinaryFn("max"),), (BinaryFn("min"),)
_SHORT = 8  # an inner loop of fewer results is one over what is reduced
_COLUMNS, _STEPS = 512, 8  # of a block of results side by side, and added to it at a time
_LINE = 16  # results, of which threads share no fewer
_ELEMENT = 0.25  # of a run's time is that of a single element, which is no loop
_RUN = 8  # elements: shorter runs are read one by one
_OCTETS_OF_A_WORD = 4
_SUNK = 4.0  # comparisons that a level of a heap takes as long as
_IN_FLIGHT = 8.0  # multiply-adds that hide their latency
_WIDE_LANES = 16  # vectors of so many f32 come with twice the registers
_TALLEST = {True: {1: 10, 2: 12, 3: 8, 4: 6}, False: {1: 8, 2: 6}}

Work = tuple[tuple[Amount, ...], float]
"""What an anchor does, and how many parts of it threads can share."""


def elementwise_work(classes: EClasses, node: ENode, cls: int) -> Amount:
    """What one elementwise op computes for all elements of its class; found out once."""
    key = cls, node.op, node.operands, node.attributes
    found = classes.amounts.get(key)
    if found is None:
        result = classes.sized[cls]
        flops = _flops(classes, node, result)
        weight = flops / max(1.0, classes.elements[cls])
        dtype = classes.types[node.operands[0]].dtype if node.operands else result.dtype
        if node.attributes in _EXTREMES and dtype.is_float and not _is_of_known(classes, node):
            flops *= _ORDERED
        elif dtype.compute is DType.F32:
            flops *= _slowness(node)
        found = classes.amounts[key] = rate("dear" if weight > _DEAR else "cheap", dtype), flops
    return found


def _slowness(node: ENode) -> float:
    """How much longer the function of an elementwise op takes in f32 than its flops."""
    function = node.attributes[0] if node.attributes else None
    if isinstance(function, UnaryFn | BinaryFn):
        return scalar_function(function.name).slowness
    return 1.0


def _is_of_known(classes: EClasses, node: ENode) -> bool:
    """Whether an operand is a constant."""
    return any(map(classes.known.__getitem__, node.operands))


def reduction_work(classes: EClasses, node: ENode) -> Amount:
    """What one reduction along whole axes computes."""
    source = classes.sized[node.operands[0]]
    weight = _weight(node.attributes[0])
    return rate("reduction", source.dtype), weight * classes.elements[node.operands[0]]


def _weight(function: Attribute) -> float:
    """Instructions that combine two elements."""
    return 1.0 if function == ReduceFn("sum") else _COMPARED


def row_work(classes: EClasses, node: ENode, axes: tuple[int, ...]) -> Work:
    """The cost of the rows of a reduction, without that of their elements.

    Where the last axis is kept, a row is a block of results side by side, to which so many steps at
    a time are added.
    """
    shape = _shape(classes.sized[node.operands[0]])
    results = float(prod(size for axis, size in enumerate(shape) if axis not in axes))
    last = max((axis for axis in axes if shape[axis] != 1), default=-1)
    side = prod(shape[last + 1 :]) if results else 1
    if side < _SHORT:
        return (("row", results),), results
    groups = results / side
    passes = 1 + prod(shape[axis] for axis in axes) / _STEPS
    rows = groups * ceil(side / _COLUMNS) * passes
    return (("row", rows),), groups * ceil(side / _LINE)


def pool_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What a pool computes: a window over a strided innermost axis does not vectorise."""
    function, window = node.attributes
    assert isinstance(window, Window)
    result = classes.sized[cls]
    units = float(prod(_shape(result)[:-2]))
    if window.rank and window.strides[-1] != 1:
        return ((rate("hop", result.dtype), _flops(classes, node, result)),), units
    steps = _pool_steps(window, _weight(function))
    return ((rate("pool", result.dtype), steps * classes.elements[cls]),), units


def _pool_steps(window: Window, weight: float) -> float:
    """Instructions for one result: what it loads, and what it combines, which takes `weight`.

    Results that are neighbours along one axis share what both see.
    """
    taps, least = prod(window.sizes), (inf, inf)
    for size, stride in zip(window.sizes, window.strides, strict=True):
        seen = (size + (_POOLED - 1) * min(stride, size)) / _POOLED
        others = taps / size
        least = min(least, (seen * others, seen * (others - 1) + size - 1))
    loaded, combined = least if window.rank else (1.0, 0.0)
    return loaded + weight * combined


def contraction_work(
    classes: EClasses, node: ENode, cls: int, lanes: int, in_parts: bool = False
) -> Work:
    """What a matmul or convolution computes in vectors of `lanes` f32, or in parts of these."""
    left, right = (classes.sized[operand] for operand in node.operands)
    result = classes.sized[cls]
    dtype, shape, taps, groups = result.dtype, _shape(result), 1, 1
    if node.op == "conv":
        window, grouped = node.attributes
        assert isinstance(window, Window) and isinstance(grouped, Groups)
        taps, groups = prod(window.sizes), grouped.count
        depth, batches, rows = static(right.shape[-2]), groups, prod(shape[:-1])
        pieces = depth, taps
        if groups == 1 and window.dilations[-1:] == (1,):  # neighbours lie side by side: one visit
            depth, taps = depth * window.sizes[-1], taps // window.sizes[-1]
    else:
        depth, batches, rows = static(left.shape[-1]), prod(shape[:-2]), shape[-2]
        pieces = depth, 1
    columns = shape[-1] // groups
    splits = in_parts and dtype is DType.F32 and classes.known[node.operands[1]]
    if splits and pays_in_parts(rows, columns, *pieces):
        split = classes.bytes[node.operands[0]]
        return _parted_work(batches, rows, columns, depth * taps, split)
    if node.op == "conv" and groups > 1 and depth == 1:
        return ((rate("depthwise", dtype), _flops(classes, node, result)),), float(rows)
    if dtype not in _TILED:
        return ((rate("product", dtype), _flops(classes, node, result)),), float(batches * rows)
    packed = sum(
        classes.bytes[operand] for operand in node.operands[1:] if not classes.known[operand]
    )
    if dtype in _WIDENED:
        packed += classes.bytes[node.operands[0]]
    amounts, tiles = tile_amounts(dtype, batches, rows, columns, depth, taps, lanes)
    return (*amounts, *((("packed", packed),) if packed else ())), tiles


def _parted_work(batches: int, rows: int, columns: int, depth: int, left: float) -> Work:
    """What products in parts compute, and what is split: the rows once, and the weights for each
    block of rows, where all of them do not stay near."""
    tiles = float(batches * ceil(rows / _MATRIX) * ceil(columns / _MATRIX))
    weights = DType.F32.itemsize * float(depth * columns)
    is_kept = weights <= _KEPT_WEIGHTS
    times = 1 if is_kept else batches * ceil(rows / _ROWS_OF_A_PANEL)
    flops = 2.0 * _MATRIX**2 * tiles * depth
    amounts = (("parted", flops), (rate("tile", DType.F32), tiles))
    return (*amounts, ("packed", left + times * weights)), tiles


def crossed_work(classes: EClasses, node: ENode, cls: int, lanes: int, threads: int = 1) -> Work:
    """What a convolution of single pixels computes with weights as rows and pixels as columns.

    Its input is packed for each block of rows, and where panels are fewer than the `threads` that
    share them by each of these.
    """
    batch, *pixels, rows = _shape(classes.sized[cls])
    depth, dtype = _shape(classes.sized[node.operands[0]])[-1], classes.types[cls].dtype
    amounts, tiles = tile_amounts(dtype, batch, rows, prod(pixels), depth, 1, lanes)
    panels = batch * ceil(prod(pixels) / _columns_of_a_panel(dtype, lanes))
    times = max(ceil(rows / _ROWS_OF_A_PANEL), ceil(threads / panels) if panels else 1)
    return (*amounts, ("packed", times * classes.bytes[node.operands[0]])), tiles


def planar_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What a convolution of one channel per group computes along the contiguous axis."""
    window = next(each for each in node.attributes if isinstance(each, Window))
    source, result = (_shape(classes.sized[each]) for each in (node.operands[0], cls))
    dtype = classes.types[cls].dtype
    lanes //= max(1, dtype.itemsize // DType.F32.itemsize)
    lines = float(prod(result) // max(1, result[-2]))
    flops = 2.0 * lines * ceil(result[-2] / lanes) * lanes * prod(window.sizes)
    rows = float(prod(source) // max(1, source[-2]))
    return ((rate("planar", dtype), flops), ("row", rows)), float(result[0] * result[-1])


def octet_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What a contraction of integers from 8 bits computes, in words of four."""
    shape, right = _shape(classes.sized[cls]), classes.sized[node.operands[1]]
    taps = prod(prod(each.sizes) for each in node.attributes if isinstance(each, Window))
    groups = prod(each.count for each in node.attributes if isinstance(each, Groups))
    depth = ceil(taps * static(right.shape[-2]) / _OCTETS_OF_A_WORD) * _OCTETS_OF_A_WORD
    columns = shape[-1] // groups
    ((_, flops), visits), tiles = tile_amounts(
        DType.I32, groups, prod(shape[:-1]), columns, depth, 1, lanes
    )
    return (("octets", flops), visits), tiles


def pair_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What one computes whose weights need more than 8 bits: products in pairs, not in fours."""
    ((_, flops), *others), tiles = octet_work(classes, node, cls, lanes)
    return (("paired", flops), *others), tiles


def winograd_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What a winograd computes: the products of its tiles, and the transforms around them, that of
    the weights for each block of tiles."""
    result, (x, w) = classes.sized[cls], (classes.sized[operand] for operand in node.operands)
    rows, (depth, columns) = tile_count(result), _shape(w)[-2:]
    amounts, tiles = tile_amounts(DType.F32, TILE**2, rows, columns, depth, 1, lanes)
    blocks = ceil(rows / _TILES_OF_A_BLOCK)
    weights = (rate("cheap", DType.F32), WEIGHT_OPERATIONS * float(blocks * depth * columns))
    transforms = (("transformed", transformed_elements(result, x)), weights)
    return (*amounts, *transforms), tiles / TILE**2


def attention_work(classes: EClasses, node: ENode, cls: int, lanes: int) -> Work:
    """What an attention computes: both products, exp of the scores, and what is packed."""
    q, k, _, v = (classes.sized[operand] for operand in node.operands)
    *batch, rows, depth = _shape(q)
    keys, columns = _shape(v)[-2:]
    (scores, tiles), _ = tile_amounts(q.dtype, prod(batch), rows, keys, depth, 1, lanes)
    (sums, others), _ = tile_amounts(q.dtype, prod(batch), rows, columns, keys, 1, lanes)
    of_scores = scores_type(q, k)
    packed = sum(classes.bytes[node.operands[at]] for at in (0, 1, 1, 3))  # keys across, too
    amounts = (
        scores, tiles, sums, others, ("packed", packed), ("row", float(prod(batch) * rows)),
        (rate("dear", q.dtype), exp_flops(of_scores)),
        (rate("cheap", q.dtype), CHEAP * size_of(of_scores)),
        (rate("reduction", q.dtype), REDUCED * size_of(of_scores)),
    )  # fmt: skip
    return amounts, float(prod(batch) * ceil(rows / _QUERIES_OF_A_BLOCK))


def lonely_work(classes: EClasses, node: ENode, lanes: int) -> Work:
    """What an op with a kernel of its own computes."""
    if node.op == "recurrence":
        return _recurrence_work(classes, node, lanes)
    if node.op == "first_places":
        return _places_work(classes, node)
    rows, *_ = _shape(classes.sized[node.operands[0]])
    added = float(prod(_shape(classes.sized[node.operands[1]])))
    hops = rate("hop", DType.F32), _operand_elements(classes, node)
    return (hops, ("row", added)), float(rows)


def _places_work(classes: EClasses, node: ENode) -> Work:
    """What the first elements of rows take: a comparison of each element, and of random ones so
    many go through the heap. `first_places.py` of the backend has the kernel."""
    count, _ = node.attributes
    assert isinstance(count, Count)
    rows, extent = _shape(classes.sized[node.operands[0]])
    kept = max(1, count.value)
    sunk = kept * (2 + log(max(kept, extent) / kept))  # put in, replaced, and taken out
    steps = extent + _SUNK * sunk * log2(kept + 1)
    return (("ordered", rows * steps),), float(rows)


def _operand_elements(classes: EClasses, node: ENode) -> float:
    """How many elements the operands have."""
    return sum(classes.elements[operand] for operand in node.operands)


def _recurrence_work(classes: EClasses, node: ENode, lanes: int) -> Work:
    """Products of the state with the weights, and the gates."""
    x, weights, _, parameters, _ = (classes.sized[operand] for operand in node.operands)
    (cell,) = node.attributes
    assert isinstance(cell, Cell)
    (steps, batch, _), (sides, depth, columns) = _shape(x), _shape(weights)
    amounts, _ = tile_amounts(x.dtype, steps * sides, batch, columns, depth, 1, lanes)
    flops = size_of(x) / cell.gates * cell_flops(cell, _shape(parameters)[1])
    return (*amounts, (rate("dear", x.dtype), flops)), float(sides * batch)


def tile_amounts(
    dtype: DType, batches: int, rows: int, columns: int, depth: int, taps: int, lanes: int
) -> tuple[tuple[Amount, Amount], float]:
    """What register tiles compute for so many `rows` by `columns`, and how many tiles there are."""
    wide = lanes >= _WIDE_LANES
    most = _columns_of_a_panel(dtype, lanes)
    lanes //= max(1, dtype.itemsize // DType.F32.itemsize)
    vectors = ceil(columns / lanes)
    width = max(1, min(most // lanes, vectors))
    height = max(1, min(rows, _TALLEST[wide][width]))
    tiles = float(batches * ceil(rows / height) * ceil(vectors / width))
    block = height * width
    slowed = max(1.0, (height + width) / block, _IN_FLIGHT / block)
    flops = 2.0 * batches * rows * vectors * lanes * depth * taps * slowed
    return ((rate("contraction", dtype), flops), (rate("tile", dtype), tiles * taps)), tiles


def _columns_of_a_panel(dtype: DType, lanes: int) -> int:
    """How many columns a panel of weights has at most."""
    vectors = 4 if lanes >= _WIDE_LANES else 2
    return vectors * (lanes // max(1, dtype.itemsize // DType.F32.itemsize))


def _flops(classes: EClasses, node: ENode, result: TensorType) -> float:
    operands = tuple(map(classes.sized.__getitem__, node.operands))
    return REGISTRY[node.op].flops(operands, node.attributes, result)


def _shape(type_: TensorType) -> tuple[int, ...]:
    shape: tuple[Dim, ...] = type_.shape
    return tuple(map(static, shape))
