"""What the words of a contraction's operands are, chosen by their dtypes and values.

f32 and f64 are multiplied as they are, f16 and bf16 as f32. Integers that come from 8 bits are
multiplied in pairs of i16, or, where the CPU has instructions for it and the weights are constants
that fit i8, as four u8 and i8 each. Then rows are read as they lie in memory, their zero point
included; what that adds too much is known from the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from satura.backend.contraction.narrow import Narrow, known_integers, narrow_operand
from satura.backend.contraction.packing import pack_panels, pack_products
from satura.backend.contraction.sorted_words import is_sorted_faster, sorted_panels, stack_panels
from satura.backend.contraction.tile import Products
from satura.backend.contraction.views import View, view_of
from satura.backend.lower.body import Pointer
from satura.backend.matrices import WEIGHTS
from satura.backend.target import host_target
from satura.rewrite.extract.schedule import Dispatch, Schedule
from satura.rewrite.program.program import Node
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.constant import Constant
from satura.rewrite.types.dims import TracedSize
from satura.rewrite.types.tensor_type import Array, DType

_WORD = 8  # bytes of an i64
_SIGN = 128  # added to an i8 it gives a u8


@dataclass(frozen=True)
class Reading:
    """How both operands are read.

    `weights` are all elements of a constant right operand. Row values are read with `shift`
    added; padding reads as `fill`.
    """

    left: View
    right: View
    left_dtype: DType
    right_dtype: DType
    result: DType
    weights: Constant | Array | None
    products: Products = Products.F32
    left_packed: bool = False
    fill: float = 0.0
    left_zero: int = 0
    right_zero: int = 0
    shift: int = 0
    source: str = ""

    @property
    def right_packed(self) -> bool:
        """Whether the kernel makes panels of the right operand, or of its panels."""
        return self.weights is None or self.products is Products.PARTS

    @property
    def has_parts(self) -> bool:
        """Whether products of f32 with weights may be those of their parts, see `parts.py`."""
        weights = self.weights
        if self.fill != 0 or self.left_dtype is not DType.F32 or not isinstance(weights, Constant):
            return False
        least, most = WEIGHTS
        seen = self.right.elements(weights.array)
        outer = tuple(range(seen.ndim - 1))
        largest = np.maximum(seen.max(outer), -seen.min(outer))
        return bool(np.all((largest == 0) | ((least <= largest) & (largest <= most))))

    @property
    def key(self) -> str:
        """What packed weights depend on."""
        return f"{self.products.value} {self.shift} {self.source}"

    def packed(self, stacks: Array, groups: int, width: int, taps: int, words: int) -> Array:
        """Stacks of constant weights [taps · depth, columns] as [stacks, groups, panels, …]; of
        integers there are so many words, see `pack_products`."""
        if self.products is Products.OCTETS:
            integers = stacks.astype(np.int64, copy=False)
            sorts = (sorted_panels(each, groups, width, taps, self.shift) for each in integers)
            together = stack_panels([panel for panels in sorts for panel in panels])
            return together.reshape(len(stacks), groups, -1, *together.shape[1:])
        packed = [self._packed(each, groups, width, words) for each in stacks]
        return packed[0][None] if len(packed) == 1 else np.stack(packed)

    def _packed(self, weights: Array, groups: int, width: int, words: int) -> Array:
        if not self.products.word.is_integer:
            floats = weights.astype(self.products.word.numpy, copy=False)
            return pack_panels(floats, groups, width)
        integers = weights.astype(np.int64, copy=False)
        return pack_products(integers, groups, width, self.products, self.shift, words)


def reading_of(schedule: Schedule, dispatch: Dispatch, node: Node) -> Reading | None:
    """How a contraction's operands are read; None where no microkernel takes them."""
    if node.type.dtype.is_float:
        return _floats(schedule, dispatch, node)
    if node.type.dtype in (DType.I32, DType.I64):
        return _integers(schedule, dispatch, node)
    return None


def _floats(schedule: Schedule, dispatch: Dispatch, node: Node) -> Reading | None:
    nodes = schedule.program.nodes
    left = view_of(schedule, dispatch, node.operands[0])
    right = view_of(schedule, dispatch, node.operands[1])
    if left is None or right is None:
        return None
    known = nodes[right.node].op.name == "constant" and _is_in_place(right)
    dtype = node.type.dtype
    products = Products.F64 if dtype is DType.F64 else Products.F32
    return Reading(
        left, right, dtype, dtype, products.word, nodes[right.node].constant if known else None,
        products, left_packed=dtype is not products.word, fill=_fill(node),
    )  # fmt: skip


def _is_in_place(view: View) -> bool:
    """Whether a view is of the same elements at all sizes; along an axis without a stride there may
    be any number."""
    moving = [extent for extent, stride in zip(view.shape, view.strides, strict=True) if stride]
    return not any(isinstance(each, TracedSize) for each in (view.pointer.offset, *moving))


def _fill(node: Node) -> float:
    window = node.attributes[0] if node.attributes else None
    return float(window.fill.value) if isinstance(window, Window) else 0.0


def _integers(schedule: Schedule, dispatch: Dispatch, node: Node) -> Reading | None:
    """The reading of integers from 8 bits, if sums of this depth fit the result."""
    left = narrow_operand(schedule, dispatch, node.operands[0])
    known = known_integers(schedule, dispatch, node.operands[1])
    right = narrow_operand(schedule, dispatch, node.operands[1])
    if left is None or (known is None and right is None):
        return None
    if known is not None:
        view, weights = known
        source = f" {view.pointer.offset} {view.strides}"
        strides = tuple(stride // _WORD for stride in weights.strides)
        view = View(view.node, Pointer(view.pointer.region), view.shape, strides, 1)
        bounds = int(weights.min()), int(weights.max())
    else:
        assert right is not None
        view, weights, bounds, source = right.view, None, right.bounds, ""
    fill = int(_fill(node))
    outside = max(abs(fill), *map(abs, left.bounds))
    terms = prod(view.shape[:-1]) if node.op.name == "conv" else view.shape[-2]
    largest = terms * outside * max(map(abs, bounds))
    if max(outside, *map(abs, bounds)) >= 2**15 or max(map(abs, left.bounds)) >= 2**15:
        return None
    if node.type.dtype is DType.I64 and largest >= 2**31:
        return None
    right_dtype = right.dtype if right is not None else left.dtype
    pairs = Reading(
        left.view, view, left.dtype, right_dtype, node.type.dtype, weights, Products.PAIRS, True,
        fill, left.zero, 0 if right is None or known is not None else right.zero, 0, source,
    )  # fmt: skip
    if weights is None or bounds[0] < -128 or bounds[1] > 127:
        return pairs
    return _quads(left, fill, pairs) or pairs


def _quads(left: Narrow, fill: int, pairs: Reading) -> Reading | None:
    """The reading as four u8 and i8, where the CPU has it and the fill is a u8 then."""
    target, weights = host_target(), pairs.weights
    assert isinstance(weights, np.ndarray)
    sorts = target.adds_octets and is_sorted_faster(weights, 2 * target.lanes)
    if not target.sums_four_products and not sorts:
        return None
    sign = _SIGN if left.dtype is DType.I8 else 0
    shift = left.zero + sign
    if not 0 <= fill + shift <= 255:
        return None
    return Reading(
        left.view, pairs.right, left.dtype, pairs.right_dtype, pairs.result, pairs.weights,
        Products.QUADS if target.sums_four_products else Products.OCTETS, bool(sign),
        fill + shift, -sign, 0, shift, pairs.source,
    )  # fmt: skip
