"""What an anchor can read in place: operands whose elements lie evenly in what is stored."""

from __future__ import annotations

from math import prod

from satura.rewrite.egraph.classes import EClasses
from satura.rewrite.extract.forms import Fused
from satura.rewrite.extract.octets import Part, octets, varying_operand
from satura.rewrite.ops import REGISTRY, Kind
from satura.rewrite.types.attributes import Groups, Window
from satura.rewrite.types.dims import Dim
from satura.rewrite.types.index_map import (
    coefficient,
    is_affine,
    offset,
    pull,
    row_major,
    variable_name,
    variables,
)
from satura.rewrite.types.tensor_type import DType

MOST_TAPS = 16  # of a planar window along one axis, and
MOST_OF_ALL = 121  # along all, as kernels of them are made for
_WORDS = (DType.F32, DType.F64)


def is_readable(classes: EClasses, base: Part, position: int, part: Part) -> bool:
    """Can the anchor read its operand through this view? Offsets must be affine, and a conv needs
    the channels of its input side by side, or be planar or crossed, and its weights as a tensor of
    their own."""
    operand = base.node.operands[position]
    shape = classes.types[operand].shape
    at, _ = _view_offset(classes, operand, part)
    if not is_affine(at):
        return False
    if base.node.op not in ("conv", "winograd"):
        return True
    if position == 1:  # known integers are packed from wherever they stand
        return octets(classes, operand, part) and all(classes.known[leaf] for leaf in part.reads)
    last = variable_name(len(shape) - 1)
    if shape[-1] == 1 or coefficient(at, last) == 1:
        return True
    return is_planar(classes, base, part) or is_crossed(classes, base, part)


def is_planar(classes: EClasses, base: Part, view: Part | None) -> bool:
    """Whether a convolution of one channel per group moves its window along the axis whose elements
    lie side by side in what it reads: as that of channels-first tensors."""
    if base.node.op != "conv" or view is None:
        return False
    operand = base.node.operands[0]
    window, groups = base.node.attributes
    assert isinstance(window, Window) and isinstance(groups, Groups)
    shape, result = classes.types[operand].shape, classes.types[base.cls]
    if not (result.dtype.is_float and shape[-1] == result.shape[-1] == groups.count > 1):
        return False
    plain = window.sizes[-1] == 1 or any(size != 1 for size in window.sizes[:-2])
    if plain or max(window.sizes) > MOST_TAPS or prod(window.sizes) > MOST_OF_ALL:
        return False
    at, _ = _view_offset(classes, operand, view)
    return is_affine(at) and coefficient(at, variable_name(len(shape) - 2)) == 1


def is_gathered(classes: EClasses, operand: int, view: Part | None) -> bool:
    """Whether elements that data chooses are found in what is stored without a division, or are
    those of a ramp."""
    if view is not None and view.form is not Fused.VIEW:
        return view.node.op == "iota"
    return view is None or is_affine(_view_offset(classes, operand, view)[0])


def is_crossed(classes: EClasses, base: Part, view: Part | None) -> bool:
    """Whether a convolution that sees one pixel at a time reads pixels that lie side by side: then
    weights are the rows of a product, and pixels its columns."""
    if base.node.op != "conv" or view is None:
        return False
    operand, weights = base.node.operands
    window, groups = base.node.attributes
    assert isinstance(window, Window) and isinstance(groups, Groups)
    shape, result = classes.types[operand].shape, classes.types[base.cls]
    if result.dtype not in _WORDS or not classes.known[weights] or groups.count > 1:
        return False
    if any(n != 1 for n in (*window.sizes, *window.strides)) or any((*window.lo, *window.hi)):
        return False
    at, _ = _view_offset(classes, operand, view)
    return shape[-2] != 1 and is_affine(at) and coefficient(at, variable_name(len(shape) - 2)) == 1


def _view_offset(classes: EClasses, cls: int, view: Part | None) -> tuple[Dim, dict[str, Dim]]:
    """Offset, in elements of its contiguous leaf, of an element of `cls`; and the ranges."""
    index, ranges = variables(classes.types[cls].shape)
    while view is not None:
        if REGISTRY[view.node.op].kind is Kind.ELEMENTWISE:
            at = varying_operand(classes, view)
            assert at is not None
            cls, view = view.node.operands[at], view.parts[at]
            continue
        source_class = view.node.operands[0]
        source = classes.types[source_class].shape
        shape = classes.types[view.cls].shape
        index = pull(view.node.op, view.node.attributes, index, shape, source, ranges)
        cls, view = source_class, view.parts[0]
    return offset(index, row_major(classes.types[cls].shape)), ranges
