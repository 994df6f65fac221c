"""Lowerings of normalisations, as their definitions."""

from __future__ import annotations

from collections.abc import Sequence

from satura.rewrite.onnx.lower.arithmetic import Value
from satura.rewrite.onnx.lower.broadcasting import fits
from satura.rewrite.onnx.lower.context import Context, NoLowering, computed_wide, lowering
from satura.rewrite.onnx.lower.reductions import with_axis
from satura.rewrite.onnx.types import dtype_of
from satura.rewrite.types.tensor_type import DType


@lowering("Softmax", "LogSoftmax")
@computed_wide
def softmax(node: Context) -> int:
    """exp(x - m) / sum(exp(x - m)), m the largest element; the log form is x - m - log(sum)."""
    build = node.build
    flat, axis = with_axis(node)
    x = Value(build, flat)
    moved = x - x.reduce("max", [axis])
    grown = moved.unary("exp")
    total = grown.reduce("sum", [axis])
    is_log = node.proto.op_type == "LogSoftmax"
    result = (moved - total.unary("log") if is_log else grown / total).index
    return result if flat == node[0] else build.reshape(result, build.shape(node[0]))


@lowering("BatchNormalization")
@computed_wide
def batch_norm(node: Context) -> list[int]:
    """x·a + b with a = scale / √(var + ε) and b = bias - mean·a, both per channel."""
    if node.integer("training_mode"):
        return _trained_batch_norm(node)
    if len([w for w in node.wanted if w]) > 1:
        raise NoLowering
    x = node.tensor(0)
    dtype = node.build.dtype(node[3])
    scale, bias, mean, variance = (node.tensor(position).cast(dtype) for position in (1, 2, 3, 4))
    a = scale / _deviation(node, variance)
    b = bias - mean * a
    wide = x.cast(dtype)
    if node.opset >= 9 or node.integer("spatial", 1):
        a, b = (each.along(min(1, len(x.shape) - 1), x) for each in (a, b))
    return [(wide * a + b).cast(x.dtype).index]


def _trained_batch_norm(node: Context) -> list[int]:
    """With the batch's own mean and variance; then the running ones, moved towards these."""
    x, build = node.tensor(0), node.build
    mean, centred, variance = _center(x, [axis for axis in range(len(x.shape)) if axis != 1])
    scale, bias = (node.tensor(at).cast(x.dtype).along(1, x) for at in (1, 2))
    result = centred / _deviation(node, variance) * scale + bias
    momentum = node.number("momentum", 0.9)
    moved = []
    for position, fresh in ((3, mean), (4, variance)):
        kept = node.tensor(position) * momentum
        line = Value(build, build.reshape(fresh.index, kept.shape)).cast(kept.dtype)
        moved.append((kept + line * (1 - momentum)).index)
    return [result.index, *moved][: len(node.wanted)]


def _deviation(node: Context, variance: Value) -> Value:
    """√(variance + ε)"""
    return (variance + node.number("epsilon", 1e-5)).unary("sqrt")


def _center(x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """The mean along `axes`, x minus it, and the variance."""
    mean = x.mean(axes)
    centred = x - mean
    return mean, centred, (centred * centred).mean(axes)


@lowering("LayerNormalization")
def layer_norm(node: Context) -> list[int]:
    """(x - mean) / √(var + ε) · scale + bias over the axes from `axis` on.

    Mean and 1 / √(var + ε) have the stash type.
    """
    x, axes = _stash(node), _last_axes(node)
    mean, centred, variance = _center(x, axes)
    deviation = _deviation(node, variance)
    result = (centred / deviation).cast(node.build.dtype(node[0])) * node.tensor(1)
    if node.optional(2) is not None:
        result = result + node.tensor(2)
    stash = _stash_type(node)
    kept = [each.cast(stash).index for each in (mean, 1 / deviation)]
    return [result.index, *kept][: len(node.wanted)]


def _stash_type(node: Context) -> DType:
    """The type that statistics are computed in, and returned in."""
    dtype = dtype_of(node.integer("stash_type", 1))
    if not dtype.is_float:
        raise node.wrong(f"its stash_type is {dtype}, which has no fractions")
    return dtype


def _stash(node: Context) -> Value:
    """x in the type that statistics are computed in, or in its own where that is wider: f64 stays
    f64, as in onnxruntime."""
    x, stash = node.tensor(0), _stash_type(node)
    return x.cast(stash) if stash.itemsize > x.dtype.itemsize else x


def _last_axes(node: Context) -> Sequence[int]:
    """The axes from `axis` on."""
    rank = node.build.rank(node[0])
    return range(node.axis(node.integer("axis", -1), rank), rank)


@lowering("RMSNormalization")
def rms_norm(node: Context) -> int:
    """x / √(mean(x²) + ε) · scale over the axes from `axis` on."""
    x, scale = _stash(node), node.tensor(1)
    deviation = _deviation(node, (x * x).mean(_last_axes(node)))
    return ((x / deviation).cast(scale.dtype) * scale).index


@lowering("InstanceNormalization")
@computed_wide
def instance_norm(node: Context) -> int:
    """(x - mean) / √(var + ε) · scale + bias, per sample and channel."""
    x = node.tensor(0)
    _, centred, variance = _center(x, range(2, len(x.shape)))
    scale, bias = (node.tensor(at).along(1, x) for at in (1, 2))
    return (centred / _deviation(node, variance) * scale + bias).index


@lowering("GroupNormalization")
def group_norm(node: Context) -> int:
    """Instance normalisation over groups of channels; scale and bias per channel."""
    build, x, wide = node.build, node.tensor(0), _stash(node)
    groups = node.integer("num_groups")
    batch, channels, *rest = x.shape
    width = channels // groups if groups > 0 else 0
    fitting = (batch, groups * width, *rest)
    if groups < 1 or not fits(x.shape, fitting):
        raise node.wrong(f"{channels} channels do not split into {groups} groups")
    shape = (batch, groups, width, *rest)
    grouped = Value(build, build.reshape(build.exactly(wide.index, fitting), shape))
    _, centred, variance = _center(grouped, range(2, len(shape)))
    normal = centred / _deviation(node, variance)
    scale, bias = node.tensor(1), node.tensor(2)
    if node.opset < 21:
        scale, bias = (each.cast(normal.dtype).along(1, normal) for each in (scale, bias))
        result = normal * scale + bias
        joined = build.exactly(build.reshape(result.index, fitting), x.shape)
        return build.converted(joined, x.dtype)
    joined = build.exactly(build.reshape(normal.index, fitting), x.shape)
    flat = Value(build, joined).cast(x.dtype)
    return (flat * scale.along(1, x) + bias.along(1, x)).index


@lowering("MeanVarianceNormalization")
@computed_wide
def mean_variance_norm(node: Context) -> int:
    """(x - mean) / (√var + 1e-9) over the axes."""
    x, given = node.tensor(0), node.integers("axes")
    axes = node.axes((0, 2, 3) if given is None else given, len(x.shape))
    _, centred, variance = _center(x, axes)
    return (centred / (variance.unary("sqrt") + 1e-9)).index


@lowering("LpNormalization")
@computed_wide
def lp_norm(node: Context) -> int:
    """x divided by its L1 or L2 norm along an axis; 0 where the norm is 0."""
    x = node.tensor(0)
    axes = [node.axis(node.integer("axis", -1), len(x.shape))]
    if node.integer("p", 2) == 1:
        norm = x.like(abs(x).reduce("sum", axes))
    else:
        norm = x.like((x * x).reduce("sum", axes).unary("sqrt"))
    return x.like(0).where(norm.binary("eq", 0), x / norm).index
