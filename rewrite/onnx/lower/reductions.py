"""Lowerings of reductions."""

from __future__ import annotations

from satura.rewrite.onnx.lower.context import Context, NoLowering, lowering
from satura.rewrite.onnx.lower.tensors import Tensors
from satura.rewrite.types.attributes import Window
from satura.rewrite.types.dims import static
from satura.rewrite.types.tensor_type import DType

_AXES_INPUT_SINCE = {"ReduceSum": 13}
_SCAN_BLOCK = 16


def _axes(node: Context) -> tuple[int, ...]:
    """The axes to reduce; empty where the node asks for none."""
    rank = node.build.rank(node[0])
    if node.opset < _AXES_INPUT_SINCE.get(node.proto.op_type, 18):
        given = node.integers("axes")
    else:
        given = None if node.optional(1) is None else node.fixed(1)
    if not given:
        return () if node.integer("noop_with_empty_axes") else tuple(range(rank))
    return node.axes(given, rank)


@lowering(
    "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
def reduce(node: Context) -> int:
    """The reduction by its definition, then the axes dropped unless keepdims."""
    axes = _axes(node)
    kind = node.proto.op_type.removeprefix("Reduce")
    result = _reduce(node.build, kind, node[0], axes)
    return result if node.integer("keepdims", 1) else node.build.drop(result, axes)


def _reduce(build: Tensors, kind: str, x: int, axes: tuple[int, ...]) -> int:
    if kind in ("Sum", "Prod", "Max", "Min"):
        return build.reduce(kind.lower(), x, axes)
    if kind == "Mean":
        return build.mean(x, axes)
    if kind == "L1":
        return build.reduce("sum", build.unary("abs", x), axes)
    if kind == "SumSquare":
        return build.reduce("sum", build.binary("mul", x, x), axes)
    dtype = build.dtype(x)
    wide = x if dtype.is_float else build.cast(x, DType.F64)
    if kind == "L2":
        total = build.reduce("sum", build.binary("mul", wide, wide), axes)
        result = build.unary("sqrt", total)
    elif kind == "LogSum":
        result = build.unary("log", build.reduce("sum", wide, axes))
    else:
        result = log_sum_exp(build, wide, axes)
    return result if dtype.is_float else build.cast(result, dtype)


def log_sum_exp(build: Tensors, x: int, axes: tuple[int, ...]) -> int:
    """log(sum(exp(x - m))) + m with m the largest element, or 0 where that is infinite."""
    largest = build.reduce("max", x, axes)
    shift = build.select(build.unary("isinf", largest), build.number(0, largest), largest)
    moved = build.binary("sub", x, build.expand(shift, build.shape(x)))
    total = build.reduce("sum", build.unary("exp", moved), axes)
    return build.binary("add", build.unary("log", total), shift)


@lowering("ArgMax", "ArgMin")
def arg_reduce(node: Context) -> int:
    """Where the largest or smallest element of an axis stands."""
    build, x = node.build, node[0]
    axis = node.axis(node.integer("axis"), build.rank(x))
    f = "max" if node.proto.op_type == "ArgMax" else "min"
    result = build.arg_reduce(f, x, axis, bool(node.integer("select_last_index")))
    return result if node.integer("keepdims", 1) else build.drop(result, [axis])


@lowering("Hardmax")
def hard_max(node: Context) -> int:
    """1 at the first largest element of an axis, 0 elsewhere."""
    build, x = node.build, node[0]
    if node.opset < 13:
        raise NoLowering
    shape = build.shape(x)
    axis = node.axis(node.integer("axis", -1), len(shape))
    where = build.expand(build.arg_reduce("max", x, axis), shape)
    return build.cast(build.binary("eq", where, build.iota(shape, axis, DType.I64)), build.dtype(x))


@lowering("CumSum")
def running_sum(node: Context) -> int:
    """Sums over all elements up to each (from each on where reversed), itself left out or not."""
    build, x = node.build, node[0]
    known = node.values.of(node[1])
    if known is None:
        raise NoLowering
    axis = node.axis(int(known.reshape(-1)[0]), build.rank(x))
    extent = build.shape(x)[axis]
    if not isinstance(extent, int) or extent < 1:
        raise NoLowering
    backward = bool(node.integer("reverse"))
    if node.integer("exclusive"):
        x = _shifted(build, x, axis, backward)
    return _running_sums(build, x, axis, backward)


def _running_sums(build: Tensors, x: int, axis: int, backward: bool) -> int:
    """Sums within blocks, and to each block the sum of those before it: few steps per element."""
    shape = build.shape(x)
    extent = static(shape[axis])
    if extent <= _SCAN_BLOCK:
        return _window_sums(build, x, axis, backward)
    count = -(-extent // _SCAN_BLOCK)
    missing = [count * _SCAN_BLOCK - extent if i == axis else 0 for i in range(len(shape))]
    zero = build.constant(0, build.dtype(x))
    x = build.padded(x, zero, [0] * len(shape), missing)
    blocks = [*shape[:axis], count, _SCAN_BLOCK, *shape[axis + 1 :]]
    sums = _window_sums(build, build.reshape(x, blocks), axis + 1, backward)
    last = 0 if backward else _SCAN_BLOCK - 1
    totals = build.one_axis_slice(sums, axis + 1, last, 1)
    before = _running_sums(build, _shifted(build, totals, axis, backward), axis, backward)
    sums = build.binary("add", sums, build.expand(before, blocks))
    return build.one_axis_slice(build.reshape(sums, build.shape(x)), axis, 0, extent)


def _shifted(build: Tensors, x: int, axis: int, backward: bool) -> int:
    """x moved on by one element along an axis, with 0 in front (at the end if `backward`)."""
    extent = static(build.shape(x)[axis])
    x = build.one_axis_slice(x, axis, 1 if backward else 0, extent - 1)
    one = [1 if i == axis else 0 for i in range(build.rank(x))]
    none = [0] * build.rank(x)
    zero = build.constant(0, build.dtype(x))
    return build.padded(x, zero, none if backward else one, one if backward else none)


def _window_sums(build: Tensors, x: int, axis: int, backward: bool) -> int:
    """A window that reaches back over the whole axis (forward if `backward`)."""
    shape = build.shape(x)
    extent = static(shape[axis])
    reach = [extent - 1 if i == axis else 0 for i in range(len(shape))]
    none = [0] * len(shape)
    window: Window = build.window(
        build.dtype(x),
        [extent if i == axis else 1 for i in range(len(shape))],
        lo=none if backward else reach,
        hi=reach if backward else none,
    )
    return build.pool("sum", x, window)
